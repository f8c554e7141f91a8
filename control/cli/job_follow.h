#pragma once

/*
 * job_follow: a job on a coordinator, handed over and followed to its end: what `weir run` and
 * `weir submit` have in common.
 *
 * Place    control/cli; over REST only.
 * Thread   one; asking blocks for a moment.
 * Memory   in the struct but for `summary`; the texts of a handover are borrowed.
 * Errors   an exit code (exit_codes.h), its one message told and kept in `error`.
 * Life     job_follow_init, submit, { look, pause }*, report, job_follow_release.
 */

#include "control/cli/cli_error.h"
#include "control/cli/rest_call.h"
#include "control/cli/run_print.h"

/* What the coordinator is given. */
struct job_handover {
	const struct job_source *source; /* the file, its --set, where its plug-ins lie */
	const char *const *settings;     /* "KEY=VALUE", before `config:` of the file */
	uint32_t setting_count;
	const char *restore;             /* "none", "latest", a path */
	bool must_allow_rewind;
	char id[ID128_TEXT_BYTES];       /* under which it may be repeated */
};

struct job_follow {
	const char *command; /* "run", for messages */
	bool is_json, is_quiet;
	struct rest_server server;
	char job_id[64];     /* "" until it is in */
	char job_name[128];
	json_t *summary;     /* the last one; NULL: none yet */
	bool is_unknown;     /* this coordinator has no such job */
	bool must_hurry;     /* its end is near */
	bool has_reported;   /* the result is on standard output */
	char error[CLI_ERROR_BYTES]; /* what was complained of last */
	/* the module's own */
	char failure[1024]; /* the last one told */
	struct run_progress progress;
	uint64_t began_ns, asked_ns;
};

void job_follow_init(struct job_follow *f, const char *command, bool is_json, bool is_quiet);
void job_follow_release(struct job_follow *f);

/* For people who do not want it quiet. */
void job_follow_say(struct job_follow *f, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
/* In the way of going on: for people, and for the object of --json. */
void job_follow_complain(struct job_follow *f, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

/* -1: the job is in, or nobody answered, of which nothing is told (`*silence`: the -errno; else 0);
 * or the exit code after complaint.  The same handover again is the same job. */
int job_follow_submit(struct job_follow *f, const struct job_handover *h, int *silence);

/* When it is time: asks how the job is and shows it. */
void job_follow_look(struct job_follow *f);
/* Until something may be new. */
void job_follow_pause(const struct job_follow *f);
bool job_follow_has_ended(const struct job_follow *f);

/* The result, or how far the job is.  Its exit code. */
int job_follow_report(struct job_follow *f);
