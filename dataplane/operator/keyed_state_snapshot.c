/*
 * Snapshots: copies of blocks as they were when the snapshot began, appended to the region in the
 * order in which they had to be made: those about to change first, the rest in table order.
 */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/base/crc.h"
#include "dataplane/operator/keyed_chunk.h"
#include "dataplane/operator/keyed_state_internal.h"

static_assert((int)KEYED_STATE_BLOCK_SLOTS == (int)KEYED_CHUNK_COUNT_MAX, "a block is a chunk");

/* To see that a block has been copied costs that much less than to copy it. */
enum { LOOKS_PER_COPY = 64 };

/* What a budget of blocks is of: entries of two words. */
enum { BUDGET_ENTRY_BYTES = 16 };

/* Blocks whose memory is asked for before they are copied: the copy waits for nothing else.  In a
 * walk the hardware helps, to the end of each page. */
enum { BLOCKS_AHEAD = 4, WALK_BLOCKS_AHEAD = 3 };

/* What a block of small entries takes in the region, about. */
enum { BLOCK_ROOM_BYTES = 1024 };

/* Its room may be used again. */
static bool is_over(const struct keyed_snapshot *x)
{
	return x->phase == SNAPSHOT_NONE ||
			(x->phase == SNAPSHOT_ABORTED && x->piece_count == 0);
}

static struct keyed_snapshot *free_snapshot(const struct keyed_state *s)
{
	for (uint32_t i = 0; i < s->config.snapshots_max; i++) {
		if (is_over(&s->snapshots[i]))
			return (struct keyed_snapshot *)(uintptr_t)&s->snapshots[i];
	}
	return NULL;
}

bool keyed_state_can_snapshot(const struct keyed_state *s)
{
	return free_snapshot(s) != NULL;
}

struct keyed_snapshot *keyed_state_snapshot_begin(struct keyed_state *s)
{
	struct keyed_snapshot *x = free_snapshot(s);

	if (x == NULL)
		return NULL;
	CHECK(x->piece_count == 0);
	*x = (struct keyed_snapshot){
		.table = s,
		.phase = SNAPSHOT_COPYING,
		.epoch = ++s->epoch, /* no block has it */
		.entry_count = s->count,
		.region = x->region,
	};
	s->copying[s->copying_count++] = x;
	return x;
}

/* It copies no more. */
static void leave_copying(struct keyed_snapshot *x, enum snapshot_phase phase)
{
	struct keyed_state *s = x->table;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->copying_count; i++) {
		if (s->copying[i] != x)
			s->copying[kept++] = s->copying[i];
	}
	s->copying_count = kept;
	x->phase = phase;
}

static inline bool lacks(const struct keyed_snapshot *x, uint32_t copied_in)
{
	return (int32_t)(copied_in - x->epoch) < 0;
}

/* Entries of two words, of each as many bytes as `c` says; what is stored beyond them the next one
 * overwrites.  `keys` and `values` get every bit that is set in any. */
static uint8_t *copy_words(uint8_t *at, const uint8_t *slots, uint64_t bits,
		const struct keyed_chunk *c, uint64_t *keys, uint64_t *values)
{
	uint64_t all_keys = 0, all_values = 0;
	size_t key_bytes = c->key_bytes, entry_bytes = key_bytes + c->value_bytes;

	for (; bits != 0; bits &= bits - 1) {
		const uint8_t *slot = slots + (uint32_t)__builtin_ctzll(bits) * 16;
		uint64_t key = get_u64(slot), value = get_u64(slot + 8);

		all_keys |= key;
		all_values |= value;
		put_u64(at, key);
		put_u64(at + key_bytes, value);
		at += entry_bytes;
	}
	*keys = all_keys;
	*values = all_values;
	return at;
}

/* As narrow as the block before, which blocks mostly are; once more if that does not do. */
static uint8_t *copy_narrow(struct keyed_snapshot *x, uint8_t *at, const uint8_t *slots,
		uint64_t bits, struct keyed_chunk *c)
{
	uint64_t keys, values;

	c->key_bytes = x->key_width;
	c->value_bytes = x->value_width;
	uint8_t *end = copy_words(at, slots, bits, c, &keys, &values);
	x->key_width = keyed_chunk_width(keys);
	x->value_width = keyed_chunk_width(values);
	if (x->key_width > c->key_bytes || x->value_width > c->value_bytes) {
		c->key_bytes = x->key_width;
		c->value_bytes = x->value_width;
		end = copy_words(at, slots, bits, c, &keys, &values);
	}
	return end;
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
static void sum(struct keyed_snapshot *x)
{
	x->crc = crc32c(x->crc, x->region + x->summed, x->filled - x->summed);
	x->summed = x->filled;
}

static void sum_all(struct keyed_state *s)
{
	for (uint32_t i = 0; i < s->copying_count; i++)
		sum(s->copying[i]);
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
		sum_all(s);
}

/* The room of a block to come: a store whose line is not here holds up those behind it. */
static inline void prefetch_room(uint8_t *at)
{
	for (uint32_t i = 0; i < BLOCK_ROOM_BYTES; i += LINE_BYTES)
		__builtin_prefetch(at + i, 1, 3);
}

static void append_block(struct keyed_snapshot *x, uint64_t block, uint64_t bits)
{
	const struct keyed_state *s = x->table;
	uint32_t key_bytes = s->config.key_bytes, value_bytes = s->config.value_bytes;
	struct keyed_chunk c = {(uint32_t)block, (uint32_t)__builtin_popcountll(bits), key_bytes,
			value_bytes};
	uint8_t *head = x->region + x->filled, *at = head + KEYED_CHUNK_HEAD_BYTES;

	CHECK(x->filled + keyed_chunk_size(&c) <= s->region_bytes);
	prefetch_room(head + 2 * BLOCK_ROOM_BYTES);
	if (keyed_chunk_can_cut(key_bytes, value_bytes))
		at = copy_narrow(x, at, slot_at(s, block * KEYED_STATE_BLOCK_SLOTS), bits, &c);
	else
		at = copy_entries(s, at, block, bits);
	keyed_chunk_write_head(head, &c, key_bytes, value_bytes);
	x->filled = (uint64_t)(at - x->region);
	x->copied_count += c.count;
}

void keyed_state_copy_block(struct keyed_state *s, uint64_t block)
{
	uint64_t bits = s->occupied[block];
	uint32_t copied_in = s->copied_in[block];

	DCHECK(copied_in != s->epoch);
	s->copied_in[block] = s->epoch;
	if (bits == 0)
		return;
	for (uint32_t i = 0; i < s->copying_count; i++) {
		if (lacks(s->copying[i], copied_in))
			append_block(s->copying[i], block, bits);
	}
}

/* Of larger entries fewer blocks take as long. */
static uint32_t budget_for(const struct keyed_state *s, uint32_t block_budget)
{
	uint64_t blocks = (uint64_t)block_budget * BUDGET_ENTRY_BYTES / s->entry_bytes;

	if (blocks >= block_budget)
		return block_budget;
	return blocks > 0 ? (uint32_t)blocks : 1;
}

bool keyed_snapshot_step(struct keyed_snapshot *x, uint32_t block_budget)
{
	struct keyed_state *s = x->table;
	block_budget = budget_for(s, block_budget);
	uint64_t end = x->next_block + (uint64_t)block_budget * LOOKS_PER_COPY;
	uint32_t copied = 0;

	if (x->phase != SNAPSHOT_COPYING)
		return x->phase == SNAPSHOT_COPIED;
	if (end > s->block_count)
		end = s->block_count;
	for (; x->next_block < end && copied < block_budget; x->next_block++) {
		if (!lacks(x, s->copied_in[x->next_block]))
			continue;
		if (s->block_count - x->next_block > WALK_BLOCKS_AHEAD)
			prefetch_block(s, x->next_block + WALK_BLOCKS_AHEAD);
		keyed_state_copy_block(s, x->next_block);
		if (++copied % KEYED_STATE_GROUP_COUNT == 0)
			sum_all(s);
	}
	sum_all(s);
	if (x->next_block < s->block_count)
		return false;
	CHECK(x->copied_count == x->entry_count);
	leave_copying(x, SNAPSHOT_COPIED);
	if (x->filled % KEYED_STATE_ALIGN_BYTES != 0)
		memset(x->region + x->filled, 0,
				KEYED_STATE_ALIGN_BYTES - x->filled % KEYED_STATE_ALIGN_BYTES);
	return true;
}

uint64_t keyed_snapshot_bytes_max(const struct keyed_snapshot *x)
{
	uint64_t blocks = x->table->block_count;
	uint64_t chunks = x->entry_count < blocks ? x->entry_count : blocks;

	return chunks * KEYED_CHUNK_HEAD_BYTES + x->entry_count * x->table->entry_bytes;
}

uint64_t keyed_snapshot_filled(const struct keyed_snapshot *x)
{
	return x->filled;
}

const uint8_t *keyed_snapshot_bytes(const struct keyed_snapshot *x)
{
	return x->region;
}

uint32_t keyed_snapshot_crc(const struct keyed_snapshot *x)
{
	return crc32c(x->crc, x->region + x->summed, x->filled - x->summed);
}

uint64_t keyed_snapshot_entry_count(const struct keyed_snapshot *x)
{
	return x->entry_count;
}

bool keyed_snapshot_take(struct keyed_snapshot *x, const uint8_t **bytes, uint32_t *size)
{
	uint64_t ready = x->filled - x->taken;

	if (x->phase != SNAPSHOT_COPYING && x->phase != SNAPSHOT_COPIED)
		return false;
	if (ready > KEYED_STATE_PIECE_BYTES)
		ready = KEYED_STATE_PIECE_BYTES;
	if (ready == 0 || (ready < KEYED_STATE_PIECE_BYTES && x->phase == SNAPSHOT_COPYING))
		return false;
	*bytes = x->region + x->taken;
	*size = (uint32_t)ready;
	x->taken += ready;
	x->piece_count++;
	return true;
}

void keyed_snapshot_release(struct keyed_snapshot *x)
{
	CHECK(x->piece_count > 0);
	x->piece_count--;
}

void keyed_snapshot_end(struct keyed_snapshot *x)
{
	CHECK(x->phase == SNAPSHOT_COPIED);
	CHECK(x->piece_count == 0);
	x->phase = SNAPSHOT_NONE;
}

void keyed_snapshot_abort(struct keyed_snapshot *x)
{
	if (x->phase != SNAPSHOT_NONE)
		leave_copying(x, SNAPSHOT_ABORTED);
}
