#include "control/coordinator/checkpoint_request_decider.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

struct checkpoint_request_decider {
	uint32_t concurrent_max, queue_max;
	uint32_t count;
	struct queued_request **queue; /* best first */
};

void queued_request_destroy(struct queued_request *r)
{
	if (r == NULL)
		return;
	free(r->directory);
	free(r);
}

void checkpoint_request_decider_create(struct checkpoint_request_decider **out,
		uint32_t concurrent_max, uint32_t queue_max)
{
	struct checkpoint_request_decider *d = heap_zeroed(1, sizeof(*d));

	CHECK(concurrent_max > 0);
	CHECK(queue_max > 0);
	d->concurrent_max = concurrent_max;
	d->queue_max = queue_max;
	d->queue = heap_zeroed((size_t)queue_max + 1, sizeof(struct queued_request *));
	*out = d;
}

void checkpoint_request_decider_destroy(struct checkpoint_request_decider *d)
{
	if (d == NULL)
		return;
	for (uint32_t i = 0; i < d->count; i++)
		queued_request_destroy(d->queue[i]);
	free(d->queue);
	free(d);
}

/* RD-1: true if `a` goes before `b`. */
static bool is_before(const struct queued_request *a, const struct queued_request *b)
{
	bool is_a_savepoint = checkpoint_properties_is_savepoint(&a->properties);
	bool is_b_savepoint = checkpoint_properties_is_savepoint(&b->properties);

	if (is_a_savepoint != is_b_savepoint)
		return is_a_savepoint;
	if (a->properties.is_forced != b->properties.is_forced)
		return a->properties.is_forced;
	if (a->is_periodic != b->is_periodic)
		return b->is_periodic;
	if (a->timestamp_ms != b->timestamp_ms)
		return a->timestamp_ms < b->timestamp_ms;
	return a->handle < b->handle;
}

static struct queued_request *take_at(struct checkpoint_request_decider *d, uint32_t index)
{
	struct queued_request *r = d->queue[index];

	d->count--;
	memmove(d->queue + index, d->queue + index + 1, (d->count - index) * sizeof(*d->queue));
	return r;
}

struct queued_request *checkpoint_request_decider_queue(
		struct checkpoint_request_decider *d, struct queued_request *r)
{
	uint32_t index = 0;

	if (d->count >= d->queue_max && !d->queue[d->count - 1]->is_periodic)
		return r;
	while (index < d->count && is_before(d->queue[index], r))
		index++;
	memmove(d->queue + index + 1, d->queue + index, (d->count - index) * sizeof(*d->queue));
	d->queue[index] = r;
	d->count++;
	return d->count > d->queue_max ? take_at(d, d->count - 1) : NULL;
}

enum decider_answer checkpoint_request_decider_choose(struct checkpoint_request_decider *d,
		const struct decider_facts *facts, struct queued_request **request)
{
	if (facts->is_triggering || d->count == 0 || facts->cleaning_count > d->concurrent_max)
		return DECIDER_WAIT; /* RD-3 */
	if (facts->is_full)
		return DECIDER_WAIT;

	const struct queued_request *head = d->queue[0];
	bool is_forced = head->properties.is_forced;

	if (facts->pending_count >= d->concurrent_max && !is_forced)
		return DECIDER_WAIT; /* RD-4 */
	*request = take_at(d, 0);
	if ((*request)->is_periodic && !is_forced && facts->now_ns < facts->pause_end_ns)
		return DECIDER_TOO_EARLY; /* RD-5 */
	return DECIDER_ADMIT;
}

struct queued_request *checkpoint_request_decider_take(struct checkpoint_request_decider *d)
{
	return d->count > 0 ? take_at(d, 0) : NULL;
}

uint32_t checkpoint_request_decider_count(const struct checkpoint_request_decider *d)
{
	return d->count;
}
