#pragma once

/*
 * acknowledgement: what a task reports of its part of a checkpoint (flink-semantics 2.2).
 *
 * Place    control/coordinator, the floor of the rules.
 * Thread   plain values.
 */

#include "control/coordinator/snapshot_state.h"
#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

/* How a checkpoint passed a subtask in the end. */
enum alignment_end {
	ENDED_ALIGNED,
	ENDED_UNALIGNED,
	ENDED_TIMED_OUT, /* began aligned */
};

struct subtask_metrics {
	int64_t alignment_ns;
	int64_t start_delay_ns;
	int64_t processed_bytes; /* during alignment */
	int64_t persisted_bytes; /* during alignment: in-flight data */
	int64_t sync_ns, async_ns;
	int64_t checkpointed_bytes; /* written by this checkpoint */
	int64_t state_bytes;        /* all of the state */
	bool is_unaligned;
	enum alignment_end ended;
	/* Of what was in flight: channels that had data, buffers, files. */
	uint32_t channel_count, buf_count, file_count;
	/* On the monotonic clock of the task's host: the trigger came in (0: it came as a barrier),
	 * the synchronous part began, all was durable, the acknowledgement left. */
	uint64_t heard_ns, began_ns, ended_ns, sent_ns;
};

/* What was in flight in one channel: a gate's number among the inputs or the outputs of the task,
 * and the channel's in it. */
struct channel_metrics {
	bool is_output;
	uint32_t gate, channel;
	uint32_t buf_count;
	uint64_t bytes;
};

/* PL-6. */
enum finish_flag {
	FINISH_NONE,
	FINISH_OPERATORS_FINISHED,
	FINISH_RESTORED_AS_FINISHED,         /* with all of its vertex */
	FINISH_SUBTASK_RESTORED_AS_FINISHED, /* of a vertex that had finished in part */
};

struct acknowledgement {
	uint32_t subtask; /* of the execution graph; UINT32_MAX or any other number: unknown */
	struct attempt_id attempt;
	int64_t checkpoint_id;
	struct subtask_metrics metrics;
	enum finish_flag finish;
	struct snapshot_state state; /* taken by the call it is given to */
	uint32_t kept_count;         /* channels with data in flight, inputs first */
	struct channel_metrics *kept; /* stays the caller's */
};
