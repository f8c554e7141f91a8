#pragma once

/* rest_internal: what the files of control/rest share. */

#include "control/coordinator/job_master.h"
#include "control/net/http_server.h"

#include <jansson.h>

struct coordinator;

enum { REST_SEGMENTS_MAX = 8 };

/* One request on its way to an answer. */
struct rest_exchange {
	struct coordinator *coordinator;
	const struct http_request *request;
	struct job_master *job;                   /* of a path with a job id */
	const char *arguments[REST_SEGMENTS_MAX]; /* what stands for ":", in order */
	int status;                               /* preset 200 */
};

/* Each answers with an object, or calls rest_refuse. */
typedef json_t *(*rest_handler)(struct rest_exchange *x);

/* Sets the status; the answer is {"errors": [text]}. */
json_t *rest_refuse(struct rest_exchange *x, int status, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
/* The body as an object; NULL after rest_refuse, which is then `*refusal`. */
json_t *rest_body(struct rest_exchange *x, json_t **refusal);

/* The 32 hex digits that stand for a vertex. */
void rest_vertex_id(const char *uid, char text[ID128_TEXT_BYTES]);

/* rest_cluster.c */
json_t *rest_overview(struct rest_exchange *x);
json_t *rest_config(struct rest_exchange *x);
json_t *rest_taskmanagers(struct rest_exchange *x);
json_t *rest_taskmanager(struct rest_exchange *x);

/* rest_jobs.c */
json_t *rest_jobs(struct rest_exchange *x);
json_t *rest_jobs_overview(struct rest_exchange *x);
json_t *rest_job_status(struct rest_exchange *x);
json_t *rest_job_config(struct rest_exchange *x);
json_t *rest_job_exceptions(struct rest_exchange *x);
json_t *rest_job_summary(struct rest_exchange *x);

/* rest_job.c */
json_t *rest_job(struct rest_exchange *x);
json_t *rest_job_plan(struct rest_exchange *x);

/* rest_submit.c */
json_t *rest_submit(struct rest_exchange *x);
json_t *rest_cancel(struct rest_exchange *x);
json_t *rest_stop(struct rest_exchange *x);

/* rest_checkpoints.c */
json_t *rest_checkpoints(struct rest_exchange *x);
json_t *rest_checkpoint_config(struct rest_exchange *x);
json_t *rest_checkpoint_trigger(struct rest_exchange *x);
json_t *rest_checkpoint_request(struct rest_exchange *x);

/* rest_checkpoint.c */
json_t *rest_checkpoint_details(struct rest_exchange *x);
json_t *rest_checkpoint_subtasks(struct rest_exchange *x);

/* ---- shared pieces ---- */

/* From the first moment to the last; end -1: it goes on. */
struct rest_span {
	int64_t start_ms, end_ms;
};

struct rest_span rest_span_of(const struct job_master *jm);
int64_t rest_span_ms(struct rest_span s);
json_t *rest_int(int64_t value);
void rest_job_id(const struct job_master *jm, char text[ID128_TEXT_BYTES]);

struct job_vertex;

const struct job_vertex *rest_vertex_at(const struct job_master *jm, uint32_t place);
/* How many current attempts of a vertex (UINT32_MAX: of all) are in that state. */
uint32_t rest_count_in(const struct job_master *jm, uint32_t place, const char *state);

enum { REST_STATES_COUNT = 10 };
/* Flink's execution states; those that do not exist here stay 0. */
const char *rest_state_name(uint32_t index);

struct checkpoint_record;
/* One checkpoint without its tasks. */
json_t *rest_checkpoint_object(const struct checkpoint_record *r);
