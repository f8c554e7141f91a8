#include "tests/support/subtask_bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
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

TestSuite(subtask_channel_state, .init = begin, .fini = end, .timeout = 20);

static bool has(int64_t id)
{
	return channel_state_writer_has(b.channel_state, id);
}

static void prepare(int64_t id)
{
	struct event e = bench_barrier(&b, id, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);

	subtask_checkpoint_coordinator_prepare(b.coordinator, &e);
	cr_assert(has(id));
}

/* ---- what is not performed leaves no channel state ---- */

/* Step 0 of 14.2. */
Test(subtask_channel_state, goes_with_what_came_too_late_or_was_aborted_before)
{
	cr_expect(bench_perform_aligned(&b, 5));
	cr_expect_not(bench_perform_unaligned(&b, 4));
	cr_expect_not(has(4));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 7);
	cr_expect_not(bench_perform_unaligned(&b, 7));
	cr_expect_not(has(7));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack5");
	bench_release(&b, 5);
}

/* 14.5; BH-7. */
Test(subtask_channel_state, goes_with_an_abort_also_when_it_was_only_prepared)
{
	prepare(1);
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 1);
	cr_expect_not(has(1));
	prepare(2);
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 3, DECLINE_SUBSUMED);
	cr_expect_not(has(2));
	EXPECT_SAID(&b, "decline3:3");
	prepare(4);
	bench_finish_input(&b, 4); /* nobody has begun it */
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 4);
}

Test(subtask_channel_state, goes_when_no_writer_is_free)
{
	cr_expect(bench_perform_aligned(&b, 1));
	cr_expect(bench_perform_aligned(&b, 2));
	cr_expect(bench_perform_unaligned(&b, 3));
	EXPECT_SAID(&b, "decline3:0");
	cr_expect(strstr(b.text, "writes of an earlier one have not come back") != NULL, "%s",
			b.text);
	cr_expect_not(has(3));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1 ack2");
	bench_release(&b, 1);
	bench_release(&b, 2);
}

/* The lanes to consumers who take nothing are full some time. */
Test(subtask_channel_state, goes_when_the_barrier_cannot_leave)
{
	int64_t id = 0;
	char expected[64];

	do {
		b.said[0] = '\0';
		cr_expect(bench_perform_aligned(&b, ++id));
		bench_turn(&b, 100);
		if (b.said[0] == 'a')
			bench_release(&b, id);
		cr_assert_lt(id, 1000);
	} while (b.said[0] == 'a');
	snprintf(expected, sizeof(expected), "decline%ld:9", (long)id); /* DECLINE_OTHER */
	EXPECT_SAID(&b, expected);
	cr_expect(bench_perform_unaligned(&b, ++id));
	cr_expect_not(has(id));
	bench_turn(&b, 100);
	snprintf(expected, sizeof(expected), "decline%ld:9", (long)id);
	EXPECT_SAID(&b, expected);
}

/* ---- without any ---- */

Test(subtask_channel_state, is_needed_for_what_can_overtake)
{
	end();
	bench_open(&b, &(struct bench_config){3, true, false, false});
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_timeoutable(&b, 1));
	EXPECT_SAID(&b, "decline1:6");
	cr_expect(strstr(b.text, "keeps no channel state") != NULL, "%s", b.text);
	b.clock.now_ns += 5000000;
	subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
	cr_expect(bench_perform_unaligned(&b, 2));
	EXPECT_SAID(&b, "decline2:6");
	cr_expect(bench_perform_aligned(&b, 3));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack3");
	bench_release(&b, 3);
}

/* ---- input ---- */

/* One byte counts. */
Test(subtask_channel_state, of_a_single_byte_makes_a_checkpoint_unaligned)
{
	const uint8_t byte = 7;

	cr_expect(bench_perform_unaligned(&b, 1));
	channel_state_writer_add_input_partial(
			b.channel_state, 1, (struct channel_info){0, 1}, &byte, 1);
	bench_finish_input(&b, 1);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	cr_expect(b.metrics.is_unaligned);
	cr_expect_eq(b.metrics.bytes_persisted_during_alignment, 1);
	bench_release(&b, 1);
}

/* BH-7: only what still waits for input goes with a younger one. */
Test(subtask_channel_state, that_is_known_outlives_aborts_of_younger_ones)
{
	b.disks[BENCH_WRITERS].is_hung = true;
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_unaligned(&b, 1));
	bench_finish_input(&b, 1);
	bench_turn(&b, 10);
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 2, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline2:3");
	fault_store_settle(&b.disks[BENCH_WRITERS]);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	bench_release(&b, 1);
}

/* CS-15. */
Test(subtask_channel_state, that_is_not_known_yet_goes_with_the_abort_of_a_younger_one_not_begun)
{
	cr_expect(bench_perform_unaligned(&b, 1));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 2);
	bench_turn(&b, 10);
	EXPECT_SAID(&b, "decline1:3");
	cr_expect_not(has(1));
	bench_finish_input(&b, 1);
	bench_turn(&b, 10);
	EXPECT_SAID(&b, "");
}

/* BH-7: the very first one, too. */
Test(subtask_channel_state, that_is_not_known_yet_goes_with_the_end_of_a_younger_one_in_line)
{
	cr_expect(bench_perform_unaligned(&b, 1));
	subtask_checkpoint_coordinator_abort_on_barrier(
			b.coordinator, 2, DECLINE_INPUT_END_OF_STREAM);
	bench_turn(&b, 10);
	cr_expect_not_null(strstr(b.said, "decline1:"), "%s", b.said);
	cr_expect_str_eq(b.text, "a younger checkpoint was aborted");
	cr_expect_not(has(1));
}

/* CS-12: 14.2 lets it begin, but there is no channel state below the largest aborted id. */
Test(subtask_channel_state, is_not_kept_below_the_largest_aborted_id)
{
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 5);
	cr_expect(bench_perform_unaligned(&b, 4));
	bench_turn(&b, 10);
	EXPECT_SAID(&b, "decline4:3");
	cr_expect(bench_perform_unaligned(&b, 6));
	bench_finish_input(&b, 6);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack6");
	bench_release(&b, 6);
}

/* ---- the timer of the outputs ---- */

static uint64_t deadline(void)
{
	return subtask_checkpoint_coordinator_deadline_ns(b.coordinator);
}

Test(subtask_channel_state, has_a_timer_only_while_a_timeoutable_barrier_is_the_newest)
{
	cr_expect_eq(deadline(), UINT64_MAX);
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_timeoutable(&b, 1));
	cr_expect_neq(deadline(), UINT64_MAX);
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 1, DECLINE_SUBSUMED);
	cr_expect_eq(deadline(), UINT64_MAX);
	cr_expect(bench_perform_timeoutable(&b, 2));
	cr_expect_neq(deadline(), UINT64_MAX);
	cr_expect(bench_perform_aligned(&b, 3));
	cr_expect_eq(deadline(), UINT64_MAX);
	cr_expect(bench_perform_timeoutable(&b, 4));
	subtask_checkpoint_coordinator_stop(b.coordinator);
	cr_expect_eq(deadline(), UINT64_MAX);
}

/* SP-15. */
Test(subtask_channel_state, is_not_troubled_by_the_abort_of_an_older_one)
{
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_timeoutable(&b, 2));
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 1, DECLINE_SUBSUMED);
	EXPECT_SAID(&b, "decline1:3");
	cr_expect_neq(deadline(), UINT64_MAX);
	b.clock.now_ns += 5000000;
	subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	cr_expect_eq(b.metrics.mode, CHECKPOINT_TIMED_OUT);
	bench_release(&b, 2);
}

Test(subtask_channel_state, tells_a_barrier_that_was_held_at_its_timeout_from_one_that_had_left)
{
	for (int64_t id = 1; id <= 2; id++) {
		bool is_held = id == 2;

		for (uint32_t i = 0; i < 2; i++)
			bench_fill(&b, i, 1);
		cr_expect(bench_perform_timeoutable(&b, id));
		for (uint32_t i = 0; i < 2 && !is_held; i++)
			bench_drain(&b, i);
		b.clock.now_ns += 5000000;
		subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
		bench_turn(&b, 100);
		EXPECT_SAID(&b, is_held ? "ack2" : "ack1");
		cr_expect_eq(b.metrics.mode, is_held ? CHECKPOINT_TIMED_OUT : CHECKPOINT_ALIGNED);
		bench_release(&b, id);
		for (uint32_t i = 0; i < 2; i++)
			bench_stop_consumers(&b, i);
	}
}

/* SP-12, CS-8: on whichever output it waits. */
Test(subtask_channel_state, is_complete_when_an_unaligned_barrier_goes_past_one_that_waits)
{
	for (uint32_t i = 0; i < 2; i++)
		bench_fill(&b, i, 1);
	cr_expect(bench_perform_timeoutable(&b, 1));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "");
	cr_expect(bench_perform_unaligned(&b, 2));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack1");
	bench_finish_input(&b, 2);
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	bench_release(&b, 1);
	bench_release(&b, 2);
}

/* ---- remembered aborts (14.5) ---- */

Test(subtask_channel_state, only_the_newest_aborts_are_remembered)
{
	enum { MAX = CHECKPOINTS_IN_FLIGHT_MAX };

	end();
	bench_open(&b, &(struct bench_config){MAX, true, true, false});
	for (int64_t id = 5; id <= 5 + MAX; id++)
		subtask_checkpoint_coordinator_notify_aborted(b.coordinator, id);
	cr_expect(bench_perform_aligned(&b, 5)); /* the oldest is forgotten */
	for (int64_t id = 6; id <= 5 + MAX; id++)
		cr_expect_not(bench_perform_aligned(&b, id));
	cr_expect(bench_perform_aligned(&b, 6 + MAX));
	bench_turn(&b, 100);
	bench_release(&b, 5);
	bench_release(&b, 6 + MAX);
}

Test(subtask_channel_state, an_abort_told_twice_is_remembered_once)
{
	static const int64_t ids[] = {5, 6, 5, 7, 8};

	for (uint32_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		subtask_checkpoint_coordinator_notify_aborted(b.coordinator, ids[i]);
	for (int64_t id = 6; id <= 8; id++)
		cr_expect_not(bench_perform_aligned(&b, id));
}

/* ---- what else a coordinator says and does ---- */

/* TK-6a. */
Test(subtask_channel_state, a_cancel_goes_to_every_consumer_and_nothing_else)
{
	struct input_item item;

	subtask_checkpoint_coordinator_cancel_downstream(b.coordinator, 9);
	for (uint32_t i = 0; i < 2; i++)
		cr_expect_eq(output_gate_counters(b.outputs[i])->events, 1);
	output_gate_poll(b.outputs[1], 0);
	edge_expect_values(&b.second, 0, 0, 4);
	cr_assert(edge_next(&b.second, 0, &item));
	cr_expect_eq(item.event->kind, EVENT_CANCEL);
	cr_expect_eq(item.event->checkpoint_id, 9);
	EXPECT_SAID(&b, "");
}

Test(subtask_channel_state, that_fails_is_declined_with_the_words_of_the_disk)
{
	b.disks[BENCH_WRITERS].fail_nth = 1;
	b.disks[BENCH_WRITERS].fail_status = -ENOSPC;
	bench_fill(&b, 0, 1);
	cr_expect(bench_perform_unaligned(&b, 1));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "decline1:6");
	cr_expect(strstr(b.text, "No space left") != NULL, "%s", b.text);
}

/* A writer whose disk has not answered is not taken, while another one is free. */
Test(subtask_channel_state, states_go_to_a_writer_that_is_at_rest)
{
	b.disks[0].is_hung = true;
	cr_expect(bench_perform_aligned(&b, 1));
	bench_turn(&b, 10);
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 1);
	cr_expect(bench_perform_aligned(&b, 2));
	bench_turn(&b, 100);
	EXPECT_SAID(&b, "ack2");
	bench_release(&b, 2);
}
