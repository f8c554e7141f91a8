#include "control/coordinator/completed_checkpoint_store.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

struct completed_checkpoint_store {
	uint32_t retained_count;
	uint32_t count;
	struct completed_checkpoint **items; /* oldest first */
};

void completed_checkpoint_store_create(
		struct completed_checkpoint_store **out, uint32_t retained_count)
{
	struct completed_checkpoint_store *s = heap_zeroed(1, sizeof(*s));

	s->retained_count = retained_count;
	*out = s;
}

void completed_checkpoint_store_destroy(struct completed_checkpoint_store *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		completed_checkpoint_destroy(s->items[i]);
	free(s->items);
	free(s);
}

bool completed_checkpoint_store_add(
		struct completed_checkpoint_store *s, struct completed_checkpoint *c)
{
	uint32_t index = s->count;

	while (index > 0 && s->items[index - 1]->id > c->id)
		index--;
	if (index > 0 && s->items[index - 1]->id == c->id)
		return false;
	s->items = heap_resize(s->items, s->count + 1, sizeof(*s->items));
	memmove(s->items + index + 1, s->items + index, (s->count - index) * sizeof(*s->items));
	s->items[index] = c;
	s->count++;
	return true;
}

static struct completed_checkpoint *take_at(struct completed_checkpoint_store *s, uint32_t index)
{
	struct completed_checkpoint *c = s->items[index];

	s->count--;
	memmove(s->items + index, s->items + index + 1, (s->count - index) * sizeof(*s->items));
	return c;
}

static bool is_savepoint(const struct completed_checkpoint *c)
{
	return checkpoint_properties_is_savepoint(&c->properties);
}

/* The most recent one that is no savepoint. */
static const struct completed_checkpoint *latest_checkpoint(
		const struct completed_checkpoint_store *s)
{
	for (uint32_t i = s->count; i > 0; i--) {
		if (!is_savepoint(s->items[i - 1]))
			return s->items[i - 1];
	}
	return NULL;
}

/* ST-3, one step of the walk; it never stops at one that must stay. */
static bool may_leave(const struct completed_checkpoint_store *s, uint32_t index)
{
	const struct completed_checkpoint *c = s->items[index];
	const struct completed_checkpoint *newest = s->items[s->count - 1];

	if (c == newest)
		return false;
	if (checkpoint_properties_is_synchronous(&newest->properties) || is_savepoint(c))
		return true;
	return c != latest_checkpoint(s);
}

struct completed_checkpoint *completed_checkpoint_store_subsume(
		struct completed_checkpoint_store *s)
{
	if (s->count <= s->retained_count)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		if (may_leave(s, i))
			return take_at(s, i);
	}
	return NULL;
}

struct completed_checkpoint *completed_checkpoint_store_take(struct completed_checkpoint_store *s)
{
	return s->count > 0 ? take_at(s, 0) : NULL;
}

const struct completed_checkpoint *completed_checkpoint_store_at(
		const struct completed_checkpoint_store *s, uint32_t index)
{
	return index < s->count ? s->items[index] : NULL;
}

const struct completed_checkpoint *completed_checkpoint_store_find(
		const struct completed_checkpoint_store *s, int64_t id)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->items[i]->id == id)
			return s->items[i];
	}
	return NULL;
}

const struct completed_checkpoint *completed_checkpoint_store_latest(
		const struct completed_checkpoint_store *s)
{
	return s->count > 0 ? s->items[s->count - 1] : NULL;
}

int64_t completed_checkpoint_store_latest_id(const struct completed_checkpoint_store *s)
{
	return s->count > 0 ? s->items[s->count - 1]->id : 0;
}

int64_t completed_checkpoint_store_lowest_id(const struct completed_checkpoint_store *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (!is_savepoint(s->items[i]))
			return s->items[i]->id;
	}
	return 0;
}
