/*
 * Entries: batches find their homes first and ask for the memory, then probe.  The layout of
 * 16-byte slots with 8-byte keys has a way of its own: a home is the first slot of a cache line,
 * and the key is looked for in all four without a branch.  That way is compiled twice, so that a
 * table nobody is copying pays nothing for the copies.
 */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/operator/keyed_chunk.h"
#include "dataplane/operator/keyed_state_internal.h"

#include <errno.h>

enum {
	GROUP_COUNT = KEYED_STATE_GROUP_COUNT,
	TAIL_SLOTS_MAX = 4096,
	LINE_SLOTS = 4,   /* of the fast layout: 8-byte key, value of at most 8 bytes */
};

#define ENTRY_COUNT_LIMIT (UINT64_C(1) << 40)
/* What stands in free slots of the fast layout, so that a key is found without the bits. */
#define FREE_KEY UINT64_C(0x8d1f2a6cb7e54093)

#define always_inline inline __attribute__((always_inline))

static always_inline uint64_t load64(const void *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- memory --------------------------------------------------------------------------------- */

struct sizes {
	uint32_t slot_bytes, value_offset;
	uint64_t home_count, slot_count;
	uint64_t slots, occupied, copied_in, region; /* bytes */
};

static bool is_valid(const struct keyed_state_config *c)
{
	if (c->key_bytes == 0 || c->key_bytes > KEY_BYTES_MAX)
		return false;
	if (c->value_bytes == 0 || c->value_bytes > KEYED_STATE_VALUE_BYTES_MAX)
		return false;
	if (c->group_bytes > c->key_bytes)
		return false;
	if (c->entry_count_max == 0 || c->entry_count_max > ENTRY_COUNT_LIMIT)
		return false;
	if (c->group_count == 0 || c->group_count > KEY_GROUPS_COUNT_MAX ||
			(c->group_count & (c->group_count - 1)) != 0)
		return false;
	if (c->snapshots_max == 0 || c->snapshots_max > KEYED_STATE_SNAPSHOTS_MAX)
		return false;
	return c->groups.first <= c->groups.last && c->groups.last < c->group_count;
}

static struct sizes sizes_of(const struct keyed_state_config *c)
{
	struct sizes z;
	uint64_t tail = c->entry_count_max < TAIL_SLOTS_MAX ? c->entry_count_max : TAIL_SLOTS_MAX;
	uint64_t entry_bytes = (uint64_t)c->key_bytes + c->value_bytes;

	z.value_offset = (uint32_t)round_up(c->key_bytes, 8);
	z.slot_bytes = (uint32_t)round_up(z.value_offset + c->value_bytes, 8);
	z.home_count = round_up(c->entry_count_max + c->entry_count_max / 2,
			KEYED_STATE_BLOCK_SLOTS);
	z.slot_count = z.home_count + round_up(tail, KEYED_STATE_BLOCK_SLOTS);

	uint64_t blocks = z.slot_count / KEYED_STATE_BLOCK_SLOTS;
	uint64_t chunks = blocks < c->entry_count_max ? blocks : c->entry_count_max;

	z.slots = z.slot_count * z.slot_bytes;
	z.occupied = round_up((blocks + 1) * sizeof(uint64_t), LINE_BYTES);
	z.copied_in = round_up(blocks * sizeof(uint32_t), LINE_BYTES);
	z.region = round_up(chunks * KEYED_CHUNK_HEAD_BYTES + c->entry_count_max * entry_bytes,
			KEYED_STATE_ALIGN_BYTES);
	return z;
}

static uint64_t head_bytes(const struct sizes *z)
{
	return round_up(round_up(sizeof(struct keyed_state), LINE_BYTES) + z->slots + z->occupied +
			z->copied_in, KEYED_STATE_ALIGN_BYTES);
}

uint64_t keyed_state_memory_bytes(const struct keyed_state_config *config)
{
	if (!is_valid(config))
		return 0;

	struct sizes z = sizes_of(config);

	return head_bytes(&z) + z.region * config->snapshots_max;
}

static bool has_front(const struct keyed_state *s)
{
	return s->config.group_bytes != 0 && s->config.group_bytes < s->config.key_bytes;
}

static bool is_fast(const struct keyed_state *s)
{
	return s->config.key_bytes == 8 && s->slot_bytes == 16 && !has_front(s);
}

static void free_slot(struct keyed_state *s, uint64_t slot)
{
	static const uint64_t free_key = FREE_KEY;

	if (is_fast(s))
		memcpy(slot_at(s, slot), &free_key, sizeof(free_key));
}

/* Touches all of it, so that no page is missing when records come; and each page once, for this is
 * most of the time that a restore of little state takes. */
static void clear(struct keyed_state *s, const struct sizes *z)
{
	uint8_t *behind = s->slots + z->slots;

	if (!is_fast(s))
		memset(s->slots, 0, z->slots);
	for (uint64_t slot = 0; is_fast(s) && slot < s->slot_count; slot++) {
		memset(slot_at(s, slot), 0, 16);
		free_slot(s, slot);
	}
	memset(behind, 0, (size_t)((uint8_t *)s + head_bytes(z) - behind) +
			z->region * s->config.snapshots_max);
}

static void lay_out_homes(struct keyed_state *s, uint64_t home_count)
{
	const struct keyed_state_config *c = &s->config;
	uint32_t groups = c->groups.last - c->groups.first + 1;
	uint32_t bits = (uint32_t)__builtin_ctz(c->group_count);

	/* All of 2^64 wraps to 0 and its last to UINT64_MAX. */
	s->base = bits == 0 ? 0 : (uint64_t)c->groups.first << (64 - bits);
	s->width_last = (bits == 0 ? 0 : (uint64_t)groups << (64 - bits)) - 1;
	s->home_base = has_front(s) ? 0 : s->base;
	/* 2^64 / width = 2^bits / groups. */
	s->scale = has_front(s) ? home_count : (home_count << bits) / groups;
}

struct keyed_state *keyed_state_create_at(void *memory, const struct keyed_state_config *config)
{
	struct keyed_state *s = memory;
	struct sizes z;

	CHECK(is_valid(config));
	CHECK((uintptr_t)memory % KEYED_STATE_ALIGN_BYTES == 0);
	z = sizes_of(config);
	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->slot_bytes = z.slot_bytes;
	s->value_offset = z.value_offset;
	s->entry_bytes = config->key_bytes + config->value_bytes;
	s->home_mask = is_fast(s) ? LINE_SLOTS - 1 : 0;
	s->slot_count = z.slot_count;
	s->block_count = z.slot_count / KEYED_STATE_BLOCK_SLOTS;
	lay_out_homes(s, z.home_count);
	s->slots = (uint8_t *)memory + round_up(sizeof(*s), LINE_BYTES);
	s->occupied = (uint64_t *)(void *)(s->slots + z.slots);
	s->copied_in = (uint32_t *)(void *)(s->slots + z.slots + z.occupied);
	s->region_bytes = z.region;
	for (uint32_t i = 0; i < config->snapshots_max; i++)
		s->snapshots[i] = (struct keyed_snapshot){.table = s,
			.region = (uint8_t *)memory + head_bytes(&z) + i * z.region};
	clear(s, &z);
	return s;
}

const struct keyed_state_config *keyed_state_config_of(const struct keyed_state *s)
{
	return &s->config;
}

uint64_t keyed_state_count(const struct keyed_state *s)
{
	return s->count;
}

int keyed_state_error(const struct keyed_state *s)
{
	return s->error;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Where the probing for a key of this subtask begins. */
static uint64_t home_of(const struct keyed_state *s, const uint8_t *key)
{
	uint64_t offset = key_hash(key, s->config.key_bytes) - s->home_base;
	uint64_t slot = (uint64_t)((unsigned __int128)offset * s->scale >> 64);

	return slot & ~s->home_mask;
}

/* Whether the key group of a key is one of this subtask's. */
static bool is_own_key(const struct keyed_state *s, const uint8_t *key)
{
	uint32_t bytes = has_front(s) ? s->config.group_bytes : s->config.key_bytes;

	return key_hash(key, bytes) - s->base <= s->width_last;
}

/* Homes of one group of keys; asks for their memory.  false: a key of another subtask. */
static bool find_homes(const struct keyed_state *s, const uint8_t *keys, uint32_t stride,
		uint32_t count, uint64_t *home)
{
	bool is_foreign = false;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *key = keys + (size_t)i * stride;

		is_foreign |= !is_own_key(s, key);
		home[i] = home_of(s, key);
		__builtin_prefetch(slot_at(s, home[i]), 1, 3);
	}
	return !is_foreign;
}

/* The same for the fast layout; what the loop needs stays in registers. */
static always_inline bool find_lines(const struct keyed_state *s, const uint8_t *keys,
		uint32_t stride, uint32_t count, uint64_t *home)
{
	const uint64_t base = s->base, width_last = s->width_last, scale = s->scale;
	const uint8_t *slots = s->slots;
	bool is_foreign = false;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = key_hash(keys + (size_t)i * stride, 8) - base;
		uint64_t slot = (uint64_t)((unsigned __int128)offset * scale >> 64);

		is_foreign |= offset > width_last;
		home[i] = slot & ~(uint64_t)(LINE_SLOTS - 1);
		__builtin_prefetch(slots + home[i] * 16, 1, 3);
	}
	return !is_foreign;
}

static always_inline bool is_key_equal(const uint8_t *a, const uint8_t *b, uint32_t key_bytes)
{
	if (key_bytes % 8 != 0)
		return memcmp(a, b, key_bytes) == 0;
	for (uint32_t i = 0; i < key_bytes; i += 8) {
		if (load64(a + i) != load64(b + i))
			return false;
	}
	return true;
}

/* The slot of the key, or the free one where it belongs; slot_count when there is none. */
static always_inline uint64_t probe(
		const struct keyed_state *s, const uint8_t *key, uint64_t home, uint32_t key_bytes)
{
	uint64_t slot = home;

	while (is_occupied(s, slot) && !is_key_equal(slot_at(s, slot), key, key_bytes))
		slot++;
	return slot;
}

/* Before a block changes: the running snapshots get it as it was. */
static always_inline void touch(struct keyed_state *s, uint64_t slot)
{
	uint64_t block = slot / KEYED_STATE_BLOCK_SLOTS;

	if (__builtin_expect(s->copied_in[block] != s->epoch, 0))
		keyed_state_copy_block(s, block);
}

static bool fail(struct keyed_state *s, int error)
{
	s->error = error;
	return false;
}

static bool insert(struct keyed_state *s, const uint8_t *key, uint64_t slot)
{
	uint8_t *at = slot_at(s, slot);

	if (slot == s->slot_count || s->count == s->config.entry_count_max)
		return fail(s, -ENOSPC);
	if (s->copying_count > 0)
		touch(s, slot);
	memcpy(at, key, s->config.key_bytes);
	memset(at + s->value_offset, 0, s->slot_bytes - s->value_offset);
	s->occupied[slot / KEYED_STATE_BLOCK_SLOTS] |= UINT64_C(1)
						       << slot % KEYED_STATE_BLOCK_SLOTS;
	s->count++;
	return true;
}

/* The general way for one key: probes, makes the entry if it is not there. */
static __attribute__((noinline)) bool put_one(
		struct keyed_state *s, const uint8_t *key, uint64_t home, void **value)
{
	uint64_t slot = probe(s, key, home, s->config.key_bytes);

	if (is_occupied(s, slot)) {
		if (s->copying_count > 0)
			touch(s, slot);
	} else if (!insert(s, key, slot)) {
		return false;
	}
	*value = slot_at(s, slot) + s->value_offset;
	return true;
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Fast layout: a bit for the slot of the line that holds the key; 0: none.  The compiler is kept
 * from making branches of it: which slot it is cannot be foreseen. */
static always_inline uint32_t find_in_line(const uint8_t *line, uint64_t key)
{
	uint32_t hits = 0;

	for (uint32_t i = 0; i < LINE_SLOTS; i++)
		hits |= (uint32_t)(load64(line + i * 16) == key) << i;
	__asm__("" : "+r"(hits));
	return hits;
}

static bool put_group(struct keyed_state *s, const uint8_t *keys, uint32_t stride, uint32_t count,
		void **values)
{
	uint64_t home[GROUP_COUNT];

	if (!find_homes(s, keys, stride, count, home))
		return fail(s, -EDOM);
	for (uint32_t i = 0; i < count; i++) {
		if (!put_one(s, keys + (size_t)i * stride, home[i], &values[i]))
			return false;
	}
	return true;
}

static always_inline bool put_group_fast(struct keyed_state *s, const uint8_t *keys,
		uint32_t stride, uint32_t count, void **values, const bool is_copying)
{
	uint64_t home[GROUP_COUNT];
	uint8_t *slots = s->slots;

	if (!find_lines(s, keys, stride, count, home))
		return fail(s, -EDOM);
	if (is_copying)
		keyed_state_copy_blocks_of(s, home, count);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *key = keys + (size_t)i * stride;
		uint8_t *line = slots + home[i] * 16;
		uint32_t hits = find_in_line(line, load64(key));

		/* One in fifty stands in the line behind. */
		if (__builtin_expect(hits == 0, 0)) {
			line += LINE_BYTES;
			hits = find_in_line(line, load64(key));
			if (is_copying && hits != 0)
				touch(s, (uint64_t)(line - slots) / 16);
		}
		if (__builtin_expect(hits != 0 && load64(key) != FREE_KEY, 1)) {
			values[i] = line + (uint32_t)__builtin_ctz(hits) * 16 + 8;
		} else if (!put_one(s, key, home[i], &values[i])) {
			return false;
		}
	}
	return true;
}

bool keyed_state_put_batch(struct keyed_state *s, const void *keys, uint32_t stride,
		uint32_t count, void **values)
{
	const bool is_fast_table = is_fast(s), is_copying = s->copying_count > 0;
	bool is_put = true;

	CHECK(count <= KEYED_STATE_BATCH_MAX);
	for (uint32_t i = 0; i < count && is_put; i += GROUP_COUNT) {
		uint32_t n = count - i < GROUP_COUNT ? count - i : GROUP_COUNT;
		const uint8_t *group = (const uint8_t *)keys + (size_t)i * stride;

		if (!is_fast_table)
			is_put = put_group(s, group, stride, n, values + i);
		else if (is_copying)
			is_put = put_group_fast(s, group, stride, n, values + i, true);
		else
			is_put = put_group_fast(s, group, stride, n, values + i, false);
	}
	return is_put;
}

void keyed_state_get_batch(const struct keyed_state *s, const void *keys, uint32_t stride,
		uint32_t count, const void **values)
{
	CHECK(count <= KEYED_STATE_BATCH_MAX);
	for (uint32_t i = 0; i < count; i += GROUP_COUNT) {
		uint32_t n = count - i < GROUP_COUNT ? count - i : GROUP_COUNT;
		const uint8_t *group = (const uint8_t *)keys + (size_t)i * stride;
		uint64_t home[GROUP_COUNT];
		bool is_ours = find_homes(s, group, stride, n, home);

		for (uint32_t k = 0; k < n; k++) {
			const uint8_t *key = group + (size_t)k * stride;
			uint64_t slot = s->slot_count;

			if (is_ours || is_own_key(s, key))
				slot = probe(s, key, home[k], s->config.key_bytes);
			values[i + k] = is_occupied(s, slot) ? slot_at(s, slot) + s->value_offset
							     : NULL;
		}
	}
}

/* ---- walking and removing ------------------------------------------------------------------- */

bool keyed_state_next(const struct keyed_state *s, uint64_t *cursor, const void **key,
		const void **value)
{
	uint64_t block = *cursor / KEYED_STATE_BLOCK_SLOTS;
	uint64_t bits;

	CHECK(*cursor <= s->slot_count);
	bits = s->occupied[block] & UINT64_MAX << *cursor % KEYED_STATE_BLOCK_SLOTS;
	while (bits == 0) {
		if (++block >= s->block_count)
			return false;
		bits = s->occupied[block];
	}

	uint64_t slot = block * KEYED_STATE_BLOCK_SLOTS + (uint32_t)__builtin_ctzll(bits);

	*key = slot_at(s, slot);
	*value = slot_at(s, slot) + s->value_offset;
	*cursor = slot + 1;
	return true;
}

/* Entries behind the hole move up into it as long as that does not take them before their home;
 * entries in front never move, so a walk that stands here misses none and meets none twice. */
void keyed_state_remove(struct keyed_state *s, uint64_t *cursor)
{
	uint64_t hole = *cursor - 1;
	bool is_copying = s->copying_count > 0;

	CHECK(*cursor > 0);
	CHECK(is_occupied(s, hole));
	for (uint64_t slot = hole + 1; is_occupied(s, slot); slot++) {
		if (home_of(s, slot_at(s, slot)) > hole)
			continue;
		if (is_copying)
			touch(s, hole);
		memcpy(slot_at(s, hole), slot_at(s, slot), s->slot_bytes);
		hole = slot;
	}
	if (is_copying)
		touch(s, hole);
	s->occupied[hole / KEYED_STATE_BLOCK_SLOTS] &=
			~(UINT64_C(1) << hole % KEYED_STATE_BLOCK_SLOTS);
	free_slot(s, hole);
	s->count--;
	*cursor -= 1;
}

/* ---- restore -------------------------------------------------------------------------------- */

static int restore_entry(struct keyed_state *s, const uint8_t *key, const uint8_t *value,
		uint32_t value_bytes)
{
	uint64_t slot;

	if (!is_own_key(s, key))
		return 0;
	slot = probe(s, key, home_of(s, key), s->config.key_bytes);
	if (is_occupied(s, slot))
		return -EBADMSG;
	if (!insert(s, key, slot))
		return -ENOSPC;
	memcpy(slot_at(s, slot) + s->value_offset, value, value_bytes);
	return 0;
}

int keyed_state_restore_chunk(struct keyed_state *s, const uint8_t *bytes, size_t size,
		size_t *used)
{
	uint8_t key[KEY_BYTES_MAX] = {0};
	const uint8_t *at = bytes + KEYED_CHUNK_HEAD_BYTES;
	struct keyed_chunk c;

	CHECK(s->copying_count == 0);
	if (size < KEYED_CHUNK_HEAD_BYTES ||
			!keyed_chunk_read_head(&c, bytes, s->config.key_bytes,
					s->config.value_bytes) ||
			size < keyed_chunk_size(&c))
		return -EBADMSG;
	for (uint32_t i = 0; i < c.count; i++) {
		memcpy(key, at, c.key_bytes);
		int rc = restore_entry(s, key, at + c.key_bytes, c.value_bytes);

		if (rc != 0)
			return rc;
		at += c.key_bytes + c.value_bytes;
	}
	*used = keyed_chunk_size(&c);
	return 0;
}
