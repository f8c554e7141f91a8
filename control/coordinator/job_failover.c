/* job_failover: task states, failures, restarts, and the end of a job (semantics 22). */

#include "control/coordinator/job_checkpoint_io.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CANCEL_TIMEOUT_NS UINT64_C(30000000000)
#define END_RETRY_NS UINT64_C(1000000000)

/* ---- cancelling ---- */

static void cancel(struct job_master *jm, bool is_all)
{
	bool has_asked = false;

	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		struct execution *e = &jm->executions[s];

		if (execution_is_terminal(e) || !(is_all || job_must_restart(jm, s)))
			continue;
		if (e->gateway == NULL) {
			job_set_execution(jm, e, EXECUTION_CANCELED);
			continue;
		}
		execution_cancel(e);
		job_set_execution(jm, e, EXECUTION_CANCELING);
		has_asked = true;
	}
	job_flush_places(jm);
	if (has_asked)
		loop_timer_set(jm->cancel_timer, CANCEL_TIMEOUT_NS);
}

static void cancel_marked(struct job_master *jm)
{
	cancel(jm, false);
}

void job_cancel_tasks(struct job_master *jm)
{
	cancel(jm, true);
}

void job_on_cancel_timer(void *context)
{
	struct job_master *jm = context;

	if (jm->status == JOB_STATUS_RUNNING)
		return;
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		const struct execution *e = &jm->executions[s];

		if (e->state == EXECUTION_CANCELING)
			resource_manager_expel(jm->services.resources, e->member,
					"it did not cancel its tasks within 30 s");
	}
}

/* ---- failures ---- */

static void remember(struct job_master *jm, const struct execution *e, const char *text)
{
	struct job_failure *f = &jm->failures[jm->failure_count++ % JOB_FAILURES_MAX];
	const struct resource_row *row = NULL;

	memset(f, 0, sizeof(*f));
	f->wall_ms = clock_wall_ms();
	snprintf(f->text, sizeof(f->text), "%s", text);
	if (e != NULL) {
		execution_graph_print_subtask(jm->graph, e->subtask, f->task);
		row = resource_manager_row(jm->services.resources, e->member);
	}
	if (row != NULL)
		snprintf(f->task_manager, sizeof(f->task_manager), "%s", row->id);
	log_error("job_master", "job %s failed%s%s: %s", jm->spec->name,
			e == NULL ? "" : ", task ", f->task, text);
}

static void fail_finally(struct job_master *jm, const char *text)
{
	/* An empty text of protobuf-c is not from malloc. */
	if (jm->record->failure != protobuf_c_empty_string)
		free(jm->record->failure);
	jm->record->failure = strdup(text);
	CHECK(jm->record->failure != NULL);
	jm->generation++;
	job_enter(jm, JOB_STATUS_FAILING);
	job_cancel_tasks(jm);
	job_check_ended(jm);
}

void job_fail_for_good(struct job_master *jm, const struct execution *e, const char *text)
{
	remember(jm, e, text);
	if (job_status_may_follow(jm->status, JOB_STATUS_FAILING) && !jm->is_ending)
		fail_finally(jm, text);
}

void job_fail(struct job_master *jm, const struct execution *e, const char *text)
{
	uint64_t delay_ns;

	remember(jm, e, text);
	/* One failure brings others; only the first of them is judged, those of other regions join
	 * its restart. */
	if (jm->status == JOB_STATUS_RESTARTING && job_mark_region(jm, e)) {
		jm->generation++;
		cancel_marked(jm);
		job_check_ended(jm);
	}
	if (!job_status_may_follow(jm->status, JOB_STATUS_RESTARTING) || jm->is_ending)
		return;
	if (!restart_strategy_on_failure(&jm->restarts, prng_next(&jm->prng), &delay_ns,
			    clock_monotonic_ns())) {
		char last[JOB_TEXT_BYTES];

		snprintf(last, sizeof(last), "%s (no more restarts: restart-strategy.type is %s)",
				text, restart_kind_name(jm->restarts.config.kind));
		fail_finally(jm, last);
		return;
	}
	jm->generation++;
	(void)job_mark_region(jm, e);
	jm->record->restarts++;
	job_write_record(jm, NULL);
	job_enter(jm, JOB_STATUS_RESTARTING);
	jm->is_delayed = delay_ns > 0;
	if (jm->is_delayed) {
		log_info("job_master", "job %s: restart %u in %" PRIu64 " ms", jm->spec->name,
				jm->record->restarts, delay_ns / 1000000);
		loop_timer_set(jm->restart_timer, delay_ns);
	}
	cancel_marked(jm);
	job_check_ended(jm);
}

void job_on_restart_timer(void *context)
{
	struct job_master *jm = context;

	jm->is_delayed = false;
	job_check_ended(jm);
}

/* ---- the end ---- */

static void clear_counters(Weir__JobRecord *record)
{
	for (size_t i = 0; i < record->n_counters; i++)
		weir__named_count__free_unpacked(record->counters[i], NULL);
	free(record->counters);
	record->counters = NULL;
	record->n_counters = 0;
}

static void add_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	Weir__JobRecord *record = context;
	size_t count = record->n_counters;
	Weir__NamedCount *row = calloc(1, sizeof(*row));
	Weir__NamedCount **rows =
			realloc(record->counters, (count + 1) * sizeof(*record->counters));

	CHECK(row != NULL && rows != NULL);
	weir__named_count__init(row);
	CHECK(asprintf(&row->name, "%s.%s", uid, name) > 0);
	row->value = value;
	rows[count] = row;
	record->counters = rows;
	record->n_counters = count + 1;
}

/* The newest checkpoint that its retention flags keep when the job ends so; 0: none. */
static int64_t kept_checkpoint(const struct job_master *jm, Weir__JobEnd end)
{
	enum job_end how = end == WEIR__JOB_END__ENDED_CANCELED ? JOB_CANCELED
			 : end == WEIR__JOB_END__ENDED_FAILED   ? JOB_FAILED
								: JOB_FINISHED;
	const struct completed_checkpoint *c;
	int64_t id = 0;

	for (uint32_t i = 0; (c = checkpoint_coordinator_retained(jm->checkpoints, i)) != NULL;
			i++) {
		if (!checkpoint_properties_is_discarded_at(&c->properties, how))
			id = c->id;
	}
	return id;
}

/* What is left of a job when its coordinator is gone too. */
static void fill_record(struct job_master *jm, Weir__JobEnd end)
{
	struct job_counts c = job_master_counts(jm);

	jm->record->end = end;
	jm->record->ended_ms = clock_wall_ms();
	jm->record->records_in = c.records_in;
	jm->record->records_out = c.records_out;
	jm->record->checkpoints_completed = c.checkpoints_completed;
	jm->record->checkpoints_failed = c.checkpoints_failed;
	jm->record->refused = jm->is_restore_refused;
	clear_counters(jm->record);
	job_master_visit_counters(jm, add_counter, jm->record);
	if (!jm->is_restore_refused)
		jm->record->kept_checkpoint = kept_checkpoint(jm, end);
}

/* The end is durable: now it is one, and checkpoints may go (ST-5). */
static void on_end_written(struct job_master *jm, int status)
{
	static const struct {
		enum job_status status;
		enum job_end end;
	} ends[] = {
			[WEIR__JOB_END__ENDED_FINISHED] = {JOB_STATUS_FINISHED, JOB_FINISHED},
			[WEIR__JOB_END__ENDED_CANCELED] = {JOB_STATUS_CANCELED, JOB_CANCELED},
			[WEIR__JOB_END__ENDED_FAILED] = {JOB_STATUS_FAILED, JOB_FAILED},
	};

	job_note_end(jm, status);
	if (status != 0) {
		/* Told; a full disk may have room again. */
		loop_timer_set(jm->restart_timer, END_RETRY_NS);
		jm->is_ending = false;
		return;
	}
	if (jm->record->end == WEIR__JOB_END__ENDED_FINISHED)
		crash_point("after-finished");
	job_enter(jm, ends[jm->record->end].status);
	job_stop_on_end(jm);
	job_io_end(jm);
	/* A refused restore must leave what there is to restore from. */
	if (jm->is_restore_refused)
		checkpoint_coordinator_shutdown(jm->checkpoints, job_now());
	else
		checkpoint_coordinator_end(jm->checkpoints, ends[jm->record->end].end, job_now());
	job_pump(jm);
}

static void end(struct job_master *jm, Weir__JobEnd how)
{
	if (jm->is_ending)
		return;
	jm->is_ending = true;
	if (how == WEIR__JOB_END__ENDED_FINISHED)
		crash_point("before-finished");
	fill_record(jm, how);
	job_write_record(jm, on_end_written);
}

static void give_back(struct job_master *jm)
{
	loop_timer_clear(jm->cancel_timer);
	job_give_back_places(jm);
	jm->locations.waiting = 0;
	job_check_locations(jm);
}

/* Where others run on, the restart is there too: they hold the place. */
static void check_restart(struct job_master *jm)
{
	if (!job_is_ready_to_restart(jm) || jm->is_preparing)
		return;
	loop_timer_clear(jm->cancel_timer);
	if (job_restarts_whole(jm))
		give_back(jm);
	job_deploy(jm);
}

void job_check_ended(struct job_master *jm)
{
	bool is_finished = true;

	if (jm->status == JOB_STATUS_RESTARTING) {
		check_restart(jm);
		return;
	}

	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		if (!execution_is_terminal(&jm->executions[s]))
			return;
		is_finished = is_finished && jm->executions[s].state == EXECUTION_FINISHED;
	}
	give_back(jm);
	switch (jm->status) {
	case JOB_STATUS_RUNNING:
		if (is_finished)
			end(jm, WEIR__JOB_END__ENDED_FINISHED);
		break;
	case JOB_STATUS_FAILING:
		end(jm, WEIR__JOB_END__ENDED_FAILED);
		break;
	case JOB_STATUS_CANCELLING:
		end(jm, WEIR__JOB_END__ENDED_CANCELED);
		break;
	default:
		break;
	}
}

/* ---- what tasks and TaskManagers say ---- */

static enum execution_state state_of(Weir__AttemptState state)
{
	switch (state) {
	case WEIR__ATTEMPT_STATE__TASK_INITIALIZING:
		return EXECUTION_INITIALIZING;
	case WEIR__ATTEMPT_STATE__TASK_RUNNING:
		return EXECUTION_RUNNING;
	case WEIR__ATTEMPT_STATE__TASK_CANCELING:
		return EXECUTION_CANCELING;
	case WEIR__ATTEMPT_STATE__TASK_FINISHED:
		return EXECUTION_FINISHED;
	case WEIR__ATTEMPT_STATE__TASK_CANCELED:
		return EXECUTION_CANCELED;
	case WEIR__ATTEMPT_STATE__TASK_FAILED:
		return EXECUTION_FAILED;
	default:
		return EXECUTION_DEPLOYING;
	}
}

static bool is_asked_to_end(const struct job_master *jm, const struct execution *e)
{
	return jm->status == JOB_STATUS_RESTARTING ? job_must_restart(jm, e->subtask)
						   : jm->status != JOB_STATUS_RUNNING;
}

void job_on_status(struct job_master *jm, struct execution *e, const Weir__TaskStatus *m)
{
	enum execution_state next = state_of(m->state);
	enum execution_state before = e->state;

	if (m->numbers != NULL)
		job_take_numbers(jm, m->numbers);
	if (next == EXECUTION_FAILED)
		snprintf(e->failure, sizeof(e->failure), "%s",
				m->error[0] == 0 ? "the task failed" : m->error);
	job_set_execution(jm, e, next);
	if (e->state == before)
		return;
	if (e->state == EXECUTION_RUNNING)
		job_check_running(jm);
	else if (e->state == EXECUTION_FINISHED)
		job_hasten_final(jm);
	if (e->state == EXECUTION_FAILED && m->is_final)
		job_fail_for_good(jm, e, e->failure);
	else if (e->state == EXECUTION_FAILED)
		job_fail(jm, e, e->failure);
	/* Nobody asked for it: a TaskManager that is about to go, or lost us for a moment. */
	else if (e->state == EXECUTION_CANCELED && !is_asked_to_end(jm, e))
		job_fail(jm, e, "the task was cancelled by its TaskManager");
	if (execution_is_terminal(e))
		job_check_ended(jm);
}

/* The first of them, or NULL. */
static const struct execution *fail_lost(
		struct job_master *jm, uint32_t member, const char *text)
{
	const struct execution *first = NULL;

	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		struct execution *e = &jm->executions[s];

		if (execution_is_terminal(e) || e->gateway == NULL || e->member != member)
			continue;
		snprintf(e->failure, sizeof(e->failure), "%.1000s", text);
		job_set_execution(jm, e,
				e->state == EXECUTION_CANCELING ? EXECUTION_CANCELED
								: EXECUTION_FAILED);
		if (e->state != EXECUTION_FAILED)
			continue;
		(void)job_mark_region(jm, e);
		first = first == NULL ? e : first;
	}
	return first;
}

void job_master_on_lost(struct job_master *jm, uint32_t member, const char *reason)
{
	char text[WATCHDOG_TEXT_BYTES];

	uint32_t place = job_place_of(jm, member);

	if (place == PLACE_NONE)
		return;
	job_describe_loss(jm, member, reason, text);
	/* What is being prepared was not sent there yet: another will do. */
	if (jm->is_preparing)
		jm->generation++;
	jm->places.members[place] = MEMBER_NONE;
	jm->locations.waiting &= ~(1u << place);
	for (uint32_t i = 0; i < jm->regions.count; i++)
		jm->regions.at[i].building &= ~(1u << place);
	const struct execution *first = fail_lost(jm, member, text);
	if (first != NULL)
		job_fail(jm, first, text);
	job_check_ended(jm);
	job_check_locations(jm);
}

/* ---- numbers ---- */

/* Where a counter of a subtask stands, or NULL. */
static uint64_t *counter_of(
		struct job_master *jm, uint32_t subtask, const char *uid, const char *name)
{
	const struct job_vertex *v =
			job_vertex_at(jm, execution_graph_vertex_of(jm->graph, subtask));
	uint64_t *at = &jm->counters[jm->counters_at[subtask]];

	for (uint32_t i = 0; i < v->operator_count; i++) {
		const struct weir_declaration *d = &v->operators[i].declared;

		if (strcmp(v->operators[i].uid, uid) != 0) {
			at += 2 + d->counter_count;
			continue;
		}
		if (strcmp(name, "records_in") == 0)
			return at;
		if (strcmp(name, "records_out") == 0)
			return at + 1;
		for (uint32_t k = 0; k < d->counter_count; k++)
			if (strcmp(d->counters[k], name) == 0)
				return at + 2 + k;
		return NULL;
	}
	return NULL;
}

static void take_progress(struct job_master *jm, uint32_t subtask, const Weir__TaskNumbers *n)
{
	bool is_known = n->checkpoint_step <= SUBTASK_WRITING;

	checkpoint_stats_on_progress(checkpoint_coordinator_stats(jm->checkpoints), subtask,
			&(struct subtask_progress){
					.step = is_known ? (enum subtask_step)n->checkpoint_step
							 : SUBTASK_NOTHING,
					.step_ms = (int64_t)(n->checkpoint_step_ns / 1000000),
					.stuck_ms = (int64_t)(n->stuck_ns / 1000000),
					.heard_ms = clock_wall_ms()});
}

void job_take_numbers(struct job_master *jm, const Weir__TaskNumbers *n)
{
	struct execution *e =
			job_find_execution(jm, (struct attempt_id){message_id(&n->attempt)});

	if (e == NULL)
		return;
	execution_take_numbers(e, &(struct execution_numbers){n->records_in, n->records_out,
			n->bytes_in, n->bytes_out, n->buffers_in, n->buffers_out, n->busy_ns,
			n->idle_ns, n->backpressured_ns, n->watermark, n->read_at_ns});
	take_progress(jm, e->subtask, n);
	for (size_t i = 0; i < n->n_counters; i++) {
		const Weir__OperatorCounter *c = n->counters[i];
		uint64_t *at = counter_of(jm, e->subtask, c->uid, c->name);

		if (at != NULL)
			*at = c->value;
	}
}
