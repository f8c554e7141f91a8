#pragma once

/*
 * rest_world: a coordinator in a directory of its own, and questions to its REST.
 *
 * Place    tests.
 * Thread   one; the loop runs only when the test turns it.
 * Memory   one world a process; answers are the caller's (json_decref).
 * Errors   a failure of the test.
 * Life     init, { ask }*, fini.  close and open stand for a coordinator's end and the next one.
 */

#include <jansson.h>

struct coordinator;
struct job_master;
struct loop;

struct rest_world {
	struct loop *loop;
	struct coordinator *coordinator;
};
extern struct rest_world rest_world;

/* A job "paced": make (2) -> counting (2). */
extern const char rest_world_job[];

void rest_world_init(void);
void rest_world_fini(void);
void rest_world_open(void);
void rest_world_close(void);

/* The answer, which must be JSON, with that status. */
json_t *rest_ask(const char *method, const char *target, const char *body, int status);
/* "(none)" when there is no text. */
const char *rest_text_at(const json_t *json, const char *key);
/* An error that says `part`. */
void rest_refused(const char *method, const char *target, const char *body, int status,
		const char *part);
/* The answer has all that the sample has. */
void rest_as_flink(const char *sample, const char *target);

/* A body for POST /jobs with one override; to be freed. */
char *rest_submission(const char *text, const char *set_text);
/* Submits the job of above. */
struct job_master *rest_submit(void);
