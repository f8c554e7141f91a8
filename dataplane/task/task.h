#pragma once

/*
 * task: one attempt of one subtask as the control thread knows it (flink-semantics 12.3), and all
 * that belongs to it.
 *
 * Place    task; made by task_group, called by taskmanager.
 * Thread   the control thread; `stream` and what it works with are the worker's from MAIL_ATTACH
 *          until is_detached.
 * Life     filled by task_group, posted to its worker, detached, freed with its group.
 */

#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"
#include "dataplane/operator/chain.h"
#include "dataplane/task/report.h"
#include "dataplane/task/stream_task.h"

#include <stdatomic.h>

struct buf_pool;
struct channel_state_writer;
struct journal;
struct mail;
struct report_roll;
struct store;
struct task_group;
struct worker;

struct task {
	struct attempt_id attempt;
	char attempt_text[ID128_TEXT_BYTES];
	uint32_t vertex, subtask_index;
	bool is_finished_on_restore;
	enum task_status status; /* the last one reported */
	struct task_group *group;
	struct worker *worker;
	struct report_roll *roll; /* of the group */
	uint32_t mail_count; /* under way to it or back */
	atomic_bool is_detached; /* the worker has let go of it */
	int64_t acknowledged_id; /* the worker's: the newest checkpoint it has acknowledged */

	struct task_reporter reporter;
	struct event_port events;
	struct file_port file_port;
	struct operator_files *files;
	struct journal_port journal_port;
	struct journal *journal; /* of its source, or NULL */
	/* Shares of the worker's: each reaps its own completions. */
	struct store *writer_stores[ASYNC_PARTS_MAX], *files_store, *journal_store;
	uint32_t writer_count; /* snapshots at a time */
	struct state_writer *writers[ASYNC_PARTS_MAX];
	uint32_t operator_count;
	struct chain *chain;
	struct stream_task *stream;
	uint32_t input_count, output_count;
	struct input_gate *inputs[GATES_PER_TASK_MAX];
	struct output_gate *outputs[OUTPUTS_PER_TASK_MAX];
	uint32_t state_count;
	struct declared_state *states;
	uint32_t share; /* of the channel-state files, when the job has them */
	struct channel_state_writer *channel_state; /* NULL: the job has none */
	struct buf_pool *recovered; /* of buffers that were in flight, or NULL */
	struct buf_pool *rerouted;  /* the same of edges with another parallelism than then */
};

/* 12.3: what stands in the way of this trigger, or NULL. */
const char *task_refusal(const struct task *t, const struct checkpoint_request *request,
		enum decline_reason *reason);

/* Tasks that have not ended take notifications and events. */
bool task_is_alive(const struct task *t);
