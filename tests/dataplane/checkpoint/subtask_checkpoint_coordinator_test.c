#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/checkpoint_responder.h"
#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/task_state.h"
#include "tests/sim/fault_store.h"
#include "tests/sim/mem_store.h"
#include "tests/support/chain_fixture.h"
#include "tests/support/hand_clock.h"

enum { WRITERS = 2, STATE_BYTES = 100, TEXT_BYTES = 512 };

/* A subtask with one input of two channels, and two outputs: of two channels, and of one; every
 * record goes to each channel.  The consumers are behind: nothing leaves until they take some.
 * Each writer has a disk of its own. */
struct bench {
	struct chain_fixture chain;
	struct edge second;
	struct output_gate *outputs[2];
	struct hand_clock clock;
	uint8_t value[STATE_BYTES];
	struct declared_state state;
	struct store *memory[WRITERS + 1];
	struct fault_store disks[WRITERS + 1]; /* of channel state the last one */
	void *writer_memory[WRITERS], *executor_memory;
	struct state_writer *writers[WRITERS];
	struct channel_state_writer *channel_state;
	struct buf_pool *pool;
	struct checkpoint_responder responder;
	struct subtask_checkpoint_coordinator *coordinator;
	struct checkpoint_metrics metrics; /* of the last acknowledgement */
	uint32_t in_flight_handles;
	uint32_t collected;     /* calls of it */
	int64_t to_collect_id;  /* released by it; 0: none */
	char said[TEXT_BYTES];  /* "ack1 decline2:6" */
};

static struct bench b;

static const struct edge_config BROADCAST = {
		.producers = 1,
		.consumers = 2,
		.kind = PARTITIONER_BROADCAST,
		.capacity_bytes = 64,
		.channel = {.queue_count = 8, .credit_count = 1},
		.record_bytes = 16,
		.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
};

/* ---- life ---- */

static void say(const char *word, int64_t id, int reason)
{
	size_t at = strlen(b.said);

	snprintf(b.said + at, TEXT_BYTES - at, "%s%s%" PRId64, at > 0 ? " " : "", word, id);
	at = strlen(b.said);
	if (reason >= 0)
		snprintf(b.said + at, TEXT_BYTES - at, ":%d", reason);
}

static void on_acknowledge(struct checkpoint_responder *r, int64_t id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight)
{
	(void)r;
	(void)state;
	b.metrics = *metrics;
	b.in_flight_handles = in_flight != NULL ? in_flight->handle_count : 0;
	say("ack", id, -1);
}

static void on_decline(struct checkpoint_responder *r, int64_t id, enum decline_reason reason,
		const char *text)
{
	(void)r;
	(void)text;
	say("decline", id, (int)reason);
}

static void on_collect(struct checkpoint_responder *r)
{
	(void)r;
	b.collected++;
	if (b.to_collect_id != 0)
		subtask_checkpoint_coordinator_release(b.coordinator, b.to_collect_id);
	b.to_collect_id = 0;
}

static void open_writers(void)
{
	struct state_writer_config config = {.vertex_uid = "map",
			.parallelism = 1,
			.group_count = 1,
			.state_count = 1,
			.states = &b.state};

	b.state = (struct declared_state){.uid = "map",
			.name = "sum",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = STATE_BYTES,
			.version = 1,
			.memory = b.value};
	for (uint32_t i = 0; i < WRITERS; i++) {
		config.store = &b.disks[i].store;
		b.writer_memory[i] = aligned_alloc(
				STORE_ALIGN_BYTES, state_writer_memory_bytes(&config));
		b.writers[i] = state_writer_create_at(b.writer_memory[i], &config);
	}
}

static void open_channel_state(void)
{
	static const struct channel_state_subtask subtask = {"map", 0, 1, 2, {2}, {2, 1}};
	struct channel_state_executor_config config = {
			.store = &b.disks[WRITERS].store,
			.checkpoint_dir = "checkpoints",
			.subtask_count = 1,
			.channel_count = 5,
			.buf_count = 64,
			.issued_in_max = 2,
			.issued_out_max = 2,
			.staging_bytes = 4 * STORE_ALIGN_BYTES,
			.patience_ns = CHANNEL_STATE_PATIENCE_NS,
	};

	b.executor_memory = aligned_alloc(
			STORE_ALIGN_BYTES, channel_state_executor_memory_bytes(&config));
	b.channel_state = channel_state_executor_add(
			channel_state_executor_create_at(b.executor_memory, &config), &subtask);
}

/* `count` buffers wait on each channel of an output. */
static void fill(uint32_t output, uint32_t count)
{
	for (uint32_t i = 0; i < 4 * count; i++) {
		uint64_t record[2] = {i, i};
		struct weir_batch batch = {(const uint8_t *)record, 1, 16, 16};

		cr_assert_eq(output_gate_collect(b.outputs[output], &batch), 1);
	}
}

/* The consumers of an output take all there is. */
static void drain(uint32_t output)
{
	struct edge *e = output == 0 ? &b.chain.edge : &b.second;
	uint32_t taken;

	do {
		taken = 0;
		output_gate_poll(b.outputs[output], 0);
		for (uint32_t to = 0; to < e->config.consumers; to++) {
			struct input_item item;

			while (edge_next(e, to, &item)) {
				taken++;
				input_gate_consume(e->in[to],
						item.kind == INPUT_RECORDS ? item.batch.count : 1);
			}
		}
	} while (taken > 0);
}

/* All credit of an output is used up. */
static void stop_consumers(uint32_t output)
{
	fill(output, 1);
	output_gate_poll(b.outputs[output], 0);
}

static void open_bench(uint32_t max_concurrent, bool collects)
{
	struct edge_config second = BROADCAST;

	memset(&b, 0, sizeof(b));
	second.consumers = 1;
	chain_fixture_init(&b.chain, 1);
	chain_fixture_open(&b.chain, &BROADCAST);
	cr_assert_eq(chain_fixture_open_chain(&b.chain), 0);
	edge_open(&b.second, &second);
	b.outputs[0] = b.chain.outputs[0];
	b.outputs[1] = b.second.out[0];
	for (uint32_t i = 0; i < 2; i++)
		stop_consumers(i);
	b.clock = hand_clock_make(1000, 10);
	for (uint32_t i = 0; i <= WRITERS; i++) {
		b.memory[i] = mem_store_create();
		fault_store_init(&b.disks[i], b.memory[i]);
	}
	open_writers();
	open_channel_state();
	cr_assert_eq(buf_pool_from_heap(&b.pool, 64, 8), 0);
	b.responder = (struct checkpoint_responder){
			on_acknowledge, on_decline, collects ? on_collect : NULL};

	struct subtask_checkpoint_coordinator_config config = {
			.chain = b.chain.chain,
			.outputs = b.outputs,
			.output_count = 2,
			.writers = b.writers,
			.writer_count = WRITERS,
			.channel_state = b.channel_state,
			.responder = &b.responder,
			.clock = &b.clock.clock,
			.checkpoint_dir = "checkpoints",
			.max_concurrent = max_concurrent,
	};
	cr_assert_eq(subtask_checkpoint_coordinator_create(&b.coordinator, &config), 0);
}

static void begin(void)
{
	open_bench(3, true);
}

static void turn(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		(void)subtask_checkpoint_coordinator_step(b.coordinator, b.clock.now_ns);
}

static void end(void)
{
	char text[JOURNAL_BYTES];

	subtask_checkpoint_coordinator_close(b.coordinator);
	for (uint32_t i = 0; i <= WRITERS; i++)
		fault_store_settle(&b.disks[i]);
	turn(200);
	cr_assert(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	subtask_checkpoint_coordinator_destroy(b.coordinator);
	(void)chain_fixture_journal(&b.chain, text);
	edge_close(&b.second);
	chain_fixture_close(&b.chain);
	cr_assert_eq(buf_pool_used_count(b.pool), 0);
	buf_pool_destroy(b.pool);
	for (uint32_t i = 0; i < WRITERS; i++)
		free(b.writer_memory[i]);
	free(b.executor_memory);
	for (uint32_t i = 0; i <= WRITERS; i++)
		store_destroy(b.memory[i]);
}

TestSuite(subtask_checkpoint_coordinator, .init = begin, .fini = end, .timeout = 20);

/* ---- words ---- */

#define EXPECT_SAID(expected)                                                                      \
	do {                                                                                       \
		cr_expect_str_eq(b.said, expected, "%s", b.said);                                  \
		b.said[0] = '\0';                                                                  \
	} while (0)

static struct event barrier(int64_t id, enum alignment alignment, int64_t timeout_ms)
{
	return (struct event){.kind = EVENT_BARRIER,
			.checkpoint_id = id,
			.timestamp_ms = b.clock.wall_ms,
			.watermark = WEIR_WATERMARK_NONE,
			.options = {.aligned_timeout_ms = timeout_ms,
					.snapshot = SNAPSHOT_CHECKPOINT,
					.alignment = (uint8_t)alignment}};
}

static bool perform(struct event e)
{
	struct checkpoint_arrival arrival = {
			.alignment_duration_ns = 11,
			.start_delay_ns = 22,
			.bytes_processed = 33,
			.heard_ns = 44,
	};

	subtask_checkpoint_coordinator_prepare(b.coordinator, &e);
	return subtask_checkpoint_coordinator_checkpoint_state(b.coordinator, &e, &arrival);
}

static bool perform_aligned(int64_t id)
{
	return perform(barrier(id, ALIGNMENT_ALIGNED, ALIGNED_TIMEOUT_NONE));
}

static bool perform_timeoutable(int64_t id)
{
	return perform(barrier(id, ALIGNMENT_ALIGNED, 5));
}

static bool perform_unaligned(int64_t id)
{
	return perform(barrier(id, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE));
}

static void finish_input(int64_t id)
{
	struct checkpoint_arrival arrival = {.alignment_duration_ns = 55, .bytes_processed = 66};

	subtask_checkpoint_coordinator_finish_input(b.coordinator, id, &arrival);
}

static void release(int64_t id)
{
	subtask_checkpoint_coordinator_release(b.coordinator, id);
}

/* ---- 14.2 steps 3 and 5: what the outputs hold ---- */

Test(subtask_checkpoint_coordinator, what_waits_on_each_channel_of_each_output_is_kept)
{
	fill(0, 2);
	fill(1, 1);
	cr_expect(perform_unaligned(1));
	finish_input(1);
	turn(100);
	EXPECT_SAID("ack1");
	cr_expect_eq(b.in_flight_handles, 3);
	cr_expect_eq(b.metrics.channel_count, 3);
	cr_expect_eq(b.metrics.buf_count, 5);
	cr_expect_eq(b.metrics.file_count, 1);
	release(1);
}

/* SP-13. */
Test(subtask_checkpoint_coordinator, a_barrier_that_waits_in_any_output_is_waited_for)
{
	for (uint32_t late = 0; late < 2; late++) {
		int64_t id = 1 + late;

		fill(0, 1);
		fill(1, 1);
		cr_expect(perform_timeoutable(id));
		drain(1 - late);
		turn(100);
		EXPECT_SAID("");
		drain(late);
		turn(100);
		EXPECT_SAID(late == 0 ? "ack1" : "ack2");
		cr_expect_eq(b.in_flight_handles, 0);
		cr_expect_eq(b.metrics.mode, CHECKPOINT_ALIGNED);
		release(id);
		for (uint32_t i = 0; i < 2; i++)
			stop_consumers(i);
	}
}

/* SP-15. */
Test(subtask_checkpoint_coordinator, at_the_timeout_what_any_output_holds_is_kept)
{
	for (uint32_t late = 0; late < 2; late++) {
		int64_t id = 1 + late;

		fill(0, 1);
		fill(1, 1);
		uint64_t now_ns = b.clock.now_ns;
		cr_expect(perform_timeoutable(id));
		drain(1 - late);
		cr_expect_eq(subtask_checkpoint_coordinator_deadline_ns(b.coordinator),
				now_ns + 5000000);
		b.clock.now_ns += 4999999;
		subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
		turn(100);
		EXPECT_SAID("");
		b.clock.now_ns++;
		subtask_checkpoint_coordinator_on_time(b.coordinator, b.clock.now_ns);
		cr_expect_eq(subtask_checkpoint_coordinator_deadline_ns(b.coordinator),
				UINT64_MAX);
		turn(100);
		EXPECT_SAID(late == 0 ? "ack1" : "ack2");
		cr_expect_eq(b.in_flight_handles, late == 0 ? 2 : 1);
		cr_expect_eq(b.metrics.mode, CHECKPOINT_TIMED_OUT);
		cr_expect(b.metrics.is_unaligned);
		release(id);
		drain(late);
		for (uint32_t i = 0; i < 2; i++)
			stop_consumers(i);
	}
}

/* SP-13, 14.5. */
Test(subtask_checkpoint_coordinator, a_newer_one_says_nothing_of_one_that_was_aborted_in_a_queue)
{
	fill(0, 1);
	cr_expect(perform_timeoutable(1));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 1);
	cr_expect(perform_timeoutable(2));
	EXPECT_SAID("");
	cr_expect(perform_timeoutable(3));
	EXPECT_SAID("decline2:6"); /* DECLINE_ASYNC_EXCEPTION */
}

/* ---- 14.3: the report ---- */

Test(subtask_checkpoint_coordinator, the_report_adds_up_states_and_what_was_in_flight)
{
	fill(1, 2);
	b.clock.now_ns = 1000;
	cr_expect(perform_unaligned(1));
	b.clock.now_ns = 3000;
	turn(100);
	EXPECT_SAID(""); /* the input is not known yet */
	finish_input(1);
	turn(100);
	EXPECT_SAID("ack1");
	cr_expect_eq(b.metrics.bytes_persisted_during_alignment, 2 * 64);
	cr_expect_eq(b.metrics.total_bytes, 2 * 64 + STATE_BYTES);
	cr_expect_eq(b.metrics.bytes_persisted, 2 * 64 + STATE_BYTES);
	cr_expect_eq(b.metrics.alignment_duration_ns, 55);
	cr_expect_eq(b.metrics.bytes_processed_during_alignment, 66);
	cr_expect_eq(b.metrics.start_delay_ns, 22);
	cr_expect_eq(b.metrics.heard_ns, 44);
	cr_expect_eq(b.metrics.began_ns, 1000);
	cr_expect_eq(b.metrics.ended_ns, 3000);
	cr_expect_eq(b.metrics.sync_duration_ns, 0);
	cr_expect_eq(b.metrics.async_duration_ns, 2000);
	cr_expect_eq(b.metrics.mode, CHECKPOINT_UNALIGNED);
	release(1);
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	cr_expect(perform_aligned(2));
	turn(100);
	EXPECT_SAID("ack2");
	cr_expect_eq(b.metrics.total_bytes, STATE_BYTES);
	cr_expect_eq(b.metrics.alignment_duration_ns, 11);
	cr_expect_eq(b.metrics.bytes_processed_during_alignment, 33);
	cr_expect_not(b.metrics.is_unaligned);
	release(2);
}

/* SC-3. */
Test(subtask_checkpoint_coordinator, what_was_in_flight_may_fail_alone)
{
	b.disks[WRITERS].fail_nth = 1;
	b.disks[WRITERS].fail_status = -ENOSPC;
	fill(0, 1);
	cr_expect(perform_unaligned(1));
	turn(100);
	EXPECT_SAID("decline1:6");
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	cr_expect(perform_unaligned(2));
	finish_input(2);
	turn(100);
	EXPECT_SAID("ack2");
	release(2);
}

/* ---- step 0 ---- */

Test(subtask_checkpoint_coordinator, says_whether_a_checkpoint_was_performed)
{
	cr_expect(perform_aligned(5));
	cr_expect_not(perform_aligned(5));
	cr_expect_not(perform_aligned(4));
	subtask_checkpoint_coordinator_notify_aborted(b.coordinator, 7);
	cr_expect(perform_aligned(6));
	cr_expect_not(perform_aligned(7));
	turn(100);
	EXPECT_SAID("ack5 ack6");
	release(5);
	release(6);
}

/* 14.1: prepared, and then not begun. */
Test(subtask_checkpoint_coordinator, an_abort_drops_what_was_prepared_only)
{
	struct event e = barrier(1, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);

	subtask_checkpoint_coordinator_prepare(b.coordinator, &e);
	cr_expect(channel_state_writer_has(b.channel_state, 1));
	subtask_checkpoint_coordinator_abort_on_barrier(
			b.coordinator, 1, DECLINE_ON_CANCELLATION_BARRIER);
	cr_expect_not(channel_state_writer_has(b.channel_state, 1));
	EXPECT_SAID("decline1:4");
}

/* BH-7. */
Test(subtask_checkpoint_coordinator, an_abort_ends_older_ones_whose_input_is_open_and_no_others)
{
	b.disks[0].is_hung = true;
	cr_expect(perform_aligned(1));
	cr_expect(perform_unaligned(2));
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 1, DECLINE_SUBSUMED);
	EXPECT_SAID("decline1:3");
	turn(100);
	EXPECT_SAID("");
	finish_input(2);
	turn(100);
	EXPECT_SAID("ack2");
	release(2);
	fault_store_settle(&b.disks[0]);
	turn(100);

	b.disks[0].is_hung = true;
	cr_expect(perform_aligned(3));
	cr_expect(perform_unaligned(4));
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 5, DECLINE_SUBSUMED);
	EXPECT_SAID("decline5:3 decline4:3");
	subtask_checkpoint_coordinator_abort_on_barrier(b.coordinator, 6, DECLINE_SUBSUMED);
	EXPECT_SAID("decline6:3");
	fault_store_settle(&b.disks[0]);
	turn(100);
	EXPECT_SAID("ack3");
	release(3);
}

/* Whatever was aborted since. */
Test(subtask_checkpoint_coordinator, the_first_one_may_be_the_slowest)
{
	b.disks[0].is_hung = true;
	cr_expect(perform_aligned(1));
	cr_expect(perform_unaligned(2));
	for (int64_t id = 2; id < 5; id++)
		subtask_checkpoint_coordinator_abort_on_barrier(
				b.coordinator, id, DECLINE_SUBSUMED);
	EXPECT_SAID("decline2:3 decline3:3 decline4:3");
	fault_store_settle(&b.disks[0]);
	turn(100);
	EXPECT_SAID("ack1");
	release(1);
}

/* ---- writers ---- */

Test(subtask_checkpoint_coordinator, asks_for_releases_only_when_all_writers_are_taken)
{
	cr_expect(perform_aligned(1));
	turn(100);
	cr_expect(perform_aligned(2));
	turn(100);
	EXPECT_SAID("ack1 ack2");
	cr_expect_eq(b.collected, 0);
	b.to_collect_id = 1;
	cr_expect(perform_aligned(3));
	cr_expect_eq(b.collected, 1);
	turn(100);
	EXPECT_SAID("ack3");
	cr_expect(perform_aligned(4));
	cr_expect_eq(b.collected, 2);
	EXPECT_SAID("decline4:0"); /* DECLINE_TASK_NOT_READY */
	release(2);
	release(3);
}

Test(subtask_checkpoint_coordinator, needs_nobody_to_hand_in_releases)
{
	end();
	open_bench(3, false);
	cr_expect(perform_aligned(1));
	cr_expect(perform_aligned(2));
	cr_expect(perform_aligned(3));
	EXPECT_SAID("decline3:0");
	turn(100);
	EXPECT_SAID("ack1 ack2");
	release(1);
	release(2);
}

/* ---- the end ---- */

Test(subtask_checkpoint_coordinator, is_not_idle_until_each_disk_has_answered)
{
	for (uint32_t i = 0; i < WRITERS; i++)
		b.disks[i].is_hung = true;
	cr_expect(perform_aligned(1));
	cr_expect(perform_aligned(2));
	turn(10);
	subtask_checkpoint_coordinator_close(b.coordinator);
	for (uint32_t i = 0; i < WRITERS; i++) {
		turn(100);
		cr_expect_not(subtask_checkpoint_coordinator_is_idle(b.coordinator));
		fault_store_settle(&b.disks[i]);
	}
	turn(100);
	cr_expect(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	EXPECT_SAID("");
}

Test(subtask_checkpoint_coordinator, is_not_idle_while_writes_of_channel_state_are_out)
{
	b.disks[WRITERS].is_hung = true;
	fill(0, 1);
	cr_expect(perform_unaligned(1));
	turn(10);
	subtask_checkpoint_coordinator_close(b.coordinator);
	turn(100);
	cr_expect_not(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	subtask_checkpoint_coordinator_close(b.coordinator);
	fault_store_settle(&b.disks[WRITERS]);
	turn(100);
	cr_expect(subtask_checkpoint_coordinator_is_idle(b.coordinator));
	EXPECT_SAID("");
}
