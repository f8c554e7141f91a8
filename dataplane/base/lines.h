#pragma once

/*
 * lines: zeroed memory in whole cache lines, for what one lcore owns or two share.
 *
 * Place    base.
 * Thread   any; used while building, never on a worker.
 * Memory   the caller's; freed with free().
 * Errors   NULL when there is none.
 */

#include "dataplane/base/limits.h"

#include <stdlib.h>
#include <string.h>

/* At least 1 byte is asked for; the first byte starts a line, and nothing else shares the last. */
static inline void *lines_alloc(size_t bytes)
{
	if (bytes > SIZE_MAX - LINE_BYTES)
		return NULL;

	size_t rounded = (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
	void *memory = aligned_alloc(LINE_BYTES, rounded);

	if (memory != NULL)
		memset(memory, 0, rounded);
	return memory;
}
