/* What a script about one task says of it before the first event. */

#include "tests/scenario/task_words.h"

#include "dataplane/base/limits.h"

#include <string.h>

static bool one_number(struct task_world *w, const struct scenario_line *l, int64_t min,
		int64_t max, int64_t *out)
{
	return scenario_count(w->s, l, 2, 2) && scenario_number(w->s, l->words[1], min, max, out);
}

static bool set_channels(struct task_world *w, const struct scenario_line *l)
{
	int64_t count;

	if (!one_number(w, l, 1, CHANNELS_PER_GATE_MAX, &count))
		return false;
	if (w->settings.gate_count == GATES_PER_TASK_MAX)
		return scenario_malformed(w->s, "a task has at most %d gates", GATES_PER_TASK_MAX);
	w->settings.gate_channels[w->settings.gate_count++] = (uint32_t)count;
	w->settings.channel_count += (uint32_t)count;
	return true;
}

static bool set_links(struct task_world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 2, UINT32_MAX))
		return false;
	w->settings.link_count = l->word_count - 1;
	for (uint32_t i = 1; i < l->word_count; i++) {
		bool is_local = strcmp(l->words[i], "local") == 0;

		if (!is_local && strcmp(l->words[i], "remote") != 0)
			return scenario_malformed(w->s, "'%s' is no kind of link", l->words[i]);
		if (i - 1 < WORLD_LINKS_MAX)
			w->settings.is_local[i - 1] = is_local;
	}
	return true;
}

static bool set_mode(struct task_world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 2, 2))
		return false;
	w->settings.is_at_least_once = strcmp(l->words[1], "at-least-once") == 0;
	if (!w->settings.is_at_least_once && strcmp(l->words[1], "exactly-once") != 0)
		return scenario_malformed(w->s, "'%s' is no mode", l->words[1]);
	return true;
}

static bool set_unaligned(struct task_world *w, const struct scenario_line *l)
{
	return scenario_count(w->s, l, 2, 2) &&
			scenario_switch(w->s, l->words[1], &w->settings.is_unaligned);
}

static bool set_timeout(struct task_world *w, const struct scenario_line *l)
{
	return one_number(w, l, 0, INT64_MAX / 2, &w->settings.timeout_ms);
}

static bool set_finished(struct task_world *w, const struct scenario_line *l)
{
	return scenario_count(w->s, l, 2, 2) &&
			scenario_switch(w->s, l->words[1], &w->settings.has_finished_tasks);
}

static bool set_buffer(struct task_world *w, const struct scenario_line *l)
{
	int64_t bytes;

	if (!one_number(w, l, 1, BUF_BYTES_MAX, &bytes))
		return false;
	w->settings.buffer_bytes = (uint32_t)bytes;
	return true;
}

static bool set_outputs(struct task_world *w, const struct scenario_line *l)
{
	int64_t count;

	if (!one_number(w, l, 0, CHANNELS_PER_GATE_MAX, &count))
		return false;
	w->settings.output_count = (uint32_t)count;
	return true;
}

static bool set_max_concurrent(struct task_world *w, const struct scenario_line *l)
{
	int64_t count;

	if (!one_number(w, l, 1, CHECKPOINTS_IN_FLIGHT_MAX, &count))
		return false;
	w->settings.max_concurrent = (uint32_t)count;
	return true;
}

static bool set_restored(struct task_world *w, const struct scenario_line *l)
{
	return one_number(w, l, 1, INT64_MAX, &w->settings.restored_id);
}

struct setting {
	const char *word;
	bool (*set)(struct task_world *w, const struct scenario_line *l);
};

static const struct setting settings[] = {
		{"channels", set_channels},
		{"links", set_links},
		{"mode", set_mode},
		{"unaligned", set_unaligned},
		{"timeout", set_timeout},
		{"finished", set_finished},
		{"buffer", set_buffer},
		{"outputs", set_outputs},
		{"max-concurrent", set_max_concurrent},
		{"restored", set_restored},
};

static const struct setting *find_setting(const char *word)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(settings[i].word, word) == 0)
			return &settings[i];
	}
	return NULL;
}

bool task_world_is_setting(const char *word)
{
	return find_setting(word) != NULL;
}

bool task_world_set(struct task_world *w, const struct scenario_line *l)
{
	return find_setting(l->words[0])->set(w, l);
}
