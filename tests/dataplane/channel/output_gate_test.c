#include "dataplane/channel/output_gate.h"

#include "dataplane/base/key_group.h"
#include "dataplane/base/prng.h"
#include "dataplane/channel/output_queue.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <errno.h>

/* 16-byte records, four to a buffer. */
static const struct edge_config NARROW = {
		.producers = 1,
		.consumers = 1,
		.capacity_bytes = 64,
		.channel = {.queue_count = 3, .credit_count = 2},
		.record_bytes = 16,
		.flush_ns = 1000,
};

Test(output_gate, room_is_what_the_buffers_of_a_channel_hold)
{
	struct edge e;

	edge_open(&e, &NARROW);
	cr_assert_eq(output_gate_room(e.out[0]), 12);
	edge_send_run(&e, 0, 0, 5);
	cr_assert_eq(output_gate_room(e.out[0]), 7);
	edge_send_run(&e, 0, 5, 7);
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	cr_assert_not(edge_send(&e, 0, 0, 99));
	edge_close(&e);
}

/* 512 records to a buffer, so that room is remembered from call to call. */
static void open_wide(struct edge *e)
{
	struct edge_config config = NARROW;

	config.capacity_bytes = 16 * RECORDS_COUNT_MAX;
	edge_open(e, &config);
}

static void send_batch(struct edge *e, uint32_t count)
{
	static uint64_t records[RECORDS_COUNT_MAX][2];
	struct weir_batch batch = {(const uint8_t *)records, count, 16, 16 * count};

	cr_assert_eq(output_gate_collect(e->out[0], &batch), count);
}

Test(output_gate, room_shrinks_with_what_is_collected)
{
	struct edge e;

	open_wide(&e);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(output_gate_room(e.out[0]), RECORDS_COUNT_MAX);
		send_batch(&e, RECORDS_COUNT_MAX - 10);
	}
	cr_assert_eq(output_gate_room(e.out[0]), 30);
	edge_close(&e);
}

Test(output_gate, room_shrinks_with_each_buffer_that_is_ended_early)
{
	struct event barrier = edge_barrier(1);
	struct edge e;

	for (uint32_t by_event = 0; by_event < 2; by_event++) {
		open_wide(&e);
		for (uint32_t i = 0; i < 2; i++) {
			send_batch(&e, 1);
			if (by_event)
				output_gate_broadcast(e.out[0], &barrier);
			else
				output_gate_flush(e.out[0]);
		}
		cr_assert_eq(output_gate_room(e.out[0]), RECORDS_COUNT_MAX);
		send_batch(&e, RECORDS_COUNT_MAX);
		cr_assert_eq(output_gate_room(e.out[0]), 0);
		edge_close(&e);
	}
}

Test(output_gate, a_batch_beyond_the_room_is_taken_from_the_front)
{
	struct edge e;
	uint64_t records[20][2] = {0};
	struct weir_batch batch = {(const uint8_t *)records, 20, 16, sizeof(records)};

	for (uint32_t i = 0; i < 20; i++)
		records[i][1] = i;
	edge_open(&e, &NARROW);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), 12);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 8);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 8, 4);
	edge_close(&e);
}

Test(output_gate, a_buffer_leaves_only_when_the_receiver_has_credited_it)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &NARROW);
	edge_send_run(&e, 0, 0, 12);
	edge_push(&e, 0);
	cr_assert_eq(output_queue_count(output_gate_queue(e.out[0], 0)), 1);
	cr_assert(output_gate_has_queued(e.out[0]));

	/* Taken is not processed. */
	cr_assert(edge_next(&e, 0, &item));
	input_gate_consume(e.in[0], 3);
	cr_assert_eq(output_gate_poll(e.out[0], 0), 0);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.batch.count, 1);
	input_gate_consume(e.in[0], 1);
	cr_assert_eq(output_gate_poll(e.out[0], 0), 1);
	cr_assert_not(output_gate_has_queued(e.out[0]));
	cr_assert(output_gate_is_idle(e.out[0]));
	edge_close(&e);
}

Test(output_gate, a_stopped_consumer_costs_no_more_buffers_than_agreed)
{
	struct edge_config config = NARROW;
	struct edge e;
	struct prng p;

	config.consumers = 3;
	config.producers = 2;
	edge_open(&e, &config);
	prng_seed(&p, 1);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t from = i % 2;

		if (output_gate_room(e.out[from]) > 0)
			cr_assert(edge_send(&e, from, prng_next(&p), i));
		output_gate_watermark(e.out[from], i);
		if (prng_below(&p, 3) == 0)
			edge_push(&e, from);
		if (prng_below(&p, 50) == 0)
			for (uint32_t to = 0; to < 3; to++)
				input_gate_poll(e.in[to]);
	}
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	cr_assert_leq(buf_pool_used_count(e.pool), 6 * channel_buffers_max(&config.channel));
	edge_close(&e);
}

Test(output_gate, a_record_goes_to_the_subtask_that_owns_its_key_group)
{
	struct edge_config config = NARROW;
	struct input_item item;
	struct edge e;

	config.consumers = 3;
	config.channel.queue_count = 8;
	edge_open(&e, &config);
	uint32_t seen = 0;
	for (uint64_t key = 0; key < 300; key++) {
		cr_assert(edge_send(&e, 0, key, key));
		edge_push(&e, 0);
		for (uint32_t to = 0; to < 3; to++) {
			while (edge_next(&e, to, &item)) {
				uint64_t got;

				memcpy(&got, item.batch.data, 8);
				cr_assert_eq(to,
						key_group_subtask(
								key_group_of(key_hash(&got, 8),
										EDGE_KEY_GROUPS),
								EDGE_KEY_GROUPS, 3));
				seen += item.batch.count;
				input_gate_consume(e.in[to], item.batch.count);
			}
		}
	}
	cr_assert_eq(seen, 300);
	edge_close(&e);
}

Test(output_gate, an_event_is_put_behind_all_records_so_far_and_cuts_there)
{
	struct event barrier = edge_barrier(7);
	struct edge e;

	edge_open(&e, &NARROW);
	edge_send_run(&e, 0, 0, 5);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	edge_send_run(&e, 0, 5, 1);

	const struct output_queue *q = output_gate_queue(e.out[0], 0);
	cr_assert_eq(q->events[0].cut, 2);
	cr_assert_eq(q->events[0].announcement, 1);
	cr_assert_eq(output_queue_at(q, 1)->announcement, 0);
	output_gate_flush(e.out[0]);
	cr_assert_eq(output_queue_at(q, 2)->announcement, 1);
	edge_close(&e);
}

Test(output_gate, records_behind_an_event_keep_within_the_buffers_too)
{
	struct event barrier = edge_barrier(1);
	struct edge e;

	edge_open(&e, &NARROW);
	edge_send_run(&e, 0, 0, 5);
	cr_assert_eq(output_gate_room(e.out[0]), 7);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	cr_assert_eq(output_gate_room(e.out[0]), 4);
	edge_close(&e);
}

Test(output_gate, events_that_nobody_takes_are_turned_away_in_time_and_the_end_still_fits)
{
	struct event barrier = edge_barrier(1), cancel = edge_event(EVENT_CANCEL);
	struct event data_end = edge_event(EVENT_END_OF_DATA);
	struct event end = edge_event(EVENT_END_OF_PARTITION);
	uint32_t taken = 0;
	struct input_item item;
	struct edge e;

	edge_open(&e, &NARROW);
	while (output_gate_broadcast(e.out[0], &barrier) == 0) {
		taken++;
		cr_assert_leq(taken, 4 * CHANNEL_CONTROL_MAX);
		output_gate_poll(e.out[0], 0);
		input_gate_poll(e.in[0]);
	}
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), -EAGAIN);
	cr_assert_eq(output_gate_broadcast(e.out[0], &cancel), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &cancel), -EAGAIN);
	cr_assert_eq(output_gate_broadcast(e.out[0], &data_end), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &data_end), -EAGAIN);
	cr_assert_eq(output_gate_broadcast(e.out[0], &end), 0);
	taken += 3;
	while (input_gate_open_count(e.in[0]) > 0) {
		output_gate_poll(e.out[0], 0);
		cr_assert(edge_next(&e, 0, &item));
		cr_assert_eq(item.kind, INPUT_EVENT);
		input_gate_consume(e.in[0], 1);
		taken--;
	}
	cr_assert_eq(taken, 0);
	edge_close(&e);
}

Test(output_gate, no_buffer_overtakes_an_event_that_waits_for_its_lane)
{
	struct event barrier = edge_barrier(1);
	const struct output_queue *q;
	struct edge e;

	edge_open(&e, &NARROW);
	q = output_gate_queue(e.out[0], 0);
	while (output_queue_event_count(q) == 0) {
		cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
		output_gate_poll(e.out[0], 0);
	}
	edge_send_run(&e, 0, 0, 4);
	edge_push(&e, 0);
	cr_assert_eq(output_queue_count(q), 1);
	input_gate_poll(e.in[0]);
	edge_push(&e, 0);
	cr_assert_eq(output_queue_count(q), 0);
	edge_close(&e);
}

Test(output_gate, open_buffers_leave_when_their_time_has_come)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &NARROW);
	output_gate_flush_aged(e.out[0], 5000);
	edge_send_run(&e, 0, 0, 1);
	cr_assert_eq(output_gate_flush_aged(e.out[0], 5999), 0);
	output_gate_poll(e.out[0], 5999);
	cr_assert_not(edge_next(&e, 0, &item));
	cr_assert_eq(output_gate_flush_aged(e.out[0], 6000), 1);
	output_gate_poll(e.out[0], 6000);
	edge_expect_values(&e, 0, 0, 1);
	edge_close(&e);
}

Test(output_gate, a_watermark_without_records_travels_at_the_next_flush)
{
	struct edge e;
	struct input_item item;

	edge_open(&e, &NARROW);
	output_gate_watermark(e.out[0], 50);
	output_gate_watermark(e.out[0], 40);
	cr_assert_not(output_gate_is_idle(e.out[0]));
	cr_assert_eq(output_gate_flush(e.out[0]), 1);
	cr_assert_eq(output_gate_flush(e.out[0]), 0);
	output_gate_poll(e.out[0], 0);
	cr_assert(output_gate_is_idle(e.out[0]));
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	cr_assert_eq(item.watermark, 50);
	edge_close(&e);
}

Test(output_gate, a_watermark_that_an_event_carries_needs_no_buffer)
{
	struct event barrier = edge_barrier(1);
	struct edge e;

	edge_open(&e, &NARROW);
	output_gate_watermark(e.out[0], 50);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	cr_assert_eq(output_gate_flush(e.out[0]), 0);
	cr_assert_eq(output_queue_count(output_gate_queue(e.out[0], 0)), 0);
	edge_close(&e);
}

Test(output_gate, time_without_room_is_counted_as_backpressure)
{
	struct edge e;

	edge_open(&e, &NARROW);
	output_gate_poll(e.out[0], 1000);
	edge_send_run(&e, 0, 0, 12);
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	cr_assert_eq(output_gate_flush(e.out[0]), 1);
	/* Two of three buffers leave, so this is not backpressure yet. */
	output_gate_poll(e.out[0], 2000);
	cr_assert_eq(output_gate_counters(e.out[0])->backpressured_ns, 0);
	edge_send_run(&e, 0, 12, 8);
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	output_gate_poll(e.out[0], 3000);
	output_gate_poll(e.out[0], 4000);
	cr_assert_eq(output_gate_counters(e.out[0])->backpressured_ns, 1000);
	edge_expect_values(&e, 0, 0, 4);
	output_gate_poll(e.out[0], 5000);
	output_gate_poll(e.out[0], 9000);
	cr_assert_eq(output_gate_counters(e.out[0])->backpressured_ns, 2000);
	/* No room again, but nobody has asked for it. */
	edge_send_run(&e, 0, 20, 4);
	output_gate_poll(e.out[0], 10000);
	output_gate_poll(e.out[0], 11000);
	cr_assert_eq(output_gate_counters(e.out[0])->backpressured_ns, 2000);
	edge_close(&e);
}

Test(output_gate, a_variable_record_larger_than_agreed_is_refused_by_size)
{
	struct edge_config config = NARROW;
	struct edge e;
	uint8_t data[64] = {0};
	uint32_t sizes[3] = {10, 101, 10};
	struct weir_batch batch = {data, 2, 0, 28};

	config.record_bytes = 0;
	config.record_bytes_max = 100;
	edge_open(&e, &config);
	memcpy(data, &sizes[0], 4);
	memcpy(data + 14, &sizes[1], 4);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), 1);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 101);

	/* A size that leads out of the batch. */
	sizes[1] = 11;
	memcpy(data + 14, &sizes[1], 4);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), 1);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 11);
	edge_close(&e);
}

Test(output_gate, records_that_never_fit_a_channel_are_refused_at_once)
{
	struct edge e;
	struct output_gate *g;
	struct output_gate_config config;

	edge_open(&e, &NARROW);
	config = (struct output_gate_config){
			.pool = e.pool,
			.channels = e.channels[0],
			.partitioner = {.kind = PARTITIONER_FORWARD, .channel_count = 1},
			.record_bytes = 65,
	};
	cr_assert_eq(output_gate_create(&g, &config), -EINVAL);
	config.record_bytes = 0;
	cr_assert_eq(output_gate_create(&g, &config), -EINVAL);
	config.record_bytes_max = 2 * 64 - 3;
	cr_assert_eq(output_gate_create(&g, &config), -EINVAL);
	config.record_bytes_max = 2 * 64 - 4;
	cr_assert_eq(output_gate_create(&g, &config), 0);
	output_gate_destroy(g);
	edge_close(&e);
}

Test(output_gate, a_key_that_does_not_lie_in_the_record_is_refused)
{
	struct output_gate *g;
	struct edge_config wide = NARROW;
	struct output_gate_config config;
	struct edge e;

	wide.consumers = 2;
	edge_open(&e, &wide);
	config = (struct output_gate_config){
			.pool = e.pool,
			.channels = e.channels[0],
			.partitioner = {.kind = PARTITIONER_HASH,
					.channel_count = 2,
					.key_offset = 8,
					.key_bytes = 8,
					.key_group_count = EDGE_KEY_GROUPS},
			.record_bytes = 16,
	};
	cr_assert_eq(output_gate_create(&g, &config), 0);
	output_gate_destroy(g);
	config.partitioner.key_offset = 9;
	cr_assert_eq(output_gate_create(&g, &config), -EINVAL);
	config.partitioner.kind = PARTITIONER_REBALANCE; /* asks for no key */
	cr_assert_eq(output_gate_create(&g, &config), 0);
	output_gate_destroy(g);
	edge_close(&e);
}

Test(output_gate, all_records_are_processed_when_every_consumer_has_said_so)
{
	struct edge_config config = NARROW;
	struct edge e;

	config.consumers = 2;
	edge_open(&e, &config);
	input_gate_all_processed(e.in[1], 0);
	cr_assert_not(output_gate_is_all_processed(e.out[0]));
	input_gate_all_processed(e.in[0], 0);
	cr_assert(output_gate_is_all_processed(e.out[0]));
	edge_close(&e);
}

Test(output_gate, rebalance_deals_records_out_evenly_whatever_their_keys)
{
	struct edge_config config = NARROW;
	struct edge e;

	config.kind = PARTITIONER_REBALANCE;
	config.consumers = 3;
	edge_open(&e, &config);
	for (uint32_t i = 0; i < 12; i++)
		cr_assert(edge_send(&e, 0, 7, (i % 3) * 100 + i / 3));
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 3; to++)
		edge_expect_values(&e, to, to * 100, 4);
	edge_close(&e);
}

Test(output_gate, broadcast_gives_each_channel_every_record_and_the_same_line_of_events)
{
	struct event barrier = edge_barrier(1);
	struct edge_config config = NARROW;
	struct edge e;

	config.kind = PARTITIONER_BROADCAST;
	config.consumers = 3;
	edge_open(&e, &config);
	edge_send_run(&e, 0, 0, 6);
	cr_assert_eq(output_gate_room(e.out[0]), 6);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	edge_send_run(&e, 0, 6, 1);
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 3; to++) {
		edge_expect_values(&e, to, 0, 6);
		edge_expect_event(&e, to, 0, EVENT_BARRIER, 1);
		input_gate_consume(e.in[to], 1);
	}
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 3; to++)
		edge_expect_values(&e, to, 6, 1);
	cr_assert_eq(output_gate_counters(e.out[0])->records, 7);
	edge_close(&e);
}

/* The slowest consumer of a broadcast holds the producer up, and nobody else loses a record. */
Test(output_gate, broadcast_has_the_room_of_its_fullest_channel)
{
	struct edge_config config = NARROW;
	struct edge e;

	config.kind = PARTITIONER_BROADCAST;
	config.consumers = 2;
	edge_open(&e, &config);
	edge_send_run(&e, 0, 0, 12);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 8);
	edge_push(&e, 0);
	cr_assert_eq(output_gate_room(e.out[0]), 8, "the second channel has two buffers free");
	edge_expect_values(&e, 0, 8, 4);
	edge_expect_values(&e, 1, 0, 8);
	edge_close(&e);
}

Test(output_gate, variable_records_are_broadcast_too_also_where_they_span_buffers)
{
	struct edge_config config = NARROW;
	struct edge e;
	uint8_t data[124];
	uint32_t bytes = 120;
	struct weir_batch batch = {data, 1, 0, 124};

	memcpy(data, &bytes, 4);
	for (uint32_t i = 4; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	config.kind = PARTITIONER_BROADCAST;
	config.consumers = 2;
	config.record_bytes = 0;
	config.record_bytes_max = 120;
	edge_open(&e, &config);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), 1);
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 2; to++) {
		struct input_item item;

		cr_assert(edge_next(&e, to, &item));
		cr_assert_eq(item.batch.count, 1);
		cr_assert_arr_eq(item.batch.data, data, sizeof(data));
		input_gate_consume(e.in[to], 1);
	}
	edge_close(&e);
}

/* 19.2, for a consumer that is elsewhere. */
Test(output_gate, recovered_buffers_leave_before_all_that_is_collected)
{
	struct edge e;
	struct buf *bufs[4];

	edge_open(&e, &NARROW);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t record[2] = {0, i};

		bufs[i] = buf_alloc(e.pool);
		memcpy(bufs[i]->data, record, sizeof(record));
		bufs[i]->size_bytes = sizeof(record);
		bufs[i]->first_record = 0;
	}
	cr_assert_eq(output_gate_restore(e.out[0], 0, bufs, 4), -ENOSPC);
	buf_release(bufs[3]);
	cr_assert_eq(output_gate_restore(e.out[0], 0, bufs, 3), 0);
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 0, 2);
	edge_push(&e, 0);
	edge_send_run(&e, 0, 3, 4);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 2, 5);
	edge_close(&e);
}
