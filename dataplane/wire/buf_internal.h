#pragma once

/* buf_internal: what the kinds of buffer pool share; for wire/ only. */

#include "dataplane/wire/buf.h"

struct buf_pool_ops {
	uint32_t (*used_count)(const struct buf_pool *pool);
	void (*destroy)(struct buf_pool *pool);
};
