#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

/* The steps from an admitted request to the trigger, one answer at a time. */

static void decline(struct rig *r, int64_t id)
{
	const struct task_failure f = { .subtask = 1, .checkpoint_id = id,
		.reason = REASON_DECLINED };

	checkpoint_coordinator_on_decline(r->c, &f, r->now);
}

/* ---- what lets a waiting request begin: 4.2, TR-8, RD-8 ---- */

static void end_id(struct rig *r)
{
	checkpoint_coordinator_on_id_drawn(
			r->c, rig_find(r, DECIDE_DRAW_ID)->token, -EIO, 0, r->now);
}

static void end_location(struct rig *r)
{
	checkpoint_coordinator_on_location_prepared(
			r->c, rig_find(r, DECIDE_PREPARE_LOCATION)->token, -EIO, NULL, r->now);
}

static void end_coordinator(struct rig *r)
{
	checkpoint_coordinator_on_coordinator_snapshot(r->c, 0, 1, -EIO, NULL, r->now);
}

static void end_hook(struct rig *r)
{
	checkpoint_coordinator_on_coordinator_snapshot(r->c, 0, 1, 0, NULL, r->now);
	checkpoint_coordinator_on_hook_snapshot(r->c, 0, 1, -EIO, NULL, r->now);
}

static void end_by_decline(struct rig *r)
{
	decline(r, 1);
}

static void end_by_unfit_files(struct rig *r)
{
	struct acknowledgement a = { .subtask = 0, .checkpoint_id = 1 };

	shared_list_add(&a.state.shared, "key", NULL, false);
	checkpoint_coordinator_on_acknowledge(r->c, &a, r->now);
}

static void end_metadata(struct rig *r)
{
	checkpoint_coordinator_on_metadata_written(
			r->c, rig_find(r, DECIDE_WRITE_METADATA)->token, -EIO, r->now);
}

static void end_index(struct rig *r)
{
	checkpoint_coordinator_on_index_added(
			r->c, rig_find(r, DECIDE_INDEX_ADD)->token, 0, r->now);
}

static void expire(struct rig *r)
{
	while (checkpoint_coordinator_on_timer(r->c, r->now))
		rig_drain(r);
}

static const struct {
	const char *name;
	enum checkpoint_decision_kind hung; /* REQUEST_DONE: none */
	bool has_parties, is_acknowledged;
	int64_t after_ms;
	void (*end)(struct rig *r);
} ends[] = {
	{ "no id", DECIDE_DRAW_ID, false, false, 70, end_id },
	{ "no directory", DECIDE_PREPARE_LOCATION, false, false, 70, end_location },
	{ "a coordinator fails", DECIDE_REQUEST_DONE, true, false, 70, end_coordinator },
	{ "a hook fails", DECIDE_REQUEST_DONE, true, false, 70, end_hook },
	{ "a task declines", DECIDE_REQUEST_DONE, false, false, 70, end_by_decline },
	{ "files that do not fit", DECIDE_REQUEST_DONE, false, false, 70, end_by_unfit_files },
	{ "it expires", DECIDE_REQUEST_DONE, false, false, 570, expire },
	{ "no metadata", DECIDE_WRITE_METADATA, false, true, 70, end_metadata },
	{ "it is complete", DECIDE_INDEX_ADD, false, true, 70, end_index },
};

Test(checkpoint_trigger, a_waiting_request_begins_when_the_one_before_is_out_of_its_way)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct checkpoint_coordinator_config config = rig_tolerant();
		struct rig r;

		rig_open(&r, &config);
		if (ends[i].has_parties) {
			checkpoint_coordinator_add_coordinator(r.c, 0);
			checkpoint_coordinator_add_hook(r.c);
		}
		r.is_auto[ends[i].hung] = false;
		rig_request(&r, REQUEST_CHECKPOINT);
		if (ends[i].is_acknowledged)
			rig_acknowledge_all(&r, 1, NULL);
		rig_request(&r, REQUEST_CHECKPOINT);
		r.is_auto[ends[i].hung] = true;
		r.now.now_ns += (uint64_t)ends[i].after_ms * NS_PER_MS;
		r.now.wall_ms += ends[i].after_ms;
		cr_expect(eq(u32, checkpoint_coordinator_queued_count(r.c), 1), "%s", ends[i].name);
		ends[i].end(&r);
		rig_drain(&r);
		cr_expect(eq(u32, checkpoint_coordinator_queued_count(r.c), 0), "%s", ends[i].name);
		cr_expect(eq(i64, pending_checkpoint_timestamp_ms(
						  checkpoint_coordinator_pending(r.c, 0)),
					  r.now.wall_ms),
				"%s", ends[i].name);
		rig_close(&r);
	}
}

static void prepare(struct rig *r)
{
	checkpoint_coordinator_on_location_prepared(r->c,
			rig_find(r, DECIDE_PREPARE_LOCATION)->token, 0, "there", r->now);
}

static void snapshot_coordinator(struct rig *r)
{
	checkpoint_coordinator_on_coordinator_snapshot(r->c, 0, 1, 0, NULL, r->now);
}

static void snapshot_hook(struct rig *r)
{
	checkpoint_coordinator_on_hook_snapshot(r->c, 0, 1, 0, NULL, r->now);
}

/* Several at once, but one in the pipeline. */
Test(checkpoint_trigger, the_next_request_begins_when_the_tasks_have_been_told)
{
	void (*const lasts[])(struct rig *) = { prepare, snapshot_coordinator, snapshot_hook };

	for (size_t i = 0; i < 3; i++) {
		struct checkpoint_coordinator_config config = rig_tolerant();
		struct rig r;

		config.concurrent_max = 2;
		rig_open(&r, &config);
		if (i == 1)
			checkpoint_coordinator_add_coordinator(r.c, 0);
		if (i == 2)
			checkpoint_coordinator_add_hook(r.c);
		r.is_auto[DECIDE_PREPARE_LOCATION] = i != 0;
		rig_request(&r, REQUEST_CHECKPOINT);
		rig_request(&r, REQUEST_CHECKPOINT);
		cr_expect(eq(u32, checkpoint_coordinator_queued_count(r.c), 1), "%zu", i);
		r.now.wall_ms += 70;
		lasts[i](&r);
		rig_drain(&r);
		cr_expect(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 1), "%zu", i);
		cr_expect(eq(i64, pending_checkpoint_timestamp_ms(
						  checkpoint_coordinator_pending(r.c, 1)),
					  r.now.wall_ms),
				"%zu", i);
		rig_close(&r);
	}
}

/* ---- answers ---- */

Test(checkpoint_trigger, an_answer_counts_once_and_for_what_was_asked_only)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t old, id, location;
	struct rig r;

	config.concurrent_max = 2;
	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	old = rig_find(&r, DECIDE_PREPARE_LOCATION)->token;
	r.is_auto[DECIDE_DRAW_ID] = r.is_auto[DECIDE_PREPARE_LOCATION] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	id = rig_find(&r, DECIDE_DRAW_ID)->token;
	checkpoint_coordinator_on_id_drawn(r.c, old, 0, 5, r.now);
	checkpoint_coordinator_on_location_prepared(r.c, id, 0, "x", r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_PREPARE_LOCATION), 1));
	checkpoint_coordinator_on_id_drawn(r.c, id, 0, 6, r.now);
	rig_drain(&r);
	location = rig_find(&r, DECIDE_PREPARE_LOCATION)->token;
	checkpoint_coordinator_on_id_drawn(r.c, location, 0, 7, r.now);
	checkpoint_coordinator_on_location_prepared(r.c, id, 0, "x", r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_PREPARE_LOCATION), 2));
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 1));
	checkpoint_coordinator_on_location_prepared(r.c, location, 0, "there", r.now);
	checkpoint_coordinator_on_location_prepared(r.c, location, 0, "there", r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 2));
	cr_assert(eq(i64, rig_find(&r, DECIDE_TRIGGER_TASKS)->id, 6));
	rig_close(&r);
}

Test(checkpoint_trigger, a_party_answers_for_itself_and_for_the_checkpoint_that_asked)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	checkpoint_coordinator_add_coordinator(r.c, 0);
	checkpoint_coordinator_add_hook(r.c);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_coordinator_snapshot(r.c, 1, 1, 0, NULL, r.now);
	checkpoint_coordinator_on_coordinator_snapshot(r.c, 0, 2, 0, NULL, r.now);
	checkpoint_coordinator_on_hook_snapshot(r.c, 0, 1, 0, NULL, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_SNAPSHOT_HOOK), 0));
	checkpoint_coordinator_on_coordinator_snapshot(r.c, 0, 1, 0, NULL, r.now);
	rig_drain(&r);
	checkpoint_coordinator_on_hook_snapshot(r.c, 1, 1, 0, NULL, r.now);
	checkpoint_coordinator_on_hook_snapshot(r.c, 0, 2, 0, NULL, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 0));
	checkpoint_coordinator_on_hook_snapshot(r.c, 0, 1, 0, NULL, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 1));
	rig_close(&r);
}

/* ---- what goes out ---- */

Test(checkpoint_trigger, only_a_savepoint_tells_tasks_where_it_goes)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t handle;
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(str, rig_find(&r, DECIDE_TRIGGER_TASKS)->path, ""));
	cr_assert(not(checkpoint_properties_is_savepoint(
			&rig_find(&r, DECIDE_PREPARE_LOCATION)->properties)));
	handle = rig_request(&r, REQUEST_STOP);
	cr_assert(eq(u64, rig_find(&r, DECIDE_PREPARE_LOCATION)->request, handle));
	cr_assert(eq(str, rig_find(&r, DECIDE_TRIGGER_TASKS)->path, "there"));
	cr_assert(checkpoint_properties_is_synchronous(
			&rig_find(&r, DECIDE_PREPARE_LOCATION)->properties));
	rig_close(&r);
}

/* EX-1 */
Test(checkpoint_trigger, a_task_that_lost_its_slot_meanwhile_is_sent_nothing)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_PREPARE_LOCATION] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	execution_graph_set_state(r.graph, 0, EXECUTION_CREATED);
	prepare(&r);
	rig_drain(&r);
	cr_assert(eq(u32, rig_find(&r, DECIDE_TRIGGER_TASKS)->subtask_count, 1));
	rig_close(&r);
}

/* A message may overtake what is still being prepared. */
Test(checkpoint_trigger, what_everybody_acknowledged_before_the_trigger_is_complete_with_it)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_PREPARE_LOCATION] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(eq(u32, rig_count(&r, DECIDE_WRITE_METADATA), 0));
	prepare(&r);
	rig_drain(&r);
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_success);
	rig_close(&r);
}

/* ---- failures: TR-5 to TR-8 ---- */

Test(checkpoint_trigger, gateways_open_again_for_the_checkpoint_that_failed)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	checkpoint_coordinator_add_coordinator(r.c, 0);
	rig_request(&r, REQUEST_CHECKPOINT);
	end_coordinator(&r);
	rig_drain(&r);
	cr_assert_not_null(strstr(rig_find(&r, DECIDE_REQUEST_DONE)->text,
			checkpoint_phase_name(PHASE_COORDINATORS)));
	cr_assert(eq(u32, rig_count(&r, DECIDE_ABORT_TRIGGERING), 1));
	cr_assert(eq(i64, rig_find(&r, DECIDE_ABORT_TRIGGERING)->id, 1));
	r.is_auto[DECIDE_DRAW_ID] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	end_id(&r);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_ABORT_TRIGGERING), 2));
	cr_assert(eq(i64, rig_find(&r, DECIDE_ABORT_TRIGGERING)->id, 0)); /* it had no id yet */
	rig_close(&r);
}

Test(checkpoint_trigger, without_operator_coordinators_no_gateway_was_closed)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	checkpoint_coordinator_add_hook(r.c);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_hook_snapshot(r.c, 0, 1, -EIO, NULL, r.now);
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"checkpoint 1 failed after 0 ms, waiting for master hooks (0 of 3 subtasks "
			"acknowledged): TRIGGER_CHECKPOINT_FAILURE, the checkpoint could not be "
			"triggered: master hook 0 failed: Input/output error"));
	cr_assert(eq(u32, rig_count(&r, DECIDE_ABORT_TRIGGERING), 0));
	rig_close(&r);
}

Test(checkpoint_trigger, the_task_that_is_not_running_is_named)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	execution_graph_set_state(r.graph, 1, EXECUTION_CANCELING);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"not all required tasks are running: src (2/2) is CANCELING"));
	rig_close(&r);
}

/* SV-3: a stop that never began leaves the job as it was, and says why it is none. */
Test(checkpoint_trigger, a_stop_without_an_id_goes_on_with_periodic_checkpoints)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.interval_ms = 1000;
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), 0));
	r.is_auto[DECIDE_DRAW_ID] = false;
	rig_request(&r, REQUEST_STOP);
	cr_assert(not(checkpoint_coordinator_is_scheduling(r.c)));
	end_id(&r);
	rig_drain(&r);
	cr_assert(checkpoint_coordinator_is_scheduling(r.c));
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"drawing a checkpoint id: Input/output error"));
	rig_close(&r);
}

Test(checkpoint_trigger, a_job_that_fails_for_want_of_an_id_says_so)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.tolerable_failures = 0;
	rig_open(&r, &config);
	r.is_auto[DECIDE_DRAW_ID] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	end_id(&r);
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_FAIL_JOB)->text,
			"Exceeded checkpoint tolerable failure threshold. The latest checkpoint "
			"failed: drawing a checkpoint id: Input/output error"));
	rig_close(&r);
}
