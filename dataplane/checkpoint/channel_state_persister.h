#pragma once

/*
 * channel_state_persister: the pure rules of which buffers of one input channel belong to a
 * checkpoint (flink-semantics 17.5).
 *
 * Place    checkpoint; part of an input_persister, one for each channel.
 * Memory   plain values.
 * Errors   none: stale facts are part of the rules; start answers whether it may.
 * Life     init, { start, check, next, stop | cancel }*.
 *
 * How the rules are met on DESIGN's cut: what is before a barrier is known by number, so
 * "maybe persist" (PS-3) is a range [next, end) of sequence numbers.  It begins at the buffer that
 * is processed now, and ends at the boundary of the barrier; until that has come it has no end.
 * Control comes ahead of data: stop (PS-2) may come while buffers of the range are still under way,
 * and then leaves it to be filled.
 */

#include <stdbool.h>
#include <stdint.h>

#define PERSISTER_NO_END UINT64_MAX

enum persister_state {
	PERSISTER_COMPLETED,
	PERSISTER_BARRIER_PENDING,
	PERSISTER_BARRIER_RECEIVED,
};

struct channel_state_persister {
	enum persister_state state;
	int64_t last_seen;  /* -1 */
	uint64_t boundary;  /* of that barrier, when it was received */
	int64_t checkpoint_id; /* whose buffers [next, end) are */
	uint64_t next, end;
};

void channel_state_persister_init(struct channel_state_persister *p);

/* PS-1: persist from the buffer `position` on.  False: a newer barrier has been received. */
bool channel_state_persister_start(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t position);

/* PS-4: a barrier has come, wherever in line it is. */
void channel_state_persister_check(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t boundary);

/* PS-2; `known_count` buffers have come. */
void channel_state_persister_stop(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t known_count);

/* Nothing more is wanted for that checkpoint, nor for older ones. */
void channel_state_persister_cancel(struct channel_state_persister *p, int64_t checkpoint_id);

/* PS-3: of `known_count` buffers those that are to be persisted now, each once: `*count` of them
 * from the answer on. */
uint64_t channel_state_persister_take(
		struct channel_state_persister *p, uint64_t known_count, uint32_t *count);

/* True while buffers of that checkpoint, or its barrier, are still to come. */
static inline bool channel_state_persister_is_waiting(
		const struct channel_state_persister *p, int64_t checkpoint_id)
{
	return p->checkpoint_id == checkpoint_id && p->next < p->end;
}
