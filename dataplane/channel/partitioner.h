#pragma once

/*
 * partitioner: which channel of an edge each record of a batch goes to.
 *
 * Place    channel; part of an output gate.
 * Thread   the producer's worker.
 * Memory   none of its own; plain value.
 * Errors   -EINVAL from init for what a job file may get wrong.
 *
 * Decide, then scatter: this is the decision.  Forward (subtask i to subtask i) has one channel.
 * Hash goes by key group, so that a record meets the state of its key (key_group.h).  Rebalance
 * deals records out in turn; the turn goes on from batch to batch and begins anywhere, so that
 * many short attempts do not favour the first channels.  Broadcast decides nothing: each record
 * goes to each channel.
 */

#include "dataplane/base/limits.h"
#include "dataplane/operator/operator.h"

enum partitioner_kind {
	PARTITIONER_FORWARD,
	PARTITIONER_HASH,
	PARTITIONER_REBALANCE,
	PARTITIONER_BROADCAST,
};

struct partitioner_config {
	enum partitioner_kind kind;
	uint32_t channel_count;   /* forward: 1 */
	uint32_t key_group_count; /* hash: a power of two, at least channel_count */
	uint32_t key_offset, key_bytes; /* hash: where in a record */
	uint32_t first_turn; /* rebalance: whose turn is first, any number */
};

struct partitioner {
	enum partitioner_kind kind;
	uint32_t channel_count;
	uint32_t key_offset, key_bytes;
	uint32_t key_group_count;
	uint32_t turn; /* rebalance: the next channel */
	uint16_t channel_of_group[KEY_GROUPS_COUNT_MAX];
};

int partitioner_init(struct partitioner *p, const struct partitioner_config *config);

/* True when all records go to channel 0, so that there is nothing to decide. */
static inline bool partitioner_is_single(const struct partitioner *p)
{
	return p->channel_count == 1;
}

/* Nothing is decided: what is collected goes to all channels. */
static inline bool partitioner_is_broadcast(const struct partitioner *p)
{
	return p->kind == PARTITIONER_BROADCAST;
}

/* Fills targets[0..batch->count-1]; not for broadcast.  A variable record too short for its key
 * counts as padded with zeros. */
void partitioner_targets(
		struct partitioner *p, const struct weir_batch *batch, uint16_t *targets);
