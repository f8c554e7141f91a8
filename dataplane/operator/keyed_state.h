#pragma once

/*
 * keyed_state: one keyed state of one subtask: a hash table in the order of the key groups, with
 * snapshots that are taken while it changes.
 *
 * Place    operator; the service table of the chain calls it, state_writer drives its snapshots.
 * Thread   one owner, the worker of the task; create and restore before the task runs.
 * Memory   everything lies in the memory given to create, the room for each full snapshot that may
 *          be under way at a time included.
 * Time     a snapshot begins in O(1); each step is bounded by its budget; a batch copies at most
 *          the blocks it changes, once for each snapshot that lacks them.
 * Errors   bool speaks of a bound (full, busy); bytes of a restore are foreign: 0 or -errno.
 * Life     create_at, restore_chunk*, { put | get | next | remove | snapshot }*, then the memory
 *          is simply given back.  A snapshot: begin, { step | take | release }*, end or abort.
 *
 * The position of an entry grows with the 64-bit hash of its key, so that each key group is a
 * range of the table (but for entries that had to move up a few places).  Probing goes upwards
 * into a tail behind the last position and never wraps.  Where only the front of a key decides the
 * key group, the whole key decides the position: one busy front would else fill its own range and
 * leave the others empty.
 */

#include "dataplane/base/key_group.h"
#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	KEYED_STATE_ALIGN_BYTES = 4096,
	KEYED_STATE_VALUE_BYTES_MAX = 65536,
	KEYED_STATE_BATCH_MAX = 512,       /* keys in one put or get */
	KEYED_STATE_BLOCK_SLOTS = 64,      /* the unit a snapshot copies */
	KEYED_STATE_PIECE_BYTES = 8 << 20, /* the unit a snapshot hands out */
	KEYED_STATE_SNAPSHOTS_MAX = CHECKPOINTS_IN_FLIGHT_MAX,
};

struct keyed_state;
struct keyed_snapshot;

struct keyed_state_config {
	uint32_t key_bytes;            /* 1..KEY_BYTES_MAX; 8 is the fast case */
	uint32_t value_bytes; /* 1..KEYED_STATE_VALUE_BYTES_MAX; aligned to 8 in the table */
	uint32_t group_bytes;          /* at the front of the key decide its key group; 0: all */
	uint64_t entry_count_max;      /* entries of this subtask, 1 or more */
	uint32_t group_count;          /* key groups of the job, a power of two */
	struct key_group_range groups; /* those of this subtask */
	uint32_t snapshots_max;        /* under way at a time, 1..KEYED_STATE_SNAPSHOTS_MAX */
};

/* Memory that create_at needs, a multiple of KEYED_STATE_ALIGN_BYTES; 0 for a bad config or one
 * that no address space holds. */
uint64_t keyed_state_memory_bytes(const struct keyed_state_config *config);

/* An empty table in `memory` (KEYED_STATE_ALIGN_BYTES aligned, keyed_state_memory_bytes long),
 * every byte of which it touches.  Never fails for a config that has a size. */
struct keyed_state *keyed_state_create_at(void *memory, const struct keyed_state_config *config);

const struct keyed_state_config *keyed_state_config_of(const struct keyed_state *s);
uint64_t keyed_state_count(const struct keyed_state *s);

/* Finds or makes (zeroed) the entries of `count` keys that stand `stride` bytes apart.  `values`
 * may be changed until the next call on this table.  false: keyed_state_error says why, and some
 * of the keys may have been made. */
bool keyed_state_put_batch(struct keyed_state *s, const void *keys, uint32_t stride,
		uint32_t count, void **values);

/* NULL for a key that is not there.  The values must not be changed. */
void keyed_state_get_batch(const struct keyed_state *s, const void *keys, uint32_t stride,
		uint32_t count, const void **values);

/* Why put_batch said false: -ENOSPC (entry_count_max reached), -EDOM (a key of a key group that
 * is another subtask's: the edge in front of this operator does not partition by this key). */
int keyed_state_error(const struct keyed_state *s);

/* Walks the entries in table order: *cursor 0 begins, false ends.  Entries made during a walk may
 * or may not be met; all others are met exactly once. */
bool keyed_state_next(const struct keyed_state *s, uint64_t *cursor, const void **key,
		const void **value);

/* Removes the entry that keyed_state_next has just returned, and moves *cursor so that the walk
 * goes on with the one behind it. */
void keyed_state_remove(struct keyed_state *s, uint64_t *cursor);

/* ---- snapshot -------------------------------------------------------------------------------
 * A sequence of chunks (keyed_chunk.h), one for each block that has entries. */

/* Freezes the present contents: O(1).  NULL while snapshots_max others are under way (or their
 * pieces are not all released): the caller declines its checkpoint. */
struct keyed_snapshot *keyed_state_snapshot_begin(struct keyed_state *s);
/* The next begin will work. */
bool keyed_state_can_snapshot(const struct keyed_state *s);

/* Copies up to `block_budget` more blocks; of entries larger than 16 bytes fewer, which have no
 * more bytes, or one.  True when everything has been copied. */
bool keyed_snapshot_step(struct keyed_snapshot *x, uint32_t block_budget);

/* Upper bound of the bytes this snapshot will have, known from its beginning. */
uint64_t keyed_snapshot_bytes_max(const struct keyed_snapshot *x);

/* Bytes copied so far; the first of them stand at _bytes and stay there until _end. */
uint64_t keyed_snapshot_filled(const struct keyed_snapshot *x);
const uint8_t *keyed_snapshot_bytes(const struct keyed_snapshot *x);
uint64_t keyed_snapshot_entry_count(const struct keyed_snapshot *x);

/* CRC32C of the bytes copied so far: they are summed while they are still near. */
uint32_t keyed_snapshot_crc(const struct keyed_snapshot *x);

/* The next finished piece: KEYED_STATE_PIECE_BYTES of it, or the rest once all is copied; false
 * when there is none now.  Pieces begin KEYED_STATE_ALIGN_BYTES aligned; behind the last one
 * there are zeros up to that alignment. */
bool keyed_snapshot_take(struct keyed_snapshot *x, const uint8_t **bytes, uint32_t *size);

/* A piece has been written, or will never be. */
void keyed_snapshot_release(struct keyed_snapshot *x);

/* Everything is copied, taken and released: its room is free for another one. */
void keyed_snapshot_end(struct keyed_snapshot *x);

/* Gives up at any moment.  Its room is free once the pieces taken are released. */
void keyed_snapshot_abort(struct keyed_snapshot *x);

/* Puts one chunk from the front of `bytes` into the table, `*used` bytes long.  Entries of other
 * key groups than this subtask's are passed over.  -EBADMSG: not a chunk, or a key twice;
 * -ENOSPC: more entries than fit. */
int keyed_state_restore_chunk(struct keyed_state *s, const uint8_t *bytes, size_t size,
		size_t *used);
