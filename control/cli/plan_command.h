#pragma once

/*
 * plan_command: `weir plan JOB.yaml` checks a job file and shows what it says.
 *
 * Place    control/cli; starts nothing, talks to nobody.
 * Errors   an exit code (exit_codes.h).
 */

#include "control/config/job_file.h"

int plan_command(int argc, char **argv);

/* A table for people, or one JSON object.  false: out of memory. */
bool plan_print(const struct job_spec *spec, FILE *out, bool json);
