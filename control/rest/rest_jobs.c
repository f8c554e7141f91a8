/* rest_jobs: /jobs and /jobs/overview, and the facts about a job that several answers show. */

#include "control/config/job_file.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

#include <ctype.h>
#include <string.h>

json_t *rest_job_id(const struct job_master *jm)
{
	char text[ID128_TEXT_BYTES];

	id128_print(job_master_id(jm).id, text);
	return json_string(text);
}

json_t *rest_vertex_id(const char *uid)
{
	char text[ID128_TEXT_BYTES];

	id128_print(job_id_of_name(uid).id, text);
	return json_string(text);
}

const struct job_vertex *rest_vertex(const struct job_master *jm, uint32_t place)
{
	return &job_master_spec(jm)->vertices[job_master_vertex(jm, place)];
}

int64_t rest_start_ms(const struct job_master *jm)
{
	return job_master_entered_ms(jm, JOB_STATUS_INITIALIZING);
}

int64_t rest_end_ms(const struct job_master *jm)
{
	enum job_status status = job_master_status(jm);

	return job_status_is_terminal(status) ? job_master_entered_ms(jm, status) : -1;
}

/* ---- states of attempts ---- */

void rest_count_vertex(const struct job_master *jm, uint32_t place, struct rest_states *states)
{
	uint32_t parallelism = rest_vertex(jm, place)->parallelism;

	states->total += parallelism;
	for (uint32_t s = 0; s < parallelism; s++)
		states->counts[job_master_execution(jm, place, s)->state]++;
}

struct rest_states rest_count_job(const struct job_master *jm)
{
	struct rest_states states = {0};

	for (uint32_t place = 0; place < job_master_spec(jm)->vertex_count; place++)
		rest_count_vertex(jm, place, &states);
	return states;
}

json_t *rest_states_upper(const struct rest_states *states)
{
	json_t *json = json_object();

	for (int i = 0; i < EXECUTION_STATES_COUNT; i++)
		json_object_set_new(json, execution_state_name((enum execution_state)i),
				json_integer(states->counts[i]));
	json_object_set_new(json, "SCHEDULED", json_integer(0));
	json_object_set_new(json, "RECONCILING", json_integer(0));
	return json;
}

json_t *rest_states_lower(const struct rest_states *states)
{
	json_t *upper = rest_states_upper(states), *json = json_object(), *value;
	const char *name;

	json_object_set_new(json, "total", json_integer(states->total));
	json_object_foreach(upper, name, value)
	{
		char lower[32] = {0};

		for (size_t i = 0; name[i] != 0 && i < sizeof(lower) - 1; i++)
			lower[i] = (char)tolower((unsigned char)name[i]);
		json_object_set(json, lower, value);
	}
	json_decref(upper);
	return json;
}

/* ---- the answers ---- */

static json_t *ended_id(const struct ended_job *e)
{
	char text[ID128_TEXT_BYTES];

	id128_print(e->id.id, text);
	return json_string(text);
}

void rest_get_jobs(struct rest_call *call)
{
	json_t *jobs = json_array();
	const struct ended_job *e;
	struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(call->coordinator, i)) != NULL; i++)
		json_array_append_new(jobs, json_pack("{s:o, s:s}", "id", rest_job_id(jm), "status",
						job_status_name(job_master_status(jm))));
	for (uint32_t i = 0; (e = coordinator_ended_at(call->coordinator, i)) != NULL; i++)
		json_array_append_new(jobs, json_pack("{s:o, s:s}", "id", ended_id(e), "status",
						rest_end_name(e)));
	rest_answer(call, 200, json_pack("{s:o}", "jobs", jobs));
}

static int64_t last_modification_ms(const struct job_master *jm)
{
	int64_t latest = 0;

	for (int i = 0; i < JOB_STATUS_COUNT; i++) {
		int64_t entered = job_master_entered_ms(jm, (enum job_status)i);

		latest = entered > latest ? entered : latest;
	}
	return latest;
}

static json_t *overview(const struct job_master *jm)
{
	struct rest_states states = rest_count_job(jm);
	int64_t start = rest_start_ms(jm), end = rest_end_ms(jm);

	return json_pack("{s:o, s:o, s:I, s:I, s:I, s:s, s:I, s:o}", "jid", rest_job_id(jm), "name",
			rest_text(job_master_name(jm)), "start-time", (json_int_t)start, "end-time",
			(json_int_t)end, "duration",
			(json_int_t)((end >= 0 ? end : clock_wall_ms()) - start), "state",
			job_status_name(job_master_status(jm)), "last-modification",
			(json_int_t)last_modification_ms(jm), "tasks", rest_states_lower(&states));
}

static json_t *ended_overview(const struct ended_job *e)
{
	const Weir__JobRecord *r = e->record;
	struct rest_states none = {0};

	return json_pack("{s:o, s:o, s:I, s:I, s:I, s:s, s:I, s:o}", "jid", ended_id(e), "name",
			rest_text(r->name), "start-time", (json_int_t)r->submitted_ms, "end-time",
			(json_int_t)r->ended_ms, "duration",
			(json_int_t)(r->ended_ms - r->submitted_ms), "state", rest_end_name(e),
			"last-modification", (json_int_t)r->ended_ms, "tasks",
			rest_states_lower(&none));
}

void rest_get_jobs_overview(struct rest_call *call)
{
	json_t *jobs = json_array();
	const struct ended_job *e;
	struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(call->coordinator, i)) != NULL; i++)
		json_array_append_new(jobs, overview(jm));
	for (uint32_t i = 0; (e = coordinator_ended_at(call->coordinator, i)) != NULL; i++)
		json_array_append_new(jobs, ended_overview(e));
	rest_answer(call, 200, json_pack("{s:o}", "jobs", jobs));
}
