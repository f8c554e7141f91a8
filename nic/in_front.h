#pragma once

/*
 * in_front: whether a function of ours stands in front of that of a library with its name.
 *
 * Place    nic; used by those that have one (port_guard, packet_fanout).
 * Thread   any.
 * Memory   none.
 * Errors   none.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The dynamic linker finds the program's before that of any library, if it was told of it. */
static inline bool is_in_front(const char *name, void (*ours)(void))
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return memcmp(&found, &ours, sizeof(found)) == 0;
}
