#include "control/coordinator/checkpoint_stats.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Heartbeats come far more often, and a turn is far shorter. */
enum { SILENT_MS = 1000, STUCK_MS = 200 };

struct checkpoint_stats {
	const struct execution_graph *graph;
	uint32_t history_max;
	uint32_t record_count;
	struct checkpoint_record **records; /* oldest first; those in progress are never dropped */
	struct checkpoint_record *latest_completed, *latest_savepoint, *latest_failed;
	struct checkpoint_counts counts;
	struct restored_stats restored;
	struct histogram summaries[SUMMARIES_COUNT];
	struct subtask_progress *progress; /* of each subtask */
};

const char *checkpoint_phase_name(enum checkpoint_phase phase)
{
	switch (phase) {
	case PHASE_LOCATION:
		return "making its directory";
	case PHASE_COORDINATORS:
		return "waiting for operator coordinators";
	case PHASE_HOOKS:
		return "waiting for master hooks";
	case PHASE_TASKS:
		return "waiting for tasks";
	case PHASE_METADATA:
		return "writing its metadata";
	case PHASE_INDEX:
		return "adding it to the list of completed checkpoints";
	}
	CHECK(false);
	return NULL;
}

void checkpoint_stats_create(struct checkpoint_stats **out, const struct execution_graph *graph,
		uint32_t history_max)
{
	struct checkpoint_stats *s = heap_zeroed(1, sizeof(*s));

	s->graph = graph;
	s->history_max = history_max;
	s->progress = heap_zeroed(execution_graph_subtask_count(graph), sizeof(*s->progress));
	*out = s;
}

static void record_release(struct checkpoint_record *r)
{
	if (r == NULL || --r->references > 0)
		return;
	free(r->location);
	free(r->failure_message);
	for (uint32_t i = 0; i < r->subtask_count; i++)
		free(r->subtasks[i].kept);
	free(r->subtasks);
	free(r);
}

void checkpoint_stats_destroy(struct checkpoint_stats *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->record_count; i++)
		record_release(s->records[i]);
	record_release(s->latest_completed);
	record_release(s->latest_savepoint);
	record_release(s->latest_failed);
	free(s->records);
	free(s->restored.location);
	free(s->progress);
	free(s);
}

int64_t checkpoint_record_duration_ms(const struct checkpoint_record *r)
{
	if (r->status == CHECKPOINT_FAILED)
		return r->end_ms - r->trigger_ms;
	return r->latest_ack_ms >= 0 ? r->latest_ack_ms - r->trigger_ms : -1;
}

uint32_t checkpoint_record_slowest(const struct checkpoint_record *r)
{
	return r->status == CHECKPOINT_FAILED && r->failure_subtask != UINT32_MAX
			? r->failure_subtask
			: r->latest_subtask;
}

struct checkpoint_counts checkpoint_stats_counts(const struct checkpoint_stats *s)
{
	return s->counts;
}

const struct histogram *checkpoint_stats_summary(
		const struct checkpoint_stats *s, enum checkpoint_summary which)
{
	CHECK((unsigned int)which < SUMMARIES_COUNT);
	return &s->summaries[which];
}

const struct checkpoint_record *checkpoint_stats_history(
		const struct checkpoint_stats *s, uint32_t index)
{
	return index < s->record_count ? s->records[s->record_count - 1 - index] : NULL;
}

static struct checkpoint_record *find(const struct checkpoint_stats *s, int64_t id)
{
	for (uint32_t i = s->record_count; i > 0; i--) {
		if (s->records[i - 1]->id == id)
			return s->records[i - 1];
	}
	return NULL;
}

const struct checkpoint_record *checkpoint_stats_find(const struct checkpoint_stats *s, int64_t id)
{
	return find(s, id);
}

const struct checkpoint_record *checkpoint_stats_latest_completed(const struct checkpoint_stats *s)
{
	return s->latest_completed;
}

const struct checkpoint_record *checkpoint_stats_latest_savepoint(const struct checkpoint_stats *s)
{
	return s->latest_savepoint;
}

const struct checkpoint_record *checkpoint_stats_latest_failed(const struct checkpoint_stats *s)
{
	return s->latest_failed;
}

const struct restored_stats *checkpoint_stats_restored(const struct checkpoint_stats *s)
{
	return &s->restored;
}

/* Forgets the oldest that have ended, down to the limit. */
static void trim(struct checkpoint_stats *s)
{
	uint32_t i = 0;

	while (s->record_count > s->history_max && i < s->record_count) {
		if (s->records[i]->status == CHECKPOINT_IN_PROGRESS) {
			i++;
			continue;
		}
		record_release(s->records[i]);
		s->record_count--;
		memmove(s->records + i, s->records + i + 1,
				(s->record_count - i) * sizeof(struct checkpoint_record *));
	}
}

/* 24.1: subtasks that finished before count as acknowledged at once. */
static void note_plan(struct checkpoint_record *r, const struct checkpoint_plan *plan)
{
	for (uint32_t i = 0; i < r->subtask_count; i++) {
		r->subtasks[i].ack_ms = plan->is_finished[i] ? r->trigger_ms : -1;
		r->subtasks[i].is_finished = plan->is_finished[i];
		r->subtasks[i].attempt = plan->attempts[i];
	}
	r->planned_count = plan->wait_count + plan->finished_count;
	r->acknowledged_count = plan->finished_count;
}

void checkpoint_stats_on_pending(struct checkpoint_stats *s, int64_t id,
		const struct checkpoint_properties *properties, const struct checkpoint_plan *plan,
		int64_t wall_ms)
{
	struct checkpoint_record *r = heap_zeroed(1, sizeof(*r));

	r->references = 1;
	r->id = id;
	r->trigger_ms = wall_ms;
	r->properties = *properties;
	r->latest_ack_ms = -1;
	r->end_ms = -1;
	r->latest_subtask = UINT32_MAX;
	r->failure_subtask = UINT32_MAX;
	r->subtask_count = plan->subtask_count;
	r->subtasks = heap_zeroed(r->subtask_count, sizeof(*r->subtasks));
	note_plan(r, plan);
	s->records = heap_resize(s->records, s->record_count + 1, sizeof(*s->records));
	s->records[s->record_count++] = r;
	s->counts.total++;
	s->counts.in_progress++;
	trim(s);
}

void checkpoint_stats_on_phase(
		struct checkpoint_stats *s, int64_t id, enum checkpoint_phase phase)
{
	struct checkpoint_record *r = find(s, id);

	if (r != NULL && r->status == CHECKPOINT_IN_PROGRESS)
		r->phase = phase;
}

void checkpoint_stats_on_tasks_triggered(struct checkpoint_stats *s, int64_t id, uint64_t now_ns)
{
	struct checkpoint_record *r = find(s, id);

	checkpoint_stats_on_phase(s, id, PHASE_TASKS);
	if (r != NULL)
		r->tasks_ns = now_ns;
}

static struct subtask_stats *note_metrics(
		struct checkpoint_record *r, const struct acknowledgement *a, int64_t wall_ms)
{
	struct subtask_stats *t = &r->subtasks[a->subtask];

	t->ack_ms = wall_ms;
	t->metrics = a->metrics;
	t->kept_count = a->kept_count;
	t->kept = heap_copy(a->kept, a->kept_count, sizeof(*a->kept));
	return t;
}

void checkpoint_stats_on_acknowledge(
		struct checkpoint_stats *s, const struct acknowledgement *a, struct moment now)
{
	struct checkpoint_record *r = find(s, a->checkpoint_id);

	if (r == NULL || r->status != CHECKPOINT_IN_PROGRESS || a->subtask >= r->subtask_count ||
			r->subtasks[a->subtask].ack_ms >= 0)
		return;
	note_metrics(r, a, now.wall_ms)->ack_ns = now.now_ns;
	r->acknowledged_count++;
	r->latest_ack_ms = now.wall_ms;
	r->latest_subtask = a->subtask;
	r->checkpointed_bytes += a->metrics.checkpointed_bytes;
	r->state_bytes += a->metrics.state_bytes;
	r->processed_bytes += a->metrics.processed_bytes;
	r->persisted_bytes += a->metrics.persisted_bytes;
	r->is_unaligned = r->is_unaligned || a->metrics.is_unaligned;
}

void checkpoint_stats_on_incomplete(
		struct checkpoint_stats *s, const struct acknowledgement *a, int64_t wall_ms)
{
	struct checkpoint_record *r = find(s, a->checkpoint_id);

	if (r == NULL || a->subtask >= r->subtask_count || r->subtasks[a->subtask].ack_ms >= 0)
		return;
	note_metrics(r, a, wall_ms)->is_aborted = true;
}

static void keep(struct checkpoint_record **latest, struct checkpoint_record *r)
{
	record_release(*latest);
	*latest = r;
	r->references++;
}

static void summarise(struct checkpoint_stats *s, const struct checkpoint_record *r)
{
	histogram_add(&s->summaries[SUMMARY_DURATION_MS], checkpoint_record_duration_ms(r));
	histogram_add(&s->summaries[SUMMARY_CHECKPOINTED_BYTES], r->checkpointed_bytes);
	histogram_add(&s->summaries[SUMMARY_STATE_BYTES], r->state_bytes);
	histogram_add(&s->summaries[SUMMARY_PROCESSED_BYTES], r->processed_bytes);
	histogram_add(&s->summaries[SUMMARY_PERSISTED_BYTES], r->persisted_bytes);
}

void checkpoint_stats_on_completed(
		struct checkpoint_stats *s, int64_t id, const char *location, int64_t wall_ms)
{
	struct checkpoint_record *r = find(s, id);

	if (r == NULL || r->status != CHECKPOINT_IN_PROGRESS)
		return;
	r->status = CHECKPOINT_COMPLETED;
	r->end_ms = wall_ms;
	r->location = heap_text(location);
	s->counts.in_progress--;
	s->counts.completed++;
	summarise(s, r);
	if (checkpoint_properties_is_savepoint(&r->properties))
		keep(&s->latest_savepoint, r);
	else
		keep(&s->latest_completed, r);
	trim(s);
}

static bool is_awaited(const struct checkpoint_record *r, uint32_t subtask)
{
	return r->subtasks[subtask].ack_ms < 0 || r->subtasks[subtask].is_aborted;
}

/* Whom a checkpoint that waits for tasks is waiting for: one that does not come back from a call,
 * for others may wait for its worker; else the first, for those behind it wait for its barrier. */
static uint32_t find_awaited(const struct checkpoint_stats *s, const struct checkpoint_record *r)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = r->subtask_count; r->phase == PHASE_TASKS && i > 0; i--)
		if (is_awaited(r, i - 1))
			first = i - 1;
	for (uint32_t i = 0; first != UINT32_MAX && i < r->subtask_count; i++)
		if (is_awaited(r, i) && s->progress[i].stuck_ms >= STUCK_MS)
			return i;
	return first;
}

/* "waiting for tasks (1 of 3 subtasks acknowledged)". */
static char *print_phase(const struct checkpoint_record *r)
{
	return heap_print("%s (%u of %u subtasks acknowledged)", checkpoint_phase_name(r->phase),
			r->acknowledged_count, r->planned_count);
}

/* ---- what a subtask is at ---- */

void checkpoint_stats_on_progress(
		struct checkpoint_stats *s, uint32_t subtask, const struct subtask_progress *p)
{
	CHECK(subtask < execution_graph_subtask_count(s->graph));
	s->progress[subtask] = *p;
}

void checkpoint_stats_print_progress(const struct checkpoint_stats *s, uint32_t subtask,
		int64_t wall_ms, char text[PROGRESS_TEXT_BYTES])
{
	static const char *const steps[] = {
			[SUBTASK_NOTHING] = "no barrier has come",
			[SUBTASK_ALIGNING] = "aligning",
			[SUBTASK_SNAPSHOT] = "taking its snapshot",
			[SUBTASK_WRITING] = "writing its state",
	};
	const struct subtask_progress *p = &s->progress[subtask];
	int64_t silent_ms = wall_ms - p->heard_ms;

	if (p->heard_ms == 0)
		snprintf(text, PROGRESS_TEXT_BYTES, "it has said nothing yet");
	else if (silent_ms >= SILENT_MS)
		snprintf(text, PROGRESS_TEXT_BYTES, "not heard for %lld ms", (long long)silent_ms);
	else if (p->stuck_ms >= STUCK_MS)
		snprintf(text, PROGRESS_TEXT_BYTES, "stuck in one call for %lld ms",
				(long long)(p->stuck_ms + silent_ms));
	else if (p->step == SUBTASK_NOTHING)
		snprintf(text, PROGRESS_TEXT_BYTES, "%s", steps[p->step]);
	else
		snprintf(text, PROGRESS_TEXT_BYTES, "%s for %lld ms", steps[p->step],
				(long long)(p->step_ms + silent_ms));
}

/* "metering (1/2) has not acknowledged (writing its state for 580 ms)"; to be freed. */
static char *print_awaited(const struct checkpoint_stats *s, uint32_t subtask, int64_t wall_ms)
{
	char name[SUBTASK_TEXT_BYTES], progress[PROGRESS_TEXT_BYTES];

	if (subtask == UINT32_MAX)
		return heap_text("");
	execution_graph_print_subtask(s->graph, subtask, name);
	checkpoint_stats_print_progress(s, subtask, wall_ms, progress);
	return heap_print("%s has not acknowledged (%s)", name, progress);
}

/* The same of one that refused. */
static char *print_culprit(const struct checkpoint_stats *s, uint32_t subtask)
{
	char name[SUBTASK_TEXT_BYTES];

	execution_graph_print_subtask(s->graph, subtask, name);
	return heap_print("%s refused", name);
}

/* Names subtask, phase and elapsed time. */
static void explain(const struct checkpoint_stats *s, struct checkpoint_record *r,
		const struct checkpoint_blame *blame)
{
	bool has_culprit = blame->subtask < r->subtask_count;

	r->failure_subtask = has_culprit ? blame->subtask : find_awaited(s, r);
	char *phase = print_phase(r);
	char *who = has_culprit ? print_culprit(s, blame->subtask)
				: print_awaited(s, r->failure_subtask, r->end_ms);
	r->failure_message = heap_print("checkpoint %lld failed after %lld ms, %s: %s%s%s, %s%s%s",
			(long long)r->id, (long long)(r->end_ms - r->trigger_ms), phase, who,
			who[0] != 0 ? ": " : "", checkpoint_failure_reason_name(blame->reason),
			checkpoint_failure_reason_text(blame->reason),
			blame->text != NULL ? ": " : "", blame->text != NULL ? blame->text : "");
	free(phase);
	free(who);
}

char *checkpoint_stats_explain_pending(const struct checkpoint_stats *s, int64_t wall_ms)
{
	const struct checkpoint_record *r = NULL;

	for (uint32_t i = 0; i < s->record_count && r == NULL; i++)
		r = s->records[i]->status == CHECKPOINT_IN_PROGRESS ? s->records[i] : NULL;
	if (r == NULL)
		return NULL;
	char *phase = print_phase(r), *who = print_awaited(s, find_awaited(s, r), wall_ms);
	char *text = heap_print("checkpoint %lld is in progress for %lld ms, %s%s%s",
			(long long)r->id, (long long)(wall_ms - r->trigger_ms), phase,
			who[0] != 0 ? ": " : "", who);
	free(phase);
	free(who);
	return text;
}

void checkpoint_stats_on_failed(struct checkpoint_stats *s, int64_t id,
		const struct checkpoint_blame *blame, int64_t wall_ms)
{
	struct checkpoint_record *r = find(s, id);

	if (r == NULL || r->status != CHECKPOINT_IN_PROGRESS)
		return;
	r->status = CHECKPOINT_FAILED;
	r->end_ms = wall_ms;
	r->reason = blame->reason;
	explain(s, r, blame);
	s->counts.in_progress--;
	s->counts.failed++;
	keep(&s->latest_failed, r);
	trim(s);
}

void checkpoint_stats_on_failed_unborn(struct checkpoint_stats *s)
{
	s->counts.total++;
	s->counts.failed++;
}

void checkpoint_stats_on_restored(
		struct checkpoint_stats *s, int64_t id, bool is_savepoint, const char *location,
		int64_t wall_ms)
{
	free(s->restored.location);
	s->restored = (struct restored_stats){
		.id = id,
		.restore_ms = wall_ms,
		.is_savepoint = is_savepoint,
		.location = heap_text(location),
	};
	s->counts.restored++;
}
