#include "tests/support/task_fixture.h"

#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/task_state.h"
#include "tests/sim/mem_store.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct edge_config TASK_EDGE = {
		.producers = 1,
		.consumers = 1,
		.capacity_bytes = 64,
		.channel = {.queue_count = 8, .credit_count = 8},
		.record_bytes = 16,
		.flush_ns = 0,
};

/* ---- reports ---- */

static struct task_fixture *fixture_of(struct task_reporter *r)
{
	return (struct task_fixture *)((char *)r - offsetof(struct task_fixture, reporter));
}

__attribute__((format(printf, 2, 3))) static void report(
		struct task_reporter *r, const char *format, ...)
{
	struct task_fixture *f = fixture_of(r);
	size_t at = strlen(f->reports);
	va_list args;

	if (at > 0)
		at += (size_t)snprintf(f->reports + at, JOURNAL_BYTES - at, " ");
	va_start(args, format);
	vsnprintf(f->reports + at, JOURNAL_BYTES - at, format, args);
	va_end(args);
}

static void on_status(struct task_reporter *r, enum task_status status, const char *text)
{
	if (text[0] != '\0')
		report(r, "%s(%s)", task_status_name(status), text);
	else
		report(r, "%s", task_status_name(status));
}

static void on_end_of_data(struct task_reporter *r)
{
	report(r, "end-of-data");
}

static void on_acknowledge(struct task_reporter *r, int64_t id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight,
		bool has_finished_operators)
{
	struct task_fixture *f = fixture_of(r);

	(void)in_flight;
	f->metrics = *metrics;
	f->acked_id = id;
	f->handle_count = state->handle_count;
	f->has_state = true;
	report(r, "ack%" PRId64 "%s", id, has_finished_operators ? "+finished" : "");
}

static void on_decline(struct task_reporter *r, int64_t id, enum decline_reason reason,
		const char *text)
{
	(void)text;
	report(r, "decline%" PRId64 ":%d", id, (int)reason);
}

const char *task_fixture_reports(struct task_fixture *f, char text[JOURNAL_BYTES])
{
	snprintf(text, JOURNAL_BYTES, "%s", f->reports);
	f->reports[0] = '\0';
	return text;
}

/* ---- life ---- */

void task_fixture_init(struct task_fixture *f, uint32_t operator_count)
{
	memset(f, 0, sizeof(*f));
	chain_fixture_init(&f->chain, operator_count);
	f->clock = hand_clock_make(1000000, 1);
	f->reporter = (struct task_reporter){.status = on_status,
			.end_of_data = on_end_of_data,
			.acknowledge = on_acknowledge,
			.decline = on_decline};
}

static void open_writer(struct task_fixture *f)
{
	struct state_writer_config config = {
			.store = &f->store.store,
			.vertex_uid = "vertex",
			.parallelism = 1,
			.group_count = 1,
			.state_count = chain_state_count(f->chain.chain),
			.states = f->states,
	};

	cr_assert_leq(config.state_count, FIXTURE_STATES_MAX);
	for (uint32_t i = 0; i < config.state_count; i++) {
		struct chain_state s = chain_state_at(f->chain.chain, i);

		f->states[i] = (struct declared_state){
				.uid = s.uid,
				.name = s.name,
				.kind = s.kind,
				.value_bytes = s.value_bytes,
				.version = s.version,
				.capacity = s.capacity,
				.memory = s.memory,
				.list_count = s.list_count,
		};
	}
	f->writer_memory = aligned_alloc(STORE_ALIGN_BYTES, state_writer_memory_bytes(&config));
	f->writer = state_writer_create_at(f->writer_memory, &config);
}

void task_fixture_open(struct task_fixture *f, uint32_t gates, const struct edge_config *input,
		const struct edge_config *output, const struct stream_task_config *config)
{
	struct stream_task_config c = {.checkpointing = true, .has_finished_tasks = true};

	if (config != NULL)
		c = *config;
	f->gate_count = gates;
	for (uint32_t i = 0; i < gates; i++) {
		edge_open(&f->inputs[i], input);
		f->gates[i] = f->inputs[i].in[0];
	}
	chain_fixture_open(&f->chain, output);
	f->memory = mem_store_create();
	fault_store_init(&f->store, f->memory);
	open_writer(f);
	c.chain = f->chain.chain;
	c.inputs = f->gates;
	c.input_count = gates;
	c.outputs = f->chain.outputs;
	c.output_count = f->chain.output_count;
	c.writers = &f->writer;
	c.writer_count = 1;
	c.reporter = &f->reporter;
	c.clock = &f->clock.clock;
	c.checkpoint_dir = "checkpoints";
	c.max_concurrent = c.max_concurrent != 0 ? c.max_concurrent : 1;
	cr_assert_eq(chain_fixture_open_chain(&f->chain), 0);
	cr_assert_eq(stream_task_create(&f->task, &c), 0);
}

static uint32_t release(struct task_fixture *f)
{
	if (!f->has_state || f->keeps_state)
		return 0;
	f->has_state = false;
	stream_task_release_state(f->task, f->acked_id);
	return 1;
}

void task_fixture_run(struct task_fixture *f)
{
	uint32_t turns = 0, work;

	do {
		work = stream_task_turn(f->task, f->clock.now_ns);
		work += release(f);
		if (!f->store.is_hung)
			work += store_inflight(&f->store.store);
		cr_assert_lt(++turns, 10000, "it never comes to rest");
	} while (work > 0);
}

void task_fixture_close(struct task_fixture *f)
{
	fault_store_settle(&f->store);
	f->keeps_state = false;
	(void)release(f);
	stream_task_cancel(f->task);
	task_fixture_run(f);
	cr_assert(stream_task_is_ended(f->task));
	stream_task_destroy(f->task);
	for (uint32_t i = 0; i < f->gate_count; i++)
		edge_close(&f->inputs[i]);
	chain_fixture_close(&f->chain);
	free(f->writer_memory);
	store_destroy(f->memory);
}

void task_fixture_trigger(struct task_fixture *f, int64_t checkpoint_id)
{
	struct checkpoint_request request = {
			.checkpoint_id = checkpoint_id,
			.timestamp_ms = f->clock.wall_ms,
			.kind = SNAPSHOT_CHECKPOINT,
			.alignment = ALIGNMENT_ALIGNED,
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
	};

	stream_task_trigger_checkpoint(f->task, &request, f->clock.now_ns);
}

/* ---- at both ends ---- */

void task_fixture_begin(struct task_fixture *f)
{
	char text[JOURNAL_BYTES];

	stream_task_start(f->task);
	task_fixture_run(f);
	(void)task_fixture_reports(f, text);
	(void)chain_fixture_journal(&f->chain, text);
}

void task_fixture_begin_source(struct task_fixture *f, const struct stream_task_config *config)
{
	task_fixture_init(f, 1);
	task_fixture_open(f, 0, NULL, &TASK_EDGE, config);
	task_fixture_begin(f);
}

void task_fixture_send(struct task_fixture *f, uint32_t gate, uint32_t from, const struct event *e)
{
	cr_assert_eq(output_gate_broadcast(f->inputs[gate].out[from], e), 0);
	edge_push(&f->inputs[gate], from);
}

void task_fixture_expect_event(struct task_fixture *f, enum event_kind kind, int64_t id)
{
	edge_expect_event(&f->chain.edge, 0, 0, kind, id);
	input_gate_consume(f->chain.edge.in[0], 1);
}

void task_fixture_expect_values(struct task_fixture *f, uint64_t from, uint32_t count)
{
	edge_expect_values(&f->chain.edge, 0, from, count);
}

void task_fixture_expect_watermark(struct task_fixture *f, int64_t watermark)
{
	struct input_item item;

	cr_assert(edge_next(&f->chain.edge, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	cr_assert_eq(item.watermark, watermark);
	input_gate_consume(f->chain.edge.in[0], 1);
}

void task_fixture_expect_nothing(struct task_fixture *f)
{
	struct input_item item;

	cr_assert_not(edge_next(&f->chain.edge, 0, &item));
}
