/* job_checkpoints: carries out what the checkpoint rules decide, and tells them what happened. */

#include "control/coordinator/acknowledgement_message.h"
#include "control/coordinator/io_thread.h"
#include "control/coordinator/job_checkpoint_io.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/log.h"

#include "control/proto/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


#define CHECKPOINTING "execution.checkpointing."

/* ---- life ---- */

static int64_t ms_of(const struct config *c, const char *key)
{
	return config_is_set(c, key) ? config_duration_ns(c, key) / 1000000 : 0;
}

static enum retention_policy retention_of(const struct config *c)
{
	const char *key = CHECKPOINTING "externalized-checkpoint-retention";

	if (config_is_choice(c, key, "NO_EXTERNALIZED_CHECKPOINTS"))
		return RETAIN_NEVER;
	return config_is_choice(c, key, "DELETE_ON_CANCELLATION") ? RETAIN_ON_FAILURE
								  : RETAIN_ON_CANCELLATION;
}

static void read_config(const struct job_master *jm, struct checkpoint_coordinator_config *k)
{
	const struct config *c = jm->config;

	*k = checkpoint_coordinator_config_default();
	k->interval_ms = ms_of(c, CHECKPOINTING "interval");
	k->min_pause_ms = ms_of(c, CHECKPOINTING "min-pause");
	k->timeout_ms = ms_of(c, CHECKPOINTING "timeout");
	k->smallest_ms = 1;
	k->concurrent_max = (uint32_t)config_int(c, CHECKPOINTING "max-concurrent-checkpoints");
	k->in_flight_max = CHECKPOINTS_IN_FLIGHT_MAX; /* channels and mailboxes hold no more */
	k->tolerable_failures =
			(int32_t)config_int(c, CHECKPOINTING "tolerable-failed-checkpoints");
	k->retained_count = (uint32_t)config_int(c, CHECKPOINTING "num-retained");
	k->retention = retention_of(c);
	k->savepoint_directory = config_text(c, CHECKPOINTING "savepoint-dir");
	k->history_max = (uint32_t)config_int(c, "web.checkpoints.history");
	k->is_finished_enabled = true;
	k->alignment.is_exactly_once =
			config_is_choice(c, CHECKPOINTING "mode", "EXACTLY_ONCE");
	k->alignment.is_unaligned = config_bool(c, CHECKPOINTING "unaligned.enabled");
	k->alignment.aligned_timeout_ms = ms_of(c, CHECKPOINTING "aligned-checkpoint-timeout");
	k->seed = jm->run;
}

static const char *path_of(const struct job_operator *op)
{
	for (uint32_t i = 0; i < op->table->param_count; i++)
		if (strcmp(op->table->params[i].name, "path") == 0)
			return op->values[i].text;
	return NULL;
}

static int add_files(struct job_master *jm, uint32_t place, uint32_t operator_index)
{
	const struct job_vertex *v = job_vertex_at(jm, place);
	const struct job_operator *op = &v->operators[operator_index];
	struct job_files *more =
			realloc(jm->files, (jm->files_count + 1) * sizeof(*jm->files));

	if (more == NULL)
		return -ENOMEM;
	jm->files = more;
	struct job_files *f = &jm->files[jm->files_count];
	*f = (struct job_files){place, operator_index, 0, op->uid, path_of(op), NULL};
	int rc = split_enumerator_create(&f->enumerator, v->parallelism);
	if (rc != 0)
		return rc;
	f->index = checkpoint_coordinator_add_coordinator(jm->checkpoints, place);
	jm->files_count++;
	return 0;
}

static int add_operator_coordinators(struct job_master *jm, struct config_error *error)
{
	for (uint32_t place = 0; place < jm->spec->vertex_count; place++) {
		const struct job_vertex *v = job_vertex_at(jm, place);

		for (uint32_t i = 0; i < v->operator_count; i++) {
			const struct job_operator *op = &v->operators[i];

			if (op->table->coordinator == NULL)
				continue;
			if (strcmp(op->table->coordinator, "files") != 0 || path_of(op) == NULL) {
				snprintf(error->text, sizeof(error->text),
						"operator %s asks for a coordinator of kind "
						"\"%s\"; there is \"files\", for one with a path",
						op->uid, op->table->coordinator);
				return -EINVAL;
			}
			int rc = add_files(jm, place, i);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

int job_make_checkpoints(struct job_master *jm, struct config_error *error)
{
	struct checkpoint_coordinator_config k;

	read_config(jm, &k);
	const char *fault = checkpoint_coordinator_config_normalise(&k);
	if (fault != NULL) {
		snprintf(error->text, sizeof(error->text), "%s: %s", jm->record->file_name, fault);
		return -EINVAL;
	}
	checkpoint_coordinator_create(&jm->checkpoints, &k, jm->graph);
	int rc = add_operator_coordinators(jm, error);
	if (rc == 0)
		jm->hook = checkpoint_coordinator_add_hook(jm->checkpoints);
	return rc;
}

/* ---- decisions that are carried out at once ---- */

static void flush(struct job_master *jm)
{
	job_flush_places(jm);
}

static void snapshot_coordinator(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct snapshot_state state = {0};
	uint8_t *bytes = NULL;
	int rc = -ENOENT;

	for (uint32_t i = 0; i < jm->files_count; i++)
		if (jm->files[i].index == d->index)
			rc = split_enumerator_snapshot(jm->files[i].enumerator, d->checkpoint_id,
					&bytes, &state.byte_count);
	state.bytes = bytes;
	checkpoint_coordinator_on_coordinator_snapshot(jm->checkpoints, d->index,
			d->checkpoint_id, rc, rc == 0 ? &state : NULL, job_now());
}

static void snapshot_hook(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct snapshot_state state = {.bytes = malloc(jm->hook_bytes + 1),
			.byte_count = jm->hook_bytes};

	CHECK(state.bytes != NULL);
	memcpy(state.bytes, jm->hook_state, jm->hook_bytes);
	checkpoint_coordinator_on_hook_snapshot(
			jm->checkpoints, d->index, d->checkpoint_id, 0, &state, job_now());
}

static void open_gateways(struct job_master *jm, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < jm->files_count; i++)
		split_enumerator_on_ended(jm->files[i].enumerator, checkpoint_id);
}

static Weir__SnapshotKind kind_of(enum checkpoint_kind kind)
{
	switch (kind) {
	case KIND_SAVEPOINT:
		return WEIR__SNAPSHOT_KIND__SAVEPOINT;
	case KIND_SAVEPOINT_SUSPEND:
		return WEIR__SNAPSHOT_KIND__SAVEPOINT_SUSPEND;
	case KIND_SAVEPOINT_TERMINATE:
		return WEIR__SNAPSHOT_KIND__SAVEPOINT_TERMINATE;
	case KIND_FULL_CHECKPOINT:
		return WEIR__SNAPSHOT_KIND__FULL_CHECKPOINT;
	default:
		return WEIR__SNAPSHOT_KIND__CHECKPOINT;
	}
}

static void trigger_tasks(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct trigger_call call = {
			.checkpoint_id = d->checkpoint_id,
			.timestamp_ms = d->timestamp_ms,
			.kind = kind_of(d->options.kind),
			.alignment = (uint32_t)d->options.alignment,
			.aligned_timeout_ms = d->options.aligned_timeout_ms,
			.location = d->path,
	};

	struct task_failure ended = {UINT32_MAX, {{{0}}}, d->checkpoint_id,
			REASON_DECLINED_TASK_CLOSING, "the task has ended"};

	crash_point("before-trigger");
	for (uint32_t i = 0; i < d->subtask_count; i++) {
		struct execution *e = job_find_execution(jm, d->attempts[i]);

		if (e != NULL && !execution_is_terminal(e)) {
			execution_trigger_checkpoint(e, &call);
		} else if (ended.subtask == UINT32_MAX) {
			ended.subtask = d->subtasks[i];
			ended.attempt = d->attempts[i];
		}
	}
	flush(jm);
	log_debug("job_master", "job %s: checkpoint %" PRId64 " is triggered", jm->spec->name,
			d->checkpoint_id);
	crash_point("after-trigger");
	/* It ended since the plan was made, and nobody would answer for it. */
	if (ended.subtask != UINT32_MAX)
		checkpoint_coordinator_on_decline(jm->checkpoints, &ended, job_now());
}

/* TK-13: one that has said its last words before goes now. */
static void note_leaving(struct job_leaving *l, int64_t checkpoint_id)
{
	if (l->final_id != 0 && checkpoint_id >= l->final_id && l->since_ns == 0)
		l->since_ns = clock_monotonic_ns();
}

static void tell_complete(struct job_master *jm, int64_t checkpoint_id, int64_t subsumed_id,
		bool is_last, const uint32_t *subtasks, uint32_t subtask_count)
{
	for (uint32_t i = 0; i < subtask_count; i++) {
		execution_notify_complete(
				&jm->executions[subtasks[i]], checkpoint_id, subsumed_id);
		note_leaving(&jm->leaving[subtasks[i]], checkpoint_id);
	}
	flush(jm);
	open_gateways(jm, checkpoint_id);
	/* All tasks go now; a checkpoint of what is left would be of no use. */
	if (is_last)
		jm->is_released = jm->must_quiet = true;
	log_debug("job_master", "job %s: checkpoint %" PRId64 " is complete", jm->spec->name,
			checkpoint_id);
}

static void notify_complete(struct job_master *jm, const struct checkpoint_decision *d)
{
	crash_point("after-metadata");
	tell_complete(jm, d->checkpoint_id, d->other_id,
			d->is_all_ended || checkpoint_properties_is_synchronous(&d->properties),
			d->subtasks, d->subtask_count);
	crash_point("after-notify");
}

static void notify_aborted(struct job_master *jm, const struct checkpoint_decision *d)
{
	for (uint32_t i = 0; i < d->subtask_count; i++)
		execution_notify_aborted(
				&jm->executions[d->subtasks[i]], d->checkpoint_id, d->other_id);
	flush(jm);
	open_gateways(jm, d->checkpoint_id);
}

static void fail_job(struct job_master *jm, const struct checkpoint_decision *d)
{
	const struct execution *e =
			d->subtask < jm->subtask_count ? &jm->executions[d->subtask] : NULL;
	char text[JOB_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s%s: %s",
			strncmp(d->text == NULL ? "" : d->text, "Stop-with", 9) == 0
					? ""
					: "checkpoints failed too often: ",
			checkpoint_failure_reason_name(d->reason), d->text == NULL ? "" : d->text);
	job_fail(jm, e, text);
}

static void set_next_id(struct job_master *jm, int64_t id)
{
	/* The reservation on disk is behind it then; the next draw writes a new one. */
	if (id > jm->next_id)
		jm->next_id = id;
}

static void carry_out(struct job_master *jm, const struct checkpoint_decision *d)
{
	switch (d->kind) {
	case DECIDE_DRAW_ID:
		job_io_draw_id(jm, d);
		break;
	case DECIDE_SET_NEXT_ID:
		set_next_id(jm, d->checkpoint_id);
		break;
	case DECIDE_REMOVE_ID_COUNTER:
		/* Kept: the same job submitted again must not use its ids once more, for their
		 * checkpoints may be retained and their output published. */
		break;
	case DECIDE_PREPARE_LOCATION:
		job_io_prepare(jm, d);
		break;
	case DECIDE_SNAPSHOT_COORDINATOR:
		snapshot_coordinator(jm, d);
		break;
	case DECIDE_SNAPSHOT_HOOK:
		snapshot_hook(jm, d);
		break;
	case DECIDE_ABORT_TRIGGERING:
		open_gateways(jm, d->checkpoint_id);
		break;
	case DECIDE_TRIGGER_TASKS:
		trigger_tasks(jm, d);
		break;
	case DECIDE_WRITE_METADATA:
		job_io_write_metadata(jm, d);
		break;
	case DECIDE_INDEX_ADD:
		job_io_index_add(jm, d);
		break;
	case DECIDE_INDEX_REMOVE:
		job_io_index_remove(jm, d);
		break;
	case DECIDE_NOTIFY_COMPLETE:
		notify_complete(jm, d);
		break;
	case DECIDE_NOTIFY_ABORTED:
		notify_aborted(jm, d);
		break;
	case DECIDE_DELETE:
		job_io_delete(jm, d);
		break;
	case DECIDE_FAIL_JOB:
		fail_job(jm, d);
		break;
	case DECIDE_REQUEST_DONE:
		job_on_request_done(jm, d);
		break;
	}
}

void job_stop_checkpoints(struct job_master *jm, bool is_wanted)
{
	const struct checkpoint_stats *s = checkpoint_coordinator_stats(jm->checkpoints);
	uint64_t before = checkpoint_stats_counts(s).failed;

	checkpoint_coordinator_stop(jm->checkpoints, job_now());
	if (is_wanted)
		jm->failed_wanted += checkpoint_stats_counts(s).failed - before;
}

static void set_timer(struct job_master *jm)
{
	uint64_t at_ns = checkpoint_coordinator_next_timer(jm->checkpoints);
	uint64_t now_ns = clock_monotonic_ns();

	if (at_ns == UINT64_MAX)
		loop_timer_clear(jm->checkpoint_timer);
	else
		loop_timer_set(jm->checkpoint_timer, at_ns > now_ns ? at_ns - now_ns : 0);
}

void job_pump(struct job_master *jm)
{
	struct checkpoint_decision d;

	if (jm->is_pumping)
		return;
	jm->is_pumping = true;
	while (checkpoint_coordinator_next_decision(jm->checkpoints, &d))
		carry_out(jm, &d);
	if (jm->must_quiet) {
		jm->must_quiet = false;
		job_stop_checkpoints(jm, true);
		while (checkpoint_coordinator_next_decision(jm->checkpoints, &d))
			carry_out(jm, &d);
	}
	jm->is_pumping = false;
	set_timer(jm);
	job_watch(jm);
}

void job_on_checkpoint_timer(void *context)
{
	struct job_master *jm = context;

	io_thread_collect(jm->services.io);
	while (checkpoint_coordinator_on_timer(jm->checkpoints, job_now()))
		job_pump(jm);
	job_pump(jm);
	job_send_files(jm);
}

/* ---- what tasks say ---- */

static struct task_failure failure_of(struct job_master *jm, struct attempt_id attempt,
		int64_t checkpoint_id, enum checkpoint_failure_reason reason)
{
	const struct execution *e = job_find_execution(jm, attempt);

	return (struct task_failure){e == NULL ? UINT32_MAX : e->subtask, attempt, checkpoint_id,
			reason, NULL};
}

/* PL-6: finished with its vertex, or alone; and whether it waits for the completion of this one. */
static void note_finish(struct job_master *jm, uint32_t subtask, struct acknowledgement *a,
		bool has_finished_operators)
{
	uint32_t place = execution_graph_vertex_of(jm->graph, subtask);

	if (a->finish == FINISH_RESTORED_AS_FINISHED && !jm->was_finished[place])
		a->finish = FINISH_SUBTASK_RESTORED_AS_FINISHED;
	if (has_finished_operators && jm->leaving[subtask].final_id == 0)
		jm->leaving[subtask].final_id = a->checkpoint_id;
}

void job_on_acknowledge(struct job_master *jm, const Weir__Acknowledge *m)
{
	struct attempt_id attempt = {message_id(&m->attempt)};
	char text[COMPLETED_TEXT_BYTES];
	struct acknowledgement a;

	if (!job_is_own(jm, attempt))
		return;
	/* Of one that is no more it goes to the rules all the same: they see to its state. */
	const struct execution *e = job_hear(jm, attempt);
	if (acknowledgement_read(&a, m, text) != 0) { /* the state is foreign */
		struct task_failure f = failure_of(
				jm, attempt, m->checkpoint_id, REASON_TASK_CHECKPOINT_FAILURE);

		f.text = text;
		checkpoint_coordinator_on_decline(jm->checkpoints, &f, job_now());
		return;
	}
	if (e != NULL)
		note_finish(jm, e->subtask, &a, m->finished_operators);
	(void)checkpoint_coordinator_on_acknowledge(jm->checkpoints, &a, job_now());
	free(a.kept);
	crash_point("after-ack");
	for (uint32_t i = 0; e != NULL && i < jm->files_count; i++)
		if (jm->files[i].place == execution_graph_vertex_of(jm->graph, e->subtask))
			split_enumerator_on_acknowledge(jm->files[i].enumerator,
					execution_graph_index_of(jm->graph, e->subtask),
					m->checkpoint_id);
}

static enum checkpoint_failure_reason reason_of(Weir__DeclineReason reason)
{
	switch (reason) {
	case WEIR__DECLINE_REASON__DECLINED_TASK_NOT_READY:
		return REASON_DECLINED_TASK_NOT_READY;
	case WEIR__DECLINE_REASON__DECLINED_TASK_CLOSING:
		return REASON_DECLINED_TASK_CLOSING;
	case WEIR__DECLINE_REASON__DECLINED_TASK_FAILURE:
		return REASON_TASK_FAILURE;
	case WEIR__DECLINE_REASON__DECLINED_SUBSUMED:
		return REASON_DECLINED_SUBSUMED;
	case WEIR__DECLINE_REASON__DECLINED_ON_CANCELLATION_BARRIER:
		return REASON_DECLINED_ON_CANCELLATION_BARRIER;
	case WEIR__DECLINE_REASON__DECLINED_INPUT_END_OF_STREAM:
		return REASON_DECLINED_INPUT_END_OF_STREAM;
	case WEIR__DECLINE_REASON__DECLINED_ASYNC_EXCEPTION:
		return REASON_ASYNC_EXCEPTION;
	case WEIR__DECLINE_REASON__DECLINED_IO:
		return REASON_IO_EXCEPTION;
	case WEIR__DECLINE_REASON__DECLINED_NO_SUCH_TASK:
		return REASON_TASK_CHECKPOINT_FAILURE;
	case WEIR__DECLINE_REASON__DECLINED_CHECKPOINT_SUBSUMED:
		return REASON_SUBSUMED;
	case WEIR__DECLINE_REASON__DECLINED_SHARED_STREAM:
		return REASON_CHANNEL_STATE_SHARED_STREAM_EXCEPTION;
	default:
		return REASON_DECLINED;
	}
}

void job_on_decline(struct job_master *jm, const Weir__DeclineCheckpoint *m)
{
	struct attempt_id attempt = {message_id(&m->attempt)};

	if (!job_is_own(jm, attempt))
		return;
	(void)job_hear(jm, attempt);
	struct task_failure f = failure_of(jm, attempt, m->checkpoint_id, reason_of(m->reason));
	f.text = m->text[0] == 0 ? NULL : m->text;
	if (m->reason == WEIR__DECLINE_REASON__DECLINED_NO_SUCH_TASK)
		checkpoint_coordinator_on_task_trigger_failed(jm->checkpoints, &f, job_now());
	else
		checkpoint_coordinator_on_decline(jm->checkpoints, &f, job_now());
}
