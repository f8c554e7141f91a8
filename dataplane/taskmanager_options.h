#pragma once

/*
 * taskmanager_options: the command line of weir-taskmanager.
 *
 * Place    beside taskmanager_main.c, the only user.
 * Thread   one, at start.
 * Memory   borrows the texts of argv.
 * Errors   an exit code; what is wrong is then on standard error.
 */

#include "control/cli/job_options.h"

struct taskmanager_options {
	struct job_options job;
	const char *coordinator; /* HOST:PORT; NULL: as the config says */
	int parent;              /* 0: none */
	bool must_probe, is_json;
};

/* false: the program ends with `*exit_code`; help and version are then printed. */
bool taskmanager_options_take(
		struct taskmanager_options *o, int argc, char **argv, int *exit_code);
