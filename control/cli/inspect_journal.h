#pragma once

/*
 * inspect_journal: `weir inspect` of the journal of a nic-source: its segments, first and last
 * packet, and whether every byte is as it was written.
 *
 * Place    control/cli; reads files only.
 * Errors   an exit code (exit_codes.h): 5 when records that were durable cannot be read.
 */

#include <stdbool.h>

/* Whether it is the directory of a journal: of one subtask, or with one for each of them in it. */
bool inspect_is_journal(const char *path);
int inspect_journal(const char *path, bool json);
