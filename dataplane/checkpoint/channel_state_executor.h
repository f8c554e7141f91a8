#pragma once

/*
 * channel_state_executor: what the subtasks of one worker that share their channel-state files
 * have in common (18.2, 18.3): the file of the checkpoint under way, the order of checkpoints, the
 * memory, and how much of the pool may hang on the disk.
 *
 * Place    checkpoint; made by task_group, used through channel_state_writer.
 * Thread   create_at and add on the control thread, before the tasks run; everything else happens
 *          on the worker of its subtasks, called by their writers.
 * Memory   all in the memory given to create_at.
 * Life     create_at, add for each subtask, use by writers; when all are idle the memory may be
 *          given back.
 *
 * CS-7: an executor is for at most max-subtasks-per-channel-state-file subtasks of one job on one
 * worker, chosen when they are deployed.
 *
 * A disk that hangs: a write that was issued cannot be taken back.  So of each channel only
 * `issued_in_max` + `issued_out_max` buffers are with the disk at a time; the others wait.  When
 * the disk has not answered for `patience_ns`, those that wait are copied into the staging memory,
 * and when that is full the checkpoint fails: no channel is ever without credit for longer.  While
 * the disk still does not answer, a new checkpoint is taken as long as there is a place for its
 * file beside those given up; its buffers are copied at once.
 */

#include "dataplane/base/ids.h"
#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct channel_state_executor;
struct channel_state_writer;
struct store;


struct channel_state_subtask {
	const char *vertex_uid; /* borrowed */
	uint32_t subtask_index;
	uint32_t input_count, output_count;
	uint32_t input_channels[GATES_PER_TASK_MAX];
	uint32_t output_channels[OUTPUTS_PER_TASK_MAX];
};

struct channel_state_executor_config {
	struct store *store;        /* borrowed; nobody else reaps it */
	const char *checkpoint_dir; /* borrowed; holds chk-<id>/ */
	struct attempt_id attempt;  /* of its first subtask, after which its files are named */
	uint32_t subtask_count;
	uint32_t channel_count;     /* inputs and outputs of all its subtasks */
	uint32_t buf_count;         /* buffers that all of them may hold in flight */
	uint32_t issued_in_max, issued_out_max; /* for each channel; 0: always copied */
	uint64_t staging_bytes;     /* a multiple of STORE_ALIGN_BYTES, 1 or more of them */
	uint64_t patience_ns;
	bool has_direct;            /* past the page cache; found by channel_state_probe */
};

enum {
	CHANNEL_STATE_PATIENCE_NS = 100000000,
	CHANNEL_STATE_SUBTASKS_MAX = 64, /* of one executor */
};

/* What a channel with so many credits may leave with the disk and still go on. */
static inline uint32_t channel_state_issued_in_max(uint32_t credit_count)
{
	return credit_count / 2;
}

static inline uint32_t channel_state_issued_out_max(uint32_t credit_count)
{
	return credit_count / 4;
}

/* A multiple of STORE_ALIGN_BYTES. */
uint64_t channel_state_executor_memory_bytes(const struct channel_state_executor_config *config);

/* `memory` is STORE_ALIGN_BYTES aligned. */
struct channel_state_executor *channel_state_executor_create_at(
		void *memory, const struct channel_state_executor_config *config);

/* The door for one more subtask. */
struct channel_state_writer *channel_state_executor_add(
		struct channel_state_executor *e, const struct channel_state_subtask *subtask);
