#pragma once

/*
 * deployment: the plain description of the tasks of one job that one TaskManager is to run.
 *
 * Place    task; filled by control/executor from a message, read by taskmanager_deploy.
 * Memory   everything is borrowed for the duration of taskmanager_deploy, but operator tables
 *          and what `values` point to, which live as long as the tasks (the owner of the job
 *          file keeps them until taskmanager says the job is gone).
 */

#include "dataplane/base/ids.h"
#include "dataplane/base/limits.h"
#include "dataplane/channel/net_path.h"
#include "dataplane/operator/operator.h"

enum deployment_partition {
	PARTITION_FORWARD,
	PARTITION_HASH,
	PARTITION_REBALANCE,
	PARTITION_BROADCAST,
};

struct deployment_operator {
	const char *uid;
	const struct weir_operator *op;
	const struct weir_value *values;
};

struct deployment_vertex {
	const char *uid;
	uint32_t parallelism;
	uint32_t operator_count;
	const struct deployment_operator *operators;
};

struct deployment_edge {
	uint32_t from, to; /* indexes of vertices */
	enum deployment_partition partition;
};

/* One attempt of one subtask. */
struct deployment_task {
	uint32_t vertex, subtask_index;
	struct attempt_id attempt;
	const uint8_t *state; /* encoded task_state to restore from, NULL: none */
	size_t state_bytes;
	bool is_finished; /* it had finished, and has no state (RE-10) */
};

/* Another TaskManager with subtasks of the region. */
struct deployment_peer {
	struct net_address address;
	uint64_t token; /* of the link between it and this one, for these attempts */
};

/* A subtask that runs there. */
struct deployment_remote {
	uint32_t vertex, subtask_index, peer;
};

/* An encoded task_state of a vertex that had another parallelism then. */
struct deployment_state {
	const uint8_t *bytes;
	size_t size;
};

struct deployment {
	struct job_id job;
	const char *job_name;
	uint32_t key_group_count;        /* a power of two */
	uint32_t channel_credit_count;   /* buffers a receiver grants, taskmanager.network... */
	uint32_t channel_queue_count;    /* buffers in the sender's output queue */
	bool has_plain_channels;         /* control is taken in line (weir.network.control-lane) */
	uint64_t buffer_timeout_ns;      /* execution.buffer-timeout */
	bool checkpointing; /* an interval is configured, or checkpoints can be asked for */
	bool is_at_least_once; /* execution.checkpointing.mode: barriers are counted, not aligned */
	bool unaligned;     /* barriers may overtake data (execution.checkpointing.unaligned) */
	uint32_t subtasks_per_channel_state_file; /* 1 or more (CS-7) */
	bool must_drop_in_flight; /* restore without channel state (RE-11) */
	uint32_t max_concurrent_checkpoints; /* 1..CHECKPOINTS_IN_FLIGHT_MAX */
	uint32_t state_inline_bytes_max; /* execution.checkpointing.data-inline-threshold */
	const char *checkpoint_dir;      /* <dir>/<job id>; chk-<id>/ are made by the coordinator */
	int64_t restored_checkpoint_id;  /* 0: none */
	const char *restored_dir;        /* where that checkpoint's files are; NULL: in
					  * checkpoint_dir/chk-<restored_checkpoint_id> */
	bool ignores_unclaimed_state; /* what no operator declares is left (RE-3) */
	bool is_leaving; /* the tasks commit what they are restored from, and end */
	uint32_t vertex_count, edge_count, task_count;
	uint32_t rescaled_count;
	const struct deployment_state *rescaled; /* by subtask, those of one vertex together */
	const struct deployment_vertex *vertices;
	const struct deployment_edge *edges;
	const struct deployment_task *tasks; /* those of the region that run here */
	uint32_t peer_count, remote_count;
	const struct deployment_peer *peers;
	const struct deployment_remote *remotes; /* the region's other subtasks: edges end inside
						  * it */
};
