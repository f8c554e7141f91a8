#pragma once

/*
 * files_list: the files that a source's `path` means: one file, the files of a directory, or those
 * that fit a pattern.
 *
 * Place    control/coordinator.
 * Thread   any; blocks.
 * Memory   the array and its texts are one list, freed by files_list_free.
 * Errors   -errno with one line: nothing there, nothing fits, no right to read.
 * Order    by name, as bytes, so that it is the same everywhere.  In a directory hidden files and
 *          what is no file are passed over.
 */

#include <stdint.h>

enum { FILES_TEXT_BYTES = 1024, FILES_COUNT_MAX = 1 << 20 };

int files_list(const char *path, char ***files, uint32_t *count, char text[FILES_TEXT_BYTES]);
void files_list_free(char **files, uint32_t count);
