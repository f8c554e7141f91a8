/*
 * Snapshots: copies of blocks as they were when the snapshot began, appended to the region in the
 * order in which they had to be made: those about to change first, the rest in table order.
 */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/base/crc.h"
#include "dataplane/operator/keyed_state_internal.h"

/* To see that a block has been copied costs that much less than to copy it. */
enum { LOOKS_PER_COPY = 64 };

/* Blocks whose memory is asked for before they are copied: the copy waits for nothing else. */
enum { BLOCKS_AHEAD = 4 };

bool keyed_state_snapshot_is_over(const struct keyed_state *s)
{
	return s->phase == SNAPSHOT_NONE ||
			(s->phase == SNAPSHOT_ABORTED && s->piece_count == 0);
}

bool keyed_state_snapshot_begin(struct keyed_state *s)
{
	if (!keyed_state_snapshot_is_over(s))
		return false;
	CHECK(s->piece_count == 0);
	s->phase = SNAPSHOT_COPYING;
	s->epoch++; /* no block has it */
	s->next_block = 0;
	s->snapshot_count = s->count;
	s->copied_count = 0;
	s->filled = 0;
	s->summed = 0;
	s->crc = 0;
	s->taken = 0;
	return true;
}

/* Slots of 16 bytes that are all entry. */
static uint8_t *copy_slots(uint8_t *at, const uint8_t *slots, uint64_t bits)
{
	for (; bits != 0; bits &= bits - 1) {
		memcpy(at, slots + (uint32_t)__builtin_ctzll(bits) * 16, 16);
		at += 16;
	}
	return at;
}

static uint8_t *copy_entries(
		const struct keyed_state *s, uint8_t *at, uint64_t block, uint64_t bits)
{
	uint32_t key_bytes = s->config.key_bytes, value_bytes = s->config.value_bytes;

	for (; bits != 0; bits &= bits - 1) {
		const uint8_t *slot = slot_at(s,
				block * KEYED_STATE_BLOCK_SLOTS + (uint32_t)__builtin_ctzll(bits));

		memcpy(at, slot, key_bytes);
		memcpy(at + key_bytes, slot + s->value_offset, value_bytes);
		at += s->entry_bytes;
	}
	return at;
}

static inline void prefetch_block(const struct keyed_state *s, uint64_t block)
{
	const uint8_t *slots = slot_at(s, block * KEYED_STATE_BLOCK_SLOTS);

	for (uint32_t i = 0; i < KEYED_STATE_BLOCK_SLOTS * s->slot_bytes; i += LINE_BYTES)
		__builtin_prefetch(slots + i, 0, 3);
}

/* What has been copied since the last time; a group of blocks is still in the first-level cache. */
static void sum(struct keyed_state *s)
{
	s->crc = crc32c(s->crc, s->region + s->summed, s->filled - s->summed);
	s->summed = s->filled;
}

void keyed_state_copy_blocks_of(struct keyed_state *s, const uint64_t *slots, uint32_t count)
{
	uint64_t blocks[KEYED_STATE_GROUP_COUNT];
	uint32_t missing = 0;

	CHECK(count <= KEYED_STATE_GROUP_COUNT);
	for (uint32_t i = 0; i < count; i++) {
		blocks[missing] = slots[i] / KEYED_STATE_BLOCK_SLOTS;
		missing += s->copied_in[blocks[missing]] != s->epoch;
	}
	for (uint32_t i = 0; i < missing && i < BLOCKS_AHEAD; i++)
		prefetch_block(s, blocks[i]);
	for (uint32_t i = 0; i < missing; i++) {
		if (i + BLOCKS_AHEAD < missing)
			prefetch_block(s, blocks[i + BLOCKS_AHEAD]);
		if (s->copied_in[blocks[i]] != s->epoch) /* it may stand there twice */
			keyed_state_copy_block(s, blocks[i]);
	}
	if (missing > 0)
		sum(s);
}

void keyed_state_copy_block(struct keyed_state *s, uint64_t block)
{
	uint64_t bits = s->occupied[block];
	uint32_t head[2] = {(uint32_t)block, (uint32_t)__builtin_popcountll(bits)};
	uint8_t *at = s->region + s->filled;

	DCHECK(s->copied_in[block] != s->epoch);
	s->copied_in[block] = s->epoch;
	if (bits == 0)
		return;
	CHECK(s->filled + sizeof(head) + (uint64_t)head[1] * s->entry_bytes <= s->region_bytes);
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	if (s->entry_bytes == 16 && s->slot_bytes == 16)
		at = copy_slots(at, slot_at(s, block * KEYED_STATE_BLOCK_SLOTS), bits);
	else
		at = copy_entries(s, at, block, bits);
	s->filled = (uint64_t)(at - s->region);
	s->copied_count += head[1];
}

bool keyed_state_snapshot_step(struct keyed_state *s, uint32_t block_budget)
{
	uint64_t end = s->next_block + (uint64_t)block_budget * LOOKS_PER_COPY;
	uint32_t copied = 0;

	if (s->phase != SNAPSHOT_COPYING)
		return s->phase == SNAPSHOT_COPIED;
	if (end > s->block_count)
		end = s->block_count;
	for (; s->next_block < end && copied < block_budget; s->next_block++) {
		if (s->copied_in[s->next_block] == s->epoch)
			continue;
		keyed_state_copy_block(s, s->next_block);
		if (++copied % KEYED_STATE_GROUP_COUNT == 0)
			sum(s);
	}
	sum(s);
	if (s->next_block < s->block_count)
		return false;
	CHECK(s->copied_count == s->snapshot_count);
	s->phase = SNAPSHOT_COPIED;
	if (s->filled % KEYED_STATE_ALIGN_BYTES != 0)
		memset(s->region + s->filled, 0,
				KEYED_STATE_ALIGN_BYTES - s->filled % KEYED_STATE_ALIGN_BYTES);
	return true;
}

uint64_t keyed_state_snapshot_bytes_max(const struct keyed_state *s)
{
	uint64_t chunks = s->snapshot_count < s->block_count ? s->snapshot_count : s->block_count;

	return chunks * 8 + s->snapshot_count * s->entry_bytes;
}

uint64_t keyed_state_snapshot_filled(const struct keyed_state *s)
{
	return s->filled;
}

const uint8_t *keyed_state_snapshot_bytes(const struct keyed_state *s)
{
	return s->region;
}

uint32_t keyed_state_snapshot_crc(const struct keyed_state *s)
{
	return crc32c(s->crc, s->region + s->summed, s->filled - s->summed);
}

uint64_t keyed_state_snapshot_entry_count(const struct keyed_state *s)
{
	return s->snapshot_count;
}

bool keyed_state_snapshot_take(struct keyed_state *s, const uint8_t **bytes, uint32_t *size)
{
	uint64_t ready = s->filled - s->taken;

	if (s->phase != SNAPSHOT_COPYING && s->phase != SNAPSHOT_COPIED)
		return false;
	if (ready > KEYED_STATE_PIECE_BYTES)
		ready = KEYED_STATE_PIECE_BYTES;
	if (ready == 0 || (ready < KEYED_STATE_PIECE_BYTES && s->phase == SNAPSHOT_COPYING))
		return false;
	*bytes = s->region + s->taken;
	*size = (uint32_t)ready;
	s->taken += ready;
	s->piece_count++;
	return true;
}

void keyed_state_snapshot_release(struct keyed_state *s)
{
	CHECK(s->piece_count > 0);
	s->piece_count--;
}

void keyed_state_snapshot_end(struct keyed_state *s)
{
	CHECK(s->phase == SNAPSHOT_COPIED);
	CHECK(s->piece_count == 0);
	s->phase = SNAPSHOT_NONE;
}

void keyed_state_snapshot_abort(struct keyed_state *s)
{
	if (s->phase != SNAPSHOT_NONE)
		s->phase = SNAPSHOT_ABORTED;
}
