#include "dataplane/task/stream_task.h"

#include "dataplane/channel/output_gate.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/checkpoint/savepoint_locations.h"
#include "tests/sim/mem_store.h"
#include "tests/support/task_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- triggers ---- */

/* TK-3. */
Test(stream_task, a_trigger_at_a_source_sends_the_barrier_and_then_acknowledges)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].poll_count = 2;
	task_fixture_run(&f);
	f.clock.wall_ms += 25;
	struct checkpoint_request request = {.checkpoint_id = 3,
			.timestamp_ms = 1,
			.alignment = ALIGNMENT_ALIGNED,
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE};
	stream_task_trigger_checkpoint(f.task, &request, f.clock.now_ns);
	EXPECT_JOURNAL(&f, "a.barrier:3");
	EXPECT_REPORTS(&f, "");
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack3");
	cr_assert_eq(f.metrics.start_delay_ns, 25000000);
	cr_assert_eq(f.metrics.alignment_duration_ns, 0);
	cr_assert_eq(f.handle_count, 3); /* counters, a value, a list */
	cr_assert_gt(f.metrics.total_bytes, 0);
	task_fixture_expect_values(&f, 1000, 2);
	task_fixture_expect_event(&f, EVENT_BARRIER, 3);
	task_fixture_close(&f);
}

/* 12.3. */
Test(stream_task, a_task_that_does_not_run_declines)
{
	struct task_fixture f;

	task_fixture_init(&f, 1);
	task_fixture_open(&f, 0, NULL, &TASK_EDGE, NULL);
	task_fixture_trigger(&f, 1);
	EXPECT_REPORTS(&f, "decline1:0"); /* DECLINE_TASK_NOT_READY */
	task_fixture_begin(&f);
	stream_task_cancel(f.task);
	task_fixture_trigger(&f, 2);
	EXPECT_REPORTS(&f, "decline2:0");
	EXPECT_JOURNAL(&f, "");
	task_fixture_run(&f);
	task_fixture_expect_nothing(&f);
	task_fixture_close(&f);
}

/* TK-14: its mailbox is closed, though it still waits for a snapshot. */
Test(stream_task, a_task_about_to_end_declines_with_a_reason_of_its_own)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].is_exhausted = true;
	f.chain.probes[0].is_busy = true;
	task_fixture_run(&f);
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	ring_channel_all_processed(f.chain.edge.channels[0][0]);
	stream_task_notify_complete(f.task, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack1+finished");
	task_fixture_trigger(&f, 2);
	EXPECT_REPORTS(&f, "decline2:1"); /* DECLINE_TASK_CLOSING */
	f.chain.probes[0].is_busy = false;
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	task_fixture_close(&f);
}

Test(stream_task, a_consumer_with_too_many_barriers_waiting_makes_it_decline)
{
	struct task_fixture f;
	char text[JOURNAL_BYTES] = "";
	int64_t id = 0;

	task_fixture_begin_source(&f, NULL);
	while (id < 1000 && strncmp(text, "decline", 7) != 0) {
		task_fixture_trigger(&f, ++id);
		task_fixture_run(&f);
		(void)task_fixture_reports(&f, text);
	}
	cr_assert_lt(id, 1000);
	cr_assert_gt(id, CHANNEL_CONTROL_MAX);
	for (int64_t sent = 1; sent < id; sent++) {
		task_fixture_expect_event(&f, EVENT_BARRIER, sent);
		task_fixture_run(&f);
	}
	task_fixture_expect_event(&f, EVENT_CANCEL, id);
	task_fixture_trigger(&f, id + 1);
	task_fixture_run(&f);
	task_fixture_expect_event(&f, EVENT_BARRIER, id + 1);
	task_fixture_close(&f);
}

/* ---- the end of input ---- */

Test(stream_task, a_trigger_during_the_last_words_waits_until_end_of_data_is_out)
{
	struct task_fixture f;
	struct stream_task_config config = {
			.checkpointing = true, .has_finished_tasks = true, .max_concurrent = 4};

	task_fixture_begin_source(&f, &config);
	f.chain.probes[0].is_exhausted = true;
	f.chain.probes[0].finish_refusals = UINT32_MAX;
	task_fixture_run(&f);
	task_fixture_trigger(&f, 1);
	task_fixture_trigger(&f, 2);
	task_fixture_trigger(&f, 3);
	stream_task_notify_aborted(f.task, 2, 0);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "");
	task_fixture_expect_watermark(&f, WEIR_WATERMARK_END);
	task_fixture_expect_nothing(&f);

	f.chain.probes[0].finish_refusals = 0;
	f.keeps_state = true;
	task_fixture_run(&f);
	task_fixture_expect_event(&f, EVENT_END_OF_DATA, 0);
	task_fixture_expect_event(&f, EVENT_BARRIER, 1);
	task_fixture_expect_event(&f, EVENT_BARRIER, 3);
	task_fixture_expect_nothing(&f);
	/* One snapshot at a time; the other is answered too. */
	EXPECT_REPORTS(&f, "end-of-data decline3:0 ack1+finished");
	task_fixture_close(&f);
}

Test(stream_task, more_triggers_than_can_be_in_flight_are_declined_not_lost)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].is_exhausted = true;
	f.chain.probes[0].finish_refusals = UINT32_MAX;
	task_fixture_run(&f);
	for (int64_t id = 1; id <= CHECKPOINTS_IN_FLIGHT_MAX; id++)
		task_fixture_trigger(&f, id);
	EXPECT_REPORTS(&f, "");
	task_fixture_trigger(&f, 99);
	EXPECT_REPORTS(&f, "decline99:0");
	task_fixture_close(&f);
}

/* TK-12. */
Test(stream_task, event_time_ends_before_operators_finish_and_that_before_end_of_data)
{
	struct task_fixture f;

	task_fixture_init(&f, 2);
	task_fixture_open(&f, 0, NULL, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	f.chain.probes[0].is_exhausted = true;
	f.chain.probes[1].finish_count = 1;
	task_fixture_run(&f);
	EXPECT_JOURNAL(&f, "a.watermark:9223372036854775807 b.watermark:9223372036854775807 "
			   "a.finish b.finish");
	EXPECT_REPORTS(&f, "end-of-data");
	task_fixture_expect_watermark(&f, WEIR_WATERMARK_END);
	task_fixture_expect_values(&f, 1000, 1);
	task_fixture_expect_event(&f, EVENT_END_OF_DATA, 0);
	task_fixture_close(&f);
}

/* TK-13a, IG-1. */
Test(stream_task, a_barrier_behind_the_end_of_data_waits_for_the_last_words)
{
	struct task_fixture f;
	struct event end = edge_event(EVENT_END_OF_DATA), barrier = edge_barrier(4);

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	f.chain.probes[0].finish_refusals = UINT32_MAX;
	task_fixture_open(&f, 1, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	cr_assert_not(output_gate_is_all_processed(f.inputs[0].out[0]));
	task_fixture_send(&f, 0, 0, &end);
	task_fixture_send(&f, 0, 0, &barrier);
	task_fixture_run(&f);
	cr_assert(output_gate_is_all_processed(f.inputs[0].out[0]));
	EXPECT_REPORTS(&f, "");
	f.chain.probes[0].finish_refusals = 0;
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack4+finished");
	task_fixture_expect_watermark(&f, WEIR_WATERMARK_END);
	task_fixture_expect_event(&f, EVENT_END_OF_DATA, 0);
	task_fixture_expect_event(&f, EVENT_BARRIER, 4);
	task_fixture_close(&f);
}

/* TK-12, PL-6: no last words, so they have not been said either. */
Test(stream_task, one_input_that_does_not_drain_spares_the_last_words)
{
	struct task_fixture f;
	struct event drain = edge_event(EVENT_END_OF_DATA), no_drain = drain;
	struct event last = edge_event(EVENT_END_OF_PARTITION);

	no_drain.stop_mode = STOP_NO_DRAIN;
	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	task_fixture_open(&f, 2, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	task_fixture_send(&f, 0, 0, &no_drain);
	task_fixture_send(&f, 1, 0, &drain);
	task_fixture_run(&f);
	EXPECT_JOURNAL(&f, "");
	EXPECT_REPORTS(&f, "end-of-data");
	task_fixture_send(&f, 0, 0, &last);
	task_fixture_send(&f, 1, 0, &last);
	task_fixture_run(&f);
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack1");
	task_fixture_close(&f);
}

/* What the worker does when it is asked: the releases that wait are handed in. */
static void hand_in_release(struct task_reporter *r)
{
	struct task_fixture *f = (struct task_fixture *)((char *)r -
			offsetof(struct task_fixture, reporter));

	f->has_state = false;
	stream_task_release_state(f->task, f->acked_id);
}

Test(stream_task, takes_a_trigger_that_came_together_with_the_release_of_the_answer_before)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.keeps_state = true;
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	f.reporter.collect = hand_in_release;
	task_fixture_trigger(&f, 2);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack1 ack2");
	f.keeps_state = false;
	task_fixture_close(&f);
}

/* TK-13, TK-9. */
Test(stream_task, only_a_checkpoint_behind_its_end_releases_it)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	f.chain.probes[0].is_exhausted = true;
	task_fixture_run(&f);
	ring_channel_all_processed(f.chain.edge.channels[0][0]);
	stream_task_notify_complete(f.task, 1); /* taken before the end */
	task_fixture_trigger(&f, 2);
	task_fixture_run(&f);
	stream_task_notify_complete(f.task, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack1 end-of-data ack2+finished");
	stream_task_notify_aborted(f.task, 3, 2); /* it missed the completion of 2 (TK-10) */
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	EXPECT_JOURNAL(&f, "a.barrier:1 a.watermark:9223372036854775807 a.finish a.complete:1 "
			   "a.barrier:2 a.complete:2 a.aborted:3");
	cr_assert(stream_task_is_ended(f.task));
	task_fixture_close(&f);
}

/* TK-13, TK-14. */
Test(stream_task, end_of_partition_goes_out_last_and_waits_for_the_work_of_operators)
{
	struct task_fixture f;
	struct stream_task_config config = {.checkpointing = false, .has_finished_tasks = true};

	task_fixture_begin_source(&f, &config);
	f.chain.probes[0].is_exhausted = true;
	f.chain.probes[0].is_busy = true;
	task_fixture_run(&f);
	task_fixture_expect_watermark(&f, WEIR_WATERMARK_END);
	task_fixture_expect_event(&f, EVENT_END_OF_DATA, 0);
	task_fixture_expect_nothing(&f);
	f.chain.probes[0].is_busy = false;
	task_fixture_run(&f);
	task_fixture_expect_event(&f, EVENT_END_OF_PARTITION, 0);
	EXPECT_REPORTS(&f, "end-of-data FINISHED");
	task_fixture_close(&f);
}

/* TK-15, TK-14. */
Test(stream_task, without_finished_tasks_the_end_waits_for_no_checkpoint)
{
	struct task_fixture f;
	struct stream_task_config config = {.checkpointing = true, .has_finished_tasks = false};

	task_fixture_begin_source(&f, &config);
	f.store.is_hung = true;
	task_fixture_trigger(&f, 1);
	f.chain.probes[0].is_exhausted = true;
	task_fixture_run(&f);
	fault_store_settle(&f.store);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data FINISHED");
	task_fixture_close(&f);
}

/* TK-14, SC-3. */
Test(stream_task, a_snapshot_that_fails_while_the_task_ends_is_not_declined)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].is_exhausted = true;
	task_fixture_run(&f);
	ring_channel_all_processed(f.chain.edge.channels[0][0]);
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	f.store.is_hung = true;
	task_fixture_trigger(&f, 2);
	stream_task_notify_complete(f.task, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack1+finished");
	f.store.fail_nth = f.store.op_count + 1;
	f.store.fail_status = -5;
	fault_store_settle(&f.store);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	task_fixture_close(&f);
}

/* ---- synchronous savepoints ---- */

static void trigger_stop(struct task_fixture *f, int64_t id, enum snapshot_kind kind)
{
	struct checkpoint_request request = {.checkpoint_id = id,
			.timestamp_ms = f->clock.wall_ms,
			.kind = kind,
			.alignment = ALIGNMENT_ALIGNED,
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE};

	stream_task_trigger_checkpoint(f->task, &request, f->clock.now_ns);
}

/* TK-17, TK-12. */
Test(stream_task, a_suspended_source_emits_nothing_more_and_says_no_last_words)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].poll_count = 100;
	trigger_stop(&f, 2, SNAPSHOT_SAVEPOINT_SUSPEND);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack2");
	EXPECT_JOURNAL(&f, "a.barrier:2");
	task_fixture_expect_event(&f, EVENT_END_OF_DATA, 0);
	task_fixture_expect_event(&f, EVENT_BARRIER, 2);
	ring_channel_all_processed(f.chain.edge.channels[0][0]);
	stream_task_notify_complete(f.task, 2);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	EXPECT_JOURNAL(&f, "a.complete:2");
	task_fixture_close(&f);
}

/* TK-17: the last words are on the near side of the barrier. */
Test(stream_task, a_drained_source_says_its_last_words_before_the_savepoint)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].finish_count = 1;
	trigger_stop(&f, 2, SNAPSHOT_SAVEPOINT_TERMINATE);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack2+finished");
	EXPECT_JOURNAL(&f, "a.watermark:9223372036854775807 a.finish a.barrier:2");
	task_fixture_close(&f);
}

/* TK-10. */
Test(stream_task, a_stop_that_is_aborted_fails_the_task_while_its_last_words_are_said)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].finish_refusals = UINT32_MAX;
	trigger_stop(&f, 2, SNAPSHOT_SAVEPOINT_TERMINATE);
	task_fixture_run(&f);
	stream_task_notify_aborted(f.task, 2, 0);
	EXPECT_REPORTS(&f, "FAILED(Stop-with-savepoint failed: savepoint 2 was aborted)");
	task_fixture_close(&f);
}

/* TK-15 spares checkpoints, not the savepoint it was stopped with. */
Test(stream_task, without_finished_tasks_the_end_still_waits_for_the_savepoint)
{
	struct task_fixture f;
	struct stream_task_config config = {.checkpointing = true, .has_finished_tasks = false};

	task_fixture_begin_source(&f, &config);
	trigger_stop(&f, 2, SNAPSHOT_SAVEPOINT_SUSPEND);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "end-of-data ack2");
	stream_task_notify_complete(f.task, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "");
	stream_task_notify_complete(f.task, 2);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	task_fixture_close(&f);
}

/* What it was restored from is committed, and that was all. */
Test(stream_task, a_task_that_only_leaves_awaits_the_work_of_its_operators_and_ends)
{
	struct task_fixture f;
	struct stream_task_config config = {
			.checkpointing = true, .has_finished_tasks = true, .is_leaving = true};

	task_fixture_init(&f, 1);
	f.chain.probes[0].poll_count = 100;
	f.chain.probes[0].is_busy = true;
	task_fixture_open(&f, 0, NULL, &TASK_EDGE, &config);
	task_fixture_begin(&f);
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "decline1:1"); /* DECLINE_TASK_CLOSING */
	EXPECT_JOURNAL(&f, "");
	f.chain.probes[0].is_busy = false;
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FINISHED");
	EXPECT_JOURNAL(&f, "");
	task_fixture_expect_nothing(&f);
	task_fixture_close(&f);
}

/* SL-4. */
Test(stream_task, a_savepoint_goes_where_its_trigger_said)
{
	struct task_fixture f;
	struct savepoint_locations *locations;
	size_t bytes;
	struct stream_task_config config = {.checkpointing = true, .has_finished_tasks = true};

	cr_assert_eq(savepoint_locations_create(&locations), 0);
	config.locations = locations;
	cr_assert_eq(savepoint_locations_put(locations, 2, "elsewhere"), 0);
	task_fixture_begin_source(&f, &config);
	trigger_stop(&f, 1, SNAPSHOT_SAVEPOINT);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "decline1:6"); /* DECLINE_ASYNC_EXCEPTION: nobody knows where to */
	trigger_stop(&f, 2, SNAPSHOT_SAVEPOINT);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack2");
	cr_assert_eq(mem_store_file_count(f.memory), 1);
	cr_expect_not_null(mem_store_file(f.memory, "elsewhere/vertex-0-00000000", &bytes));
	task_fixture_close(&f);
	savepoint_locations_destroy(locations);
}

/* ---- failure and cancellation ---- */

Test(stream_task, a_failure_is_reported_once_with_its_text)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].fail_in = "barrier";
	task_fixture_trigger(&f, 1); /* TK-6: a failure of the task, not a decline */
	EXPECT_REPORTS(&f, "FAILED(operator a: failed in barrier)");
	cr_assert_eq(stream_task_status(f.task), TASK_FAILED);
	task_fixture_run(&f);
	stream_task_cancel(f.task);
	stream_task_notify_complete(f.task, 1);
	stream_task_notify_aborted(f.task, 2, 1);
	stream_task_operator_event(f.task, 0, "x", 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "");
	EXPECT_JOURNAL(&f, "a.barrier:1");
	cr_assert(stream_task_is_ended(f.task));
	task_fixture_expect_nothing(&f);
	task_fixture_close(&f);
}

Test(stream_task, an_operator_that_fails_at_work_fails_the_task)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.chain.probes[0].fail_in = "poll";
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FAILED(operator a: failed in poll)");
	task_fixture_close(&f);
}

/* TK-16, SC-4. */
Test(stream_task, a_cancelled_task_is_not_over_while_its_writes_hang)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.store.is_hung = true;
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	stream_task_cancel(f.task);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "");
	cr_assert_eq(stream_task_status(f.task), TASK_CANCELING);
	cr_assert_not(stream_task_is_ended(f.task));
	fault_store_settle(&f.store);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "CANCELED");
	cr_assert(stream_task_is_ended(f.task));
	cr_assert_eq(mem_store_file_count(f.memory), 0, "the torn snapshot is gone");
	task_fixture_close(&f);
}

Test(stream_task, a_cancelled_task_waits_until_what_it_acknowledged_was_sent)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.keeps_state = true;
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack1");
	stream_task_cancel(f.task);
	task_fixture_run(&f);
	cr_assert_not(stream_task_is_ended(f.task));
	f.keeps_state = false;
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "CANCELED");
	cr_assert_eq(mem_store_file_count(f.memory), 1, "it is the coordinator's now");
	task_fixture_close(&f);
}

/* SC-3 and the next one. */
Test(stream_task, a_snapshot_that_cannot_be_written_is_declined_and_leaves_nothing)
{
	struct task_fixture f;

	task_fixture_begin_source(&f, NULL);
	f.store.fail_nth = 2;
	f.store.fail_status = -28;
	task_fixture_trigger(&f, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "decline1:6"); /* DECLINE_ASYNC_EXCEPTION */
	cr_assert_eq(mem_store_file_count(f.memory), 0);
	task_fixture_trigger(&f, 2);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack2");
	task_fixture_close(&f);
}
