#pragma once

/*
 * checkpoint_request_decider: the queue of requests for a checkpoint, and which of them may start
 * now (flink-semantics 5).
 *
 * Place    control/coordinator, pure.
 * Thread   one owner.
 * Memory   owns the requests it holds.
 */

#include "control/coordinator/checkpoint_properties.h"

#include <stdbool.h>
#include <stdint.h>

/* One request from being asked to its one outcome. */
struct queued_request {
	uint64_t handle; /* ascending: the last word in the order (RD-1) */
	int64_t timestamp_ms;
	struct checkpoint_properties properties;
	bool is_periodic;
	char *directory; /* of a savepoint */
};

void queued_request_destroy(struct queued_request *r);

struct checkpoint_request_decider;

void checkpoint_request_decider_create(struct checkpoint_request_decider **out,
		uint32_t concurrent_max, uint32_t queue_max);
void checkpoint_request_decider_destroy(struct checkpoint_request_decider *d);

/* RD-2: queues `r`.  Returns the request that must fail with TOO_MANY_CHECKPOINT_REQUESTS - `r` or
 * another - or NULL; it belongs to the caller. */
struct queued_request *checkpoint_request_decider_queue(
		struct checkpoint_request_decider *d, struct queued_request *r);

struct decider_facts {
	bool is_triggering;
	bool is_full; /* no room for one more in flight, forced or not */
	uint32_t pending_count, cleaning_count;
	uint64_t now_ns;
	uint64_t pause_end_ns; /* the last completion plus the minimum pause; 0: none completed */
};

enum decider_answer {
	DECIDER_WAIT,
	DECIDER_ADMIT,     /* `*request` starts now */
	DECIDER_TOO_EARLY, /* `*request` fails (RD-5), the periodic timer is set to pause_end_ns */
};

/* RD-3 to RD-6.  `*request` leaves the queue and belongs to the caller. */
enum decider_answer checkpoint_request_decider_choose(struct checkpoint_request_decider *d,
		const struct decider_facts *facts, struct queued_request **request);

/* The first in the queue, removed from it; NULL when it is empty. */
struct queued_request *checkpoint_request_decider_take(struct checkpoint_request_decider *d);
uint32_t checkpoint_request_decider_count(const struct checkpoint_request_decider *d);
