#pragma once

/*
 * eal: starts and ends DPDK's environment for one TaskManager.
 *
 * Place    nic; used by taskmanager_main.c, the EAL fixture of tests and the benches.
 * Thread   the thread that calls eal_start becomes the main lcore (the control thread).
 * Memory   what the EAL takes is bounded by memory_bytes.
 * Errors   0 or -errno with one line.
 * Time     start waits for nobody; attach may, for the peer of a device.
 * Life     eal_sweep, eal_start, eal_attach, eal_stop; once a process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EAL_ERROR_BYTES = 512, EAL_LINE_BYTES = 2048, EAL_WORKER_CPUS_MAX = 64 };

struct eal_config {
	const uint32_t *worker_cpus; /* OS CPU of worker i, which becomes lcore i + 1 */
	uint32_t worker_count;       /* 1..EAL_WORKER_CPUS_MAX */
	const char *control_cpus;    /* OS CPU list of the control thread, "0-1" */
	bool use_hugepages;
	size_t memory_bytes;         /* rounded up to MiB */
	const char *const *ports;    /* those that are PCI addresses are taken, no other NIC is */
	uint32_t port_count;
	const char *const *extra;    /* weir.eal.args, checked by the configuration */
	uint32_t extra_count;
};

/* Starts the EAL.  `line` receives the final argument line, also on failure.  A device that comes
 * up only when its peer has come is left for eal_attach: that peer may be waiting for what this
 * process holds until its memory is taken. */
int eal_start(const struct eal_config *config, char line[EAL_LINE_BYTES],
		char error[EAL_ERROR_BYTES]);
int eal_attach(const struct eal_config *config, char error[EAL_ERROR_BYTES]);
void eal_stop(void);

/* Where the EAL finds its drivers. */
const char *eal_driver_folder(void);

/* Removes run directories (prefix weir-<pid>) of processes that are gone; returns how many.
 * Directories of other prefixes and of living processes are not touched. */
uint32_t eal_sweep(void);
