#pragma once

/*
 * key_group: key -> hash -> key group -> subtask; the one definition that routing, state and
 * restore share (DESIGN "Keyed state"; deliberate difference to RE-6).
 *
 * A key group is the top bits of the 64-bit hash of the key.  The number of key groups is a power
 * of two, 1..KEY_GROUPS_COUNT_MAX, and is stored with each checkpoint.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { KEY_GROUPS_COUNT_DEFAULT = 128 };

/* Key groups first..last, both included. */
struct key_group_range {
	uint32_t first, last;
};

static inline uint64_t key_hash(const void *key, uint32_t key_bytes)
{
	return XXH3_64bits(key, key_bytes);
}

static inline uint32_t key_group_of(uint64_t hash, uint32_t group_count)
{
	DCHECK(group_count > 0 && (group_count & (group_count - 1)) == 0);
	return group_count == 1 ? 0
				: (uint32_t)(hash >> (64 - (uint32_t)__builtin_ctz(group_count)));
}

/* The subtask that owns a key group; the inverse of key_group_range_of. */
static inline uint32_t key_group_subtask(uint32_t group, uint32_t group_count, uint32_t parallelism)
{
	return (uint32_t)((uint64_t)group * parallelism / group_count);
}

/* RE-6: from ceil(i x groups / p) to floor(((i + 1) x groups - 1) / p). */
static inline struct key_group_range key_group_range_of(
		uint32_t subtask, uint32_t parallelism, uint32_t group_count)
{
	uint64_t first = ((uint64_t)subtask * group_count + parallelism - 1) / parallelism;
	uint64_t last = ((uint64_t)(subtask + 1) * group_count - 1) / parallelism;

	CHECK(subtask < parallelism);
	CHECK(parallelism <= group_count);
	return (struct key_group_range){(uint32_t)first, (uint32_t)last};
}
