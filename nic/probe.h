#pragma once

/*
 * probe: what this host gives us, as facts; `weir doctor` judges them.
 *
 * Place    nic; runs in weir-taskmanager --probe, before any EAL.
 * Thread   one.
 * Memory   the caller owns the JSON it gets.
 * Errors   what cannot be read is null; NULL means out of memory.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct topology;

/* All facts.  `root` stands in front of /proc and /sys; "" is this host. */
json_t *probe_collect(const char *root, const struct topology *t);

/* The parts of it. */
json_t *probe_cores(const char *root, const struct topology *t);
json_t *probe_memory(const char *root);
json_t *probe_hugepages(const char *root);
json_t *probe_nics(const char *root);
json_t *probe_io_uring(const char *root);

enum probe_uring {
	PROBE_URING_WORKS,
	PROBE_URING_OLD_KERNEL, /* the kernel has none */
	PROBE_URING_SYSCTL,	/* kernel.io_uring_disabled */
	PROBE_URING_SECCOMP,	/* a filter of the container or unit */
	PROBE_URING_MEMLOCK,
	PROBE_URING_OTHER,
};

struct probe_uring_facts {
	int error;	    /* of the system call; 0: it worked */
	int64_t disabled;   /* kernel.io_uring_disabled; -1: there is no such switch */
	int64_t seccomp;    /* mode of this process; 2: a filter */
	bool is_new_kernel; /* 5.1 or later */
};

enum probe_uring probe_uring_verdict(const struct probe_uring_facts *facts);

/* Prints the facts: JSON in one line, or indented for people.  Returns an exit code. */
int probe_main(bool json);
