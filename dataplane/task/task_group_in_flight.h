#pragma once

/*
 * task_group_in_flight: what lies between the tasks of a group when a checkpoint is taken: who
 * writes it, and how it is put back.
 *
 * Place    task; part of task_group.
 * Thread   the control thread.
 * Memory   the writers' lies in the piece that the group is built in; recovered buffers come from a
 *          pool of the heap, one for each task, which goes with the group.
 * Errors   0 or -errno with one line.
 */

#include "dataplane/task/task_group.h"

/* Tasks of one worker that share their files (CS-7). */
struct channel_state_share {
	struct worker *worker;
	uint32_t task_count, channel_count;
	uint32_t buf_count;     /* that the channels may hold */
	uint64_t partial_bytes; /* of one record begun in each input channel */
	uint64_t memory_bytes;
	struct store *store;
	struct channel_state_executor *executor;
};

/* Decides who shares with whom, and adds up the memory; after the channels are planned. */
int task_group_plan_in_flight(struct task_group *g, uint64_t *bytes);

/* Makes the writers of all tasks in `memory`; before the streams. */
int task_group_build_in_flight(
		struct task_group *g, uint8_t *memory, char error[TASKMANAGER_ERROR_BYTES]);

/* Puts back what was in flight in the checkpoint restored from (19.2): of a channel first what its
 * consumer had, then what its producer had; after all gates are there. */
int task_group_restore_in_flight(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES]);

/* The part of it that concerns edges with another parallelism at an end than then. */
int task_group_reroute_in_flight(
		struct task_group *g, const char *directory, char error[TASKMANAGER_ERROR_BYTES]);
bool task_group_is_rerouted(const struct task_group *g, uint32_t edge);

/* Writes the one line of why; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int in_flight_refuse(
		char error[TASKMANAGER_ERROR_BYTES], const char *format, ...);
/* The same, the edge named first. */
__attribute__((format(printf, 4, 5))) int in_flight_refuse_edge(const struct task_group *g,
		uint32_t edge, char error[TASKMANAGER_ERROR_BYTES], const char *format, ...);

/* After all gates are gone. */
void task_group_destroy_in_flight(struct task_group *g);
