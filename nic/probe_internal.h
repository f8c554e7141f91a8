#pragma once

/* probe_internal: reading /proc and /sys, for the files of probe.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_PATH_BYTES = 4096, PROBE_TEXT_BYTES = 65536 };

/* The whole small file; false when it cannot be read. */
bool probe_read(char *text, size_t size, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
/* The number a file begins with; `otherwise` when there is none. */
int64_t probe_read_number(int64_t otherwise, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
/* The last part of what a symbolic link points to. */
bool probe_read_link(char *name, size_t size, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
/* The number behind "NAME" in a text of lines; `otherwise` when it is not there. */
int64_t probe_find_number(const char *text, const char *name, int64_t otherwise);

/* The smallest limit on the way from our cgroup to the root; -1: none.  In `hundredths` of a core,
 * and in bytes. */
int64_t probe_cgroup_cpu_hundredths(const char *root);
int64_t probe_cgroup_memory_bytes(const char *root);
