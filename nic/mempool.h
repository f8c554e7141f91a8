#pragma once

/*
 * mempool: the pool of mbufs that the buffers of this process come from.
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

int mempool_create(struct mempool **out, uint32_t count, uint32_t buf_bytes,
		uint32_t worker_count, char error[512]);
struct buf_pool *mempool_bufs(struct mempool *m);
/* For a port that receives into the buffers. */
struct rte_mempool *mempool_mbufs(struct mempool *m);
/* Every buffer must be back.  NULL is accepted. */
void mempool_destroy(struct mempool *m);
