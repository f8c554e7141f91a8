#include "tests/support/state_world.h"

#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct keyed_state *world_create_keyed(uint32_t key_bytes, uint64_t count, void **memory)
{
	struct keyed_state_config config = {.key_bytes = key_bytes, .value_bytes = 8,
		.entry_count_max = count, .group_count = 128, .groups = {0, 127},
		.snapshots_max = 1};
	uint64_t bytes = keyed_state_memory_bytes(&config);

	*memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	return keyed_state_create_at(*memory, &config);
}

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->large = world_create_keyed(8, KEYS, &w->large_memory);
	w->small = world_create_keyed(12, 20, &w->small_memory);
	w->states[0] = (struct declared_state){.uid = "parse", .name = "value",
		.kind = WEIR_STATE_VALUE, .value_bytes = VALUE_BYTES, .version = 1,
		.memory = w->value};
	w->states[1] = (struct declared_state){.uid = "parse", .name = "items",
		.kind = WEIR_STATE_LIST, .value_bytes = ITEM_BYTES, .version = 1,
		.capacity = ITEMS_MAX, .memory = w->items, .list_count = &w->item_count};
	w->states[2] = (struct declared_state){.uid = "count", .name = "large",
		.kind = WEIR_STATE_KEYED, .key_bytes = 8, .value_bytes = 8, .version = 4,
		.capacity = KEYS, .keyed = w->large};
	w->states[3] = (struct declared_state){.uid = "count", .name = "few",
		.kind = WEIR_STATE_LIST, .value_bytes = 8, .version = 1, .capacity = 10,
		.memory = w->few, .list_count = &w->few_count};
	w->states[4] = (struct declared_state){.uid = "count", .name = "small",
		.kind = WEIR_STATE_KEYED, .key_bytes = 12, .value_bytes = 8, .version = 1,
		.capacity = 20, .keyed = w->small};
}

void world_free(struct world *w)
{
	free(w->large_memory);
	free(w->small_memory);
}

void world_add(struct keyed_state *s, uint64_t number, uint64_t amount)
{
	uint8_t key[16] = {0};
	void *value;

	memcpy(key, &number, 8);
	cr_assert(keyed_state_put_batch(s, key, 16, 1, &value));
	*(uint64_t *)value += amount;
}

void world_change(struct world *w, struct prng *p)
{
	w->item_count = (uint32_t)prng_below(p, ITEMS_MAX + 1);
	w->few_count = (uint32_t)prng_below(p, 11);
	for (uint32_t i = 0; i < VALUE_BYTES; i++)
		w->value[i] = (uint8_t)prng_next(p);
	for (uint32_t i = 0; i < w->item_count; i++)
		memset(w->items[i], (int)prng_below(p, 256), ITEM_BYTES);
	for (uint32_t i = 0; i < w->few_count; i++)
		memset(w->few[i], (int)prng_below(p, 256), 8);
	for (int i = 0; i < 3000; i++)
		world_add(w->large, prng_below(p, KEYS), 1);
	world_add(w->small, prng_below(p, 20), 1);
}

static uint64_t value_of(const struct keyed_state *s, const void *key)
{
	const void *value;

	keyed_state_get_batch(s, key, 8, 1, &value);
	return value != NULL ? *(const uint64_t *)value : UINT64_MAX;
}

static void compare_keyed(const struct keyed_state *a, const struct keyed_state *b)
{
	uint64_t cursor = 0;
	const void *key, *value;

	cr_assert_eq(keyed_state_count(a), keyed_state_count(b));
	while (keyed_state_next(a, &cursor, &key, &value))
		cr_assert_eq(*(const uint64_t *)value, value_of(b, key));
}

void world_compare(const struct world *a, const struct world *b)
{
	cr_assert_eq(memcmp(a->value, b->value, VALUE_BYTES), 0);
	cr_assert_eq(a->item_count, b->item_count);
	cr_assert_eq(memcmp(a->items, b->items, a->item_count * ITEM_BYTES), 0);
	cr_assert_eq(a->few_count, b->few_count);
	cr_assert_eq(memcmp(a->few, b->few, a->few_count * 8), 0);
	compare_keyed(a->large, b->large);
	compare_keyed(a->small, b->small);
}

/* Entry by entry, since two tables with one content may differ in their empty places. */
void world_copy(struct world *to, const struct world *from)
{
	uint64_t cursor = 0;
	const void *key, *value;

	world_init(to);
	memcpy(to->value, from->value, VALUE_BYTES);
	to->item_count = from->item_count;
	to->few_count = from->few_count;
	memcpy(to->items, from->items, sizeof(to->items));
	memcpy(to->few, from->few, sizeof(to->few));
	while (keyed_state_next(from->large, &cursor, &key, &value))
		world_add(to->large, *(const uint64_t *)key, *(const uint64_t *)value);
	cursor = 0;
	while (keyed_state_next(from->small, &cursor, &key, &value))
		world_add(to->small, *(const uint64_t *)key, *(const uint64_t *)value);
}

struct state_writer *world_create_writer(struct world *w, struct store *store,
		uint32_t inline_bytes_max, void **memory)
{
	struct state_writer_config config = {.store = store, .vertex_uid = "count",
		.subtask_index = 0, .parallelism = 1, .group_count = 128,
		.attempt.id.bytes = {0x00, 0xc0, 0xff, 0xee, 1, 2},
		.inline_bytes_max = inline_bytes_max, .state_count = STATES, .states = w->states};
	uint64_t bytes = state_writer_memory_bytes(&config);

	*memory = aligned_alloc(STORE_ALIGN_BYTES, bytes);
	memset(*memory, 0xa5, bytes);
	return state_writer_create_at(*memory, &config);
}

void wait_a_little(void)
{
	nanosleep(&(struct timespec){0, 20000}, NULL);
}

int writer_run(struct state_writer *w, const char **text)
{
	while (!state_writer_is_done(w)) {
		if (state_writer_step(w, 16) == 0)
			wait_a_little();
	}
	return state_writer_outcome(w, text);
}

void writer_settle(struct state_writer *w)
{
	while (!state_writer_is_idle(w)) {
		if (state_writer_step(w, 16) == 0)
			wait_a_little();
	}
}

/* Through bytes, as an acknowledgement would carry it. */
struct task_state *carry_state(const struct task_state *t)
{
	char text[TASK_STATE_TEXT_BYTES];
	size_t size = task_state_encoded_bytes(t);
	uint8_t *bytes = malloc(size);
	struct task_state *back;

	task_state_encode(t, bytes);
	cr_assert_eq(task_state_decode(&back, bytes, size, text), 0, "%s", text);
	free(bytes);
	return back;
}

void writer_bench_init(struct writer_bench *b, enum store_kind kind)
{
	char why[STORE_WHY_BYTES];
	struct prng p;

	prng_seed(&p, 5);
	world_init(&b->world);
	for (int i = 0; i < 20; i++)
		world_change(&b->world, &p);
	b->world.item_count = 300;
	b->world.few_count = 3;
	cr_assert_eq(store_open(&b->store, kind, why), 0);
	fault_store_init(&b->disk, b->store);
	b->writer = world_create_writer(&b->world, &b->disk.store, 20480, &b->memory);
}

void writer_bench_free(struct writer_bench *b)
{
	cr_assert(state_writer_is_idle(b->writer));
	cr_assert_eq(store_inflight(b->store), 0);
	store_destroy(b->store);
	free(b->memory);
	world_free(&b->world);
}
