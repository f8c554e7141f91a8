#pragma once

/*
 * topology: which cores this process may use, and which of them become workers.
 *
 * Place    nic; topology.c is the only file that knows hwloc.
 * Thread   control thread, at start.
 * Memory   one topology object; nothing grows afterwards.
 * Errors   0 or -errno with one line that names the core and the reason.
 * Life     topology_open, ask, topology_close.
 *
 * A core here is what the kernel schedules on (a hardware thread).  It is allowed when it is
 * online, in the cpuset of our cgroup, and in the affinity mask we were started with.
 */

#include "dataplane/base/core_list.h"

#include <stddef.h>

enum { TOPOLOGY_ERROR_BYTES = 512, TOPOLOGY_LIST_BYTES = 1024 };

enum topology_set {
	TOPOLOGY_ONLINE,
	TOPOLOGY_CGROUP,
	TOPOLOGY_AFFINITY,
	TOPOLOGY_ALLOWED, /* all three */
};

struct topology_core {
	uint32_t os_index;	 /* the number the operating system gives it */
	uint32_t logical_index;	 /* its place in the machine, written L#3 */
	uint32_t physical_index; /* hardware threads of one physical core share it */
	int32_t node;		 /* NUMA node by number of the operating system; -1: unknown */
};

struct topology_choice {
	uint32_t count;
	struct topology_core cores[WORKERS_COUNT_MAX]; /* in the order of the workers */
	/* For the control thread: allowed cores that no worker has, or all allowed ones. */
	char control_cpus[TOPOLOGY_LIST_BYTES];
};

struct topology;

int topology_open(struct topology **out, char error[TOPOLOGY_ERROR_BYTES]);

/* A made-up machine ("pack:1 core:4 pu:2") for tests; lists such as "0-3" say what cgroup and
 * affinity leave. */
int topology_open_synthetic(struct topology **out, const char *description, const char *cgroup,
		const char *affinity, char error[TOPOLOGY_ERROR_BYTES]);

/* NULL is accepted. */
void topology_close(struct topology *t);

/* The i-th online core by logical index; false behind the last. */
bool topology_core_at(const struct topology *t, uint32_t index, struct topology_core *core);
bool topology_is_in(const struct topology *t, enum topology_set set, uint32_t os_index);
uint32_t topology_count(const struct topology *t, enum topology_set set);
/* "0-3,6" */
void topology_print_set(const struct topology *t, enum topology_set set, char *text, size_t size);

/* auto:N takes at most N allowed cores, distinct physical ones first.  A list is taken as it is,
 * in its order: -ENODEV (no such core online) or -EPERM (not allowed) name the first that cannot
 * be had. */
int topology_choose(const struct topology *t, const struct core_list *list,
		struct topology_choice *choice, char error[TOPOLOGY_ERROR_BYTES]);

/* "0 (L#0, node 0), 2 (L#1, node 0)" */
void topology_print_choice(const struct topology_choice *choice, char *text, size_t size);
