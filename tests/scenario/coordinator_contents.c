#include "tests/scenario/coordinator_script.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>
#include <string.h>

/* Assertions about what was sent with a trigger, and what was written as metadata. */

/* Writes down that option of what was sent, as a script does; false: there is none of that name and
 * value. */
static bool print_option(const char *word, const struct trigger_options *o, char text[64])
{
	const char *kind = scenario_value(word, "kind");
	const char *align = scenario_value(word, "align");
	bool is_known = false;

	for (enum checkpoint_kind k = KIND_CHECKPOINT; k <= KIND_FULL_CHECKPOINT; k++)
		is_known |= kind != NULL && strcmp(kind, checkpoint_kind_name(k)) == 0;
	for (enum trigger_alignment a = TRIGGER_AT_LEAST_ONCE; a <= TRIGGER_UNALIGNED; a++)
		is_known |= align != NULL && strcmp(align, trigger_alignment_name(a)) == 0;
	if (kind != NULL)
		snprintf(text, 64, "kind=%s", checkpoint_kind_name(o->kind));
	else
		snprintf(text, 64, "align=%s", trigger_alignment_name(o->alignment));
	return is_known;
}

static bool check_timeout(struct world *w, const char *word, int64_t got_ms)
{
	bool is_none_got = got_ms == TRIGGER_TIMEOUT_NONE;
	bool is_none_expected = strcmp(word, "none") == 0;
	int64_t ms = TRIGGER_TIMEOUT_NONE;
	char text[64];

	if (!is_none_expected && !scenario_number(w->s, word, 0, INT64_MAX - 1, &ms))
		return false;
	if (w->s->is_checking || ms == got_ms)
		return true;
	snprintf(text, sizeof(text), "timeout=%lld", (long long)got_ms);
	return scenario_failed(w->s, word, is_none_got ? "timeout=none" : text);
}

/* "timeout=none", "kind=full", "align=aligned". */
static bool check_option(struct world *w, const char *word, const struct trigger_options *o)
{
	const char *timeout = scenario_value(word, "timeout");
	char text[64];

	if (timeout != NULL)
		return check_timeout(w, timeout, o->aligned_timeout_ms);
	if (!print_option(word, o, text))
		return scenario_malformed(w->s, "'%s' is no option", word);
	if (w->s->is_checking || strcmp(text, word) == 0)
		return true;
	return scenario_failed(w->s, word, text);
}

bool script_assert_options(struct world *w, const struct scenario_line *l)
{
	static const struct trigger_options nothing;
	int64_t id;

	if (!scenario_count(w->s, l, 3, 5) || !script_id(w, l->words[1], &id))
		return false;

	const struct seen *seen = world_seen(w, id);

	if (!w->s->is_checking && (seen == NULL || !seen->has_options))
		return scenario_failed(w->s, "options", "nothing was triggered");
	for (uint32_t i = 2; i < l->word_count; i++) {
		if (!check_option(w, l->words[i], seen != NULL ? &seen->options : &nothing))
			return false;
	}
	return true;
}

static bool is_vertex(const struct world *w, const char *word)
{
	for (uint32_t v = 0; v < w->vertex_count; v++) {
		if (strcmp(w->vertices[v].name, word) == 0)
			return true;
	}
	return false;
}

/* What the script says is finished, in the order and form the world writes it. */
static bool print_finished(
		struct world *w, const struct scenario_line *l, struct scenario_text *text)
{
	bool *set = heap_zeroed(w->subtask_count, sizeof(bool));
	bool *vertices = heap_zeroed(w->vertex_count, sizeof(bool));
	bool is_good = true;

	for (uint32_t i = 2; is_good && i < l->word_count && !script_is_none(l, 2); i++) {
		for (uint32_t v = 0; v < w->vertex_count; v++) {
			if (strcmp(w->vertices[v].name, l->words[i]) == 0)
				vertices[v] = true;
		}
		if (!is_vertex(w, l->words[i]))
			is_good = script_subtasks(w, l->words[i], set);
	}
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		uint32_t v = execution_graph_vertex_of(w->graph, i);

		if (vertices[v] && execution_graph_index_of(w->graph, i) == 0)
			scenario_text_add(text, "%s", w->vertices[v].name);
		if (set[i])
			world_print_subtask(w, i, text);
	}
	free(set);
	free(vertices);
	return is_good;
}

bool script_assert_finished(struct world *w, const struct scenario_line *l)
{
	struct scenario_text expected = { 0 };
	int64_t id;

	if (!scenario_count(w->s, l, 3, UINT32_MAX) || !script_id(w, l->words[1], &id))
		return false;

	const struct seen *seen = world_seen(w, id);
	bool is_good = print_finished(w, l, &expected);

	if (is_good && !w->s->is_checking) {
		const char *got = seen != NULL && seen->finished != NULL ? seen->finished
									 : "no metadata";

		is_good = strcmp(scenario_text_get(&expected), got) == 0 ||
				scenario_failed(w->s, scenario_text_get(&expected), got);
	}
	scenario_text_clear(&expected);
	return is_good;
}
