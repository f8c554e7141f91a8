#include "dataplane/channel/output_gate.h"

#include "dataplane/channel/output_queue.h"
#include "dataplane/wire/record.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* Records of all sizes, batches that fit in part, and what is counted. */

enum { KEYS = 40, BYTES_MAX = 72 };

static struct edge_config edge_of(uint32_t consumers, uint32_t capacity_bytes,
		uint32_t record_bytes, uint32_t record_bytes_max)
{
	return (struct edge_config){
			.producers = 1,
			.consumers = consumers,
			.capacity_bytes = capacity_bytes,
			.channel = {.queue_count = 8, .credit_count = 8},
			.record_bytes = record_bytes,
			.record_bytes_max = record_bytes_max,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};
}

/* Byte i of the record of that key. */
static uint8_t byte_of(uint64_t key, uint32_t i)
{
	uint8_t bytes[8];

	memcpy(bytes, &key, 8);
	return i < 8 ? bytes[i] : (uint8_t)(key * 7 + i);
}

/* ---- fixed records ---- */

static void send_keys(struct edge *e, uint32_t record_bytes)
{
	static uint8_t data[KEYS * BYTES_MAX];
	struct weir_batch batch = {data, KEYS, record_bytes, KEYS * record_bytes};

	for (uint32_t key = 0; key < KEYS; key++) {
		for (uint32_t i = 0; i < record_bytes; i++)
			data[key * record_bytes + i] = byte_of(key, i);
	}
	cr_assert_eq(output_gate_collect(e->out[0], &batch), KEYS);
}

/* Each whole, and once: a bit for each key that came. */
static uint64_t receive_keys(struct edge *e, uint32_t to)
{
	struct input_item item;
	uint64_t seen = 0;

	while (edge_next(e, to, &item)) {
		for (uint32_t r = 0; r < item.batch.count; r++) {
			const uint8_t *record = item.batch.data + r * item.batch.record_bytes;
			uint64_t key;

			memcpy(&key, record, 8);
			cr_assert_lt(key, KEYS);
			cr_assert_eq(seen >> key & 1, 0, "key %lu came twice", key);
			seen |= 1ull << key;
			for (uint32_t i = 0; i < item.batch.record_bytes; i++)
				cr_assert_eq(record[i], byte_of(key, i));
		}
		input_gate_consume(e->in[to], item.batch.count);
	}
	return seen;
}

Test(output_gate_records, of_every_size_are_dealt_out_whole)
{
	static const uint32_t sizes[] = {8, 9, 16, 24, 32, 40, 48, 64, 65, BYTES_MAX};

	for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct edge_config config = edge_of(2, 1024, sizes[s], 0);
		struct edge e;

		edge_open(&e, &config);
		send_keys(&e, sizes[s]);
		cr_assert_eq(output_gate_counters(e.out[0])->records, KEYS);
		edge_push(&e, 0);
		uint64_t first = receive_keys(&e, 0), second = receive_keys(&e, 1);
		cr_assert_eq(first | second, (1ull << KEYS) - 1, "%u bytes", sizes[s]);
		cr_assert_eq(first & second, 0);
		cr_assert(first != 0 && second != 0);
		edge_close(&e);
	}
}

static uint32_t send_bytes(struct edge *e, uint32_t count)
{
	static uint8_t bytes[256];
	struct weir_batch batch = {bytes, count, 1, count};

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	return output_gate_collect(e->out[0], &batch);
}

/* A buffer of one byte, and no byte more than there are buffers. */
Test(output_gate_records, may_be_one_byte_and_fill_all_there_is)
{
	struct edge_config config = edge_of(1, 1, 1, 0);
	struct input_item item;
	struct edge e;

	edge_open(&e, &config);
	cr_assert_eq(send_bytes(&e, 9), 8);
	for (uint32_t i = 0; i < 8; i++) {
		edge_push(&e, 0);
		cr_assert(edge_next(&e, 0, &item));
		cr_assert_eq(item.batch.count, 1);
		cr_assert_eq(item.batch.data[0], i);
		input_gate_consume(e.in[0], 1);
	}
	cr_assert_not(edge_next(&e, 0, &item));
	edge_close(&e);
}

/* Nothing is taken on trust after what ends buffers early. */
Test(output_gate_records, find_no_room_that_an_event_or_a_flush_took)
{
	struct edge_config config = edge_of(1, 1, 1, 0);
	struct event barrier = edge_barrier(1);
	struct edge e;

	config.channel.credit_count = 1;
	for (uint32_t by_event = 0; by_event < 2; by_event++) {
		edge_open(&e, &config);
		cr_assert_eq(send_bytes(&e, 8), 8);
		if (by_event)
			output_gate_broadcast(e.out[0], &barrier);
		else
			cr_assert_eq(output_gate_flush(e.out[0]), 1);
		cr_assert_eq(send_bytes(&e, 1), 0);
		edge_close(&e);
	}
}

/* RE-12. */
Test(output_gate_records, find_no_room_that_recovered_buffers_take)
{
	struct edge_config config = edge_of(1, RECORDS_COUNT_MAX, 1, 0);
	struct buf *bufs[8];
	struct edge e;

	edge_open(&e, &config);
	cr_assert_eq(output_gate_room(e.out[0]), RECORDS_COUNT_MAX);
	for (uint32_t i = 0; i < 8; i++) {
		bufs[i] = buf_alloc(e.pool);
		bufs[i]->size_bytes = 1;
		bufs[i]->first_record = 0;
	}
	cr_assert_eq(output_gate_restore(e.out[0], 0, bufs, 0), 0);
	cr_assert_not(output_gate_has_queued(e.out[0]));
	cr_assert_eq(output_gate_restore(e.out[0], 0, bufs, 8), 0);
	cr_assert_eq(send_bytes(&e, 1), 0);
	cr_assert_eq(output_gate_room(e.out[0]), 0);
	edge_close(&e);
}

/* Rings of buffers come round. */
Test(output_gate_records, go_on_however_many_buffers_there_were)
{
	struct edge_config config = edge_of(1, 64, 16, 0);
	struct edge e;
	uint64_t value = 0;

	edge_open(&e, &config);
	for (uint32_t i = 0; i < CHANNEL_BUFFERS_MAX; i++) {
		uint32_t count = 4 * (1 + i % 7);

		edge_send_run(&e, 0, value, count);
		edge_push(&e, 0);
		edge_expect_values(&e, 0, value, count);
		value += count;
	}
	edge_close(&e);
}

/* ---- variable records ---- */

struct variable {
	uint8_t data[65536];
	struct weir_batch batch;
};

static void variable_add(struct variable *v, uint32_t bytes)
{
	uint8_t *at = v->data + v->batch.data_bytes;

	cr_assert_leq(v->batch.data_bytes + RECORD_PREFIX_BYTES + bytes, sizeof(v->data));
	memcpy(at, &bytes, RECORD_PREFIX_BYTES);
	for (uint32_t i = 0; i < bytes; i++)
		at[RECORD_PREFIX_BYTES + i] = (uint8_t)(v->batch.count + i);
	v->batch.data = v->data;
	v->batch.data_bytes += RECORD_PREFIX_BYTES + bytes;
	v->batch.count++;
}

/* The records numbered from `first` on come whole and in order; how many. */
static uint32_t receive_variable(struct edge *e, uint32_t first)
{
	uint32_t number = first;
	struct input_item item;

	while (edge_next(e, 0, &item)) {
		const uint8_t *record = item.batch.data;

		for (uint32_t r = 0; r < item.batch.count; r++) {
			uint32_t bytes;
			const uint8_t *body = weir_record_at(record, &bytes);

			for (uint32_t i = 0; i < bytes; i++)
				cr_assert_eq(body[i], (uint8_t)(number + i), "%u", number);
			number++;
			record = body + bytes;
		}
		input_gate_consume(e->in[0], item.batch.count);
	}
	return number - first;
}

static void open_variable(struct edge *e, uint32_t capacity_bytes)
{
	struct edge_config config = edge_of(1, capacity_bytes, 0, 60);

	edge_open(e, &config);
}

Test(output_gate_records, of_different_sizes_keep_their_order_across_buffers)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 64);
	for (uint32_t bytes = 1; bytes <= 20; bytes++)
		variable_add(&v, bytes);
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), 20);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 0);
	edge_push(&e, 0);
	cr_assert_eq(receive_variable(&e, 0), 20);
	cr_assert_eq(output_gate_counters(e.out[0])->bytes, v.batch.data_bytes);
	edge_close(&e);
}

Test(output_gate_records, may_be_as_large_as_agreed_and_not_a_byte_larger)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 64);
	variable_add(&v, 60);
	variable_add(&v, 61);
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), 1);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 61);
	edge_close(&e);
}

/* 512 bytes: eight buffers. */
Test(output_gate_records, are_taken_as_far_as_they_fit_to_the_byte)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 64);
	for (uint32_t i = 0; i < 8; i++)
		variable_add(&v, 58); /* 2 are left */
	variable_add(&v, 13); /* 17, where 16 are left */
	variable_add(&v, 1);
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), 8);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 0);

	struct weir_batch rest = {v.data + 8 * 62, 2, 0, 17 + 5};
	cr_assert_eq(output_gate_collect(e.out[0], &rest), 0);
	edge_push(&e, 0);
	cr_assert_eq(receive_variable(&e, 0), 8);
	cr_assert_eq(output_gate_collect(e.out[0], &rest), 2);
	edge_push(&e, 0);
	cr_assert_eq(receive_variable(&e, 8), 2);
	edge_close(&e);
}

Test(output_gate_records, may_be_empty_wherever_they_stand)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 64);
	for (uint32_t i = 0; i < 5; i++)
		variable_add(&v, i % 2 * 9);
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), 5);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 0);
	edge_push(&e, 0);
	cr_assert_eq(receive_variable(&e, 0), 5);
	edge_close(&e);
}

Test(output_gate_records, whose_size_is_cut_off_are_refused)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 64);
	variable_add(&v, 10);
	variable_add(&v, 10);
	v.batch.data_bytes = 14 + RECORD_PREFIX_BYTES - 1;
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), 1);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), UINT32_MAX);
	edge_close(&e);
}

/* A batch is taken in parts; what is checked is its end, not that of a part. */
Test(output_gate_records, of_a_large_batch_are_checked_up_to_the_last_byte)
{
	static struct variable v;
	struct edge e;

	open_variable(&e, 8192);
	for (uint32_t i = 0; i < RECORDS_COUNT_MAX + 3; i++)
		variable_add(&v, 5);
	v.batch.data_bytes--;
	cr_assert_eq(output_gate_collect(e.out[0], &v.batch), RECORDS_COUNT_MAX + 2);
	cr_assert_eq(output_gate_oversized_bytes(e.out[0]), 5);
	edge_push(&e, 0);
	cr_assert_eq(receive_variable(&e, 0), RECORDS_COUNT_MAX + 2);
	edge_close(&e);
}

Test(output_gate_records, of_a_large_batch_are_dealt_out_in_parts)
{
	enum { COUNT = RECORDS_COUNT_MAX + 50 };
	struct edge_config config = edge_of(2, 8192, 16, 0);
	static uint64_t records[COUNT][2];
	const struct weir_batch batch = {(const uint8_t *)records, COUNT, 16, sizeof(records)};
	uint32_t seen = 0;
	struct edge e;

	for (uint64_t i = 0; i < COUNT; i++) {
		records[i][0] = i;
		records[i][1] = i;
	}
	edge_open(&e, &config);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), COUNT);
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 2; to++) {
		struct input_item item;
		uint64_t last = 0, record[2];

		while (edge_next(&e, to, &item)) {
			for (uint32_t r = 0; r < item.batch.count; r++) {
				memcpy(record, item.batch.data + 16 * r, 16);
				cr_assert(record[1] > last || record[1] == 0);
				last = record[1];
				seen++;
			}
			input_gate_consume(e.in[to], item.batch.count);
		}
	}
	cr_assert_eq(seen, COUNT);
	edge_close(&e);
}

/* ---- what is counted, and how much it takes ---- */

Test(output_gate_records, and_buffers_bytes_and_events_are_counted)
{
	struct edge_config config = edge_of(1, 64, 16, 0);
	const struct output_gate_counters *c;
	struct edge e;

	edge_open(&e, &config);
	c = output_gate_counters(e.out[0]);
	edge_send_run(&e, 0, 0, 6);
	edge_announce(&e, 0, edge_barrier(1));
	edge_announce(&e, 0, edge_barrier(2));
	cr_assert_eq(c->records, 6);
	cr_assert_eq(c->bufs, 2);
	cr_assert_eq(c->bytes, 96);
	cr_assert_eq(c->events, 2);
	edge_close(&e);
}

Test(output_gate_records, cost_a_gate_memory_for_each_channel)
{
	struct output_gate_config config = {.partitioner = {.channel_count = 1}};
	uint64_t one = output_gate_memory_bytes(&config);

	config.partitioner.channel_count = 3;
	uint64_t three = output_gate_memory_bytes(&config);
	cr_assert_geq(one, sizeof(struct output_queue) + RECORDS_COUNT_MAX * sizeof(uint16_t));
	cr_assert_geq(three, one + 2 * (sizeof(struct output_queue) + 4 * sizeof(void *)));
}

/* ---- one channel of several ---- */

/* Two keys, of channel 0 and of channel 1. */
static void find_keys(const struct edge *e, uint64_t keys[2])
{
	struct edge probe;

	edge_open(&probe, &e->config);
	for (uint64_t key = 0, found = 0; found != 3; key++) {
		cr_assert(edge_send(&probe, 0, key, 0));
		edge_push(&probe, 0);
		for (uint32_t to = 0; to < 2; to++) {
			struct input_item item;

			if (!edge_next(&probe, to, &item))
				continue;
			input_gate_consume(probe.in[to], item.batch.count);
			keys[to] = key;
			found |= 1u << to;
		}
	}
	edge_close(&probe);
}

Test(output_gate_records, that_wait_on_any_channel_keep_the_gate_from_being_idle)
{
	struct edge_config config = edge_of(2, 64, 16, 0);
	struct event barrier = edge_barrier(1);
	uint64_t keys[2];
	struct edge e;

	config.channel.credit_count = 1;
	barrier.options.aligned_timeout_ms = 100;
	for (uint32_t to = 0; to < 2; to++) {
		edge_open(&e, &config);
		find_keys(&e, keys);
		cr_assert(output_gate_is_idle(e.out[0]));
		cr_assert(edge_send(&e, 0, keys[to], 0));
		cr_assert_not(output_gate_is_idle(e.out[0]));
		edge_push(&e, 0);
		cr_assert(output_gate_is_idle(e.out[0]));
		cr_assert(edge_send(&e, 0, keys[to], 1)); /* no credit */
		edge_push(&e, 0);
		cr_assert_not(output_gate_is_idle(e.out[0]));
		edge_announce(&e, 0, barrier);
		output_gate_poll(e.out[0], 0);
		cr_assert(output_gate_is_held(e.out[0], 1));
		edge_close(&e);
	}
}

/* -EAGAIN before anything is done, whichever channel it is. */
Test(output_gate_records, wait_behind_events_for_the_slowest_of_the_consumers)
{
	struct edge_config config = edge_of(2, 64, 16, 0);
	struct event barrier = edge_barrier(1);
	struct input_item item;

	for (uint32_t slow = 0; slow < 2; slow++) {
		struct edge e;
		uint32_t sent = 0;

		edge_open(&e, &config);
		while (sent < 4 * CHANNEL_CONTROL_MAX &&
				output_gate_broadcast(e.out[0], &barrier) == 0) {
			sent++;
			output_gate_poll(e.out[0], 0);
			while (edge_next(&e, 1 - slow, &item))
				input_gate_consume(e.in[1 - slow], 1);
		}
		cr_assert_lt(sent, 4 * CHANNEL_CONTROL_MAX);
		cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), -EAGAIN);
		cr_assert_not(edge_next(&e, 1 - slow, &item));
		edge_close(&e);
	}
}
