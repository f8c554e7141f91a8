/* The checkpoint part of stream_task: sections 13.2 - 13.5. */

#include <inttypes.h>
#include <stdio.h>

#include "dataplane/base/check.h"
#include "dataplane/task/stream_task_internal.h"

/* Polls that take all that a channel can hold. */
enum { HEAR_ALL_TURNS = CHANNEL_BUFFERS_MAX / BATCH_COUNT_MAX + 1 };

struct gate_channel {
	struct input_gate *gate;
	uint32_t channel;
};

static struct gate_channel gate_channel_of(const struct stream_task *t, uint32_t channel)
{
	uint32_t gate = 0;

	while (gate + 1 < t->config.input_count && channel >= t->first_channel[gate + 1])
		gate++;
	return (struct gate_channel){t->config.inputs[gate], channel - t->first_channel[gate]};
}

/* ---- synchronous savepoints ---- */

static bool is_synchronous(uint8_t kind)
{
	return snapshot_kind_is_synchronous((enum snapshot_kind)kind);
}

/* 13.3: false, and the task fails, when another one is under way. */
static bool enter_sync_savepoint(struct stream_task *t, int64_t id)
{
	char text[128];

	if (t->sync_savepoint_id != 0 && t->sync_savepoint_id != id) {
		snprintf(text, sizeof(text),
				"savepoint %" PRId64 " is to stop the task, while %" PRId64
				" is about to",
				id, t->sync_savepoint_id);
		stream_task_fail(t, text);
		return false;
	}
	t->sync_savepoint_id = id;
	return true;
}

/* TK-8, TK-10: who took part in it has no way back. */
static bool fail_if_sync_savepoint(struct stream_task *t, int64_t id)
{
	char text[96];

	if (t->sync_savepoint_id == 0 || t->sync_savepoint_id != id)
		return false;
	snprintf(text, sizeof(text),
			"Stop-with-savepoint failed: savepoint %" PRId64 " was aborted", id);
	stream_task_fail(t, text);
	return true;
}

/* 13.3. */
static void perform_checkpoint(struct stream_task *t, const struct event *barrier,
		const struct checkpoint_arrival *arrival)
{
	int64_t id = barrier->checkpoint_id;

	if (t->status != TASK_RUNNING) {
		subtask_checkpoint_coordinator_cancel_downstream(t->checkpoints, id);
		return;
	}
	if (is_synchronous(barrier->options.snapshot) && !enter_sync_savepoint(t, id))
		return;
	if (t->phase >= PHASE_AWAIT_FINAL && t->final_minimum_id == 0)
		t->final_minimum_id = id;
	stream_task_enter_step(t, CHECKPOINT_STEP_SNAPSHOT);
	(void)subtask_checkpoint_coordinator_checkpoint_state(t->checkpoints, barrier, arrival);
	const char *failure = chain_failure(t->config.chain);
	if (failure != NULL)
		stream_task_fail(t, failure);
}

static int64_t wall_ms(const struct stream_task *t)
{
	return t->config.clock->wall_ms(t->config.clock);
}

static struct checkpoint_arrival arrival_of(const struct stream_task *t, int64_t checkpoint_id)
{
	struct alignment_metrics m = barrier_handler_metrics(t->handler, checkpoint_id, t->now_ns);

	return (struct checkpoint_arrival){
		.alignment_duration_ns = m.alignment_duration_ns,
		.start_delay_ns = m.start_delay_ns,
		.bytes_processed = m.bytes_processed,
		.has_timed_out = m.has_timed_out,
	};
}

static void trigger_on_barrier(struct stream_task *t, const struct event *barrier)
{
	struct checkpoint_arrival arrival = arrival_of(t, barrier->checkpoint_id);

	perform_checkpoint(t, barrier, &arrival);
}

static void abort_on_barrier(struct stream_task *t, const struct barrier_decision *d)
{
	input_persister_cancel_up_to(t->persister, d->checkpoint_id);
	if (!fail_if_sync_savepoint(t, d->checkpoint_id))
		subtask_checkpoint_coordinator_abort_on_barrier(
				t->checkpoints, d->checkpoint_id, d->reason);
}

static void block(struct stream_task *t, const struct barrier_decision *d)
{
	struct gate_channel at = gate_channel_of(t, d->channel);

	if (d->is_ahead)
		input_gate_block_behind(at.gate, at.channel, &d->barrier);
	else
		input_gate_block(at.gate, at.channel);
}

static void carry_out(struct stream_task *t, const struct barrier_decision *d)
{
	struct gate_channel at = gate_channel_of(t, d->channel);

	switch (d->kind) {
	case BARRIER_BLOCK:
		block(t, d);
		break;
	case BARRIER_RESUME:
		input_gate_resume(at.gate, at.channel);
		break;
	case BARRIER_CONVERT:
		CHECK(input_gate_convert(at.gate, at.channel, d->checkpoint_id));
		break;
	case BARRIER_PREPARE:
		subtask_checkpoint_coordinator_prepare(t->checkpoints, &d->barrier);
		break;
	case BARRIER_START:
		input_persister_start(t->persister, d->checkpoint_id);
		break;
	case BARRIER_TRIGGER:
		trigger_on_barrier(t, &d->barrier);
		break;
	case BARRIER_STOP:
		input_persister_stop(t->persister, d->checkpoint_id);
		break;
	case BARRIER_ALL_RECEIVED:
		t->input_known_id = d->checkpoint_id;
		break;
	case BARRIER_ABORT:
		abort_on_barrier(t, d);
		break;
	}
}

static void carry_out_all(struct stream_task *t)
{
	struct barrier_decision d;

	while (barrier_handler_next(t->handler, &d))
		carry_out(t, &d);
}

uint32_t stream_task_persist_input(struct stream_task *t)
{
	uint32_t taken = input_persister_take(t->persister);
	int64_t id = t->input_known_id;

	if (id == 0 || input_persister_is_waiting(t->persister, id))
		return taken;
	struct checkpoint_arrival arrival = arrival_of(t, id);
	t->input_known_id = 0;
	subtask_checkpoint_coordinator_finish_input(t->checkpoints, id, &arrival);
	return taken + 1;
}

void stream_task_on_arrival(struct stream_task *t, uint32_t channel, const struct event *barrier)
{
	barrier_handler_on_arrival(t->handler, channel, barrier->checkpoint_id);
	input_persister_arrived(t->persister, channel, barrier);
}

void stream_task_on_announcement(
		struct stream_task *t, uint32_t channel, const struct event *barrier)
{
	barrier_handler_on_announcement(t->handler, channel, barrier, t->now_ns, wall_ms(t));
	carry_out_all(t);
}

void stream_task_on_barrier(struct stream_task *t, uint32_t channel, const struct event *barrier,
		enum barrier_way way)
{
	/* Over a plain ring it has not been told before; otherwise that changes nothing (PS-5). */
	stream_task_on_arrival(t, channel, barrier);
	barrier_handler_on_barrier(t->handler, channel, barrier, way, t->now_ns, wall_ms(t));
	carry_out_all(t);
}

void stream_task_on_cancel(struct stream_task *t, uint32_t channel, const struct event *cancel)
{
	barrier_handler_on_cancel(t->handler, channel, cancel->checkpoint_id);
	carry_out_all(t);
}

void stream_task_on_end_of_partition(struct stream_task *t, uint32_t channel)
{
	barrier_handler_on_end_of_partition(t->handler, channel, t->now_ns, wall_ms(t));
	carry_out_all(t);
}

void stream_task_run_timers(struct stream_task *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	while (stream_task_can_take(t)) {
		uint64_t input_ns = t->handler == NULL ? UINT64_MAX
						       : barrier_handler_deadline_ns(t->handler);
		uint64_t output_ns = subtask_checkpoint_coordinator_deadline_ns(t->checkpoints);

		if (input_ns > now_ns && output_ns > now_ns)
			return;
		if (output_ns < input_ns) {
			subtask_checkpoint_coordinator_on_time(t->checkpoints, now_ns);
			continue;
		}
		barrier_handler_on_time(t->handler, now_ns);
		carry_out_all(t);
		(void)stream_task_hear(t);
	}
}

/* TK-3: no input is open, so the task is where the barrier begins. */
static void trigger_at_source(
		struct stream_task *t, const struct event *barrier, uint64_t heard_ns)
{
	int64_t delay_ms = wall_ms(t) - barrier->timestamp_ms;
	struct checkpoint_arrival arrival = {
		.start_delay_ns = delay_ms > 0 ? delay_ms * 1000000 : 0,
		.heard_ns = heard_ns,
	};

	subtask_checkpoint_coordinator_prepare(t->checkpoints, barrier);
	perform_checkpoint(t, barrier, &arrival);
	/* All its barriers are in: there are none. */
	subtask_checkpoint_coordinator_finish_input(
			t->checkpoints, barrier->checkpoint_id, &arrival);
}

/* TK-4: stands for a barrier on every channel that is still open. */
static void trigger_by_rpc(struct stream_task *t, const struct event *barrier)
{
	/* What its producers have left behind is all here then: they have finished. */
	for (uint32_t i = 0; i < HEAR_ALL_TURNS && stream_task_hear(t) > 0; i++)
		continue;
	for (uint32_t i = 0; i < t->channel_count; i++) {
		if (!barrier_handler_is_channel_open(t->handler, i))
			continue;
		barrier_handler_on_barrier(
				t->handler, i, barrier, BARRIER_BY_RPC, t->now_ns, wall_ms(t));
		carry_out_all(t);
	}
}

static void trigger(struct stream_task *t, const struct checkpoint_request *request)
{
	struct event barrier = {
		.kind = EVENT_BARRIER,
		.checkpoint_id = request->checkpoint_id,
		.timestamp_ms = request->timestamp_ms,
		.options = {
			.aligned_timeout_ms = request->aligned_timeout_ms,
			.snapshot = (uint8_t)request->kind,
			.alignment = (uint8_t)request->alignment,
		},
	};

	if (stream_task_open_channels(t) == 0)
		trigger_at_source(t, &barrier, request->heard_ns);
	else
		trigger_by_rpc(t, &barrier);
}

static void refuse(struct stream_task *t, const struct checkpoint_request *request,
		enum decline_reason reason, const char *text)
{
	t->config.reporter->decline(t->config.reporter, request->checkpoint_id, reason, text);
}

/* Between the last record and end of data operators are in the middle of their last words: those
 * belong to one side of the barrier. */
static void defer(struct stream_task *t, const struct checkpoint_request *request)
{
	if (t->deferred_count == CHECKPOINTS_IN_FLIGHT_MAX)
		refuse(t, request, DECLINE_TASK_NOT_READY, "too many checkpoints wait for its end");
	else
		t->deferred[t->deferred_count++] = *request;
}

static void forget_deferred(struct stream_task *t, int64_t checkpoint_id)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->deferred_count; i++) {
		if (t->deferred[i].checkpoint_id != checkpoint_id)
			t->deferred[kept++] = t->deferred[i];
	}
	t->deferred_count = kept;
}

/* TK-17: it emits nothing more; when end of data is out, the savepoint is taken. */
static void stop_source(struct stream_task *t, const struct checkpoint_request *request)
{
	t->sync_savepoint_id = request->checkpoint_id;
	t->stop_mode = request->kind == SNAPSHOT_SAVEPOINT_SUSPEND ? STOP_NO_DRAIN : STOP_DRAIN;
	t->phase = PHASE_LAST_WATERMARK;
	t->not_before_ns = 0;
	defer(t, request);
}

void stream_task_trigger_checkpoint(
		struct stream_task *t, const struct checkpoint_request *request, uint64_t now_ns)
{
	t->now_ns = now_ns;
	if (t->status != TASK_RUNNING)
		refuse(t, request, DECLINE_TASK_NOT_READY, "the task is not running");
	else if (t->phase >= PHASE_CLOSING)
		refuse(t, request, DECLINE_TASK_CLOSING, "the task is about to end");
	else if (snapshot_kind_is_synchronous(request->kind) && t->config.input_count == 0 &&
			t->phase == PHASE_RUNNING)
		stop_source(t, request);
	else if (t->phase > PHASE_RUNNING && t->phase < PHASE_AWAIT_FINAL)
		defer(t, request);
	else
		trigger(t, request);
}

void stream_task_run_deferred_triggers(struct stream_task *t)
{
	for (uint32_t i = 0; i < t->deferred_count && t->status == TASK_RUNNING; i++)
		trigger(t, &t->deferred[i]);
	t->deferred_count = 0;
}

/* TK-9. */
void stream_task_notify_complete(struct stream_task *t, int64_t checkpoint_id)
{
	if (t->status != TASK_RUNNING)
		return;
	if (t->sync_savepoint_id != 0)
		t->is_final_complete |= checkpoint_id == t->sync_savepoint_id;
	else if (t->final_minimum_id != 0 && checkpoint_id >= t->final_minimum_id)
		t->is_final_complete = true;
	if (checkpoint_id <= t->latest_reported_id)
		return;
	t->latest_reported_id = checkpoint_id;
	subtask_checkpoint_coordinator_notify_complete(t->checkpoints, checkpoint_id);
}

/* TK-10. */
void stream_task_notify_aborted(struct stream_task *t, int64_t checkpoint_id,
		int64_t latest_completed_id)
{
	if (t->status != TASK_RUNNING)
		return;
	if (latest_completed_id > 0)
		stream_task_notify_complete(t, latest_completed_id);
	forget_deferred(t, checkpoint_id);
	if (fail_if_sync_savepoint(t, checkpoint_id))
		return;
	if (t->persister != NULL)
		input_persister_cancel(t->persister, checkpoint_id);
	subtask_checkpoint_coordinator_notify_aborted(t->checkpoints, checkpoint_id);
}

void stream_task_release_state(struct stream_task *t, int64_t checkpoint_id)
{
	subtask_checkpoint_coordinator_release(t->checkpoints, checkpoint_id);
}

uint32_t stream_task_open_channels(const struct stream_task *t)
{
	return t->handler == NULL ? 0 : barrier_handler_open_count(t->handler);
}

struct barrier_handler *stream_task_barrier_handler(struct stream_task *t)
{
	return t->handler;
}

const struct checkpoint_options *stream_task_performed_options(const struct stream_task *t)
{
	return subtask_checkpoint_coordinator_performed(t->checkpoints);
}
