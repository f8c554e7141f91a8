#pragma once

/*
 * topology_picture: this host as weir would use it: which core does what, which tasks run there,
 * which ports there are.  `weir topology` prints it as a table or draws it.
 *
 * Place    control/cli; pure: from the facts of weir-taskmanager --probe, the config and a job.
 * Thread   any.
 * Memory   in the picture; it borrows texts of facts, config and job.
 * Errors   facts that are not there leave gaps.
 */

#include "control/config/job_file.h"

#include <jansson.h>

enum { PICTURE_CORES_MAX = 512, PICTURE_PORTS_MAX = 64, PICTURE_TEXT_BYTES = 64 };
enum { PICTURE_USE_BYTES = 160 };

struct picture_core {
	int64_t os_index, logical_index, physical_index, node;
	int32_t worker; /* -1: none */
	bool is_allowed, is_control;
};

struct picture_port {
	const char *name; /* PCI address, or the name of a virtual device */
	const char *driver;
	const char *interface; /* its first one, or NULL */
	int64_t node;
	bool is_link;	 /* weir.link.port */
	bool is_packets; /* one of weir.nic.ports */
};

struct host_picture {
	const char *host, *kernel;
	const char *error; /* why no core becomes a worker, or NULL */
	int64_t memory_bytes, available_bytes;
	int64_t state_bytes, network_bytes; /* what a TaskManager reserves */
	const json_t *hugepages;
	uint32_t core_count, worker_count, port_count;
	struct picture_core cores[PICTURE_CORES_MAX]; /* by node, then physical core */
	struct picture_port ports[PICTURE_PORTS_MAX];
	struct config_list packets; /* weir.nic.ports */
	const struct job_spec *job; /* NULL: none to draw */
	bool is_spread;		    /* the job is spread over more than one TaskManager */
};

/* `job` may be NULL. */
void picture_take(struct host_picture *picture, const json_t *facts, const struct config *config,
		const struct job_spec *job);

/* The i-th task on a worker: "window (2/4)"; false behind the last.  Subtask i of every vertex runs
 * on worker i, counted round. */
bool picture_task(const struct host_picture *picture, int32_t worker, uint32_t index,
		char text[PICTURE_TEXT_BYTES]);

/* "worker 1", "control", "not allowed" or "". */
void picture_role(const struct picture_core *core, char text[PICTURE_TEXT_BYTES]);

/* "link to other TaskManagers", "packets to ingest, from out" with the vertices of the job that use
 * it, or "" of a port that weir leaves alone. */
void picture_use(const struct host_picture *picture, const struct picture_port *port,
		char text[PICTURE_USE_BYTES]);

/* For people; as JSON; as a drawing.  false: it could not be written. */
bool picture_print_table(const struct host_picture *picture, FILE *out);
bool picture_print_json(const struct host_picture *picture, FILE *out);
bool picture_print_svg(const struct host_picture *picture, FILE *out);
