/* rest_metrics: metrics as Flink's dashboard asks for them: their names, or with ?get= the values
 * of some; of all jobs or subtasks together, added up. */

#include "control/config/job_file.h"
#include "control/rest/metrics.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GET_BYTES = 16384, NAME_BYTES = 256 };

/* What is asked for, and the answer as it grows. */
struct asked {
	bool is_list;         /* names only */
	char get[GET_BYTES];  /* ",a,b," */
	int32_t index;        /* before each name; -1: none */
	json_t *answer;       /* an array, or values by name that are to be added up */
};

static bool read_get(struct rest_call *call, struct asked *a)
{
	const char *query = call->request->query;
	char value[GET_BYTES - 2];

	a->is_list = !http_query_value(query, "get", value, sizeof(value));
	if (a->is_list && strstr(query, "get=") != NULL) {
		rest_refuse(call, 400, "?get=: longer than %d bytes", (int)sizeof(value));
		return false;
	}
	if (!a->is_list)
		snprintf(a->get, sizeof(a->get), ",%s,", value);
	return true;
}

static bool is_wanted(const struct asked *a, const char *name)
{
	char quoted[NAME_BYTES + 2];

	snprintf(quoted, sizeof(quoted), ",%s,", name);
	return a->is_list || strstr(a->get, quoted) != NULL;
}

/* "1.window.numRecordsIn": subtask, operator, metric. */
static void print_name(const struct asked *a, const struct metric *m, char name[NAME_BYTES])
{
	char index[16] = "";

	if (a->index >= 0)
		snprintf(index, sizeof(index), "%d.", a->index);
	snprintf(name, NAME_BYTES, "%s%s%s%s", index,
			m->operator_uid != NULL ? m->operator_uid : "",
			m->operator_uid != NULL ? "." : "", m->name);
}

static void add_metric(void *context, const struct metric *m)
{
	struct asked *a = context;
	char name[NAME_BYTES], value[METRIC_VALUE_BYTES];

	print_name(a, m, name);
	if (!is_wanted(a, name))
		return;
	json_t *entry = json_pack("{s:o}", "id", rest_text(name));
	if (!a->is_list)
		json_object_set_new(entry, "value", rest_text(metric_print(m, value)));
	json_array_append_new(a->answer, entry);
}

void rest_get_coordinator_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};

	if (!read_get(call, &a))
		return;
	a.answer = json_array();
	metrics_of_coordinator(call->coordinator, add_metric, &a);
	rest_answer(call, 200, a.answer);
}

void rest_get_taskmanager_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};

	if (!read_get(call, &a))
		return;
	a.answer = json_array();
	metrics_of_taskmanager(call->coordinator, call->member, add_metric, &a);
	rest_answer(call, 200, a.answer);
}

void rest_get_job_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};

	if (!read_get(call, &a))
		return;
	a.answer = json_array();
	metrics_of_job(call->job, add_metric, &a);
	rest_answer(call, 200, a.answer);
}

void rest_get_vertex_metrics(struct rest_call *call)
{
	struct asked a = {0};

	if (!read_get(call, &a))
		return;
	a.answer = json_array();
	for (; a.index < (int32_t)rest_vertex(call->job, call->place)->parallelism; a.index++)
		metrics_of_task(call->job, call->place, (uint32_t)a.index, add_metric, &a);
	rest_answer(call, 200, a.answer);
}

void rest_get_subtask_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};

	if (!read_get(call, &a))
		return;
	a.answer = json_array();
	metrics_of_task(call->job, call->place, call->subtask, add_metric, &a);
	rest_answer(call, 200, a.answer);
}

/* ---- several together ---- */

static void collect(void *context, const struct metric *m)
{
	struct asked *a = context;
	char name[NAME_BYTES];

	print_name(a, m, name);
	if (m->kind == METRIC_TEXT || !is_wanted(a, name))
		return;
	if (json_object_get(a->answer, name) == NULL)
		json_object_set_new(a->answer, name, json_array());
	json_array_append_new(json_object_get(a->answer, name), json_real(metric_number(m)));
}

/* Flink's skew: the mean distance from the mean, in percent of that. */
static double skew_of(const json_t *values, double mean)
{
	double distance = 0, count = (double)json_array_size(values);
	const json_t *value;
	size_t i;

	if (mean == 0)
		return 0;
	json_array_foreach((json_t *)(uintptr_t)values, i, value)
		distance += fabs(json_real_value(value) - mean);
	return fmin(100, 100 * distance / count / fabs(mean));
}

static json_t *aggregate(const char *name, const json_t *values)
{
	double least = INFINITY, most = -INFINITY, sum = 0;
	double count = (double)json_array_size(values);
	const json_t *value;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)values, i, value) {
		least = fmin(least, json_real_value(value));
		most = fmax(most, json_real_value(value));
		sum += json_real_value(value);
	}
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "id", name, "min", least, "max", most,
			"avg", sum / count, "sum", sum, "skew", skew_of(values, sum / count));
}

/* Takes what was collected. */
static void answer_aggregated(struct rest_call *call, const struct asked *a)
{
	json_t *answer = json_array(), *values;
	const char *name;

	json_object_foreach(a->answer, name, values) {
		json_array_append_new(answer, a->is_list ? json_pack("{s:s}", "id", name)
							 : aggregate(name, values));
	}
	json_decref(a->answer);
	rest_answer(call, 200, answer);
}

void rest_get_jobs_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};
	struct job_master *jm;

	if (!read_get(call, &a))
		return;
	a.answer = json_object();
	for (uint32_t i = 0; (jm = coordinator_job_at(call->coordinator, i)) != NULL; i++)
		metrics_of_job(jm, collect, &a);
	answer_aggregated(call, &a);
}

void rest_get_subtasks_metrics(struct rest_call *call)
{
	struct asked a = {.index = -1};

	if (!read_get(call, &a))
		return;
	a.answer = json_object();
	for (uint32_t i = 0; i < rest_vertex(call->job, call->place)->parallelism; i++)
		metrics_of_task(call->job, call->place, i, collect, &a);
	answer_aggregated(call, &a);
}

/* ---- back pressure and watermarks ---- */

static const char *level_of(double ratio)
{
	return ratio > 0.5 ? "high" : ratio > 0.1 ? "low" : "ok";
}

void rest_get_backpressure(struct rest_call *call)
{
	json_t *subtasks = json_array();
	double worst = 0;

	for (uint32_t i = 0; i < rest_vertex(call->job, call->place)->parallelism; i++) {
		const struct execution *e = job_master_execution(call->job, call->place, i);
		struct execution_rates r = execution_rates(e);
		double ratio = fmin(1, r.backpressured_ms / 1000);

		worst = fmax(worst, ratio);
		json_array_append_new(subtasks,
				json_pack("{s:i, s:i, s:s, s:f, s:f, s:f, s:s}", "subtask", (int)i,
						"attempt-number", (int)e->attempt_number,
						"backpressureLevel", level_of(ratio), "ratio",
						ratio, "idleRatio", fmin(1, r.idle_ms / 1000),
						"busyRatio", fmin(1, r.busy_ms / 1000),
						"backpressure-level", level_of(ratio)));
	}
	rest_answer(call, 200,
			json_pack("{s:s, s:s, s:I, s:o, s:s}", "status", "ok", "backpressureLevel",
					level_of(worst), "end-timestamp",
					(json_int_t)clock_wall_ms(), "subtasks", subtasks,
					"backpressure-level", level_of(worst)));
}

void rest_get_watermarks(struct rest_call *call)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < rest_vertex(call->job, call->place)->parallelism; i++) {
		char id[64], value[32];

		snprintf(id, sizeof(id), "%u.currentInputWatermark", i);
		snprintf(value, sizeof(value), "%lld",
				(long long)job_master_execution(call->job, call->place, i)
						->numbers.watermark);
		json_array_append_new(all, json_pack("{s:s, s:s}", "id", id, "value", value));
	}
	rest_answer(call, 200, all);
}
