#include "tests/support/subtask_bench.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/operator_files.h"
#include "dataplane/checkpoint/state_writer.h"
#include "tests/sim/mem_store.h"

static const struct edge_config BROADCAST = {
		.producers = 1,
		.consumers = 2,
		.kind = PARTITIONER_BROADCAST,
		.capacity_bytes = 64,
		.channel = {.queue_count = 8, .credit_count = 1},
		.record_bytes = 16,
		.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
};

static struct subtask_bench *bench_of(struct checkpoint_responder *r)
{
	return (struct subtask_bench *)((char *)r - offsetof(struct subtask_bench, responder));
}

static void say(struct subtask_bench *b, const char *word, int64_t id, int reason)
{
	size_t at = strlen(b->said);

	snprintf(b->said + at, BENCH_TEXT_BYTES - at, "%s%s%" PRId64, at > 0 ? " " : "", word, id);
	at = strlen(b->said);
	if (reason >= 0)
		snprintf(b->said + at, BENCH_TEXT_BYTES - at, ":%d", reason);
}

static void on_acknowledge(struct checkpoint_responder *r, int64_t id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight)
{
	struct subtask_bench *b = bench_of(r);

	(void)state;
	b->metrics = *metrics;
	b->in_flight_handles = in_flight != NULL ? in_flight->handle_count : 0;
	say(b, "ack", id, -1);
}

static void on_decline(struct checkpoint_responder *r, int64_t id, enum decline_reason reason,
		const char *text)
{
	struct subtask_bench *b = bench_of(r);

	snprintf(b->text, sizeof(b->text), "%s", text);
	say(b, "decline", id, (int)reason);
}

static void on_collect(struct checkpoint_responder *r)
{
	struct subtask_bench *b = bench_of(r);

	b->collected++;
	if (b->to_collect_id != 0)
		subtask_checkpoint_coordinator_release(b->coordinator, b->to_collect_id);
	b->to_collect_id = 0;
}

static void open_writers(struct subtask_bench *b)
{
	struct state_writer_config config = {.vertex_uid = "map",
			.parallelism = 1,
			.group_count = 1,
			.state_count = 1,
			.states = &b->state};

	b->state = (struct declared_state){.uid = "map",
			.name = "sum",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = BENCH_STATE_BYTES,
			.version = 1,
			.memory = b->value};
	b->writers = calloc(BENCH_WRITERS, sizeof(struct state_writer *));
	for (uint32_t i = 0; i < BENCH_WRITERS; i++) {
		config.store = &b->disks[i].store;
		b->writer_memory[i] = aligned_alloc(
				STORE_ALIGN_BYTES, state_writer_memory_bytes(&config));
		b->writers[i] = state_writer_create_at(b->writer_memory[i], &config);
	}
}

static void open_channel_state(struct subtask_bench *b)
{
	static const struct channel_state_subtask subtask = {"map", 0, 1, 2, {2}, {2, 1}};
	struct channel_state_executor_config config = {
			.store = &b->disks[BENCH_WRITERS].store,
			.checkpoint_dir = "checkpoints",
			.subtask_count = 1,
			.channel_count = 5,
			.buf_count = 64,
			.issued_in_max = 2,
			.issued_out_max = 2,
			.staging_bytes = 4 * STORE_ALIGN_BYTES,
			.patience_ns = CHANNEL_STATE_PATIENCE_NS,
	};

	b->executor_memory = aligned_alloc(
			STORE_ALIGN_BYTES, channel_state_executor_memory_bytes(&config));
	b->channel_state = channel_state_executor_add(
			channel_state_executor_create_at(b->executor_memory, &config), &subtask);
}

static void open_files(struct subtask_bench *b)
{
	b->files_memory = mem_store_create();
	fault_store_init(&b->files_disk, b->files_memory);
	b->files_room = aligned_alloc(STORE_ALIGN_BYTES, operator_files_memory_bytes());
	cr_assert_not_null(b->files_room);
	b->files = operator_files_create_at(b->files_room, &b->files_disk.store);
}

static void close_files(struct subtask_bench *b)
{
	fault_store_settle(&b->files_disk);
	operator_files_stop(b->files);
	for (uint32_t i = 0; i < 200; i++)
		(void)operator_files_step(b->files, b->clock.now_ns);
	cr_assert(operator_files_is_idle(b->files));
	store_destroy(b->files_memory);
	free(b->files_room);
}

/* `count` buffers wait on each channel of an output. */
void bench_fill(struct subtask_bench *b, uint32_t output, uint32_t count)
{
	for (uint32_t i = 0; i < 4 * count; i++) {
		uint64_t record[2] = {i, i};
		struct weir_batch batch = {(const uint8_t *)record, 1, 16, 16};

		cr_assert_eq(output_gate_collect(b->outputs[output], &batch), 1);
	}
}

/* The consumers of an output take all there is. */
void bench_drain(struct subtask_bench *b, uint32_t output)
{
	struct edge *e = output == 0 ? &b->chain.edge : &b->second;
	uint32_t taken;

	do {
		taken = 0;
		output_gate_poll(b->outputs[output], 0);
		for (uint32_t to = 0; to < e->config.consumers; to++) {
			struct input_item item;

			while (edge_next(e, to, &item)) {
				taken++;
				input_gate_consume(e->in[to], item.kind == INPUT_RECORDS
								? item.batch.count
								: 1);
			}
		}
	} while (taken > 0);
}

/* All credit of an output is used up. */
void bench_stop_consumers(struct subtask_bench *b, uint32_t output)
{
	bench_fill(b, output, 1);
	output_gate_poll(b->outputs[output], 0);
}

void bench_open(struct subtask_bench *b, const struct bench_config *c)
{
	struct edge_config second = BROADCAST;

	memset(b, 0, sizeof(*b));
	second.consumers = 1;
	chain_fixture_init(&b->chain, 1);
	chain_fixture_open(&b->chain, &BROADCAST);
	cr_assert_eq(chain_fixture_open_chain(&b->chain), 0);
	edge_open(&b->second, &second);
	b->outputs[0] = b->chain.outputs[0];
	b->outputs[1] = b->second.out[0];
	for (uint32_t i = 0; i < 2; i++)
		bench_stop_consumers(b, i);
	b->clock = hand_clock_make(1000, 10);
	for (uint32_t i = 0; i <= BENCH_WRITERS; i++) {
		b->memory[i] = mem_store_create();
		fault_store_init(&b->disks[i], b->memory[i]);
	}
	open_writers(b);
	open_channel_state(b);
	if (c->has_files)
		open_files(b);
	cr_assert_eq(buf_pool_from_heap(&b->pool, 64, 8), 0);
	b->responder = (struct checkpoint_responder){
			on_acknowledge, on_decline, c->collects ? on_collect : NULL};

	struct subtask_checkpoint_coordinator_config config = {
			.chain = b->chain.chain,
			.outputs = b->outputs,
			.output_count = 2,
			.writers = b->writers,
			.writer_count = BENCH_WRITERS,
			.channel_state = c->has_channel_state ? b->channel_state : NULL,
			.files = b->files,
			.responder = &b->responder,
			.clock = &b->clock.clock,
			.checkpoint_dir = "checkpoints",
			.max_concurrent = c->max_concurrent,
	};
	cr_assert_eq(subtask_checkpoint_coordinator_create(&b->coordinator, &config), 0);
}

uint32_t bench_turn(struct subtask_bench *b, uint32_t count)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < count; i++)
		work = subtask_checkpoint_coordinator_step(b->coordinator, b->clock.now_ns);
	return work;
}

void bench_close(struct subtask_bench *b)
{
	char text[JOURNAL_BYTES];

	subtask_checkpoint_coordinator_close(b->coordinator);
	channel_state_writer_close(b->channel_state);
	for (uint32_t i = 0; i <= BENCH_WRITERS; i++)
		fault_store_settle(&b->disks[i]);
	(void)bench_turn(b, 200);
	if (b->files != NULL)
		close_files(b);
	cr_assert(subtask_checkpoint_coordinator_is_idle(b->coordinator));
	subtask_checkpoint_coordinator_destroy(b->coordinator);
	(void)chain_fixture_journal(&b->chain, text);
	edge_close(&b->second);
	chain_fixture_close(&b->chain);
	cr_assert_eq(buf_pool_used_count(b->pool), 0);
	buf_pool_destroy(b->pool);
	for (uint32_t i = 0; i < BENCH_WRITERS; i++)
		free(b->writer_memory[i]);
	free(b->writers);
	free(b->executor_memory);
	for (uint32_t i = 0; i <= BENCH_WRITERS; i++)
		store_destroy(b->memory[i]);
}

struct event bench_barrier(const struct subtask_bench *b, int64_t id, enum alignment alignment,
		int64_t timeout_ms)
{
	return (struct event){.kind = EVENT_BARRIER,
			.checkpoint_id = id,
			.timestamp_ms = b->clock.wall_ms,
			.watermark = WEIR_WATERMARK_NONE,
			.options = {.aligned_timeout_ms = timeout_ms,
					.snapshot = SNAPSHOT_CHECKPOINT,
					.alignment = (uint8_t)alignment}};
}

bool bench_perform(struct subtask_bench *b, struct event e)
{
	struct checkpoint_arrival arrival = {
			.alignment_duration_ns = 11,
			.start_delay_ns = 22,
			.bytes_processed = 33,
			.heard_ns = 44,
	};

	subtask_checkpoint_coordinator_prepare(b->coordinator, &e);
	return subtask_checkpoint_coordinator_checkpoint_state(b->coordinator, &e, &arrival);
}

bool bench_perform_aligned(struct subtask_bench *b, int64_t id)
{
	return bench_perform(b, bench_barrier(b, id, ALIGNMENT_ALIGNED, ALIGNED_TIMEOUT_NONE));
}

bool bench_perform_timeoutable(struct subtask_bench *b, int64_t id)
{
	return bench_perform(b, bench_barrier(b, id, ALIGNMENT_ALIGNED, 5));
}

bool bench_perform_unaligned(struct subtask_bench *b, int64_t id)
{
	return bench_perform(b, bench_barrier(b, id, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE));
}

void bench_finish_input(struct subtask_bench *b, int64_t id)
{
	struct checkpoint_arrival arrival = {.alignment_duration_ns = 55, .bytes_processed = 66};

	subtask_checkpoint_coordinator_finish_input(b->coordinator, id, &arrival);
}

void bench_release(struct subtask_bench *b, int64_t id)
{
	subtask_checkpoint_coordinator_release(b->coordinator, id);
}
