#pragma once

/*
 * spy_store: writes down what a store is asked for; stacks on any other.
 *
 * Thread   one owner.
 * Memory   inside the struct.
 */

#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store.h"

enum { SPY_STORE_LOG_MAX = 1024 };

struct spy_store {
	struct store store;
	struct store *inner;    /* borrowed; destroyed with this one */
	bool keeps_nothing;     /* the inner one is not asked: all ends well and is forgotten */
	uint32_t count;         /* of requests; the first SPY_STORE_LOG_MAX are written down */
	struct store_request log[SPY_STORE_LOG_MAX];
	uint32_t most_inflight;
	uint32_t done_count;
	struct store_done done[STORE_OPS_IN_FLIGHT_MAX];
};

void spy_store_init(struct spy_store *spy, struct store *inner);
