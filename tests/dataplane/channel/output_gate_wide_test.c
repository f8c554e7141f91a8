#include "dataplane/channel/output_gate.h"

#include "dataplane/wire/record.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <string.h>

/* Gates of many channels: more than one word of them, and each with what is its own. */

enum { WIDE = 70, RECORD = 16 };

struct wide {
	uint32_t count;
	struct buf_pool *pool;
	struct ring_channel *channels[WIDE];
	struct output_gate *gate;
};

static void wide_open(struct wide *w, uint32_t count)
{
	const struct channel_config channel = {.queue_count = 3, .credit_count = 2};

	w->count = count;
	cr_assert_eq(buf_pool_from_heap(&w->pool, 64, count * channel_buffers_max(&channel)), 0);
	for (uint32_t c = 0; c < count; c++)
		cr_assert_eq(ring_channel_create(&w->channels[c], &channel), 0);
	const struct output_gate_config config = {
			.pool = w->pool,
			.channels = w->channels,
			.partitioner = {.kind = PARTITIONER_BROADCAST, .channel_count = count},
			.record_bytes = RECORD,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};
	cr_assert_eq(output_gate_create(&w->gate, &config), 0);
}

static void wide_close(struct wide *w)
{
	output_gate_destroy(w->gate);
	for (uint32_t c = 0; c < w->count; c++)
		ring_channel_destroy(w->channels[c]);
	cr_assert_eq(buf_pool_used_count(w->pool), 0);
	buf_pool_destroy(w->pool);
}

/* The value of the one record of the one buffer that has come. */
static uint64_t take_value(struct wide *w, uint32_t c)
{
	struct buf *b[2];
	uint64_t value;

	cr_assert_eq(ring_channel_take(w->channels[c], b, 2), 1, "channel %u", c);
	memcpy(&value, b[0]->data + 8, sizeof(value));
	buf_release(b[0]);
	return value;
}

Test(output_gate_wide, events_and_records_reach_every_one_of_many_channels)
{
	const uint64_t record[2] = {0, 5};
	const struct weir_batch batch = {(const uint8_t *)record, 1, RECORD, RECORD};
	const struct event barrier = edge_barrier(1);
	struct event taken[2];
	struct wide w;

	wide_open(&w, WIDE);
	cr_assert_eq(output_gate_collect(w.gate, &batch), 1);
	cr_assert_eq(output_gate_broadcast(w.gate, &barrier), 0);
	cr_assert_eq(output_gate_counters(w.gate)->events, 1);
	cr_assert_eq(output_gate_poll(w.gate, 0), 2 * WIDE);
	for (uint32_t c = 0; c < WIDE; c++) {
		cr_assert_eq(ring_channel_take_events(w.channels[c], taken, 2), 1, "channel %u", c);
		cr_assert_eq(taken[0].checkpoint_id, 1);
		cr_assert_eq(take_value(&w, c), 5);
	}
	cr_assert_eq(output_gate_poll(w.gate, 0), 0);
	wide_close(&w);
}

Test(output_gate_wide, a_single_recovered_buffer_leaves_for_its_own_channel)
{
	const uint64_t record[2] = {0, 7};
	struct wide w;
	struct buf *b;

	wide_open(&w, WIDE);
	b = buf_alloc(w.pool);
	memcpy(b->data, record, sizeof(record));
	b->size_bytes = sizeof(record);
	b->first_record = 0;
	cr_assert_eq(output_gate_restore(w.gate, 68, &b, 1), 0);
	cr_assert_eq(output_gate_restore(w.gate, 69, NULL, 0), 0);
	cr_assert_eq(output_gate_poll(w.gate, 0), 1);
	cr_assert_eq(take_value(&w, 68), 7);
	wide_close(&w);
}

Test(output_gate_wide, records_alone_reach_every_one_of_many_channels)
{
	const uint64_t record[2] = {0, 5};
	const struct weir_batch batch = {(const uint8_t *)record, 1, RECORD, RECORD};
	struct wide w;

	wide_open(&w, WIDE);
	cr_assert_eq(output_gate_collect(w.gate, &batch), 1);
	output_gate_flush(w.gate);
	cr_assert(output_gate_has_queued(w.gate));
	cr_assert_eq(output_gate_poll(w.gate, 0), WIDE);
	for (uint32_t c = 0; c < WIDE; c++)
		cr_assert_eq(take_value(&w, c), 5);
	cr_assert_not(output_gate_has_queued(w.gate));
	wide_close(&w);
}

Test(output_gate_wide, events_alone_reach_every_one_of_many_channels)
{
	struct event barrier = edge_barrier(3), event;
	struct wide w;

	wide_open(&w, WIDE);
	cr_assert_eq(output_gate_broadcast(w.gate, &barrier), 0);
	cr_assert_eq(output_gate_poll(w.gate, 0), WIDE);
	for (uint32_t c = 0; c < WIDE; c++)
		cr_assert_eq(ring_channel_take_events(w.channels[c], &event, 1), 1, "%u", c);
	wide_close(&w);
}

/* The only one that the last word of a gate stands for. */
Test(output_gate_wide, what_waits_on_the_last_channel_alone_waits)
{
	struct wide w;

	wide_open(&w, 65);
	struct buf *b = buf_alloc(w.pool);
	b->size_bytes = RECORD;
	b->first_record = 0;
	cr_assert_eq(output_gate_restore(w.gate, 64, &b, 1), 0);
	cr_assert(output_gate_has_queued(w.gate));
	cr_assert_eq(output_gate_poll(w.gate, 0), 1);
	cr_assert_not(output_gate_has_queued(w.gate));
	wide_close(&w);
}

Test(output_gate_wide, variable_records_of_one_batch_go_each_to_its_key_s_subtask)
{
	struct edge_config config = {
			.producers = 1,
			.consumers = 2,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = 8},
			.record_bytes_max = 24,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};
	uint8_t data[256];
	struct weir_batch batch = {data, 0, 0, 0};
	uint32_t seen = 0, per_side[2] = {0};
	struct edge e;

	edge_open(&e, &config);
	for (uint64_t key = 1; key <= 8; key++) {
		uint32_t bytes = 8 + (uint32_t)key;
		uint8_t *at = data + batch.data_bytes;

		memcpy(at, &bytes, RECORD_PREFIX_BYTES);
		memcpy(at + RECORD_PREFIX_BYTES, &key, sizeof(key));
		memset(at + RECORD_PREFIX_BYTES + sizeof(key), (int)key, key);
		batch.data_bytes += RECORD_PREFIX_BYTES + bytes;
		batch.count++;
	}
	cr_assert_eq(output_gate_collect(e.out[0], &batch), 8);
	edge_push(&e, 0);
	for (uint32_t to = 0; to < 2; to++) {
		struct input_item item;

		while (edge_next(&e, to, &item)) {
			const uint8_t *record = item.batch.data;

			for (uint32_t i = 0; i < item.batch.count; i++) {
				uint32_t bytes;
				const uint8_t *body = weir_record_at(record, &bytes);
				uint64_t key;

				memcpy(&key, body, sizeof(key));
				cr_assert_eq(bytes, 8 + key);
				cr_assert_eq(body[bytes - 1], key);
				seen |= 1u << key;
				per_side[to]++;
				record = body + bytes;
			}
			input_gate_consume(e.in[to], item.batch.count);
		}
	}
	cr_assert_eq(seen, 0x1fe);
	cr_assert_eq(per_side[0] + per_side[1], 8);
	cr_assert(per_side[0] > 0 && per_side[1] > 0);
	edge_close(&e);
}

Test(output_gate_wide, a_batch_larger_than_a_gate_takes_at_once_is_taken_in_parts)
{
	enum { COUNT = RECORDS_COUNT_MAX + 5 };
	const struct edge_config config = {
			.producers = 1,
			.consumers = 1,
			.capacity_bytes = 8192,
			.channel = {.queue_count = 8, .credit_count = 8},
			.record_bytes = RECORD,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};
	static uint64_t records[COUNT][2];
	const struct weir_batch batch = {(const uint8_t *)records, COUNT, RECORD, sizeof(records)};
	struct edge e;

	for (uint64_t i = 0; i < COUNT; i++)
		records[i][1] = 1000 + i;
	edge_open(&e, &config);
	cr_assert_eq(output_gate_collect(e.out[0], &batch), COUNT);
	cr_assert_eq(output_gate_counters(e.out[0])->records, COUNT);
	edge_push(&e, 0);
	edge_expect_values(&e, 0, 1000, COUNT);
	edge_close(&e);
}
