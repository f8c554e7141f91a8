#include "tests/support/harness_state.h"

#include "dataplane/base/check.h"
#include "dataplane/base/key_group.h"

#include <stdlib.h>

enum { SLOTS_PER_ENTRY = 2 };

static size_t entry_bytes(const struct harness_table *t)
{
	const struct weir_state *d = &t->declared;

	if (d->kind != WEIR_STATE_KEYED)
		return d->value_bytes;
	return ((size_t)d->key_bytes + 7) / 8 * 8 + ((size_t)d->value_bytes + 7) / 8 * 8 + 8;
}

static uint8_t *entry_at(const struct harness_table *t, uint64_t index)
{
	return t->entries + index * entry_bytes(t);
}

static uint8_t *value_of(const struct harness_table *t, uint8_t *entry)
{
	return entry + ((size_t)t->declared.key_bytes + 7) / 8 * 8;
}

static uint8_t *live_mark(const struct harness_table *t, uint8_t *entry)
{
	return entry + entry_bytes(t) - 8;
}

/* Dead entries keep their place, so there is room for more of them than may live. */
static uint64_t entries_max(const struct harness_table *t)
{
	if (t->declared.kind == WEIR_STATE_KEYED)
		return t->declared.capacity * 4 + 1024;
	return t->declared.kind == WEIR_STATE_LIST ? t->declared.capacity : 1;
}

void harness_table_init(struct harness_table *t, const struct weir_state *declared)
{
	*t = (struct harness_table){.declared = *declared};
	CHECK(declared->value_bytes > 0);
	t->entries = calloc(entries_max(t), entry_bytes(t));
	CHECK(t->entries != NULL);
	if (declared->kind == WEIR_STATE_KEYED) {
		CHECK(declared->key_bytes > 0);
		CHECK(declared->group_bytes <= declared->key_bytes);
		t->slots = calloc(entries_max(t) * SLOTS_PER_ENTRY, sizeof(*t->slots));
		CHECK(t->slots != NULL);
	}
}

void harness_table_free(struct harness_table *t)
{
	free(t->entries);
	free(t->slots);
	*t = (struct harness_table){0};
}

void harness_table_copy(struct harness_table *t, const struct harness_table *from)
{
	CHECK(t->declared.kind == from->declared.kind);
	CHECK(t->declared.key_bytes == from->declared.key_bytes);
	CHECK(t->declared.value_bytes == from->declared.value_bytes);
	if (t->declared.kind != WEIR_STATE_KEYED) {
		CHECK(from->used <= entries_max(t));
		memcpy(t->entries, from->entries,
				(t->declared.kind == WEIR_STATE_LIST ? from->used : 1) *
						entry_bytes(t));
		t->used = from->used;
		t->live = from->live;
		return;
	}
	for (uint64_t i = from->used; i-- > 0;) {
		uint8_t *entry = entry_at(from, i);

		if (*live_mark(from, entry) != 0)
			memcpy(harness_keyed_find(t, entry, true), value_of(from, entry),
					t->declared.value_bytes);
	}
}

bool harness_list_add(struct harness_table *t, const void *item)
{
	if (t->used == t->declared.capacity)
		return false;
	memcpy(entry_at(t, t->used++), item, t->declared.value_bytes);
	t->live++;
	return true;
}

void harness_list_remove(struct harness_table *t, uint32_t index)
{
	CHECK(index < t->used);
	memmove(entry_at(t, index), entry_at(t, index + 1),
			(t->used - index - 1) * entry_bytes(t));
	t->used--;
	t->live--;
}

void *harness_list_at(struct harness_table *t, uint32_t index)
{
	CHECK(index < t->used);
	return entry_at(t, index);
}

/* Throws out the dead once they are too many; the live ones are far fewer. */
static void compact(struct harness_table *t)
{
	struct harness_table fresh;

	harness_table_init(&fresh, &t->declared);
	harness_table_copy(&fresh, t);
	harness_table_free(t);
	*t = fresh;
}

void *harness_keyed_find(struct harness_table *t, const void *key, bool make)
{
	if (t->used == entries_max(t))
		compact(t);

	uint64_t slot_count = entries_max(t) * SLOTS_PER_ENTRY;
	uint64_t slot = key_hash(key, t->declared.key_bytes) % slot_count;

	for (; t->slots[slot] != 0; slot = (slot + 1) % slot_count) {
		uint8_t *entry = entry_at(t, t->slots[slot] - 1);

		if (*live_mark(t, entry) != 0 && memcmp(entry, key, t->declared.key_bytes) == 0)
			return value_of(t, entry);
	}
	if (!make || t->live == t->declared.capacity)
		return NULL;
	uint8_t *entry = entry_at(t, t->used);
	memcpy(entry, key, t->declared.key_bytes);
	*live_mark(t, entry) = 1;
	t->slots[slot] = (uint32_t)++t->used;
	t->live++;
	return value_of(t, entry);
}

bool harness_keyed_next(struct harness_table *t, uint64_t *cursor, const void **key,
		const void **value)
{
	while (*cursor < t->used) {
		uint8_t *entry = entry_at(t, (*cursor)++);

		if (*live_mark(t, entry) != 0) {
			*key = entry;
			*value = value_of(t, entry);
			return true;
		}
	}
	return false;
}

void harness_keyed_remove(struct harness_table *t, uint64_t cursor)
{
	CHECK(cursor > 0);
	uint8_t *entry = entry_at(t, cursor - 1);

	CHECK(*live_mark(t, entry) != 0);
	memset(entry, 0xdb, entry_bytes(t));
	*live_mark(t, entry) = 0;
	t->live--;
}
