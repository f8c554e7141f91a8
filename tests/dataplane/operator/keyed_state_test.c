/* keyed_state against a plain table, under random work, with snapshots at random moments. */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/base/crc.h"
#include "dataplane/base/prng.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_KEYS = 700 };

/* What the table should hold: key number -> value, 0: not there. */
struct model {
	uint64_t value[MODEL_KEYS];
	uint64_t count;
};

struct fixture {
	struct keyed_state_config config;
	struct keyed_state *state;
	void *memory;
	uint8_t keys[MODEL_KEYS][KEY_BYTES_MAX];
};

static struct keyed_state *create(const struct keyed_state_config *config, void **memory)
{
	uint64_t bytes = keyed_state_memory_bytes(config);

	cr_assert_gt(bytes, 0);
	*memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	memset(*memory, 0xa5, bytes);
	return keyed_state_create_at(*memory, config);
}

static bool is_own(const struct keyed_state_config *c, const uint8_t *key)
{
	uint32_t bytes = c->group_bytes != 0 ? c->group_bytes : c->key_bytes;
	uint32_t group = key_group_of(key_hash(key, bytes), c->group_count);

	return group >= c->groups.first && group <= c->groups.last;
}

/* Keys that belong to the subtask; the first is all zero bytes if that one does. */
static void fixture_init(struct fixture *f, const struct keyed_state_config *config)
{
	uint64_t number = 0;

	memset(f, 0, sizeof(*f));
	f->config = *config;
	f->state = create(config, &f->memory);
	for (uint32_t i = 0; i < MODEL_KEYS; number++) {
		uint8_t key[KEY_BYTES_MAX] = {0};
		size_t width = config->key_bytes < 8 ? config->key_bytes : 8;

		/* Differ at the end too, so that a front alone makes no key. */
		memcpy(key, &number, width);
		memcpy(key + config->key_bytes - width, &number, width);
		if (is_own(config, key))
			memcpy(f->keys[i++], key, sizeof(key));
	}
}

static uint32_t key_number(const struct fixture *f, const void *key)
{
	for (uint32_t i = 0; i < MODEL_KEYS; i++) {
		if (memcmp(f->keys[i], key, f->config.key_bytes) == 0)
			return i;
	}
	cr_assert_fail("a key nobody put");
	return 0;
}

static uint64_t read_value(const struct fixture *f, const void *value)
{
	uint64_t number = 0;

	memcpy(&number, value, f->config.value_bytes < 8 ? f->config.value_bytes : 8);
	return number;
}

/* Adds 1 to some keys, the same one perhaps twice in a batch. */
static void put_some(struct fixture *f, struct model *m, struct prng *p)
{
	uint8_t batch[200 * KEY_BYTES_MAX];
	void *values[200];
	uint32_t number[200];
	uint32_t count = (uint32_t)prng_below(p, 200) + 1;

	for (uint32_t i = 0; i < count; i++) {
		number[i] = (uint32_t)prng_below(p, MODEL_KEYS);
		memcpy(batch + i * f->config.key_bytes, f->keys[number[i]], f->config.key_bytes);
	}
	cr_assert(keyed_state_put_batch(f->state, batch, f->config.key_bytes, count, values));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t next = read_value(f, values[i]) + 1;

		memcpy(values[i], &next, f->config.value_bytes < 8 ? f->config.value_bytes : 8);
		m->count += m->value[number[i]]++ == 0;
	}
}

/* Walks all and removes about one in `one_in`; each entry must be met once. */
static void walk(struct fixture *f, struct model *m, struct prng *p, uint32_t one_in)
{
	bool met[MODEL_KEYS] = {false};
	uint64_t cursor = 0;
	uint64_t before = m->count, seen = 0;
	const void *key, *value;

	while (keyed_state_next(f->state, &cursor, &key, &value)) {
		uint32_t number = key_number(f, key);

		cr_assert(!met[number], "met twice");
		cr_assert_eq(read_value(f, value), m->value[number]);
		met[number] = true;
		seen++;
		if (prng_below(p, one_in) == 0) {
			keyed_state_remove(f->state, &cursor);
			m->value[number] = 0;
			m->count--;
		}
	}
	cr_assert_eq(seen, before);
	cr_assert_eq(keyed_state_count(f->state), m->count);
}

static void compare(const struct fixture *f, const struct keyed_state *s, const struct model *m)
{
	for (uint32_t i = 0; i < MODEL_KEYS; i++) {
		const void *value;

		keyed_state_get_batch(s, f->keys[i], f->config.key_bytes, 1, &value);
		cr_assert_eq(value != NULL, m->value[i] != 0);
		if (value != NULL)
			cr_assert_eq(read_value(f, value), m->value[i]);
	}
	cr_assert_eq(keyed_state_count(s), m->count);
}

/* The finished snapshot, restored elsewhere, is what the model was at its beginning. */
static void check_snapshot(struct fixture *f, struct keyed_snapshot *x, const struct model *m)
{
	uint8_t *all = malloc(keyed_snapshot_filled(x) + 1);
	size_t size = 0;
	const uint8_t *piece;
	uint32_t piece_size;
	void *memory;
	struct keyed_state *copy = create(&f->config, &memory);

	while (keyed_snapshot_take(x, &piece, &piece_size)) {
		cr_assert_eq((uintptr_t)piece % KEYED_STATE_ALIGN_BYTES, 0);
		memcpy(all + size, piece, piece_size);
		size += piece_size;
		keyed_snapshot_release(x);
	}
	cr_assert_eq(size, keyed_snapshot_filled(x));
	cr_assert_leq(size, keyed_snapshot_bytes_max(x));
	cr_assert_eq(keyed_snapshot_entry_count(x), m->count);
	cr_assert_eq(keyed_snapshot_crc(x), crc32c(0, all, size));
	for (size_t at = 0, used = 0; at < size; at += used)
		cr_assert_eq(keyed_state_restore_chunk(copy, all + at, size - at, &used), 0);
	compare(f, copy, m);
	free(memory);
	free(all);
}

/* A snapshot under way and what it must be. */
struct running {
	struct keyed_snapshot *snapshot; /* NULL: none */
	struct model frozen;
};

static uint32_t count_running(const struct running *running, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < max; i++)
		count += running[i].snapshot != NULL;
	return count;
}

static void begin_one(struct fixture *f, struct running *running, const struct model *now)
{
	uint32_t max = f->config.snapshots_max, count = count_running(running, max);

	cr_assert_eq(keyed_state_can_snapshot(f->state), count < max);
	for (uint32_t i = 0; i < max && count < max; i++) {
		if (running[i].snapshot != NULL)
			continue;
		running[i] = (struct running){keyed_state_snapshot_begin(f->state), *now};
		cr_assert_not_null(running[i].snapshot);
		return;
	}
	cr_assert_null(keyed_state_snapshot_begin(f->state));
}

/* Each goes on by its own pace, or not at all, or is given up. */
static void go_on(struct fixture *f, struct running *running, struct prng *p)
{
	for (uint32_t i = 0; i < f->config.snapshots_max; i++) {
		struct running *r = &running[i];

		if (r->snapshot == NULL || prng_below(p, 3) == 0)
			continue;
		if (prng_below(p, 30) == 0) {
			keyed_snapshot_abort(r->snapshot);
			r->snapshot = NULL;
		} else if (keyed_snapshot_step(r->snapshot, 1 + (uint32_t)prng_below(p, 8)) &&
				prng_below(p, 2) == 0) {
			check_snapshot(f, r->snapshot, &r->frozen);
			keyed_snapshot_end(r->snapshot);
			r->snapshot = NULL;
		}
	}
}

static void work_at_random(const struct keyed_state_config *config, uint64_t seed)
{
	static struct fixture f;
	static struct running running[KEYED_STATE_SNAPSHOTS_MAX];
	struct model now = {{0}, 0};
	struct prng p;

	prng_seed(&p, seed);
	fixture_init(&f, config);
	memset(running, 0, sizeof(running));
	for (int turn = 0; turn < 400; turn++) {
		if (prng_below(&p, 4) == 0)
			begin_one(&f, running, &now);
		put_some(&f, &now, &p);
		if (prng_below(&p, 3) == 0)
			walk(&f, &now, &p, 1 + (uint32_t)prng_below(&p, 20));
		go_on(&f, running, &p);
	}
	compare(&f, f.state, &now);
	free(f.memory);
}

static void work_with_snapshots(uint32_t snapshots_max)
{
	static const struct { uint32_t key, value, front; } layouts[] = {
		{8, 8, 0}, {8, 4, 0}, {8, 24, 0}, {16, 8, 0}, {13, 5, 0}, {48, 40, 0}, {3, 1, 0},
		{24, 8, 16}, {8, 8, 4},
	};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		struct keyed_state_config config = {
			.key_bytes = layouts[i].key, .value_bytes = layouts[i].value,
			.group_bytes = layouts[i].front, .entry_count_max = MODEL_KEYS,
			.group_count = 128, .groups = {0, 127}, .snapshots_max = snapshots_max,
		};

		work_at_random(&config, 1 + i);
		config.groups = (struct key_group_range){32, 95};
		work_at_random(&config, 100 + i);
		config.group_count = 1;
		config.groups = (struct key_group_range){0, 0};
		work_at_random(&config, 200 + i);
	}
}

Test(keyed_state, holds_what_was_put_and_a_snapshot_holds_what_it_was)
{
	work_with_snapshots(1);
}

Test(keyed_state, has_several_snapshots_under_way_and_each_holds_what_it_was)
{
	work_with_snapshots(3);
}

Test(keyed_state, needs_room_for_a_copy_for_each_snapshot_at_a_time)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 40000, .group_count = 128, .groups = {0, 127},
		.snapshots_max = 1};
	uint64_t one = keyed_state_memory_bytes(&config), two;

	config.snapshots_max = 2;
	two = keyed_state_memory_bytes(&config);
	cr_assert_geq(two - one, 40000 * 16);
	config.snapshots_max = 5;
	cr_assert_eq(keyed_state_memory_bytes(&config), one + 4 * (two - one));
}

Test(keyed_state, keeps_each_key_group_in_a_range_of_the_table)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 40000, .group_count = 128, .groups = {64, 95},
		.snapshots_max = 1};
	void *memory, *value;
	struct keyed_state *s = create(&config, &memory);
	uint64_t cursor = 0, disorder = 0;
	uint32_t last = 0;
	const void *key, *v;

	for (uint64_t n = 0; n < 100000; n++) {
		if (is_own(&config, (const uint8_t *)&n))
			cr_assert(keyed_state_put_batch(s, &n, 8, 1, &value));
	}
	while (keyed_state_next(s, &cursor, &key, &v)) {
		uint32_t group = key_group_of(key_hash(key, 8), 128);

		disorder += group < last;
		last = group;
	}
	cr_assert_lt(disorder, 100, "only neighbours at the borders may mix");
	free(memory);
}

Test(keyed_state, refuses_what_does_not_fit_and_what_is_not_its_own)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 100, .group_count = 2, .groups = {1, 1}, .snapshots_max = 1};
	void *memory, *value;
	struct keyed_state *s = create(&config, &memory);
	uint64_t made = 0;

	for (uint64_t n = 0; made < 100; n++) {
		bool is_put = keyed_state_put_batch(s, &n, 8, 1, &value);

		cr_assert_eq(is_put, is_own(&config, (const uint8_t *)&n));
		if (!is_put)
			cr_assert_eq(keyed_state_error(s), -EDOM);
		made += is_put;
	}
	for (uint64_t n = 1000; n < 1100; n++) {
		const void *got;

		keyed_state_get_batch(s, &n, 8, 1, &got);
		cr_assert_null(got);
		if (is_own(&config, (const uint8_t *)&n)) {
			cr_assert(!keyed_state_put_batch(s, &n, 8, 1, &value));
			cr_assert_eq(keyed_state_error(s), -ENOSPC);
		}
	}
	free(memory);
}

Test(keyed_state, fills_a_table_of_any_size_to_its_last_entry)
{
	for (uint64_t capacity = 1; capacity < 300; capacity++) {
		struct keyed_state_config config = {.key_bytes = 16, .value_bytes = 8,
			.group_bytes = 8, .entry_count_max = capacity, .group_count = 128,
			.groups = {0, 127}, .snapshots_max = 1};
		void *memory, *value;
		struct keyed_state *s = create(&config, &memory);

		/* One front, as one flow with many windows has. */
		for (uint64_t n = 0; n < capacity; n++) {
			uint64_t key[2] = {7, n};

			cr_assert(keyed_state_put_batch(s, key, 16, 1, &value));
		}
		free(memory);
	}
}

static void count_the_free_key(uint64_t other_count)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 65, .group_count = 1, .groups = {0, 0}, .snapshots_max = 1};
	uint64_t key = UINT64_C(0x8d1f2a6cb7e54093), cursor = 0;
	const void *got, *at;
	void *value, *memory;
	struct keyed_state *s = create(&config, &memory);

	for (uint64_t n = 0; n < other_count; n++) {
		uint64_t other = other_count * 1000 +
				 n; /* each time another pattern of free slots */

		cr_assert(keyed_state_put_batch(s, &other, 8, 1, &value));
	}
	keyed_state_get_batch(s, &key, 8, 1, &got);
	cr_assert_null(got);
	for (int i = 0; i < 3; i++) {
		cr_assert(keyed_state_put_batch(s, &key, 8, 1, &value));
		++*(uint64_t *)value;
	}
	cr_assert_eq(*(uint64_t *)value, 3);
	cr_assert_eq(keyed_state_count(s), other_count + 1);
	do {
		cr_assert(keyed_state_next(s, &cursor, &at, &got));
	} while (memcmp(at, &key, 8) != 0);
	keyed_state_remove(s, &cursor);
	cr_assert(keyed_state_put_batch(s, &key, 8, 1, &value));
	cr_assert_eq(*(uint64_t *)value, 0, "an entry made again begins at zero");
	free(memory);
}

Test(keyed_state, tells_the_key_that_marks_free_slots_from_a_free_slot)
{
	for (uint64_t other_count = 0; other_count < 64; other_count++)
		count_the_free_key(other_count);
}

Test(keyed_state, begins_no_snapshot_while_pieces_of_an_aborted_one_are_out)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 10, .group_count = 1, .groups = {0, 0}, .snapshots_max = 1};
	uint64_t key = 5;
	void *value, *memory;
	struct keyed_state *s = create(&config, &memory);
	const uint8_t *piece;
	uint32_t size;
	struct keyed_snapshot *x;

	cr_assert(keyed_state_put_batch(s, &key, 8, 1, &value));
	x = keyed_state_snapshot_begin(s);
	cr_assert(!keyed_snapshot_take(x, &piece, &size), "nothing is finished yet");
	cr_assert(keyed_snapshot_step(x, 100));
	cr_assert(keyed_snapshot_take(x, &piece, &size));
	cr_assert_eq(size, 8 + 1, "a key of one byte, and no value");
	cr_assert_eq(piece[size], 0);
	keyed_snapshot_abort(x);
	cr_assert_null(keyed_state_snapshot_begin(s));
	keyed_snapshot_release(x);
	x = keyed_state_snapshot_begin(s);
	cr_assert_not_null(x);
	keyed_snapshot_abort(x);
	cr_assert_not_null(keyed_state_snapshot_begin(s));
	free(memory);
}

/* Else a step of large entries would last as many times longer. */
Test(keyed_state, copies_as_many_bytes_of_large_entries_in_a_step_as_of_small_ones)
{
	enum { ENTRIES = 4096, BUDGET = 16, BLOCK_BYTES = 64 * (8 + 1024) };
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 1024,
		.entry_count_max = ENTRIES, .group_count = 1, .groups = {0, 0}, .snapshots_max = 1};
	uint64_t seen = 0, now;
	void *memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, keyed_state_memory_bytes(&config));
	struct keyed_state *s = keyed_state_create_at(memory, &config);
	void *value;

	for (uint64_t key = 0; key < ENTRIES; key++)
		cr_assert(keyed_state_put_batch(s, &key, 8, 1, &value));
	struct keyed_snapshot *x = keyed_state_snapshot_begin(s);
	for (bool is_copied = false; !is_copied; seen = now) {
		is_copied = keyed_snapshot_step(x, BUDGET);
		now = keyed_snapshot_filled(x);
		cr_assert_leq(now - seen, BLOCK_BYTES + 8, "a step copies one block");
	}
	cr_assert_eq(keyed_snapshot_entry_count(x), ENTRIES);
	free(memory);
}

Test(keyed_state, passes_over_entries_of_other_key_groups_in_a_restore)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = 64, .group_count = 2, .groups = {0, 0}, .snapshots_max = 1};
	struct { uint32_t head[2]; uint64_t entries[64][2]; } chunk = {{0, 64}, {{0}}};
	void *memory;
	struct keyed_state *s = create(&config, &memory);
	size_t used;
	uint64_t own = 0;

	for (uint64_t i = 0; i < 64; i++) {
		chunk.entries[i][0] = i;
		chunk.entries[i][1] = 10 + i;
		own += is_own(&config, (const uint8_t *)&i);
	}
	cr_assert_eq(keyed_state_restore_chunk(s, (uint8_t *)&chunk, sizeof(chunk), &used), 0);
	cr_assert_eq(used, sizeof(chunk));
	cr_assert_eq(keyed_state_count(s), own);
	free(memory);
}

Test(keyed_state, has_no_size_for_a_config_that_makes_no_sense)
{
	struct keyed_state_config good = {.key_bytes = 8, .value_bytes = 8, .entry_count_max = 2,
		.group_count = 4, .groups = {0, 3}, .snapshots_max = 1}, bad;

	cr_assert_gt(keyed_state_memory_bytes(&good), 0);
#define REFUSED(field, wrong)                                                                      \
	do {                                                                                       \
		bad = good;                                                                        \
		bad.field = wrong;                                                                 \
		cr_assert_eq(keyed_state_memory_bytes(&bad), 0);                                   \
	} while (0)
	REFUSED(key_bytes, 0);
	REFUSED(key_bytes, KEY_BYTES_MAX + 1);
	REFUSED(value_bytes, 0);
	REFUSED(group_bytes, 9);
	REFUSED(entry_count_max, 0);
	REFUSED(entry_count_max, UINT64_MAX);
	REFUSED(group_count, 3);
	REFUSED(groups.last, 4);
	REFUSED(groups.first, 4);
	REFUSED(snapshots_max, 0);
	REFUSED(snapshots_max, KEYED_STATE_SNAPSHOTS_MAX + 1);
}
