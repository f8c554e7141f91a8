#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* What scenario scripts cannot say about messages of tasks and failures. */

Test(checkpoint_collect, a_failure_names_subtask_phase_and_elapsed_time)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	const struct task_failure decline = {
		.subtask = 2,
		.checkpoint_id = 2,
		.reason = REASON_ASYNC_EXCEPTION,
		.text = "disk on fire",
	};
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge(&r, 1, 0, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"checkpoint 1 failed after 500 ms, waiting for tasks (1 of 3 subtasks "
			"acknowledged): src (2/2) has not acknowledged (it has said nothing yet): "
			"CHECKPOINT_EXPIRED, the checkpoint took longer than its timeout"));
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 20);
	checkpoint_coordinator_on_decline(r.c, &decline, r.now);
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"checkpoint 2 failed after 20 ms, waiting for tasks (0 of 3 subtasks "
			"acknowledged): sum (1/1) refused: CHECKPOINT_ASYNC_EXCEPTION, a task "
			"failed to write its state: disk on fire"));
	r.is_auto[DECIDE_WRITE_METADATA] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 3, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"checkpoint 3 failed after 500 ms, writing its metadata (3 of 3 subtasks "
			"acknowledged): CHECKPOINT_EXPIRED, the checkpoint took longer than its "
			"timeout"));
	rig_close(&r);
}

Test(checkpoint_collect, a_task_cannot_subsume_a_savepoint)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	const struct task_failure decline = {
		.subtask = 2, .checkpoint_id = 1, .reason = REASON_SUBSUMED
	};
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_SAVEPOINT);
	checkpoint_coordinator_on_decline(r.c, &decline, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_REQUEST_DONE)->reason,
			REASON_DECLINED_SUBSUMED));
	rig_close(&r);
}

Test(checkpoint_collect, what_comes_from_outside_and_is_nonsense_is_dropped)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct acknowledgement a = { .subtask = UINT32_MAX, .checkpoint_id = 1 };
	struct snapshot_state state = { 0 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	a.subtask = 3;
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	a.checkpoint_id = -5;
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	checkpoint_coordinator_on_metrics(r.c, &a, r.now);
	a.checkpoint_id = 1;
	checkpoint_coordinator_on_metrics(r.c, &a, r.now);
	checkpoint_coordinator_on_coordinator_snapshot(r.c, 9, 1, 0, &state, r.now);
	checkpoint_coordinator_on_hook_snapshot(r.c, 9, 1, 0, NULL, r.now);
	checkpoint_coordinator_on_id_drawn(r.c, 77, 0, 9, r.now);
	checkpoint_coordinator_on_location_prepared(r.c, 77, 0, "x", r.now);
	checkpoint_coordinator_on_metadata_written(r.c, 77, 0, r.now);
	checkpoint_coordinator_on_index_added(r.c, 0, 0, r.now);
	checkpoint_coordinator_on_index_removed(r.c, 77, 0, r.now);
	checkpoint_coordinator_on_deleted(r.c, 77, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32,
			pending_checkpoint_awaited_count(checkpoint_coordinator_pending(r.c, 0)),
			3));
	rig_close(&r);
}

Test(checkpoint_collect, the_16_latest_expired_are_remembered)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	for (int64_t id = 1; id <= 40; id++) {
		rig_request(&r, REQUEST_CHECKPOINT);
		rig_pass(&r, 500);
		r.count = 0;
	}
	for (int64_t id = 1; id <= 40; id++) {
		struct acknowledgement a = { .subtask = 0, .checkpoint_id = id };

		cr_expect(eq(int, checkpoint_coordinator_on_acknowledge(r.c, &a, r.now), id > 24),
				"%lld", (long long)id);
	}
	rig_close(&r);
}
