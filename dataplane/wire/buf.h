#pragma once

/*
 * buf: the buffer that records travel in, and the pools it comes from (DESIGN "Buffer").
 *
 * Place    wire; no DPDK type in here.  Two pools: the heap (tests: a use after release is seen by
 *          sanitizers) and a mempool of mbufs (a buf lives in the private area of its mbuf).
 * Thread   alloc, retain and release from any thread, also one on one lcore and one on another.
 *          What a buf holds belongs to one owner at a time: it is handed over by ring.
 * Memory   a heap pool calls malloc for each buf; a mempool never allocates after create.
 * Errors   buf_alloc answers NULL when the pool is used up.
 * Life     pool: create, { alloc, release }*, destroy when every buf is back.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf_pool;
struct buf_pool_ops;
struct iovec;
struct rte_mempool;

enum {
	BUF_NO_RECORD = UINT32_MAX, /* no record starts in this buffer */
	BUF_ALIGN_BYTES = 512,      /* of `data`, at least */
	BUF_BLOCK_BYTES = 4096,     /* of a file system */
};

struct buf {
	uint8_t *data;
	uint32_t capacity_bytes;
	uint32_t size_bytes;
	uint32_t first_record; /* offset of the first record that starts here, or BUF_NO_RECORD */
	uint32_t announcement; /* number of the last event announced before it; 0: none */
	uint64_t sequence;     /* within its channel: 0, 1, 2 ... */
	int64_t watermark;     /* holds behind its last record */
	_Atomic uint32_t refs;
	struct buf_pool *pool;
};

static_assert(sizeof(struct buf) <= LINE_BYTES, "one line");

/* What every kind of pool starts with; only buf_* functions look inside. */
struct buf_pool {
	struct buf *(*take)(struct buf_pool *pool);
	void (*give)(struct buf_pool *pool, struct buf *b);
	const struct buf_pool_ops *ops;
	uint32_t capacity_bytes; /* of each buf */
	uint32_t buf_count;
};

/* At most buf_count buffers at a time, each a malloc of its own.  -ENOMEM. */
int buf_pool_from_heap(struct buf_pool **out, uint32_t capacity_bytes, uint32_t buf_count);

/* Takes over the bufs of a mempool made by rte_pktmbuf_pool_create with priv_size
 * buf_mempool_private_bytes(capacity_bytes) and data room buf_mempool_room_bytes(capacity_bytes);
 * the mempool stays the caller's and must outlive the pool.  Per-lcore caches hide buffers from
 * others: the mempool needs buf_mempool_count(...) of them for `buf_count` to be had at any time.
 * A port may receive into its mbufs: the bytes of a frame that carries a whole buffer behind a head
 * of BUF_HEAD_BYTES then lie where those of the buf do.  -EINVAL when the room or the private area
 * is too small, -ENOMEM. */
int buf_pool_from_mempool(
		struct buf_pool **out, struct rte_mempool *mempool, uint32_t capacity_bytes);

enum {
	BUF_HEAD_BYTES = 96,           /* in front of `data` */
	BUF_PORT_HEADROOM_BYTES = 128, /* in front of that: a port's own */
	BUF_PORT_BYTES = 96,           /* behind the bytes at least: frames may be longer */
	BUF_PORT_STEP_BYTES = 1024,    /* some ports have slots of whole ones */
};

/* Buffers of whole blocks are aligned to them: a file system takes their writes past the page cache
 * side by side, and others one after the other (ext4 asks for that even of memory). */
static inline uint32_t buf_align_bytes(uint32_t capacity_bytes)
{
	return capacity_bytes % BUF_BLOCK_BYTES == 0 ? BUF_BLOCK_BYTES : BUF_ALIGN_BYTES;
}

/* The buf, and what may be lost to the alignment. */
static inline uint32_t buf_mempool_private_bytes(uint32_t capacity_bytes)
{
	return LINE_BYTES + buf_align_bytes(capacity_bytes);
}

static inline uint32_t buf_mempool_room_bytes(uint32_t capacity_bytes)
{
	uint32_t frame_bytes = BUF_HEAD_BYTES + capacity_bytes + BUF_PORT_BYTES;

	return BUF_PORT_HEADROOM_BYTES + (frame_bytes + BUF_PORT_STEP_BYTES - 1) /
			BUF_PORT_STEP_BYTES * BUF_PORT_STEP_BYTES;
}

/* `thread_count` lcores, each with a cache of `cache_count` buffers (it may keep half as many
 * again). */
static inline uint32_t buf_mempool_count(
		uint32_t buf_count, uint32_t thread_count, uint32_t cache_count)
{
	return buf_count + thread_count * (cache_count + cache_count / 2);
}

/* Buffers in use now; exact only while nobody allocates or releases. */
uint32_t buf_pool_used_count(const struct buf_pool *pool);

/* The memory that all bytes of its buffers lie in, in few pieces: how many, at most count_max.
 * 0: a heap pool has none that stays, or there are more pieces. */
uint32_t buf_pool_regions(const struct buf_pool *pool, struct iovec *regions, uint32_t count_max);

/* Every buf must be back.  NULL is accepted. */
void buf_pool_destroy(struct buf_pool *pool);

/* Makes it an empty buffer with one reference: what a port had of the pool. */
static inline void buf_begin(struct buf *b)
{
	b->size_bytes = 0;
	b->first_record = BUF_NO_RECORD;
	b->announcement = 0;
	b->sequence = 0;
	b->watermark = INT64_MIN;
	atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
}

/* An empty buffer with one reference, or NULL. */
static inline struct buf *buf_alloc(struct buf_pool *pool)
{
	struct buf *b = pool->take(pool);

	if (__builtin_expect(b == NULL, 0))
		return NULL;
	buf_begin(b);
	return b;
}

/* `count` owners more; from now on nobody writes into it. */
static inline void buf_retain_times(struct buf *b, uint32_t count)
{
	atomic_fetch_add_explicit(&b->refs, count, memory_order_relaxed);
}

/* One owner more. */
static inline void buf_retain(struct buf *b)
{
	buf_retain_times(b, 1);
}

/* True for the one owner left of a buffer. */
static inline bool buf_is_ours_alone(const struct buf *b)
{
	return atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}

/* `count` owners less; the last one gives it back to its pool. */
static inline void buf_release_times(struct buf *b, uint32_t count)
{
	if (atomic_load_explicit(&b->refs, memory_order_acquire) != count &&
			atomic_fetch_sub_explicit(&b->refs, count, memory_order_acq_rel) != count)
		return;
	b->pool->give(b->pool, b);
}

/* One owner less. */
static inline void buf_release(struct buf *b)
{
	buf_release_times(b, 1);
}
