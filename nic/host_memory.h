#pragma once

/*
 * host_memory: one large piece of memory for operator state, taken at start.
 *
 * Place    nic.
 * Memory   hugepages when asked for (-ENOMEM with the command that gives them when there are too
 *          few); else ordinary pages, which the kernel may join to huge ones (THP).
 * Life     host_memory_map, host_memory_unmap.
 */

#include <stdbool.h>
#include <stddef.h>

/* Whether that much would be granted in hugepages now. */
bool host_memory_has_hugepages(size_t bytes);

int host_memory_map(void **out, size_t bytes, bool use_hugepages, char error[512]);
void host_memory_unmap(void *memory, size_t bytes);
