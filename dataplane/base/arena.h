#pragma once

/*
 * arena: memory that is taken piece by piece and given back at once; for decoding one message.
 *
 * Place    base.
 * Thread   one owner.
 * Memory   blocks of malloc's, the first as large as asked for, each next one twice the last;
 *          pieces are aligned to ARENA_ALIGN.  The sum of the pieces is bounded, each counted with
 *          ARENA_PIECE_BYTES more, so that very many small ones are no way around the bound.
 * Errors   NULL: over the bound, or out of memory.
 * Life     open, { take }*, close.  It may be copied, and the copy closed in its place.
 */

#include <stddef.h>
#include <stdint.h>

enum { ARENA_ALIGN = 16, ARENA_PIECE_BYTES = 32 };

struct arena_block;

struct arena {
	struct arena_block *blocks; /* the newest first */
	uint8_t *at;
	size_t left_bytes;  /* in the newest block */
	size_t block_bytes; /* of the next one */
	size_t bound_bytes; /* what may still be taken */
};

/* Takes nothing from malloc yet. */
void arena_open(struct arena *a, size_t first_bytes, size_t bound_bytes);
void *arena_take(struct arena *a, size_t bytes);
void arena_close(struct arena *a);

/* The same in the shape in which decoders such as protobuf-c want it: `arena` is the arena, and a
 * piece goes with it. */
void *arena_alloc(void *arena, size_t bytes);
void arena_keep(void *arena, void *piece);
