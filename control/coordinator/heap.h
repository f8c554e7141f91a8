#pragma once

/*
 * heap: allocation that does not fail.
 *
 * Place    control/coordinator, the floor.  Only for what is small and ours; never with a size that
 *          came from outside unchecked.
 * Errors   none: out of memory ends the process like any crash, and recovery handles that.
 */

#include <stddef.h>
#include <stdint.h>

/* Zeroed; `count` 0 gives an object that may be freed. */
void *heap_zeroed(size_t count, size_t size);
/* Like realloc to `count` items. */
void *heap_resize(void *old, size_t count, size_t size);
void *heap_copy(const void *from, size_t count, size_t size);
/* NULL gives NULL. */
char *heap_text(const char *text);
/* A text made as by printf. */
char *heap_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
