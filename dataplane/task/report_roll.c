#include "dataplane/task/report_roll.h"

#include "dataplane/base/check.h"

void report_roll_expect(struct report_roll *r, uint32_t worker)
{
	CHECK(worker < WORKERS_COUNT_MAX);
	if (worker >= r->worker_count)
		r->worker_count = worker + 1;
	r->workers[worker].is_expected = true;
}

bool report_roll_answered(struct report_roll *r, uint32_t worker, int64_t checkpoint_id)
{
	/* In one order for all, so that of two neither can miss the other's. */
	atomic_store_explicit(&r->workers[worker].answered_id, checkpoint_id, memory_order_seq_cst);
	for (uint32_t i = 0; i < r->worker_count; i++) {
		if (r->workers[i].is_expected &&
				atomic_load_explicit(&r->workers[i].answered_id,
						memory_order_seq_cst) < checkpoint_id)
			return false;
	}
	return true;
}

void report_roll_left(struct report_roll *r, uint32_t worker)
{
	atomic_store_explicit(&r->workers[worker].answered_id, INT64_MAX, memory_order_seq_cst);
}
