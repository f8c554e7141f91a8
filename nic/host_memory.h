#pragma once

/*
 * host_memory: one large piece of memory for operator state, taken at start; and a process at a
 * time that takes hugepages, so that two which start together do not count the same free ones.
 *
 * Place    nic.
 * Memory   hugepages when asked for (-ENOMEM with the command that gives them when there are too
 *          few); else ordinary pages, which the kernel may join to huge ones (THP).
 * Time     claim waits for `wait_ms` at most.
 * Life     { host_memory_claim, host_memory_map, host_memory_yield }, host_memory_unmap.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nobody else of this host who asks is counting or taking hugepages until host_memory_yield, or the
 * end of this process.  -1: somebody was for longer than `wait_ms`, or this host has none. */
int host_memory_claim(uint32_t wait_ms);
void host_memory_yield(int claim);

/* Whether that much would be granted in hugepages now. */
bool host_memory_has_hugepages(size_t bytes);

int host_memory_map(void **out, size_t bytes, bool use_hugepages, char error[512]);
void host_memory_unmap(void *memory, size_t bytes);
