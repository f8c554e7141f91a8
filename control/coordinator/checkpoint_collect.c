#include "control/coordinator/checkpoint_coordinator_internal.h"
#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What tasks say, and what comes of it: completion, subsumption, abort (flink-semantics 8). */

struct flight *coordinator_flight(struct checkpoint_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (pending_checkpoint_id(c->flights[i].pending) == id)
			return &c->flights[i];
	}
	return NULL;
}

static struct flight *find_token(struct checkpoint_coordinator *c, enum completing completing,
		uint64_t token)
{
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (c->flights[i].completing == completing && c->flights[i].token == token)
			return &c->flights[i];
	}
	return NULL;
}

static void remove_flight(struct checkpoint_coordinator *c, struct flight *f)
{
	uint32_t index = (uint32_t)(f - c->flights);

	pending_checkpoint_release(f->pending);
	c->flight_count--;
	memmove(f, f + 1, (c->flight_count - index) * sizeof(*f));
	coordinator_ask(c);
}

/* ---- notifications: to the current attempt of every task in "tasks to commit to" ---- */

/* EX-1: a task without a slot is told nothing.  Nor is an attempt told of the completion of what an
 * earlier one took part in: it restored an older checkpoint, and would commit what is not its. */
static bool is_to_be_told(const struct checkpoint_coordinator *c,
		enum checkpoint_decision_kind kind, const struct checkpoint_plan *plan,
		uint32_t subtask)
{
	bool is_same = id128_is_equal(execution_graph_attempt(c->graph, subtask).id,
			plan->attempts[subtask].id);

	return execution_graph_state(c->graph, subtask) != EXECUTION_CREATED &&
			(is_same || kind != DECIDE_NOTIFY_COMPLETE);
}

static struct checkpoint_decision *notify(struct checkpoint_coordinator *c,
		enum checkpoint_decision_kind kind, const struct pending_checkpoint *p)
{
	const struct checkpoint_plan *plan = pending_checkpoint_plan(p);
	struct checkpoint_decision *d = coordinator_decide(c, kind, pending_checkpoint_id(p));

	d->properties = *pending_checkpoint_properties(p);
	d->is_all_ended = plan->is_all_ended;
	d->subtasks = heap_zeroed(plan->wait_count, sizeof(*d->subtasks));
	d->attempts = heap_zeroed(plan->wait_count, sizeof(*d->attempts));
	for (uint32_t i = 0; i < plan->wait_count; i++) {
		uint32_t subtask = plan->waits[i];

		if (!is_to_be_told(c, kind, plan, subtask))
			continue;
		d->subtasks[d->subtask_count] = subtask;
		d->attempts[d->subtask_count++] = execution_graph_attempt(c->graph, subtask);
	}
	return d;
}

static void notify_aborted(struct checkpoint_coordinator *c, const struct pending_checkpoint *p)
{
	int64_t latest_id = completed_checkpoint_store_latest_id(c->store);

	notify(c, DECIDE_NOTIFY_ABORTED, p)->other_id = latest_id; /* AB-3 */
}

/* ---- failure ---- */

/* FM-6: whether the attempt that failed still runs. */
static bool is_attempt_running(const struct checkpoint_coordinator *c, const struct blame *blame)
{
	if (blame->subtask >= execution_graph_subtask_count(c->graph))
		return false;

	enum execution_state state = execution_graph_state(c->graph, blame->subtask);

	return id128_is_equal(execution_graph_attempt(c->graph, blame->subtask).id,
			       blame->attempt.id) &&
			(state == EXECUTION_RUNNING || state == EXECUTION_INITIALIZING);
}

void coordinator_note_failure(struct checkpoint_coordinator *c, int64_t id,
		const struct checkpoint_properties *properties, const struct blame *blame,
		const char *message)
{
	enum failure_action action = checkpoint_failure_manager_on_failure(
			&c->failures, id, properties, blame->reason, blame->has_attempt);

	if (action == FAILURE_TOLERATED ||
			(action == FAILURE_FAILS_JOB_IF_ATTEMPT_RUNS &&
					!is_attempt_running(c, blame)))
		return;

	bool is_stop = checkpoint_properties_is_synchronous(properties);
	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_FAIL_JOB, id);

	d->reason = blame->reason;
	d->subtask = blame->subtask;
	d->text = heap_print("%s%s",
			is_stop ? "Stop-with-savepoint failed: "
				: "Exceeded checkpoint tolerable failure threshold. The latest "
				  "checkpoint failed: ",
			message);
}

/* AB-2 (b), with the outcome of the request: both carry the same text. */
static void report_failure(struct checkpoint_coordinator *c, const struct flight *f,
		const struct blame *blame, struct moment now)
{
	int64_t id = pending_checkpoint_id(f->pending);

	checkpoint_stats_on_failed(c->stats, id,
			&(struct checkpoint_blame){
					.reason = blame->reason,
					.subtask = blame->subtask,
					.text = blame->text },
			now.wall_ms);

	const struct checkpoint_record *r = checkpoint_stats_find(c->stats, id);
	char *message = heap_text(r != NULL ? r->failure_message
					    : checkpoint_failure_reason_text(blame->reason));

	coordinator_request_failed(c, &f->request, id, blame->reason, message);
	coordinator_note_failure(
			c, id, pending_checkpoint_properties(f->pending), blame, message);
	free(message);
}

void coordinator_resume_after_stop(struct checkpoint_coordinator *c,
		const struct checkpoint_properties *properties, const struct blame *blame,
		struct moment now)
{
	if (checkpoint_properties_is_synchronous(properties) && !blame->is_ending &&
			!c->is_scheduling && !c->is_shutdown && c->config.interval_ms > 0)
		CHECK(checkpoint_coordinator_start(c, now) == 0);
}

static void remember_expired(struct checkpoint_coordinator *c, int64_t id)
{
	c->expired_ids[c->expired_count++ % EXPIRED_IDS_COUNT] = id;
}

static bool is_lately_expired(const struct checkpoint_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->expired_count && i < EXPIRED_IDS_COUNT; i++) {
		if (c->expired_ids[i] == id)
			return true;
	}
	return false;
}

/* PC-8: the files go, and the directory.  A write of the metadata that is still out is waited for
 * before the directory is looked at again. */
static void discard_pending(struct checkpoint_coordinator *c, const struct flight *f,
		enum checkpoint_failure_reason reason)
{
	struct deletion what = {
		.kind = DELETION_PENDING,
		.checkpoint_id = pending_checkpoint_id(f->pending),
		.location = (char *)pending_checkpoint_location(f->pending),
	};

	pending_checkpoint_abort(f->pending, reason, &what.files);
	coordinator_delete(c, &what);
	if (f->completing != COMPLETING_WRITING)
		return;
	c->orphans = heap_resize(c->orphans, c->orphan_count + 1, sizeof(*c->orphans));
	c->orphans[c->orphan_count++] = (struct orphan_write){ f->token, f->pending };
	pending_checkpoint_retain(f->pending);
}

void coordinator_abort(struct checkpoint_coordinator *c, struct flight *f,
		const struct blame *blame, struct moment now)
{
	struct checkpoint_properties properties = *pending_checkpoint_properties(f->pending);

	discard_pending(c, f, blame->reason);
	report_failure(c, f, blame, now);
	notify_aborted(c, f->pending);
	if (blame->reason == REASON_EXPIRED)
		remember_expired(c, pending_checkpoint_id(f->pending));
	remove_flight(c, f);
	coordinator_resume_after_stop(c, &properties, blame, now);
}

/* What a task says stands for itself, but it cannot subsume a savepoint (PC-6). */
static enum checkpoint_failure_reason reason_of(
		const struct pending_checkpoint *p, enum checkpoint_failure_reason reason)
{
	bool is_subsumed = reason == REASON_SUBSUMED && !pending_checkpoint_is_subsumable(p);

	return is_subsumed ? REASON_DECLINED_SUBSUMED : reason;
}

static void abort_for_task(struct checkpoint_coordinator *c, const struct task_failure *failure,
		bool has_attempt, struct moment now)
{
	struct flight *f = coordinator_flight(c, failure->checkpoint_id);

	if (f == NULL || pending_checkpoint_is_disposed(f->pending))
		return;
	coordinator_abort(c, f,
			&(struct blame){
					.reason = reason_of(f->pending, failure->reason),
					.subtask = failure->subtask,
					.has_attempt = has_attempt,
					.attempt = failure->attempt,
					.text = failure->text },
			now);
	coordinator_settle(c, now);
}

void checkpoint_coordinator_on_decline(struct checkpoint_coordinator *c,
		const struct task_failure *f, struct moment now)
{
	abort_for_task(c, f, true, now);
}

void checkpoint_coordinator_on_task_trigger_failed(struct checkpoint_coordinator *c,
		const struct task_failure *f, struct moment now)
{
	abort_for_task(c, f, false, now);
}

/* ---- acknowledge, 8.1 ---- */

static bool is_listed(const struct file_list *l, const char *name)
{
	for (uint32_t i = 0; i < l->count; i++) {
		if (strcmp(l->names[i], name) == 0)
			return true;
	}
	return false;
}

/* A message that is repeated may name files that its checkpoint, completed since, holds. */
void coordinator_discard_late(
		struct checkpoint_coordinator *c, int64_t id, struct snapshot_state *state)
{
	if (state == NULL)
		return;

	const struct completed_checkpoint *completed = coordinator_find_stored(c, id);
	struct deletion what = { .kind = DELETION_LATE, .checkpoint_id = id };

	for (uint32_t i = 0; i < state->files.count; i++) {
		if (completed == NULL || !is_listed(&completed->files, state->files.names[i]))
			file_list_add(&what.files, state->files.names[i]);
	}
	if (what.files.count > 0)
		coordinator_delete(c, &what);
	snapshot_state_clear(state);
}

/* AK-2: true unless the message refers to shared files that cannot be. */
static bool register_shared(
		struct checkpoint_coordinator *c, const struct flight *f, struct acknowledgement *a)
{
	if (f != NULL && checkpoint_properties_is_savepoint(
					pending_checkpoint_properties(f->pending)))
		return true;
	return shared_state_registry_register(
			       c->registry, &a->state.shared, a->checkpoint_id) == 0;
}

/* AK-3 to AK-5. */
static void acknowledge_pending(struct checkpoint_coordinator *c, struct flight *f,
		struct acknowledgement *a, struct moment now)
{
	enum acknowledge_result result = pending_checkpoint_acknowledge(f->pending, a);

	if (result == ACK_SUCCESS) {
		checkpoint_stats_on_acknowledge(c->stats, a, now);
		coordinator_try_complete(c, f, now);
	} else if (result == ACK_DUPLICATE) {
		snapshot_state_clear(&a->state);
	} else {
		coordinator_discard_late(c, a->checkpoint_id, &a->state);
	}
}

bool checkpoint_coordinator_on_acknowledge(
		struct checkpoint_coordinator *c, struct acknowledgement *a, struct moment now)
{
	if (c->is_shutdown) { /* AK-1 */
		snapshot_state_clear(&a->state);
		return false;
	}

	struct flight *f = coordinator_flight(c, a->checkpoint_id);
	bool is_known = register_shared(c, f, a);

	if (f == NULL) { /* AK-6 */
		checkpoint_stats_on_incomplete(c->stats, a, now.wall_ms);
		coordinator_discard_late(c, a->checkpoint_id, &a->state);
	} else if (!is_known && !pending_checkpoint_is_disposed(f->pending)) {
		coordinator_discard_late(c, a->checkpoint_id, &a->state);
		coordinator_abort(c, f,
				&(struct blame){ REASON_FINALIZE_CHECKPOINT_FAILURE, a->subtask,
						.text = "its shared files do not fit those "
							"that are known" },
				now);
	} else {
		acknowledge_pending(c, f, a, now);
	}
	coordinator_settle(c, now);
	return f == NULL && is_lately_expired(c, a->checkpoint_id);
}

void checkpoint_coordinator_on_metrics(struct checkpoint_coordinator *c,
		const struct acknowledgement *a, struct moment now)
{
	checkpoint_stats_on_incomplete(c->stats, a, now.wall_ms);
}

/* ---- completion, 8.2 ---- */

static void fail_finalise(struct checkpoint_coordinator *c, struct flight *f, const char *what,
		int status, struct moment now)
{
	char *text = heap_print("%s: %s", what, strerror(-status));

	coordinator_abort(c, f,
			&(struct blame){ REASON_FINALIZE_CHECKPOINT_FAILURE,
					.subtask = UINT32_MAX, .text = text },
			now);
	free(text);
}

/* Step 1, first half: asks for the metadata. */
void coordinator_try_complete(struct checkpoint_coordinator *c, struct flight *f, struct moment now)
{
	enum checkpoint_failure_reason reason;
	int64_t id = pending_checkpoint_id(f->pending);

	if (pending_checkpoint_location(f->pending) == NULL ||
			!pending_checkpoint_is_fully_acknowledged(f->pending))
		return;
	CHECK(f->completing == COMPLETING_NOT);
	if (!pending_checkpoint_is_finishable(f->pending, &reason)) {
		coordinator_abort(c, f,
				&(struct blame){ reason, .subtask = UINT32_MAX,
						.text = "some tasks finished and others did not" },
				now);
		return;
	}
	checkpoint_stats_on_phase(c->stats, id, PHASE_METADATA);
	f->completing = COMPLETING_WRITING;
	f->token = coordinator_token(c);

	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_WRITE_METADATA, id);

	d->token = f->token;
	d->pending = f->pending;
}

/* Step 7, first half. */
static void subsume_older(struct checkpoint_coordinator *c, int64_t id, struct moment now)
{
	uint32_t i = 0;

	while (i < c->flight_count) {
		struct flight *f = &c->flights[i];

		if (pending_checkpoint_id(f->pending) < id &&
				pending_checkpoint_is_subsumable(f->pending) &&
				!pending_checkpoint_is_disposed(f->pending))
			coordinator_abort(c, f,
					&(struct blame){ REASON_SUBSUMED,
							.subtask = UINT32_MAX },
					now);
		else
			i++;
	}
}

/* Steps 3 to 7; `completed` is borrowed. */
static void finish_completed(struct checkpoint_coordinator *c, struct flight *f,
		const struct completed_checkpoint *completed, int64_t subsumed_id,
		struct moment now)
{
	struct pending_checkpoint *p = f->pending;
	int64_t id = completed->id;
	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_REQUEST_DONE, id);

	d->request = f->request.handle;
	d->is_periodic = f->request.is_periodic;
	d->is_success = true;
	d->path = heap_text(completed->location);
	checkpoint_failure_manager_on_success(&c->failures, id);
	checkpoint_stats_on_completed(c->stats, id, completed->location, now.wall_ms);
	pending_checkpoint_retain(p);
	remove_flight(c, f);
	c->last_completion_ns = now.now_ns;
	if (!checkpoint_properties_is_savepoint(pending_checkpoint_properties(p)) ||
			checkpoint_properties_is_synchronous(pending_checkpoint_properties(p))) {
		subsume_older(c, id, now);
		notify(c, DECIDE_NOTIFY_COMPLETE, p)->other_id = subsumed_id;
	}
	pending_checkpoint_release(p);
}

bool checkpoint_coordinator_is_storing(const struct checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (c->flights[i].completing == COMPLETING_INDEXING)
			return true;
	}
	return false;
}

/* Step 1, second half. */
static void finalise(struct checkpoint_coordinator *c, struct flight *f, struct moment now)
{
	f->canceller.due_ns = NEVER_NS; /* PC-9 */
	pending_checkpoint_finalise(f->pending, now.wall_ms, &f->completed);
	f->completed->unclaimed_id_max = shared_state_registry_unclaimed_id_max(c->registry);
}

/* Step 2, first half: asks for the place in the durable list. */
static void start_indexing(struct checkpoint_coordinator *c, struct flight *f)
{
	int64_t id = f->completed->id;

	checkpoint_stats_on_phase(c->stats, id, PHASE_INDEX);
	f->completing = COMPLETING_INDEXING;
	f->token = coordinator_token(c);

	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_INDEX_ADD, id);

	d->token = f->token;
	d->completed = f->completed;
}

/* One at a time goes into the list, in order, so that completions are told in order. */
static void index_next(struct checkpoint_coordinator *c, struct moment now)
{
	if (checkpoint_coordinator_is_storing(c))
		return;
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (c->flights[i].completing == COMPLETING_WRITTEN) {
			finalise(c, &c->flights[i], now);
			start_indexing(c, &c->flights[i]);
			return;
		}
	}
}

/* The metadata is durable.  A savepoint belongs to who asked for it and is listed nowhere. */
static void end_writing(struct checkpoint_coordinator *c, struct flight *f, struct moment now)
{
	if (!checkpoint_properties_is_savepoint(pending_checkpoint_properties(f->pending))) {
		f->completing = COMPLETING_WRITTEN;
		index_next(c, now);
		return;
	}
	finalise(c, f, now);

	struct completed_checkpoint *completed = f->completed;

	finish_completed(c, f, completed, 0, now);
	completed_checkpoint_destroy(completed);
}

/* A write that came back after its checkpoint was aborted: what it made must go. */
static void end_orphan(struct checkpoint_coordinator *c, uint64_t token, int status)
{
	for (uint32_t i = 0; i < c->orphan_count; i++) {
		struct orphan_write o = c->orphans[i];

		if (o.token != token)
			continue;
		c->orphans[i] = c->orphans[--c->orphan_count];
		struct deletion d = {.kind = DELETION_LOCATION,
			.checkpoint_id = pending_checkpoint_id(o.pending),
			.location = (char *)pending_checkpoint_location(o.pending)};
		if (status == 0)
			coordinator_delete(c, &d);
		pending_checkpoint_release(o.pending);
		return;
	}
}

void checkpoint_coordinator_on_metadata_written(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now)
{
	struct flight *f = find_token(c, COMPLETING_WRITING, token);

	if (f == NULL) {
		end_orphan(c, token, status);
	} else if (status != 0) {
		fail_finalise(c, f, "writing _metadata", status, now);
	} else {
		end_writing(c, f, now);
	}
	coordinator_settle(c, now);
}

/* Step 2, failed: deleted, unless nobody can say whether it was written. */
static void fail_indexing(
		struct checkpoint_coordinator *c, struct flight *f, int status, struct moment now)
{
	struct completed_checkpoint *completed = f->completed;
	bool is_maybe = status == INDEX_MAYBE;
	char *text = heap_print("adding it to the list of completed checkpoints: %s",
			is_maybe ? "nobody can say whether it was written; it is not deleted"
				 : strerror(-status));

	if (!is_maybe) {
		struct deletion what = {
			.kind = DELETION_PENDING,
			.checkpoint_id = completed->id,
			.location = completed->location,
		};

		file_list_move(&what.files, &completed->files);
		coordinator_delete(c, &what);
	}
	report_failure(c, f,
			&(struct blame){ REASON_FINALIZE_CHECKPOINT_FAILURE,
					.subtask = UINT32_MAX, .text = text },
			now);
	notify_aborted(c, f->pending);
	remove_flight(c, f);
	completed_checkpoint_destroy(completed);
	free(text);
}

void coordinator_indexed(
		struct checkpoint_coordinator *c, struct flight *f, int status, struct moment now)
{
	struct completed_checkpoint *completed = f->completed;

	if (status != 0) {
		fail_indexing(c, f, status, now);
	} else {
		int64_t subsumed_id = coordinator_retain(c, completed);

		c->is_full_forced = false; /* CM-1 */
		finish_completed(c, f, completed, subsumed_id, now);
	}
	index_next(c, now);
}
