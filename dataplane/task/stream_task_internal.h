#pragma once

/* stream_task_internal: what stream_task.c (turn), stream_task_input.c (what is taken) and
 * stream_task_checkpoint.c (mail and barriers) share. */

#include "dataplane/base/clock.h"
#include "dataplane/base/limits.h"
#include "dataplane/channel/input_gate.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/checkpoint/barrier_handler.h"
#include "dataplane/checkpoint/checkpoint_responder.h"
#include "dataplane/checkpoint/input_persister.h"
#include "dataplane/checkpoint/operator_files.h"
#include "dataplane/journal/journal.h"
#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"
#include "dataplane/operator/chain.h"
#include "dataplane/task/stream_task.h"

/* Where the task stands on its way from start to end. */
enum task_phase {
	PHASE_CREATED,
	PHASE_RUNNING,          /* input is taken */
	PHASE_LAST_WATERMARK,   /* all input is in; event time goes to its end */
	PHASE_FINISH,           /* finish hooks, head to tail */
	PHASE_END_OF_DATA,      /* tell the consumers and the coordinator */
	PHASE_AWAIT_FINAL,      /* the final checkpoint; events are still taken */
	PHASE_CLOSING,          /* publishes, running snapshots, queued buffers */
	PHASE_END_OF_PARTITION, /* the last word to the consumers */
	PHASE_CANCELING,        /* only what cannot be taken back is awaited */
	PHASE_ENDED,
};

struct stream_task {
	struct stream_task_config config;
	struct checkpoint_responder responder;
	enum task_phase phase;
	enum task_status status;
	uint64_t now_ns;
	uint64_t not_before_ns;
	uint64_t called_ns;      /* when the call of the chain that is under way began */
	uint64_t rests_until_ns; /* while what was in flight is written: see rests() */

	struct subtask_checkpoint_coordinator *checkpoints;
	struct journal *journal;	   /* of its source, or NULL */
	struct barrier_handler *handler;   /* NULL: no inputs */
	struct input_persister *persister; /* NULL: no inputs */
	int64_t input_known_id; /* all its barriers are in, not all that they overtook; 0: none */
	uint32_t first_channel[GATES_PER_TASK_MAX]; /* number of each gate's channel 0 */
	uint64_t bytes_seen[GATES_PER_TASK_MAX];    /* IG-4 */
	uint32_t channel_count;
	uint32_t ended_channel_count; /* end of data was taken */
	uint32_t next_gate;           /* fairness between gates */
	enum stop_mode stop_mode;

	int64_t latest_reported_id;   /* TK-9 */
	int64_t final_minimum_id;     /* 13.3; 0: not set */
	bool is_final_complete;
	int64_t sync_savepoint_id;    /* 13.3; 0: none */
	/* They came between the end of input and end of data; oldest first. */
	uint32_t deferred_count;
	struct checkpoint_request deferred[CHECKPOINTS_IN_FLIGHT_MAX];

	uint64_t turn_ns; /* start of the previous turn */
	struct stream_task_times times;
	struct stream_task_progress progress;
};

void stream_task_enter_step(struct stream_task *t, enum checkpoint_step step);

/* True while records, events and timers may act: it is not in the middle of its last words. */
bool stream_task_can_take(const struct stream_task *t);

/* Receives, and handles what is to be handled ahead of the line, whatever else holds the task up
 * (IG-2).  Returns how much was done. */
uint32_t stream_task_hear(struct stream_task *t);

/* While an unaligned checkpoint waits for other channels: takes the ends of those that have nothing
 * else before them (BH-8), also when the chain stands still in the middle of another channel. */
uint32_t stream_task_take_ends(struct stream_task *t);

/* Takes a bounded share of input: records, watermarks, events.  Returns how many items. */
uint32_t stream_task_take_input(struct stream_task *t);
/* The same for a source. */
uint32_t stream_task_poll_source(struct stream_task *t);

/* Events that concern checkpoints (IG-1), `channel` numbered through all gates. */
void stream_task_on_arrival(struct stream_task *t, uint32_t channel, const struct event *barrier);
void stream_task_on_announcement(
		struct stream_task *t, uint32_t channel, const struct event *barrier);
void stream_task_on_barrier(struct stream_task *t, uint32_t channel, const struct event *barrier,
		enum barrier_way way);
void stream_task_on_cancel(struct stream_task *t, uint32_t channel, const struct event *cancel);
void stream_task_on_end_of_partition(struct stream_task *t, uint32_t channel);

/* Hands over what has come for channel state; finishes the input once all is in. */
uint32_t stream_task_persist_input(struct stream_task *t);

/* Performs the triggers that waited for the end of data to be out. */
void stream_task_run_deferred_triggers(struct stream_task *t);

uint32_t stream_task_open_channels(const struct stream_task *t);
