#include "control/coordinator/directories_ahead.h"

#include "dataplane/base/check.h"

/* DIRECTORIES_AHEAD_MAX: it has none. */
static uint32_t find(const struct directories_ahead *a, int64_t id)
{
	uint32_t i = 0;

	while (i < DIRECTORIES_AHEAD_MAX && a->rows[i].id != id)
		i++;
	return i;
}

int64_t directories_ahead_next(const struct directories_ahead *a, int64_t next_id)
{
	CHECK(next_id > 0);
	if (find(a, 0) == DIRECTORIES_AHEAD_MAX)
		return 0;
	while (find(a, next_id) < DIRECTORIES_AHEAD_MAX)
		next_id++;
	return next_id;
}

void directories_ahead_add(struct directories_ahead *a, int64_t id)
{
	uint32_t i = find(a, 0);

	CHECK(id > 0 && i < DIRECTORIES_AHEAD_MAX);
	a->rows[i].id = id;
	a->rows[i].is_there = false;
}

void directories_ahead_made(struct directories_ahead *a, int64_t id, bool is_there)
{
	uint32_t i = find(a, id);

	CHECK(id > 0);
	if (i == DIRECTORIES_AHEAD_MAX)
		return;
	a->rows[i].is_there = is_there;
	if (!is_there)
		a->rows[i].id = 0;
}

bool directories_ahead_take(struct directories_ahead *a, int64_t id)
{
	uint32_t i = find(a, id);

	CHECK(id > 0);
	if (i == DIRECTORIES_AHEAD_MAX)
		return false;
	a->rows[i].id = 0;
	return a->rows[i].is_there;
}

int64_t directories_ahead_drop(struct directories_ahead *a, int64_t id)
{
	for (uint32_t i = 0; i < DIRECTORIES_AHEAD_MAX; i++) {
		int64_t dropped = a->rows[i].id;

		if (dropped == 0 || dropped > id)
			continue;
		a->rows[i].id = 0;
		return dropped;
	}
	return 0;
}
