#pragma once

/*
 * keyed_state_internal: the table itself, shared by keyed_state.c (entries) and
 * keyed_state_snapshot.c (copies of them).
 *
 * A slot is { key, padding to 8, value, padding to 8 }.  Slots stand in blocks of 64 with one
 * word of occupancy bits; a block is what a snapshot copies.
 */

#include "dataplane/operator/keyed_state.h"

#include <string.h>

enum snapshot_phase {
	SNAPSHOT_NONE,
	SNAPSHOT_COPYING, /* a block is copied before its first change */
	SNAPSHOT_COPIED,  /* pieces wait to be taken or released */
	SNAPSHOT_ABORTED, /* pieces wait to be released */
};

struct keyed_snapshot {
	struct keyed_state *table;
	enum snapshot_phase phase;
	uint32_t epoch;                     /* younger snapshots have larger ones, modulo 2^32 */
	uint64_t next_block;
	uint64_t entry_count, copied_count; /* entries it has, entries copied */
	uint64_t filled, taken;             /* bytes in the region */
	uint64_t summed;                    /* of them in `crc` */
	uint32_t key_width, value_width;    /* bytes the block copied last needs of its words */
	uint32_t crc;
	uint32_t piece_count;               /* taken and not released */
	uint8_t *region;
};

struct keyed_state {
	struct keyed_state_config config;
	int error;
	uint32_t slot_bytes, value_offset, entry_bytes;
	uint64_t home_mask;  /* cleared in a home position: it is the first slot of a line */
	uint64_t base;       /* lowest hash of this subtask */
	uint64_t width_last; /* highest hash - base */
	uint64_t home_base;  /* home = (hash - home_base) * scale / 2^64 */
	uint64_t scale;
	uint64_t slot_count, block_count, count;
	uint8_t *slots;
	uint64_t *occupied; /* a word for each block, and one more that stays 0 */

	/* For each block the youngest epoch there was when it was copied last: the snapshots that
	 * are copying have it exactly if their epoch is not younger. */
	uint32_t *copied_in;
	uint32_t epoch; /* of the youngest snapshot */
	uint32_t copying_count;
	struct keyed_snapshot *copying[KEYED_STATE_SNAPSHOTS_MAX];
	struct keyed_snapshot snapshots[KEYED_STATE_SNAPSHOTS_MAX]; /* snapshots_max of them */
	uint64_t region_bytes; /* of each */
};

/* Keys between asking for memory and touching it. */
enum { KEYED_STATE_GROUP_COUNT = 64 };

/* Copies one block to those of the snapshots that lack it. */
void keyed_state_copy_block(struct keyed_state *s, uint64_t block);

/* The same for the blocks of up to KEYED_STATE_GROUP_COUNT slots. */
void keyed_state_copy_blocks_of(struct keyed_state *s, const uint64_t *slots, uint32_t count);

static inline uint8_t *slot_at(const struct keyed_state *s, uint64_t slot)
{
	return s->slots + slot * s->slot_bytes;
}

static inline bool is_occupied(const struct keyed_state *s, uint64_t slot)
{
	return s->occupied[slot / KEYED_STATE_BLOCK_SLOTS] >> slot % KEYED_STATE_BLOCK_SLOTS & 1;
}
