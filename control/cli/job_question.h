#pragma once

/*
 * job_question: what the commands that ask a running coordinator have in common: options, the job
 * they are about, and reading answers.
 *
 * Place    control/cli; over REST only.
 * Thread   one; blocks while it asks.
 * Memory   in the struct; texts of argv and `help` are borrowed.
 * Errors   an exit code (exit_codes.h), the one message on standard error; with --json an object
 *          (cli_error.h) on standard output as well.
 * Life     initialised with command, help and needs_job; read; then questions.
 */

#include "control/cli/rest_option.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_TARGET_BYTES = 256, JOB_TIME_BYTES = 32 };

/* Lines for --help. */
#define JOB_QUESTION_HELP                                                                          \
	REST_OPTIONS_HELP("")                                                                      \
	"  --json            one JSON object instead of a table\n"                                 \
	"  --help\n"

struct job_question {
	const char *command, *help;
	bool needs_job, takes_checkpoints;
	bool takes_stop;       /* --savepoint DIR, --drain */
	bool takes_directory;  /* a second argument, which may be absent */
	bool takes_full;       /* --full */
	bool takes_dispose;    /* --dispose PATH, for the job */
	bool is_json, is_full;
	bool must_drain;
	const char *directory; /* NULL: none */
	const char *dispose;   /* NULL: no */
	bool is_failed_only;   /* --failed */
	int64_t checkpoint_id; /* --id; 0: none */
	struct rest_option rest;
	struct rest_server server;
	char job[64];          /* its id, found by id or name */
};

/* -1: go on; else the exit code. */
int job_question_read(struct job_question *q, int argc, char **argv);

/* The message and its exit code. */
int job_question_usage(const struct job_question *q, const char *what);
int job_question_complain(const struct job_question *q, const char *error);

/* GET; the answer is the caller's.  Else an exit code after complaint. */
int job_question_get(const struct job_question *q, const char *target, json_t **answer);

/* ---- reading answers ---- */

void job_print_json(const json_t *json);
int64_t job_number(const json_t *object, const char *key);
/* "-" when there is none. */
const char *job_text(const json_t *object, const char *key);
/* Wall-clock milliseconds as people read them; "-" for none. */
const char *job_time(int64_t ms, char text[JOB_TIME_BYTES]);
/* "7 ms", "1.5 s", or "-" for what is not there yet. */
const char *job_duration(int64_t ns, char text[JOB_TIME_BYTES]);
