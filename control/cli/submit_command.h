#pragma once

/*
 * submit_command: `weir submit JOB.yaml`: hands a job to a coordinator that runs already, and
 * follows it to its end or leaves it alone.
 *
 * Place    control/cli; over REST only.  Plug-ins are opened by the coordinator and by the
 *          TaskManagers, not here.
 * Thread   one.
 * Memory   options borrow the texts of argv.
 * Errors   an exit code (exit_codes.h).
 *
 * What it asks of the coordinator is in run_command.h.
 */

#include "control/cli/job_options.h"
#include "control/cli/local_path.h"
#include "control/cli/rest_option.h"

struct submit_options {
	const char *job_path;
	struct rest_option rest;
	struct rest_server server;
	bool is_detached, is_json, is_quiet;
	char restore[LOCAL_PATH_BYTES]; /* "none", "latest", an absolute path */
	struct job_options job;
};

/* -1: go on; else the exit code. */
int submit_options_read(struct submit_options *o, int argc, char **argv);

int submit_command(int argc, char **argv);
