#include "tests/sim/fault_store.h"

#include <errno.h>
#include <string.h>

static bool is_to_fail(struct fault_store *f, const struct store_request *r)
{
	uint64_t last = f->fail_nth + (f->fail_count != 0 ? f->fail_count : 1);

	if (f->fail_ops != 0 && !(f->fail_ops >> r->op & 1))
		return false;
	f->op_count++;
	return f->fail_nth != 0 && f->op_count >= f->fail_nth && f->op_count < last;
}

static int start(struct fault_store *f, const struct store_request *r)
{
	struct store_request torn = *r;

	if (!is_to_fail(f, r))
		return store_submit(f->inner, r);
	f->failed_count++;
	if (r->op == STORE_WRITE && f->torn_bytes < r->size)
		torn.size = f->torn_bytes;
	if (r->op == STORE_CLOSE || (r->op == STORE_WRITE && torn.size > 0)) {
		CHECK(f->override_count < STORE_OPS_IN_FLIGHT_MAX);
		f->overrides[f->override_count++] = r->tag;
		return store_submit(f->inner, &torn);
	}
	CHECK(f->done_count < STORE_OPS_IN_FLIGHT_MAX);
	f->done[f->done_count++] = (struct store_done){r->tag, f->fail_status};
	return 0;
}

static int fault_submit(struct store *s, const struct store_request *r)
{
	struct fault_store *f = (struct fault_store *)s;

	if (f->is_full)
		return -EAGAIN;
	if (!f->is_hung || (f->hang_ops != 0 && !(f->hang_ops >> r->op & 1)))
		return start(f, r);
	if (f->held_count == STORE_OPS_IN_FLIGHT_MAX)
		return -EAGAIN;
	f->held[f->held_count++] = *r;
	return 0;
}

static void override(struct fault_store *f, struct store_done *done)
{
	for (uint32_t i = 0; i < f->override_count; i++) {
		if (f->overrides[i] == done->tag) {
			done->result = f->fail_status;
			f->overrides[i] = f->overrides[--f->override_count];
			return;
		}
	}
}

static uint32_t fault_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct fault_store *f = (struct fault_store *)s;
	uint32_t count = 0;

	if (f->is_hung && f->hang_ops == 0)
		return 0;
	while (count < count_max && f->done_count > 0)
		done[count++] = f->done[--f->done_count];
	if (count == count_max)
		return count;

	uint32_t inner = store_reap(f->inner, done + count, count_max - count);

	for (uint32_t i = 0; i < inner; i++)
		override(f, &done[count + i]);
	return count + inner;
}

static uint32_t fault_inflight(const struct store *s)
{
	const struct fault_store *f = (const struct fault_store *)s;

	return store_inflight(f->inner) + f->held_count + f->done_count;
}

static void fault_destroy(struct store *s)
{
	CHECK(fault_inflight(s) == 0);
}

void fault_store_settle(struct fault_store *f)
{
	f->is_hung = false;
	for (uint32_t i = 0; i < f->held_count; i++)
		CHECK(start(f, &f->held[i]) == 0);
	f->held_count = 0;
}

void fault_store_init(struct fault_store *f, struct store *inner)
{
	static const struct store_ops ops = {
		.name = "faulty",
		.submit = fault_submit,
		.reap = fault_reap,
		.inflight = fault_inflight,
		.destroy = fault_destroy,
	};

	memset(f, 0, sizeof(*f));
	f->store.ops = &ops;
	f->inner = inner;
}
