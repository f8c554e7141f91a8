#pragma once

/* subtask_checkpoint_coordinator_internal: what subtask_checkpoint_coordinator.c (the checkpoint)
 * and subtask_channel_state.c (what was in flight) share. */

#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"

/* The asynchronous part of one checkpoint, with a writer of its own. */
struct async_part {
	struct state_writer *writer;
	int64_t checkpoint_id; /* 0: none */
	uint64_t began_ns;
	bool is_reported;      /* acknowledged, its state not released yet */
	bool has_in_flight;    /* channel state is part of it */
	struct checkpoint_metrics metrics;
};

struct subtask_checkpoint_coordinator {
	struct subtask_checkpoint_coordinator_config config;
	int64_t last_checkpoint_id;
	int64_t max_aborted_id;
	uint32_t aborted_count; /* oldest first */
	int64_t aborted[CHECKPOINTS_IN_FLIGHT_MAX];
	struct async_part parts[ASYNC_PARTS_MAX]; /* writer_count of them */
	struct checkpoint_options performed; /* of the last one */

	/* channel state; 0: none */
	int64_t prepared_id;       /* given to the writer last, or refused by it */
	int prepared_status;
	int64_t input_pending_id;  /* unaligned, its input is not known yet */
	int64_t output_pending_id; /* a timeoutable barrier of it waits in an output queue */
	int64_t timer_id;
	uint64_t timer_ns;
	bool is_closed;
};

/* The part of that checkpoint, or NULL. */
struct async_part *subtask_async_part(
		const struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id);

/* ---- subtask_channel_state.c ---- */

/* Channel state of that checkpoint is not wanted any more. */
void subtask_channel_state_drop(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text);
/* The checkpoint is given up, begun here or not: an older one whose channel state is not complete
 * ends with it, and younger ones below it get none (CS-12, CS-15). */
void subtask_channel_state_abort(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text);
/* Its barrier was broadcast: keeps what that has overtaken, sets the timer (14.2 steps 3 to 5). */
void subtask_channel_state_sent(struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, uint64_t now_ns);
/* Step 5, once no barrier of it waits in a queue any more.  Returns how much it did. */
uint32_t subtask_channel_state_finish_output(struct subtask_checkpoint_coordinator *c);
