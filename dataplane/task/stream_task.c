#include "dataplane/task/stream_task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/task/stream_task_internal.h"

/* ---- answers for checkpoints ---- */

static struct stream_task *task_of(struct checkpoint_responder *r)
{
	return (struct stream_task *)((char *)r - offsetof(struct stream_task, responder));
}

static void answer_acknowledge(struct checkpoint_responder *r, int64_t checkpoint_id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight)
{
	struct stream_task *t = task_of(r);

	t->config.reporter->acknowledge(t->config.reporter, checkpoint_id, metrics, state,
			in_flight,
			t->stop_mode == STOP_DRAIN && t->final_minimum_id != 0 &&
					checkpoint_id >= t->final_minimum_id);
}

static void answer_decline(struct checkpoint_responder *r, int64_t checkpoint_id,
		enum decline_reason reason, const char *text)
{
	struct stream_task *t = task_of(r);

	/* SC-3, TK-14: what goes wrong while the task shuts down is no failure. */
	if (t->status == TASK_RUNNING && t->phase < PHASE_CLOSING)
		t->config.reporter->decline(t->config.reporter, checkpoint_id, reason, text);
}

static void answer_collect(struct checkpoint_responder *r)
{
	struct stream_task *t = task_of(r);

	if (t->config.reporter->collect != NULL)
		t->config.reporter->collect(t->config.reporter);
}

/* ---- life ---- */

static int create_handler(struct stream_task *t)
{
	for (uint32_t i = 0; i < t->config.input_count; i++) {
		t->first_channel[i] = t->channel_count;
		t->channel_count += input_gate_channel_count(t->config.inputs[i]);
	}
	if (t->channel_count == 0)
		return 0;
	struct barrier_handler_config config = {
		.channel_count = t->channel_count,
		.has_finished_tasks = t->config.has_finished_tasks,
		.is_at_least_once = t->config.is_at_least_once,
	};
	struct input_persister_config kept = {
		.gates = t->config.inputs,
		.gate_count = t->config.input_count,
		.writer = t->config.channel_state,
	};
	int status = input_persister_create(&t->persister, &kept);
	return status != 0 ? status : barrier_handler_create(&t->handler, &config);
}

static int create_checkpoints(struct stream_task *t)
{
	struct subtask_checkpoint_coordinator_config config = {
		.chain = t->config.chain,
		.outputs = t->config.outputs,
		.output_count = t->config.output_count,
		.writers = t->config.writers,
		.writer_count = t->config.writer_count,
		.files = t->config.files,
		.channel_state = t->config.channel_state,
		.responder = &t->responder,
		.clock = t->config.clock,
		.checkpoint_dir = t->config.checkpoint_dir,
		.locations = t->config.locations,
		.max_concurrent = t->config.max_concurrent,
	};

	return subtask_checkpoint_coordinator_create(&t->checkpoints, &config);
}

int stream_task_create(struct stream_task **out, const struct stream_task_config *config)
{
	CHECK(config->input_count <= GATES_PER_TASK_MAX);
	CHECK(config->output_count <= OUTPUTS_PER_TASK_MAX);
	struct stream_task *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->config = *config;
	t->responder.acknowledge = answer_acknowledge;
	t->responder.decline = answer_decline;
	t->responder.collect = answer_collect;
	t->status = TASK_INITIALIZING;
	t->latest_reported_id = config->restored_checkpoint_id;
	int status = create_handler(t);
	if (status == 0)
		status = create_checkpoints(t);
	if (status != 0) {
		stream_task_destroy(t);
		return status;
	}
	*out = t;
	return 0;
}

void stream_task_destroy(struct stream_task *t)
{
	if (t == NULL)
		return;
	barrier_handler_destroy(t->handler);
	input_persister_destroy(t->persister);
	subtask_checkpoint_coordinator_destroy(t->checkpoints);
	free(t);
}

void stream_task_give_journal(struct stream_task *t, struct journal *journal)
{
	CHECK(t->phase == PHASE_CREATED);
	t->journal = journal;
}

static void enter(struct stream_task *t, enum task_status status, const char *text)
{
	__atomic_store_n(&t->status, status, __ATOMIC_RELAXED);
	t->config.reporter->status(t->config.reporter, status, text);
}

void stream_task_start(struct stream_task *t)
{
	CHECK(t->phase == PHASE_CREATED);
	t->phase = t->config.is_leaving ? PHASE_CLOSING : PHASE_RUNNING;
	enter(t, TASK_RUNNING, "");
}

static void stop_storing(struct stream_task *t)
{
	if (t->config.files != NULL)
		operator_files_stop(t->config.files);
	if (t->journal != NULL)
		journal_stop(t->journal);
}

/* What cannot be taken back is awaited in PHASE_CANCELING. */
static void wind_down(struct stream_task *t)
{
	t->phase = PHASE_CANCELING;
	if (t->handler != NULL)
		barrier_handler_close(t->handler);
	subtask_checkpoint_coordinator_close(t->checkpoints);
	stop_storing(t);
}

void stream_task_fail(struct stream_task *t, const char *text)
{
	if (t->phase >= PHASE_CANCELING)
		return;
	enter(t, TASK_FAILED, text);
	wind_down(t);
}

void stream_task_cancel(struct stream_task *t)
{
	if (t->phase >= PHASE_CANCELING)
		return;
	__atomic_store_n(&t->status, TASK_CANCELING, __ATOMIC_RELAXED);
	wind_down(t);
}

void stream_task_operator_event(struct stream_task *t, uint32_t operator_index, const void *data,
		uint32_t bytes)
{
	if (t->phase < PHASE_CANCELING)
		chain_event(t->config.chain, operator_index, data, bytes);
}

/* ---- phases behind the end of input ---- */

static bool broadcast(struct stream_task *t, const struct event *e)
{
	for (uint32_t i = 0; i < t->config.output_count; i++) {
		/* The room for this is kept free in every channel. */
		if (output_gate_broadcast(t->config.outputs[i], e) != 0)
			return false;
	}
	return true;
}

static bool are_outputs_idle(const struct stream_task *t)
{
	for (uint32_t i = 0; i < t->config.output_count; i++) {
		if (!output_gate_is_idle(t->config.outputs[i]))
			return false;
	}
	return true;
}

static bool is_all_processed(const struct stream_task *t)
{
	for (uint32_t i = 0; i < t->config.output_count; i++) {
		if (!output_gate_is_all_processed(t->config.outputs[i]))
			return false;
	}
	return true;
}

static bool has_final_checkpoint(const struct stream_task *t)
{
	return t->config.checkpointing && t->config.has_finished_tasks;
}

/* TK-13, TK-15. */
static bool is_final(const struct stream_task *t)
{
	if (stream_task_open_channels(t) > 0)
		return false;
	if (t->sync_savepoint_id != 0 && !t->is_final_complete)
		return false;
	return !has_final_checkpoint(t) || (t->is_final_complete && is_all_processed(t));
}

static bool is_work_over(const struct stream_task *t)
{
	return subtask_checkpoint_coordinator_is_idle(t->checkpoints) &&
			!chain_is_busy(t->config.chain) &&
			(t->config.files == NULL ||
					!operator_files_is_publishing(t->config.files)) &&
			are_outputs_idle(t);
}

static bool say_end_of_data(struct stream_task *t)
{
	struct event e = {.kind = EVENT_END_OF_DATA, .stop_mode = (uint8_t)t->stop_mode};

	if (!broadcast(t, &e))
		return false;
	t->config.reporter->end_of_data(t->config.reporter);
	return true;
}

static bool say_end_of_partition(struct stream_task *t)
{
	struct event e = {.kind = EVENT_END_OF_PARTITION};

	return broadcast(t, &e);
}

/* One step towards the end; true when the phase is over. */
static bool is_phase_over(struct stream_task *t)
{
	switch (t->phase) {
	case PHASE_LAST_WATERMARK:
		if (t->stop_mode == STOP_DRAIN)
			chain_watermark(t->config.chain, WEIR_WATERMARK_END);
		return chain_advance(t->config.chain);
	case PHASE_FINISH:
		return t->stop_mode == STOP_NO_DRAIN || chain_finish(t->config.chain);
	case PHASE_END_OF_DATA:
		return say_end_of_data(t);
	case PHASE_AWAIT_FINAL:
		return is_final(t);
	case PHASE_CLOSING:
		return is_work_over(t) && (t->config.is_leaving || say_end_of_partition(t));
	case PHASE_END_OF_PARTITION:
		return are_outputs_idle(t);
	default:
		return false;
	}
}

static bool is_wound_down(const struct stream_task *t)
{
	return subtask_checkpoint_coordinator_is_idle(t->checkpoints) &&
			(t->config.files == NULL || operator_files_is_idle(t->config.files)) &&
			(t->journal == NULL || journal_is_idle(t->journal));
}

static uint32_t end_canceling(struct stream_task *t)
{
	if (!is_wound_down(t))
		return 0;
	t->phase = PHASE_ENDED;
	if (t->status == TASK_CANCELING)
		enter(t, TASK_CANCELED, "");
	return 1;
}

static uint32_t end_finished(struct stream_task *t)
{
	stop_storing(t);
	subtask_checkpoint_coordinator_close(t->checkpoints);
	if (!is_wound_down(t))
		return 0;
	t->phase = PHASE_ENDED;
	enter(t, TASK_FINISHED, "");
	return 1;
}

static uint32_t advance_phase(struct stream_task *t)
{
	if (t->phase == PHASE_CANCELING)
		return end_canceling(t);
	if (t->phase <= PHASE_RUNNING || t->phase == PHASE_ENDED || !is_phase_over(t))
		return 0;
	if (t->phase == PHASE_END_OF_PARTITION)
		return end_finished(t);
	t->phase++;
	if (t->phase == PHASE_AWAIT_FINAL)
		stream_task_run_deferred_triggers(t);
	/* TK-14: only then are running asynchronous parts awaited. */
	if (t->phase == PHASE_CLOSING && !has_final_checkpoint(t))
		subtask_checkpoint_coordinator_stop(t->checkpoints);
	return 1;
}

/* ---- the turn ---- */

static uint32_t serve_files(struct stream_task *t)
{
	struct operator_files_done done;
	const char *text = "";

	if (t->config.files == NULL)
		return 0;
	uint32_t work = operator_files_step(t->config.files, t->now_ns);
	while (operator_files_next_done(t->config.files, &done)) {
		chain_file_done(t->config.chain, done.operator_index, done.tag, done.status);
		work++;
	}
	if (operator_files_failure(t->config.files, &text) != 0)
		stream_task_fail(t, text);
	return work;
}

static uint32_t serve_journal(struct stream_task *t)
{
	const char *text = "";

	if (t->journal == NULL)
		return 0;
	uint32_t work = journal_step(t->journal, t->now_ns);
	if (journal_failure(t->journal, &text) != 0)
		stream_task_fail(t, text);
	return work;
}

static uint32_t serve_outputs(struct stream_task *t)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < t->config.output_count; i++) {
		work += output_gate_flush_aged(t->config.outputs[i], t->now_ns);
		work += output_gate_poll(t->config.outputs[i], t->now_ns);
	}
	return work;
}

static bool is_backpressured(struct stream_task *t)
{
	return t->phase == PHASE_RUNNING && chain_room(t->config.chain) == 0;
}

/* The time since the last turn counts as what this turn was. */
static void account(struct stream_task *t, uint32_t work)
{
	uint64_t passed_ns = t->turn_ns == 0 ? 0 : t->now_ns - t->turn_ns;

	t->turn_ns = t->now_ns;
	if (work > 0)
		t->times.busy_ns += passed_ns;
	else if (is_backpressured(t))
		t->times.backpressured_ns += passed_ns;
	else
		t->times.idle_ns += passed_ns;
}

static void begin_turn(struct stream_task *t, uint64_t now_ns)
{
	t->now_ns = now_ns;
	chain_set_now(t->config.chain, now_ns);
}

/* Ahead of what holds the task up: room, time, the line. */
static uint32_t hear(struct stream_task *t)
{
	return t->config.input_count > 0 ? stream_task_hear(t) : 0;
}

/* An operator that blocks in its call holds up its worker, and with it each step of the file that
 * takes what was in flight, its own or a neighbour's.  So the next call waits a while for them. */
static bool rests(const struct stream_task *t)
{
	return t->rests_until_ns > t->now_ns && t->config.channel_state != NULL &&
			channel_state_writer_is_writing(t->config.channel_state);
}

static uint32_t take(struct stream_task *t)
{
	if (t->not_before_ns > t->now_ns || rests(t))
		return 0;
	t->not_before_ns = 0;
	return t->config.input_count > 0 ? stream_task_take_input(t) : stream_task_poll_source(t);
}

/* Of two checkpoints the one that is further counts: it came first. */
static enum checkpoint_step step_of(const struct stream_task *t)
{
	if (!subtask_checkpoint_coordinator_is_idle(t->checkpoints))
		return CHECKPOINT_STEP_WRITING;
	if (t->handler != NULL && barrier_handler_pending_count(t->handler) > 0)
		return CHECKPOINT_STEP_ALIGNING;
	return CHECKPOINT_STEP_NONE;
}

bool stream_task_owes_answer(const struct stream_task *t)
{
	if (t->handler != NULL && barrier_handler_pending_count(t->handler) > 0)
		return true;
	return subtask_checkpoint_coordinator_owes_answer(t->checkpoints);
}

/* What every turn does behind the taking of input. */
static uint32_t end_turn(struct stream_task *t, uint32_t work)
{
	work += advance_phase(t);
	work += serve_outputs(t);
	work += subtask_checkpoint_coordinator_step(t->checkpoints, t->now_ns);
	const char *failure = chain_failure(t->config.chain);
	if (failure != NULL)
		stream_task_fail(t, failure);
	account(t, work);
	stream_task_enter_step(t, step_of(t));
	return work;
}

uint32_t stream_task_turn(struct stream_task *t, uint64_t now_ns)
{
	begin_turn(t, now_ns);
	uint32_t work = serve_files(t) + serve_journal(t);
	work += hear(t);
	stream_task_run_timers(t, now_ns);
	work += stream_task_take_ends(t);
	work += take(t);
	return end_turn(t, work);
}

uint32_t stream_task_serve(struct stream_task *t, uint64_t now_ns)
{
	begin_turn(t, now_ns);
	uint32_t work = serve_files(t) + serve_journal(t);
	work += hear(t);
	if (t->config.input_count == 0)
		work += take(t);
	return end_turn(t, work);
}

/* ---- questions ---- */

bool stream_task_is_ended(const struct stream_task *t)
{
	return t->phase == PHASE_ENDED;
}

enum task_status stream_task_status(const struct stream_task *t)
{
	return __atomic_load_n(&t->status, __ATOMIC_RELAXED);
}

bool stream_task_is_failure_final(const struct stream_task *t)
{
	return chain_is_failure_final(t->config.chain);
}

uint64_t stream_task_not_before(const struct stream_task *t)
{
	return t->not_before_ns;
}

bool stream_task_holds_input(const struct stream_task *t)
{
	return t->config.input_count > 0 && t->not_before_ns > t->now_ns;
}

void stream_task_enter_step(struct stream_task *t, enum checkpoint_step step)
{
	if (t->progress.step == step)
		return;
	__atomic_store_n(&t->progress.since_ns, t->now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&t->progress.step, step, __ATOMIC_RELAXED);
}

struct stream_task_progress stream_task_progress(const struct stream_task *t)
{
	return (struct stream_task_progress){
		.step = __atomic_load_n(&t->progress.step, __ATOMIC_RELAXED),
		.since_ns = __atomic_load_n(&t->progress.since_ns, __ATOMIC_RELAXED),
	};
}

struct stream_task_times stream_task_times(const struct stream_task *t)
{
	return (struct stream_task_times){
		.busy_ns = __atomic_load_n(&t->times.busy_ns, __ATOMIC_RELAXED),
		.idle_ns = __atomic_load_n(&t->times.idle_ns, __ATOMIC_RELAXED),
		.backpressured_ns = __atomic_load_n(&t->times.backpressured_ns, __ATOMIC_RELAXED),
	};
}
