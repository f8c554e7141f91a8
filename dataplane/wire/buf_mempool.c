#include "dataplane/wire/buf.h"

#include "dataplane/wire/buf_internal.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <sys/uio.h>

static_assert((int)BUF_PORT_HEADROOM_BYTES == (int)RTE_PKTMBUF_HEADROOM, "what ports leave free");
static_assert(BUF_PORT_HEADROOM_BYTES + BUF_HEAD_BYTES + BUF_BYTES_MAX + BUF_PORT_BYTES +
				BUF_PORT_STEP_BYTES <=
				UINT16_MAX,
		"a segment fits an mbuf");

struct mbuf_pool {
	struct buf_pool pool;
	struct rte_mempool *mempool;
};

/* The mbuf itself stays as it was made: one reference, one segment. */
static struct buf *mbuf_take(struct buf_pool *pool)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(((struct mbuf_pool *)pool)->mempool);

	return m != NULL ? rte_mbuf_to_priv(m) : NULL;
}

static void mbuf_give(struct buf_pool *pool, struct buf *b)
{
	(void)pool;
	rte_mbuf_raw_free(RTE_PTR_SUB(b, sizeof(struct rte_mbuf)));
}

static uint32_t mbuf_used(const struct buf_pool *pool)
{
	return rte_mempool_in_use_count(((const struct mbuf_pool *)pool)->mempool);
}

static void mbuf_destroy(struct buf_pool *pool)
{
	free(pool);
}

struct region_list {
	struct iovec *regions;
	uint32_t count, count_max; /* more were found: count_max + 1 */
};

/* Pieces that touch are one. */
static void add_region(struct rte_mempool *mempool, void *context, struct rte_mempool_memhdr *piece,
		unsigned int index)
{
	struct region_list *l = context;
	char *base = piece->addr;

	(void)mempool;
	(void)index;
	for (uint32_t i = 0; i < l->count && i < l->count_max; i++) {
		struct iovec *r = &l->regions[i];

		if (base == (char *)r->iov_base + r->iov_len) {
			r->iov_len += piece->len;
			return;
		}
		if (base + piece->len == (char *)r->iov_base) {
			r->iov_base = base;
			r->iov_len += piece->len;
			return;
		}
	}
	if (l->count < l->count_max)
		l->regions[l->count] = (struct iovec){base, piece->len};
	if (l->count <= l->count_max)
		l->count++;
}

static uint32_t mbuf_regions(const struct buf_pool *pool, struct iovec *regions, uint32_t count_max)
{
	struct region_list l = {regions, 0, count_max};

	rte_mempool_mem_iter(((const struct mbuf_pool *)pool)->mempool, add_region, &l);
	return l.count <= count_max ? l.count : 0;
}

static const struct buf_pool_ops mbuf_ops = {
		.used_count = mbuf_used, .regions = mbuf_regions, .destroy = mbuf_destroy};

static void make_buf(struct rte_mempool *mempool, void *pool, void *object, unsigned int index)
{
	const uint32_t head = RTE_PKTMBUF_HEADROOM + BUF_HEAD_BYTES;
	struct rte_mbuf *m = object;
	struct buf *b = rte_mbuf_to_priv(m);
	uint32_t capacity = ((struct buf_pool *)pool)->capacity_bytes;
	uint8_t *behind = (uint8_t *)b + LINE_BYTES;

	(void)mempool;
	(void)index;
	*b = (struct buf){
			.data = RTE_PTR_ALIGN_CEIL(behind + head, buf_align_bytes(capacity)),
			.capacity_bytes = capacity,
			.pool = pool,
	};
	/* Down from the end of the private area; where the mbuf's bytes end goes down with it. */
	m->buf_iova -= (uint64_t)((uint8_t *)m->buf_addr - (b->data - head));
	m->buf_addr = b->data - head;
}

int buf_pool_from_mempool(
		struct buf_pool **out, struct rte_mempool *mempool, uint32_t capacity_bytes)
{
	if (capacity_bytes == 0 || capacity_bytes > BUF_BYTES_MAX ||
			rte_pktmbuf_data_room_size(mempool) <
					buf_mempool_room_bytes(capacity_bytes) ||
			rte_pktmbuf_priv_size(mempool) < buf_mempool_private_bytes(capacity_bytes))
		return -EINVAL;

	struct mbuf_pool *made = calloc(1, sizeof(*made));
	if (made == NULL)
		return -ENOMEM;
	made->mempool = mempool;
	made->pool = (struct buf_pool){
			.take = mbuf_take,
			.give = mbuf_give,
			.ops = &mbuf_ops,
			.capacity_bytes = capacity_bytes,
			.buf_count = mempool->size,
	};
	rte_mempool_obj_iter(mempool, make_buf, &made->pool);
	*out = &made->pool;
	return 0;
}
