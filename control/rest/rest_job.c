/* rest_job: one job: its vertices, plan, status and failures. */

#include "control/config/job_file.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCEPTIONS_MAX = 16, NS_IN_MS = 1000000 };

void rest_get_job_status(struct rest_call *call)
{
	rest_answer(call, 200, json_pack("{s:s}", "status",
					call->job == NULL ? rest_end_name(call->ended)
							  : job_status_name(job_master_status(
									    call->job))));
}

void rest_get_job_config(struct rest_call *call)
{
	const struct config *c = job_master_config(call->job);
	char strategy[32];

	rest_answer(call, 200,
			json_pack("{s:o, s:o, s:{s:s, s:s, s:I, s:b, s:{}}}", "jid",
					rest_job_id(call->job), "name",
					rest_text(job_master_name(call->job)), "execution-config",
					"execution-mode", "PIPELINED", "restart-strategy",
					config_choice(c, "restart-strategy.type", strategy,
							sizeof(strategy)),
					"job-parallelism",
					(json_int_t)config_int(c, "parallelism.default"),
					"object-reuse-mode", 1, "user-config"));
}

/* ---- the plan ---- */

static json_t *description(const struct job_vertex *v)
{
	char text[2048] = "";
	size_t length = 0;

	for (uint32_t i = 0; i < v->operator_count && length < sizeof(text); i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s<br/>",
				i > 0 ? "+- " : "", v->operators[i].uid);
	return rest_text(text);
}

static json_t *inputs(const struct job_spec *spec, uint32_t vertex)
{
	static const char *const strategies[] = {"FORWARD", "HASH", "REBALANCE", "BROADCAST"};
	json_t *all = json_array();

	for (uint32_t i = 0; i < spec->edge_count; i++) {
		const struct job_edge *e = &spec->edges[i];
		if (e->to == vertex)
			json_array_append_new(all,
					json_pack("{s:i, s:o, s:s, s:s}", "num",
							(int)json_array_size(all), "id",
							rest_vertex_id(spec->vertices[e->from].uid),
							"ship_strategy",
							strategies[e->partition], "exchange",
							"pipelined_bounded"));
	}
	return all;
}

json_t *rest_plan(const struct job_master *jm)
{
	const struct job_spec *spec = job_master_spec(jm);
	json_t *nodes = json_array();

	for (uint32_t place = spec->vertex_count; place > 0; place--) {
		uint32_t vertex = job_master_vertex(jm, place - 1);
		const struct job_vertex *v = &spec->vertices[vertex];
		json_t *node = json_pack("{s:o, s:i, s:s, s:s, s:o}", "id", rest_vertex_id(v->uid),
				"parallelism", (int)v->parallelism, "operator", "",
				"operator_strategy", "", "description", description(v));

		if (v->in_count > 0)
			json_object_set_new(node, "inputs", inputs(spec, vertex));
		json_object_set_new(node, "optimizer_properties", json_object());
		json_array_append_new(nodes, node);
	}
	return json_pack("{s:o, s:o, s:s, s:o}", "jid", rest_job_id(jm), "name",
			rest_text(job_master_name(jm)), "type", "STREAMING", "nodes", nodes);
}

void rest_get_job_plan(struct rest_call *call)
{
	rest_answer(call, 200, json_pack("{s:o}", "plan", rest_plan(call->job)));
}

/* ---- vertices ---- */

/* Flink's order: what needs a look comes first. */
static enum execution_state state_of(const struct rest_states *s)
{
	static const enum execution_state first[] = {EXECUTION_FAILED, EXECUTION_CANCELING,
			EXECUTION_CANCELED, EXECUTION_INITIALIZING, EXECUTION_RUNNING};

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		if (s->counts[first[i]] > 0)
			return first[i];
	if (s->counts[EXECUTION_FINISHED] == 0)
		return EXECUTION_CREATED;
	return s->counts[EXECUTION_FINISHED] == s->total ? EXECUTION_FINISHED : EXECUTION_RUNNING;
}

/* The subtasks of a vertex, added up. */
struct vertex_sum {
	struct execution_numbers numbers;
	bool is_complete;
	int64_t start_ms, end_ms; /* -1: none */
};

static struct vertex_sum sum_of(const struct job_master *jm, uint32_t place)
{
	struct vertex_sum sum = {.is_complete = true, .start_ms = -1, .end_ms = -1};
	bool has_ended = true;

	for (uint32_t i = 0; i < rest_vertex(jm, place)->parallelism; i++) {
		const struct execution *e = job_master_execution(jm, place, i);
		int64_t started = e->entered_ms[EXECUTION_DEPLOYING];
		int64_t now_there = e->entered_ms[e->state];

		sum.is_complete = sum.is_complete && e->numbers.read_at_ns > 0;
		sum.numbers.records_in += e->numbers.records_in;
		sum.numbers.records_out += e->numbers.records_out;
		sum.numbers.bytes_in += e->numbers.bytes_in;
		sum.numbers.bytes_out += e->numbers.bytes_out;
		sum.numbers.busy_ns += e->numbers.busy_ns;
		sum.numbers.idle_ns += e->numbers.idle_ns;
		sum.numbers.backpressured_ns += e->numbers.backpressured_ns;
		if (started > 0 && (sum.start_ms < 0 || started < sum.start_ms))
			sum.start_ms = started;
		if (now_there > sum.end_ms)
			sum.end_ms = now_there;
		has_ended = has_ended && execution_is_terminal(e);
	}
	if (!has_ended)
		sum.end_ms = -1;
	return sum;
}

static json_t *metrics(const struct vertex_sum *sum)
{
	const struct execution_numbers *n = &sum->numbers;
	int is_complete = sum->is_complete;

	return json_pack("{s:I, s:b, s:I, s:b, s:I, s:b, s:I, s:b, s:I, s:I, s:f}", "read-bytes",
			(json_int_t)n->bytes_in, "read-bytes-complete", is_complete, "write-bytes",
			(json_int_t)n->bytes_out, "write-bytes-complete", is_complete,
			"read-records", (json_int_t)n->records_in, "read-records-complete",
			is_complete, "write-records", (json_int_t)n->records_out,
			"write-records-complete", is_complete, "accumulated-backpressured-time",
			(json_int_t)(n->backpressured_ns / NS_IN_MS), "accumulated-idle-time",
			(json_int_t)(n->idle_ns / NS_IN_MS), "accumulated-busy-time",
			(double)(n->busy_ns / NS_IN_MS));
}

static json_t *vertex(const struct job_master *jm, uint32_t place, int64_t now_ms,
		enum execution_state *state)
{
	const struct job_vertex *v = rest_vertex(jm, place);
	struct vertex_sum sum = sum_of(jm, place);
	struct rest_states states = {0};
	int64_t duration = -1;

	rest_count_vertex(jm, place, &states);
	*state = state_of(&states);
	if (sum.start_ms >= 0)
		duration = (sum.end_ms >= 0 ? sum.end_ms : now_ms) - sum.start_ms;
	return json_pack("{s:o, s:o, s:o, s:i, s:i, s:s, s:I, s:I, s:I, s:o, s:o}", "id",
			rest_vertex_id(v->uid), "slotSharingGroupId", rest_job_id(jm), "name",
			rest_text(v->uid), "maxParallelism",
			(int)job_master_spec(jm)->key_groups_count, "parallelism",
			(int)v->parallelism, "status", execution_state_name(*state), "start-time",
			(json_int_t)sum.start_ms, "end-time", (json_int_t)sum.end_ms, "duration",
			(json_int_t)duration, "tasks", rest_states_upper(&states), "metrics",
			metrics(&sum));
}

static json_t *timestamps(const struct job_master *jm)
{
	json_t *json = json_object();

	for (int i = 0; i < JOB_STATUS_COUNT; i++)
		json_object_set_new(json, job_status_name((enum job_status)i),
				json_integer(job_master_entered_ms(jm, (enum job_status)i)));
	json_object_set_new(json, "RECONCILING", json_integer(0));
	return json;
}

void rest_get_job(struct rest_call *call)
{
	const struct job_master *jm = call->job;
	int64_t now_ms = clock_wall_ms(), start = rest_start_ms(jm), end = rest_end_ms(jm);
	struct rest_states counts = {0};
	json_t *vertices = json_array();

	for (uint32_t place = 0; place < job_master_spec(jm)->vertex_count; place++) {
		enum execution_state state;

		json_array_append_new(vertices, vertex(jm, place, now_ms, &state));
		counts.counts[state]++;
	}
	rest_answer(call, 200,
			json_pack("{s:o, s:o, s:b, s:s, s:s, s:I, s:I, s:I, s:i, s:I, s:o, s:o, "
				  "s:o, s:o}",
					"jid", rest_job_id(jm), "name",
					rest_text(job_master_name(jm)), "isStoppable", 0, "state",
					job_status_name(job_master_status(jm)), "job-type",
					"STREAMING", "start-time", (json_int_t)start, "end-time",
					(json_int_t)end, "duration",
					(json_int_t)((end >= 0 ? end : now_ms) - start),
					"maxParallelism",
					(int)job_master_spec(jm)->key_groups_count, "now",
					(json_int_t)now_ms, "timestamps", timestamps(jm),
					"vertices", vertices, "status-counts",
					rest_states_upper(&counts), "plan", rest_plan(jm)));
}

/* ---- failures ---- */

static json_t *text_or_null(const char *text)
{
	return text[0] == 0 ? json_null() : rest_text(text);
}

static json_t *history_entry(const struct job_failure *f)
{
	return json_pack("{s:s, s:o, s:I, s:{}, s:o, s:o, s:o, s:[]}", "exceptionName", "failure",
			"stacktrace", rest_text(f->text), "timestamp", (json_int_t)f->wall_ms,
			"failureLabels", "taskName", text_or_null(f->task), "endpoint",
			text_or_null(f->task_manager), "taskManagerId",
			text_or_null(f->task_manager), "concurrentExceptions");
}

static json_t *old_entry(const struct job_failure *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o}", "exception", rest_text(f->text), "task",
			text_or_null(f->task), "location", text_or_null(f->task_manager),
			"endpoint", text_or_null(f->task_manager), "timestamp",
			(json_int_t)f->wall_ms, "taskManagerId", text_or_null(f->task_manager));
}

void rest_get_job_exceptions(struct rest_call *call)
{
	const struct job_failure *newest = job_master_failure(call->job, 0), *f;
	json_t *entries = json_array(), *old = json_array();
	char wanted[REST_PART_BYTES];
	uint32_t count = 0, count_max = EXCEPTIONS_MAX;

	rest_query(call, "maxExceptions", wanted);
	if (wanted[0] != 0)
		count_max = (uint32_t)strtoul(wanted, NULL, 10);
	for (; (f = job_master_failure(call->job, count)) != NULL && count < count_max; count++) {
		json_array_append_new(entries, history_entry(f));
		json_array_append_new(old, old_entry(f));
	}
	rest_answer(call, 200,
			json_pack("{s:o, s:o, s:o, s:b, s:{s:o, s:b}}", "root-exception",
					newest == NULL ? json_null() : rest_text(newest->text),
					"timestamp",
					newest == NULL ? json_null()
						       : json_integer(newest->wall_ms),
					"all-exceptions", old, "truncated", f != NULL,
					"exceptionHistory", "entries", entries, "truncated",
					f != NULL));
}
