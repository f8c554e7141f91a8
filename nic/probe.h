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

struct core_list;

struct probe_config {
	const char *root;              /* stands in front of /proc and /sys; "" is this host */
	const char *pmd_folder;        /* where DPDK's drivers are */
	const struct core_list *cores; /* weir.cores: which of them become workers */
};

/* All facts. */
json_t *probe_collect(const struct probe_config *config, const struct topology *t);

/* The parts of it. */
json_t *probe_cores(const char *root, const struct topology *t);
/* The cores of the workers, in their order, and those of the control thread; or why not. */
json_t *probe_workers(const struct topology *t, const struct core_list *cores);
json_t *probe_memory(const char *root);
json_t *probe_hugepages(const char *root);
/* `pmds` are those of probe_pmds. */
json_t *probe_nics(const char *root, const json_t *pmds);
json_t *probe_io_uring(const char *root);
/* Of the kernel, by name: whether it is up. */
json_t *probe_interfaces(const char *root);
/* What this process may: {"net_raw", "net_admin"}; null when it cannot be read. */
json_t *probe_capabilities(const char *root);

/* DPDK's network drivers in the shared objects of `folder`, with the PCI devices they are for. */
json_t *probe_pmds(const char *folder);
/* The name of the driver for a device ("0x8086", "0x10d3"), or NULL; lives as long as `drivers`. */
const char *probe_pmd_for(const json_t *drivers, const char *vendor, const char *device);
json_t *probe_pmd_names(const json_t *drivers);

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
int probe_main(const struct probe_config *config, bool json);
