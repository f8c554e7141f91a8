#pragma once

/*
 * soak_plan: what one seed of the soak runs: the dataflow, the settings, and what goes wrong.
 *
 * Place    tests.
 * Memory   plain values; everything follows from the seed.
 */

#include "dataplane/task/deployment.h"
#include "tests/soak/numbered_records.h"

#include <stdio.h>

enum {
	SOAK_VERTICES_MAX = 4,
	SOAK_EDGES_MAX = 4,
	SOAK_PARALLELISM_MAX = 8,
	SOAK_FAULTS_MAX = 4,
	SOAK_WORKERS_MAX = 3,
};

struct soak_vertex {
	char uid[8];
	enum numbered_operator op;
	uint32_t parallelism;
	enum numbered_order order; /* while the parallelism is what it was at the start */
	bool must_share; /* all its subtasks get all records */
	uint64_t delay_ns;
};

struct soak_edge {
	uint32_t from, to;
	enum deployment_partition partition;
};

/* How the job's barriers behave. */
enum soak_mode { SOAK_ALIGNED, SOAK_UNALIGNED, SOAK_TIMEOUT, SOAK_AT_LEAST_ONCE };

/* How an attempt of the job ends before its time. */
enum soak_fault {
	SOAK_KILL,          /* SIGKILL at some turn */
	SOAK_KILL_AT_ACK,   /* when an acknowledgement has come */
	SOAK_KILL_COMPLETE, /* when a checkpoint has completed, before or after the word is out */
	SOAK_CANCEL,
	SOAK_FAIL,          /* an operator fails */
	SOAK_STOP,          /* cancelled as soon as a checkpoint has completed, and changed */
	SOAK_FAULTS_COUNT,
};

struct soak_plan {
	uint64_t seed;
	uint32_t vertex_count, edge_count;
	struct soak_vertex vertices[SOAK_VERTICES_MAX];
	struct soak_edge edges[SOAK_EDGES_MAX];
	uint32_t streams, count, largest;
	bool is_tiny;
	bool is_at_least_once;
	bool can_rescale;
	uint32_t buf_bytes, credit_count, queue_count, key_group_count, worker_count;
	uint64_t flush_ns;
	bool has_plain_channels;
	uint32_t concurrent_max, subtasks_per_file, inline_bytes_max;
	const char *storage;
	bool is_on_disk; /* else in memory */
	uint32_t disk_delay; /* turns that the answers of the disk take, at most */
	uint32_t fault_count;
};

/* One attempt: how it is run, and how it ends. */
struct soak_life {
	uint32_t number; /* 0: the one that nothing disturbs */
	enum soak_mode mode;
	int64_t timeout_ms;
	uint32_t parallelism[SOAK_VERTICES_MAX];
	bool is_changed; /* the parallelism is, or was, not the plan's: no order is promised */
	bool is_last; /* it runs to its end */
	enum soak_fault fault;
	uint32_t fault_turn;  /* per mille of the turns of the calm one */
	uint32_t fault_count; /* acknowledgements, completions, or records taken */
	uint32_t fault_vertex;
	uint32_t triggers, aborts; /* per mille of turns, and of triggers */
	uint32_t savepoints;       /* per mille of triggers */
};

void soak_plan_draw(struct soak_plan *p, uint64_t seed);

/* The calm one. */
struct soak_life soak_life_calm(const struct soak_plan *p);
/* The one of that number, 1 and up; `before` is the one in front of it. */
struct soak_life soak_life_draw(
		const struct soak_plan *p, uint32_t number, const struct soak_life *before);

const char *soak_mode_name(enum soak_mode mode);
const char *soak_fault_name(enum soak_fault fault);
/* For people: the dataflow and the settings, in a line. */
void soak_plan_print(const struct soak_plan *p, FILE *to);
