#include "tests/support/edge.h"

#include <criterion/criterion.h>

const struct edge_config EDGE_JOIN = {
		.producers = 2,
		.consumers = 1,
		.capacity_bytes = 64,
		.channel = {.queue_count = 8, .credit_count = 8},
		.record_bytes = 16,
		.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
};

static enum partitioner_kind kind_of(const struct edge_config *config)
{
	if (config->kind == PARTITIONER_FORWARD && config->consumers > 1)
		return PARTITIONER_HASH;
	return config->kind;
}

static void open_outputs(struct edge *e)
{
	const struct edge_config *config = &e->config;

	for (uint32_t from = 0; from < config->producers; from++) {
		struct output_gate_config gate = {
				.pool = e->pool,
				.channels = e->channels[from],
				.partitioner = {.kind = kind_of(config),
						.channel_count = config->consumers,
						.key_group_count = EDGE_KEY_GROUPS,
						.key_offset = 0,
						.key_bytes = 8},
				.record_bytes = config->record_bytes,
				.record_bytes_max = config->record_bytes_max,
				.flush_ns = config->flush_ns,
				.is_aligned_only = config->is_aligned_only,
		};

		cr_assert_eq(output_gate_create(&e->out[from], &gate), 0);
	}
}

static void open_inputs(struct edge *e)
{
	const struct edge_config *config = &e->config;

	for (uint32_t to = 0; to < config->consumers; to++) {
		struct ring_channel *channels[EDGE_SUBTASKS_MAX];
		struct input_gate_config gate = {
				.channels = channels,
				.channel_count = config->producers,
				.record_bytes = config->record_bytes,
				.record_bytes_max = config->record_bytes_max,
		};

		for (uint32_t from = 0; from < config->producers; from++)
			channels[from] = e->channels[from][to];
		cr_assert_eq(input_gate_create(&e->in[to], &gate), 0);
	}
}

void edge_open(struct edge *e, const struct edge_config *config)
{
	uint32_t count = config->producers * config->consumers;

	*e = (struct edge){.config = *config};
	cr_assert_eq(buf_pool_from_heap(&e->pool, config->capacity_bytes,
				     count * channel_buffers_max(&config->channel)),
			0);
	for (uint32_t from = 0; from < config->producers; from++) {
		for (uint32_t to = 0; to < config->consumers; to++)
			cr_assert_eq(ring_channel_create(
						     &e->channels[from][to], &config->channel),
					0);
	}
	open_outputs(e);
	open_inputs(e);
}

void edge_close(struct edge *e)
{
	for (uint32_t from = 0; from < e->config.producers; from++)
		output_gate_destroy(e->out[from]);
	for (uint32_t to = 0; to < e->config.consumers; to++)
		input_gate_destroy(e->in[to]);
	for (uint32_t from = 0; from < e->config.producers; from++) {
		for (uint32_t to = 0; to < e->config.consumers; to++)
			ring_channel_destroy(e->channels[from][to]);
	}
	cr_assert_eq(buf_pool_used_count(e->pool), 0);
	buf_pool_destroy(e->pool);
}

bool edge_send(struct edge *e, uint32_t from, uint64_t key, uint64_t value)
{
	uint64_t record[2] = {key, value};
	struct weir_batch batch = {(const uint8_t *)record, 1, 16, 16};

	return output_gate_collect(e->out[from], &batch) == 1;
}

void edge_send_run(struct edge *e, uint32_t from, uint64_t value, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cr_assert(edge_send(e, from, 0, value + i));
}

void edge_announce(struct edge *e, uint32_t from, struct event event)
{
	cr_assert_eq(output_gate_broadcast(e->out[from], &event), 0);
}

void edge_push(struct edge *e, uint32_t from)
{
	output_gate_flush(e->out[from]);
	output_gate_poll(e->out[from], 0);
}

bool edge_next(struct edge *e, uint32_t to, struct input_item *item)
{
	input_gate_poll(e->in[to]);

	int rc = input_gate_next(e->in[to], item);
	cr_assert_geq(rc, 0);
	return rc == 1;
}

void edge_expect_values(struct edge *e, uint32_t to, uint64_t from, uint32_t count)
{
	while (count > 0) {
		struct input_item item;

		cr_assert(edge_next(e, to, &item), "value %lu is missing", from);
		cr_assert_eq(item.kind, INPUT_RECORDS);
		cr_assert_leq(item.batch.count, count);
		for (uint32_t i = 0; i < item.batch.count; i++) {
			uint64_t record[2];

			memcpy(record, item.batch.data + 16 * i, 16);
			cr_assert_eq(record[1], from, "%lu instead of %lu", record[1], from);
			from++;
		}
		count -= item.batch.count;
		input_gate_consume(e->in[to], item.batch.count);
	}
}

void edge_expect_event(struct edge *e, uint32_t to, uint32_t channel, enum event_kind kind,
		int64_t checkpoint_id)
{
	struct input_item item;

	cr_assert(edge_next(e, to, &item));
	cr_assert_eq(item.kind, INPUT_EVENT);
	cr_assert_eq(item.channel, channel);
	cr_assert_eq(item.event->kind, kind);
	cr_assert_eq(item.event->checkpoint_id, checkpoint_id);
}

struct event edge_barrier(int64_t checkpoint_id)
{
	return (struct event){
			.kind = EVENT_BARRIER,
			.checkpoint_id = checkpoint_id,
			.timestamp_ms = 1000 + checkpoint_id,
			.watermark = WEIR_WATERMARK_NONE,
			.options = {.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
					.snapshot = SNAPSHOT_CHECKPOINT,
					.alignment = ALIGNMENT_ALIGNED},
	};
}

struct event edge_event(enum event_kind kind)
{
	return (struct event){.kind = (uint8_t)kind, .watermark = WEIR_WATERMARK_NONE};
}
