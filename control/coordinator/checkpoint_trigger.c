#include "control/coordinator/checkpoint_coordinator_internal.h"
#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From an admitted request to the trigger, in the steps of flink-semantics 4.2. */

/* TR-8: in every case the pipeline is free again and the next request is considered. */
static void leave_pipeline(struct checkpoint_coordinator *c)
{
	struct triggering *t = &c->triggering;

	queued_request_destroy(t->request);
	checkpoint_plan_destroy(t->plan);
	pending_checkpoint_release(t->pending);
	t->request = NULL;
	t->plan = NULL;
	t->pending = NULL;
	t->step = STEP_IDLE;
	t->out_count = 0;
	for (uint32_t i = 0; i < c->coordinator_count; i++)
		t->is_coordinator_out[i] = false;
	for (uint32_t i = 0; i < c->hook_count; i++)
		t->is_hook_out[i] = false;
	coordinator_ask(c);
}

void coordinator_fail_unborn(struct checkpoint_coordinator *c, const struct queued_request *r,
		const struct blame *blame, struct moment now)
{
	coordinator_request_failed(c, &(struct request_name){ r->handle, r->is_periodic }, 0,
			blame->reason, blame->text);
	checkpoint_stats_on_failed_unborn(c->stats);
	coordinator_note_failure(c, 0, &r->properties, blame,
			blame->text != NULL ? blame->text
					    : checkpoint_failure_reason_text(blame->reason));
	coordinator_resume_after_stop(c, &r->properties, blame, now);
}

/* TR-5 to TR-8. */
static void fail_trigger(
		struct checkpoint_coordinator *c, const struct blame *blame, struct moment now)
{
	struct triggering *t = &c->triggering;

	if (c->coordinator_count > 0)
		coordinator_decide(c, DECIDE_ABORT_TRIGGERING,
				t->pending != NULL ? pending_checkpoint_id(t->pending) : 0);
	if (t->pending == NULL)
		coordinator_fail_unborn(c, t->request, blame, now);
	else if (!pending_checkpoint_is_disposed(t->pending))
		coordinator_abort(c, coordinator_flight(c, pending_checkpoint_id(t->pending)),
				blame, now);
	leave_pipeline(c);
}

static void fail_trigger_because(struct checkpoint_coordinator *c,
		enum checkpoint_failure_reason reason, struct moment now)
{
	fail_trigger(c, &(struct blame){ reason, .subtask = UINT32_MAX }, now);
}

/* Storage failed: what was to be done, and why not. */
static void fail_trigger_io(struct checkpoint_coordinator *c, const char *what, int status,
		struct moment now)
{
	char *text = heap_print("%s: %s", what, strerror(-status));

	fail_trigger(c,
			&(struct blame){ REASON_IO_EXCEPTION, .subtask = UINT32_MAX,
					.text = text },
			now);
	free(text);
}

/* Steps 1 and 4: false, with the reason, when nothing may be triggered any more. */
static bool may_trigger(const struct checkpoint_coordinator *c, bool is_periodic,
		enum checkpoint_failure_reason *reason)
{
	*reason = c->is_shutdown ? REASON_COORDINATOR_SHUTDOWN
				 : REASON_PERIODIC_SCHEDULER_SHUTDOWN;
	return !c->is_shutdown && (!is_periodic || c->is_scheduling);
}

/* PL: names the subtask that is in the way. */
static void fail_plan(struct checkpoint_coordinator *c, uint32_t culprit, struct moment now)
{
	char subtask[SUBTASK_TEXT_BYTES];

	execution_graph_print_subtask(c->graph, culprit, subtask);

	char *text = heap_print("not all required tasks are running: %s is %s", subtask,
			execution_state_name(execution_graph_state(c->graph, culprit)));

	fail_trigger(c,
			&(struct blame){ REASON_NOT_ALL_REQUIRED_TASKS_RUNNING, culprit,
					.text = text },
			now);
	free(text);
}

/* Steps 1 to 3. */
void coordinator_trigger(
		struct checkpoint_coordinator *c, struct queued_request *r, struct moment now)
{
	struct triggering *t = &c->triggering;
	enum checkpoint_failure_reason reason;
	uint32_t culprit;

	CHECK(t->step == STEP_IDLE);
	t->step = STEP_ID;
	t->request = r;
	t->timestamp_ms = now.wall_ms;
	t->token = coordinator_token(c);
	if (!may_trigger(c, r->is_periodic, &reason)) {
		fail_trigger_because(c, reason, now);
		return;
	}
	if (checkpoint_plan_calculate(
			    &t->plan, c->graph, c->config.is_finished_enabled, &culprit) != 0) {
		fail_plan(c, culprit, now);
		return;
	}
	coordinator_decide(c, DECIDE_DRAW_ID, 0)->token = t->token;
}

/* Step 4.  The plan goes to the pending checkpoint. */
static void create_pending(struct checkpoint_coordinator *c, int64_t id, struct moment now)
{
	struct triggering *t = &c->triggering;
	const struct pending_config config = {
		.id = id,
		.timestamp_ms = t->timestamp_ms,
		.properties = t->request->properties,
		.coordinator_count = c->coordinator_count,
		.hook_count = c->hook_count,
		.coordinator_vertices = c->coordinator_vertices,
	};

	checkpoint_stats_on_pending(
			c->stats, id, &t->request->properties, t->plan, t->timestamp_ms);
	pending_checkpoint_create(&t->pending, &config, t->plan);
	t->plan = NULL;
	pending_checkpoint_retain(t->pending);
	c->flights = heap_resize(c->flights, c->flight_count + 1, sizeof(*c->flights));

	struct flight *f = &c->flights[c->flight_count++];

	*f = (struct flight){
		.pending = t->pending,
		.request = { t->request->handle, t->request->is_periodic },
	};
	coordinator_set_timer(c, &f->canceller,
			now.now_ns + (uint64_t)c->config.timeout_ms * NS_PER_MS);
}

/* Steps 4 and 5. */
void checkpoint_coordinator_on_id_drawn(struct checkpoint_coordinator *c, uint64_t token,
		int status, int64_t id, struct moment now)
{
	struct triggering *t = &c->triggering;
	enum checkpoint_failure_reason reason;

	if (t->step != STEP_ID || t->token != token)
		return;
	if (status != 0) {
		fail_trigger_io(c, "drawing a checkpoint id", status, now);
	} else if (!may_trigger(c, t->request->is_periodic, &reason)) {
		fail_trigger_because(c, reason, now);
	} else if (t->plan->wait_count == 0) { /* PC-1 */
		fail_trigger_because(c, REASON_TRIGGER_CHECKPOINT_FAILURE, now);
	} else {
		create_pending(c, id, now);
		t->step = STEP_LOCATION;
		t->token = coordinator_token(c);

		struct checkpoint_decision *d = coordinator_decide(c, DECIDE_PREPARE_LOCATION, id);

		d->token = t->token;
		d->properties = t->request->properties;
		d->path = heap_text(t->request->directory);
		d->request = t->request->handle;
	}
	coordinator_settle(c, now);
}

/* Step 8: one decision for all of them. */
static void trigger_tasks(struct checkpoint_coordinator *c)
{
	const struct pending_checkpoint *p = c->triggering.pending;
	const struct checkpoint_plan *plan = pending_checkpoint_plan(p);
	struct checkpoint_properties properties = *pending_checkpoint_properties(p);
	bool is_savepoint = checkpoint_properties_is_savepoint(&properties);
	struct checkpoint_decision *d =
			coordinator_decide(c, DECIDE_TRIGGER_TASKS, pending_checkpoint_id(p));

	if (c->is_full_forced && !is_savepoint)
		properties.kind = KIND_FULL_CHECKPOINT;
	d->timestamp_ms = pending_checkpoint_timestamp_ms(p);
	d->options = trigger_options_of(&properties, &c->config.alignment);
	d->is_all_ended = plan->is_all_ended;
	d->path = is_savepoint ? heap_text(pending_checkpoint_location(p)) : NULL;
	d->subtasks = heap_zeroed(plan->trigger_count, sizeof(*d->subtasks));
	d->attempts = heap_zeroed(plan->trigger_count, sizeof(*d->attempts));
	for (uint32_t i = 0; i < plan->trigger_count; i++) {
		uint32_t subtask = plan->triggers[i];

		if (execution_graph_state(c->graph, subtask) == EXECUTION_CREATED)
			continue; /* EX-1: no slot, nothing is sent */
		d->subtasks[d->subtask_count] = subtask;
		d->attempts[d->subtask_count++] = plan->attempts[subtask];
	}
}

/* Steps 8 to 11. */
static void finish_trigger(struct checkpoint_coordinator *c, struct moment now)
{
	struct pending_checkpoint *p = c->triggering.pending;

	if (pending_checkpoint_is_disposed(p)) { /* TR-9 */
		fail_trigger_because(c, REASON_TRIGGER_CHECKPOINT_FAILURE, now);
		return;
	}
	checkpoint_stats_on_tasks_triggered(c->stats, pending_checkpoint_id(p), now.now_ns);
	trigger_tasks(c);
	coordinator_try_complete(c, coordinator_flight(c, pending_checkpoint_id(p)), now);
	leave_pipeline(c);
}

/* Step 7, second half: a coordinator always snapshots before a hook does. */
static void start_hooks(struct checkpoint_coordinator *c, struct moment now)
{
	struct triggering *t = &c->triggering;
	int64_t id = pending_checkpoint_id(t->pending);

	if (c->hook_count == 0 || pending_checkpoint_is_disposed(t->pending)) {
		finish_trigger(c, now);
		return;
	}
	checkpoint_stats_on_phase(c->stats, id, PHASE_HOOKS);
	t->step = STEP_HOOKS;
	t->out_count = c->hook_count;
	for (uint32_t i = 0; i < c->hook_count; i++) {
		t->is_hook_out[i] = true;
		coordinator_decide(c, DECIDE_SNAPSHOT_HOOK, id)->index = i;
	}
}

/* Steps 6 and 7. */
static void start_coordinators(struct checkpoint_coordinator *c, struct moment now)
{
	struct triggering *t = &c->triggering;
	int64_t id = pending_checkpoint_id(t->pending);

	if (c->coordinator_count == 0) {
		start_hooks(c, now);
		return;
	}
	checkpoint_stats_on_phase(c->stats, id, PHASE_COORDINATORS);
	t->step = STEP_COORDINATORS;
	t->out_count = c->coordinator_count;
	for (uint32_t i = 0; i < c->coordinator_count; i++) {
		t->is_coordinator_out[i] = true;
		coordinator_decide(c, DECIDE_SNAPSHOT_COORDINATOR, id)->index = i;
	}
}

void checkpoint_coordinator_on_location_prepared(struct checkpoint_coordinator *c, uint64_t token,
		int status, const char *location, struct moment now)
{
	struct triggering *t = &c->triggering;

	if (t->step != STEP_LOCATION || t->token != token)
		return;
	if (pending_checkpoint_is_disposed(t->pending)) { /* too late: what was made must go */
		if (status == 0)
			coordinator_delete(c,
					&(struct deletion){
							.kind = DELETION_LOCATION,
							.checkpoint_id = pending_checkpoint_id(
									t->pending),
							.location = (char *)location });
		finish_trigger(c, now);
	} else if (status != 0) {
		fail_trigger_io(c, "making the directory of the checkpoint", status, now);
	} else {
		pending_checkpoint_set_location(t->pending, location);
		start_coordinators(c, now);
	}
	coordinator_settle(c, now);
}

/* True when the pipeline waits for this answer. */
static bool take_answer(struct checkpoint_coordinator *c, enum trigger_step step, uint32_t index,
		int64_t id)
{
	struct triggering *t = &c->triggering;
	uint32_t count = step == STEP_HOOKS ? c->hook_count : c->coordinator_count;
	bool *is_out = step == STEP_HOOKS ? t->is_hook_out : t->is_coordinator_out;

	if (t->step != step || index >= count || pending_checkpoint_id(t->pending) != id ||
			!is_out[index])
		return false;
	is_out[index] = false;
	t->out_count--;
	return true;
}

/* An answer that nobody waits for.  If it is one more of the same, it may name the files that were
 * accepted (as in AK-4). */
static void drop_answer(struct checkpoint_coordinator *c, enum trigger_step step, uint32_t index,
		int64_t id, struct snapshot_state *state)
{
	const struct flight *f = coordinator_flight(c, id);
	bool is_open = f != NULL && !pending_checkpoint_is_disposed(f->pending);
	bool is_repeated = is_open && (step == STEP_HOOKS
						? pending_checkpoint_has_hook(f->pending, index)
						: pending_checkpoint_has_coordinator(
								  f->pending, index));

	if (is_repeated && state != NULL)
		snapshot_state_clear(state);
	else
		coordinator_discard_late(c, id, state);
}

static void fail_party(struct checkpoint_coordinator *c, const char *who, uint32_t index,
		int status, struct moment now)
{
	char *text = heap_print("%s %u failed: %s", who, index, strerror(-status));

	fail_trigger(c,
			&(struct blame){ REASON_TRIGGER_CHECKPOINT_FAILURE, .subtask = UINT32_MAX,
					.text = text },
			now);
	free(text);
}

void checkpoint_coordinator_on_coordinator_snapshot(struct checkpoint_coordinator *c,
		uint32_t index, int64_t id, int status, struct snapshot_state *state,
		struct moment now)
{
	struct pending_checkpoint *p = c->triggering.pending;
	bool is_awaited = take_answer(c, STEP_COORDINATORS, index, id);

	if (!is_awaited || status != 0 ||
			pending_checkpoint_acknowledge_coordinator(p, index, state) != ACK_SUCCESS)
		drop_answer(c, STEP_COORDINATORS, index, id, state);
	if (is_awaited && status != 0)
		fail_party(c, "operator coordinator", index, status, now);
	else if (is_awaited && c->triggering.out_count == 0)
		start_hooks(c, now);
	coordinator_settle(c, now);
}

void checkpoint_coordinator_on_hook_snapshot(struct checkpoint_coordinator *c, uint32_t index,
		int64_t id, int status, struct snapshot_state *state, struct moment now)
{
	struct pending_checkpoint *p = c->triggering.pending;
	bool is_awaited = take_answer(c, STEP_HOOKS, index, id);

	if (!is_awaited || status != 0 ||
			pending_checkpoint_acknowledge_hook(p, index, state) != ACK_SUCCESS)
		drop_answer(c, STEP_HOOKS, index, id, state);
	if (is_awaited && status != 0)
		fail_party(c, "master hook", index, status, now);
	else if (is_awaited && (c->triggering.out_count == 0 || pending_checkpoint_is_disposed(p)))
		finish_trigger(c, now); /* the first hook that returns tells of the abort (TR-9) */
	coordinator_settle(c, now);
}
