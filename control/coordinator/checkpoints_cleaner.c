#include "control/coordinator/checkpoints_cleaner.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>
#include <string.h>

struct running {
	uint64_t token;
	struct deletion *what;
};

struct checkpoints_cleaner {
	uint32_t open_count, running_count;
	struct running *open;
	uint32_t subsumed_count;
	struct completed_checkpoint **subsumed;
};

void checkpoints_cleaner_create(struct checkpoints_cleaner **out)
{
	*out = heap_zeroed(1, sizeof(**out));
}

static void deletion_free(struct deletion *d)
{
	file_list_clear(&d->files);
	free(d->location);
	free(d);
}

void checkpoints_cleaner_destroy(struct checkpoints_cleaner *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < c->open_count; i++)
		deletion_free(c->open[i].what);
	for (uint32_t i = 0; i < c->subsumed_count; i++)
		completed_checkpoint_destroy(c->subsumed[i]);
	free(c->open);
	free(c->subsumed);
	free(c);
}

static bool is_whole_checkpoint(const struct deletion *d)
{
	return d->kind == DELETION_PENDING || d->kind == DELETION_STORED;
}

const struct deletion *checkpoints_cleaner_begin(struct checkpoints_cleaner *c, uint64_t token,
		const struct deletion *what)
{
	struct deletion *d = heap_copy(what, 1, sizeof(*what));

	d->location = heap_text(what->location);
	c->open = heap_resize(c->open, c->open_count + 1, sizeof(*c->open));
	c->open[c->open_count++] = (struct running){ .token = token, .what = d };
	c->running_count += is_whole_checkpoint(d);
	return d;
}

bool checkpoints_cleaner_end(struct checkpoints_cleaner *c, uint64_t token)
{
	for (uint32_t i = 0; i < c->open_count; i++) {
		if (c->open[i].token != token)
			continue;
		c->running_count -= is_whole_checkpoint(c->open[i].what);
		deletion_free(c->open[i].what);
		c->open[i] = c->open[--c->open_count];
		return true;
	}
	return false;
}

uint32_t checkpoints_cleaner_running_count(const struct checkpoints_cleaner *c)
{
	return c->running_count;
}

uint32_t checkpoints_cleaner_open_count(const struct checkpoints_cleaner *c)
{
	return c->open_count;
}

void checkpoints_cleaner_add_subsumed(
		struct checkpoints_cleaner *c, struct completed_checkpoint *checkpoint)
{
	c->subsumed = heap_resize(c->subsumed, c->subsumed_count + 1, sizeof(*c->subsumed));
	c->subsumed[c->subsumed_count++] = checkpoint;
}

struct completed_checkpoint *checkpoints_cleaner_take_subsumed(struct checkpoints_cleaner *c,
		int64_t lowest_id, const struct id_list *in_use)
{
	for (uint32_t i = 0; i < c->subsumed_count; i++) {
		struct completed_checkpoint *s = c->subsumed[i];

		if (s->id >= lowest_id || id_list_contains(in_use, s->id))
			continue;
		c->subsumed_count--;
		memmove(c->subsumed + i, c->subsumed + i + 1,
				(c->subsumed_count - i) * sizeof(*c->subsumed));
		return s;
	}
	return NULL;
}
