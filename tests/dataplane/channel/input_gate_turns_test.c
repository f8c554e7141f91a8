#include "dataplane/channel/input_gate.h"

#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <string.h>

/* Whose turn it is, which end is near, and what is counted. */

static struct event early(int64_t id)
{
	struct event e = edge_barrier(id);

	e.options.alignment = ALIGNMENT_UNALIGNED;
	return e;
}

static void send_event(struct edge *e, uint32_t from, struct event event)
{
	edge_announce(e, from, event);
	edge_push(e, from);
}

/* Takes the next item, which is of that kind and channel. */
static void take(struct edge *e, enum input_item_kind kind, uint32_t channel)
{
	struct input_item item;

	cr_assert(edge_next(e, 0, &item));
	cr_assert_eq(item.kind, kind);
	cr_assert_eq(item.channel, channel);
	input_gate_consume(e->in[0], kind == INPUT_RECORDS ? item.batch.count : 1);
}

/* ---- turns ---- */

Test(input_gate_turns, a_look_in_vain_is_nobody_s_turn)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_not(edge_next(&e, 0, &item));
	for (uint32_t from = 0; from < 2; from++) {
		edge_send_run(&e, from, 0, 4);
		edge_push(&e, from);
	}
	take(&e, INPUT_RECORDS, 0);
	take(&e, INPUT_RECORDS, 1);
	edge_close(&e);
}

Test(input_gate_turns, an_event_is_a_turn_too)
{
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	send_event(&e, 0, edge_barrier(1));
	send_event(&e, 0, edge_barrier(2));
	edge_send_run(&e, 1, 0, 4);
	edge_push(&e, 1);
	take(&e, INPUT_EVENT, 0);
	take(&e, INPUT_RECORDS, 1);
	take(&e, INPUT_EVENT, 0);
	edge_close(&e);
}

/* ---- watermarks ---- */

/* Straight into the lane: a sender does not say so. */
static void say_watermark(struct edge *e, uint32_t from, uint32_t number, int64_t watermark)
{
	struct event event = {.kind = EVENT_CANCEL,
			.checkpoint_id = 1,
			.announcement = number,
			.watermark = watermark};

	cr_assert_eq(ring_channel_announce(e->channels[from][0], &event, 1), 1);
}

Test(input_gate_turns, a_channel_s_watermark_does_not_go_back)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	say_watermark(&e, 0, 1, 5);
	say_watermark(&e, 0, 2, 3);
	take(&e, INPUT_EVENT, 0);
	take(&e, INPUT_EVENT, 0);
	say_watermark(&e, 1, 1, 4);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	cr_assert_eq(item.watermark, 4);
	input_gate_consume(e.in[0], 1);
	take(&e, INPUT_EVENT, 1);
	edge_close(&e);
}

/* ---- the end of a channel, asked for by itself ---- */

static bool next_end(struct edge *e, struct input_item *item)
{
	input_gate_poll(e->in[0]);
	return input_gate_next_end(e->in[0], item);
}

Test(input_gate_turns, an_end_is_given_on_whichever_channel_it_is_next)
{
	struct input_item item;
	struct edge e;

	for (uint32_t from = 0; from < 2; from++) {
		edge_open(&e, &EDGE_JOIN);
		cr_assert_not(next_end(&e, &item));
		edge_send_run(&e, 1 - from, 0, 4);
		edge_push(&e, 1 - from);
		cr_assert_not(next_end(&e, &item));
		send_event(&e, from, edge_event(EVENT_END_OF_PARTITION));
		cr_assert(next_end(&e, &item));
		cr_assert_eq(item.channel, from);
		cr_assert_eq(item.event->kind, EVENT_END_OF_PARTITION);
		input_gate_consume(e.in[0], 1);
		cr_assert_not(input_gate_is_open(e.in[0], from));
		cr_assert_not(next_end(&e, &item));
		edge_close(&e);
	}
}

Test(input_gate_turns, no_end_is_given_before_records_and_events_that_come_first)
{
	struct input_early heard;
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	edge_announce(&e, 0, early(1));
	edge_announce(&e, 0, early(2));
	send_event(&e, 0, edge_event(EVENT_END_OF_PARTITION));
	cr_assert_not(next_end(&e, &item));
	cr_assert(input_gate_next_early(e.in[0], &heard));
	cr_assert_not(next_end(&e, &item), "records and a barrier come first");
	cr_assert(edge_next(&e, 0, &item));
	input_gate_consume(e.in[0], 3);
	cr_assert_not(next_end(&e, &item), "a buffer is begun");
	cr_assert(edge_next(&e, 0, &item));
	input_gate_consume(e.in[0], 1);
	cr_assert_not(next_end(&e, &item), "the second barrier is due");
	cr_assert(input_gate_next_early(e.in[0], &heard));
	cr_assert(next_end(&e, &item), "both were handled ahead of their turn");
	edge_close(&e);
}

Test(input_gate_turns, no_end_is_given_of_a_channel_that_is_blocked)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	send_event(&e, 0, edge_event(EVENT_END_OF_PARTITION));
	input_gate_block(e.in[0], 0);
	cr_assert_not(next_end(&e, &item));
	input_gate_resume(e.in[0], 0);
	cr_assert(next_end(&e, &item));
	edge_close(&e);
}

Test(input_gate_turns, no_end_is_given_before_a_watermark_that_is_due)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (uint32_t from = 0; from < 2; from++)
		output_gate_watermark(e.out[from], 7);
	send_event(&e, 0, edge_event(EVENT_END_OF_PARTITION));
	send_event(&e, 1, edge_event(EVENT_END_OF_PARTITION));
	cr_assert(next_end(&e, &item)); /* the other one does not know the time yet */
	cr_assert_eq(item.channel, 0);
	input_gate_consume(e.in[0], 1);
	cr_assert_not(next_end(&e, &item), "the end brings a watermark");
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	input_gate_consume(e.in[0], 1);
	cr_assert(next_end(&e, &item));
	edge_close(&e);
}

Test(input_gate_turns, no_end_is_given_while_a_step_is_due)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	say_watermark(&e, 0, 1, 5);
	say_watermark(&e, 1, 1, 5);
	take(&e, INPUT_EVENT, 0);
	cr_assert(edge_next(&e, 0, &item));
	cr_assert_eq(item.kind, INPUT_WATERMARK);
	input_gate_consume(e.in[0], 0); /* not now */
	cr_assert_not(next_end(&e, &item));
	edge_close(&e);
}

static void restore_one(struct edge *e)
{
	struct buf *b = buf_alloc(e->pool);

	for (uint64_t i = 0; i < 4; i++)
		memcpy(b->data + 16 * i, (uint64_t[]){0, i}, 16);
	b->size_bytes = 64;
	b->first_record = 0;
	cr_assert_eq(input_gate_restore(e->in[0], 0, &b, 1), 0);
}

Test(input_gate_turns, no_end_is_given_before_what_was_recovered)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	restore_one(&e);
	cr_assert_eq(input_gate_queued_count(e.in[0]), 1);
	send_event(&e, 0, edge_event(EVENT_END_OF_PARTITION));
	cr_assert_not(next_end(&e, &item));
	edge_expect_values(&e, 0, 0, 4);
	cr_assert_eq(input_gate_queued_count(e.in[0]), 0);
	cr_assert(next_end(&e, &item));
	edge_close(&e);
}

Test(input_gate_turns, what_was_recovered_on_one_channel_hides_no_end_of_another)
{
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	restore_one(&e);
	send_event(&e, 0, edge_event(EVENT_END_OF_PARTITION));
	send_event(&e, 1, edge_event(EVENT_END_OF_PARTITION));
	cr_assert(next_end(&e, &item));
	cr_assert_eq(item.channel, 1);
	input_gate_consume(e.in[0], 1);
	cr_assert_not(next_end(&e, &item));
	edge_expect_values(&e, 0, 0, 4);
	cr_assert(next_end(&e, &item));
	edge_close(&e);
}

/* ---- blocked ---- */

/* What a channel was once blocked behind says nothing of the next time. */
Test(input_gate_turns, a_channel_blocked_again_stops_at_once)
{
	struct input_early heard;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	edge_send_run(&e, 0, 0, 4);
	send_event(&e, 0, early(1));
	input_gate_poll(e.in[0]);
	cr_assert(input_gate_next_early(e.in[0], &heard));
	input_gate_block_behind(e.in[0], 0, heard.event);
	cr_assert_not(input_gate_is_stopped(e.in[0], 0));
	input_gate_resume(e.in[0], 0);
	input_gate_block(e.in[0], 0);
	cr_assert(input_gate_is_stopped(e.in[0], 0));
	edge_close(&e);
}

/* ---- ahead of the line ---- */

/* The ring of events comes round in the middle of a poll. */
Test(input_gate_turns, barriers_are_heard_of_wherever_they_lie)
{
	struct input_early heard;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	for (int64_t i = 1; i < CHANNEL_CONTROL_MAX; i++) {
		send_event(&e, 0, edge_barrier(i));
		take(&e, INPUT_EVENT, 0);
	}
	edge_announce(&e, 0, early(100));
	edge_announce(&e, 0, early(101));
	edge_push(&e, 0);
	cr_assert_eq(input_gate_poll(e.in[0]), 2);
	for (int64_t id = 100; id <= 101; id++) {
		cr_assert(input_gate_next_early(e.in[0], &heard));
		cr_assert_eq(heard.event->checkpoint_id, id);
	}
	edge_close(&e);
}

/* So many that the line is full of them; then all are handled at once. */
static void fill_line(struct edge *e, int64_t count)
{
	edge_send_run(e, 0, 0, 4);
	for (int64_t id = 1; id <= count; id++) {
		send_event(e, 0, early(id));
		input_gate_poll(e->in[0]);
	}
}

Test(input_gate_turns, a_full_line_makes_room_when_all_in_it_was_handled)
{
	const struct event *arrived;
	struct input_early heard;
	uint32_t channel;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	fill_line(&e, CHANNEL_CONTROL_MAX + 2);
	for (int64_t id = 1; id <= CHANNEL_CONTROL_MAX; id++) {
		cr_assert(input_gate_next_arrival(e.in[0], &channel, &arrived));
		cr_assert_eq(arrived->checkpoint_id, id);
		cr_assert(input_gate_next_early(e.in[0], &heard));
		cr_assert_eq(heard.event->checkpoint_id, id);
	}
	for (int64_t id = CHANNEL_CONTROL_MAX + 1; id <= CHANNEL_CONTROL_MAX + 2; id++) {
		input_gate_poll(e.in[0]);
		cr_assert(input_gate_next_early(e.in[0], &heard));
		cr_assert_eq(heard.event->checkpoint_id, id);
	}
	edge_close(&e);
}

Test(input_gate_turns, a_full_line_forgets_no_arrival_that_was_not_told)
{
	const struct event *arrived;
	struct input_early heard;
	uint32_t channel;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	fill_line(&e, CHANNEL_CONTROL_MAX + 2);
	for (int64_t id = 1; id <= CHANNEL_CONTROL_MAX; id++)
		cr_assert(input_gate_next_early(e.in[0], &heard));
	input_gate_poll(e.in[0]);
	for (int64_t id = 1; id <= CHANNEL_CONTROL_MAX; id++) {
		cr_assert(input_gate_next_arrival(e.in[0], &channel, &arrived));
		cr_assert_eq(arrived->checkpoint_id, id);
	}
	edge_close(&e);
}

/* ---- counters ---- */

Test(input_gate_turns, records_bytes_buffers_and_events_are_counted_as_they_pass)
{
	const struct input_gate_counters *c;
	struct input_item item;
	struct edge e;

	edge_open(&e, &EDGE_JOIN);
	c = input_gate_counters(e.in[0]);
	edge_send_run(&e, 0, 0, 6);
	send_event(&e, 0, edge_barrier(1));
	cr_assert(edge_next(&e, 0, &item));
	input_gate_consume(e.in[0], 3);
	cr_assert_eq(c->records, 3);
	cr_assert_eq(c->bufs, 1);
	cr_assert_eq(c->bytes, 64);
	edge_expect_values(&e, 0, 3, 3);
	take(&e, INPUT_EVENT, 0);
	cr_assert_eq(c->records, 6);
	cr_assert_eq(c->bufs, 2);
	cr_assert_eq(c->bytes, 96);
	cr_assert_eq(c->events, 1);
	edge_close(&e);
}
