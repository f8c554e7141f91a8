#pragma once

/* task_group_internal: what task_group.c (tasks), task_group_channels.c (edges) and
 * task_group_in_flight.c, task_group_recover.c (what lies on them) share. */

#include "dataplane/channel/input_gate.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/checkpoint/operator_files.h"
#include "dataplane/checkpoint/savepoint_locations.h"
#include "dataplane/checkpoint/store_share.h"
#include "dataplane/task/report_roll.h"
#include "dataplane/task/task_group.h"
#include "dataplane/wire/buf.h"

struct remote_link;

struct task_plan {
	uint64_t chain_bytes, writer_bytes, files_bytes;
};

/* Where a subtask runs: here, with a peer (0 or more), or in another region. */
enum { PLACE_HERE = -1, PLACE_NOWHERE = -2 };

/* The channels of one edge: producer x consumers + consumer; forward edges have one each. */
struct edge_channels {
	uint32_t from, to;
	enum deployment_partition partition;
	uint32_t producer_count, consumer_count;
	uint32_t record_bytes, record_bytes_max; /* 0: variable; then the largest */
	struct channel_config channel;           /* of each */
	int32_t *producer_places, *consumer_places; /* PLACE_* or a peer's index */
	struct ring_channel **at; /* NULL where there is none, or none of ours */
};

struct task_group {
	struct task_group_config config;
	char job_text[ID128_TEXT_BYTES];
	char checkpoint_dir[1024];
	struct savepoint_locations *locations;
	struct weir_declaration *tails; /* of each vertex's last operator */
	struct task_plan *plans;        /* of each task */
	uint64_t memory_bytes, buffer_count;
	void *memory;
	uint32_t edge_count;
	struct edge_channels *edges;
	uint32_t share_count;
	struct channel_state_share *shares;
	char (*vertex_uids)[UID_BYTES_MAX];
	uint32_t link_count;
	struct remote_link **links; /* for each peer one for each queue that both have, at most */
	uint32_t rescaled_count;
	struct task_state **rescaled; /* while it is built: of vertices of another parallelism */
	struct report_roll roll;
	uint32_t task_count;
	struct task tasks[];
};

/* ---- task_group_journal.c ---- */

/* What the source of a task opens its journal through. */
struct journal_port task_group_journal_port(void);

static inline struct task *task_of_files(struct file_port *port)
{
	return (struct task *)((char *)port - offsetof(struct task, file_port));
}

static inline const char *task_group_uid(const struct task_group *g, uint32_t vertex)
{
	return g->config.deployment->vertices[vertex].uid;
}

/* Checks the edges and counts the buffers their channels may hold. */
int task_group_plan_channels(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES]);
int task_group_build_channels(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES]);
/* Fills inputs and outputs of one task. */
int task_group_build_gates(
		struct task_group *g, struct task *t, char error[TASKMANAGER_ERROR_BYTES]);
/* Puts the states of the checkpoint into one task; between decode_rescaled and free_rescaled. */
int task_group_restore_task(
		struct task_group *g, uint32_t index, char error[TASKMANAGER_ERROR_BYTES]);
int task_group_decode_rescaled(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES]);
void task_group_free_rescaled(struct task_group *g);
/* After the gates. */
void task_group_destroy_channels(struct task_group *g);

/* ---- task_group_links.c ---- */

/* Not started. */
int task_group_build_links(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES]);
void task_group_start_links(struct task_group *g);
/* Says so to links when the tasks are over; true when no worker has them any more. */
bool task_group_end_links(struct task_group *g);
/* Before the channels. */
void task_group_destroy_links(struct task_group *g);
