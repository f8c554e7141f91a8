#include "control/coordinator/job_master.h"

#include "control/coordinator/ha_store.h"
#include "control/coordinator/io_thread.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/job_savepoints.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/restart_config.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct moment job_now(void)
{
	return (struct moment){clock_monotonic_ns(), clock_wall_ms()};
}

/* ---- create ---- */

Weir__JobRecord *job_copy_record(const Weir__JobRecord *from)
{
	size_t bytes = weir__job_record__get_packed_size(from);
	uint8_t *packed = malloc(bytes + 1);
	Weir__JobRecord *copy = NULL;

	if (packed != NULL) {
		weir__job_record__pack(from, packed);
		copy = weir__job_record__unpack(NULL, bytes, packed);
	}
	free(packed);
	return copy;
}

bool job_record_is_submission(const Weir__JobRecord *record, struct id128 id)
{
	return record->submission.len == sizeof(id.bytes) &&
			memcmp(record->submission.data, id.bytes, sizeof(id.bytes)) == 0;
}

static int read_spec(struct job_master *jm, struct config_error *error)
{
	const Weir__JobRecord *r = jm->record;
	struct job_source source = {
			.name = r->file_name,
			.text = r->file_text,
			.text_bytes = strlen(r->file_text),
			.plugin_dir = r->plugin_dir,
			.sets = (const char *const *)r->overrides,
			.set_count = (uint32_t)r->n_overrides,
	};
	int rc = config_clone(jm->services.config, &jm->config);

	for (size_t i = 0; i < r->n_settings && rc == 0; i++)
		rc = config_set_job_option(jm->config, r->settings[i], error);
	if (rc == 0)
		rc = job_spec_parse(&jm->spec, &source, jm->config, error);
	return rc != 0 ? rc : config_check(jm->config, error);
}

/* Vertices in topological order, edges between their places. */
static int make_graph(struct job_master *jm)
{
	const struct job_spec *spec = jm->spec;
	struct execution_vertex vertices[VERTICES_COUNT_MAX] = {0};
	struct execution_edge edges[EDGES_COUNT_MAX];
	uint32_t place_of[VERTICES_COUNT_MAX];

	for (uint32_t place = 0; place < spec->vertex_count; place++) {
		const struct job_vertex *v = job_vertex_at(jm, place);

		vertices[place] = (struct execution_vertex){v->uid, v->parallelism, false};
		place_of[spec->order[place]] = place;
	}
	for (uint32_t i = 0; i < spec->edge_count; i++)
		edges[i] = (struct execution_edge){place_of[spec->edges[i].from],
				place_of[spec->edges[i].to],
				spec->edges[i].partition == JOB_FORWARD ? EDGE_POINTWISE
									: EDGE_ALL_TO_ALL};
	return execution_graph_create(
			&jm->graph, vertices, spec->vertex_count, edges, spec->edge_count);
}

static uint32_t counters_of_vertex(const struct job_vertex *v)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < v->operator_count; i++)
		count += 2 + v->operators[i].declared.counter_count;
	return count;
}

static int make_executions(struct job_master *jm)
{
	uint32_t counters = 0, n = execution_graph_subtask_count(jm->graph);

	jm->subtask_count = n;
	jm->executions = calloc(n, sizeof(*jm->executions));
	jm->counters_at = calloc(n, sizeof(*jm->counters_at));
	jm->leaving = calloc(n, sizeof(*jm->leaving));
	if (jm->executions == NULL || jm->counters_at == NULL || jm->leaving == NULL)
		return -ENOMEM;
	for (uint32_t s = 0; s < n; s++) {
		jm->counters_at[s] = counters;
		counters += counters_of_vertex(
				job_vertex_at(jm, execution_graph_vertex_of(jm->graph, s)));
		execution_reset(&jm->executions[s], s, 0, jm->run, clock_wall_ms());
	}
	jm->counters = calloc(counters + 1, sizeof(*jm->counters));
	return jm->counters == NULL ? -ENOMEM : 0;
}

static int make_timers(struct job_master *jm)
{
	struct loop *l = jm->services.loop;
	int rc = loop_timer_create(&jm->restart_timer, l, job_on_restart_timer, jm);

	if (rc == 0)
		rc = loop_timer_create(&jm->cancel_timer, l, job_on_cancel_timer, jm);
	if (rc == 0)
		rc = loop_timer_create(&jm->checkpoint_timer, l, job_on_checkpoint_timer, jm);
	if (rc == 0)
		rc = loop_timer_create(&jm->stop_timer, l, job_on_stop_timer, jm);
	if (rc == 0)
		rc = loop_timer_create(&jm->final_timer, l, job_on_final_timer, jm);
	return rc != 0 ? rc : job_make_watchdog(jm);
}

/* For people who look at the record. */
static int keep_name(struct job_master *jm)
{
	if (jm->record->name != protobuf_c_empty_string)
		free(jm->record->name);
	jm->record->name = strdup(jm->spec->name);
	return jm->record->name == NULL ? -ENOMEM : 0;
}

static int create(struct job_master **out, const struct job_services *services,
		const Weir__JobRecord *record, bool is_recovery, struct config_error *error)
{
	struct job_master *jm = calloc(1, sizeof(*jm));
	struct restart_config restarts;

	snprintf(error->text, sizeof(error->text), "out of memory");
	if (jm == NULL)
		return -ENOMEM;
	jm->services = *services;
	jm->is_recovery = is_recovery;
	jm->run = prng_seed_from_os();
	prng_seed(&jm->prng, jm->run);
	jm->record = job_copy_record(record);
	int rc = jm->record == NULL ? -ENOMEM : read_spec(jm, error);
	if (rc == 0)
		rc = keep_name(jm);
	if (rc == 0) {
		id128_print(jm->spec->id.id, jm->id_text);
		rc = checkpoint_storage_job_path(
				config_text(jm->config, "execution.checkpointing.dir"),
				jm->spec->id, jm->job_path);
		if (rc == 0)
			rc = make_graph(jm);
		if (rc == 0)
			rc = make_executions(jm);
		if (rc == 0)
			rc = make_timers(jm);
		if (rc == 0)
			rc = job_make_checkpoints(jm, error);
		if (rc == 0)
			job_init_places(jm);
		if (rc == 0)
			rc = job_make_regions(jm);
		if (rc == 0)
			rc = job_make_hook_state(jm, error);
	}
	if (rc != 0) {
		job_master_destroy(jm);
		return rc;
	}
	restart_config_read(&restarts, jm->config);
	restart_strategy_init(&jm->restarts, &restarts);
	jm->entered_ms[JOB_STATUS_INITIALIZING] = clock_wall_ms();
	*out = jm;
	return 0;
}

int job_master_create(struct job_master **out, const struct job_services *services,
		const struct job_submission *submission, struct config_error *error)
{
	Weir__JobRecord record = WEIR__JOB_RECORD__INIT;

	record.file_name = (char *)(uintptr_t)submission->file_name;
	record.file_text = (char *)(uintptr_t)submission->file_text;
	record.plugin_dir = (char *)(uintptr_t)submission->plugin_dir;
	record.n_overrides = submission->override_count;
	record.overrides = (char **)(uintptr_t)submission->overrides;
	record.n_settings = submission->setting_count;
	record.settings = (char **)(uintptr_t)submission->settings;
	if (!id128_is_equal(submission->id, (struct id128){{0}}))
		record.submission = message_id_bytes(&submission->id);
	record.restore = (char *)(uintptr_t)submission->restore;
	record.allow_rewind = submission->allow_rewind;
	record.submitted_ms = clock_wall_ms();
	return create(out, services, &record, false, error);
}

int job_master_recover(struct job_master **out, const struct job_services *services,
		const Weir__JobRecord *record, struct config_error *error)
{
	int rc = create(out, services, record, record->begun, error);

	if (rc == 0) {
		(*out)->record->begun = true;
		job_stop_recover(*out);
		job_recover_savepoints(*out);
	}
	return rc;
}

/* The newest checkpoint that an earlier life of the job left behind: as its end says, or as its
 * list says when it had none. */
static int64_t kept_by_earlier_lives(const struct job_master *jm)
{
	Weir__CompletedRecord **completed;
	Weir__JobRecord *record;
	char text[HA_TEXT_BYTES];
	uint32_t count;
	int64_t id = 0;

	if (ha_store_read_job(jm->services.ha, jm->spec->id, &record, text) == 0) {
		id = record->kept_checkpoint;
		weir__job_record__free_unpacked(record, NULL);
	}
	if (ha_store_read_completed(jm->services.ha, jm->spec->id, &completed, &count, text) == 0) {
		if (count > 0 && completed[count - 1]->id > id)
			id = completed[count - 1]->id;
		ha_store_free_completed(completed, count);
	}
	return id;
}

int job_master_keep(struct job_master *jm)
{
	jm->record->kept_checkpoint = kept_by_earlier_lives(jm);
	crash_point("before-kept");
	int rc = ha_store_write_job(jm->services.ha, jm->spec->id, jm->record);
	crash_point("after-kept");

	/* The next writing of it follows the clearing of the list. */
	jm->record->begun = true;
	return rc;
}

void job_master_destroy(struct job_master *jm)
{
	if (jm == NULL)
		return;
	checkpoint_coordinator_destroy(jm->checkpoints);
	job_destroy_regions(jm);
	for (uint32_t i = 0; i < jm->files_count; i++)
		split_enumerator_destroy(jm->files[i].enumerator);
	free(jm->files);
	free(jm->leaving);
	free(jm->hook_state);
	if (jm->hook_job != NULL)
		weir__job_hook_state__free_unpacked(jm->hook_job, NULL);
	loop_timer_destroy(jm->restart_timer);
	loop_timer_destroy(jm->cancel_timer);
	loop_timer_destroy(jm->checkpoint_timer);
	loop_timer_destroy(jm->stop_timer);
	loop_timer_destroy(jm->final_timer);
	loop_timer_destroy(jm->watch.timer);
	execution_graph_destroy(jm->graph);
	free(jm->executions);
	free(jm->counters);
	free(jm->counters_at);
	job_spec_destroy(jm->spec);
	config_destroy(jm->config);
	if (jm->record != NULL)
		weir__job_record__free_unpacked(jm->record, NULL);
	free(jm);
}

void job_master_start(struct job_master *jm)
{
	CHECK(jm->status == JOB_STATUS_INITIALIZING);
	job_begin(jm);
}

/* ---- states ---- */

const struct job_vertex *job_vertex_at(const struct job_master *jm, uint32_t place)
{
	CHECK(place < jm->spec->vertex_count);
	return &jm->spec->vertices[jm->spec->order[place]];
}

void job_enter(struct job_master *jm, enum job_status next)
{
	if (jm->status == next)
		return;
	CHECK(job_status_may_follow(jm->status, next));
	log_info("job_master", "job %s: %s -> %s", jm->spec->name, job_status_name(jm->status),
			job_status_name(next));
	jm->status = next;
	jm->entered_ms[next] = clock_wall_ms();
	/* CO-6; the start waits for the tasks, job_check_running. */
	if (next == JOB_STATUS_RUNNING)
		jm->is_released = jm->stop.step == STOP_LEAVING;
	else
		job_stop_checkpoints(jm, next == JOB_STATUS_CANCELLING ||
						 next == JOB_STATUS_FINISHED);
	job_pump(jm);
}

/* Flink starts with the job, and until its tasks run each request fails (FO-3); nobody misses
 * those. */
void job_check_running(struct job_master *jm)
{
	if (jm->status != JOB_STATUS_RUNNING || jm->is_periodic_off || jm->is_released ||
			checkpoint_coordinator_is_scheduling(jm->checkpoints))
		return;
	for (uint32_t s = 0; s < jm->subtask_count; s++)
		if (jm->executions[s].state != EXECUTION_RUNNING &&
				jm->executions[s].state != EXECUTION_FINISHED)
			return;
	log_info("job_master", "job %s: all %u tasks run", jm->spec->name, jm->subtask_count);
	/* Without an interval there is nothing to schedule. */
	(void)checkpoint_coordinator_start(jm->checkpoints, job_now());
	job_pump(jm);
}

struct execution *job_find_execution(struct job_master *jm, struct attempt_id attempt)
{
	uint32_t subtask = execution_subtask_of(attempt);

	if (subtask >= jm->subtask_count ||
			!id128_is_equal(jm->executions[subtask].attempt.id, attempt.id))
		return NULL;
	return &jm->executions[subtask];
}

bool job_is_own(const struct job_master *jm, struct attempt_id attempt)
{
	return execution_run_of(attempt) == jm->run;
}

struct execution *job_hear(struct job_master *jm, struct attempt_id attempt)
{
	struct execution *e = job_find_execution(jm, attempt);

	if (e == NULL && job_is_own(jm, attempt))
		jm->stale_count++;
	return e;
}

void job_set_execution(struct job_master *jm, struct execution *e, enum execution_state next)
{
	if (!execution_enter(e, next, clock_wall_ms()))
		return;
	execution_graph_set_state(jm->graph, e->subtask, next);
	if (execution_is_terminal(e))
		execution_drop_slot(e);
}

/* ---- the I/O thread ---- */

struct posted {
	struct job_master *jm;
	void (*work)(void *);
	void (*done)(void *);
	void *context;
};

static void work_posted(void *context)
{
	struct posted *p = context;

	p->work(p->context);
}

static void on_posted_done(void *context)
{
	struct posted *p = context;

	p->jm->io_count--;
	p->done(p->context);
	free(p);
}

static struct posted *posted_of(struct job_master *jm, void (*work)(void *), void (*done)(void *),
		void *context)
{
	struct posted *p = calloc(1, sizeof(*p));

	CHECK(p != NULL);
	*p = (struct posted){jm, work, done, context};
	jm->io_count++;
	return p;
}

void job_post(struct job_master *jm, void (*work)(void *), void (*done)(void *), void *context)
{
	io_thread_post(jm->services.io, work_posted, on_posted_done,
			posted_of(jm, work, done, context));
}

bool job_is_going_on(const struct job_master *jm)
{
	return jm->status == JOB_STATUS_RUNNING && !jm->is_ending;
}

void job_post_quiet(
		struct job_master *jm, void (*work)(void *), void (*done)(void *), void *context)
{
	/* The end of a job is written before it is one, and that is told; then, nothing follows. */
	if (job_is_going_on(jm))
		io_thread_post_quiet(jm->services.io, work_posted, on_posted_done,
				posted_of(jm, work, done, context));
	else
		job_post(jm, work, done, context);
}

/* ---- the record ---- */

struct record_work {
	struct job_master *jm;
	Weir__JobRecord *record;
	void (*done)(struct job_master *jm, int status);
	int status;
};

static void write_record(void *context)
{
	struct record_work *w = context;

	w->status = ha_store_write_job(w->jm->services.ha, w->jm->spec->id, w->record);
}

static void on_record_written(void *context)
{
	struct record_work *w = context;

	if (w->status != 0)
		log_error("job_master", "job %s: its record cannot be written: %s",
				w->jm->spec->name, strerror(-w->status));
	if (w->done != NULL)
		w->done(w->jm, w->status);
	weir__job_record__free_unpacked(w->record, NULL);
	free(w);
}

void job_write_record(struct job_master *jm, void (*done)(struct job_master *jm, int status))
{
	struct record_work *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	*w = (struct record_work){jm, job_copy_record(jm->record), done, 0};
	CHECK(w->record != NULL);
	job_post(jm, write_record, on_record_written, w);
}

/* ---- events ---- */

void job_master_on_joined(struct job_master *jm)
{
	job_deploy(jm);
}

/* NULL: not of this job, or of an attempt that is no more. */
static struct execution *hear(
		struct job_master *jm, uint32_t member, const ProtobufCBinaryData *attempt)
{
	struct execution *e = job_hear(jm, (struct attempt_id){message_id(attempt)});

	return e != NULL && e->member == member ? e : NULL;
}

bool job_master_on_message(
		struct job_master *jm, uint32_t member, const Weir__Envelope *envelope)
{
	struct execution *e;

	switch (envelope->body_case) {
	case WEIR__ENVELOPE__BODY_TASK_HEARTBEAT:
		for (size_t i = 0; i < envelope->task_heartbeat->n_tasks; i++)
			job_take_numbers(jm, envelope->task_heartbeat->tasks[i]);
		return false; /* it may speak of other jobs too */
	case WEIR__ENVELOPE__BODY_DEPLOY_ANSWER:
		return job_on_deploy_answer(jm, member, envelope->deploy_answer);
	case WEIR__ENVELOPE__BODY_SAVEPOINT_LOCATED:
		return job_on_savepoint_located(jm, member, envelope->savepoint_located);
	case WEIR__ENVELOPE__BODY_TASK_STATUS:
		e = hear(jm, member, &envelope->task_status->attempt);
		if (e != NULL)
			job_on_status(jm, e, envelope->task_status);
		return e != NULL;
	case WEIR__ENVELOPE__BODY_END_OF_DATA:
		e = hear(jm, member, &envelope->end_of_data->attempt);
		if (e != NULL)
			(void)checkpoint_coordinator_on_task_end_of_data(
					jm->checkpoints, e->subtask, e->attempt, job_now());
		job_pump(jm);
		return e != NULL;
	case WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS:
		for (size_t i = 0; i < envelope->acknowledge_checkpoints->n_acks; i++)
			job_on_acknowledge(jm, envelope->acknowledge_checkpoints->acks[i]);
		job_pump(jm);
		job_send_files(jm);
		return false; /* other jobs' may be in it too */
	case WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT:
		job_on_decline(jm, envelope->decline_checkpoint);
		job_pump(jm);
		return false;
	case WEIR__ENVELOPE__BODY_OPERATOR_EVENT:
		e = hear(jm, member, &envelope->operator_event->attempt);
		if (e != NULL)
			job_on_operator_event(jm, e, envelope->operator_event);
		return e != NULL;
	default:
		return false;
	}
}

/* ---- users ---- */

void job_master_cancel(struct job_master *jm)
{
	if (!job_status_may_follow(jm->status, JOB_STATUS_CANCELLING) || jm->is_ending)
		return;
	jm->generation++;
	loop_timer_clear(jm->restart_timer);
	job_enter(jm, JOB_STATUS_CANCELLING);
	job_cancel_tasks(jm);
	job_check_ended(jm);
}

void job_master_suspend(struct job_master *jm)
{
	if (job_status_is_terminal(jm->status))
		return;
	jm->generation++;
	job_enter(jm, JOB_STATUS_SUSPENDED);
	checkpoint_coordinator_shutdown(jm->checkpoints, job_now());
	job_pump(jm);
}
