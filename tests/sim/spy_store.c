#include "tests/sim/spy_store.h"

#include <string.h>

static uint32_t spy_inflight(const struct store *s)
{
	const struct spy_store *spy = (const struct spy_store *)s;

	return store_inflight(spy->inner) + spy->done_count;
}

static int submit_inner(struct spy_store *spy, const struct store_request *r)
{
	if (!spy->keeps_nothing)
		return store_submit(spy->inner, r);
	CHECK(spy->done_count < STORE_OPS_IN_FLIGHT_MAX);
	spy->done[spy->done_count++] =
			(struct store_done){r->tag, r->op == STORE_WRITE ? r->size : 0};
	return 0;
}

static int spy_submit(struct store *s, const struct store_request *r)
{
	struct spy_store *spy = (struct spy_store *)s;
	int rc = submit_inner(spy, r);

	if (rc != 0)
		return rc;
	if (spy->count < SPY_STORE_LOG_MAX)
		spy->log[spy->count] = *r;
	spy->count++;
	if (spy_inflight(s) > spy->most_inflight)
		spy->most_inflight = spy_inflight(s);
	return 0;
}

static uint32_t spy_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct spy_store *spy = (struct spy_store *)s;
	uint32_t count = spy->done_count < count_max ? spy->done_count : count_max;

	if (!spy->keeps_nothing)
		return store_reap(spy->inner, done, count_max);
	memcpy(done, spy->done, count * sizeof(done[0]));
	memmove(spy->done, spy->done + count, (spy->done_count - count) * sizeof(done[0]));
	spy->done_count -= count;
	return count;
}

static void spy_destroy(struct store *s)
{
	store_destroy(((struct spy_store *)s)->inner);
}

void spy_store_init(struct spy_store *spy, struct store *inner)
{
	static const struct store_ops ops = {
		.name = "spy",
		.submit = spy_submit,
		.reap = spy_reap,
		.inflight = spy_inflight,
		.destroy = spy_destroy,
	};

	memset(spy, 0, sizeof(*spy));
	spy->store.ops = &ops;
	spy->inner = inner;
}
