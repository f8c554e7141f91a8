#include "tests/support/barrier_run.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- 16.5: states x events x older, equal, newer id ---- */


/* Three channels. */
static const struct barrier_row ROWS[] = {
		/* nothing known yet */
		{"fresh, barrier", "", "b5@1", "block1", 5, 5},
		{"fresh, cancel", "", "x5@1", "abort5:cancelled", 5, 0},
		{"fresh, end", "", "e@1", "", -1, 0},
		/* waiting: 5 is complete */
		{"done, older barrier", "b5@0 b5@1 b5@2", "b4@1", "", 5, 0},
		{"done, same barrier", "b5@0 b5@1 b5@2", "b5@1", "", 5, 0},
		{"done, newer barrier", "b5@0 b5@1 b5@2", "b6@1", "block1", 6, 6},
		{"done, older cancel", "b5@0 b5@1 b5@2", "x4@1", "", 5, 0},
		{"done, same cancel", "b5@0 b5@1 b5@2", "x5@1", "", 5, 0},
		{"done, newer cancel", "b5@0 b5@1 b5@2", "x6@1", "abort6:cancelled", 6, 0},
		{"done, end", "b5@0 b5@1 b5@2", "e@1", "", 5, 0},
		/* waiting: 5 was cancelled */
		{"cancelled, older barrier", "b5@0 x5@1", "b4@2", "", 5, 0},
		{"cancelled, same barrier", "b5@0 x5@1", "b5@2", "", 5, 0},
		{"cancelled, newer barrier", "b5@0 x5@1", "b6@0", "block0", 6, 6},
		{"cancelled, older cancel", "b5@0 x5@1", "x4@2", "", 5, 0},
		{"cancelled, same cancel", "b5@0 x5@1", "x5@2", "", 5, 0},
		{"cancelled, newer cancel", "b5@0 x5@1", "x6@2", "abort6:cancelled", 6, 0},
		{"cancelled, end", "b5@0 x5@1", "e@2", "", 5, 0},
		/* collecting: one of three */
		{"one, older barrier", "b5@0", "b4@1", "", 5, 5},
		{"one, same barrier", "b5@0", "b5@1", "block1", 5, 5},
		{"one, newer barrier", "b5@0", "b6@1", "resume0 abort5:subsumed block1", 6, 6},
		{"one, older cancel", "b5@0", "x4@1", "", 5, 5},
		{"one, same cancel", "b5@0", "x5@1", "resume0 abort5:cancelled", 5, 0},
		{"one, newer cancel", "b5@0", "x6@1", "resume0 abort6:cancelled", 6, 0},
		{"one, end", "b5@0", "e@1", "", 5, 5},
		/* collecting: two of three */
		{"two, older barrier", "b5@0 b5@1", "b4@2", "", 5, 5},
		{"two, last barrier", "b5@0 b5@1", "b5@2",
				"block2 trigger5 resume0 resume1 resume2", 5, 0},
		{"two, newer barrier", "b5@0 b5@1", "b6@2",
				"resume0 resume1 abort5:subsumed block2", 6, 6},
		{"two, same cancel", "b5@0 b5@1", "x5@2", "resume0 resume1 abort5:cancelled", 5, 0},
		{"two, newer cancel", "b5@0 b5@1", "x7@2", "resume0 resume1 abort7:cancelled", 7,
				0},
		{"two, last end", "b5@0 b5@1", "e@2", "trigger5 resume0 resume1", 5, 0},
		/* collecting, begun by the end of a channel */
		{"ended, barrier", "e@0 b5@1", "b5@2", "block2 trigger5 resume1 resume2", 5, 0},
		{"ended while collecting, barrier", "b5@1 e@0", "b5@2",
				"block2 trigger5 resume1 resume2", 5, 0},
		{"ended while collecting, cancel", "b5@1 e@0", "x5@2", "resume1 abort5:cancelled",
				5, 0},
		{"ended behind its barrier", "b5@0 e@0 b5@1", "b5@2",
				"block2 trigger5 resume1 resume2", 5, 0},
		/* one channel is left */
		{"last channel, barrier", "e@0 e@1", "b5@2", "block2 trigger5 resume2", 5, 0},
		{"last channel, cancel", "e@0 e@1", "x5@2", "abort5:cancelled", 5, 0},
		{"last channel, end", "e@0 e@1", "e@2", "", -1, 0},
		/* asked for by the coordinator (TK-4) */
		{"rpc, first", "", "r5@0", "", 5, 5},
		{"rpc, last", "r5@0 r5@1", "r5@2", "trigger5", 5, 0},
		{"rpc, all but a blocked one", "b5@0", "r5@0 r5@1 r5@2", "trigger5 resume0", 5, 0},
		{"rpc, newer", "b5@0", "r6@1", "resume0 abort5:subsumed", 6, 6},
		{"rpc, stale", "b5@0 x5@1", "r5@2", "", 5, 0},
};

Test(barrier_handler, every_fact_in_every_state_leads_to_the_decisions_of_its_rule)
{
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		const struct barrier_row *row = &ROWS[i];
		struct barrier_run r;

		barrier_run_open(&r, 3, true);
		barrier_run_expect(&r, row);
	}
}

/* ---- 16.6: the same, with announcements, timeouts and unaligned barriers ---- */

static const struct barrier_row ALTERNATING[] = {
		/* waiting, aligned */
		{"AW, announcement", "", "a5@1", "", 5, 5},
		{"AW, stale announcement", "a5@1 x5@0", "a5@2", "", 5, 0},
		{"AW, newer announcement", "a5@1", "a6@2", "abort5:subsumed", 6, 6},
		{"AW, announced barrier", "a5@1", "t5@1", "block1", 5, 5},
		{"AW, end", "a5@1", "e@0", "", 5, 5},
		{"AW, cancel", "a5@1", "x5@0", "abort5:cancelled", 5, 0},
		{"AW, timer", "a5@1 a5@2 +100@0", "*@0", "convert1 convert2", 5, 5},
		{"AW, timer not yet", "a5@1 +99@0", "*@0", "", 5, 5},
		{"AW, late barrier", "+101@0", "t5@1", "block1 prepare5u start5 trigger5u", 5, 5},
		{"AW, barrier in time", "+100@0", "t5@1", "block1", 5, 5},
		{"AW, unaligned", "a5@1", "u5@0", "convert1 prepare5u start5 trigger5u", 5, 5},
		{"AW, announcement of an aborted one", "a5@1 x5@0 a6@2 +100@0", "*@0",
				"convert2", 6, 6},
		{"AW, late announcement of an aborted one", "a5@1 x5@0 a5@2 a6@1 +100@0", "*@0",
				"convert1", 6, 6},
		{"AW, timer, the one before was collected", "t5@0 x5@1 a6@1 +100@0", "*@0",
				"convert1", 6, 6},
		{"AW, the announced channel ended", "a5@1 a5@0 e@1 +100@0", "*@0", "convert0", 5,
				5},
		{"AW, first channel knows newer", "n6@0", "u5@1", "abort5:seen-newer", 5, 0},
		{"AW, channel knows newer", "n6@2", "u5@0", "abort5:seen-newer", 5, 0},
		/* collecting, aligned */
		{"AC, all", "t5@0 t5@1", "t5@2",
				"block2 prepare5 trigger5 resume0 resume1 resume2 all5", 5, 0},
		{"AC, all, too late to overtake", "t5@0 t5@1 +101@0", "t5@2",
				"block2 prepare5 trigger5 resume0 resume1 resume2 all5", 5, 0},
		{"AC, all, not timeoutable", "b5@0 b5@1", "b5@2",
				"block2 trigger5 resume0 resume1 resume2 all5", 5, 0},
		{"AC, late barrier", "t5@0 a5@1 +101@0", "t5@2",
				"block2 convert1 prepare5u start5 trigger5u", 5, 5},
		{"AC, timer", "t5@0 a5@1 +100@0", "*@0",
				"convert1 prepare5u start5 trigger5u", 5, 5},
		{"AC, timer, channel knows newer", "t5@0 n6@1 +100@0", "*@0",
				"resume0 abort5:seen-newer", 5, 0},
		{"AC, unaligned", "b5@0", "u5@1", "prepare5u start5 trigger5u", 5, 5},
		{"AC, end beyond the timeout", "t5@0 +101@0", "e@1",
				"prepare5u start5 trigger5u", 5, 5},
		{"AC, end in time", "t5@0 +100@0", "e@1", "", 5, 5},
		{"AC, last end", "t5@0 t5@1", "e@2", "prepare5 trigger5 resume0 resume1 all5", 5,
				0},
		{"AC, newer unaligned", "t5@0", "u6@1",
				"resume0 abort5:subsumed prepare6u start6 trigger6u", 6, 6},
		/* waiting, unaligned: the timer ran before any barrier */
		{"UW, announcement", "a5@1 +100@0 *@0", "a5@2", "convert2", 5, 5},
		{"UW, converted barrier", "a5@1 +100@0 *@0", "c5@1",
				"block1-behind prepare5u start5 trigger5u", 5, 5},
		{"UW, end", "a5@1 +100@0 *@0", "e@0", "", 5, 5},
		{"UW, cancel", "a5@1 +100@0 *@0", "x5@0", "abort5:cancelled", 5, 0},
		{"UW, stale converted barrier", "a5@1 +100@0 *@0 x5@0", "c5@1", "", 5, 0},
		/* collecting, unaligned */
		{"UC, announcement", "u5@0", "a5@1", "convert1", 5, 5},
		{"UC, barrier", "u5@0", "u5@1", "", 5, 5},
		{"UC, converted barrier", "u5@0 a5@1", "c5@1", "block1-behind", 5, 5},
		{"UC, all", "u5@0 u5@1", "u5@2", "stop5 all5", 5, 0},
		{"UC, all, some blocked", "u5@0 a5@1 c5@1", "u5@2", "stop5 resume1 all5", 5, 0},
		{"UC, last end", "u5@0 u5@1", "e@2", "stop5 all5", 5, 0},
		{"UC, end", "u5@0", "e@1", "", 5, 5},
		{"UC, timer", "t5@0 +101@0 t5@1", "*@0", "", 5, 5},
		{"UC, cancel", "u5@0", "x5@1", "stop5 abort5:cancelled", 5, 0},
		{"UC, newer cancel", "u5@0", "x6@1", "stop5 abort6:cancelled", 6, 0},
		{"UC, newer unaligned", "u5@0", "u6@1",
				"stop5 abort5:subsumed prepare6u start6 trigger6u", 6, 6},
		{"UC, stale unaligned", "u5@0", "u4@1", "", 5, 5},
		{"done, late unaligned", "u5@0 u5@1 u5@2", "u5@1", "", 5, 0},
		{"done, next is aligned", "u5@0 u5@1 u5@2", "b6@1", "block1", 6, 6},
		{"done, no timer", "t5@0 t5@1 t5@2 +100@0", "*@0", "", 5, 0},
		{"single channel left", "e@0 e@1", "u5@2",
				"prepare5u start5 trigger5u stop5 all5", 5, 0},
};

Test(barrier_handler, announced_timed_out_and_unaligned_barriers_follow_their_rules)
{
	for (size_t i = 0; i < sizeof(ALTERNATING) / sizeof(ALTERNATING[0]); i++) {
		const struct barrier_row *row = &ALTERNATING[i];
		struct barrier_run r;

		barrier_run_open(&r, 3, true);
		r.is_alternating = true;
		barrier_run_expect(&r, row);
	}
}

/* BH-2: by the time stamp of the checkpoint, whenever the announcement comes. */
Test(barrier_handler, the_timer_is_due_at_the_timeout_of_the_checkpoint)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	cr_assert_eq(barrier_handler_deadline_ns(r.handler), UINT64_MAX);
	barrier_run_tell(&r, "+30@0 a1@0");
	cr_assert_eq(barrier_handler_deadline_ns(r.handler), 100000000);
	barrier_run_tell(&r, "+200@0 a2@0"); /* too late already: due at once */
	cr_assert_eq(barrier_handler_deadline_ns(r.handler), r.now_ns);
	barrier_run_tell(&r, "x2@1");
	cr_assert_eq(barrier_handler_deadline_ns(r.handler), UINT64_MAX);
	barrier_run_tell(&r, "a3@0");
	barrier_handler_close(r.handler);
	cr_assert_eq(barrier_handler_deadline_ns(r.handler), UINT64_MAX);
	barrier_run_close(&r);
}

static bool has_timed_out(const struct barrier_run *r, int64_t id)
{
	return barrier_handler_metrics(r->handler, id, r->now_ns).has_timed_out;
}

Test(barrier_handler, tells_a_checkpoint_that_timed_out_from_one_that_came_unaligned)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	barrier_run_tell(&r, "t5@0");
	cr_assert(!has_timed_out(&r, 5));
	barrier_run_tell(&r, "+101@0 t5@1");
	cr_assert(has_timed_out(&r, 5));
	barrier_run_tell(&r, "u6@0");
	cr_assert(!has_timed_out(&r, 6));
	barrier_run_tell(&r, "u6@1 u6@2");
	cr_assert(!has_timed_out(&r, 6));
	barrier_run_close(&r);
}

/* IC-9. */
Test(barrier_handler, overtakes_from_the_unaligned_snapshot_to_the_last_barrier)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	barrier_run_tell(&r, "t5@0");
	cr_assert_not(barrier_handler_is_overtaking(r.handler)); /* it aligns */
	barrier_run_tell(&r, "a6@1 +100@0 *@0");
	cr_assert_not(barrier_handler_is_overtaking(r.handler)); /* no barrier has come */
	barrier_run_tell(&r, "c6@1");
	cr_assert(barrier_handler_is_overtaking(r.handler));
	barrier_run_tell(&r, "t6@0 t6@2");
	cr_assert_not(barrier_handler_is_overtaking(r.handler));
	barrier_run_close(&r);
}

/* ---- single rules ---- */

Test(barrier_handler, the_checkpoint_is_triggered_before_any_channel_goes_on)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	cr_assert_str_eq(barrier_run_tell(&r, "b1@1 b1@0"),
			"block1 block0 trigger1 resume0 resume1");
	barrier_run_close(&r);
}

/* BH-1: its channel is not blocked, so there is nothing to resume. */
Test(barrier_handler, a_late_barrier_of_an_aborted_checkpoint_changes_nothing)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	barrier_run_tell(&r, "b1@1 x1@0 b2@1");
	cr_assert_str_eq(barrier_run_tell(&r, "b1@2"), "");
	cr_assert_eq(barrier_run_pending(&r), 2);
	cr_assert_str_eq(barrier_run_tell(&r, "b2@0 b2@2"),
			"block0 block2 trigger2 resume0 resume1 resume2");
	barrier_run_close(&r);
}

/* BH-7. */
Test(barrier_handler, a_newer_cancel_marker_ends_an_older_checkpoint_with_one_notification)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	cr_assert_str_eq(barrier_run_tell(&r, "b1@0 b1@1 x3@2"),
			"block0 block1 resume0 resume1 abort3:cancelled");
	cr_assert_str_eq(barrier_run_tell(&r, "b1@2 b2@0 b3@0"), "");
	cr_assert_str_eq(barrier_run_tell(&r, "b4@0"), "block0");
	barrier_run_close(&r);
}

/* BH-8. */
Test(barrier_handler, an_end_counts_for_the_pending_checkpoint_and_for_no_later_one)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	cr_assert_str_eq(barrier_run_tell(&r, "b1@0 e@1 b1@2"),
			"block0 block2 trigger1 resume0 resume2");
	cr_assert_eq(barrier_handler_open_count(r.handler), 2);
	cr_assert_not(barrier_handler_is_channel_open(r.handler, 1));
	cr_assert_str_eq(barrier_run_tell(&r, "b2@0 b2@2"),
			"block0 block2 trigger2 resume0 resume2");
	barrier_run_close(&r);
}

/* BH-8: the target is fixed when the checkpoint starts. */
Test(barrier_handler, a_channel_that_ended_before_the_first_barrier_is_not_waited_for)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	cr_assert_str_eq(barrier_run_tell(&r, "e@2 b1@0"), "block0");
	cr_assert_str_eq(barrier_run_tell(&r, "e@1"), "trigger1 resume0");
	barrier_run_close(&r);
}

/* BH-4, BH-8. */
Test(barrier_handler, a_channel_that_the_coordinator_stood_in_for_and_that_ends_counts_once)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	cr_assert_str_eq(barrier_run_tell(&r, "r1@0 e@0 b1@1"), "block1");
	cr_assert_str_eq(barrier_run_tell(&r, "b1@2"), "block2 trigger1 resume1 resume2");
	barrier_run_close(&r);
}

/* BH-8. */
Test(barrier_handler, without_finished_tasks_an_end_aborts_what_is_pending)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, false);
	cr_assert_str_eq(barrier_run_tell(&r, "e@2"), "");
	cr_assert_str_eq(barrier_run_tell(&r, "b1@0 e@1"), "block0 resume0 abort1:end-of-stream");
	cr_assert_eq(barrier_run_pending(&r), 0);
	cr_assert_str_eq(barrier_run_tell(&r, "b2@0"), "block0 trigger2 resume0");
	barrier_run_close(&r);
}

Test(barrier_handler, ids_may_be_as_large_as_they_come)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	cr_assert_str_eq(barrier_run_tell(&r, "b9223372036854775806@0 b9223372036854775807@1"),
			"block0 resume0 abort9223372036854775806:subsumed block1");
	barrier_run_close(&r);
}

/* ---- 16.4 ---- */

static void expect_metrics(struct barrier_run *r, int64_t id, int64_t duration_ns, int64_t delay_ns,
		int64_t bytes)
{
	struct alignment_metrics m = barrier_handler_metrics(r->handler, id, r->now_ns);

	cr_expect_eq(m.alignment_duration_ns, duration_ns, "duration %" PRId64,
			m.alignment_duration_ns);
	cr_expect_eq(m.start_delay_ns, delay_ns, "delay %" PRId64, m.start_delay_ns);
	cr_expect_eq(m.bytes_processed, bytes, "bytes %" PRId64, m.bytes_processed);
}

Test(barrier_handler, alignment_is_measured_from_the_first_channel_to_the_last)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	r.timestamp_ms = 100;
	r.wall_ms = 130;
	r.now_ns = 1000;
	barrier_handler_add_bytes(r.handler, 7); /* before the alignment */
	barrier_run_tell(&r, "b1@0");
	r.now_ns = 1400;
	barrier_handler_add_bytes(r.handler, 50);
	expect_metrics(&r, 1, 400, 30000000, 50);
	r.now_ns = 2500;
	barrier_run_tell(&r, "b1@1");
	barrier_handler_add_bytes(r.handler, 9);
	r.now_ns = 9000;
	expect_metrics(&r, 1, 1500, 30000000, 50);
	barrier_run_close(&r);
}

Test(barrier_handler, alignment_that_an_end_began_or_ended_is_measured_too)
{
	struct barrier_run r;

	barrier_run_open(&r, 3, true);
	r.now_ns = 100;
	barrier_run_tell(&r, "b1@0");
	r.now_ns = 300;
	barrier_run_tell(&r, "b1@1");
	r.now_ns = 600;
	barrier_run_tell(&r, "e@2");
	expect_metrics(&r, 1, 500, 0, 0);
	barrier_run_close(&r);
}

Test(barrier_handler, alignment_of_a_single_channel_takes_no_time)
{
	struct barrier_run r;

	barrier_run_open(&r, 1, true);
	r.now_ns = 50;
	r.wall_ms = 4;
	r.timestamp_ms = 1;
	barrier_run_tell(&r, "b1@0");
	r.now_ns = 90;
	barrier_handler_add_bytes(r.handler, 5);
	expect_metrics(&r, 1, 0, 3000000, 0);
	barrier_run_close(&r);
}

Test(barrier_handler, a_barrier_from_a_clock_ahead_of_ours_has_no_start_delay)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	r.timestamp_ms = 500;
	r.wall_ms = 499;
	barrier_run_tell(&r, "b1@0");
	expect_metrics(&r, 1, 0, 0, 0);
	barrier_run_close(&r);
}

/* BH-7, BH-8. */
Test(barrier_handler, what_an_end_aborted_is_not_measured)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, false);
	r.now_ns = 10;
	barrier_run_tell(&r, "b1@0");
	r.now_ns = 20;
	barrier_run_tell(&r, "e@1");
	r.now_ns = 50;
	barrier_handler_add_bytes(r.handler, 5);
	expect_metrics(&r, 1, 0, 0, 0);
	barrier_run_close(&r);
}

Test(barrier_handler, a_start_delay_of_a_millisecond_is_one)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	r.timestamp_ms = 498;
	r.wall_ms = 499;
	barrier_run_tell(&r, "b1@0");
	expect_metrics(&r, 1, 0, 1000000, 0);
	barrier_run_close(&r);
}

Test(barrier_handler, metrics_are_those_of_the_newest_checkpoint_and_zero_for_others)
{
	struct barrier_run r;

	barrier_run_open(&r, 2, true);
	r.now_ns = 10;
	r.wall_ms = 2;
	barrier_run_tell(&r, "b1@0");
	barrier_handler_add_bytes(r.handler, 5);
	r.now_ns = 30;
	barrier_run_tell(&r, "b2@1");
	r.now_ns = 35;
	expect_metrics(&r, 1, 0, 0, 0);
	expect_metrics(&r, 2, 5, 2000000, 0);
	barrier_run_tell(&r, "x2@0");
	r.now_ns = 50;
	expect_metrics(&r, 2, 0, 0, 0); /* BH-7 */
	barrier_run_close(&r);
}
