#pragma once

/* rest_internal: what the files of control/rest share. */

#include "control/coordinator/coordinator.h"
#include "control/net/http_server.h"
#include "control/rest/rest.h"

#include <jansson.h>

struct checkpoint_record;
struct resource_row;

enum { REST_PART_BYTES = 256 };

/* One request on its way through its handler; what its path names has been found. */
struct rest_call {
	struct coordinator *coordinator;
	const struct http_request *request;
	struct http_response *response;
	struct job_master *job;                     /* :job */
	const struct ended_job *ended;              /* :ended, with no `job` then */
	uint32_t place;                             /* :vertex, in topological order */
	uint32_t subtask;                           /* :subtask, of that vertex */
	const struct checkpoint_record *checkpoint; /* :checkpoint */
	struct id128 request_id;                    /* :request */
	uint32_t member;                            /* :taskmanager */
};

/* ---- rest_answer.c ---- */

/* Takes `json`; NULL is out of memory. */
void rest_answer(struct rest_call *call, int status, json_t *json);
void rest_refuse(struct rest_call *call, int status, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
/* A string of any bytes: what is not UTF-8 is shown as '?'. */
json_t *rest_text(const char *text);
/* What failed, as Flink's clients expect it: class, stack-trace, serialized-throwable. */
json_t *rest_failure(const char *text);

/* Answers with how far an asynchronous operation is: nothing yet, `result` (owned here then; NULL
 * if it did not succeed), or why it failed, under the key that its path has for that. */
void rest_answer_operation(struct rest_call *call, const struct checkpoint_answer *a,
		const char *cause_key, json_t *result);
/* The body as an object, empty if there is none; NULL after a refusal. */
json_t *rest_body(struct rest_call *call);

/* Members of a body.  One that is absent or null leaves `*value` alone; one of another type is
 * refused: false. */
bool rest_read_text(
		struct rest_call *call, const json_t *body, const char *key, const char **value);
bool rest_read_bool(struct rest_call *call, const json_t *body, const char *key, bool *value);

/* "triggerId": zeros when absent. */
bool rest_read_trigger_id(struct rest_call *call, const json_t *body, struct id128 *id);

/* A value of the query into `value`; "" when absent. */
void rest_query(const struct rest_call *call, const char *key, char value[REST_PART_BYTES]);

/* Of a job's counters by operator: of each that takes packets from a port, how many those were that
 * were sent to it, and what became of them. */
json_t *rest_ledger(json_t *counters_by_uid);

/* What the links of all TaskManagers count together; null: there are none. */
json_t *rest_link_totals(const struct coordinator *c);

/* ---- facts ---- */

/* A vertex has the id of its uid. */
json_t *rest_vertex_id(const char *uid);
json_t *rest_job_id(const struct job_master *jm);
const struct job_vertex *rest_vertex(const struct job_master *jm, uint32_t place);
int64_t rest_start_ms(const struct job_master *jm);
/* -1: it goes on. */
int64_t rest_end_ms(const struct job_master *jm);
/* Of the record of a job that is over. */
const char *rest_end_name(const struct ended_job *e);
json_t *rest_plan(const struct job_master *jm);

/* How many attempts are in each state. */
struct rest_states {
	uint32_t total;
	uint32_t counts[EXECUTION_STATES_COUNT];
};
void rest_count_vertex(const struct job_master *jm, uint32_t place, struct rest_states *states);
struct rest_states rest_count_job(const struct job_master *jm);
/* By name, those that only Flink has included. */
json_t *rest_states_upper(const struct rest_states *states);
json_t *rest_states_lower(const struct rest_states *states);

/* Slots of a TaskManager that a job takes; one holds a subtask of every vertex. */
uint32_t rest_job_slots(const struct job_master *jm, uint32_t member);
uint32_t rest_used_slots(const struct coordinator *c, uint32_t member);

/* What one vertex adds to a checkpoint, and the checkpoint as a whole. */
json_t *rest_checkpoint_task(
		const struct job_master *jm, const struct checkpoint_record *r, uint32_t place);
uint32_t rest_first_subtask(const struct job_master *jm, uint32_t place);

/* ---- handlers ---- */

void rest_get_page(struct rest_call *call);
void rest_get_config(struct rest_call *call);
void rest_get_overview(struct rest_call *call);
void rest_get_taskmanagers(struct rest_call *call);
void rest_get_taskmanager(struct rest_call *call);
void rest_get_jobs(struct rest_call *call);
void rest_get_jobs_overview(struct rest_call *call);
void rest_get_job(struct rest_call *call);
void rest_get_job_status(struct rest_call *call);
void rest_get_job_plan(struct rest_call *call);
void rest_get_job_config(struct rest_call *call);
void rest_get_job_exceptions(struct rest_call *call);
void rest_get_checkpoints(struct rest_call *call);
void rest_get_checkpoints_config(struct rest_call *call);
void rest_get_checkpoint(struct rest_call *call);
void rest_get_checkpoint_subtasks(struct rest_call *call);
void rest_post_checkpoint(struct rest_call *call);
void rest_get_request(struct rest_call *call);
void rest_post_savepoint(struct rest_call *call);
void rest_get_savepoint(struct rest_call *call);
void rest_post_disposal(struct rest_call *call);
void rest_get_disposal(struct rest_call *call);
void rest_patch_checkpoints(struct rest_call *call);
void rest_patch_job(struct rest_call *call);
void rest_post_stop(struct rest_call *call);
/* The body of a stop that says how. */
void rest_stop_with_savepoint(struct rest_call *call, const json_t *body);
void rest_post_job(struct rest_call *call);
void rest_get_summary(struct rest_call *call);
void rest_get_numbers(struct rest_call *call);
void rest_get_coordinator_metrics(struct rest_call *call);
void rest_get_taskmanager_metrics(struct rest_call *call);
void rest_get_job_metrics(struct rest_call *call);
void rest_get_jobs_metrics(struct rest_call *call);
void rest_get_vertex_metrics(struct rest_call *call);
void rest_get_subtask_metrics(struct rest_call *call);
void rest_get_subtasks_metrics(struct rest_call *call);
void rest_get_backpressure(struct rest_call *call);
void rest_get_watermarks(struct rest_call *call);
void rest_get_prometheus(struct rest_call *call);
