#pragma once

/*
 * inspect_print: an inspect_report for people and for programs.
 *
 * Place    control/cli.
 * Errors   false: out of memory, or the output cannot be written.
 *
 * What comes from the checkpoint is foreign: control characters are not passed on to a terminal.
 */

#include <stdbool.h>
#include <stdio.h>

struct inspect_report;

bool inspect_print_table(const struct inspect_report *r, FILE *out);
bool inspect_print_json(const struct inspect_report *r, FILE *out);

/* When the checkpoint could not be read at all. */
bool inspect_print_json_error(const char *path, const char *text, FILE *out);
