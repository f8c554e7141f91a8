/* The subject `task`, as the runner knows it. */

#include "tests/scenario/task_world.h"

#include "dataplane/base/check.h"

#include <stdlib.h>

static void *begin(struct scenario *s)
{
	return task_world_create(s);
}

static void destroy(void *world)
{
	task_world_destroy(world);
}

static bool is_setting(const char *word)
{
	return task_world_is_setting(word);
}

static bool setting(void *world, const struct scenario_line *l)
{
	return task_world_set(world, l);
}

static bool start(void *world)
{
	struct task_world *w = world;
	uint32_t links = w->settings.link_count, channels = w->settings.channel_count;

	if (w->settings.is_at_least_once && w->settings.is_unaligned)
		return scenario_malformed(w->s, "'unaligned on' needs exactly-once");
	if (links > 1 && links != channels)
		return scenario_malformed(w->s, "%u links for %u channels", links, channels);
	w->lines = calloc(channels + 1, sizeof(w->lines[0]));
	w->outputs = calloc(w->settings.output_count + 1, sizeof(w->outputs[0]));
	CHECK(w->lines != NULL && w->outputs != NULL);
	return w->s->is_checking || task_world_build(w);
}

static bool event(void *world, const struct scenario_line *l)
{
	return task_world_event(world, l);
}

static bool assertion(void *world, const struct scenario_line *l)
{
	return task_world_assert(world, l);
}

static bool end(void *world)
{
	return task_world_end(world);
}

const struct scenario_subject scenario_task = {
		.name = "task",
		.begin = begin,
		.destroy = destroy,
		.is_setting = is_setting,
		.setting = setting,
		.start = start,
		.event = event,
		.assertion = assertion,
		.end = end,
};
