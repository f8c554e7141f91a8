#pragma once

/* buf_internal: what the kinds of buffer pool share; for wire/ only. */

#include "dataplane/wire/buf.h"

struct buf_pool_ops {
	uint32_t (*used_count)(const struct buf_pool *pool);
	/* NULL: none that stay. */
	uint32_t (*regions)(const struct buf_pool *pool, struct iovec *regions, uint32_t count_max);
	void (*destroy)(struct buf_pool *pool);
};
