/* What a stream_task takes from its gates, and when. */

#include "dataplane/task/stream_task.h"

#include "dataplane/channel/output_gate.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/checkpoint/barrier_handler.h"
#include "tests/support/task_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- input ---- */

static void begin_with_two_gates(struct task_fixture *f)
{
	task_fixture_init(f, 1);
	f->chain.in_record_bytes = 16;
	task_fixture_open(f, 2, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(f);
}

static void send_watermark(struct task_fixture *f, uint32_t gate, int64_t watermark)
{
	output_gate_watermark(f->inputs[gate].out[0], watermark);
	edge_push(&f->inputs[gate], 0);
	task_fixture_run(f);
}

Test(stream_task_input, its_watermark_is_the_lowest_of_its_gates)
{
	struct task_fixture f;

	begin_with_two_gates(&f);
	send_watermark(&f, 0, 50);
	EXPECT_JOURNAL(&f, ""); /* nothing is known of the other */
	send_watermark(&f, 1, 20);
	EXPECT_JOURNAL(&f, "a.watermark:20");
	send_watermark(&f, 0, 90);
	EXPECT_JOURNAL(&f, "");
	send_watermark(&f, 1, 70);
	EXPECT_JOURNAL(&f, "a.watermark:70");
	/* One input at its end leaves the time to the other; the end is the task's own to say. */
	send_watermark(&f, 1, WEIR_WATERMARK_END);
	EXPECT_JOURNAL(&f, "a.watermark:90");
	send_watermark(&f, 0, WEIR_WATERMARK_END);
	EXPECT_JOURNAL(&f, "");
	task_fixture_close(&f);
}

Test(stream_task_input, what_an_operator_leaves_stays_in_its_channel)
{
	struct task_fixture f;

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	f.chain.probes[0].take_total = 5;
	f.chain.probes[0].ask_not_before = 9000000;
	task_fixture_open(&f, 1, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	edge_send_run(&f.inputs[0], 0, 0, 12);
	edge_push(&f.inputs[0], 0);
	task_fixture_run(&f);
	task_fixture_expect_values(&f, 0, 5);
	cr_assert_eq(stream_task_not_before(f.task), 9000000);
	cr_assert(stream_task_holds_input(f.task));
	cr_assert_eq(f.chain.probes[0].calls, 3); /* four, one, none; then it is left alone */
	f.chain.probes[0].take_total = 0;
	task_fixture_run(&f);
	task_fixture_expect_nothing(&f); /* it is not called before the time it named */
	f.clock.now_ns = 9000000;
	task_fixture_run(&f);
	task_fixture_expect_values(&f, 5, 7);
	cr_assert_not(stream_task_holds_input(f.task));
	task_fixture_close(&f);
}

Test(stream_task_input, one_turn_takes_a_bounded_share_of_what_waits)
{
	struct task_fixture f;
	struct edge_config wide = TASK_EDGE;

	wide.channel = (struct channel_config){.queue_count = 31, .credit_count = 31};
	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	task_fixture_open(&f, 1, &wide, NULL, NULL);
	task_fixture_begin(&f);
	edge_send_run(&f.inputs[0], 0, 0, 31 * 4);
	edge_push(&f.inputs[0], 0);
	stream_task_turn(f.task, f.clock.now_ns);
	cr_assert_gt(f.chain.probes[0].taken, 0);
	cr_assert_lt(f.chain.probes[0].taken, 31 * 4);
	task_fixture_run(&f);
	cr_assert_eq(f.chain.probes[0].taken, 31 * 4);
	task_fixture_close(&f);
}

Test(stream_task_input, nothing_is_taken_between_a_snapshot_and_its_first_step)
{
	struct event barrier = edge_barrier(1);
	struct task_fixture f;

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	task_fixture_open(&f, 1, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	task_fixture_run(&f);
	task_fixture_send(&f, 0, 0, &barrier);
	edge_send_run(&f.inputs[0], 0, 0, 12);
	edge_push(&f.inputs[0], 0);
	cr_assert_gt(stream_task_turn(f.task, f.clock.now_ns), 0);
	cr_assert_eq(f.chain.probes[0].taken, 0);
	stream_task_turn(f.task, f.clock.now_ns);
	cr_assert_eq(f.chain.probes[0].taken, 12);
	task_fixture_close(&f);
}

Test(stream_task_input, a_snapshot_ends_no_turn_before_a_gate_that_has_something_is_asked)
{
	struct task_fixture f;

	begin_with_two_gates(&f);
	task_fixture_run(&f);
	for (uint64_t gate = 0; gate < 2; gate++) {
		edge_send_run(&f.inputs[gate], 0, 0, 4);
		edge_push(&f.inputs[gate], 0);
		task_fixture_trigger(&f, (int64_t)gate + 1);
		stream_task_turn(f.task, f.clock.now_ns);
		cr_assert_eq(f.chain.probes[0].taken, 4 * (gate + 1));
	}
	task_fixture_close(&f);
}

/* Moves with every look, so a call of an operator seems to last long. */
static uint64_t passing_ns(struct clock *c)
{
	return ((struct hand_clock *)c)->now_ns += 1000000;
}

Test(stream_task_input, a_turn_ends_after_a_call_that_took_long)
{
	struct task_fixture f;

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	f.chain.probes[0].take_max = 1;
	task_fixture_open(&f, 1, &TASK_EDGE, &TASK_EDGE, NULL);
	task_fixture_begin(&f);
	edge_send_run(&f.inputs[0], 0, 0, 12);
	edge_push(&f.inputs[0], 0);
	f.clock.clock.now_ns = passing_ns;
	stream_task_turn(f.task, f.clock.now_ns);
	cr_assert_eq(f.chain.probes[0].calls, 1);
	stream_task_turn(f.task, f.clock.now_ns);
	cr_assert_eq(f.chain.probes[0].calls, 2);
	task_fixture_close(&f);
}

Test(stream_task_input, without_room_at_the_output_nothing_is_taken_and_the_time_is_counted)
{
	struct task_fixture f;

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	task_fixture_open(&f, 1, &TASK_EDGE, &CHAIN_EDGE, NULL);
	task_fixture_begin(&f);
	edge_send_run(&f.inputs[0], 0, 0, 32);
	edge_push(&f.inputs[0], 0);
	task_fixture_run(&f);
	cr_assert_eq(f.chain.probes[0].taken, 12); /* two buffers wait, one is credited */
	uint64_t before = stream_task_times(f.task).backpressured_ns;
	f.clock.now_ns += 700;
	task_fixture_run(&f);
	cr_assert_eq(stream_task_times(f.task).backpressured_ns - before, 700);
	for (uint32_t i = 0; i < 7; i++) { /* the last buffer is not flushed */
		task_fixture_expect_values(&f, 4 * i, 4);
		task_fixture_run(&f);
	}
	cr_assert_eq(f.chain.probes[0].taken, 32);
	task_fixture_close(&f);
}

Test(stream_task_input, a_buffer_that_breaks_the_agreement_fails_the_task)
{
	struct task_fixture f;

	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	task_fixture_open(&f, 1, &TASK_EDGE, NULL, NULL);
	task_fixture_begin(&f);
	struct buf *b = buf_alloc(f.inputs[0].pool);
	b->size_bytes = 17;
	b->first_record = 0;
	ring_channel_push(f.inputs[0].channels[0][0], &b, 1);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "FAILED(a buffer does not hold the records this edge agreed on)");
	task_fixture_close(&f);
}

/* ---- ends, while it stands still ---- */

static void send_unaligned_barrier(struct task_fixture *f, uint32_t from)
{
	struct event e = edge_barrier(1);

	e.options.alignment = ALIGNMENT_UNALIGNED;
	task_fixture_send(f, 0, from, &e);
	task_fixture_run(f);
}

static void send_event(struct task_fixture *f, uint32_t from, enum event_kind kind)
{
	struct event e = edge_event(kind);

	task_fixture_send(f, 0, from, &e);
	task_fixture_run(f);
}

/* In the middle of channel 0; channel 1 is at its end of data. */
static void stand_still(struct task_fixture *f)
{
	struct edge_config two = TASK_EDGE;

	two.producers = 2;
	task_fixture_init(f, 1);
	f->chain.in_record_bytes = 16;
	f->chain.probes[0].take_total = 5;
	f->chain.probes[0].ask_not_before = 9000000;
	task_fixture_open(f, 1, &two, NULL, NULL);
	task_fixture_begin(f);
	send_event(f, 1, EVENT_END_OF_DATA);
	edge_send_run(&f->inputs[0], 0, 0, 8);
	edge_push(&f->inputs[0], 0);
	task_fixture_run(f);
	cr_assert_eq(f->chain.probes[0].taken, 5);
}

static uint32_t pending_count(const struct task_fixture *f)
{
	return barrier_handler_pending_count(stream_task_barrier_handler(f->task));
}

Test(stream_task_input, an_end_that_comes_completes_an_unaligned_checkpoint_while_it_stands_still)
{
	struct task_fixture f;

	stand_still(&f);
	send_unaligned_barrier(&f, 0);
	cr_assert_eq(pending_count(&f), 1);
	send_event(&f, 1, EVENT_END_OF_PARTITION);
	cr_expect_eq(pending_count(&f), 0);
	cr_expect_eq(f.chain.probes[0].taken, 5);
	task_fixture_close(&f);
}

Test(stream_task_input, an_end_that_waits_in_line_does_not_hold_up_an_unaligned_checkpoint)
{
	struct task_fixture f;

	stand_still(&f);
	send_event(&f, 1, EVENT_END_OF_PARTITION);
	send_unaligned_barrier(&f, 0);
	cr_expect_eq(pending_count(&f), 0);
	cr_expect_eq(f.chain.probes[0].taken, 5);
	task_fixture_close(&f);
}

Test(stream_task_input, an_end_behind_other_words_waits_for_them)
{
	struct task_fixture f;
	struct edge_config two = TASK_EDGE;

	two.producers = 2;
	task_fixture_init(&f, 1);
	f.chain.in_record_bytes = 16;
	f.chain.probes[0].take_total = 5;
	f.chain.probes[0].ask_not_before = 9000000;
	task_fixture_open(&f, 1, &two, NULL, NULL);
	task_fixture_begin(&f);
	edge_send_run(&f.inputs[0], 0, 0, 8);
	edge_push(&f.inputs[0], 0);
	task_fixture_run(&f);
	send_event(&f, 1, EVENT_END_OF_DATA);
	send_event(&f, 1, EVENT_END_OF_PARTITION);
	send_unaligned_barrier(&f, 0);
	cr_expect_eq(pending_count(&f), 1);
	task_fixture_close(&f);
}

/* ---- alignment ---- */

static int declare_swallow(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	return 0;
}

static uint32_t process_swallow(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	(void)ctx;
	return in->count;
}

/* IG-4, 16.4: the first buffer of a record that spans three was read before the alignment. */
Test(stream_task_input, buffers_without_a_whole_record_count_when_they_are_read)
{
	static const struct weir_operator swallow = {
			.declare = declare_swallow, .process = process_swallow};
	struct edge_config variable = TASK_EDGE;
	struct task_fixture f;
	uint32_t bytes = 64 * 3 - 4;
	uint8_t *record = calloc(1, 4 + bytes);
	struct weir_batch batch = {record, 1, 0, 4 + bytes};
	struct event barrier = edge_barrier(1);

	variable.producers = 2;
	variable.record_bytes = 0;
	variable.record_bytes_max = 256;
	variable.channel = (struct channel_config){.queue_count = 8, .credit_count = 1};
	task_fixture_init(&f, 1);
	f.chain.op = &swallow;
	task_fixture_open(&f, 1, &variable, NULL, NULL);
	task_fixture_begin(&f);
	memcpy(record, &bytes, 4);
	cr_assert_eq(output_gate_collect(f.inputs[0].out[0], &batch), 1);
	edge_push(&f.inputs[0], 0);
	task_fixture_run(&f);
	task_fixture_send(&f, 0, 1, &barrier);
	task_fixture_run(&f);
	task_fixture_send(&f, 0, 0, &barrier); /* behind the rest of the record */
	for (uint32_t i = 0; i < 4; i++) {
		edge_push(&f.inputs[0], 0);
		task_fixture_run(&f);
	}
	EXPECT_REPORTS(&f, "ack1");
	cr_assert_eq(f.metrics.bytes_processed_during_alignment, 128);
	free(record);
	task_fixture_close(&f);
}

/* ---- what it is at, for those who wait for its acknowledgement ---- */

static enum checkpoint_step step_of(const struct task_fixture *f)
{
	return stream_task_progress(f->task).step;
}

Test(stream_task_input, tells_since_when_it_aligns_and_when_it_writes)
{
	struct event barrier = edge_barrier(1);
	struct task_fixture f;

	begin_with_two_gates(&f);
	task_fixture_run(&f);
	cr_assert_eq(step_of(&f), CHECKPOINT_STEP_NONE);
	cr_expect_not(stream_task_owes_answer(f.task));
	f.clock.now_ns += 500;
	uint64_t then_ns = f.clock.now_ns;
	task_fixture_send(&f, 0, 0, &barrier);
	task_fixture_run(&f);
	cr_assert_eq(step_of(&f), CHECKPOINT_STEP_ALIGNING);
	cr_expect(stream_task_owes_answer(f.task));
	cr_assert_eq(stream_task_progress(f.task).since_ns, then_ns);
	f.clock.now_ns += 700;
	task_fixture_run(&f);
	cr_assert_eq(stream_task_progress(f.task).since_ns, then_ns, "it is the same step");
	f.store.is_hung = true;
	task_fixture_send(&f, 1, 0, &barrier);
	task_fixture_run(&f);
	cr_assert_eq(step_of(&f), CHECKPOINT_STEP_WRITING);
	cr_expect(stream_task_owes_answer(f.task));
	cr_assert_eq(stream_task_progress(f.task).since_ns, then_ns + 700);
	f.store.is_hung = false;
	fault_store_settle(&f.store);
	task_fixture_run(&f);
	EXPECT_REPORTS(&f, "ack1");
	cr_assert_eq(step_of(&f), CHECKPOINT_STEP_NONE);
	cr_expect_not(stream_task_owes_answer(f.task));
	task_fixture_close(&f);
}
