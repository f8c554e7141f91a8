#include "dataplane/wire/buf.h"

#include "dataplane/wire/buf_internal.h"

#include <errno.h>
#include <stdlib.h>

struct heap_pool {
	struct buf_pool pool;
	_Atomic uint32_t used_count;
};

static struct heap_pool *heap_pool_of(struct buf_pool *pool)
{
	return (struct heap_pool *)pool;
}

static struct buf *heap_take(struct buf_pool *pool)
{
	struct heap_pool *heap = heap_pool_of(pool);
	void *data;

	if (atomic_fetch_add(&heap->used_count, 1) >= pool->buf_count) {
		atomic_fetch_sub(&heap->used_count, 1);
		return NULL;
	}

	struct buf *b = calloc(1, sizeof(*b));
	if (b == NULL || posix_memalign(&data, buf_align_bytes(pool->capacity_bytes),
					 pool->capacity_bytes) != 0) {
		free(b);
		atomic_fetch_sub(&heap->used_count, 1);
		return NULL;
	}
	b->data = data;
	b->capacity_bytes = pool->capacity_bytes;
	b->pool = pool;
	return b;
}

static void heap_give(struct buf_pool *pool, struct buf *b)
{
	free(b->data);
	free(b);
	atomic_fetch_sub(&heap_pool_of(pool)->used_count, 1);
}

static uint32_t heap_used(const struct buf_pool *pool)
{
	return atomic_load(&((const struct heap_pool *)pool)->used_count);
}

static void heap_destroy(struct buf_pool *pool)
{
	free(heap_pool_of(pool));
}

static const struct buf_pool_ops heap_ops = {.used_count = heap_used, .destroy = heap_destroy};

int buf_pool_from_heap(struct buf_pool **out, uint32_t capacity_bytes, uint32_t buf_count)
{
	struct heap_pool *heap = calloc(1, sizeof(*heap));

	CHECK(capacity_bytes > 0);
	if (heap == NULL)
		return -ENOMEM;
	heap->pool = (struct buf_pool){
			.take = heap_take,
			.give = heap_give,
			.ops = &heap_ops,
			.capacity_bytes = capacity_bytes,
			.buf_count = buf_count,
	};
	*out = &heap->pool;
	return 0;
}

uint32_t buf_pool_used_count(const struct buf_pool *pool)
{
	return pool->ops->used_count(pool);
}

uint32_t buf_pool_regions(const struct buf_pool *pool, struct iovec *regions, uint32_t count_max)
{
	return pool->ops->regions == NULL ? 0 : pool->ops->regions(pool, regions, count_max);
}

void buf_pool_destroy(struct buf_pool *pool)
{
	if (pool == NULL)
		return;
	CHECK(buf_pool_used_count(pool) == 0);
	pool->ops->destroy(pool);
}
