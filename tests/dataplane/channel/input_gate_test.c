#include "dataplane/channel/input_gate.h"

#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <errno.h>

static void expect_nothing(struct edge *e)
{
	struct input_item item;

	cr_assert_not(edge_next(e, 0, &item));
}

static void expect_step(struct edge *e, int64_t watermark)
{
	struct input_item item;

	cr_assert(edge_next(e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	cr_assert_eq(item.watermark, watermark);
	input_gate_consume(e->in[0], 1);
	cr_assert_eq(input_gate_watermark(e->in[0]), watermark);
}

Test(input_gate, an_event_comes_behind_all_records_before_its_cut_and_before_all_others)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 5);
	edge_announce(&e, 0, edge_barrier(1));
	edge_send_run(&e, 0, 5, 3);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 5);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	edge_expect_values(&e, 0, 5, 3);
	expect_nothing(&e);
	edge_close(&e);
}

Test(input_gate, an_event_travels_ahead_of_data_that_has_no_credit)
{
	struct edge_config config = EDGE_JOIN;
	const struct event *barrier;
	uint32_t channel;
	struct edge e;

	config.channel.credit_count = 1;
	edge_open(&e, &config);
	edge_send_run(&e, 0, 0, 20);
	edge_announce(&e, 0, edge_barrier(3));
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert_eq(input_gate_known_count(e.in[0], 0), 1);
	cr_assert(input_gate_next_arrival(e.in[0], &channel, &barrier));
	cr_assert_eq(channel, 0);
	cr_assert_eq(barrier->checkpoint_id, 3);
	cr_assert_eq(barrier->cut, 5);
	cr_assert_not(input_gate_next_arrival(e.in[0], &channel, &barrier));
	for (uint32_t i = 0; i < 5; i++) {
		edge_expect_values(&e, 0, 4 * i, 4);
		output_gate_poll(e.out[0], 0);
	}
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 3);
	edge_close(&e);
}

Test(input_gate, a_blocked_channel_processes_nothing_and_the_others_go_on)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &EDGE_JOIN);
	edge_announce(&e, 0, edge_barrier(1));
	edge_send_run(&e, 0, 100, 6);
	edge_push(&e, 0);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_block(e.in[0], 0);
	input_gate_consume(e.in[0], 1);
	expect_nothing(&e);

	edge_send_run(&e, 1, 0, 4);
	edge_push(&e, 1);
	edge_expect_values(&e, 0, 0, 4);
	edge_announce(&e, 1, edge_barrier(1));
	edge_push(&e, 1);
	edge_expect_event(&e, 0, 1, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	cr_assert_eq(input_gate_position(e.in[0], 0), 0);
	input_gate_resume(e.in[0], 0);
	edge_expect_values(&e, 0, 100, 6);
	cr_assert_not(edge_next(&e, 0, &item));
	edge_close(&e);
}

Test(input_gate, one_channel_alone_is_asked_whatever_waits_in_the_others)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	edge_send_run(&e, 1, 100, 4);
	edge_announce(&e, 1, edge_barrier(1));
	edge_push(&e, 0);
	edge_push(&e, 1);
	input_gate_poll(e.in[0]);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(input_gate_next_of(e.in[0], 1, &item), 1);
		cr_assert_eq(item.channel, 1);
		cr_assert_eq(item.kind, i == 0 ? INPUT_RECORDS : INPUT_EVENT);
		input_gate_consume(e.in[0], i == 0 ? item.batch.count : 1);
	}
	input_gate_block(e.in[0], 1);
	cr_assert_eq(input_gate_next_of(e.in[0], 1, &item), 0);
	edge_expect_values(&e, 0, 0, 4);
	edge_close(&e);
}

Test(input_gate, several_cuts_may_be_outstanding_and_come_in_turn)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (int64_t id = 1; id <= 4; id++) {
		edge_send_run(&e, 0, 3 * (uint64_t)(id - 1), 3);
		edge_announce(&e, 0, edge_barrier(id));
	}
	edge_announce(&e, 0, edge_barrier(5)); /* two at one cut */
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	for (int64_t id = 1; id <= 4; id++) {
		edge_expect_values(&e, 0, 3 * (uint64_t)(id - 1), 3);
		edge_expect_event(&e, 0, 0, EVENT_BARRIER, id);
		input_gate_block(e.in[0], 0);
		input_gate_consume(e.in[0], 1);
		expect_nothing(&e);
		input_gate_resume(e.in[0], 0);
	}
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 5);
	input_gate_consume(e.in[0], 1);
	expect_nothing(&e);
	edge_close(&e);
}

Test(input_gate, what_was_not_consumed_comes_again)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	output_gate_watermark(e.out[0], 9);
	output_gate_watermark(e.out[1], 9);
	edge_announce(&e, 0, edge_barrier(1));
	edge_push(&e, 0);
	edge_push(&e, 1);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.batch.count, 4);
	input_gate_consume(e.in[0], 0);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.batch.count, 4);
	input_gate_consume(e.in[0], 3);
	edge_expect_values(&e, 0, 3, 1);
	for (int i = 0; i < 3; i++) {
		cr_assert(edge_next(&e, 0, &item));
		cr_assert_eq(item.kind, INPUT_WATERMARK);
		cr_assert_eq(item.watermark, 9);
		input_gate_consume(e.in[0], i == 2);
	}
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 0);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	expect_nothing(&e);
	edge_close(&e);
}

Test(input_gate, channels_take_turns_by_the_buffer)
{
	struct edge e;
	struct input_item item;
	uint32_t order[6];

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t from = 0; from < 2; from++) {
		edge_send_run(&e, from, 0, 12);
		edge_push(&e, from);
	}
	for (uint32_t i = 0; i < 6; i++) {
		cr_assert(edge_next(&e, 0, &item));
		order[i] = item.channel;
		input_gate_consume(e.in[0], 2);
		cr_assert(edge_next(&e, 0, &item));
		cr_assert_eq(item.channel, order[i], "the rest of a buffer comes first");
		input_gate_consume(e.in[0], 2);
	}
	for (uint32_t i = 1; i < 6; i++)
		cr_assert_neq(order[i], order[i - 1]);
	edge_close(&e);
}

Test(input_gate, credit_comes_back_only_when_the_watermark_step_is_done_too)
{
	struct edge e;
	struct input_item item;
	uint64_t before;

	edge_open(&e, &EDGE_JOIN);
	before = ring_channel_credit(e.channels[0][0]);
	edge_send_run(&e, 0, 0, 2);
	output_gate_watermark(e.out[1], 8);
	edge_push(&e, 1);
	expect_nothing(&e);
	output_gate_watermark(e.out[0], 7);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 2);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), before);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), before);
	cr_assert_eq(input_gate_queued_count(e.in[0]), 1);
	input_gate_consume(e.in[0], 1);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), before + 1);
	cr_assert_eq(input_gate_queued_count(e.in[0]), 0);
	edge_close(&e);
}

Test(input_gate, the_watermark_is_the_least_of_all_open_channels)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	output_gate_watermark(e.out[0], 100);
	edge_push(&e, 0);
	expect_nothing(&e);
	output_gate_watermark(e.out[1], 30);
	edge_push(&e, 1);
	expect_step(&e, 30);
	output_gate_watermark(e.out[0], 200);
	edge_push(&e, 0);
	expect_nothing(&e);
	edge_announce(&e, 1, edge_event(EVENT_END_OF_PARTITION));
	edge_push(&e, 1);
	edge_expect_event(&e, 0, 1, EVENT_END_OF_PARTITION, 0);
	input_gate_consume(e.in[0], 1);
	expect_step(&e, 200);
	expect_nothing(&e);
	edge_close(&e);
}

Test(input_gate, a_watermark_reaches_the_consumer_before_the_event_behind_it)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t from = 0; from < 2; from++) {
		output_gate_watermark(e.out[from], 5);
		edge_announce(&e, from, edge_barrier(1));
		output_gate_watermark(e.out[from], 6);
	}
	output_gate_poll(e.out[0], 0);
	output_gate_poll(e.out[1], 0);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	expect_step(&e, 5);
	edge_expect_event(&e, 0, 1, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	expect_nothing(&e);
	edge_push(&e, 0);
	edge_push(&e, 1);
	expect_step(&e, 6);
	edge_close(&e);
}

Test(input_gate, end_of_data_then_end_of_partition_closes_a_channel)
{
	struct event stop = edge_event(EVENT_END_OF_DATA);
	struct input_item item;
	struct edge e;

	stop.stop_mode = STOP_NO_DRAIN;
	edge_open(&e, &EDGE_JOIN);
	for (uint32_t from = 0; from < 2; from++) {
		edge_send_run(&e, from, 0, 2);
		edge_announce(&e, from, stop);
		edge_announce(&e, from, edge_event(EVENT_END_OF_PARTITION));
		edge_push(&e, from);
		edge_expect_values(&e, 0, 0, 2);
		cr_assert(edge_next(&e, 0, &item));
		cr_assert_eq(item.event->kind, EVENT_END_OF_DATA);
		cr_assert_eq(item.event->stop_mode, STOP_NO_DRAIN);
		input_gate_consume(e.in[0], 1);
		cr_assert(input_gate_is_open(e.in[0], from));
		edge_expect_event(&e, 0, from, EVENT_END_OF_PARTITION, 0);
		input_gate_consume(e.in[0], 1);
		cr_assert_not(input_gate_is_open(e.in[0], from));
	}
	cr_assert_eq(input_gate_open_count(e.in[0]), 0);
	expect_nothing(&e); /* not the end of time: nobody drained */
	cr_assert_eq(input_gate_watermark(e.in[0]), WEIR_WATERMARK_NONE);
	edge_close(&e);
}

Test(input_gate, the_end_of_time_comes_with_the_end_of_drained_data)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t from = 0; from < 2; from++) {
		output_gate_watermark(e.out[from], WEIR_WATERMARK_END);
		edge_announce(&e, from, edge_event(EVENT_END_OF_DATA));
		edge_push(&e, from);
	}
	edge_expect_event(&e, 0, 0, EVENT_END_OF_DATA, 0);
	input_gate_consume(e.in[0], 1);
	expect_step(&e, WEIR_WATERMARK_END);
	edge_expect_event(&e, 0, 1, EVENT_END_OF_DATA, 0);
	edge_close(&e);
}

Test(input_gate, processed_and_in_flight_together_are_all_that_was_taken)
{
	struct edge e;
	struct input_item item;
	uint32_t offset, partial;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 12);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 4);
	cr_assert(edge_next(&e, 0, &item));
	input_gate_consume(e.in[0], 1);
	cr_assert_eq(input_gate_position(e.in[0], 0), 1);
	cr_assert_eq(input_gate_known_count(e.in[0], 0), 3);
	cr_assert_eq(input_gate_inflight_at(e.in[0], 0, 0, &offset)->sequence, 1);
	cr_assert_eq(offset, 16);
	cr_assert_eq(input_gate_inflight_at(e.in[0], 0, 1, &offset)->sequence, 2);
	cr_assert_eq(offset, 0);
	(void)input_gate_partial(e.in[0], 0, &partial);
	cr_assert_eq(partial, 0);
	edge_close(&e);
}

Test(input_gate, a_buffer_is_not_begun_before_the_event_it_names_is_in)
{
	struct ring_channel *channel;
	struct channel_config config = {.queue_count = 2, .credit_count = 4};
	struct input_gate_config gate = {
			.channels = &channel, .channel_count = 1, .record_bytes = 8};
	struct event barrier = edge_barrier(1);
	struct input_item item;
	struct input_gate *g;
	struct buf_pool *pool;

	cr_assert_eq(ring_channel_create(&channel, &config), 0);
	cr_assert_eq(buf_pool_from_heap(&pool, 64, 4), 0);
	cr_assert_eq(input_gate_create(&g, &gate), 0);

	struct buf *b = buf_alloc(pool);
	b->size_bytes = 8;
	b->first_record = 0;
	b->announcement = 1;
	ring_channel_push(channel, &b, 1);
	input_gate_poll(g);
	cr_assert_eq(input_gate_next(g, &item), 0);
	barrier.announcement = 1;
	cr_assert_eq(ring_channel_announce(channel, &barrier, 1), 1);
	input_gate_poll(g);
	cr_assert_eq(input_gate_next(g, &item), 1);
	cr_assert_eq(item.kind, INPUT_EVENT);
	input_gate_consume(g, 1);
	cr_assert_eq(input_gate_next(g, &item), 1);
	cr_assert_eq(item.kind, INPUT_RECORDS);
	input_gate_destroy(g);
	ring_channel_destroy(channel);
	buf_pool_destroy(pool);
}

Test(input_gate, bad_bytes_are_reported_and_go_no_further)
{
	struct edge_config config = EDGE_JOIN;
	struct input_item item;
	struct edge e;

	config.record_bytes = 24;
	edge_open(&e, &config);

	struct buf *b = buf_alloc(e.pool);
	b->size_bytes = 25;
	b->first_record = 0;
	ring_channel_push(e.channels[0][0], &b, 1);
	input_gate_poll(e.in[0]);
	cr_assert_eq(input_gate_next(e.in[0], &item), -EPROTO);
	cr_assert_eq(input_gate_next(e.in[0], &item), -EPROTO);
	edge_close(&e);
}

Test(input_gate, an_event_inside_a_record_is_refused)
{
	struct edge_config config = EDGE_JOIN;
	struct event barrier = edge_barrier(1);
	uint32_t bytes = 30;
	struct input_item item;
	struct edge e;

	config.record_bytes = 0;
	config.record_bytes_max = 100;
	edge_open(&e, &config);

	struct buf *b = buf_alloc(e.pool);
	memcpy(b->data, &bytes, 4);
	b->size_bytes = 20;
	b->first_record = 0;
	ring_channel_push(e.channels[0][0], &b, 1);
	barrier.cut = 1;
	barrier.announcement = 1;
	ring_channel_announce(e.channels[0][0], &barrier, 1);
	input_gate_poll(e.in[0]);
	cr_assert_eq(input_gate_next(e.in[0], &item), -EPROTO);
	edge_close(&e);
}

Test(input_gate, a_stalled_channel_hears_of_any_number_of_barriers_ahead_of_the_line)
{
	struct event barrier = edge_barrier(1);
	struct input_early early;
	struct edge e;
	uint32_t channel;
	const struct event *arrived;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 8);
	edge_push(&e, 0);
	barrier.options.alignment = ALIGNMENT_UNALIGNED;
	for (int64_t id = 1; id <= 5 * CHANNEL_CONTROL_MAX; id++) {
		barrier.checkpoint_id = id;
		cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0, "barrier %ld", id);
		edge_push(&e, 0);
		input_gate_poll(e.in[0]);
		while (input_gate_next_arrival(e.in[0], &channel, &arrived))
			cr_assert_eq(arrived->checkpoint_id, id);
		cr_assert(input_gate_next_early(e.in[0], &early), "barrier %ld", id);
		cr_assert_eq(early.event->checkpoint_id, id);
	}
	edge_expect_values(&e, 0, 0, 8);
	edge_close(&e);
}

/* ---- buffers that are being written, and recovered ones ---- */

Test(input_gate, credit_comes_back_only_when_a_buffer_is_processed_and_written)
{
	struct edge_config config = EDGE_JOIN;
	struct edge e;
	uint32_t offset;

	config.channel.credit_count = 2;
	edge_open(&e, &config);
	edge_send_run(&e, 0, 0, 16);
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	struct buf *first = input_gate_inflight_at(e.in[0], 0, 0, &offset);
	buf_retain(first); /* as the writer of channel state does */
	edge_expect_values(&e, 0, 0, 8);
	edge_push(&e, 0);
	expect_nothing(&e);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), 2);
	buf_release(first);
	input_gate_poll(e.in[0]);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), 4);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 8, 8);
	edge_close(&e);
}

/* One buffer as an earlier attempt left it. */
static struct buf *recovered_buf(struct edge *e, uint64_t value, uint32_t count)
{
	struct buf *b = buf_alloc(e->pool);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t record[2] = {0, value + i};

		memcpy(b->data + i * sizeof(record), record, sizeof(record));
	}
	b->size_bytes = count * 16;
	b->first_record = 0;
	return b;
}

static void restore(struct edge *e, uint32_t channel, uint64_t value)
{
	struct buf *bufs[] = {recovered_buf(e, value, 4), recovered_buf(e, value + 4, 1)};

	cr_assert_eq(input_gate_restore(e->in[0], channel, bufs, 2), 0);
}

Test(input_gate, recovered_buffers_come_before_everything_that_arrives)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	restore(&e, 0, 100);
	edge_announce(&e, 0, edge_barrier(7)); /* its cut is 0 */
	edge_send_run(&e, 0, 0, 4);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 100, 5);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 7);
	input_gate_consume(e.in[0], 1);
	edge_expect_values(&e, 0, 0, 4);
	edge_close(&e);
}

/* RE-14: a checkpoint in the middle of them has the rest. */
Test(input_gate, recovered_buffers_not_yet_processed_are_in_flight_before_any_cut)
{
	struct edge e;
	uint32_t offset;

	edge_open(&e, &EDGE_JOIN);
	restore(&e, 1, 100);
	cr_assert_eq(input_gate_recovered_left(e.in[0]), 2);
	edge_send_run(&e, 1, 0, 8);
	edge_push(&e, 1);
	struct input_item item;
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.batch.count, 4);
	input_gate_consume(e.in[0], 3);
	cr_assert_eq(input_gate_inflight_count(e.in[0], 1), 4);
	cr_assert_eq(input_gate_recovered_count(e.in[0], 1), 2);
	cr_assert_eq(input_gate_position(e.in[0], 1), 0);
	cr_assert_eq(input_gate_known_count(e.in[0], 1), 2);
	struct buf *b = input_gate_inflight_at(e.in[0], 1, 0, &offset);
	cr_assert_eq(offset, 48);
	cr_assert_eq(b->size_bytes, 64);
	cr_assert_eq(input_gate_inflight_at(e.in[0], 1, 2, &offset)->sequence, 0);
	edge_expect_values(&e, 0, 103, 2);
	edge_expect_values(&e, 0, 0, 8);
	cr_assert_eq(input_gate_inflight_count(e.in[0], 1), 0);
	edge_close(&e);
}

Test(input_gate, recovered_buffers_cost_no_credit_and_go_with_the_gate)
{
	struct edge_config config = EDGE_JOIN;
	struct edge e;

	config.channel.credit_count = 1;
	edge_open(&e, &config);
	restore(&e, 0, 100);
	edge_send_run(&e, 0, 0, 8);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 100, 4);
	cr_assert_eq(ring_channel_credit(e.channels[0][0]), 1);
	edge_close(&e);
}
