#include "dataplane/wire/buf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <sys/uio.h>

static struct buf_pool *heap_pool(uint32_t count)
{
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, 256, count), 0);
	return pool;
}

Test(buf, a_new_buffer_is_empty_and_has_one_owner)
{
	struct buf_pool *pool = heap_pool(4);
	struct buf *b = buf_alloc(pool);

	cr_assert_not_null(b);
	cr_assert_eq(b->size_bytes, 0);
	cr_assert_eq(b->capacity_bytes, 256);
	cr_assert_eq(b->first_record, (uint32_t)BUF_NO_RECORD);
	cr_assert_eq(b->watermark, INT64_MIN);
	cr_assert_eq((uintptr_t)b->data % BUF_ALIGN_BYTES, 0);
	cr_assert_eq(buf_pool_used_count(pool), 1);
	buf_release(b);
	cr_assert_eq(buf_pool_used_count(pool), 0);
	buf_pool_destroy(pool);
}

Test(buf, a_pool_gives_no_more_than_it_holds)
{
	struct buf_pool *pool = heap_pool(2);
	struct buf *first = buf_alloc(pool), *second = buf_alloc(pool);

	cr_assert_null(buf_alloc(pool));
	buf_release(first);
	first = buf_alloc(pool);
	cr_assert_not_null(first);
	buf_release(first);
	buf_release(second);
	buf_pool_destroy(pool);
}

Test(buf, the_last_of_several_owners_gives_the_buffer_back)
{
	struct buf_pool *pool = heap_pool(1);
	struct buf *b = buf_alloc(pool);

	buf_retain(b);
	buf_release(b);
	cr_assert_eq(buf_pool_used_count(pool), 1);
	buf_release(b);
	cr_assert_eq(buf_pool_used_count(pool), 0);
	buf_pool_destroy(pool);
}

static struct rte_mempool *mempool_for(uint32_t capacity, uint32_t count)
{
	char *args[] = {"buf_test", "--no-huge", "--no-shconf", "--no-pci", "-l", "0", "-m", "32",
			"--no-telemetry", "--log-level=error"};

	cr_assert_geq(rte_eal_init(sizeof(args) / sizeof(*args), args), 0);

	struct rte_mempool *mempool = rte_pktmbuf_pool_create("bufs", count, 0,
			(uint16_t)buf_mempool_private_bytes(capacity),
			(uint16_t)buf_mempool_room_bytes(capacity), SOCKET_ID_ANY);
	cr_assert_not_null(mempool);
	return mempool;
}

static void *release_elsewhere(void *b)
{
	buf_release(b);
	return NULL;
}

Test(buf, several_owners_may_leave_at_once)
{
	struct buf_pool *pool = heap_pool(1);
	struct buf *b = buf_alloc(pool);

	for (int i = 0; i < 4; i++)
		buf_retain(b);
	buf_release_times(b, 3);
	cr_assert_eq(buf_pool_used_count(pool), 1);
	cr_assert_eq(b->refs, 2);
	buf_release_times(b, 2);
	cr_assert_eq(buf_pool_used_count(pool), 0);
	buf_pool_destroy(pool);
}

Test(buf, buffers_of_a_mempool_may_be_released_by_a_foreign_thread)
{
	struct rte_mempool *mempool = mempool_for(2048, 3);
	struct buf_pool *pool;
	struct buf *bufs[3];
	pthread_t thread;

	cr_assert_eq(buf_pool_from_mempool(&pool, mempool, 2048), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++) {
			bufs[i] = buf_alloc(pool);
			cr_assert_not_null(bufs[i]);
			cr_assert_eq((uintptr_t)bufs[i]->data % BUF_ALIGN_BYTES, 0);
			memset(bufs[i]->data, i, bufs[i]->capacity_bytes);
		}
		cr_assert_null(buf_alloc(pool));
		for (int i = 0; i < 3; i++) {
			cr_assert_eq(bufs[i]->data[0], i);
			cr_assert_eq(bufs[i]->data[2047], i);
			cr_assert_eq(pthread_create(&thread, NULL, release_elsewhere, bufs[i]), 0);
			pthread_join(thread, NULL);
		}
	}
	buf_pool_destroy(pool);
	rte_mempool_free(mempool);
	rte_eal_cleanup();
}

static bool is_inside(const struct iovec *regions, uint32_t count, const uint8_t *at)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *base = regions[i].iov_base;

		if (at >= base && at < base + regions[i].iov_len)
			return true;
	}
	return false;
}

Test(buf, the_regions_of_a_mempool_hold_every_byte_of_its_buffers)
{
	struct rte_mempool *mempool = mempool_for(2048, 2000);
	struct buf_pool *pool, *heap;
	struct iovec regions[8];

	cr_assert_eq(buf_pool_from_mempool(&pool, mempool, 2048), 0);
	uint32_t count = buf_pool_regions(pool, regions, 8);
	cr_assert_geq(count, 1);
	static struct buf *bufs[2000];
	for (int i = 0; i < 2000; i++) {
		bufs[i] = buf_alloc(pool);
		cr_assert(is_inside(regions, count, bufs[i]->data));
		cr_assert(is_inside(regions, count, bufs[i]->data + 2047));
	}
	cr_assert_eq(buf_pool_regions(pool, regions, 0), 0);
	for (int i = 0; i < 2000; i++)
		buf_release(bufs[i]);
	buf_pool_destroy(pool);
	rte_mempool_free(mempool);
	rte_eal_cleanup();
	cr_assert_eq(buf_pool_from_heap(&heap, 2048, 3), 0);
	cr_assert_eq(buf_pool_regions(heap, regions, 8), 0);
	buf_pool_destroy(heap);
}

Test(buf, buffers_of_whole_blocks_are_aligned_to_them)
{
	struct rte_mempool *mempool = mempool_for(8192, 8);
	struct buf_pool *pool, *heap;

	cr_assert_eq(buf_pool_from_mempool(&pool, mempool, 8192), 0);
	cr_assert_eq(buf_pool_from_heap(&heap, 8192, 1), 0);
	struct buf *bufs[9] = {buf_alloc(heap)};
	for (int i = 1; i < 9; i++)
		bufs[i] = buf_alloc(pool);
	for (int i = 0; i < 9; i++) {
		cr_assert_eq((uintptr_t)bufs[i]->data % BUF_BLOCK_BYTES, 0);
		memset(bufs[i]->data, i, 8192);
	}
	for (int i = 0; i < 9; i++) {
		cr_assert_eq(bufs[i]->data[0], i);
		cr_assert_eq(bufs[i]->data[8191], i);
		buf_release(bufs[i]);
	}
	buf_pool_destroy(pool);
	buf_pool_destroy(heap);
	rte_mempool_free(mempool);
	rte_eal_cleanup();
}

Test(buf, a_mempool_without_the_room_is_refused)
{
	struct rte_mempool *mempool = mempool_for(2048, 3);
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_mempool(&pool, mempool, 4096), -EINVAL);
	cr_assert_eq(buf_pool_from_mempool(&pool, mempool, 0), -EINVAL);
	rte_mempool_free(mempool);
	rte_eal_cleanup();
}
