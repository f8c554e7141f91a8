#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

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

/* ---- completion ---- */

/* Checkpoints 1 and 2 wait for their metadata; the token of the first. */
static uint64_t write_two(struct rig *r)
{
	r->is_auto[DECIDE_WRITE_METADATA] = false;
	rig_request(r, REQUEST_CHECKPOINT);
	rig_request(r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(r, 1, NULL);

	uint64_t first = rig_find(r, DECIDE_WRITE_METADATA)->token;
	rig_acknowledge_all(r, 2, NULL);
	return first;
}

Test(checkpoint_collect, the_metadata_of_the_newer_one_may_be_written_first)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t first;
	struct rig r;

	config.concurrent_max = 2;
	rig_open(&r, &config);
	first = write_two(&r);
	checkpoint_coordinator_on_metadata_written(
			r.c, rig_find(&r, DECIDE_WRITE_METADATA)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_COMPLETE)->id, 2));
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_ABORTED)->id, 1));
	cr_assert(eq(u64, checkpoint_stats_counts(checkpoint_coordinator_stats(r.c)).completed, 1));
	cr_assert(checkpoint_coordinator_is_busy(r.c)); /* with the write of 1 */
	checkpoint_coordinator_on_metadata_written(r.c, first, 0, r.now);
	rig_drain(&r);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_collect, those_that_wait_for_the_list_enter_it_one_by_one)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.concurrent_max = 3;
	config.retained_count = 5;
	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	for (int i = 0; i < 3; i++)
		rig_request(&r, REQUEST_CHECKPOINT);
	for (int64_t id = 1; id <= 3; id++)
		rig_acknowledge_all(&r, id, NULL);
	for (uint32_t i = 1; i <= 3; i++) {
		cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), i));
		cr_assert(eq(i64, rig_find(&r, DECIDE_INDEX_ADD)->id, i));
		cr_assert(checkpoint_coordinator_is_storing(r.c));
		checkpoint_coordinator_on_index_added(
				r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
		rig_drain(&r);
		cr_assert(eq(u32, rig_count(&r, DECIDE_NOTIFY_COMPLETE), i));
	}
	cr_assert(not(checkpoint_coordinator_is_storing(r.c)));
	rig_close(&r);
}

Test(checkpoint_collect, what_waits_for_the_list_while_a_newer_one_enters_it_is_never_in_it)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t first;
	struct rig r;

	config.concurrent_max = 2;
	rig_open(&r, &config);
	r.is_auto[DECIDE_WRITE_METADATA] = r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	first = rig_find(&r, DECIDE_WRITE_METADATA)->token;
	rig_acknowledge_all(&r, 2, NULL);
	checkpoint_coordinator_on_metadata_written(
			r.c, rig_find(&r, DECIDE_WRITE_METADATA)->token, 0, r.now);
	checkpoint_coordinator_on_metadata_written(r.c, first, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 1));
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_COMPLETE)->id, 2));
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_ABORTED)->id, 1));
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 1));
	cr_assert(not(checkpoint_coordinator_is_storing(r.c)));
	rig_close(&r);
}

Test(checkpoint_collect, writes_of_aborted_checkpoints_end_each_for_itself)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t first;
	struct rig r;

	config.concurrent_max = 2;
	rig_open(&r, &config);
	first = write_two(&r);
	rig_pass(&r, 500);
	checkpoint_coordinator_on_metadata_written(
			r.c, rig_find(&r, DECIDE_WRITE_METADATA)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_DELETE)->id, 2));
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_metadata_written(r.c, first, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_DELETE)->id, 1));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_collect, an_abort_leaves_nothing_to_wait_for)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 500);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_collect, a_checkpoint_that_cannot_be_listed_says_so)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, -5, r.now);
	rig_drain(&r);
	cr_assert_not_null(strstr(rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"adding it to the list of completed checkpoints (3 of 3 subtasks"));
	cr_assert_not_null(strstr(rig_find(&r, DECIDE_REQUEST_DONE)->text,
			"adding it to the list of completed checkpoints: Input/output error"));
	rig_close(&r);
}

Test(checkpoint_collect, tasks_are_told_that_a_stop_is_complete)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_STOP);
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(checkpoint_properties_is_synchronous(
			&rig_find(&r, DECIDE_NOTIFY_COMPLETE)->properties));
	rig_close(&r);
}

/* ---- failures ---- */

static void decline(struct rig *r, int64_t id, uint32_t subtask, bool is_current)
{
	struct task_failure f = { .subtask = subtask, .checkpoint_id = id,
		.reason = REASON_DECLINED, .text = "no" };

	f.attempt.id.bytes[0] = is_current ? 0 : 9;
	checkpoint_coordinator_on_decline(r->c, &f, r->now);
	rig_drain(r);
}

/* FM-6: the failure of an attempt that is gone is not the job's any more. */
Test(checkpoint_collect, a_decline_fails_the_job_only_if_its_attempt_runs)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.tolerable_failures = 0;
	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	decline(&r, 1, 3, true); /* nobody */
	rig_request(&r, REQUEST_CHECKPOINT);
	decline(&r, 2, 2, false);
	cr_assert(eq(u32, rig_count(&r, DECIDE_FAIL_JOB), 0));
	rig_request(&r, REQUEST_CHECKPOINT);
	decline(&r, 3, 2, true);
	cr_assert(eq(u32, rig_count(&r, DECIDE_FAIL_JOB), 1));
	cr_assert(eq(u32, rig_find(&r, DECIDE_FAIL_JOB)->subtask, 2));
	cr_assert(eq(str, rig_find(&r, DECIDE_FAIL_JOB)->text,
			"Exceeded checkpoint tolerable failure threshold. The latest checkpoint "
			"failed: checkpoint 3 failed after 0 ms, waiting for tasks (0 of 3 "
			"subtasks acknowledged): sum (1/1) refused: CHECKPOINT_DECLINED, a task "
			"declined: no"));
	rig_close(&r);
}

/* FM-5: a call that fails is the coordinator's failure, whatever became of the attempt. */
Test(checkpoint_collect, a_call_that_fails_counts_whether_its_attempt_runs_or_not)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct task_failure f = { .subtask = 2, .checkpoint_id = 1,
		.reason = REASON_DECLINED };
	struct rig r;

	config.tolerable_failures = 0;
	f.attempt.id.bytes[0] = 9;
	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_task_trigger_failed(r.c, &f, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_FAIL_JOB), 1));
	rig_close(&r);
}

Test(checkpoint_collect, after_a_stop_that_failed_checkpoints_go_on_if_there_were_any)
{
	for (int64_t interval_ms = 0; interval_ms < 2; interval_ms++) {
		struct checkpoint_coordinator_config config = rig_tolerant();
		struct rig r;

		config.interval_ms = interval_ms;
		config.smallest_ms = 1;
		rig_open(&r, &config);
		rig_request(&r, REQUEST_STOP);
		decline(&r, 1, 1, true);
		cr_assert(eq(int, checkpoint_coordinator_is_scheduling(r.c), interval_ms > 0));
		rig_close(&r);
	}
}

/* ---- late and repeated messages: AK-4 to AK-6 ---- */

static uint32_t acknowledge_files(struct rig *r, int64_t id, const char *a, const char *b,
		const char *c)
{
	struct acknowledgement m = { .subtask = 0, .checkpoint_id = id,
		.metrics = { .sync_ns = 8 } };
	const char *names[] = { a, b, c };
	uint32_t count = rig_count(r, DECIDE_DELETE);

	for (int i = 0; i < 3; i++) {
		if (names[i] != NULL)
			file_list_add(&m.state.files, names[i]);
	}
	checkpoint_coordinator_on_acknowledge(r->c, &m, r->now);
	rig_drain(r);
	return rig_count(r, DECIDE_DELETE) - count;
}

Test(checkpoint_collect, of_a_message_repeated_after_completion_only_unknown_files_go)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(u32, acknowledge_files(&r, 1, "a", "b", "c"), 0));
	rig_acknowledge(&r, 1, 1, NULL);
	rig_acknowledge(&r, 1, 2, NULL);
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_success);
	cr_assert(eq(u32, acknowledge_files(&r, 1, "a", "b", "c"), 0));
	cr_assert(eq(u32, acknowledge_files(&r, 1, "c", NULL, NULL), 0));
	cr_assert(eq(u32, acknowledge_files(&r, 1, NULL, NULL, NULL), 0));
	cr_assert(eq(u32, acknowledge_files(&r, 1, "a", "x", "b"), 1));
	cr_assert(eq(str, rig_find(&r, DECIDE_DELETE)->files, "x "));
	cr_assert(eq(u32, acknowledge_files(&r, 1, "x", "a", "y"), 1));
	cr_assert(eq(str, rig_find(&r, DECIDE_DELETE)->files, "x y "));
	rig_close(&r);
}

Test(checkpoint_collect, files_go_with_a_message_whose_shared_files_do_not_fit)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct acknowledgement a = { .subtask = 0, .checkpoint_id = 1 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	file_list_add(&a.state.files, "mine");
	shared_list_add(&a.state.shared, "key", NULL, false);
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 2)); /* and the directory */
	rig_close(&r);
}

Test(checkpoint_collect, what_a_subtask_was_at_is_known_after_the_checkpoint_failed)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct acknowledgement report = { .subtask = 1, .checkpoint_id = 1,
		.metrics = { .sync_ns = 9 } };
	const struct checkpoint_record *record;
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_metrics(r.c, &report, r.now);
	rig_pass(&r, 500);
	acknowledge_files(&r, 1, NULL, NULL, NULL);
	record = checkpoint_stats_find(checkpoint_coordinator_stats(r.c), 1);
	cr_assert(eq(i64, record->subtasks[0].metrics.sync_ns, 8));
	cr_assert(eq(i64, record->subtasks[1].metrics.sync_ns, 9));
	cr_assert(record->subtasks[1].is_aborted);
	rig_close(&r);
}

Test(checkpoint_collect, only_what_expired_is_told_to_have_expired)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct acknowledgement a = { .subtask = 0, .checkpoint_id = 0 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 500);
	cr_assert(not(checkpoint_coordinator_on_acknowledge(r.c, &a, r.now)));
	a.checkpoint_id = 1;
	cr_assert(checkpoint_coordinator_on_acknowledge(r.c, &a, r.now));
	checkpoint_coordinator_shutdown(r.c, r.now);
	cr_assert(not(checkpoint_coordinator_on_acknowledge(r.c, &a, r.now)));
	rig_close(&r);
}
