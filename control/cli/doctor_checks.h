#pragma once

/*
 * doctor_checks: from the facts about a host to what is fine, what is missing, and what mends it.
 *
 * Place    control/cli; pure, but for a look at the checkpoint directory.
 * Thread   any.
 * Memory   in the report.
 * Errors   facts that are not there make a row that says so.
 */

#include "control/config/config.h"

#include <jansson.h>

enum doctor_state { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

enum { DOCTOR_ROWS_MAX = 64 };

struct doctor_row {
	enum doctor_state state;
	char item[64];
	char is[256];	  /* what is */
	char needed[256]; /* what is needed */
	char fix[512];	  /* the command that brings it; empty: nothing to do */
};

struct doctor_report {
	uint32_t count;
	struct doctor_row rows[DOCTOR_ROWS_MAX];
};

/* `facts` is what weir-taskmanager --probe --json prints. */
void doctor_judge(const json_t *facts, const struct config *config, struct doctor_report *report);

/* One row about the directory of checkpoints on this host. */
void doctor_judge_directory(const struct config *config, struct doctor_report *report);

enum doctor_state doctor_worst(const struct doctor_report *report);
const char *doctor_state_name(enum doctor_state state);
