/* A task whose operators block makes room for the file that takes what was in flight. */

#include "dataplane/task/stream_task.h"

#include "tests/support/channel_state_world.h"
#include "tests/support/task_fixture.h"

#include <criterion/criterion.h>
#include <stddef.h>

enum { CALL_NS = 1000000, REST_NS_MIN = 500000, REST_NS_MAX = 10000000 };
enum { RECORDS = 12, SUBTASK = 1, NEIGHBOUR = 0 };

struct world {
	struct channel_world channels; /* of the task and a neighbour */
	struct task_fixture task;
	uint64_t call_ns;
};

/* Moves with every look, so each call of an operator seems to last that long. */
static uint64_t passing_ns(struct clock *c)
{
	struct world *w = (struct world *)((char *)c - offsetof(struct world, task.clock));

	return w->task.clock.now_ns += w->call_ns;
}

static void open_world(struct world *w)
{
	struct task_fixture *f = &w->task;
	struct stream_task_config config = {.max_concurrent = 1};

	w->call_ns = CALL_NS;
	channel_world_init(&w->channels, mem_store_create(), "checkpoints");
	config.channel_state = w->channels.writers[SUBTASK];
	task_fixture_init(f, 1);
	f->chain.in_record_bytes = 16;
	f->chain.probes[0].take_max = 1;
	task_fixture_open(f, 1, &TASK_EDGE, NULL, &config);
	task_fixture_begin(f);
	for (uint64_t v = 0; v < RECORDS; v++)
		cr_assert(edge_send(&f->inputs[0], 0, 0, v));
	edge_push(&f->inputs[0], 0);
	f->clock.clock.now_ns = passing_ns;
}

/* The neighbour hands in `bufs` buffers for checkpoint 1; the disk takes its time. */
static void begin_checkpoint(struct world *w, uint32_t bufs)
{
	struct channel_state_writer *neighbour = w->channels.writers[NEIGHBOUR];

	w->channels.disk.is_hung = true;
	channel_world_start_all(&w->channels, 1);
	for (uint32_t i = 0; i < bufs; i++) {
		struct buf *b = channel_world_buf(&w->channels, 4096, 1);

		channel_state_writer_add_input_data(
				neighbour, 1, (struct channel_info){0, 0}, &b, 1, 0);
		buf_release(b);
	}
}

static void end_checkpoint(struct world *w)
{
	w->channels.disk.is_hung = false;
	fault_store_settle(&w->channels.disk);
	channel_world_finish_all(&w->channels, 1);
	for (uint32_t i = 0; i < 2; i++) {
		channel_world_finish(&w->channels, i, 1);
		channel_state_writer_remove(w->channels.writers[i], 1);
	}
}

/* Calls of the operator in a turn that begins so much later. */
static uint32_t calls_after(struct world *w, uint64_t ns)
{
	uint32_t before = w->task.chain.probes[0].calls;

	w->task.clock.now_ns += ns;
	stream_task_turn(w->task.task, w->task.clock.now_ns);
	return w->task.chain.probes[0].calls - before;
}

static void close_world(struct world *w)
{
	w->task.clock.clock.now_ns = hand_clock_make(0, 0).clock.now_ns;
	task_fixture_close(&w->task);
	channel_world_free(&w->channels);
}

Test(stream_task_rest, lasts_twice_as_long_as_the_call_that_blocked)
{
	struct world w;

	open_world(&w);
	begin_checkpoint(&w, 1);
	cr_expect_eq(calls_after(&w, 0), 1);
	cr_expect_eq(calls_after(&w, 2 * CALL_NS - 1), 0);
	cr_expect_eq(calls_after(&w, 1), 1);
	end_checkpoint(&w);
	close_world(&w);
}

Test(stream_task_rest, is_as_long_as_a_disk_needs_to_do_something)
{
	struct world w;

	open_world(&w);
	w.call_ns = REST_NS_MIN / 4;
	begin_checkpoint(&w, 1);
	cr_expect_eq(calls_after(&w, 0), 1);
	cr_expect_eq(calls_after(&w, REST_NS_MIN - 1), 0);
	cr_expect_eq(calls_after(&w, 1), 1);
	end_checkpoint(&w);
	close_world(&w);
}

Test(stream_task_rest, is_bounded_however_long_the_call_was)
{
	struct world w;

	open_world(&w);
	w.call_ns = 100 * REST_NS_MAX;
	begin_checkpoint(&w, 1);
	cr_expect_eq(calls_after(&w, 0), 1);
	cr_expect_eq(calls_after(&w, REST_NS_MAX - 1), 0);
	cr_expect_eq(calls_after(&w, 1), 1);
	end_checkpoint(&w);
	close_world(&w);
}

Test(stream_task_rest, ends_when_all_is_written)
{
	struct world w;

	open_world(&w);
	begin_checkpoint(&w, 1);
	cr_expect_eq(calls_after(&w, 0), 1);
	cr_expect_eq(calls_after(&w, 0), 0);
	end_checkpoint(&w);
	cr_expect_eq(calls_after(&w, 0), 1);
	close_world(&w);
}

Test(stream_task_rest, is_not_taken_when_nothing_was_in_flight)
{
	struct world w;

	open_world(&w);
	cr_expect_eq(calls_after(&w, 0), 1);
	cr_expect_eq(calls_after(&w, 0), 1);
	begin_checkpoint(&w, 0); /* it has begun, and may yet be overtaken */
	cr_expect_eq(calls_after(&w, 0), 1);
	end_checkpoint(&w);
	close_world(&w);
}

Test(stream_task_rest, is_not_taken_by_operators_that_come_back_at_once)
{
	struct world w;

	open_world(&w);
	w.task.clock.clock.now_ns = hand_clock_make(0, 0).clock.now_ns;
	begin_checkpoint(&w, 1);
	cr_expect_gt(calls_after(&w, 0), 1);
	end_checkpoint(&w);
	close_world(&w);
}
