#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/limits.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/checkpoint_responder.h"
#include "dataplane/checkpoint/operator_files.h"
#include "dataplane/checkpoint/savepoint_locations.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/subtask_checkpoint_coordinator_internal.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/operator/chain.h"

/* Blocks of keyed state copied in one step: some 200 microseconds, if entries have 16 bytes.  What
 * a step leaves, the next records copy themselves, block by block out of order, which takes twice
 * the time. */
enum { STEP_BLOCKS = 4096 };

int subtask_checkpoint_coordinator_create(struct subtask_checkpoint_coordinator **out,
		const struct subtask_checkpoint_coordinator_config *config)
{
	struct subtask_checkpoint_coordinator *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	CHECK(config->max_concurrent >= 1);
	CHECK(config->max_concurrent <= CHECKPOINTS_IN_FLIGHT_MAX);
	CHECK(config->writer_count >= 1 && config->writer_count <= ASYNC_PARTS_MAX);
	c->config = *config;
	for (uint32_t i = 0; i < config->writer_count; i++)
		c->parts[i].writer = config->writers[i];
	c->last_checkpoint_id = -1;
	c->timer_ns = UINT64_MAX;
	*out = c;
	return 0;
}

void subtask_checkpoint_coordinator_destroy(struct subtask_checkpoint_coordinator *c)
{
	free(c);
}

/* ---- remembered aborts ---- */

static bool is_marked_aborted(const struct subtask_checkpoint_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->aborted_count; i++) {
		if (c->aborted[i] == id)
			return true;
	}
	return false;
}

static void remember_aborted(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	if (is_marked_aborted(c, id))
		return;
	if (c->aborted_count == c->config.max_concurrent) {
		memmove(c->aborted, c->aborted + 1,
				(c->aborted_count - 1) * sizeof(c->aborted[0]));
		c->aborted_count--;
	}
	c->aborted[c->aborted_count++] = id;
	if (id > c->max_aborted_id)
		c->max_aborted_id = id;
}

/* Drops the marks that are not kept by `id`; true when `id` itself was marked. */
static bool forget_aborted(struct subtask_checkpoint_coordinator *c, int64_t id, bool older_too)
{
	uint32_t kept = 0;
	bool found = false;

	for (uint32_t i = 0; i < c->aborted_count; i++) {
		bool is_it = c->aborted[i] == id;

		found |= is_it;
		if (!is_it && !(older_too && c->aborted[i] < id))
			c->aborted[kept++] = c->aborted[i];
	}
	c->aborted_count = kept;
	return found;
}

/* ---- outputs ---- */

static bool broadcast(struct subtask_checkpoint_coordinator *c, const struct event *e)
{
	for (uint32_t i = 0; i < c->config.output_count; i++) {
		if (output_gate_broadcast(c->config.outputs[i], e) != 0)
			return false;
	}
	return true;
}

static void broadcast_cancel(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	struct event cancel = {.kind = EVENT_CANCEL, .checkpoint_id = id};

	(void)broadcast(c, &cancel);
}

void subtask_checkpoint_coordinator_cancel_downstream(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	broadcast_cancel(c, checkpoint_id);
}

static void decline(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	c->config.responder->decline(c->config.responder, id, reason, text);
}

/* ---- the end of an asynchronous part ---- */

struct async_part *subtask_async_part(
		const struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < c->config.writer_count && checkpoint_id != 0; i++) {
		if (c->parts[i].checkpoint_id == checkpoint_id)
			return (struct async_part *)(uintptr_t)&c->parts[i];
	}
	return NULL;
}

static void empty(struct async_part *part)
{
	*part = (struct async_part){.writer = part->writer};
}

/* An acknowledged part has said its word already: only its release is awaited. */
static void close_part(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	struct async_part *part = subtask_async_part(c, id);

	if (part == NULL || part->is_reported)
		return;
	empty(part);
	if (state_writer_is_done(part->writer))
		state_writer_end(part->writer);
	else
		state_writer_abort(part->writer);
	subtask_channel_state_drop(c, id, reason, text);
}

/* SC-3. */
static void fail_part(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	struct async_part *part = subtask_async_part(c, id);
	char copy[STATE_WRITER_TEXT_BYTES];

	if (part == NULL || part->is_reported)
		return;
	snprintf(copy, sizeof(copy), "%s", text); /* it may lie in what is closed now */
	close_part(c, id, reason, copy);
	decline(c, id, reason, copy);
}

/* ---- 14.2 ---- */

/* Step 0.  true when the checkpoint goes on. */
static bool is_wanted(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	int64_t limit = c->config.max_concurrent;

	if (c->last_checkpoint_id >= id) {
		(void)forget_aborted(c, id, false);
		if (subtask_async_part(c, id) == NULL)
			subtask_channel_state_abort(c, id, DECLINE_SUBSUMED, "it came too late");
		return false;
	}
	c->last_checkpoint_id = id;
	if (forget_aborted(c, id, false) || id + limit < c->max_aborted_id) {
		broadcast_cancel(c, id);
		subtask_channel_state_abort(c, id, DECLINE_SUBSUMED, "it was aborted before");
		return false;
	}
	return true;
}

static_assert((int)SAVEPOINT_LOCATION_BYTES <= (int)STATE_WRITER_PATH_BYTES, "every location fits");

/* Step 6, SL-4: where the states go. */
static int resolve_location(const struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, char directory[STATE_WRITER_PATH_BYTES])
{
	if (c->config.locations != NULL &&
			snapshot_kind_is_savepoint(
					(enum snapshot_kind)barrier->options.snapshot))
		return savepoint_locations_find(c->config.locations, barrier->checkpoint_id,
				       directory)
				? 0
				: -ENOENT;
	int length = snprintf(directory, STATE_WRITER_PATH_BYTES, "%s/chk-%" PRId64,
			c->config.checkpoint_dir, barrier->checkpoint_id);
	return length >= STATE_WRITER_PATH_BYTES ? -ENAMETOOLONG : 0;
}

/* One whose writer has nothing under way, or NULL. */
static struct async_part *free_part(struct subtask_checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->config.writer_count; i++) {
		if (c->parts[i].checkpoint_id == 0 && state_writer_is_idle(c->parts[i].writer))
			return &c->parts[i];
	}
	return NULL;
}

static int begin_state(struct subtask_checkpoint_coordinator *c, const struct event *barrier,
		struct async_part **part)
{
	char directory[STATE_WRITER_PATH_BYTES];
	struct checkpoint_responder *responder = c->config.responder;

	if (checkpoint_options_needs_channel_state(&barrier->options) && c->prepared_status != 0)
		return c->prepared_status;
	*part = free_part(c);
	if (*part == NULL && responder->collect != NULL) {
		responder->collect(responder);
		*part = free_part(c);
	}
	int status = resolve_location(c, barrier, directory);
	if (status != 0)
		return status;
	return *part == NULL ? -EBUSY
			     : state_writer_begin((*part)->writer, barrier->checkpoint_id,
					       directory);
}

static const char *why_refused(int status)
{
	switch (status) {
	case -EBUSY:
		return "writes of an earlier one have not come back";
	case -ENOBUFS:
		return "writes of an earlier one have not come back, and hold the room for a copy "
		       "of a keyed state";
	case -EOPNOTSUPP:
		return "this task keeps no channel state";
	default:
		return strerror(-status);
	}
}

static void refuse_snapshot(struct subtask_checkpoint_coordinator *c, int64_t id, int status)
{
	bool is_busy = status == -EBUSY || status == -ENOBUFS;
	enum decline_reason reason = is_busy ? DECLINE_TASK_NOT_READY : DECLINE_ASYNC_EXCEPTION;
	char text[160];

	snprintf(text, sizeof(text), "the snapshot cannot begin: %s", why_refused(status));
	subtask_channel_state_drop(c, id, reason, text);
	decline(c, id, reason, text);
}

/* Steps 6 and 7: the synchronous part.  NULL: the checkpoint was declined. */
static struct async_part *begin_snapshot(
		struct subtask_checkpoint_coordinator *c, const struct event *barrier)
{
	int64_t id = barrier->checkpoint_id;
	struct async_part *part;
	int status = begin_state(c, barrier, &part);

	if (status != 0) {
		refuse_snapshot(c, id, status);
		return NULL;
	}
	if (c->config.files != NULL)
		operator_files_barrier(c->config.files, id);
	part->checkpoint_id = id;
	part->has_in_flight = checkpoint_options_needs_channel_state(&barrier->options);
	return part;
}

/* SP-13: there is one barrier to wait for at a time. */
static void fail_waiting_output(struct subtask_checkpoint_coordinator *c)
{
	int64_t id = c->output_pending_id;

	c->output_pending_id = 0;
	if (id != 0)
		fail_part(c, id, DECLINE_ASYNC_EXCEPTION,
				"its barrier had not left when a newer one came");
}

/* Steps 3 to 5.  False: a consumer had no room, and the checkpoint was declined. */
static bool send_barrier(struct subtask_checkpoint_coordinator *c, const struct event *barrier,
		uint64_t now_ns)
{
	const char *text = "a consumer has too many barriers waiting";
	int64_t id = barrier->checkpoint_id;

	if (checkpoint_options_is_timeoutable(&barrier->options))
		fail_waiting_output(c);
	if (!broadcast(c, barrier)) {
		subtask_channel_state_drop(c, id, DECLINE_OTHER, text);
		decline(c, id, DECLINE_OTHER, text);
		broadcast_cancel(c, id);
		return false;
	}
	subtask_channel_state_sent(c, barrier, now_ns);
	return true;
}

static enum checkpoint_mode mode_of(
		const struct checkpoint_options *sent, const struct checkpoint_arrival *arrival)
{
	if (!checkpoint_options_is_unaligned(sent))
		return CHECKPOINT_ALIGNED;
	return arrival->has_timed_out ? CHECKPOINT_TIMED_OUT : CHECKPOINT_UNALIGNED;
}

bool subtask_checkpoint_coordinator_checkpoint_state(struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, const struct checkpoint_arrival *arrival)
{
	int64_t id = barrier->checkpoint_id;
	struct event sent = *barrier;
	struct clock *clock = c->config.clock;

	CHECK(barrier->kind == EVENT_BARRIER);
	if (!is_wanted(c, id))
		return false;
	uint64_t began_ns = clock->now_ns(clock);
	sent.options = checkpoint_options_with_unaligned(&barrier->options);
	if (barrier->options.alignment == ALIGNMENT_FORCED_ALIGNED)
		subtask_checkpoint_coordinator_prepare(c, &sent);
	c->performed = sent.options;
	chain_before_barrier(c->config.chain, id);
	if (chain_failure(c->config.chain) != NULL)
		return true;
	if (!send_barrier(c, &sent, began_ns))
		return true;
	struct async_part *part = begin_snapshot(c, &sent);
	if (part == NULL)
		return true;
	(void)subtask_channel_state_finish_output(c);
	uint64_t now_ns = clock->now_ns(clock);
	part->began_ns = now_ns;
	part->metrics = (struct checkpoint_metrics){
		.mode = mode_of(&sent.options, arrival),
		.alignment_duration_ns = arrival->alignment_duration_ns,
		.bytes_processed_during_alignment = arrival->bytes_processed,
		.sync_duration_ns = (int64_t)(now_ns - began_ns),
		.start_delay_ns = arrival->start_delay_ns,
		.heard_ns = arrival->heard_ns,
		.began_ns = began_ns,
	};
	return true;
}

const struct checkpoint_options *subtask_checkpoint_coordinator_performed(
		const struct subtask_checkpoint_coordinator *c)
{
	return &c->performed;
}

/* ---- 14.3 ---- */

static void acknowledge(struct subtask_checkpoint_coordinator *c, struct async_part *part)
{
	const struct task_state *state = state_writer_result(part->writer);
	const struct channel_state_result *in_flight = part->has_in_flight
			? channel_state_writer_result(
					  c->config.channel_state, part->checkpoint_id)
			: NULL;
	struct clock *clock = c->config.clock;
	struct checkpoint_metrics *m = &part->metrics;
	int64_t in_flight_bytes = in_flight != NULL ? (int64_t)in_flight->bytes : 0;

	m->ended_ns = clock->now_ns(clock);
	m->async_duration_ns = (int64_t)(m->ended_ns - part->began_ns);
	m->total_bytes = (int64_t)task_state_total_bytes(state) + in_flight_bytes;
	m->bytes_persisted = m->total_bytes;
	m->bytes_persisted_during_alignment = in_flight_bytes;
	m->is_unaligned = in_flight_bytes > 0;
	if (in_flight != NULL) {
		m->channel_count = in_flight->handle_count;
		m->buf_count = in_flight->buf_count;
		m->file_count = in_flight->file != NULL;
	}
	part->is_reported = true;
	c->config.responder->acknowledge(
			c->config.responder, part->checkpoint_id, m, state, in_flight);
}

/* True once the states, the operators' files and the channel state are settled. */
static bool is_settled(struct subtask_checkpoint_coordinator *c, const struct async_part *part,
		int *status, enum decline_reason *reason, const char **text)
{
	struct channel_state_writer *w = c->config.channel_state;

	*status = 0;
	*reason = DECLINE_ASYNC_EXCEPTION;
	if (state_writer_is_done(part->writer)) {
		*status = state_writer_outcome(part->writer, text);
		if (*status != 0)
			return true;
	}
	if (part->has_in_flight) {
		if (!channel_state_writer_is_done(w, part->checkpoint_id))
			return false;
		*status = channel_state_writer_outcome(w, part->checkpoint_id, reason, text);
		if (*status != 0)
			return true;
	}
	if (c->config.files != NULL &&
			!operator_files_barrier_is_done(c->config.files, status, text))
		return false;
	return *status != 0 || state_writer_is_done(part->writer);
}

static bool is_at_rest(const struct subtask_checkpoint_coordinator *c)
{
	const struct channel_state_writer *w = c->config.channel_state;

	for (uint32_t i = 0; i < c->config.writer_count; i++) {
		if (c->parts[i].checkpoint_id != 0 || !state_writer_is_idle(c->parts[i].writer))
			return false;
	}
	return w == NULL || !c->is_closed || channel_state_writer_is_idle(w);
}

static uint32_t step_part(struct subtask_checkpoint_coordinator *c, struct async_part *part)
{
	enum decline_reason reason;
	const char *text = "";
	int status;

	if (state_writer_is_idle(part->writer) && part->checkpoint_id == 0)
		return 0;
	uint32_t work = state_writer_step(part->writer, STEP_BLOCKS);
	if (part->checkpoint_id == 0 || part->is_reported ||
			!is_settled(c, part, &status, &reason, &text))
		return work;
	if (status == 0)
		acknowledge(c, part);
	else
		fail_part(c, part->checkpoint_id, reason, text);
	return work + 1;
}

/* The one with the smallest id above `id`, or NULL. */
static struct async_part *next_part(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	struct async_part *next = NULL;

	for (uint32_t i = 0; i < c->config.writer_count; i++) {
		struct async_part *p = &c->parts[i];

		if (p->checkpoint_id > id &&
				(next == NULL || p->checkpoint_id < next->checkpoint_id))
			next = p;
	}
	return next;
}

uint32_t subtask_checkpoint_coordinator_step(
		struct subtask_checkpoint_coordinator *c, uint64_t now_ns)
{
	uint32_t work = subtask_channel_state_finish_output(c);

	if (c->config.channel_state != NULL)
		work += channel_state_writer_step(c->config.channel_state, now_ns);
	/* Those without a checkpoint only clean up; the others in the order of their ids. */
	for (uint32_t i = 0; i < c->config.writer_count; i++) {
		if (c->parts[i].checkpoint_id == 0)
			work += step_part(c, &c->parts[i]);
	}
	for (struct async_part *p = next_part(c, 0); p != NULL;) {
		int64_t id = p->checkpoint_id;

		work += step_part(c, p);
		p = next_part(c, id);
	}
	return work;
}

void subtask_checkpoint_coordinator_release(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	struct async_part *part = subtask_async_part(c, checkpoint_id);

	CHECK(part != NULL && part->is_reported);
	if (part->has_in_flight && !c->is_closed)
		channel_state_writer_remove(c->config.channel_state, checkpoint_id);
	empty(part);
	state_writer_end(part->writer);
}

/* ---- 14.4, 14.5 ---- */

/* BH-7, CS-15: a younger one may end it without naming it. */
static void end_pending_input(struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	const char *text = "a younger checkpoint was aborted";
	int64_t id = c->input_pending_id;

	if (id == 0 || id >= checkpoint_id)
		return;
	subtask_channel_state_drop(c, id, DECLINE_SUBSUMED, text);
	fail_part(c, id, DECLINE_SUBSUMED, text);
}

void subtask_checkpoint_coordinator_abort_on_barrier(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, enum decline_reason reason)
{
	if (checkpoint_id > c->last_checkpoint_id)
		c->last_checkpoint_id = checkpoint_id;
	(void)forget_aborted(c, c->last_checkpoint_id, true);
	subtask_channel_state_abort(c, checkpoint_id, reason, "the checkpoint was aborted");
	decline(c, checkpoint_id, reason, "");
	close_part(c, checkpoint_id, reason, "the checkpoint was aborted");
	if (c->timer_id == checkpoint_id)
		c->timer_ns = UINT64_MAX;
	if (c->output_pending_id == checkpoint_id)
		c->output_pending_id = 0;
	broadcast_cancel(c, checkpoint_id);
	end_pending_input(c, checkpoint_id);
}

void subtask_checkpoint_coordinator_notify_complete(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	chain_notify_complete(c->config.chain, checkpoint_id);
}

void subtask_checkpoint_coordinator_notify_aborted(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	const char *text = "the coordinator aborted the checkpoint";

	if (subtask_async_part(c, checkpoint_id) != NULL)
		close_part(c, checkpoint_id, DECLINE_SUBSUMED, text);
	else if (checkpoint_id > c->last_checkpoint_id)
		remember_aborted(c, checkpoint_id);
	subtask_channel_state_abort(c, checkpoint_id, DECLINE_SUBSUMED, text);
	chain_notify_aborted(c->config.chain, checkpoint_id);
}

void subtask_checkpoint_coordinator_stop(struct subtask_checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->config.writer_count; i++)
		close_part(c, c->parts[i].checkpoint_id, DECLINE_TASK_CLOSING, "the task ends");
	c->timer_ns = UINT64_MAX;
}

void subtask_checkpoint_coordinator_close(struct subtask_checkpoint_coordinator *c)
{
	subtask_checkpoint_coordinator_stop(c);
	c->input_pending_id = 0;
	c->output_pending_id = 0;
	if (c->config.channel_state != NULL && !c->is_closed)
		channel_state_writer_close(c->config.channel_state);
	c->is_closed = true;
}

bool subtask_checkpoint_coordinator_is_idle(const struct subtask_checkpoint_coordinator *c)
{
	return is_at_rest(c);
}

bool subtask_checkpoint_coordinator_owes_answer(const struct subtask_checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->config.writer_count; i++) {
		if (c->parts[i].checkpoint_id != 0 && !c->parts[i].is_reported)
			return true;
	}
	return false;
}
