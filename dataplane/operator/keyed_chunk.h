#pragma once

/*
 * keyed_chunk: the entries of one block of a keyed state as bytes, the unit of its snapshots.
 *
 * Place    operator; keyed_state writes and reads it, restore.c looks where one ends.
 * Thread   any.
 * Memory   none; the caller has the bytes.
 * Errors   bytes are foreign: read_head says false to what begins no chunk.
 *
 *     uint32 block | uint8 count, 1..64 | uint8 key_cut | uint8 value_cut | uint8 0
 *     count x { key without its last key_cut bytes, value without its last value_cut bytes }
 *
 * Numbers stand least byte first.  What is cut off was zero in each entry of the block: small
 * numbers in words of eight bytes take a third of the room, and of the time to write them.  Only
 * keys and values that are both of eight bytes are cut; chunks of older versions cut none.
 */

#include "dataplane/base/little_endian.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYED_CHUNK_HEAD_BYTES = 8, KEYED_CHUNK_COUNT_MAX = 64, KEYED_CHUNK_WORD_BYTES = 8 };

struct keyed_chunk {
	uint32_t block, count;
	uint32_t key_bytes, value_bytes; /* of each entry, as they stand here */
};

static inline bool keyed_chunk_can_cut(uint32_t key_bytes, uint32_t value_bytes)
{
	return key_bytes == KEYED_CHUNK_WORD_BYTES && value_bytes == KEYED_CHUNK_WORD_BYTES;
}

/* Bytes of it all. */
static inline size_t keyed_chunk_size(const struct keyed_chunk *c)
{
	return KEYED_CHUNK_HEAD_BYTES + c->count * ((size_t)c->key_bytes + c->value_bytes);
}

/* Of a state with keys and values of so many bytes. */
static inline void keyed_chunk_write_head(
		uint8_t *at, const struct keyed_chunk *c, uint32_t key_bytes, uint32_t value_bytes)
{
	put_u32(at, c->block);
	put_u32(at + 4, c->count | (key_bytes - c->key_bytes) << 8 |
			(value_bytes - c->value_bytes) << 16);
}

/* KEYED_CHUNK_HEAD_BYTES at `at`.  false: these do not begin a chunk of such a state. */
static inline bool keyed_chunk_read_head(
		struct keyed_chunk *c, const uint8_t *at, uint32_t key_bytes, uint32_t value_bytes)
{
	uint32_t cut_max = keyed_chunk_can_cut(key_bytes, value_bytes) ? KEYED_CHUNK_WORD_BYTES : 0;
	uint32_t count = at[4], key_cut = at[5], value_cut = at[6];

	if (count == 0 || count > KEYED_CHUNK_COUNT_MAX || at[7] != 0)
		return false;
	if (key_cut > cut_max || value_cut > cut_max)
		return false;
	*c = (struct keyed_chunk){
		.block = get_u32(at),
		.count = count,
		.key_bytes = key_bytes - key_cut,
		.value_bytes = value_bytes - value_cut,
	};
	return true;
}

/* Bytes of `word` up to the last that is not zero. */
static inline uint32_t keyed_chunk_width(uint64_t word)
{
	return word == 0 ? 0 : 8 - (uint32_t)__builtin_clzll(word) / 8;
}
