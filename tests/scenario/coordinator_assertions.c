#include "tests/scenario/coordinator_script.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>
#include <string.h>

/* What the rest of a line says, as one text: "none" or its words. */
static void print_words(const struct scenario_line *l, uint32_t from, struct scenario_text *text)
{
	for (uint32_t i = from; i < l->word_count; i++)
		scenario_text_add(text, "%s", l->words[i]);
}

bool script_is_none(const struct scenario_line *l, uint32_t from)
{
	return l->word_count == from + 1 && strcmp(l->words[from], "none") == 0;
}

/* Fails with what `l` says from word `from` on, and `got`. */
static bool fail_words(
		struct world *w, const struct scenario_line *l, uint32_t from, const char *got)
{
	struct scenario_text expected = { 0 };

	print_words(l, from, &expected);
	scenario_failed(w->s, scenario_text_get(&expected), got);
	scenario_text_clear(&expected);
	return false;
}

static bool compare_text(
		struct world *w, const struct scenario_line *l, uint32_t from, const char *got)
{
	struct scenario_text expected = { 0 };

	if (w->s->is_checking)
		return true;
	print_words(l, from, &expected);

	bool is_equal = strcmp(scenario_text_get(&expected), got) == 0;

	if (!is_equal)
		scenario_failed(w->s, scenario_text_get(&expected), got);
	scenario_text_clear(&expected);
	return is_equal;
}

static bool compare_number(struct world *w, const struct scenario_line *l, int64_t got)
{
	char text[32];
	int64_t expected;

	if (!scenario_count(w->s, l, 2, 2) ||
			!scenario_number(w->s, l->words[1], 0, INT64_MAX - 1, &expected))
		return false;
	if (w->s->is_checking || expected == got)
		return true;
	snprintf(text, sizeof(text), "%lld", (long long)got);
	return scenario_failed(w->s, l->words[1], text);
}

/* ---- lists ---- */

static bool is_reason(const char *word)
{
	enum checkpoint_failure_reason reason;

	return script_reason(word, &reason);
}

static bool is_id(const char *word)
{
	size_t length = strspn(word, "0123456789");

	return length > 0 && word[0] != '0' && word[length] == '\0';
}

/* "3" or "3:EXPIRED". */
static bool is_id_with_reason(const char *word)
{
	size_t length = strspn(word, "0123456789");

	if (length == 0 || word[0] == '0')
		return false;
	return word[length] == '\0' || (word[length] == ':' && is_reason(word + length + 1));
}

/* An id without a reason matches any. */
static bool is_match(const char *expected, const char *got)
{
	size_t length = strlen(expected);

	if (strcmp(expected, got) == 0)
		return true;
	return strchr(expected, ':') == NULL && strncmp(expected, got, length) == 0 &&
			got[length] == ':';
}

/* Takes all that is new in the journal. */
static bool compare_journal(struct world *w, const struct scenario_line *l, struct journal *j,
		bool (*is_word)(const char *word))
{
	uint32_t count = script_is_none(l, 1) ? 0 : l->word_count - 1;
	struct scenario_text got = { 0 };
	bool is_equal = true;

	if (!scenario_count(w->s, l, 2, UINT32_MAX))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_word(l->words[i + 1]))
			return scenario_malformed(w->s, "'%s' cannot be in this list",
					l->words[i + 1]);
	}
	if (w->s->is_checking)
		return true;
	is_equal = j->count - j->taken == count;
	for (uint32_t i = j->taken; i < j->count; i++) {
		scenario_text_add(&got, "%s", j->items[i]);
		is_equal = is_equal && is_match(l->words[1 + i - j->taken], j->items[i]);
	}
	j->taken = j->count;
	if (!is_equal)
		fail_words(w, l, 1, scenario_text_get(&got));
	scenario_text_clear(&got);
	return is_equal;
}

static bool assert_completed(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->completed, is_id);
}

static bool assert_aborted(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->aborted, is_id_with_reason);
}

static bool assert_rejected(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->rejected, is_reason);
}

static bool assert_discarded(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->discarded, is_id);
}

static bool assert_deleted(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->deleted, scenario_is_name);
}

static bool assert_job_failed(struct world *w, const struct scenario_line *l)
{
	return compare_journal(w, l, &w->job_failed, is_reason);
}

/* ---- who was told ---- */

struct expected_told {
	int64_t id, other_id; /* -1: not said */
	bool *subtasks;
	bool *coordinators;
};

static bool parse_who(struct world *w, const char *word, struct expected_told *e)
{
	uint32_t index;

	if (strchr(word, '.') != NULL)
		return script_subtasks(w, word, e->subtasks);
	if (!script_find(w, w->coordinators, w->coordinator_count, word, &index))
		return false;
	e->coordinators[index] = true;
	return true;
}

static bool parse_told(struct world *w, const struct scenario_line *l, const char *other,
		struct expected_told *e)
{
	if (!script_id(w, l->words[1], &e->id))
		return false;
	for (uint32_t i = 2; i < l->word_count; i++) {
		const char *value = other != NULL ? scenario_value(l->words[i], other) : NULL;

		if (value != NULL) {
			if (i != l->word_count - 1)
				return scenario_malformed(
						w->s, "'%s' must be the last word", l->words[i]);
			if (!scenario_number(w->s, value, 0, INT64_MAX - 1, &e->other_id))
				return false;
		} else if (i != 2 || strcmp(l->words[i], "none") != 0) {
			if (strcmp(l->words[2], "none") == 0)
				return scenario_malformed(w->s, "'none' stands alone");
			if (!parse_who(w, l->words[i], e))
				return false;
		}
	}
	return true;
}

static bool is_told(const struct world *w, const struct expected_told *e, const struct told *t)
{
	if (e->id != t->id || (e->other_id >= 0 && e->other_id != t->other_id))
		return false;
	for (uint32_t i = 0; i < w->coordinator_count; i++) {
		if (e->coordinators[i] != t->has_coordinators)
			return false;
	}
	return memcmp(e->subtasks, t->subtasks, w->subtask_count * sizeof(bool)) == 0;
}

/* One entry of the list, or that there is none. */
static bool compare_entry(struct world *w, const struct scenario_line *l, struct told_list *list,
		const char *other, const struct expected_told *e)
{
	struct scenario_text got = { 0 };
	bool is_expected = e != NULL;
	bool is_there = list->taken < list->count;

	if (is_there) {
		const struct told *t = &list->items[list->taken++];

		if (is_expected && is_told(w, e, t))
			return true;
		scenario_text_add(&got, "%lld", (long long)t->id);
		world_print_told(w, t, &got);
		if (other != NULL)
			scenario_text_add(&got, "%s=%lld", other, (long long)t->other_id);
	} else if (!is_expected) {
		return true;
	}
	fail_words(w, l, 1, scenario_text_get(&got));
	scenario_text_clear(&got);
	return false;
}

static bool compare_told(struct world *w, const struct scenario_line *l, struct told_list *list,
		const char *other)
{
	struct expected_told e = { .other_id = -1 };
	bool is_good;

	if (!scenario_count(w->s, l, 2, UINT32_MAX))
		return false;
	if (script_is_none(l, 1))
		return w->s->is_checking || compare_entry(w, l, list, other, NULL);
	e.subtasks = heap_zeroed(w->subtask_count, sizeof(bool));
	e.coordinators = heap_zeroed(w->coordinator_count, sizeof(bool));
	is_good = parse_told(w, l, other, &e);
	if (is_good && !w->s->is_checking)
		is_good = compare_entry(w, l, list, other, &e);
	free(e.subtasks);
	free(e.coordinators);
	return is_good;
}

static bool assert_triggered(struct world *w, const struct scenario_line *l)
{
	return compare_told(w, l, &w->triggered, NULL);
}

static bool assert_notified(struct world *w, const struct scenario_line *l)
{
	return compare_told(w, l, &w->notified, "subsumed");
}

static bool assert_notified_abort(struct world *w, const struct scenario_line *l)
{
	return compare_told(w, l, &w->notified_abort, "latest");
}

/* ---- states ---- */

static const struct pending_checkpoint *find_pending(struct world *w, int64_t id)
{
	const struct pending_checkpoint *p;

	for (uint32_t i = 0; (p = checkpoint_coordinator_pending(w->coordinator, i)) != NULL; i++) {
		if (pending_checkpoint_id(p) == id)
			return p;
	}
	return NULL;
}

/* The set of subtasks in words 2 and on against what `p` waits for. */
static bool assert_waits(struct world *w, const struct scenario_line *l)
{
	bool *set = heap_zeroed(w->subtask_count, sizeof(bool));
	struct scenario_text got = { 0 };
	int64_t id = 0;
	bool is_good = scenario_count(w->s, l, 3, UINT32_MAX) && script_id(w, l->words[1], &id);
	bool is_equal = true;

	for (uint32_t i = 2; is_good && !script_is_none(l, 2) && i < l->word_count; i++)
		is_good = script_subtasks(w, l->words[i], set);

	const struct pending_checkpoint *p = is_good ? find_pending(w, id) : NULL;

	for (uint32_t i = 0; is_good && i < w->subtask_count; i++) {
		bool is_awaited = p != NULL && pending_checkpoint_is_awaited(p, i);

		if (is_awaited)
			world_print_subtask(w, i, &got);
		is_equal = is_equal && is_awaited == set[i];
	}
	if (is_good && !is_equal && !w->s->is_checking)
		is_good = fail_words(w, l, 2, scenario_text_get(&got));
	scenario_text_clear(&got);
	free(set);
	return is_good;
}

static bool check_ids(struct world *w, const struct scenario_line *l)
{
	int64_t id;

	if (!scenario_count(w->s, l, 2, UINT32_MAX))
		return false;
	for (uint32_t i = 1; i < l->word_count && !script_is_none(l, 1); i++) {
		if (!script_id(w, l->words[i], &id))
			return false;
	}
	return true;
}

static bool assert_pending(struct world *w, const struct scenario_line *l)
{
	const struct pending_checkpoint *p;
	struct scenario_text got = { 0 };

	if (!check_ids(w, l))
		return false;
	for (uint32_t i = 0; (p = checkpoint_coordinator_pending(w->coordinator, i)) != NULL; i++)
		scenario_text_add(&got, "%lld", (long long)pending_checkpoint_id(p));

	bool is_good = compare_text(w, l, 1, scenario_text_get(&got));

	scenario_text_clear(&got);
	return is_good;
}

static bool assert_retained(struct world *w, const struct scenario_line *l)
{
	const struct completed_checkpoint *c;
	struct scenario_text got = { 0 };

	if (!check_ids(w, l))
		return false;
	for (uint32_t i = 0; (c = checkpoint_coordinator_retained(w->coordinator, i)) != NULL; i++)
		scenario_text_add(&got, "%lld", (long long)c->id);

	bool is_good = compare_text(w, l, 1, scenario_text_get(&got));

	scenario_text_clear(&got);
	return is_good;
}

static bool assert_queued(struct world *w, const struct scenario_line *l)
{
	return compare_number(w, l, checkpoint_coordinator_queued_count(w->coordinator));
}

static bool assert_failed_count(struct world *w, const struct scenario_line *l)
{
	return compare_number(w, l, checkpoint_coordinator_failure_count(w->coordinator));
}

static bool assert_failed_total(struct world *w, const struct scenario_line *l)
{
	struct checkpoint_stats *s = checkpoint_coordinator_stats(w->coordinator);

	return compare_number(w, l, (int64_t)checkpoint_stats_counts(s).failed);
}

static bool assert_job(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 2, 2))
		return false;
	if (strcmp(l->words[1], "running") != 0 && strcmp(l->words[1], "failed") != 0)
		return scenario_malformed(w->s, "a job is not '%s'", l->words[1]);
	return compare_text(w, l, 1, w->is_job_failed ? "failed" : "running");
}

static bool assert_next_trigger_in(struct world *w, const struct scenario_line *l)
{
	uint64_t due_ns = checkpoint_coordinator_next_periodic(w->coordinator);
	int64_t due_ms = (int64_t)(due_ns / NS_PER_MS);

	if (script_is_none(l, 1))
		return compare_text(w, l, 1, due_ns == UINT64_MAX ? "none" : "a trigger");
	if (due_ns == UINT64_MAX && !w->s->is_checking)
		return scenario_failed(w->s, "a trigger", "none");
	return compare_number(w, l, due_ms > w->now_ms ? due_ms - w->now_ms : 0);
}

static bool assert_restored(struct world *w, const struct scenario_line *l)
{
	int64_t id;
	char text[32] = "none";

	if (!scenario_count(w->s, l, 2, 2) ||
			(!script_is_none(l, 1) &&
					!scenario_number(w->s, l->words[1], 0, INT64_MAX - 1, &id)))
		return false;
	if (w->restored_id != 0)
		snprintf(text, sizeof(text), "%lld", (long long)w->restored_id);
	return compare_text(w, l, 1, text);
}

struct assertion {
	const char *name;
	bool (*check)(struct world *w, const struct scenario_line *l);
};

static const struct assertion assertions[] = {
	{ "triggered", assert_triggered },
	{ "options", script_assert_options },
	{ "waits", assert_waits },
	{ "pending", assert_pending },
	{ "queued", assert_queued },
	{ "completed", assert_completed },
	{ "aborted", assert_aborted },
	{ "rejected", assert_rejected },
	{ "notified", assert_notified },
	{ "notified-abort", assert_notified_abort },
	{ "retained", assert_retained },
	{ "discarded", assert_discarded },
	{ "deleted", assert_deleted },
	{ "finished", script_assert_finished },
	{ "failed-count", assert_failed_count },
	{ "failed-total", assert_failed_total },
	{ "job-failed", assert_job_failed },
	{ "job", assert_job },
	{ "next-trigger-in", assert_next_trigger_in },
	{ "restored", assert_restored },
};

bool coordinator_assertion(void *world, const struct scenario_line *l)
{
	struct world *w = world;

	for (size_t i = 0; i < sizeof(assertions) / sizeof(assertions[0]); i++) {
		if (strcmp(assertions[i].name, l->words[0]) == 0)
			return assertions[i].check(w, l);
	}
	return scenario_malformed(w->s, "'%s' cannot be asserted", l->words[0]);
}

static bool check_left(struct world *w, const struct journal *j, const char *name)
{
	struct scenario_text expected = { 0 };
	struct scenario_text got = { 0 };

	if (j->taken == j->count)
		return true;
	scenario_text_add(&expected, "nothing more in '%s' at the end", name);
	for (uint32_t i = j->taken; i < j->count; i++)
		scenario_text_add(&got, "%s", j->items[i]);
	scenario_failed(w->s, scenario_text_get(&expected), scenario_text_get(&got));
	scenario_text_clear(&expected);
	scenario_text_clear(&got);
	return false;
}

bool coordinator_end(void *world)
{
	struct world *w = world;

	return check_left(w, &w->completed, "completed") &&
			check_left(w, &w->aborted, "aborted") &&
			check_left(w, &w->rejected, "rejected") &&
			check_left(w, &w->job_failed, "job-failed");
}
