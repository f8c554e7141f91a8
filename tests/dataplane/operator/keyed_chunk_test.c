/* What stands in the chunks of a keyed state's snapshot, and which bytes are none. */

#include "dataplane/operator/keyed_chunk.h"

#include "dataplane/operator/keyed_state.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct keyed_state *create(const struct keyed_state_config *config, void **memory)
{
	uint64_t bytes = keyed_state_memory_bytes(config);

	*memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	return keyed_state_create_at(*memory, config);
}

/* One subtask's table of words, 64 of them. */
static const struct keyed_state_config words = {.key_bytes = 8, .value_bytes = 8,
	.entry_count_max = 64, .group_count = 1, .groups = {0, 0}, .snapshots_max = 1};

/* Bytes of a snapshot of so many entries, from which another table gets the same. */
static uint64_t snapshot_bytes(const uint64_t entries[][2], uint32_t count)
{
	void *value, *memory, *memory_back;
	struct keyed_state *s = create(&words, &memory), *back = create(&words, &memory_back);
	size_t used;

	for (uint32_t i = 0; i < count; i++) {
		cr_assert(keyed_state_put_batch(s, &entries[i][0], 8, 1, &value));
		memcpy(value, &entries[i][1], 8);
	}
	struct keyed_snapshot *x = keyed_state_snapshot_begin(s);
	cr_assert(keyed_snapshot_step(x, 100));
	uint64_t size = keyed_snapshot_filled(x);
	for (size_t at = 0; at < size; at += used)
		cr_assert_eq(keyed_state_restore_chunk(back, keyed_snapshot_bytes(x) + at,
					     size - at, &used), 0);
	cr_assert_eq(keyed_state_count(back), count);
	for (uint32_t i = 0; i < count; i++) {
		const void *found;

		keyed_state_get_batch(back, &entries[i][0], 8, 1, &found);
		cr_assert_not_null(found);
		cr_assert_eq(memcmp(found, &entries[i][1], 8), 0);
	}
	free(memory);
	free(memory_back);
	return size;
}

Test(keyed_chunk, leaves_out_bytes_that_are_zero_in_all_entries_of_a_block)
{
	const uint64_t small[][2] = {{1, 0x100}, {255, 7}, {0, 0xffff}};
	const uint64_t zero[][2] = {{0, 0}};
	const uint64_t wide[][2] = {{1, 1}, {UINT64_MAX, 2}, {UINT64_C(1) << 56, UINT64_MAX}};

	cr_assert_eq(snapshot_bytes(zero, 1), 8);
	cr_assert_leq(snapshot_bytes(small, 3), 2 * 8 + 3 * (1 + 2), "two blocks at most");
	cr_assert_leq(snapshot_bytes(wide, 3), 2 * 8 + 3 * (8 + 8));
}

Test(keyed_chunk, keeps_any_entry_behind_narrow_ones)
{
	for (uint32_t bit = 6; bit < 64; bit++) {
		uint64_t entries[64][2];

		for (uint64_t i = 0; i < 64; i++) {
			entries[i][0] = i % 16 == bit % 16 ? UINT64_C(1) << bit | i : i;
			entries[i][1] = i % 16 == 5 ? UINT64_MAX >> (63 - bit) : i;
		}
		cr_assert_leq(snapshot_bytes(entries, 64), 3 * 8 + 64 * 16);
	}
}

/* Of an empty table with room for 100. */
static int restore_alone(const void *chunk, size_t size)
{
	struct keyed_state_config config = words;
	void *memory;
	size_t used;

	config.entry_count_max = 100;
	int rc = keyed_state_restore_chunk(create(&config, &memory), chunk, size, &used);
	free(memory);
	return rc;
}

Test(keyed_chunk, refuses_heads_that_no_chunk_has)
{
	struct {
		uint32_t head[2];
		uint64_t entries[65][2];
	} chunk = {{0, 64}, {{0}}};

	for (uint64_t i = 0; i < 65; i++)
		chunk.entries[i][0] = i;
	cr_assert_eq(restore_alone(&chunk, sizeof(chunk)), 0);
	chunk.head[1] = 65;
	cr_assert_eq(restore_alone(&chunk, sizeof(chunk)), -EBADMSG);
	chunk.head[1] = 1 | 8 << 8 | 8 << 16;
	cr_assert_eq(restore_alone(&chunk, sizeof(chunk)), 0);
	for (uint32_t byte = 1; byte < 4; byte++) {
		chunk.head[1] = 1 | UINT32_C(9) << 8 * byte;
		cr_assert_eq(restore_alone(&chunk, sizeof(chunk)), -EBADMSG);
	}
}

Test(keyed_chunk, refuses_chunks_cut_short_where_none_are)
{
	struct keyed_state_config config = words;
	const uint8_t chunk[8 + 16] = {0, 0, 0, 0, 1, 1, 0, 0};
	void *memory;
	size_t used;

	config.value_bytes = 4;
	struct keyed_state *s = create(&config, &memory);
	cr_assert_eq(keyed_state_restore_chunk(s, chunk, sizeof(chunk), &used), -EBADMSG);
	free(memory);
}

Test(keyed_chunk, refuses_chunks_that_are_none)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 2, .group_count = 1, .groups = {0, 0}, .snapshots_max = 1};
	struct {
		uint32_t head[2];
		uint64_t entries[3][2];
	} chunk = {{0, 2}, {{1, 1}, {1, 2}, {3, 3}}};
	const uint8_t *bytes = (const uint8_t *)&chunk;
	void *memory;
	struct keyed_state *s = create(&config, &memory);
	size_t used;

	cr_assert_eq(keyed_state_restore_chunk(s, bytes, 7, &used), -EBADMSG);
	cr_assert_eq(keyed_state_restore_chunk(s, bytes, 8 + 31, &used), -EBADMSG);
	cr_assert_eq(keyed_state_restore_chunk(s, bytes, 8 + 32, &used), -EBADMSG, "a key twice");
	chunk.head[1] = 0;
	cr_assert_eq(keyed_state_restore_chunk(s, bytes, sizeof(chunk), &used), -EBADMSG);
	chunk.head[1] = 65;
	cr_assert_eq(keyed_state_restore_chunk(s, bytes, sizeof(chunk), &used), -EBADMSG);
	s = keyed_state_create_at(memory, &config);
	chunk.head[1] = 3;
	chunk.entries[1][0] = 2;
	cr_assert_eq(keyed_state_restore_chunk(s, bytes, sizeof(chunk), &used), -ENOSPC);
	free(memory);
}
