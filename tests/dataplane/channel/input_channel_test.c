#include "dataplane/channel/input_channel.h"

#include "tests/support/edge.h"

#include <criterion/criterion.h>

/* Barriers ahead of the line (IC-3, IC-9), seen through the gate. */

static struct event early_barrier(int64_t id, enum alignment alignment)
{
	struct event e = edge_barrier(id);

	e.options.alignment = (uint8_t)alignment;
	if (alignment == ALIGNMENT_ALIGNED)
		e.options.aligned_timeout_ms = 100;
	return e;
}

Test(input_channel, an_unaligned_barrier_is_heard_at_once_and_passed_silently_at_its_cut)
{
	struct input_early early;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 5);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_UNALIGNED));
	edge_send_run(&e, 0, 5, 2);
	edge_announce(&e, 0, edge_barrier(2));
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert(input_gate_next_early(e.in[0], &early));
	cr_assert_eq(early.channel, 0);
	cr_assert_eq(early.event->checkpoint_id, 1);
	cr_assert(early.is_barrier);
	cr_assert_not(input_gate_next_early(e.in[0], &early));
	edge_expect_values(&e, 0, 0, 7);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 2);
	edge_close(&e);
}

Test(input_channel, a_timeoutable_barrier_is_announced_once_and_keeps_its_turn)
{
	struct input_early early;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 5);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_ALIGNED));
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert(input_gate_next_early(e.in[0], &early));
	cr_assert_not(early.is_barrier);
	cr_assert_not(input_gate_next_early(e.in[0], &early));
	edge_expect_values(&e, 0, 0, 5);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	edge_close(&e);
}

Test(input_channel, a_converted_barrier_blocks_its_channel_behind_itself)
{
	struct input_early early;
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 5);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_ALIGNED));
	edge_send_run(&e, 0, 5, 2);
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert(input_gate_next_early(e.in[0], &early));
	uint32_t number = early.event->announcement;
	cr_assert(input_gate_is_in_line(e.in[0], 0, number));
	cr_assert_not(input_gate_convert(e.in[0], 0, 7));
	cr_assert(input_gate_convert(e.in[0], 0, 1));
	cr_assert(input_gate_next_early(e.in[0], &early));
	cr_assert(early.is_barrier);
	cr_assert_not(input_gate_is_in_line(e.in[0], 0, number));
	input_gate_block_behind(e.in[0], 0, early.event);
	cr_assert(input_gate_is_blocked(e.in[0], 0));
	cr_assert_not(input_gate_is_stopped(e.in[0], 0));
	edge_expect_values(&e, 0, 0, 5);
	cr_assert_not(edge_next(&e, 0, &item));
	cr_assert(input_gate_is_stopped(e.in[0], 0));
	input_gate_resume(e.in[0], 0);
	edge_expect_values(&e, 0, 5, 2);
	edge_close(&e);
}

Test(input_channel, several_early_barriers_come_from_the_lowest_channel_up)
{
	struct input_early early;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_announce(&e, 1, early_barrier(1, ALIGNMENT_UNALIGNED));
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_UNALIGNED));
	edge_push(&e, 1);
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	for (uint32_t c = 0; c < 2; c++) {
		cr_assert(input_gate_next_early(e.in[0], &early));
		cr_assert_eq(early.channel, c);
	}
	edge_close(&e);
}

/* PS-5. */
Test(input_channel, a_plain_ring_hears_of_a_barrier_when_it_is_due_and_knows_nothing_behind_it)
{
	struct edge_config config = EDGE_JOIN;
	const struct event *barrier;
	struct input_early early;
	uint32_t channel;
	struct edge e;

	config.channel.is_plain = true;
	edge_open(&e, &config);
	edge_send_run(&e, 0, 0, 4);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_UNALIGNED));
	edge_send_run(&e, 0, 4, 4);
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert_not(input_gate_next_arrival(e.in[0], &channel, &barrier));
	cr_assert_not(input_gate_next_early(e.in[0], &early));
	cr_assert_eq(input_gate_known_count(e.in[0], 0), 1);
	edge_expect_values(&e, 0, 0, 4);
	cr_assert(input_gate_next_early(e.in[0], &early));
	cr_assert(early.is_barrier);
	cr_assert_eq(early.event->boundary, early.event->cut);
	cr_assert_eq(input_gate_known_count(e.in[0], 0), 2);
	edge_expect_values(&e, 0, 4, 4);
	edge_close(&e);
}
