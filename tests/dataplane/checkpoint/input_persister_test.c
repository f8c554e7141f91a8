#include "dataplane/checkpoint/input_persister.h"

#include "tests/support/channel_state_world.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <string.h>

/* Two producers and the writer of subtask 0, which has one gate of two channels. */
struct bench {
	struct edge edge;
	struct channel_world world;
	struct input_persister *persister;
};

enum { PAYLOAD_BYTES = 96 }; /* of a variable record: two of the small buffers */

static void bench_open(struct bench *b, uint32_t record_bytes, uint32_t credit_count)
{
	struct edge_config config = {
			.producers = 2,
			.consumers = 1,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = credit_count},
			.record_bytes = record_bytes,
			.record_bytes_max = PAYLOAD_BYTES,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};

	edge_open(&b->edge, &config);
	channel_world_init(&b->world, mem_store_create(), "/c");
	struct input_persister_config persister = {
			.gates = b->edge.in,
			.gate_count = 1,
			.writer = b->world.writers[0],
	};
	cr_assert_eq(input_persister_create(&b->persister, &persister), 0);
	channel_world_start_all(&b->world, 1);
}

static void bench_close(struct bench *b)
{
	channel_world_finish_all(&b->world, 1);
	channel_world_finish(&b->world, 0, 1);
	input_persister_destroy(b->persister);
	channel_world_free(&b->world);
	edge_close(&b->edge);
}

/* What a task does: receives, tells of barriers, hands over. */
static void hear(struct bench *b)
{
	const struct event *barrier;
	struct input_early early;
	uint32_t channel;

	input_gate_poll(b->edge.in[0]);
	while (input_gate_next_arrival(b->edge.in[0], &channel, &barrier))
		input_persister_arrived(b->persister, channel, barrier);
	while (input_gate_next_early(b->edge.in[0], &early))
		continue;
	(void)input_persister_take(b->persister);
}

static void send_fixed(struct bench *b, uint32_t from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cr_assert(edge_send(&b->edge, from, 0, i));
	edge_push(&b->edge, from);
}

static void send_barrier(struct bench *b, uint32_t from)
{
	struct event barrier = edge_barrier(1);

	barrier.options.alignment = ALIGNMENT_UNALIGNED;
	cr_assert_eq(output_gate_broadcast(b->edge.out[from], &barrier), 0);
	output_gate_poll(b->edge.out[from], 0);
}

static void expect_bytes(struct bench *b, uint64_t bytes)
{
	cr_assert_eq(channel_state_writer_bytes(b->world.writers[0], 1), bytes);
}

Test(input_persister, hands_over_what_is_here_and_what_comes_until_the_barrier)
{
	struct input_item item;
	struct bench b;

	bench_open(&b, 16, 8);
	send_fixed(&b, 0, 8); /* two buffers */
	hear(&b);
	cr_assert_eq(input_gate_next(b.edge.in[0], &item), 1);
	input_gate_consume(b.edge.in[0], 1); /* a record of the first is processed */
	input_persister_start(b.persister, 1);
	expect_bytes(&b, 7 * 16);
	send_fixed(&b, 1, 4);
	hear(&b);
	expect_bytes(&b, 11 * 16);
	send_barrier(&b, 0);
	send_fixed(&b, 0, 4); /* behind it */
	hear(&b);
	expect_bytes(&b, 11 * 16);
	cr_assert(input_persister_is_waiting(b.persister, 1));
	send_barrier(&b, 1);
	hear(&b);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	expect_bytes(&b, 11 * 16);
	bench_close(&b);
}

/* One poll takes no more than a burst of buffers, but all events. */
Test(input_persister, waits_for_data_that_its_barrier_has_left_behind)
{
	enum { BUFS = BATCH_COUNT_MAX + 8 };
	struct bench b;

	bench_open(&b, 16, 48);
	for (uint32_t i = 0; i < BUFS; i++)
		send_fixed(&b, 0, 4);
	send_barrier(&b, 0);
	send_barrier(&b, 1);
	input_persister_start(b.persister, 1);
	hear(&b);
	input_persister_stop(b.persister, 1);
	expect_bytes(&b, BATCH_COUNT_MAX * 64);
	cr_assert(input_persister_is_waiting(b.persister, 1));
	hear(&b);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	expect_bytes(&b, BUFS * 64);
	bench_close(&b);
}

/* 18.5: the record goes on in what the sender keeps. */
Test(input_persister, keeps_the_start_of_a_record_whose_end_has_not_left_its_sender)
{
	uint8_t record[sizeof(uint32_t) + PAYLOAD_BYTES] = {PAYLOAD_BYTES};
	struct weir_batch batch = {record, 1, 0, sizeof(record)};
	struct input_item item;
	uint32_t offset;
	struct bench b;

	bench_open(&b, 0, 1);
	cr_assert_eq(output_gate_collect(b.edge.out[0], &batch), 1);
	edge_push(&b.edge, 0); /* a credit for the first of two buffers */
	hear(&b);
	struct buf *held = input_gate_inflight_at(b.edge.in[0], 0, 0, &offset);
	buf_retain(held); /* so that it gives no credit back */
	cr_assert_eq(input_gate_next(b.edge.in[0], &item), 0); /* put aside */
	cr_assert_eq(input_gate_position(b.edge.in[0], 0), 1);
	send_barrier(&b, 0);
	hear(&b);
	input_persister_start(b.persister, 1);
	expect_bytes(&b, 64);
	send_barrier(&b, 1);
	hear(&b);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	expect_bytes(&b, 64);
	buf_release(held);
	bench_close(&b);
}

Test(input_persister, keeps_a_single_byte_that_a_record_began_with)
{
	enum { BYTES = 59 };
	uint8_t records[2 * (sizeof(uint32_t) + BYTES)] = {BYTES};
	struct weir_batch batch = {records, 2, 0, sizeof(records)};
	struct input_item item;
	uint32_t offset;
	struct bench b;

	records[sizeof(uint32_t) + BYTES] = BYTES; /* it is the last byte of the first buffer */
	bench_open(&b, 0, 1);
	cr_assert_eq(output_gate_collect(b.edge.out[0], &batch), 2);
	edge_push(&b.edge, 0);
	hear(&b);
	struct buf *held = input_gate_inflight_at(b.edge.in[0], 0, 0, &offset);
	buf_retain(held); /* so that it gives no credit back */
	cr_assert_eq(input_gate_next(b.edge.in[0], &item), 1);
	input_gate_consume(b.edge.in[0], 1);
	cr_assert_eq(input_gate_next(b.edge.in[0], &item), 0); /* the byte is put aside */
	input_persister_start(b.persister, 1);
	expect_bytes(&b, 1);
	buf_release(held);
	bench_close(&b);
}

Test(input_persister, waits_for_no_channel_that_has_ended)
{
	struct event end = edge_event(EVENT_END_OF_PARTITION);
	struct input_item item;
	struct bench b;

	bench_open(&b, 16, 8);
	cr_assert_eq(output_gate_broadcast(b.edge.out[1], &end), 0);
	output_gate_poll(b.edge.out[1], 0);
	hear(&b);
	cr_assert_eq(input_gate_next(b.edge.in[0], &item), 1);
	cr_assert_eq(item.kind, INPUT_EVENT);
	input_gate_consume(b.edge.in[0], 1);
	cr_assert_not(input_gate_is_open(b.edge.in[0], 1));
	input_persister_start(b.persister, 1);
	cr_assert(input_persister_is_waiting(b.persister, 1));
	send_barrier(&b, 0);
	hear(&b);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	bench_close(&b);
}

Test(input_persister, a_cancelled_checkpoint_gets_nothing_more)
{
	struct bench b;

	bench_open(&b, 16, 8);
	input_persister_start(b.persister, 1);
	send_fixed(&b, 0, 4);
	hear(&b);
	expect_bytes(&b, 64);
	input_persister_cancel(b.persister, 1);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	send_fixed(&b, 0, 4);
	hear(&b);
	expect_bytes(&b, 64);
	bench_close(&b);
}

/* With several at a time the younger one may be aborted alone. */
Test(input_persister, goes_on_with_a_checkpoint_when_a_younger_one_is_aborted)
{
	struct bench b;

	bench_open(&b, 16, 8);
	input_persister_start(b.persister, 1);
	input_persister_cancel(b.persister, 2);
	send_fixed(&b, 0, 4);
	hear(&b);
	expect_bytes(&b, 64);
	cr_assert(input_persister_is_waiting(b.persister, 1));
	input_persister_cancel_up_to(b.persister, 2);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	bench_close(&b);
}

Test(input_persister, recovered_buffers_come_before_all_others)
{
	struct buf *recovered[2];
	struct bench b;

	bench_open(&b, 16, 8);
	for (uint32_t i = 0; i < 2; i++) {
		recovered[i] = buf_alloc(b.edge.pool);
		memset(recovered[i]->data, 0, 32);
		recovered[i]->size_bytes = 32;
		recovered[i]->first_record = 0;
	}
	cr_assert_eq(input_gate_restore(b.edge.in[0], 0, recovered, 2), 0);
	send_fixed(&b, 0, 4);
	hear(&b);
	input_persister_start(b.persister, 1);
	expect_bytes(&b, 2 * 32 + 64);
	send_barrier(&b, 0);
	send_barrier(&b, 1);
	hear(&b);
	expect_bytes(&b, 2 * 32 + 64);
	cr_assert_not(input_persister_is_waiting(b.persister, 1));
	bench_close(&b);
}
