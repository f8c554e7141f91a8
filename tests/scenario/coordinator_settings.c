#include "tests/scenario/coordinator_script.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>
#include <string.h>

#define MS_MAX INT64_C(1000000000000)

enum { PARALLELISM_SCRIPT_MAX = 10000 };

/* ---- words ---- */

bool script_id(struct world *w, const char *word, int64_t *id)
{
	return scenario_number(w->s, word, 1, INT64_MAX - 1, id);
}

bool script_find(struct world *w, const struct named *list, uint32_t count, const char *name,
		uint32_t *index)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(list[i].name, name) == 0) {
			*index = i;
			return true;
		}
	}
	return scenario_malformed(w->s, "nothing is called '%s'", name);
}

static bool find_vertex(struct world *w, const char *name, size_t length, uint32_t *v)
{
	for (uint32_t i = 0; i < w->vertex_count; i++) {
		if (strlen(w->vertices[i].name) == length &&
				strncmp(w->vertices[i].name, name, length) == 0) {
			*v = i;
			return true;
		}
	}
	return scenario_malformed(w->s, "there is no vertex '%.*s'", (int)length, name);
}

/* NAME.FIRST or NAME.FIRST..LAST */
static bool parse_range(struct world *w, const char *word, uint32_t *v, int64_t *first,
		int64_t *last)
{
	const char *dot = strchr(word, '.');
	char *copy;
	bool is_good;

	if (dot == NULL)
		return scenario_malformed(w->s, "'%s' is not a subtask", word);
	if (!find_vertex(w, word, (size_t)(dot - word), v))
		return false;

	int64_t max = (int64_t)w->vertices[*v].parallelism - 1;
	const char *to = strstr(dot + 1, "..");

	if (to == NULL) {
		is_good = scenario_number(w->s, dot + 1, 0, max, first);
		*last = *first;
		return is_good;
	}
	copy = heap_text(dot + 1);
	copy[to - dot - 1] = '\0';
	is_good = scenario_number(w->s, copy, 0, max, first) &&
			scenario_number(w->s, to + 2, *first, max, last);
	free(copy);
	return is_good;
}

bool script_subtasks(struct world *w, const char *word, bool *set)
{
	int64_t first, last;
	uint32_t v;

	if (!parse_range(w, word, &v, &first, &last))
		return false;
	for (int64_t i = first; i <= last; i++)
		set[execution_graph_subtask(w->graph, v, (uint32_t)i)] = true;
	return true;
}

/* Splits off "@2"; -1: there is none. */
static bool split_attempt(struct world *w, char *word, int64_t *number)
{
	char *at = strchr(word, '@');

	*number = -1;
	if (at == NULL)
		return true;
	*at = '\0';
	return scenario_number(w->s, at + 1, 0, UINT32_MAX, number);
}

bool script_subtask(
		struct world *w, const char *word, uint32_t *subtask, struct attempt_id *attempt)
{
	char *copy = heap_text(word);
	int64_t number, first, last;
	uint32_t v;
	bool is_good = split_attempt(w, copy, &number) && parse_range(w, copy, &v, &first, &last);

	free(copy);
	if (!is_good)
		return false;
	if (first != last || strstr(word, "..") != NULL)
		return scenario_malformed(w->s, "'%s' must be one subtask", word);
	*subtask = execution_graph_subtask(w->graph, v, (uint32_t)first);
	if (number > (int64_t)w->attempt_numbers[*subtask] && !w->s->is_checking)
		return scenario_malformed(w->s, "'%s' has not been attempted", word);
	*attempt = number < 0 ? execution_graph_attempt(w->graph, *subtask)
			      : world_attempt(*subtask, (uint32_t)number);
	return true;
}

bool script_files(struct world *w, const char *names, struct file_list *files)
{
	char *copy = heap_text(names);
	char *rest = copy;
	bool is_good = true;

	for (char *n; is_good && (n = strsep(&rest, ",")) != NULL;) {
		is_good = scenario_is_name(n);
		if (is_good)
			file_list_add(files, n);
	}
	free(copy);
	return is_good || scenario_malformed(w->s, "'%s' is not a list of names", names);
}

bool script_reason(const char *word, enum checkpoint_failure_reason *reason)
{
	return checkpoint_failure_reason_parse(word, reason) &&
			strcmp(checkpoint_failure_reason_short_name(*reason), word) == 0;
}

bool script_shared(struct world *w, const char *names, struct shared_list *shared)
{
	struct file_list files = { 0 };
	bool is_good = script_files(w, names, &files);

	for (uint32_t i = 0; i < files.count && is_good; i++)
		shared_list_add(shared, files.names[i], files.names[i], false);
	file_list_clear(&files);
	return is_good;
}

/* ---- settings with one number ---- */

static bool set_ms(struct world *w, const struct scenario_line *l, int64_t min, int64_t *field)
{
	return scenario_count(w->s, l, 2, 2) &&
			scenario_number(w->s, l->words[1], min, MS_MAX, field);
}

static bool set_count(struct world *w, const struct scenario_line *l, int64_t min, uint32_t *field)
{
	int64_t n;

	if (!scenario_count(w->s, l, 2, 2) ||
			!scenario_number(w->s, l->words[1], min, INT32_MAX, &n))
		return false;
	*field = (uint32_t)n;
	return true;
}

static bool set_interval(struct world *w, const struct scenario_line *l)
{
	return set_ms(w, l, w->config.smallest_ms, &w->config.interval_ms);
}

static bool set_min_pause(struct world *w, const struct scenario_line *l)
{
	return set_ms(w, l, 0, &w->config.min_pause_ms);
}

static bool set_first_delay(struct world *w, const struct scenario_line *l)
{
	w->has_first_delay = true;
	return set_ms(w, l, 0, &w->config.first_delay_ms);
}

static bool set_timeout(struct world *w, const struct scenario_line *l)
{
	return set_ms(w, l, w->config.smallest_ms, &w->config.timeout_ms);
}

static bool set_aligned_timeout(struct world *w, const struct scenario_line *l)
{
	return set_ms(w, l, 0, &w->config.alignment.aligned_timeout_ms);
}

static bool set_max_concurrent(struct world *w, const struct scenario_line *l)
{
	return set_count(w, l, 1, &w->config.concurrent_max);
}

static bool set_retained(struct world *w, const struct scenario_line *l)
{
	return set_count(w, l, 0, &w->config.retained_count);
}

static bool set_queue(struct world *w, const struct scenario_line *l)
{
	return set_count(w, l, 1, &w->config.queue_max);
}

static bool set_tolerable(struct world *w, const struct scenario_line *l)
{
	int64_t n;

	if (!scenario_count(w->s, l, 2, 2) ||
			!scenario_number(w->s, l->words[1], 0, INT32_MAX, &n))
		return false;
	w->config.tolerable_failures = (int32_t)n;
	return true;
}

/* ---- settings with one word ---- */

static bool set_unaligned(struct world *w, const struct scenario_line *l)
{
	return scenario_count(w->s, l, 2, 2) &&
			scenario_switch(w->s, l->words[1], &w->config.alignment.is_unaligned);
}

static bool set_finished(struct world *w, const struct scenario_line *l)
{
	return scenario_count(w->s, l, 2, 2) &&
			scenario_switch(w->s, l->words[1], &w->config.is_finished_enabled);
}

static bool set_mode(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 2, 2))
		return false;
	w->config.alignment.is_exactly_once = strcmp(l->words[1], "exactly-once") == 0;
	if (!w->config.alignment.is_exactly_once && strcmp(l->words[1], "at-least-once") != 0)
		return scenario_malformed(w->s, "'%s' is not a mode", l->words[1]);
	return true;
}

static bool set_retention(struct world *w, const struct scenario_line *l)
{
	static const char *const names[] = { "never", "on-failure", "on-cancellation" };

	if (!scenario_count(w->s, l, 2, 2))
		return false;
	for (int i = 0; i < 3; i++) {
		if (strcmp(l->words[1], names[i]) == 0) {
			w->config.retention = (enum retention_policy)i;
			return true;
		}
	}
	return scenario_malformed(w->s, "'%s' is not a retention policy", l->words[1]);
}

/* ---- the graph and what goes with it ---- */

static bool take_new_name(struct world *w, const char *name, uint32_t count)
{
	if (!scenario_is_name(name))
		return scenario_malformed(w->s, "'%s' is not a name", name);
	return count < NAMES_COUNT_MAX || scenario_malformed(w->s, "there are too many of these");
}

static bool set_vertex(struct world *w, const struct scenario_line *l)
{
	int64_t parallelism;

	if (!scenario_count(w->s, l, 3, 4) || !take_new_name(w, l->words[1], w->vertex_count) ||
			!scenario_number(w->s, l->words[2], 1, PARALLELISM_SCRIPT_MAX,
					&parallelism))
		return false;
	if (l->word_count == 4 && strcmp(l->words[3], "union") != 0)
		return scenario_malformed(w->s, "'%s' is not 'union'", l->words[3]);
	for (uint32_t v = 0; v < w->vertex_count; v++) {
		if (strcmp(w->vertices[v].name, l->words[1]) == 0)
			return scenario_malformed(w->s, "'%s' is there already", l->words[1]);
	}
	w->vertices[w->vertex_count++] = (struct execution_vertex){
		.name = heap_text(l->words[1]),
		.parallelism = (uint32_t)parallelism,
		.has_union_state = l->word_count == 4,
	};
	return true;
}

static bool set_edge(struct world *w, const struct scenario_line *l)
{
	struct execution_edge e;

	if (!scenario_count(w->s, l, 4, 4) ||
			!find_vertex(w, l->words[1], strlen(l->words[1]), &e.from) ||
			!find_vertex(w, l->words[2], strlen(l->words[2]), &e.to))
		return false;
	if (e.from >= e.to)
		return scenario_malformed(w->s, "'%s' does not come before '%s'", l->words[1],
				l->words[2]);
	if (strcmp(l->words[3], "all") == 0)
		e.pattern = EDGE_ALL_TO_ALL;
	else if (strcmp(l->words[3], "pointwise") == 0)
		e.pattern = EDGE_POINTWISE;
	else
		return scenario_malformed(w->s, "'%s' is no kind of edge", l->words[3]);
	if (e.pattern == EDGE_POINTWISE &&
			w->vertices[e.from].parallelism != w->vertices[e.to].parallelism)
		return scenario_malformed(w->s, "a pointwise edge joins equal parallelism");
	if (w->edge_count == NAMES_COUNT_MAX)
		return scenario_malformed(w->s, "there are too many edges");
	w->edges[w->edge_count++] = e;
	return true;
}

static bool set_named(struct world *w, const struct scenario_line *l, struct named *list,
		uint32_t *count)
{
	if (!scenario_count(w->s, l, 2, 3) || !take_new_name(w, l->words[1], *count))
		return false;
	if (l->word_count == 3 && strcmp(l->words[2], "sync") != 0)
		return scenario_malformed(w->s, "'%s' is not 'sync'", l->words[2]);
	for (uint32_t i = 0; i < *count; i++) {
		if (strcmp(list[i].name, l->words[1]) == 0)
			return scenario_malformed(w->s, "'%s' is there already", l->words[1]);
	}
	list[(*count)++] = (struct named){ heap_text(l->words[1]), l->word_count == 3 };
	return true;
}

static bool set_opcoord(struct world *w, const struct scenario_line *l)
{
	return set_named(w, l, w->coordinators, &w->coordinator_count);
}

static bool set_master(struct world *w, const struct scenario_line *l)
{
	return set_named(w, l, w->hooks, &w->hook_count);
}

static bool set_snapshot(struct world *w, const struct scenario_line *l)
{
	struct snapshot *s = &w->snapshots[w->snapshot_count];
	int64_t id;

	if (!scenario_count(w->s, l, 3, 6) || !script_id(w, l->words[2], &id))
		return false;
	for (uint32_t i = 0; i < w->snapshot_count; i++) {
		if (strcmp(w->snapshots[i].path, l->words[1]) == 0)
			return scenario_malformed(w->s, "'%s' is there already", l->words[1]);
	}
	if (w->snapshot_count == NAMES_COUNT_MAX)
		return scenario_malformed(w->s, "there are too many snapshots");
	w->snapshot_count++;
	*s = (struct snapshot){ .path = heap_text(l->words[1]), .id = id };
	for (uint32_t i = 3; i < l->word_count; i++) {
		const char *files = scenario_value(l->words[i], "file");
		const char *shared = scenario_value(l->words[i], "shared");
		bool is_good = true;

		if (strcmp(l->words[i], "savepoint") == 0)
			s->is_savepoint = true;
		else if (files != NULL)
			is_good = script_files(w, files, &s->files);
		else if (shared != NULL)
			is_good = script_shared(w, shared, &s->shared);
		else
			is_good = scenario_malformed(w->s, "'%s' is unknown", l->words[i]);
		if (!is_good)
			return false;
	}
	return true;
}

struct setting {
	const char *name;
	bool (*set)(struct world *w, const struct scenario_line *l);
};

static const struct setting settings[] = {
	{ "interval", set_interval },
	{ "min-pause", set_min_pause },
	{ "first-delay", set_first_delay },
	{ "timeout", set_timeout },
	{ "max-concurrent", set_max_concurrent },
	{ "tolerable", set_tolerable },
	{ "unaligned", set_unaligned },
	{ "aligned-timeout", set_aligned_timeout },
	{ "mode", set_mode },
	{ "finished", set_finished },
	{ "retained", set_retained },
	{ "retention", set_retention },
	{ "queue", set_queue },
	{ "vertex", set_vertex },
	{ "edge", set_edge },
	{ "opcoord", set_opcoord },
	{ "master", set_master },
	{ "snapshot", set_snapshot },
};

static const struct setting *find_setting(const char *word)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(settings[i].name, word) == 0)
			return &settings[i];
	}
	return NULL;
}

bool coordinator_setting_is(const char *word)
{
	return find_setting(word) != NULL;
}

bool coordinator_setting(void *world, const struct scenario_line *l)
{
	return find_setting(l->words[0])->set(world, l);
}

bool coordinator_start(void *world)
{
	struct world *w = world;

	if (w->vertex_count == 0)
		return scenario_malformed(w->s, "there is no vertex");
	if (w->has_first_delay && w->config.interval_ms == 0)
		return scenario_malformed(w->s, "a first delay needs an interval");

	const char *error = checkpoint_coordinator_config_normalise(&w->config);

	if (error != NULL)
		return scenario_malformed(w->s, "the settings do not fit: %s", error);
	if (!w->has_first_delay)
		w->config.first_delay_ms = w->config.interval_ms;
	world_start(w);
	return true;
}
