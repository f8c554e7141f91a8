/* rest_jobs: the jobs of the coordinator, and what a run of one is judged by. */

#include "control/config/job_file.h"
#include "control/coordinator/coordinator.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"

#include <string.h>

/* ---- shared pieces ---- */

const char *rest_state_name(uint32_t index)
{
	static const char *const names[REST_STATES_COUNT] = {"CREATED", "CANCELED", "DEPLOYING",
			"FINISHED", "RUNNING", "FAILED", "CANCELING", "SCHEDULED", "RECONCILING",
			"INITIALIZING"};

	CHECK(index < REST_STATES_COUNT);
	return names[index];
}

struct rest_span rest_span_of(const struct job_master *jm)
{
	struct rest_span s = {job_master_entered_ms(jm, JOB_STATUS_INITIALIZING), -1};

	if (job_status_is_terminal(job_master_status(jm)))
		s.end_ms = job_master_entered_ms(jm, job_master_status(jm));
	return s;
}

int64_t rest_span_ms(struct rest_span s)
{
	if (s.start_ms <= 0)
		return 0;
	return (s.end_ms < 0 ? clock_wall_ms() : s.end_ms) - s.start_ms;
}

void rest_job_id(const struct job_master *jm, char text[ID128_TEXT_BYTES])
{
	id128_print(job_master_id(jm).id, text);
}

json_t *rest_int(int64_t value)
{
	return json_integer((json_int_t)value);
}

const struct job_vertex *rest_vertex_at(const struct job_master *jm, uint32_t place)
{
	return &job_master_spec(jm)->vertices[job_master_vertex(jm, place)];
}

uint32_t rest_count_in(const struct job_master *jm, uint32_t place, const char *state)
{
	uint32_t count = 0;

	for (uint32_t p = 0; p < job_master_spec(jm)->vertex_count; p++) {
		if (place != UINT32_MAX && p != place)
			continue;
		for (uint32_t s = 0; s < rest_vertex_at(jm, p)->parallelism; s++)
			count += strcmp(execution_state_name(
						    job_master_execution(jm, p, s)->state),
						 state) == 0;
	}
	return count;
}

static json_t *text_or_null(const char *text)
{
	json_t *t = text[0] == 0 ? NULL : json_string(text);

	return t == NULL ? json_null() : t;
}

/* ---- all jobs ---- */

json_t *rest_jobs(struct rest_exchange *x)
{
	json_t *all = json_array();
	const struct job_master *jm;
	char id[ID128_TEXT_BYTES];

	for (uint32_t i = 0; (jm = coordinator_job_at(x->coordinator, i)) != NULL; i++) {
		rest_job_id(jm, id);
		json_array_append_new(all,
				json_pack("{s:s, s:s}", "id", id, "status",
						job_status_name(job_master_status(jm))));
	}
	return json_pack("{s:o}", "jobs", all);
}

static json_t *tasks_object(const struct job_master *jm)
{
	json_t *tasks = json_object();
	uint32_t total = 0;

	for (uint32_t i = 0; i < REST_STATES_COUNT; i++) {
		const char *name = rest_state_name(i);
		uint32_t count = rest_count_in(jm, UINT32_MAX, name);
		char lower[16] = "";

		for (size_t k = 0; name[k] != 0; k++)
			lower[k] = (char)(name[k] - 'A' + 'a');
		json_object_set_new(tasks, lower, json_integer(count));
		total += count;
	}
	json_object_set_new(tasks, "total", json_integer(total));
	return tasks;
}

static json_t *overview_of(const struct job_master *jm)
{
	struct rest_span s = rest_span_of(jm);
	int64_t modified = 0;
	char id[ID128_TEXT_BYTES];

	for (int status = 0; status < JOB_STATUS_COUNT; status++) {
		int64_t at = job_master_entered_ms(jm, (enum job_status)status);

		modified = at > modified ? at : modified;
	}
	rest_job_id(jm, id);
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:o}", "jid", id, "name",
			job_master_name(jm), "start-time", rest_int(s.start_ms), "end-time",
			rest_int(s.end_ms), "duration", rest_int(rest_span_ms(s)), "state",
			job_status_name(job_master_status(jm)), "last-modification",
			rest_int(modified), "tasks", tasks_object(jm));
}

json_t *rest_jobs_overview(struct rest_exchange *x)
{
	json_t *all = json_array();
	const struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(x->coordinator, i)) != NULL; i++)
		json_array_append_new(all, overview_of(jm));
	return json_pack("{s:o}", "jobs", all);
}

/* ---- of one job ---- */

json_t *rest_job_status(struct rest_exchange *x)
{
	return json_pack("{s:s}", "status", job_status_name(job_master_status(x->job)));
}

json_t *rest_job_config(struct rest_exchange *x)
{
	const struct config *c = job_master_config(x->job);
	char id[ID128_TEXT_BYTES], strategy[32];

	rest_job_id(x->job, id);
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:I, s:b, s:{}}}", "jid", id, "name",
			job_master_name(x->job), "execution-config", "execution-mode",
			"PIPELINED", "restart-strategy",
			config_choice(c, "restart-strategy.type", strategy, sizeof(strategy)),
			"job-parallelism", (json_int_t)config_int(c, "parallelism.default"),
			"object-reuse-mode", 1, "user-config");
}

static json_t *failure_object(const struct job_failure *f)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "exception", text_or_null(f->text), "task",
			text_or_null(f->task), "location", text_or_null(f->task_manager),
			"timestamp", rest_int(f->wall_ms));
}

static json_t *history_entry(const struct job_failure *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:[]}", "exceptionName",
			text_or_null(f->text), "stacktrace", text_or_null(f->text), "timestamp",
			rest_int(f->wall_ms), "taskName", text_or_null(f->task), "endpoint",
			text_or_null(f->task_manager), "taskManagerId",
			text_or_null(f->task_manager), "concurrentExceptions");
}

json_t *rest_job_exceptions(struct rest_exchange *x)
{
	json_t *all = json_array(), *entries = json_array();
	const struct job_failure *f, *root = job_master_failure(x->job, 0);

	for (uint32_t i = 0; (f = job_master_failure(x->job, i)) != NULL; i++) {
		json_array_append_new(all, failure_object(f));
		json_array_append_new(entries, history_entry(f));
	}
	return json_pack("{s:o, s:o, s:o, s:b, s:{s:o, s:b}}", "root-exception",
			root == NULL ? json_null() : text_or_null(root->text), "timestamp",
			root == NULL ? json_null() : rest_int(root->wall_ms), "all-exceptions",
			all, "truncated", 0, "exceptionHistory", "entries", entries, "truncated",
			0);
}

/* ---- the summary ---- */

struct sums {
	json_t *counters; /* uid -> name -> value */
	json_t *unparsed; /* reason -> value */
};

static void add_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	static const char prefix[] = "unparsed.";
	struct sums *s = context;
	json_t *of_uid = json_object_get(s->counters, uid);

	if (of_uid == NULL) {
		of_uid = json_object();
		json_object_set_new(s->counters, uid, of_uid);
	}
	json_object_set_new(of_uid, name, json_integer((json_int_t)value));
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || value == 0)
		return;
	const char *reason = name + sizeof(prefix) - 1;
	json_int_t before = json_integer_value(json_object_get(s->unparsed, reason));
	json_object_set_new(s->unparsed, reason, json_integer(before + (json_int_t)value));
}

static json_t *ms_or_null(int64_t ms)
{
	return ms < 0 ? json_null() : rest_int(ms);
}

json_t *rest_job_summary(struct rest_exchange *x)
{
	const struct job_master *jm = x->job;
	struct job_counts c = job_master_counts(jm);
	const struct job_failure *f = job_master_failure(jm, 0);
	struct sums s = {json_object(), json_object()};
	bool has_failed = job_master_status(jm) == JOB_STATUS_FAILED;
	char id[ID128_TEXT_BYTES];

	job_master_visit_counters(jm, add_counter, &s);
	rest_job_id(jm, id);
	json_t *checkpoints = json_pack("{s:I, s:I, s:o, s:o, s:o}", "completed",
			(json_int_t)c.checkpoints_completed, "failed",
			(json_int_t)c.checkpoints_failed, "p50_ms",
			ms_or_null(c.checkpoint_p50_ms), "p99_ms", ms_or_null(c.checkpoint_p99_ms),
			"last_ms", ms_or_null(c.checkpoint_last_ms));
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:i, s:o, s:b}", "state",
			job_status_name(job_master_status(jm)), "job_id", id, "name",
			job_master_name(jm), "records_in", (json_int_t)c.records_in, "records_out",
			(json_int_t)c.records_out, "unparsed", s.unparsed, "counters", s.counters,
			"checkpoints", checkpoints, "restarts", (int)c.restarts, "failure",
			has_failed && f != NULL ? text_or_null(f->text) : json_null(), "refused",
			has_failed && job_master_is_restore_refused(jm));
}
