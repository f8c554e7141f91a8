#pragma once

/*
 * doctor: `weir doctor` shows what this host gives weir, what is needed, and what mends it.
 *
 * Place    control/cli; asks weir-taskmanager --probe, for weir itself links neither DPDK nor
 * hwloc. Errors   an exit code: 0, or 3 when something that is needed is missing.
 */

#include "control/cli/doctor_checks.h"

int doctor_command(int argc, char **argv);

/* A table for people, or one JSON object.  false: out of memory. */
bool doctor_print(const struct doctor_report *report, FILE *out, bool json);
