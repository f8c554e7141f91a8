#include "nic/mempool.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/wire/buf.h"

enum {
	CACHE_COUNT = 64, /* buffers a lcore keeps for itself */
	OBJECT_OVERHEAD_BYTES = 512,
	EAL_OVERHEAD_BYTES = 32 << 20,
	PAGE_BYTES = 4096,
};

struct mempool {
	struct rte_mempool *mbufs;
	struct buf_pool *bufs;
};

/* Workers, and the control thread when it gives buffers back. */
static uint32_t mbuf_count(uint32_t count, uint32_t worker_count)
{
	return buf_mempool_count(count, worker_count + 1, CACHE_COUNT);
}

size_t mempool_memory_bytes(uint32_t count, uint32_t buf_bytes, uint32_t worker_count)
{
	size_t object = (size_t)buf_mempool_private_bytes(buf_bytes) +
			buf_mempool_room_bytes(buf_bytes) + OBJECT_OVERHEAD_BYTES;

	/* Without hugepages an object larger than a page begins one. */
	if (object > PAGE_BYTES)
		object = RTE_ALIGN(object, PAGE_BYTES);
	return mbuf_count(count, worker_count) * object + EAL_OVERHEAD_BYTES;
}

/* A ring would hand out the coldest one each time. */
struct rte_mempool *mempool_warm_mbufs(const char *name, uint32_t count, uint32_t cache_count,
		uint16_t private_bytes, uint16_t room_bytes)
{
	struct rte_mempool *pool = NULL;

	if (strcmp(rte_mbuf_best_mempool_ops(), RTE_MBUF_DEFAULT_MEMPOOL_OPS) == 0)
		pool = rte_pktmbuf_pool_create_by_ops(name, count, cache_count, private_bytes,
				room_bytes, SOCKET_ID_ANY, "stack");
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create(name, count, cache_count, private_bytes, room_bytes,
				SOCKET_ID_ANY);
	return pool;
}

int mempool_create(struct mempool **out, uint32_t count, uint32_t buf_bytes,
		uint32_t worker_count, char error[512])
{
	struct mempool *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->mbufs = mempool_warm_mbufs("weir_buffers", mbuf_count(count, worker_count), CACHE_COUNT,
			(uint16_t)buf_mempool_private_bytes(buf_bytes),
			(uint16_t)buf_mempool_room_bytes(buf_bytes));
	int status = m->mbufs == NULL ? -rte_errno : 0;
	if (status == 0)
		status = buf_pool_from_mempool(&m->bufs, m->mbufs, buf_bytes);
	if (status != 0) {
		snprintf(error, 512,
				"no pool of %u buffers of %u bytes (%zu MiB): %s; give the EAL "
				"more "
				"memory (weir.memory) or lower taskmanager.memory.network.size",
				count, buf_bytes,
				mempool_memory_bytes(count, buf_bytes, worker_count) >> 20,
				rte_strerror(-status));
		mempool_destroy(m);
		return status;
	}
	*out = m;
	return 0;
}

struct buf_pool *mempool_bufs(struct mempool *m)
{
	return m->bufs;
}

struct rte_mempool *mempool_mbufs(struct mempool *m)
{
	return m->mbufs;
}

void mempool_destroy(struct mempool *m)
{
	if (m == NULL)
		return;
	buf_pool_destroy(m->bufs);
	rte_mempool_free(m->mbufs);
	free(m);
}
