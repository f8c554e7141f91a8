#include "dataplane/channel/output_queue.h"

#include "tests/support/edge.h"

#include <criterion/criterion.h>

/* Barriers in the output queue (17.3), seen through the gate that it belongs to. */

/* One channel of two credits, with five full buffers behind each other: two have left. */
static void open_full(struct edge *e)
{
	struct edge_config config = {
			.producers = 1,
			.consumers = 1,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = 2},
			.record_bytes = 16,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};

	edge_open(e, &config);
	for (uint32_t i = 0; i < 20; i++)
		cr_assert(edge_send(e, 0, 0, i));
	edge_push(e, 0);
	cr_assert_eq(output_queue_count(output_gate_queue(e->out[0], 0)), 3);
}

static struct event barrier_of(int64_t id, enum alignment alignment, int64_t timeout_ms)
{
	struct event e = edge_barrier(id);

	e.options.alignment = (uint8_t)alignment;
	e.options.aligned_timeout_ms = timeout_ms;
	return e;
}

/* The event that has come over the control lane, or kind 0. */
static struct event received(struct edge *e)
{
	struct event event = {0};

	(void)ring_channel_take_events(e->channels[0][0], &event, 1);
	return event;
}

/* The consumer has processed so many, two more than before. */
static void take_two(struct edge *e, uint64_t processed_count)
{
	struct buf *bufs[2];

	cr_assert_eq(ring_channel_take(e->channels[0][0], bufs, 2), 2);
	buf_release(bufs[0]);
	buf_release(bufs[1]);
	ring_channel_grant(e->channels[0][0], processed_count);
}

/* SP-12: the boundary says what the sender keeps. */
Test(output_queue, an_unaligned_barrier_leaves_at_once_and_knows_what_it_has_overtaken)
{
	struct event barrier = barrier_of(1, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);
	struct edge e;

	open_full(&e);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	cr_assert_eq(output_gate_overtaken_count(e.out[0], 0), 3);
	output_gate_poll(e.out[0], 0);
	struct event got = received(&e);
	cr_assert_eq(got.checkpoint_id, 1);
	cr_assert_eq(got.cut, 5);
	cr_assert_eq(got.boundary, 2);
	cr_assert_not(output_gate_is_held(e.out[0], 1));
	edge_close(&e);
}

/* SP-13, SP-14. */
Test(output_queue, a_timeoutable_barrier_waits_for_what_is_before_it)
{
	struct event barrier = barrier_of(1, ALIGNMENT_ALIGNED, 10);
	struct edge e;

	open_full(&e);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	output_gate_poll(e.out[0], 0);
	cr_assert(output_gate_is_held(e.out[0], 1));
	cr_assert_not(output_gate_is_held(e.out[0], 2));
	cr_assert_eq(received(&e).kind, 0);
	take_two(&e, 2);
	output_gate_poll(e.out[0], 0);
	cr_assert_eq(received(&e).kind, 0);
	take_two(&e, 4);
	output_gate_poll(e.out[0], 0);
	cr_assert_not(output_gate_is_held(e.out[0], 1));
	struct event got = received(&e);
	cr_assert_eq(got.cut, 5);
	cr_assert_eq(got.boundary, 5);
	cr_assert_eq(got.options.alignment, ALIGNMENT_ALIGNED);
	cr_assert_eq(output_gate_time_out(e.out[0], 0, 1), 0);
	edge_close(&e);
}

/* SP-15: what is behind the barrier is not part of it. */
Test(output_queue, a_barrier_that_is_timed_out_leaves_ahead_of_what_it_waited_for)
{
	struct event barrier = barrier_of(1, ALIGNMENT_ALIGNED, 10);
	struct edge e;

	open_full(&e);
	cr_assert_eq(output_gate_broadcast(e.out[0], &barrier), 0);
	cr_assert(edge_send(&e, 0, 0, 20));
	edge_push(&e, 0);
	cr_assert_eq(output_gate_time_out(e.out[0], 0, 7), 0);
	cr_assert_eq(output_gate_time_out(e.out[0], 0, 1), 3);
	cr_assert_eq(output_queue_at(output_gate_queue(e.out[0], 0), 0)->sequence, 2);
	output_gate_poll(e.out[0], 0);
	struct event got = received(&e);
	cr_assert_eq(got.cut, 5);
	cr_assert_eq(got.boundary, 2);
	cr_assert_eq(got.options.alignment, ALIGNMENT_UNALIGNED);
	cr_assert_eq(got.options.aligned_timeout_ms, ALIGNED_TIMEOUT_NONE);
	edge_close(&e);
}

/* It would wait for ever behind one that nobody waits for any more. */
Test(output_queue, an_unaligned_barrier_takes_an_older_one_that_waits_along)
{
	struct event old = barrier_of(1, ALIGNMENT_ALIGNED, 10);
	struct event cancel = {.kind = EVENT_CANCEL, .checkpoint_id = 1};
	struct event young = barrier_of(2, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);
	struct edge e;

	open_full(&e);
	cr_assert_eq(output_gate_broadcast(e.out[0], &old), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &cancel), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &young), 0);
	output_gate_poll(e.out[0], 0);
	struct event got = received(&e);
	cr_assert_eq(got.checkpoint_id, 1);
	cr_assert_not(event_is_early(&got));
	cr_assert_eq(received(&e).kind, EVENT_CANCEL);
	cr_assert_eq(received(&e).checkpoint_id, 2);
	edge_close(&e);
}

/* SP-12: those behind it still wait for what is before them. */
Test(output_queue, one_barrier_is_let_go_on_all_channels_and_no_other_one)
{
	struct event first = barrier_of(1, ALIGNMENT_ALIGNED, 10);
	struct event second = barrier_of(2, ALIGNMENT_ALIGNED, 10);
	struct edge_config config = {
			.producers = 1,
			.consumers = 3,
			.kind = PARTITIONER_BROADCAST,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = 2},
			.record_bytes = 16,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
	};
	struct edge e;

	edge_open(&e, &config);
	for (uint32_t i = 0; i < 20; i++)
		cr_assert(edge_send(&e, 0, 0, i));
	edge_push(&e, 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &first), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &second), 0);
	cr_assert(output_gate_is_held(e.out[0], 1));
	output_gate_let_go(e.out[0], 1);
	cr_assert_not(output_gate_is_held(e.out[0], 1));
	for (uint32_t c = 0; c < 3; c++)
		cr_assert(output_queue_is_held(output_gate_queue(e.out[0], c), 2));
	edge_close(&e);
}

/* OU-2, OU-3. */
Test(output_queue, an_edge_that_cannot_carry_an_unaligned_barrier_forces_it_aligned)
{
	struct event unaligned = barrier_of(1, ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);
	struct event timeoutable = barrier_of(2, ALIGNMENT_ALIGNED, 10);
	struct event savepoint = barrier_of(3, ALIGNMENT_ALIGNED, ALIGNED_TIMEOUT_NONE);
	struct edge_config config = {
			.producers = 1,
			.consumers = 1,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = 2},
			.record_bytes = 16,
			.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
			.is_aligned_only = true,
	};
	struct edge e;

	edge_open(&e, &config);
	for (uint32_t i = 0; i < 20; i++)
		cr_assert(edge_send(&e, 0, 0, i));
	cr_assert_not(output_gate_carries_unaligned(e.out[0]));
	cr_assert_eq(output_gate_broadcast(e.out[0], &unaligned), 0);
	cr_assert_eq(output_gate_overtaken_count(e.out[0], 0), 0);
	cr_assert_eq(output_gate_broadcast(e.out[0], &timeoutable), 0);
	cr_assert_not(output_gate_is_held(e.out[0], 2));
	cr_assert_eq(output_gate_broadcast(e.out[0], &savepoint), 0);
	output_gate_poll(e.out[0], 0);
	struct event got = received(&e);
	cr_assert_eq(got.options.alignment, ALIGNMENT_FORCED_ALIGNED);
	cr_assert_eq(got.boundary, got.cut);
	got = received(&e);
	cr_assert_eq(got.options.alignment, ALIGNMENT_FORCED_ALIGNED);
	cr_assert_eq(got.options.aligned_timeout_ms, 10);
	cr_assert_eq(received(&e).options.alignment, ALIGNMENT_ALIGNED);
	edge_close(&e);
}
