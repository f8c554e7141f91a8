/* What a script about one task may claim. */

#include "tests/scenario/task_parts.h"

#include "control/coordinator/checkpoint_failure_reason.h"
#include "dataplane/checkpoint/barrier_handler.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Words behind the name, as they stand. */
static bool fail_words(struct task_world *w, const struct scenario_line *l, uint32_t from,
		const char *got)
{
	struct scenario_text expected = {0};

	for (uint32_t i = from; i < l->word_count; i++)
		scenario_text_add(&expected, "%s", l->words[i]);
	(void)scenario_failed(w->s, scenario_text_get(&expected), got);
	scenario_text_clear(&expected);
	return false;
}

static bool is_none(const struct scenario_line *l, uint32_t from)
{
	return l->word_count == from + 1 && strcmp(l->words[from], "none") == 0;
}

/* An id without a reason matches any. */
static bool is_match(const char *expected, const char *got)
{
	size_t length = strlen(expected);

	if (strchr(expected, ':') != NULL)
		return strcmp(expected, got) == 0;
	return strncmp(expected, got, length) == 0 && (got[length] == '\0' || got[length] == ':');
}

/* A list: compares in order, and consumes. */
static bool compare_list(struct task_world *w, const struct scenario_line *l, uint32_t from,
		struct words *list)
{
	uint32_t count = is_none(l, from) ? 0 : l->word_count - from;
	bool is_same = count == list->count;

	for (uint32_t i = 0; is_same && i < count; i++)
		is_same = is_match(l->words[from + i], list->at[i]);
	if (!is_same) {
		struct scenario_text got = {0};

		for (uint32_t i = 0; i < list->count; i++)
			scenario_text_add(&got, "%s", list->at[i]);
		(void)fail_words(w, l, from, scenario_text_get(&got));
		scenario_text_clear(&got);
	}
	task_words_clear(list);
	return is_same;
}

/* A state: the words must be exactly these. */
static bool compare_state(struct task_world *w, const struct scenario_line *l, uint32_t from,
		struct scenario_text *got)
{
	struct scenario_text expected = {0};

	for (uint32_t i = from; i < l->word_count; i++)
		scenario_text_add(&expected, "%s", l->words[i]);
	bool is_same = strcmp(scenario_text_get(&expected), scenario_text_get(got)) == 0;
	if (!is_same)
		(void)scenario_failed(w->s, scenario_text_get(&expected), scenario_text_get(got));
	scenario_text_clear(&expected);
	scenario_text_clear(got);
	return is_same;
}

static bool compare_number(struct task_world *w, const struct scenario_line *l, int64_t got)
{
	struct scenario_text text = {0};

	scenario_text_add(&text, "%" PRId64, got);
	return compare_state(w, l, 1, &text);
}

/* ---- well formed? ---- */

/* A name of section 9.1 without its prefix. */
static bool is_reason(const char *word)
{
	enum checkpoint_failure_reason reason;

	return checkpoint_failure_reason_parse(word, &reason) &&
			strcmp(checkpoint_failure_reason_short_name(reason), word) == 0;
}

static bool check_ids(struct task_world *w, const struct scenario_line *l, bool has_reasons)
{
	for (uint32_t i = 1; i < l->word_count && !is_none(l, 1); i++) {
		char digits[32];
		const char *colon = has_reasons ? strchr(l->words[i], ':') : NULL;
		size_t length = colon != NULL ? (size_t)(colon - l->words[i]) : strlen(l->words[i]);
		int64_t id;

		snprintf(digits, sizeof(digits), "%.*s", (int)length, l->words[i]);
		if (!scenario_number(w->s, digits, 1, INT64_MAX, &id))
			return false;
		if (colon != NULL && !is_reason(colon + 1))
			return scenario_malformed(w->s, "'%s' is not a reason", colon + 1);
	}
	return true;
}

static bool check_labels(struct task_world *w, const struct scenario_line *l, uint32_t from)
{
	for (uint32_t i = from; i < l->word_count; i++) {
		if (!scenario_is_name(l->words[i]))
			return scenario_malformed(w->s, "'%s' is not a label", l->words[i]);
	}
	return true;
}

static bool check_number(struct task_world *w, const struct scenario_line *l)
{
	int64_t number;

	return scenario_count(w->s, l, 2, 2) &&
			scenario_number(w->s, l->words[1], 0, INT64_MAX, &number);
}

/* ---- lists ---- */

static bool id_list(struct task_world *w, const struct scenario_line *l, struct words *list,
		bool has_reasons)
{
	if (!check_ids(w, l, has_reasons))
		return false;
	return w->s->is_checking || compare_list(w, l, 1, list);
}

static bool on_trig(struct task_world *w, const struct scenario_line *l)
{
	return id_list(w, l, &w->trig, false);
}

static bool on_abort(struct task_world *w, const struct scenario_line *l)
{
	return id_list(w, l, &w->aborts, true);
}

static bool on_acked(struct task_world *w, const struct scenario_line *l)
{
	return id_list(w, l, &w->acked, false);
}

static bool on_declined(struct task_world *w, const struct scenario_line *l)
{
	return id_list(w, l, &w->declined, true);
}

static bool on_notified(struct task_world *w, const struct scenario_line *l)
{
	return id_list(w, l, &w->notified, false);
}

static bool on_delivered(struct task_world *w, const struct scenario_line *l)
{
	if (!check_labels(w, l, 1))
		return false;
	return w->s->is_checking || compare_list(w, l, 1, &w->delivered);
}

static bool on_sent(struct task_world *w, const struct scenario_line *l)
{
	int64_t output;

	if (!scenario_count(w->s, l, 3, UINT32_MAX))
		return false;
	if (w->settings.output_count == 0)
		return scenario_malformed(w->s, "the task has no outputs");
	if (!scenario_number(w->s, l->words[1], 0, w->settings.output_count - 1, &output) ||
			!check_labels(w, l, 2))
		return false;
	return w->s->is_checking || compare_list(w, l, 2, &w->outputs[output].sent);
}

/* ---- states ---- */

static bool on_kind(struct task_world *w, const struct scenario_line *l)
{
	struct scenario_text got = {0};
	int64_t id;

	if (!scenario_count(w->s, l, 3, 3) ||
			!scenario_number(w->s, l->words[1], 1, INT64_MAX, &id))
		return false;
	if (strcmp(l->words[2], "aligned") != 0 && strcmp(l->words[2], "unaligned") != 0)
		return scenario_malformed(w->s, "'%s' is no kind", l->words[2]);
	if (w->s->is_checking)
		return true;
	if (task_ids_has(&w->performed, id))
		scenario_text_add(&got, "%s",
				task_ids_has(&w->unaligned, id) ? "unaligned" : "aligned");
	return compare_state(w, l, 2, &got);
}

static bool on_pending(struct task_world *w, const struct scenario_line *l)
{
	struct barrier_handler *h = w->s->is_checking ? NULL : stream_task_barrier_handler(w->task);
	uint32_t count = h != NULL ? barrier_handler_pending_count(h) : 0;
	struct scenario_text got = {0};

	if (!check_ids(w, l, false))
		return false;
	if (w->s->is_checking)
		return true;
	for (uint32_t i = 0; i < count; i++)
		scenario_text_add(&got, "%" PRId64, barrier_handler_pending_at(h, i));
	return compare_state(w, l, 1, &got);
}

static bool on_current(struct task_world *w, const struct scenario_line *l)
{
	struct barrier_handler *h = w->s->is_checking ? NULL : stream_task_barrier_handler(w->task);
	int64_t current = h != NULL ? barrier_handler_current(h) : -1;
	struct scenario_text got = {0};

	if (!scenario_count(w->s, l, 2, 2) || !check_ids(w, l, false))
		return false;
	if (w->s->is_checking)
		return true;
	if (current > 0)
		scenario_text_add(&got, "%" PRId64, current);
	return compare_state(w, l, 1, &got);
}

static bool on_blocked(struct task_world *w, const struct scenario_line *l)
{
	struct scenario_text got = {0}, expected = {0};
	bool *is_expected = calloc(w->settings.channel_count + 1, sizeof(*is_expected));
	bool is_good = is_expected != NULL;

	for (uint32_t i = 1; is_good && i < l->word_count && !is_none(l, 1); i++) {
		uint32_t first, last;

		is_good = task_world_range(
				w, l->words[i], w->settings.channel_count, &first, &last);
		for (uint32_t c = first; is_good && c <= last; c++)
			is_expected[c] = true;
	}
	for (uint32_t c = 0; is_good && !w->s->is_checking && c < w->settings.channel_count; c++) {
		if (is_expected[c])
			scenario_text_add(&expected, "%u", c);
		if (task_lines_is_blocked(w, c))
			scenario_text_add(&got, "%u", c);
	}
	if (is_good && strcmp(scenario_text_get(&expected), scenario_text_get(&got)) != 0)
		is_good = scenario_failed(
				w->s, scenario_text_get(&expected), scenario_text_get(&got));
	scenario_text_clear(&expected);
	scenario_text_clear(&got);
	free(is_expected);
	return is_good;
}

static bool on_open(struct task_world *w, const struct scenario_line *l)
{
	if (!check_number(w, l))
		return false;
	if (w->s->is_checking)
		return true;
	struct barrier_handler *h = stream_task_barrier_handler(w->task);
	return compare_number(w, l, h != NULL ? barrier_handler_open_count(h) : 0);
}

static bool compare_in_flight(
		struct task_world *w, const struct scenario_line *l, bool is_output)
{
	struct scenario_text got = {0};
	int64_t id;

	if (!scenario_count(w->s, l, 3, UINT32_MAX) ||
			!scenario_number(w->s, l->words[1], 1, INT64_MAX, &id) ||
			!check_labels(w, l, 2))
		return false;
	if (w->s->is_checking)
		return true;
	task_in_flight_labels(w, id, is_output, &got);
	return compare_state(w, l, 2, &got);
}

static bool on_inflight(struct task_world *w, const struct scenario_line *l)
{
	return compare_in_flight(w, l, false);
}

static bool on_inflight_out(struct task_world *w, const struct scenario_line *l)
{
	return compare_in_flight(w, l, true);
}

/* Of the newest checkpoint: the one the handler knows, or one that began here (TK-3). */
static struct alignment_metrics newest_metrics(const struct task_world *w)
{
	struct barrier_handler *h = stream_task_barrier_handler(w->task);
	int64_t current = h != NULL ? barrier_handler_current(h) : -1;

	if (current >= w->acked_id && h != NULL)
		return barrier_handler_metrics(h, current, task_world_now_ns(w));
	return (struct alignment_metrics){
			.alignment_duration_ns = w->acked_metrics.alignment_duration_ns,
			.start_delay_ns = w->acked_metrics.start_delay_ns,
			.bytes_processed = w->acked_metrics.bytes_processed_during_alignment,
	};
}

static bool on_aligned_bytes(struct task_world *w, const struct scenario_line *l)
{
	if (!check_number(w, l))
		return false;
	return w->s->is_checking || compare_number(w, l, newest_metrics(w).bytes_processed);
}

static bool on_aligned_ms(struct task_world *w, const struct scenario_line *l)
{
	if (!check_number(w, l))
		return false;
	return w->s->is_checking ||
			compare_number(w, l, newest_metrics(w).alignment_duration_ns / 1000000);
}

static bool on_start_delay(struct task_world *w, const struct scenario_line *l)
{
	if (!check_number(w, l))
		return false;
	return w->s->is_checking ||
			compare_number(w, l, newest_metrics(w).start_delay_ns / 1000000);
}

static bool on_task(struct task_world *w, const struct scenario_line *l)
{
	struct scenario_text got = {0};

	if (!scenario_count(w->s, l, 2, 2))
		return false;
	if (strcmp(l->words[1], "running") != 0 && strcmp(l->words[1], "finished") != 0 &&
			strcmp(l->words[1], "failed") != 0)
		return scenario_malformed(w->s, "'%s' is no state of a task", l->words[1]);
	if (w->s->is_checking)
		return true;
	char name[32];
	snprintf(name, sizeof(name), "%s", task_status_name(stream_task_status(w->task)));
	for (char *c = name; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	scenario_text_add(&got, "%s", name);
	w->is_failure_asserted |= strcmp(name, "failed") == 0;
	return compare_state(w, l, 1, &got);
}

/* ---- the table ---- */

struct assertion {
	const char *name;
	bool (*check)(struct task_world *w, const struct scenario_line *l);
};

static const struct assertion assertions[] = {
		{"trig", on_trig},
		{"abort", on_abort},
		{"kind", on_kind},
		{"pending", on_pending},
		{"current", on_current},
		{"blocked", on_blocked},
		{"open", on_open},
		{"delivered", on_delivered},
		{"inflight", on_inflight},
		{"inflight-out", on_inflight_out},
		{"sent", on_sent},
		{"aligned-bytes", on_aligned_bytes},
		{"aligned-ms", on_aligned_ms},
		{"start-delay-ms", on_start_delay},
		{"acked", on_acked},
		{"declined", on_declined},
		{"notified", on_notified},
		{"task", on_task},
};

bool task_world_assert(struct task_world *w, const struct scenario_line *l)
{
	for (size_t i = 0; i < sizeof(assertions) / sizeof(assertions[0]); i++) {
		if (strcmp(assertions[i].name, l->words[0]) != 0)
			continue;
		if (l->word_count < 2)
			return scenario_malformed(w->s, "'= %s' claims nothing", l->words[0]);
		return assertions[i].check(w, l);
	}
	return scenario_malformed(w->s, "there is no assertion '%s'", l->words[0]);
}

static bool is_left(struct task_world *w, const char *name, const struct words *list)
{
	struct scenario_text got = {0}, expected = {0};

	if (list->count == 0)
		return false;
	scenario_text_add(&expected, "no more %s", name);
	for (uint32_t i = 0; i < list->count; i++)
		scenario_text_add(&got, "%s", list->at[i]);
	(void)scenario_failed(w->s, scenario_text_get(&expected), scenario_text_get(&got));
	scenario_text_clear(&expected);
	scenario_text_clear(&got);
	return true;
}

bool task_world_end(struct task_world *w)
{
	if (is_left(w, "trig", &w->trig) || is_left(w, "abort", &w->aborts))
		return false;
	if (stream_task_status(w->task) == TASK_FAILED && !w->is_failure_asserted)
		return scenario_failed(w->s, "a task that did not fail", "failed");
	return true;
}
