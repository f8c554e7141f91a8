#include "tests/scenario/task_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool task_world_range(struct task_world *w, const char *word, uint32_t limit, uint32_t *first,
		uint32_t *last)
{
	const char *dots = strstr(word, "..");
	char low[24];
	int64_t a, b;

	if (limit == 0)
		return scenario_malformed(w->s, "there is no '%s': the task has none", word);
	snprintf(low, sizeof(low), "%.*s", (int)(dots != NULL ? dots - word : 20), word);
	if (!scenario_number(w->s, low, 0, limit - 1, &a))
		return false;
	b = a;
	if (dots != NULL && !scenario_number(w->s, dots + 2, a, limit - 1, &b))
		return false;
	*first = (uint32_t)a;
	*last = (uint32_t)b;
	return true;
}

static bool is_number(const char *word)
{
	return isdigit((unsigned char)word[0]);
}

/* Every word of a list of allowed ones has blanks around it. */
static bool is_allowed(const char *allowed, const char *word)
{
	char framed[32];

	snprintf(framed, sizeof(framed), " %.*s ", (int)strcspn(word, "="), word);
	return strstr(allowed, framed) != NULL;
}

static bool read_option(
		struct task_world *w, const char *word, const char *allowed, struct task_options *o)
{
	const char *ts = scenario_value(word, "ts"), *latest = scenario_value(word, "latest");

	if (!is_allowed(allowed, word))
		return scenario_malformed(w->s, "'%s' is not for this", word);
	if (ts != NULL)
		return scenario_number(w->s, ts, 0, INT64_MAX / 2, &o->timestamp_ms);
	if (latest != NULL)
		return scenario_number(w->s, latest, 1, INT64_MAX, &o->latest_id);
	if (strcmp(word, "no-drain") == 0)
		o->is_no_drain = true;
	else if (strcmp(word, "forced") == 0)
		o->is_forced = true;
	else if (strcmp(word, "savepoint") == 0)
		o->snapshot = SNAPSHOT_SAVEPOINT;
	else if (strcmp(word, "suspend") == 0)
		o->snapshot = SNAPSHOT_SAVEPOINT_SUSPEND;
	else if (strcmp(word, "terminate") == 0)
		o->snapshot = SNAPSHOT_SAVEPOINT_TERMINATE;
	else
		return scenario_malformed(w->s, "'%s' has no value", word);
	return true;
}

/* An option has one value, and a checkpoint is of one kind. */
static bool is_said_before(const struct scenario_line *l, uint32_t from, uint32_t at)
{
	const char *word = l->words[at], *kinds = " savepoint suspend terminate ";
	size_t length = strcspn(word, "=");

	for (uint32_t i = from; i < at; i++) {
		const char *other = l->words[i];

		if (strcspn(other, "=") == length && strncmp(other, word, length) == 0)
			return true;
		if (is_allowed(kinds, word) && is_allowed(kinds, other))
			return true;
	}
	return false;
}

bool task_read_options(struct task_world *w, const struct scenario_line *l, uint32_t from,
		const char *allowed, struct task_options *o)
{
	*o = (struct task_options){.snapshot = SNAPSHOT_CHECKPOINT, .timestamp_ms = w->now_ms};
	for (uint32_t i = from; i < l->word_count; i++) {
		if (!read_option(w, l->words[i], allowed, o))
			return false;
		if (is_said_before(l, from, i))
			return scenario_malformed(w->s, "'%s' is one too many", l->words[i]);
	}
	return true;
}

uint32_t task_numbers_end(const struct scenario_line *l, uint32_t from)
{
	while (from < l->word_count && is_number(l->words[from]))
		from++;
	return from;
}

bool task_for_each(struct task_world *w, const struct scenario_line *l, uint32_t from,
		uint32_t limit, bool (*act)(struct task_world *w, uint32_t number, void *context),
		void *context)
{
	uint32_t end = task_numbers_end(l, from), first, last;

	if (end == from)
		return scenario_malformed(w->s, "'%s' needs a number", l->words[0]);
	for (uint32_t i = from; i < end; i++) {
		if (!task_world_range(w, l->words[i], limit, &first, &last))
			return false;
		for (uint32_t n = first; n <= last; n++) {
			if (!act(w, n, context))
				return false;
		}
	}
	return true;
}

bool task_read_id(struct task_world *w, const struct scenario_line *l, int64_t *id)
{
	return scenario_count(w->s, l, 2, UINT32_MAX) &&
			scenario_number(w->s, l->words[1], 1, INT64_MAX, id);
}

/* ---- 10.3 ---- */

struct checkpoint_options task_world_options(
		const struct task_world *w, enum snapshot_kind snapshot)
{
	struct checkpoint_options o = {
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
			.snapshot = (uint8_t)snapshot,
			.alignment = ALIGNMENT_ALIGNED,
	};

	if (w->settings.is_at_least_once)
		o.alignment = ALIGNMENT_AT_LEAST_ONCE;
	else if (!snapshot_kind_is_savepoint(snapshot) && w->settings.is_unaligned &&
			w->settings.timeout_ms > 0)
		o.aligned_timeout_ms = w->settings.timeout_ms;
	return o;
}

struct checkpoint_options task_world_trigger_options(
		const struct task_world *w, enum snapshot_kind snapshot)
{
	struct checkpoint_options o = task_world_options(w, snapshot);

	if (w->settings.is_unaligned && w->settings.timeout_ms == 0 &&
			!snapshot_kind_is_savepoint(snapshot))
		o.alignment = ALIGNMENT_UNALIGNED;
	return o;
}
