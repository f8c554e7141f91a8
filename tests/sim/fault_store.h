#pragma once

/*
 * fault_store: a store that fails on purpose; stacks on any other.
 *
 * Thread   one owner.
 * Memory   inside the struct.
 *
 * Counting: the nth request (from 1, of the kinds in `fail_ops`) ends with `fail_status`; what a
 * disk would have left behind is left behind: `torn_bytes` of a write, nothing of a sync or an
 * open, and a close closes.  Hanging: requests (of the kinds in `hang_ops`) are taken and do not
 * end until settled.
 */

#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store.h"

struct fault_store {
	struct store store;
	struct store *inner;        /* borrowed */

	uint64_t fail_nth;          /* 0: none */
	uint64_t fail_count;        /* that many in a row, 0 is 1 */
	uint32_t fail_ops;          /* a bit for each enum store_op, 0: all */
	int fail_status;            /* -errno */
	uint32_t torn_bytes;        /* of a failed write that still reach the file */
	bool is_hung;
	uint32_t hang_ops;          /* a bit for each enum store_op, 0: all */
	bool is_full;               /* submit answers -EAGAIN */

	uint64_t op_count;          /* counted so far */
	uint64_t failed_count;      /* of those, failed on purpose */
	uint32_t held_count;
	struct store_request held[STORE_OPS_IN_FLIGHT_MAX];
	uint32_t done_count;
	struct store_done done[STORE_OPS_IN_FLIGHT_MAX];
	uint32_t override_count;    /* performed, but to be reported as failed */
	uint64_t overrides[STORE_OPS_IN_FLIGHT_MAX]; /* their tags */
};

void fault_store_init(struct fault_store *f, struct store *inner);

/* What was held goes to the inner store, in order. */
void fault_store_settle(struct fault_store *f);
