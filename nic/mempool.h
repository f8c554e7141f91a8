#pragma once

/*
 * mempool: the pool of mbufs that the buffers of this process come from, and how pools are made
 * whose mbufs are to come back warm.
 *
 * Place    nic; hands a wire/buf pool to dataplane/task.
 * Thread   create and destroy on the control thread, after eal_start.
 * Memory   count mbufs of buf_bytes each, plus what the caches of the lcores may hide.
 * Errors   -ENOMEM with what is needed.
 */

#include <stddef.h>
#include <stdint.h>

struct buf_pool;
struct mempool;
struct rte_mempool;

/* EAL memory a pool takes, roughly; for eal_config.memory_bytes. */
size_t mempool_memory_bytes(uint32_t count, uint32_t buf_bytes, uint32_t worker_count);

/* As rte_pktmbuf_pool_create, but what was given back last goes out first: few mbufs go round, and
 * those are in the cache.  The EAL's own choice where it has no stack, or was told another.  NULL
 * with rte_errno. */
struct rte_mempool *mempool_warm_mbufs(const char *name, uint32_t count, uint32_t cache_count,
		uint16_t private_bytes, uint16_t room_bytes);

int mempool_create(struct mempool **out, uint32_t count, uint32_t buf_bytes,
		uint32_t worker_count, char error[512]);
struct buf_pool *mempool_bufs(struct mempool *m);
/* For a port that receives into the buffers. */
struct rte_mempool *mempool_mbufs(struct mempool *m);
/* Every buffer must be back.  NULL is accepted. */
void mempool_destroy(struct mempool *m);
