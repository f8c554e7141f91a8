#include "dataplane/base/arena.h"

#include <assert.h>
#include <stdlib.h>

struct arena_block {
	struct arena_block *next;
	size_t bytes; /* keeps what follows aligned */
};

static_assert(sizeof(struct arena_block) % ARENA_ALIGN == 0, "pieces are aligned");

void arena_open(struct arena *a, size_t first_bytes, size_t bound_bytes)
{
	*a = (struct arena){.block_bytes = first_bytes, .bound_bytes = bound_bytes};
}

static int add_block(struct arena *a, size_t bytes)
{
	size_t room = bytes > a->block_bytes ? bytes : a->block_bytes;
	struct arena_block *b = malloc(sizeof(*b) + room);

	if (b == NULL)
		return -1;
	*b = (struct arena_block){a->blocks, room};
	a->blocks = b;
	a->at = (uint8_t *)(b + 1);
	a->left_bytes = room;
	a->block_bytes = 2 * room;
	return 0;
}

void *arena_take(struct arena *a, size_t bytes)
{
	if (bytes > a->bound_bytes || a->bound_bytes - bytes < ARENA_PIECE_BYTES)
		return NULL;

	size_t units = bytes == 0 ? 1 : (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN;
	size_t rounded = units * ARENA_ALIGN;

	if (rounded > a->left_bytes && add_block(a, rounded) != 0)
		return NULL;

	void *piece = a->at;

	a->at += rounded;
	a->left_bytes -= rounded;
	a->bound_bytes -= bytes + ARENA_PIECE_BYTES;
	return piece;
}

void arena_close(struct arena *a)
{
	struct arena_block *b = a->blocks;

	while (b != NULL) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	*a = (struct arena){0};
}

void *arena_alloc(void *arena, size_t bytes)
{
	return arena_take(arena, bytes);
}

void arena_keep(void *arena, void *piece)
{
	(void)arena;
	(void)piece;
}
