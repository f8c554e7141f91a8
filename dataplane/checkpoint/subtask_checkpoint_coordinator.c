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

/* Blocks of keyed state copied in one step: some fifty microseconds. */
enum { STEP_BLOCKS = 1024 };

int subtask_checkpoint_coordinator_create(struct subtask_checkpoint_coordinator **out,
		const struct subtask_checkpoint_coordinator_config *config)
{
	struct subtask_checkpoint_coordinator *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	CHECK(config->max_concurrent >= 1);
	CHECK(config->max_concurrent <= CHECKPOINTS_IN_FLIGHT_MAX);
	c->config = *config;
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

/* An acknowledged part has said its word already: only its release is awaited. */
static void close_async(struct subtask_checkpoint_coordinator *c, enum decline_reason reason,
		const char *text)
{
	int64_t id = c->async.checkpoint_id;

	if (id == 0 || c->async.is_reported)
		return;
	c->async = (struct async_part){0};
	if (state_writer_is_done(c->config.writer))
		state_writer_end(c->config.writer);
	else
		state_writer_abort(c->config.writer);
	subtask_channel_state_drop(c, id, reason, text);
}

/* SC-3. */
static void fail_async(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	char copy[STATE_WRITER_TEXT_BYTES];

	if (c->async.checkpoint_id != id || c->async.is_reported)
		return;
	snprintf(copy, sizeof(copy), "%s", text); /* it may lie in what is closed now */
	close_async(c, reason, copy);
	decline(c, id, reason, copy);
}

/* ---- 14.2 ---- */

/* Step 0.  true when the checkpoint goes on. */
static bool is_wanted(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	int64_t limit = c->config.max_concurrent;

	if (c->last_checkpoint_id >= id) {
		(void)forget_aborted(c, id, false);
		if (c->async.checkpoint_id != id)
			subtask_channel_state_drop(c, id, DECLINE_SUBSUMED, "it came too late");
		return false;
	}
	c->last_checkpoint_id = id;
	if (forget_aborted(c, id, false) || id + limit < c->max_aborted_id) {
		broadcast_cancel(c, id);
		subtask_channel_state_drop(c, id, DECLINE_SUBSUMED, "it was aborted before");
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

static int begin_state(struct subtask_checkpoint_coordinator *c, const struct event *barrier)
{
	char directory[STATE_WRITER_PATH_BYTES];
	struct checkpoint_responder *responder = c->config.responder;

	if (checkpoint_options_needs_channel_state(&barrier->options) && c->prepared_status != 0)
		return c->prepared_status;
	if (c->async.is_reported && responder->collect != NULL)
		responder->collect(responder);
	int status = resolve_location(c, barrier, directory);
	if (status != 0)
		return status;
	if (c->async.checkpoint_id != 0)
		return -EBUSY;
	return state_writer_begin(c->config.writer, barrier->checkpoint_id, directory);
}

static void refuse_snapshot(struct subtask_checkpoint_coordinator *c, int64_t id, int status)
{
	enum decline_reason reason =
			status == -EBUSY ? DECLINE_TASK_NOT_READY : DECLINE_ASYNC_EXCEPTION;
	char text[128];

	snprintf(text, sizeof(text), "the snapshot cannot begin: %s",
			status == -EBUSY ? "writes of an earlier one have not come back"
			: status == -EOPNOTSUPP
					? "this task keeps no channel state"
					: strerror(-status));
	subtask_channel_state_drop(c, id, reason, text);
	decline(c, id, reason, text);
}

/* Steps 6 and 7: the synchronous part.  False: the checkpoint was declined. */
static bool begin_snapshot(struct subtask_checkpoint_coordinator *c, const struct event *barrier)
{
	int64_t id = barrier->checkpoint_id;
	int status = begin_state(c, barrier);

	if (status != 0) {
		refuse_snapshot(c, id, status);
		return false;
	}
	if (c->config.files != NULL)
		operator_files_barrier(c->config.files, id);
	c->async = (struct async_part){
		.checkpoint_id = id,
		.has_in_flight = checkpoint_options_needs_channel_state(&barrier->options),
	};
	return true;
}

/* SP-13: there is one barrier to wait for at a time. */
static void fail_waiting_output(struct subtask_checkpoint_coordinator *c)
{
	int64_t id = c->output_pending_id;

	c->output_pending_id = 0;
	if (id != 0)
		fail_async(c, id, DECLINE_ASYNC_EXCEPTION,
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
	if (!send_barrier(c, &sent, began_ns) || !begin_snapshot(c, &sent))
		return true;
	(void)subtask_channel_state_finish_output(c);
	uint64_t now_ns = clock->now_ns(clock);
	c->async.began_ns = now_ns;
	c->async.metrics = (struct checkpoint_metrics){
		.alignment_duration_ns = arrival->alignment_duration_ns,
		.bytes_processed_during_alignment = arrival->bytes_processed,
		.sync_duration_ns = (int64_t)(now_ns - began_ns),
		.start_delay_ns = arrival->start_delay_ns,
	};
	return true;
}

const struct checkpoint_options *subtask_checkpoint_coordinator_performed(
		const struct subtask_checkpoint_coordinator *c)
{
	return &c->performed;
}

/* ---- 14.3 ---- */

static const struct channel_state_result *in_flight_of(
		const struct subtask_checkpoint_coordinator *c)
{
	return c->async.has_in_flight ? channel_state_writer_result(
						c->config.channel_state, c->async.checkpoint_id)
				      : NULL;
}

static void acknowledge(struct subtask_checkpoint_coordinator *c)
{
	const struct task_state *state = state_writer_result(c->config.writer);
	const struct channel_state_result *in_flight = in_flight_of(c);
	struct clock *clock = c->config.clock;
	struct checkpoint_metrics *m = &c->async.metrics;
	int64_t in_flight_bytes = in_flight != NULL ? (int64_t)in_flight->bytes : 0;

	m->async_duration_ns = (int64_t)(clock->now_ns(clock) - c->async.began_ns);
	m->total_bytes = (int64_t)task_state_total_bytes(state) + in_flight_bytes;
	m->bytes_persisted = m->total_bytes;
	m->bytes_persisted_during_alignment = in_flight_bytes;
	m->is_unaligned = in_flight_bytes > 0;
	c->async.is_reported = true;
	c->config.responder->acknowledge(
			c->config.responder, c->async.checkpoint_id, m, state, in_flight);
}

/* True once the states, the operators' files and the channel state are settled. */
static bool is_settled(struct subtask_checkpoint_coordinator *c, int *status,
		enum decline_reason *reason, const char **text)
{
	struct channel_state_writer *w = c->config.channel_state;

	*status = 0;
	*reason = DECLINE_ASYNC_EXCEPTION;
	if (state_writer_is_done(c->config.writer)) {
		*status = state_writer_outcome(c->config.writer, text);
		if (*status != 0)
			return true;
	}
	if (c->async.has_in_flight) {
		if (!channel_state_writer_is_done(w, c->async.checkpoint_id))
			return false;
		*status = channel_state_writer_outcome(
				w, c->async.checkpoint_id, reason, text);
		if (*status != 0)
			return true;
	}
	if (c->config.files != NULL &&
			!operator_files_barrier_is_done(c->config.files, status, text))
		return false;
	return *status != 0 || state_writer_is_done(c->config.writer);
}

static bool is_at_rest(const struct subtask_checkpoint_coordinator *c)
{
	const struct channel_state_writer *w = c->config.channel_state;

	return c->async.checkpoint_id == 0 && state_writer_is_idle(c->config.writer) &&
			(w == NULL || !c->is_closed || channel_state_writer_is_idle(w));
}

uint32_t subtask_checkpoint_coordinator_step(
		struct subtask_checkpoint_coordinator *c, uint64_t now_ns)
{
	enum decline_reason reason;
	const char *text = "";
	uint32_t work = subtask_channel_state_finish_output(c);
	int status;

	if (c->config.channel_state != NULL)
		work += channel_state_writer_step(c->config.channel_state, now_ns);
	if (state_writer_is_idle(c->config.writer) && c->async.checkpoint_id == 0)
		return work;
	work += state_writer_step(c->config.writer, STEP_BLOCKS);
	if (c->async.checkpoint_id == 0 || c->async.is_reported)
		return work;
	if (!is_settled(c, &status, &reason, &text))
		return work;
	if (status == 0)
		acknowledge(c);
	else
		fail_async(c, c->async.checkpoint_id, reason, text);
	return work + 1;
}

void subtask_checkpoint_coordinator_release(struct subtask_checkpoint_coordinator *c)
{
	CHECK(c->async.is_reported);
	if (c->async.has_in_flight && !c->is_closed)
		channel_state_writer_remove(c->config.channel_state, c->async.checkpoint_id);
	c->async = (struct async_part){0};
	state_writer_end(c->config.writer);
}

/* ---- 14.4, 14.5 ---- */

/* BH-7: a younger one may end it without naming it; its channel state fails for the same cause. */
static void end_pending_input(struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id,
		enum decline_reason reason)
{
	int64_t id = c->input_pending_id;

	if (id == 0 || id >= checkpoint_id)
		return;
	subtask_channel_state_drop(c, id, reason, "a younger checkpoint was aborted");
	fail_async(c, id, reason, "a younger checkpoint was aborted");
}

void subtask_checkpoint_coordinator_abort_on_barrier(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, enum decline_reason reason)
{
	if (checkpoint_id > c->last_checkpoint_id)
		c->last_checkpoint_id = checkpoint_id;
	(void)forget_aborted(c, c->last_checkpoint_id, true);
	subtask_channel_state_drop(c, checkpoint_id, reason, "the checkpoint was aborted");
	decline(c, checkpoint_id, reason, "");
	if (c->async.checkpoint_id == checkpoint_id)
		close_async(c, reason, "the checkpoint was aborted");
	if (c->timer_id == checkpoint_id)
		c->timer_ns = UINT64_MAX;
	if (c->output_pending_id == checkpoint_id)
		c->output_pending_id = 0;
	broadcast_cancel(c, checkpoint_id);
	end_pending_input(c, checkpoint_id, reason);
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

	if (c->async.checkpoint_id == checkpoint_id)
		close_async(c, DECLINE_SUBSUMED, text);
	else if (checkpoint_id > c->last_checkpoint_id)
		remember_aborted(c, checkpoint_id);
	if (c->async.checkpoint_id != checkpoint_id)
		subtask_channel_state_drop(c, checkpoint_id, DECLINE_SUBSUMED, text);
	chain_notify_aborted(c->config.chain, checkpoint_id);
}

void subtask_checkpoint_coordinator_stop(struct subtask_checkpoint_coordinator *c)
{
	close_async(c, DECLINE_TASK_CLOSING, "the task ends");
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
