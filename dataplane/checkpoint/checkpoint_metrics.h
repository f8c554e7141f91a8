#pragma once

/*
 * checkpoint_metrics: what a task says of a checkpoint: why it declined, what it took.
 *
 * Place    checkpoint; plain values.
 */

#include <stdbool.h>
#include <stdint.h>

/* Semantics 9.1, those that a task can give. */
enum decline_reason {
	DECLINE_TASK_NOT_READY,
	DECLINE_TASK_CLOSING,
	DECLINE_TASK_FAILURE,
	DECLINE_SUBSUMED,
	DECLINE_ON_CANCELLATION_BARRIER,
	DECLINE_INPUT_END_OF_STREAM,
	DECLINE_ASYNC_EXCEPTION,
	DECLINE_SHARED_STREAM, /* CHANNEL_STATE_SHARED_STREAM_EXCEPTION */
	DECLINE_CHECKPOINT_SUBSUMED, /* a channel has seen a newer barrier (IC-8) */
	DECLINE_OTHER,
};

/* What a task is at, for people who wait for its acknowledgement. */
enum checkpoint_step {
	CHECKPOINT_STEP_NONE,     /* nothing: no barrier has come, or it has answered */
	CHECKPOINT_STEP_ALIGNING, /* some barriers have come */
	CHECKPOINT_STEP_SNAPSHOT, /* the synchronous part */
	CHECKPOINT_STEP_WRITING,  /* the asynchronous part */
};

/* How a checkpoint passed a subtask in the end. */
enum checkpoint_mode {
	CHECKPOINT_ALIGNED,   /* at least once too */
	CHECKPOINT_UNALIGNED, /* its barrier came overtaking */
	CHECKPOINT_TIMED_OUT, /* it began aligned, and overtook here: at an input or at an output */
};

/* Semantics 2.2, and what weir adds. */
struct checkpoint_metrics {
	int64_t alignment_duration_ns;
	int64_t bytes_processed_during_alignment;
	int64_t bytes_persisted_during_alignment;
	int64_t sync_duration_ns, async_duration_ns;
	int64_t start_delay_ns;
	int64_t bytes_persisted; /* written by this checkpoint */
	int64_t total_bytes;     /* of the state */
	/* On the monotonic clock of this host. */
	uint64_t heard_ns; /* the trigger came in; 0: it came as a barrier */
	uint64_t began_ns; /* the synchronous part began */
	uint64_t ended_ns; /* all was durable: the task acknowledged */
	bool is_unaligned;       /* it kept something in flight */
	enum checkpoint_mode mode;
	/* Of what was in flight: channels that had data, buffers, and files they went to. */
	uint32_t channel_count, buf_count, file_count;
};
