#include "tests/scenario/coordinator_world.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void journal_add(struct journal *j, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	CHECK(length >= 0);
	j->items = heap_resize(j->items, j->count + 1, sizeof(*j->items));
	j->items[j->count++] = text;
}

static void journal_clear(struct journal *j)
{
	for (uint32_t i = 0; i < j->count; i++)
		free(j->items[i]);
	free(j->items);
}

struct moment world_now(const struct world *w)
{
	return (struct moment){ (uint64_t)w->now_ms * NS_PER_MS, w->now_ms };
}

struct attempt_id world_attempt(uint32_t subtask, uint32_t number)
{
	struct attempt_id a = { 0 };
	uint32_t content[3] = { 1, subtask, number };

	memcpy(a.id.bytes, content, sizeof(content));
	return a;
}

void world_new_attempts(struct world *w)
{
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		w->attempt_numbers[i]++;
		w->is_lost[i] = false;
		execution_graph_set_attempt(w->graph, i, world_attempt(i, w->attempt_numbers[i]));
		execution_graph_set_state(w->graph, i, EXECUTION_RUNNING);
	}
	w->is_job_failed = false;
}

static uint32_t vertex_named(const struct world *w, const char *name)
{
	for (uint32_t v = 0; v < w->vertex_count; v++) {
		if (strcmp(w->vertices[v].name, name) == 0)
			return v;
	}
	return UINT32_MAX;
}

static void new_coordinator(struct world *w)
{
	checkpoint_coordinator_create(&w->coordinator, &w->config, w->graph);
	for (uint32_t i = 0; i < w->coordinator_count; i++)
		checkpoint_coordinator_add_coordinator(
				w->coordinator, vertex_named(w, w->coordinators[i].name));
	for (uint32_t i = 0; i < w->hook_count; i++)
		checkpoint_coordinator_add_hook(w->coordinator);
}

void world_start(struct world *w)
{
	CHECK(execution_graph_create(&w->graph, w->vertices, w->vertex_count, w->edges,
			      w->edge_count) == 0);
	w->subtask_count = execution_graph_subtask_count(w->graph);
	w->attempt_numbers = heap_zeroed(w->subtask_count, sizeof(*w->attempt_numbers));
	w->is_lost = heap_zeroed(w->subtask_count, sizeof(*w->is_lost));
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		execution_graph_set_attempt(w->graph, i, world_attempt(i, 0));
		execution_graph_set_state(w->graph, i, EXECUTION_RUNNING);
	}
	new_coordinator(w);
}

static void clear_hung(struct world *w)
{
	for (uint32_t i = 0; i < w->hung_count; i++)
		free(w->hung[i].path);
	w->hung_count = 0;
	w->hung_deletion_count = 0;
}

static void clear_told(struct told_list *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->items[i].subtasks);
	free(l->items);
}

static void clear_settings(struct world *w)
{
	for (uint32_t i = 0; i < w->vertex_count; i++)
		free((char *)w->vertices[i].name);
	for (uint32_t i = 0; i < w->coordinator_count; i++)
		free(w->coordinators[i].name);
	for (uint32_t i = 0; i < w->hook_count; i++)
		free(w->hooks[i].name);
	for (uint32_t i = 0; i < w->snapshot_count; i++) {
		free(w->snapshots[i].path);
		file_list_clear(&w->snapshots[i].files);
		shared_list_clear(&w->snapshots[i].shared);
	}
}

static void clear_seen(struct world *w)
{
	for (uint32_t i = 0; i < w->seen_count; i++) {
		free(w->seen[i].is_waited);
		free(w->seen[i].has_acknowledged);
		free(w->seen[i].attempts);
		free(w->seen[i].finished);
	}
	free(w->seen);
}

void world_clear(struct world *w)
{
	checkpoint_coordinator_destroy(w->coordinator);
	execution_graph_destroy(w->graph);
	clear_hung(w);
	clear_settings(w);
	clear_seen(w);
	for (uint32_t i = 0; i < w->index_count; i++)
		completed_checkpoint_destroy(w->index[i]);
	clear_told(&w->triggered);
	clear_told(&w->notified);
	clear_told(&w->notified_abort);
	journal_clear(&w->completed);
	journal_clear(&w->aborted);
	journal_clear(&w->rejected);
	journal_clear(&w->discarded);
	journal_clear(&w->deleted);
	journal_clear(&w->job_failed);
	file_list_clear(&w->event_deleted);
	free(w->event_discarded);
	free(w->attempt_numbers);
	free(w->is_lost);
	free(w->index);
	free(w->hung);
	free(w->hung_deletions);
}

struct seen *world_seen(struct world *w, int64_t id)
{
	for (uint32_t i = 0; i < w->seen_count; i++) {
		if (w->seen[i].id == id)
			return &w->seen[i];
	}
	return NULL;
}

/* Remembers the plan of a checkpoint that has just become pending. */
static void note_pending(struct world *w, int64_t id)
{
	const struct pending_checkpoint *p = NULL;

	for (uint32_t i = 0; (p = checkpoint_coordinator_pending(w->coordinator, i)) != NULL; i++) {
		if (pending_checkpoint_id(p) == id)
			break;
	}
	if (p == NULL)
		return;

	const struct checkpoint_plan *plan = pending_checkpoint_plan(p);

	w->seen = heap_resize(w->seen, w->seen_count + 1, sizeof(*w->seen));
	w->seen[w->seen_count++] = (struct seen){
		.id = id,
		.is_waited = heap_copy(plan->is_waited, plan->subtask_count, sizeof(bool)),
		.has_acknowledged = heap_zeroed(plan->subtask_count, sizeof(bool)),
		.attempts = heap_copy(
				plan->attempts, plan->subtask_count, sizeof(struct attempt_id)),
	};
}

void world_print_subtask(const struct world *w, uint32_t subtask, struct scenario_text *text)
{
	uint32_t v = execution_graph_vertex_of(w->graph, subtask);

	scenario_text_add(text, "%s.%u", w->vertices[v].name,
			execution_graph_index_of(w->graph, subtask));
}

void world_print_told(const struct world *w, const struct told *t, struct scenario_text *text)
{
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		if (t->subtasks[i])
			world_print_subtask(w, i, text);
	}
	for (uint32_t i = 0; t->has_coordinators && i < w->coordinator_count; i++)
		scenario_text_add(text, "%s", w->coordinators[i].name);
}

static void note_told(
		struct world *w, struct told_list *l, const struct checkpoint_decision *d)
{
	struct told t = {
		.id = d->checkpoint_id,
		.other_id = d->other_id,
		.subtasks = heap_zeroed(w->subtask_count, sizeof(bool)),
		.has_coordinators = l != &w->triggered,
	};
	struct scenario_text text = { 0 };

	for (uint32_t i = 0; i < d->subtask_count; i++)
		t.subtasks[d->subtasks[i]] = true;
	l->items = heap_resize(l->items, l->count + 1, sizeof(*l->items));
	l->items[l->count++] = t;
	world_print_told(w, &t, &text);
	scenario_trace(w->s, "  %s %lld: %s", checkpoint_decision_name(d->kind),
			(long long)d->checkpoint_id, scenario_text_get(&text));
	scenario_text_clear(&text);
}

/* ---- decisions ---- */

static struct snapshot_state some_state(void)
{
	return (struct snapshot_state){ .bytes = heap_text("state"), .byte_count = 5 };
}

static void trigger_tasks(struct world *w, const struct checkpoint_decision *d)
{
	struct seen *seen = world_seen(w, d->checkpoint_id);

	CHECK(seen != NULL);
	seen->options = d->options;
	seen->has_options = true;
	note_told(w, &w->triggered, d);
	for (uint32_t i = 0; i < d->subtask_count; i++) {
		uint32_t subtask = d->subtasks[i];
		struct attempt_id current = execution_graph_attempt(w->graph, subtask);
		bool is_known = id128_is_equal(current.id, d->attempts[i].id);
		const struct task_failure f = {
			.subtask = subtask,
			.attempt = d->attempts[i],
			.checkpoint_id = d->checkpoint_id,
			.reason = is_known ? REASON_TRIGGER_CHECKPOINT_FAILURE
					   : REASON_TASK_CHECKPOINT_FAILURE,
		};

		if (!is_known || w->is_lost[subtask])
			checkpoint_coordinator_on_task_trigger_failed(
					w->coordinator, &f, world_now(w));
	}
}

static void note_outcome(struct world *w, const struct checkpoint_decision *d)
{
	long long id = (long long)d->checkpoint_id;
	const char *reason = checkpoint_failure_reason_short_name(d->reason);

	if (d->is_success) {
		journal_add(&w->completed, "%lld", id);
		scenario_trace(w->s, "  completed %lld", id);
	} else if (d->checkpoint_id != 0) {
		journal_add(&w->aborted, "%lld:%s", id, reason);
		scenario_trace(w->s, "  aborted: %s", d->text);
	} else {
		journal_add(&w->rejected, "%s", reason);
		scenario_trace(w->s, "  rejected: %s", d->text);
	}
}

static void start_step(struct world *w, const struct checkpoint_decision *d, enum where where)
{
	struct hung h = {
		.where = where,
		.token = d->token,
		.id = d->checkpoint_id,
		.pending = d->pending,
		.completed = d->completed,
	};

	if (where == WHERE_LOCATION) {
		note_pending(w, d->checkpoint_id);
		h.path = d->path != NULL
				? heap_print("%s/savepoint-%lld", d->path,
						  (long long)d->checkpoint_id)
				: heap_print("chk-%lld", (long long)d->checkpoint_id);
	}
	scenario_trace(w->s, "  %s %lld", checkpoint_decision_name(d->kind), (long long)h.id);
	world_step(w, &h);
}

static void snapshot_party(struct world *w, const struct checkpoint_decision *d)
{
	struct snapshot_state state;

	if (d->kind == DECIDE_SNAPSHOT_COORDINATOR && w->coordinators[d->index].is_sync) {
		state = some_state();
		checkpoint_coordinator_on_coordinator_snapshot(w->coordinator, d->index,
				d->checkpoint_id, 0, &state, world_now(w));
	} else if (d->kind == DECIDE_SNAPSHOT_HOOK && w->hooks[d->index].is_sync) {
		state = some_state();
		checkpoint_coordinator_on_hook_snapshot(w->coordinator, d->index,
				d->checkpoint_id, 0, &state, world_now(w));
	}
}

static void fail_job(struct world *w, const struct checkpoint_decision *d)
{
	w->is_job_failed = true;
	journal_add(&w->job_failed, "%s", checkpoint_failure_reason_short_name(d->reason));
	scenario_trace(w->s, "  job failed: %s", d->text);
}

static void carry_out(struct world *w, const struct checkpoint_decision *d)
{
	switch (d->kind) {
	case DECIDE_DRAW_ID:
		start_step(w, d, WHERE_ID);
		return;
	case DECIDE_SET_NEXT_ID:
		w->id_drawn = d->checkpoint_id - 1;
		return;
	case DECIDE_REMOVE_ID_COUNTER: /* ID-3 */
		w->id_drawn = 0;
		return;
	case DECIDE_ABORT_TRIGGERING:
		return;
	case DECIDE_PREPARE_LOCATION:
		start_step(w, d, WHERE_LOCATION);
		return;
	case DECIDE_SNAPSHOT_COORDINATOR:
	case DECIDE_SNAPSHOT_HOOK:
		snapshot_party(w, d);
		return;
	case DECIDE_TRIGGER_TASKS:
		trigger_tasks(w, d);
		return;
	case DECIDE_WRITE_METADATA:
		start_step(w, d, WHERE_METADATA);
		return;
	case DECIDE_INDEX_ADD:
		start_step(w, d, WHERE_INDEX);
		return;
	case DECIDE_INDEX_REMOVE:
		world_index_remove(w, d->checkpoint_id);
		checkpoint_coordinator_on_index_removed(
				w->coordinator, d->token, 0, world_now(w));
		return;
	case DECIDE_NOTIFY_COMPLETE:
		note_told(w, &w->notified, d);
		return;
	case DECIDE_NOTIFY_ABORTED:
		note_told(w, &w->notified_abort, d);
		return;
	case DECIDE_DELETE:
		world_delete(w, d);
		return;
	case DECIDE_FAIL_JOB:
		fail_job(w, d);
		return;
	case DECIDE_REQUEST_DONE:
		note_outcome(w, d);
		return;
	}
	CHECK(false);
}

void world_drain(struct world *w)
{
	struct checkpoint_decision d;

	while (checkpoint_coordinator_next_decision(w->coordinator, &d))
		carry_out(w, &d);
}

/* ---- time and failover ---- */

void world_advance(struct world *w, int64_t ms)
{
	int64_t end_ms = w->now_ms + ms;
	uint64_t due_ns;

	while ((due_ns = checkpoint_coordinator_next_timer(w->coordinator)) <=
			(uint64_t)end_ms * NS_PER_MS) {
		int64_t due_ms = (int64_t)(due_ns / NS_PER_MS);

		if (due_ms > w->now_ms)
			w->now_ms = due_ms;
		CHECK(checkpoint_coordinator_on_timer(w->coordinator, world_now(w)));
		world_drain(w);
	}
	w->now_ms = end_ms;
}

void world_restore_latest(struct world *w)
{
	const struct completed_checkpoint *latest =
			checkpoint_coordinator_restore_latest(w->coordinator, world_now(w));

	w->restored_id = latest != NULL ? latest->id : 0;
	world_new_attempts(w);
	world_drain(w);
}

void world_failover(struct world *w)
{
	struct completed_checkpoint **entries = w->index;
	uint32_t count = w->index_count;

	checkpoint_coordinator_destroy(w->coordinator);
	clear_hung(w);
	new_coordinator(w);
	w->index = NULL;
	w->index_count = 0;
	for (uint32_t i = 0; i < count; i++)
		world_index_add(w, entries[i]);
	CHECK(checkpoint_coordinator_recover(w->coordinator, entries, count) == 0);
	free(entries);
	world_restore_latest(w);
}
