#include "dataplane/channel/pointer_queue.h"

#include <rte_ring.h>

#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

struct pointer_queue {
	struct rte_ring *ring;
};

struct pointer_queue *pointer_queue_create(uint32_t slots)
{
	CHECK(slots >= 1 && slots <= 65536);
	uint32_t count = 2;

	while (count < slots + 1)
		count *= 2;
	ssize_t bytes = rte_ring_get_memsize(count);
	CHECK(bytes > 0);
	size_t rounded = ((size_t)bytes + LINE_BYTES - 1) & ~((size_t)LINE_BYTES - 1);
	struct pointer_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->ring = aligned_alloc(LINE_BYTES, rounded);
	if (q->ring == NULL) {
		free(q);
		return NULL;
	}
	CHECK(rte_ring_init(q->ring, "pointers", count, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0);
	return q;
}

void pointer_queue_destroy(struct pointer_queue *q)
{
	if (q == NULL)
		return;
	free(q->ring);
	free(q);
}

bool pointer_queue_push(struct pointer_queue *q, void *item)
{
	CHECK(item != NULL);
	return rte_ring_sp_enqueue(q->ring, item) == 0;
}

void *pointer_queue_pop(struct pointer_queue *q)
{
	void *item;

	return rte_ring_sc_dequeue(q->ring, &item) == 0 ? item : NULL;
}

bool pointer_queue_is_empty(const struct pointer_queue *q)
{
	return rte_ring_empty(q->ring) != 0;
}
