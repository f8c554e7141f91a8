#pragma once

/* doctor_internal: reading facts and writing rows, for the files of doctor_checks.h. */

#include "control/cli/doctor_checks.h"

/* A new row of the report, to be filled in. */
struct doctor_row *doctor_add(
		struct doctor_report *report, enum doctor_state state, const char *item, ...)
		__attribute__((format(printf, 3, 4)));

#define SAY(field, ...) snprintf(field, sizeof(field), __VA_ARGS__)

enum { DOCTOR_SIZE_BYTES = 32 };

/* "4 gb"; "unknown" of a negative one. */
const char *doctor_size_text(int64_t bytes, char out[DOCTOR_SIZE_BYTES]);

/* -1: null or not there. */
int64_t doctor_integer(const json_t *object, const char *key);
const char *doctor_text(const json_t *object, const char *key, const char *otherwise);

/* Whether a port's name is that PCI address; 03:00.0 is 0000:03:00.0. */
bool doctor_is_same_address(const char *address, const char *port);

/* The port to other TaskManagers, and every NIC. */
void doctor_judge_ports(
		const json_t *facts, const struct config *config, struct doctor_report *report);
