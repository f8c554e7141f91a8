#include "dataplane/checkpoint/operator_files.h"
#include "tests/support/subtask_bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct subtask_bench b;

static void begin(void)
{
	bench_open(&b, &(struct bench_config){3, true, true, false});
}

static void end(void)
{
	bench_close(&b);
}

TestSuite(subtask_checkpoint_coordinator, .init = begin, .fini = end, .timeout = 20);

/* ---- 14.2 steps 3 and 5: what the outputs hold ---- */

Test(subtask_checkpoint_coordinator, what_waits_on_each_channel_of_each_output_is_kept)
{
	bench_fill(&b, 0, 2);
	bench_fill(&b, 1, 1);
	cr_expect(bench_perform_unaligned(&b, 1));
	bench_finish_input(&b, 1);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	cr_expect_eq(b.in_flight_handles, 3);
	cr_expect_eq(b.metrics.channel_count, 3);
	cr_expect_eq(b.metrics.buf_count, 5);
	cr_expect_eq(b.metrics.file_count, 1);
	bench_release(&b, 1);
}

/* SP-13. */
Test(subtask_checkpoint_coordinator, a_barrier_that_waits_in_any_output_is_waited_for)
{
	for (uint32_t late = 0; late < 2; late++) {
		int64_t id = 1 + late;

		bench_fill(&b, 0, 1);
		bench_fill(&b, 1, 1);
		cr_expect(bench_perform_timeoutable(&b, id));
		bench_drain(&b, 1 - late);
		bench_turn(&b, 100);
		EXPECT_SAID(&b, "");
		bench_drain(&b, late);
		bench_turn(&b, 100);
		EXPECT_SAID(&b, late == 0 ? "ack1" : "ack2");
		cr_expect_eq(b.in_flight_handles, 0);
		cr_expect_eq(b.metrics.mode, CHECKPOINT_ALIGNED);
		bench_release(&b, id);
		for (uint32_t i = 0; i < 2; i++)
			bench_stop_consumers(&b, i);
	}
}

/* SP-15. */
Test(subtask_checkpoint_coordinator, at_the_timeout_what_any_output_holds_is_kept)
{
	for (uint32_t late = 0; late < 2; late++) {
		int64_t id = 1 + late;

		bench_fill(&b, 0, 1);
		bench_fill(&b, 1, 1);
		uint64_t now_ns = b.clock.now_ns;
		cr_expect(bench_perform_timeoutable(&b, id));
		bench_drain(&b, 1 - late);
		cr_expect_eq(subtask_checkpoint_coordinator_deadline_ns(b.coordinator),
				now_ns + 5000000);
		b.clock.now_ns += 4999999;
		subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
		bench_turn(&b, 100);
		EXPECT_SAID(&b, "");
		b.clock.now_ns++;
		subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
		cr_expect_eq(subtask_checkpoint_coordinator_deadline_ns(b.coordinator),
				UINT64_MAX);
		bench_turn(&b, 100);
		EXPECT_SAID(&b, late == 0 ? "ack1" : "ack2");
		cr_expect_eq(b.in_flight_handles, late == 0 ? 2 : 1);
		cr_expect_eq(b.metrics.mode, CHECKPOINT_TIMED_OUT);
		cr_expect(b.metrics.is_unaligned);
		bench_release(&b, id);
		bench_drain(&b, late);
		for (uint32_t i = 0; i < 2; i++)
			bench_stop_consumers(&b, i);
	}
}

/* SP-13, 14.5. */
Test(subtask_checkpoint_coordinator, a_newer_one_says_nothing_of_one_that_was_aborted_in_a_queue)
{
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_timeoutable(&b, 1));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 1);
	cr_expect(bench_perform_timeoutable(&b, 2));
	EXPECT_SAID(&b, "");
	cr_expect(bench_perform_timeoutable(&b, 3));
	EXPECT_SAID(&b, "decline2:6"); /* DECLINE_ASYNC_EXCEPTION */
}

/* ---- 14.3: the report ---- */

Test(subtask_checkpoint_coordinator, the_report_adds_up_states_and_what_was_in_flight)
{
	bench_fill(&b, 1, 2);
	b.clock.now_ns = 1000;
	cr_expect(bench_perform_unaligned(&b, 1));
	b.clock.now_ns = 3000;
	bench_turn(&b, 100);
	EXPECT_SAID(&b, ""); /* the input is not known yet */
	bench_finish_input(&b, 1);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	cr_expect_eq(b.metrics.bytes_persisted_during_alignment, 2 * 64);
	cr_expect_eq(b.metrics.total_bytes, 2 * 64 + BENCH_STATE_BYTES);
	cr_expect_eq(b.metrics.bytes_persisted, 2 * 64 + BENCH_STATE_BYTES);
	cr_expect_eq(b.metrics.alignment_duration_ns, 55);
	cr_expect_eq(b.metrics.bytes_processed_during_alignment, 66);
	cr_expect_eq(b.metrics.start_delay_ns, 22);
	cr_expect_eq(b.metrics.heard_ns, 44);
	cr_expect_eq(b.metrics.began_ns, 1000);
	cr_expect_eq(b.metrics.ended_ns, 3000);
	cr_expect_eq(b.metrics.sync_duration_ns, 0);
	cr_expect_eq(b.metrics.async_duration_ns, 2000);
	cr_expect_eq(b.metrics.mode, CHECKPOINT_UNALIGNED);
	bench_release(&b, 1);
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	cr_expect(bench_perform_aligned(&b, 2));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	cr_expect_eq(b.metrics.total_bytes, BENCH_STATE_BYTES);
	cr_expect_eq(b.metrics.alignment_duration_ns, 11);
	cr_expect_eq(b.metrics.bytes_processed_during_alignment, 33);
	cr_expect_not(b.metrics.is_unaligned);
	bench_release(&b, 2);
}

/* SC-3. */
Test(subtask_checkpoint_coordinator, what_was_in_flight_may_fail_alone)
{
	b.disks[BENCH_WRITERS].fail_nth = 1;
	b.disks[BENCH_WRITERS].fail_status = -ENOSPC;
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_unaligned(&b, 1));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "decline1:6");
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	cr_expect(bench_perform_unaligned(&b, 2));
	bench_finish_input(&b, 2);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	bench_release(&b, 2);
}

/* ---- step 0 ---- */

Test(subtask_checkpoint_coordinator, says_whether_a_checkpoint_was_performed)
{
	cr_expect(bench_perform_aligned(&b, 5));
	cr_expect_not(bench_perform_aligned(&b, 5));
	cr_expect_not(bench_perform_aligned(&b, 4));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 7);
	cr_expect(bench_perform_aligned(&b, 6));
	cr_expect_not(bench_perform_aligned(&b, 7));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack5 ack6");
	bench_release(&b, 5);
	bench_release(&b, 6);
}

/* 14.1: prepared, and then not begun. */
Test(subtask_checkpoint_coordinator, an_abort_drops_what_was_prepared_only)
{
	struct event e = bench_barrier(&b, 1, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);

	subtask_checkpoint_coordinator_prepare(b.coordinator, &e);
	cr_expect(channel_state_writer_has(b.channel_state, 1));
	subtask_checkpoint_coordinator_abort_on_barrier(
			b.coordinator, 1, DECLINE_ON_CANCELLATION_BARRIER);
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	EXPECT_SAID(&b, "decline1:4");
}

/* BH-7. */
Test(subtask_checkpoint_coordinator, an_abort_ends_older_ones_whose_input_is_open_and_no_others)
{
	b.disks[0].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_unaligned(&b, 2));
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 1, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline1:3");
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "");
	bench_finish_input(&b, 2);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	bench_release(&b, 2);
	fault_store_settle(&b.disks[0]);
	bench_turn(&b, 100);

	b.disks[0].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 3));
	cr_expect(bench_perform_unaligned(&b, 4));
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 5, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline5:3 decline4:3");
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 6, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline6:3");
	fault_store_settle(&b.disks[0]);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack3");
	bench_release(&b, 3);
}

/* Whatever was aborted since. */
Test(subtask_checkpoint_coordinator, the_first_one_may_be_the_slowest)
{
	b.disks[0].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_unaligned(&b, 2));
	for (int64_t id = 2; id < 5; id++)
		subtask_checkpoint_coordinator_abort_on_barrier(
				b.coordinator, id, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline2:3 decline3:3 decline4:3");
	fault_store_settle(&b.disks[0]);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	bench_release(&b, 1);
}

/* ---- writers ---- */

Test(subtask_checkpoint_coordinator, asks_for_releases_only_when_all_writers_are_taken)
{
	cr_expect(bench_perform_aligned(&b, 1));
	bench_turn(&b, 100);
	cr_expect(bench_perform_aligned(&b, 2));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1 ack2");
	cr_expect_eq(b.collected, 0);
	b.to_collect_id = 1;
	cr_expect(bench_perform_aligned(&b, 3));
	cr_expect_eq(b.collected, 1);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack3");
	cr_expect(bench_perform_aligned(&b, 4));
	cr_expect_eq(b.collected, 2);
	EXPECT_SAID(&b, "decline4:0"); /* DECLINE_TASK_NOT_READY */
	bench_release(&b, 2);
	bench_release(&b, 3);
}

Test(subtask_checkpoint_coordinator, needs_nobody_to_hand_in_releases)
{
	bench_close(&b);
	bench_open(&b, &(struct bench_config){3, false, true, false});
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_aligned(&b, 2));
	cr_expect(bench_perform_aligned(&b, 3));
	EXPECT_SAID(&b, "decline3:0");
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1 ack2");
	bench_release(&b, 1);
	bench_release(&b, 2);
}

Test(subtask_checkpoint_coordinator, owes_an_answer_until_the_last_one_is_acknowledged_or_given_up)
{
	cr_expect_not(subtask_checkpoint_coordinator_owes_answer(b.coordinator));
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_aligned(&b, 2));
	cr_expect(subtask_checkpoint_coordinator_owes_answer(b.coordinator));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1 ack2");
	cr_expect_not(subtask_checkpoint_coordinator_owes_answer(b.coordinator),
			"not released yet, but said");
	bench_release(&b, 1);
	bench_release(&b, 2);
	b.disks[0].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 3));
	bench_turn(&b, 10);
	cr_expect(subtask_checkpoint_coordinator_owes_answer(b.coordinator));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 3);
	cr_expect_not(subtask_checkpoint_coordinator_owes_answer(b.coordinator));
	fault_store_settle(&b.disks[0]);
	bench_turn(&b, 100);
}

/* ---- the end ---- */

Test(subtask_checkpoint_coordinator, is_not_idle_until_each_disk_has_answered)
{
	for (uint32_t i = 0; i < BENCH_WRITERS; i++)
		b.disks[i].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_aligned(&b, 2));
	bench_turn(&b, 10);
	subtask_checkpoint_coordinator_close(b.coordinator);
	for (uint32_t i = 0; i < BENCH_WRITERS; i++) {
		bench_turn(&b, 100);
		cr_expect_not(subtask_checkpoint_coordinator_is_idle(b.coordinator));
		fault_store_settle(&b.disks[i]);
	}
	bench_turn(&b, 100);
	cr_expect(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	EXPECT_SAID(&b, "");
}

Test(subtask_checkpoint_coordinator, is_not_idle_while_writes_of_channel_state_are_out)
{
	b.disks[BENCH_WRITERS].is_hung = true;
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_unaligned(&b, 1));
	bench_turn(&b, 10);
	subtask_checkpoint_coordinator_close(b.coordinator);
	bench_turn(&b, 100);
	cr_expect_not(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	subtask_checkpoint_coordinator_close(b.coordinator);
	fault_store_settle(&b.disks[BENCH_WRITERS]);
	bench_turn(&b, 100);
	cr_expect(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	EXPECT_SAID(&b, "");
}

/* ---- files that operators closed before the barrier ---- */

static void begin_with_files(void)
{
	uint32_t file;

	bench_close(&b);
	bench_open(&b, &(struct bench_config){3, true, true, true});
	cr_assert(operator_files_open(b.files, "out/part", &file));
	cr_assert(operator_files_write(b.files, file, "0123456789", 10));
	operator_files_close(b.files, file);
}

static void step_files(void)
{
	for (uint32_t i = 0; i < 20; i++)
		(void)operator_files_step(b.files, b.clock.now_ns);
}

Test(subtask_checkpoint_coordinator, files_of_its_operators_are_waited_for,
		.init = begin_with_files)
{
	b.files_disk.is_hung = true;
	cr_expect(bench_perform_aligned(&b, 1));
	step_files();
	cr_expect_eq(bench_turn(&b, 100), 0);
	EXPECT_SAID(&b, "");
	fault_store_settle(&b.files_disk);
	step_files();
	cr_expect_gt(bench_turn(&b, 1), 0, "the report is work");
	EXPECT_SAID(&b, "ack1");
	bench_release(&b, 1);
}

/* A file that comes behind the barrier is the next one's. */
Test(subtask_checkpoint_coordinator, files_closed_later_are_not_waited_for,
		.init = begin_with_files)
{
	uint32_t file;

	step_files();
	cr_expect(bench_perform_aligned(&b, 1));
	b.files_disk.is_hung = true;
	cr_assert(operator_files_open(b.files, "out/next", &file));
	operator_files_close(b.files, file);
	step_files();
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	bench_release(&b, 1);
}

/* SC-3. */
Test(subtask_checkpoint_coordinator, a_file_of_its_operators_that_fails_is_declined,
		.init = begin_with_files)
{
	b.files_disk.fail_ops = 1 << STORE_SYNC;
	b.files_disk.fail_nth = 1;
	b.files_disk.fail_status = -EIO;
	cr_expect(bench_perform_aligned(&b, 1));
	step_files();
	bench_turn(&b, 100);
	cr_expect_eq(strncmp(b.said, "decline1:", 9), 0, "%s", b.said);
	cr_expect_not_null(strstr(b.text, "Input/output error"), "%s", b.text);
}
