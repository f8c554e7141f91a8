#pragma once

/*
 * newer_output: what sinks have published after a checkpoint; a job that goes on from it would
 * write those records again.
 *
 * Place    control/restore; reads directories.
 * Thread   any; blocks.
 * Errors   none: a directory that cannot be read holds nothing.
 */

#include <stdbool.h>
#include <stdint.h>

enum { NEWER_OUTPUT_NAME_BYTES = 256 };

/* One part of the file sink `uid` in `directory` above checkpoint `id`. */
bool newer_output_find(const char *directory, const char *uid, int64_t id,
		char name[NEWER_OUTPUT_NAME_BYTES]);
