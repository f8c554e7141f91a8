/* What else may happen in a script about one task: holding, time, mail, consumers, the store. */

#include "tests/scenario/task_parts.h"
#include "tests/scenario/task_words.h"

#include "dataplane/base/check.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/task/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- holding, time ---- */

static bool on_hold(struct task_world *w, const struct scenario_line *l)
{
	w->is_held = true;
	return scenario_count(w->s, l, 1, 1);
}

static bool on_go(struct task_world *w, const struct scenario_line *l)
{
	w->is_held = false;
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (!w->s->is_checking)
		task_world_settle(w);
	return true;
}

static bool on_step(struct task_world *w, const struct scenario_line *l)
{
	int64_t count = 1, taken = 0;
	char expected[32], got[32];

	if (!scenario_count(w->s, l, 1, 2))
		return false;
	if (l->word_count == 2 && !scenario_number(w->s, l->words[1], 1, UINT32_MAX, &count))
		return false;
	if (!w->is_held)
		return scenario_malformed(w->s, "'step' is for a task that is held");
	if (w->s->is_checking)
		return true;
	while (taken < count && task_lines_take(w)) {
		taken++;
		task_world_serve(w);
	}
	if (taken == count)
		return true;
	snprintf(expected, sizeof(expected), "%" PRId64 " to take", count);
	snprintf(got, sizeof(got), "%" PRId64, taken);
	return scenario_failed(w->s, expected, got);
}

static bool on_clock(struct task_world *w, const struct scenario_line *l)
{
	int64_t ms;

	if (!scenario_count(w->s, l, 2, 2) || !scenario_step(w->s, l->words[1], &ms))
		return false;
	w->now_ms += ms;
	return true;
}

static bool on_timers(struct task_world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (w->s->is_checking)
		return true;
	stream_task_run_timers(w->task, task_world_now_ns(w));
	task_world_settle(w);
	return true;
}

/* ---- mail ---- */

/* What Task does with a trigger (12.3) before it becomes mail. */
static void trigger(struct task_world *w, const struct checkpoint_request *request)
{
	struct task as_seen = {.status = stream_task_status(w->task)};
	enum decline_reason reason;
	const char *refusal = task_refusal(&as_seen, request, &reason);

	if (refusal != NULL)
		w->reporter.decline(&w->reporter, request->checkpoint_id, reason, refusal);
	else
		stream_task_trigger_checkpoint(w->task, request, task_world_now_ns(w));
	task_world_settle(w);
}

static bool on_trigger(struct task_world *w, const struct scenario_line *l)
{
	struct checkpoint_request request = {0};
	struct task_options o;

	if (!task_read_id(w, l, &request.checkpoint_id) ||
			!task_read_options(w, l, 2, " savepoint suspend terminate ts ", &o))
		return false;
	struct checkpoint_options options = task_world_trigger_options(w, o.snapshot);
	request.kind = o.snapshot;
	request.alignment = (enum alignment)options.alignment;
	request.aligned_timeout_ms = options.aligned_timeout_ms;
	request.timestamp_ms = o.timestamp_ms;
	if (!w->s->is_checking)
		trigger(w, &request);
	return true;
}

static bool on_complete(struct task_world *w, const struct scenario_line *l)
{
	int64_t id;

	if (!scenario_count(w->s, l, 2, 2) || !task_read_id(w, l, &id))
		return false;
	if (w->s->is_checking)
		return true;
	stream_task_notify_complete(w->task, id);
	task_world_settle(w);
	return true;
}

static bool on_cancel(struct task_world *w, const struct scenario_line *l)
{
	struct task_options o;
	int64_t id;

	if (!task_read_id(w, l, &id) || !task_read_options(w, l, 2, " latest ", &o))
		return false;
	if (w->s->is_checking)
		return true;
	stream_task_notify_aborted(w->task, id, o.latest_id);
	task_in_flight_forget(w, id);
	task_world_settle(w);
	return true;
}

static bool on_close(struct task_world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (w->s->is_checking)
		return true;
	stream_task_cancel(w->task);
	task_world_settle(w);
	return true;
}

/* ---- outputs ---- */

static void add_emission(struct task_world *w, uint32_t output, uint32_t label)
{
	if (w->s->is_checking)
		return;
	w->emissions = reallocarray(
			w->emissions, w->emission_count + 1, sizeof(w->emissions[0]));
	CHECK(w->emissions != NULL);
	w->emissions[w->emission_count++] = (struct emission){output, label};
	task_world_settle(w);
}

static bool on_emit(struct task_world *w, const struct scenario_line *l)
{
	uint32_t output, last, label;

	if (!scenario_count(w->s, l, 2, UINT32_MAX) ||
			!task_world_range(w, l->words[1], w->settings.output_count, &output, &last))
		return false;
	if (last != output)
		return scenario_malformed(w->s, "'emit' is for one subpartition");
	if (l->word_count == 2)
		add_emission(w, output, 0);
	for (uint32_t i = 2; i < l->word_count; i++) {
		if (!task_world_label(w, l->words[i], &label))
			return false;
		add_emission(w, output, label);
	}
	return true;
}

static bool set_blocked(struct task_world *w, uint32_t output, void *context)
{
	w->outputs[output].is_blocked = *(const bool *)context;
	if (!w->s->is_checking)
		task_world_settle(w);
	return true;
}

static bool all_processed(struct task_world *w, uint32_t output, void *context)
{
	(void)context;
	if (w->s->is_checking)
		return true;
	ring_channel_all_processed(w->outputs[output].channel);
	task_world_settle(w);
	return true;
}

/* `words` are numbers only. */
static bool for_each_output(struct task_world *w, const struct scenario_line *l,
		bool (*act)(struct task_world *w, uint32_t output, void *context), void *context)
{
	struct task_options o;

	return task_read_options(w, l, task_numbers_end(l, 1), "", &o) &&
			task_for_each(w, l, 1, w->settings.output_count, act, context);
}

static bool on_block(struct task_world *w, const struct scenario_line *l)
{
	bool yes = true;

	return for_each_output(w, l, set_blocked, &yes);
}

static bool on_resume(struct task_world *w, const struct scenario_line *l)
{
	bool no = false;

	return for_each_output(w, l, set_blocked, &no);
}

static bool on_processed(struct task_world *w, const struct scenario_line *l)
{
	return for_each_output(w, l, all_processed, NULL);
}

/* ---- the store ---- */

enum {
	/* What can lose a state; closing and removing always work. */
	FAILING_OPS = 1 << STORE_OPEN | 1 << STORE_WRITE | 1 << STORE_SYNC | 1 << STORE_RENAME |
			1 << STORE_SYNC_DIRECTORY,
};

static void set_failing(struct task_world *w, int error)
{
	w->store.fail_nth = error != 0 ? 1 : 0;
	w->store.fail_count = UINT32_MAX;
	w->store.fail_ops = FAILING_OPS;
	w->store.fail_status = -error;
}

static void set_store(struct task_world *w, const char *how, int error)
{
	if (strcmp(how, "settle") == 0) {
		set_failing(w, error);
		fault_store_settle(&w->store);
		set_failing(w, 0);
	} else {
		w->store.is_hung = strcmp(how, "slow") == 0;
		set_failing(w, error);
	}
	task_world_settle(w);
}

static bool on_store(struct task_world *w, const struct scenario_line *l)
{
	int error = 0;

	if (!scenario_count(w->s, l, 2, 3))
		return false;
	const char *how = l->words[1];
	bool is_fail = strcmp(how, "fail") == 0, is_settle = strcmp(how, "settle") == 0;
	if (!is_fail && !is_settle && strcmp(how, "ok") != 0 && strcmp(how, "slow") != 0)
		return scenario_malformed(w->s, "a store cannot '%s'", how);
	if (is_fail != (l->word_count == 3) && !is_settle)
		return scenario_malformed(w->s, "'store fail' names an error, the others do not");
	if (l->word_count == 3 && !scenario_errno(w->s, l->words[2], &error))
		return false;
	if (!w->s->is_checking)
		set_store(w, how, error);
	return true;
}

/* ---- the table ---- */

static const struct task_verb task_events[] = {
		{"hold", on_hold},
		{"go", on_go},
		{"step", on_step},
		{"clock", on_clock},
		{"timers", on_timers},
		{"trigger", on_trigger},
		{"complete", on_complete},
		{"cancel", on_cancel},
		{"emit", on_emit},
		{"block", on_block},
		{"resume", on_resume},
		{"processed", on_processed},
		{"store", on_store},
		{"close", on_close},
		{NULL, NULL},
};

/* The verb, or the end of the table. */
static const struct task_verb *find(const struct task_verb *verbs, const char *word)
{
	while (verbs->word != NULL && strcmp(verbs->word, word) != 0)
		verbs++;
	return verbs;
}

bool task_world_event(struct task_world *w, const struct scenario_line *l)
{
	const struct task_verb *verb = find(task_arrivals, l->words[0]);

	if (verb->act == NULL)
		verb = find(task_events, l->words[0]);
	if (verb->act == NULL)
		return scenario_malformed(w->s, "there is no event '%s'", l->words[0]);
	return verb->act(w, l);
}
