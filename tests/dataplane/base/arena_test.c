#include "dataplane/base/arena.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

Test(arena, pieces_are_aligned_and_do_not_overlap)
{
	uint8_t *pieces[40];
	struct arena a;

	arena_open(&a, 64, 100000);
	for (size_t i = 0; i < 40; i++) {
		pieces[i] = arena_take(&a, i * 7);
		cr_assert(ne(ptr, pieces[i], NULL));
		cr_assert(eq(sz, (uintptr_t)pieces[i] % ARENA_ALIGN, 0));
		memset(pieces[i], (int)i, i * 7);
	}
	for (size_t i = 0; i < 40; i++) {
		for (size_t k = 0; k < i * 7; k++)
			cr_assert(eq(u8, pieces[i][k], (uint8_t)i));
	}
	arena_close(&a);
}

Test(arena, nothing_is_taken_beyond_the_bound)
{
	struct arena a;

	arena_open(&a, 16, 1000 + ARENA_PIECE_BYTES);
	cr_assert(eq(ptr, arena_take(&a, 1001), NULL));
	cr_assert(ne(ptr, arena_take(&a, 1000), NULL));
	cr_assert(eq(ptr, arena_take(&a, 0), NULL));
	cr_assert(eq(ptr, arena_take(&a, SIZE_MAX), NULL));
	arena_close(&a);
}

Test(arena, many_small_pieces_count_for_more_than_their_bytes)
{
	struct arena a;
	int count = 0;

	arena_open(&a, 16, 100 * (ARENA_PIECE_BYTES + 1));
	while (arena_take(&a, 1) != NULL)
		count++;
	cr_assert(eq(int, count, 100));
	arena_close(&a);
}

Test(arena, one_of_which_nothing_was_taken_can_be_closed)
{
	struct arena a;

	arena_open(&a, 16, 16);
	arena_close(&a);
	arena_close(&a);
}
