#include "tests/soak/patient_store.h"

#include "dataplane/base/limits.h"
#include "dataplane/base/prng.h"

#include <sched.h>
#include <stdlib.h>

struct asked {
	uint64_t tag, due;
	int64_t result;
	bool is_done;
};

struct patient_store {
	struct store store;
	struct store *inner;
	struct prng prng;
	uint32_t delay_max;
	uint64_t looks;
	uint32_t count; /* in the order in which it was asked */
	struct asked asked[STORE_OPS_IN_FLIGHT_MAX];
};

static struct patient_store *of(struct store *s)
{
	return (struct patient_store *)s;
}

static int submit(struct store *s, const struct store_request *request)
{
	struct patient_store *p = of(s);

	if (p->count == STORE_OPS_IN_FLIGHT_MAX)
		return -EAGAIN;
	int rc = store_submit(p->inner, request);
	if (rc != 0)
		return rc;
	p->asked[p->count++] = (struct asked){
			.tag = request->tag,
			.due = p->looks + prng_below(&p->prng, p->delay_max + 1),
	};
	return 0;
}

static void note(struct patient_store *p, const struct store_done *done)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct asked *a = &p->asked[i];

		if (a->tag != done->tag || a->is_done)
			continue;
		a->result = done->result;
		a->is_done = true;
		return;
	}
	CHECK(false);
}

static void await(struct patient_store *p)
{
	struct store_done done[BATCH_COUNT_MAX];

	while (store_inflight(p->inner) > 0) {
		uint32_t n = store_reap(p->inner, done, BATCH_COUNT_MAX);

		for (uint32_t i = 0; i < n; i++)
			note(p, &done[i]);
		if (n == 0)
			sched_yield();
	}
}

static uint32_t reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct patient_store *p = of(s);
	uint32_t given = 0, kept = 0;

	p->looks++;
	await(p);
	for (uint32_t i = 0; i < p->count; i++) {
		struct asked a = p->asked[i];

		if (given < count_max && a.due <= p->looks)
			done[given++] = (struct store_done){a.tag, a.result};
		else
			p->asked[kept++] = a;
	}
	p->count = kept;
	return given;
}

static uint32_t inflight(const struct store *s)
{
	return ((const struct patient_store *)s)->count;
}

static void destroy(struct store *s)
{
	store_destroy(of(s)->inner);
	free(s);
}

struct store *patient_store_create(struct store *inner, uint64_t seed, uint32_t delay_max)
{
	static const struct store_ops ops = {
			.name = "patient",
			.submit = submit,
			.reap = reap,
			.inflight = inflight,
			.destroy = destroy,
	};
	struct patient_store *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->store.ops = &ops;
	p->inner = inner;
	p->delay_max = delay_max;
	prng_seed(&p->prng, seed);
	return &p->store;
}
