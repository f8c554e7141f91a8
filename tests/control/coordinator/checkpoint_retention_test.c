#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

/* What scenario scripts cannot say about durable steps, one answer at a time. */

Test(checkpoint_retention, a_placeholder_for_an_unknown_file_fails_the_checkpoint)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct acknowledgement a = { .subtask = 0, .checkpoint_id = 1 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	shared_list_add(&a.state.shared, "key", NULL, false);
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_REQUEST_DONE)->reason,
			REASON_FINALIZE_CHECKPOINT_FAILURE));
	rig_close(&r);
}

Test(checkpoint_retention, a_directory_made_too_late_is_deleted)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_PREPARE_LOCATION] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 500);
	checkpoint_coordinator_on_location_prepared(r.c,
			rig_find(&r, DECIDE_PREPARE_LOCATION)->token, 0, "late", r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_DELETE)->deletion, DELETION_LOCATION));
	cr_assert(not(checkpoint_coordinator_is_triggering(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, tells_since_when_a_checkpoint_waits_for_its_id)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_DRAW_ID] = false;
	cr_assert(eq(i64, checkpoint_coordinator_draws_id_since(r.c), 0));
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(gt(i64, checkpoint_coordinator_draws_id_since(r.c), 1));
	checkpoint_coordinator_on_id_drawn(r.c, rig_find(&r, DECIDE_DRAW_ID)->token, 0, 1, r.now);
	cr_assert(eq(i64, checkpoint_coordinator_draws_id_since(r.c), 0));
	rig_close(&r);
}

Test(checkpoint_retention, metadata_written_too_late_is_deleted_with_its_directory)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_WRITE_METADATA] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_DELETE)->deletion, DELETION_PENDING));
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_metadata_written(
			r.c, rig_find(&r, DECIDE_WRITE_METADATA)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_DELETE)->deletion, DELETION_LOCATION));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 0));
	rig_close(&r);
}

Test(checkpoint_retention, completions_enter_the_list_one_at_a_time_and_in_order)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;
	struct rig_decision *first;
	struct rig_decision *second;

	config.concurrent_max = 2;
	config.retained_count = 5;
	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	first = rig_find(&r, DECIDE_INDEX_ADD);
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 1));
	checkpoint_coordinator_on_index_added(r.c, first->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_NOTIFY_COMPLETE), 1));
	second = rig_find(&r, DECIDE_INDEX_ADD);
	cr_assert(eq(i64, second->id, 2));
	checkpoint_coordinator_on_index_added(r.c, second->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_COMPLETE)->id, 2));
	rig_close(&r);
}

Test(checkpoint_retention, new_attempts_are_not_told_that_a_checkpoint_of_old_ones_is_complete)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	const struct attempt_id second = { .id = { { 2 } } };
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(checkpoint_coordinator_is_storing(r.c));
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_restore_latest(r.c, r.now), NULL));
	execution_graph_set_attempt(r.graph, 1, second);
	execution_graph_set_state(r.graph, 1, EXECUTION_RUNNING);
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(not(checkpoint_coordinator_is_storing(r.c)));
	cr_assert(eq(u32, rig_find(&r, DECIDE_NOTIFY_COMPLETE)->subtask_count, 2));
	rig_close(&r);
}

Test(checkpoint_retention, a_removal_that_fails_keeps_the_files_and_is_tried_again)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 2, "two");
	checkpoint_coordinator_on_index_removed(
			r.c, rig_find(&r, DECIDE_INDEX_REMOVE)->token, -EIO, r.now);
	rig_drain(&r);
	/* The list may still name 1, so its files are needed. */
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 0));
	r.is_auto[DECIDE_INDEX_REMOVE] = true;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 3, "two");
	/* 1, 2 and "one". */
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 3));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 3));
	rig_close(&r);
}

Test(checkpoint_retention, the_end_waits_for_what_is_being_written_and_deleted)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 2, "two");
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
	rig_drain(&r);
	/* It was stored, so it ends like what had been stored before. */
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 2));
	cr_assert(eq(u32, rig_count(&r, DECIDE_REMOVE_ID_COUNTER), 1));
	cr_assert(eq(i64, rig_find(&r, DECIDE_NOTIFY_COMPLETE)->other_id, 0));
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_REMOVE_ID_COUNTER), 1));
	rig_close(&r);
}

Test(checkpoint_retention, recovery_refuses_two_of_one_id)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct completed_checkpoint *entries[2];
	struct rig r;

	rig_open(&r, &config);
	completed_checkpoint_create(&entries[0], 4, "a");
	completed_checkpoint_create(&entries[1], 4, "b");
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 2), -EINVAL));
	entries[1]->id = 3;
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 2), 0));
	cr_assert(eq(i64, checkpoint_coordinator_retained(r.c, 0)->id, 3));
	cr_assert(checkpoint_coordinator_retained(r.c, 0)->is_restored);
	cr_assert(checkpoint_coordinator_retained(r.c, 1)->is_restored);
	cr_assert(eq(i64, checkpoint_coordinator_restore_latest(r.c, r.now)->id, 4));
	cr_assert(eq(i64, checkpoint_stats_restored(checkpoint_coordinator_stats(r.c))->id, 4));
	rig_close(&r);
}

/* Restores snapshot 9, which the test then answers the listing of. */
static void restore_unlisted(struct rig *r, enum claim_mode mode)
{
	struct completed_checkpoint *snapshot;

	r->is_auto[DECIDE_INDEX_ADD] = false;
	completed_checkpoint_create(&snapshot, 9, "there");
	cr_assert(eq(int,
			checkpoint_coordinator_restore_snapshot(r->c, snapshot, mode, r->now), 0));
	rig_drain(r);
}

Test(checkpoint_retention, a_restored_snapshot_that_cannot_be_listed_fails_the_job)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	restore_unlisted(&r, CLAIM_MODE_NO_CLAIM);
	cr_assert(eq(i64, rig_find(&r, DECIDE_SET_NEXT_ID)->id, 10));
	cr_assert(checkpoint_coordinator_retained(r.c, 0)->is_restored);
	for (int i = 0; i < 2; i++) { /* one failure, however often it is told */
		checkpoint_coordinator_on_index_added(
				r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, -EIO, r.now);
		rig_drain(&r);
	}
	cr_assert(eq(u32, rig_count(&r, DECIDE_FAIL_JOB), 1));
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_FAIL_JOB)->reason, REASON_IO_EXCEPTION));
	cr_assert(eq(i64, rig_find(&r, DECIDE_FAIL_JOB)->id, 0));
	cr_assert(eq(str, rig_find(&r, DECIDE_FAIL_JOB)->text,
			"adding the restored snapshot to the list of completed checkpoints: "
			"Input/output error"));
	rig_close(&r);
}

static void acknowledge_file(struct rig *r, int64_t id, uint32_t subtask, const char *file)
{
	struct acknowledgement a = { .subtask = subtask,
		.attempt = execution_graph_attempt(r->graph, subtask), .checkpoint_id = id };

	file_list_add(&a.state.files, file);
	checkpoint_coordinator_on_acknowledge(r->c, &a, r->now);
	rig_drain(r);
}

Test(checkpoint_retention, a_request_that_waited_for_deletions_begins_when_they_end)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, NULL);
	r.is_auto[DECIDE_DELETE] = false;
	rig_complete(&r, 2, NULL);
	rig_complete(&r, 3, NULL);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 3));
	r.now.now_ns += 70 * NS_PER_MS;
	r.now.wall_ms += 70;
	checkpoint_coordinator_on_deleted(r.c, rig_find(&r, DECIDE_DELETE)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 4));
	cr_assert(eq(i64, rig_find(&r, DECIDE_TRIGGER_TASKS)->timestamp_ms, r.now.wall_ms));
	rig_close(&r);
}

Test(checkpoint_retention, each_removal_is_answered_on_its_own)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	for (int64_t id = 2; id <= 5; id++)
		rig_complete(&r, id, "one");
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 4));
	rig_answer_removal(&r, 2, 0); /* neither the first nor the last */
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 2), 0)); /* 1 holds the file */
	rig_answer_removal(&r, 1, 0);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 1), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 2), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 3), 0));
	rig_answer_removal(&r, 4, 0);
	rig_answer_removal(&r, 3, 0);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 3), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 4), 1));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, every_removal_that_failed_is_tried_again_and_no_other)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, NULL);
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	for (int64_t id = 2; id <= 4; id++)
		rig_complete(&r, id, NULL);
	rig_answer_removal(&r, 1, -EIO);
	rig_answer_removal(&r, 3, -EIO);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 3));
	rig_complete(&r, 5, NULL);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 6)); /* 1, 3 again, and 4 */
	for (int64_t id = 1; id <= 4; id++)
		rig_answer_removal(&r, id, 0);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, a_listed_checkpoint_keeps_its_files_whatever_else_leaves_the_list)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct completed_checkpoint *snapshot;
	struct rig r;

	rig_open(&r, &config);
	completed_checkpoint_create(&snapshot, 5, "there");
	cr_assert(eq(int,
			checkpoint_coordinator_restore_snapshot(
					r.c, snapshot, CLAIM_MODE_NO_CLAIM, r.now),
			0));
	rig_drain(&r);
	r.id = 5;
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_complete(&r, 6, "six");
	rig_complete(&r, 7, "seven");
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 2));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 0));
	/* What is not ours, on its way out, holds nothing of ours. */
	rig_answer_removal(&r, 6, 0);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_SHARED, 0), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 6), 1));
	rig_answer_removal(&r, 5, 0);
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 2));
	rig_close(&r);
}

Test(checkpoint_retention, what_was_on_its_way_out_when_the_job_ended_is_still_deleted)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_complete(&r, 2, "two");
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	rig_answer_removal(&r, 2, 0);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_SHARED, 0), 0)); /* 1 is still listed */
	rig_answer_removal(&r, 1, 0);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 1), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_SHARED, 0), 1));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, what_cannot_leave_the_list_when_the_job_has_ended_keeps_its_files)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_complete(&r, 2, "two");
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	rig_answer_removal(&r, 2, 0);
	rig_answer_removal(&r, 1, -EIO);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 2), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 1), 0));
	rig_close(&r);
}

Test(checkpoint_retention, a_snapshot_that_may_not_be_listed_fails_the_job_too)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	restore_unlisted(&r, CLAIM_MODE_CLAIM);
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, INDEX_MAYBE, r.now);
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_FAIL_JOB)->text,
			"adding the restored snapshot to the list of completed checkpoints: nobody "
			"can say whether it was written"));
	rig_close(&r);
}

Test(checkpoint_retention, ids_are_above_zero_and_above_what_is_stored)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	const int64_t bad[] = { 0, -1, INT64_MAX, 4 };
	struct completed_checkpoint *entries[3], *snapshot;
	struct rig r;

	rig_open(&r, &config);
	completed_checkpoint_create(&entries[0], 0, "a");
	completed_checkpoint_create(&entries[1], 4, "b");
	completed_checkpoint_create(&entries[2], 4, "c");
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 2), -EINVAL));
	entries[0]->id = 1;
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 3), -EINVAL));
	entries[2]->id = 2;
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 3), 0));
	completed_checkpoint_create(&snapshot, 0, "there");
	for (int i = 0; i < 4; i++) {
		snapshot->id = bad[i];
		cr_assert(eq(int,
				checkpoint_coordinator_restore_snapshot(
						r.c, snapshot, CLAIM_MODE_CLAIM, r.now),
				-EINVAL));
	}
	snapshot->id = 5;
	cr_assert(eq(int,
			checkpoint_coordinator_restore_snapshot(
					r.c, snapshot, CLAIM_MODE_CLAIM, r.now),
			0));
	rig_close(&r);
}

/* ST-5: as if it had been there when the job ended. */
Test(checkpoint_retention, what_is_stored_while_the_job_ends_is_kept_by_its_policy)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.retention = RETAIN_ON_CANCELLATION;
	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	for (uint32_t i = 0; i < 3; i++)
		acknowledge_file(&r, 1, i, "one");
	/* It is on its way into the list: a repeated message takes nothing from it. */
	acknowledge_file(&r, 1, 0, "one");
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 0));
	checkpoint_coordinator_end(r.c, JOB_CANCELED, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_REMOVE_ID_COUNTER)->id, 0));
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 1), 0));
	rig_close(&r);
}

Test(checkpoint_retention, an_answer_that_is_repeated_stores_nothing_again)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	uint64_t token;
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, NULL);
	token = rig_find(&r, DECIDE_INDEX_ADD)->token;
	cr_assert(ne(u64, token, rig_find(&r, DECIDE_WRITE_METADATA)->token));
	checkpoint_coordinator_on_index_added(r.c, token, 0, r.now);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_index_added(r.c, token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_NOTIFY_COMPLETE), 1));
	rig_close(&r);
}

/* AK-5: a message may be repeated at any time. */
Test(checkpoint_retention, a_repeated_message_deletes_nothing_that_is_being_stored_or_removed)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.concurrent_max = 2;
	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	for (uint32_t i = 0; i < 3; i++)
		acknowledge_file(&r, 2, i, "two"); /* behind one that is pending */
	acknowledge_file(&r, 2, 0, "two");
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 0));
	cr_assert(checkpoint_coordinator_is_storing(r.c));
	acknowledge_file(&r, 2, 0, "other");
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_LATE, 2), 1));
	checkpoint_coordinator_on_index_added(
			r.c, rig_find(&r, DECIDE_INDEX_ADD)->token, 0, r.now);
	rig_drain(&r);
	acknowledge_file(&r, 2, 0, "two");
	r.is_auto[DECIDE_INDEX_ADD] = true;
	rig_complete(&r, 3, NULL);
	rig_request(&r, REQUEST_CHECKPOINT);
	for (uint32_t i = 0; i < 3; i++)
		acknowledge_file(&r, 4, i, "four");
	rig_complete(&r, 5, NULL); /* 2, 3 and 4 are on their way out */
	acknowledge_file(&r, 4, 0, "four");
	acknowledge_file(&r, 2, 0, "two");
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_LATE, 2), 1));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_LATE, 4), 0));
	rig_close(&r);
}

Test(checkpoint_retention, a_request_that_waits_through_a_restart_begins_with_it)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	r.is_auto[DECIDE_DELETE] = false; /* nothing else happens that could begin it */
	r.now.now_ns += 70 * NS_PER_MS;
	r.now.wall_ms += 70;
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_restore_latest(r.c, r.now), NULL));
	rig_drain(&r);
	cr_assert(eq(i64, rig_find(&r, DECIDE_TRIGGER_TASKS)->timestamp_ms, r.now.wall_ms));
	rig_close(&r);
}

Test(checkpoint_retention, a_removal_that_failed_is_tried_again_at_the_end)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_complete(&r, 1, NULL);
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_complete(&r, 2, NULL);
	rig_answer_removal(&r, 1, -EIO);
	r.is_auto[DECIDE_INDEX_REMOVE] = true;
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 3));
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_STORED, 1), 1));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, shared_files_of_what_was_never_complete_go_at_the_end)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge(&r, 1, 0, "shared");
	rig_pass(&r, 500);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_SHARED, 0), 0));
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count_deletions(&r, DELETION_SHARED, 0), 1));
	rig_close(&r);
}

Test(checkpoint_retention, closing_waits_for_each_single_thing_that_is_out)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	r.is_auto[DECIDE_INDEX_REMOVE] = r.is_auto[DECIDE_DELETE] = false;
	rig_complete(&r, 2, NULL);
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	rig_answer_removal(&r, 1, 0);
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_deleted(r.c, rig_find(&r, DECIDE_DELETE)->token, 0, r.now);
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	rig_close(&r);
}

Test(checkpoint_retention, what_is_complete_remembers_what_the_job_began_from)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct completed_checkpoint *snapshot;
	struct rig r;

	rig_open(&r, &config);
	completed_checkpoint_create(&snapshot, 5, "there");
	cr_assert(eq(int,
			checkpoint_coordinator_restore_snapshot(
					r.c, snapshot, CLAIM_MODE_NO_CLAIM, r.now),
			0));
	rig_drain(&r);
	r.id = 5;
	rig_complete(&r, 6, NULL);
	cr_assert(eq(i64, checkpoint_coordinator_retained(r.c, 0)->id, 6));
	cr_assert(eq(i64, checkpoint_coordinator_retained(r.c, 0)->unclaimed_id_max, 5));
	rig_close(&r);
}
