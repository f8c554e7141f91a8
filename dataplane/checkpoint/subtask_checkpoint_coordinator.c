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
#include "dataplane/checkpoint/checkpoint_responder.h"
#include "dataplane/checkpoint/operator_files.h"
#include "dataplane/checkpoint/savepoint_locations.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/operator/chain.h"

/* Blocks of keyed state copied in one step: some fifty microseconds. */
enum { STEP_BLOCKS = 1024 };

/* The asynchronous part of one checkpoint. */
struct async_part {
	int64_t checkpoint_id; /* 0: none */
	uint64_t began_ns;
	bool is_reported;      /* acknowledged, its state not released yet */
	struct checkpoint_metrics metrics;
};

struct subtask_checkpoint_coordinator {
	struct subtask_checkpoint_coordinator_config config;
	int64_t last_checkpoint_id;
	int64_t max_aborted_id;
	uint32_t aborted_count; /* oldest first */
	int64_t aborted[CHECKPOINTS_IN_FLIGHT_MAX];
	struct async_part async;
};

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

/* ---- 14.2 ---- */

/* Step 0.  true when the checkpoint goes on. */
static bool is_wanted(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	int64_t limit = c->config.max_concurrent;

	if (c->last_checkpoint_id >= id) {
		(void)forget_aborted(c, id, false);
		return false;
	}
	c->last_checkpoint_id = id;
	if (forget_aborted(c, id, false) || id + limit < c->max_aborted_id) {
		broadcast_cancel(c, id);
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

/* Steps 6 and 7: the synchronous part. */
static void begin_snapshot(struct subtask_checkpoint_coordinator *c, const struct event *barrier)
{
	char directory[STATE_WRITER_PATH_BYTES], text[128];
	struct checkpoint_responder *responder = c->config.responder;
	int64_t id = barrier->checkpoint_id;

	if (c->async.is_reported && responder->collect != NULL)
		responder->collect(responder);
	int status = resolve_location(c, barrier, directory);
	if (status == 0)
		status = c->async.checkpoint_id != 0
				? -EBUSY
				: state_writer_begin(c->config.writer, id, directory);
	if (status != 0) {
		snprintf(text, sizeof(text), "the snapshot cannot begin: %s",
				status == -EBUSY ? "writes of an earlier one have not come back"
						 : strerror(-status));
		decline(c, id,
				status == -EBUSY ? DECLINE_TASK_NOT_READY : DECLINE_ASYNC_EXCEPTION,
				text);
		return;
	}
	if (c->config.files != NULL)
		operator_files_barrier(c->config.files, id);
	c->async.checkpoint_id = id;
	c->async.is_reported = false;
}

bool subtask_checkpoint_coordinator_checkpoint_state(struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, const struct checkpoint_arrival *arrival)
{
	int64_t id = barrier->checkpoint_id;
	struct clock *clock = c->config.clock;

	CHECK(barrier->kind == EVENT_BARRIER);
	if (!is_wanted(c, id))
		return false;
	uint64_t began_ns = clock->now_ns(clock);
	chain_before_barrier(c->config.chain, id);
	if (chain_failure(c->config.chain) != NULL)
		return true;
	if (!broadcast(c, barrier)) {
		decline(c, id, DECLINE_OTHER, "a consumer has too many barriers waiting");
		broadcast_cancel(c, id);
		return true;
	}
	begin_snapshot(c, barrier);
	if (c->async.checkpoint_id != id)
		return true;
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

/* ---- 14.3 ---- */

static void acknowledge(struct subtask_checkpoint_coordinator *c)
{
	const struct task_state *state = state_writer_result(c->config.writer);
	struct clock *clock = c->config.clock;
	struct checkpoint_metrics *m = &c->async.metrics;

	m->async_duration_ns = (int64_t)(clock->now_ns(clock) - c->async.began_ns);
	m->total_bytes = (int64_t)task_state_total_bytes(state);
	m->bytes_persisted = m->total_bytes;
	c->async.is_reported = true;
	c->config.responder->acknowledge(c->config.responder, c->async.checkpoint_id, m, state);
}

/* SC-3. */
static void fail_async(struct subtask_checkpoint_coordinator *c, const char *text)
{
	int64_t id = c->async.checkpoint_id;

	c->async.checkpoint_id = 0;
	if (state_writer_is_done(c->config.writer))
		state_writer_end(c->config.writer);
	else
		state_writer_abort(c->config.writer);
	decline(c, id, DECLINE_ASYNC_EXCEPTION, text);
}

/* True once both the states and the operators' files are settled. */
static bool is_settled(struct subtask_checkpoint_coordinator *c, int *status, const char **text)
{
	*status = 0;
	if (state_writer_is_done(c->config.writer)) {
		*status = state_writer_outcome(c->config.writer, text);
		if (*status != 0)
			return true;
	}
	if (c->config.files != NULL &&
			!operator_files_barrier_is_done(c->config.files, status, text))
		return false;
	return *status != 0 || state_writer_is_done(c->config.writer);
}

uint32_t subtask_checkpoint_coordinator_step(struct subtask_checkpoint_coordinator *c)
{
	const char *text = "";
	int status;

	if (state_writer_is_idle(c->config.writer) && c->async.checkpoint_id == 0)
		return 0;
	uint32_t work = state_writer_step(c->config.writer, STEP_BLOCKS);
	if (c->async.checkpoint_id == 0 || c->async.is_reported)
		return work;
	if (!is_settled(c, &status, &text))
		return work;
	if (status == 0)
		acknowledge(c);
	else
		fail_async(c, text);
	return work + 1;
}

void subtask_checkpoint_coordinator_release(struct subtask_checkpoint_coordinator *c)
{
	CHECK(c->async.is_reported);
	c->async.is_reported = false;
	c->async.checkpoint_id = 0;
	state_writer_end(c->config.writer);
}

/* An acknowledged part has said its word already: only its release is awaited. */
static void close_async(struct subtask_checkpoint_coordinator *c)
{
	if (c->async.checkpoint_id == 0 || c->async.is_reported)
		return;
	c->async.checkpoint_id = 0;
	state_writer_abort(c->config.writer);
}

/* ---- 14.4, 14.5 ---- */

void subtask_checkpoint_coordinator_abort_on_barrier(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, enum decline_reason reason)
{
	if (checkpoint_id > c->last_checkpoint_id)
		c->last_checkpoint_id = checkpoint_id;
	(void)forget_aborted(c, c->last_checkpoint_id, true);
	decline(c, checkpoint_id, reason, "");
	broadcast_cancel(c, checkpoint_id);
}

void subtask_checkpoint_coordinator_notify_complete(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	chain_notify_complete(c->config.chain, checkpoint_id);
}

void subtask_checkpoint_coordinator_notify_aborted(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id)
{
	if (c->async.checkpoint_id == checkpoint_id)
		close_async(c);
	else if (checkpoint_id > c->last_checkpoint_id)
		remember_aborted(c, checkpoint_id);
	chain_notify_aborted(c->config.chain, checkpoint_id);
}

void subtask_checkpoint_coordinator_stop(struct subtask_checkpoint_coordinator *c)
{
	close_async(c);
}

bool subtask_checkpoint_coordinator_is_idle(const struct subtask_checkpoint_coordinator *c)
{
	return c->async.checkpoint_id == 0 && state_writer_is_idle(c->config.writer);
}
