/* rest_job: one job in full: vertices, states, plan. */

#include "control/config/job_file.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

#include <string.h>

enum { DESCRIPTION_BYTES = 1024 };

static json_t *state_counts(const struct job_master *jm, uint32_t place)
{
	json_t *counts = json_object();

	for (uint32_t i = 0; i < REST_STATES_COUNT; i++)
		json_object_set_new(counts, rest_state_name(i),
				json_integer(rest_count_in(jm, place, rest_state_name(i))));
	return counts;
}

/* The state that says most about the subtasks together. */
static const char *vertex_status(const struct job_master *jm, uint32_t place)
{
	static const char *const order[] = {"FAILED", "CANCELING", "CANCELED", "RUNNING",
			"INITIALIZING", "DEPLOYING", "CREATED"};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (rest_count_in(jm, place, order[i]) > 0)
			return order[i];
	return "FINISHED";
}

static struct rest_span vertex_span(const struct job_master *jm, uint32_t place)
{
	struct rest_span s = {-1, 0};

	for (uint32_t i = 0; i < rest_vertex_at(jm, place)->parallelism; i++) {
		const struct execution *e = job_master_execution(jm, place, i);
		int64_t began = e->entered_ms[EXECUTION_DEPLOYING];

		if (began > 0 && (s.start_ms < 0 || began < s.start_ms))
			s.start_ms = began;
		if (!execution_is_terminal(e))
			s.end_ms = -1;
		else if (s.end_ms >= 0 && e->entered_ms[e->state] > s.end_ms)
			s.end_ms = e->entered_ms[e->state];
	}
	if (s.start_ms < 0)
		s.end_ms = -1;
	return s;
}

static json_t *vertex_metrics(const struct job_master *jm, uint32_t place)
{
	struct execution_numbers sum = {0};

	for (uint32_t i = 0; i < rest_vertex_at(jm, place)->parallelism; i++) {
		const struct execution_numbers *n = &job_master_execution(jm, place, i)->numbers;

		sum.records_in += n->records_in;
		sum.records_out += n->records_out;
		sum.bytes_in += n->bytes_in;
		sum.bytes_out += n->bytes_out;
		sum.busy_ns += n->busy_ns;
		sum.idle_ns += n->idle_ns;
		sum.backpressured_ns += n->backpressured_ns;
	}
	return json_pack("{s:o, s:b, s:o, s:b, s:o, s:b, s:o, s:b, s:o, s:o, s:f}", "read-bytes",
			rest_int((int64_t)sum.bytes_in), "read-bytes-complete", 1, "write-bytes",
			rest_int((int64_t)sum.bytes_out), "write-bytes-complete", 1,
			"read-records", rest_int((int64_t)sum.records_in), "read-records-complete",
			1, "write-records", rest_int((int64_t)sum.records_out),
			"write-records-complete", 1, "accumulated-backpressured-time",
			rest_int((int64_t)(sum.backpressured_ns / 1000000)),
			"accumulated-idle-time", rest_int((int64_t)(sum.idle_ns / 1000000)),
			"accumulated-busy-time", (double)(sum.busy_ns / 1000000));
}

static json_t *vertex_object(const struct job_master *jm, uint32_t place)
{
	const struct job_vertex *v = rest_vertex_at(jm, place);
	struct rest_span s = vertex_span(jm, place);
	char id[ID128_TEXT_BYTES], job[ID128_TEXT_BYTES];

	rest_vertex_id(v->uid, id);
	rest_job_id(jm, job);
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "id", id,
			"slotSharingGroupId", job, "name", v->uid, "maxParallelism",
			(int)job_master_spec(jm)->key_groups_count, "parallelism",
			(int)v->parallelism, "status", vertex_status(jm, place), "start-time",
			rest_int(s.start_ms), "end-time", rest_int(s.end_ms), "duration",
			rest_int(s.start_ms < 0 ? -1 : rest_span_ms(s)), "tasks",
			state_counts(jm, place), "metrics", vertex_metrics(jm, place));
}

/* ---- the plan ---- */

static json_t *plan_inputs(const struct job_spec *spec, uint32_t index)
{
	json_t *inputs = json_array();

	for (uint32_t e = 0; e < spec->edge_count; e++) {
		char from[ID128_TEXT_BYTES];

		if (spec->edges[e].to != index)
			continue;
		rest_vertex_id(spec->vertices[spec->edges[e].from].uid, from);
		json_array_append_new(inputs,
				json_pack("{s:i, s:s, s:s, s:s}", "num",
						(int)json_array_size(inputs), "id", from,
						"ship_strategy",
						spec->edges[e].partition == JOB_HASH ? "HASH"
										     : "FORWARD",
						"exchange", "pipelined_bounded"));
	}
	return inputs;
}

static json_t *plan_node(const struct job_master *jm, uint32_t index)
{
	const struct job_vertex *v = &job_master_spec(jm)->vertices[index];
	char id[ID128_TEXT_BYTES], description[DESCRIPTION_BYTES] = "";
	json_t *inputs = plan_inputs(job_master_spec(jm), index);
	size_t at = 0;

	for (uint32_t i = 0; i < v->operator_count && at < sizeof(description); i++)
		at += (size_t)snprintf(description + at, sizeof(description) - at, "%s%s: %s",
				i == 0 ? "" : " -> ", v->operators[i].uid,
				v->operators[i].table->name);
	rest_vertex_id(v->uid, id);
	json_t *node = json_pack("{s:s, s:i, s:s, s:s, s:s, s:{}}", "id", id, "parallelism",
			(int)v->parallelism, "operator", "", "operator_strategy", "",
			"description", description, "optimizer_properties");
	if (json_array_size(inputs) > 0)
		json_object_set(node, "inputs", inputs);
	json_decref(inputs);
	return node;
}

static json_t *plan_object(const struct job_master *jm)
{
	json_t *nodes = json_array();
	char id[ID128_TEXT_BYTES];

	/* Sinks first, as Flink lists them. */
	for (uint32_t p = job_master_spec(jm)->vertex_count; p > 0; p--)
		json_array_append_new(nodes, plan_node(jm, job_master_vertex(jm, p - 1)));
	rest_job_id(jm, id);
	return json_pack("{s:s, s:s, s:s, s:o}", "jid", id, "name", job_master_name(jm), "type",
			"STREAMING", "nodes", nodes);
}

json_t *rest_job_plan(struct rest_exchange *x)
{
	return json_pack("{s:o}", "plan", plan_object(x->job));
}

/* ---- the job ---- */

static json_t *timestamps(const struct job_master *jm)
{
	json_t *all = json_object();

	for (int status = 0; status < JOB_STATUS_COUNT; status++)
		json_object_set_new(all, job_status_name((enum job_status)status),
				rest_int(job_master_entered_ms(jm, (enum job_status)status)));
	json_object_set_new(all, "RECONCILING", json_integer(0));
	return all;
}

json_t *rest_job(struct rest_exchange *x)
{
	const struct job_master *jm = x->job;
	struct rest_span s = rest_span_of(jm);
	json_t *vertices = json_array();
	char id[ID128_TEXT_BYTES];

	for (uint32_t p = 0; p < job_master_spec(jm)->vertex_count; p++)
		json_array_append_new(vertices, vertex_object(jm, p));
	rest_job_id(jm, id);
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o}",
			"jid", id, "name", job_master_name(jm), "isStoppable", 0, "state",
			job_status_name(job_master_status(jm)), "job-type", "STREAMING",
			"start-time", rest_int(s.start_ms), "end-time", rest_int(s.end_ms),
			"duration", rest_int(rest_span_ms(s)), "maxParallelism",
			(int)job_master_spec(jm)->key_groups_count, "now",
			rest_int(clock_wall_ms()), "timestamps", timestamps(jm), "vertices",
			vertices, "status-counts", state_counts(jm, UINT32_MAX), "plan",
			plan_object(jm));
}
