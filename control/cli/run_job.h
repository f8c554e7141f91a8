#pragma once

/*
 * run_job: the supervisor of `weir run`: children up, job in, job watched, children down.
 *
 * Place    control/cli.
 * Thread   one.
 * Errors   an exit code.
 */

#include "control/cli/run_link.h"
#include "control/config/job_file.h"

struct run_options {
	const char *job_path;
	const char *config_path;               /* NULL: none */
	const char *const *defines, *const *sets;
	uint32_t define_count, set_count;
	uint32_t taskmanager_count;
	struct run_link link;                  /* the job is on all of them, joined by it */
	const char *restore;                   /* "none", "latest", a path */
	bool must_allow_rewind, is_json, is_quiet;
};

int run_job(const struct run_options *options, const struct config *config,
		const struct job_spec *spec);
