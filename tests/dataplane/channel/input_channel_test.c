#include "dataplane/channel/input_channel.h"

#include "dataplane/wire/record.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

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

/* ---- a full line ---- */

/* The next barrier comes and is acted on ahead of the line. */
static void hear(struct edge *e, int64_t id)
{
	struct input_early early;
	const struct event *arrived;
	uint32_t channel;

	edge_announce(e, 0, early_barrier(id, ALIGNMENT_UNALIGNED));
	edge_push(e, 0);
	input_gate_poll(e->in[0]);
	while (input_gate_next_arrival(e->in[0], &channel, &arrived))
		;
	cr_assert(input_gate_next_early(e->in[0], &early), "barrier %ld", (long)id);
	cr_assert_eq(early.event->checkpoint_id, id);
}

Test(input_channel, what_is_still_due_keeps_its_turn_when_a_full_line_makes_room)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	hear(&e, 1);
	edge_announce(&e, 0, edge_barrier(1000));
	hear(&e, 2);
	edge_send_run(&e, 0, 4, 4);
	hear(&e, 3);
	edge_announce(&e, 0, edge_barrier(1001));
	edge_announce(&e, 0, edge_barrier(1002));
	for (int64_t id = 4; id <= 3 * CHANNEL_CONTROL_MAX; id++)
		hear(&e, id);
	edge_expect_values(&e, 0, 0, 4);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1000);
	input_gate_consume(e.in[0], 1);
	edge_expect_values(&e, 0, 4, 4);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1001);
	input_gate_consume(e.in[0], 1);
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1002);
	input_gate_consume(e.in[0], 1);
	hear(&e, 3 * CHANNEL_CONTROL_MAX + 1);
	edge_close(&e);
}

Test(input_channel, a_channel_blocked_behind_a_barrier_stays_so_when_a_full_line_makes_room)
{
	struct input_early early;
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_UNALIGNED));
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	cr_assert(input_gate_next_early(e.in[0], &early));
	input_gate_block_behind(e.in[0], 0, early.event);
	edge_send_run(&e, 0, 4, 4);
	for (int64_t id = 2; id <= 3 * CHANNEL_CONTROL_MAX; id++)
		hear(&e, id);
	edge_expect_values(&e, 0, 0, 4);
	cr_assert_not(edge_next(&e, 0, &item));
	cr_assert(input_gate_is_stopped(e.in[0], 0));
	input_gate_resume(e.in[0], 0);
	edge_expect_values(&e, 0, 4, 4);
	edge_close(&e);
}

Test(input_channel, each_event_that_is_due_is_in_line_until_it_has_passed)
{
	uint32_t numbers[2];
	const struct event *arrived;
	uint32_t channel;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_announce(&e, 0, edge_barrier(1));
	edge_announce(&e, 0, edge_barrier(2));
	edge_push(&e, 0);
	cr_assert_eq(input_gate_poll(e.in[0]), 2);
	for (int i = 0; i < 2; i++) {
		cr_assert(input_gate_next_arrival(e.in[0], &channel, &arrived));
		numbers[i] = arrived->announcement;
	}
	cr_assert(input_gate_is_in_line(e.in[0], 0, numbers[0]));
	cr_assert(input_gate_is_in_line(e.in[0], 0, numbers[1]));
	edge_expect_event(&e, 0, 0, EVENT_BARRIER, 1);
	input_gate_consume(e.in[0], 1);
	cr_assert_not(input_gate_is_in_line(e.in[0], 0, numbers[0]));
	cr_assert(input_gate_is_in_line(e.in[0], 0, numbers[1]));
	edge_close(&e);
}

Test(input_channel, any_barrier_in_line_can_be_converted)
{
	struct input_early early;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	edge_announce(&e, 0, early_barrier(1, ALIGNMENT_ALIGNED));
	edge_announce(&e, 0, early_barrier(2, ALIGNMENT_ALIGNED));
	edge_push(&e, 0);
	input_gate_poll(e.in[0]);
	for (int64_t id = 1; id <= 2; id++) {
		cr_assert(input_gate_next_early(e.in[0], &early));
		cr_assert_eq(early.event->checkpoint_id, id);
	}
	cr_assert(input_gate_convert(e.in[0], 0, 2));
	cr_assert(input_gate_next_early(e.in[0], &early));
	cr_assert_eq(early.event->checkpoint_id, 2);
	cr_assert(early.is_barrier);
	cr_assert_not(input_gate_convert(e.in[0], 0, 2));
	edge_close(&e);
}

Test(input_channel, what_a_poll_brought_is_buffers_and_events)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	edge_announce(&e, 0, edge_barrier(1));
	edge_push(&e, 0);
	cr_assert_eq(input_gate_poll(e.in[0]), 2);
	cr_assert_eq(input_gate_poll(e.in[0]), 0);
	edge_close(&e);
}

/* ---- recovered ---- */

Test(input_channel, a_single_recovered_buffer_is_one_too)
{
	struct edge e;
	struct buf *b;

	edge_open(&e, &EDGE_JOIN);
	b = buf_alloc(e.pool);
	for (uint64_t i = 0; i < 4; i++)
		memcpy(b->data + 16 * i, (uint64_t[]){0, 100 + i}, 16);
	b->size_bytes = 64;
	b->first_record = 0;
	cr_assert_eq(input_gate_restore(e.in[0], 0, &b, 1), 0);
	cr_assert_eq(input_gate_restore(e.in[0], 1, NULL, 0), 0);
	cr_assert_eq(input_gate_recovered_left(e.in[0]), 1);
	edge_expect_values(&e, 0, 100, 4);
	cr_assert_eq(input_gate_recovered_left(e.in[0]), 0);
	edge_close(&e);
}

/* ---- bounds ---- */

Test(input_channel, a_gate_has_between_one_channel_and_its_maximum)
{
	static struct ring_channel *channels[CHANNELS_PER_GATE_MAX + 1];
	struct input_gate_config config = {.channels = channels, .record_bytes = 16};
	struct input_gate *g;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t c = 0; c <= CHANNELS_PER_GATE_MAX; c++)
		channels[c] = e.channels[0][0];
	cr_assert_eq(input_gate_create(&g, &config), -EINVAL);
	config.channel_count = CHANNELS_PER_GATE_MAX + 1;
	cr_assert_eq(input_gate_create(&g, &config), -EINVAL);
	config.channel_count = CHANNELS_PER_GATE_MAX;
	cr_assert_eq(input_gate_create(&g, &config), 0);
	input_gate_destroy(g);
	edge_close(&e);
}

Test(input_channel, room_for_a_record_that_spans_buffers_is_part_of_the_sum)
{
	struct input_gate_config config = {.channel_count = 4, .record_bytes = 16};
	uint64_t fixed = input_gate_memory_bytes(&config);

	config.record_bytes = 0;
	config.record_bytes_max = 1000;
	cr_assert_eq(input_gate_memory_bytes(&config),
			fixed + 4 * (RECORD_PREFIX_BYTES + 1000));
	config.channel_count = 8;
	config.record_bytes = 1;
	cr_assert_gt(input_gate_memory_bytes(&config), fixed);
}
