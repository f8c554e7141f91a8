/* The input part of stream_task: what is taken, in which order (13.1, 16.8). */

#include <errno.h>
#include <stdio.h>

#include "dataplane/base/check.h"
#include "dataplane/task/stream_task_internal.h"

/* One turn takes no more than this, so that mail and neighbours are never far away (MB-7). */
enum { TURN_ITEMS_MAX = 16, TURN_POLLS_MAX = 8 };
/* Nor does it begin another call of its operators when it has lasted so long: one may block. */
enum { TURN_NS_MAX = 100000 };
/* A rest is no shorter than what a disk can use, and no longer than it needs. */
enum { REST_NS_MIN = 500000, REST_NS_MAX = 10000000 };

/* The first `count` records. */
static void shorten(struct weir_batch *batch, uint32_t count)
{
	uint32_t at = 0, bytes;

	if (count >= batch->count)
		return;
	if (batch->record_bytes != 0) {
		at = count * batch->record_bytes;
	} else {
		for (uint32_t i = 0; i < count; i++) {
			(void)weir_record_at(batch->data + at, &bytes);
			at += (uint32_t)sizeof(bytes) + bytes;
		}
	}
	batch->count = count;
	batch->data_bytes = at;
}

/* false: the chain took nothing now. */
static bool take_records(struct stream_task *t, struct input_gate *gate, struct weir_batch *batch)
{
	uint32_t room = chain_room(t->config.chain);

	if (room == 0)
		return false;
	shorten(batch, room);
	uint32_t taken = chain_process(t->config.chain, batch);
	input_gate_consume(gate, taken);
	return taken > 0;
}

/* The watermark of the task is the lowest of its gates. */
static void take_watermark(struct stream_task *t, struct input_gate *gate)
{
	int64_t lowest = INT64_MAX;

	input_gate_consume(gate, 1);
	for (uint32_t i = 0; i < t->config.input_count; i++) {
		int64_t here = input_gate_watermark(t->config.inputs[i]);

		lowest = here < lowest ? here : lowest;
	}
	/* The end of event time is the task's own to declare, when all its data is in. */
	if (lowest != INT64_MIN && lowest != INT64_MAX)
		chain_watermark(t->config.chain, lowest);
}

static void take_event(struct stream_task *t, uint32_t gate_index, const struct input_item *item)
{
	struct input_gate *gate = t->config.inputs[gate_index];
	uint32_t channel = t->first_channel[gate_index] + item->channel;
	struct event e = *item->event;

	input_gate_consume(gate, 1);
	switch (e.kind) {
	case EVENT_BARRIER:
		stream_task_on_barrier(t, channel, &e, BARRIER_IN_LINE);
		/* Over a plain ring what is behind it was not known, and may be of another
		 * checkpoint that has begun. */
		(void)stream_task_persist_input(t);
		break;
	case EVENT_CANCEL:
		stream_task_on_cancel(t, channel, &e);
		break;
	case EVENT_END_OF_DATA:
		input_gate_all_processed(gate, item->channel);
		t->ended_channel_count++;
		if (e.stop_mode == STOP_NO_DRAIN)
			t->stop_mode = STOP_NO_DRAIN;
		if (t->ended_channel_count == t->channel_count && t->phase == PHASE_RUNNING)
			t->phase = PHASE_LAST_WATERMARK;
		break;
	case EVENT_END_OF_PARTITION:
		stream_task_on_end_of_partition(t, channel);
		break;
	default:
		CHECK(false);
	}
}

/* IG-4. */
static void count_bytes(struct stream_task *t, uint32_t gate_index)
{
	uint64_t bytes = input_gate_counters(t->config.inputs[gate_index])->bytes;

	barrier_handler_add_bytes(t->handler, bytes - t->bytes_seen[gate_index]);
	t->bytes_seen[gate_index] = bytes;
}

/* What the gate gave, `count` as input_gate_next said.  True: something was taken. */
static bool take_given(
		struct stream_task *t, uint32_t gate_index, int count, struct input_item *item)
{
	struct input_gate *gate = t->config.inputs[gate_index];

	/* Also of buffers that held no whole record: they were read before what follows. */
	count_bytes(t, gate_index);
	if (count < 0) {
		stream_task_fail(t, "a buffer does not hold the records this edge agreed on");
		return false;
	}
	if (count == 0)
		return false;
	switch (item->kind) {
	case INPUT_RECORDS:
		return take_records(t, gate, &item->batch);
	case INPUT_WATERMARK:
		take_watermark(t, gate);
		return true;
	case INPUT_EVENT:
		take_event(t, gate_index, item);
		return true;
	}
	return false;
}

static bool take_item(struct stream_task *t, uint32_t gate_index)
{
	struct input_item item;
	int count = input_gate_next(t->config.inputs[gate_index], &item);

	return take_given(t, gate_index, count, &item);
}

bool stream_task_can_take(const struct stream_task *t)
{
	return t->status == TASK_RUNNING &&
			(t->phase == PHASE_RUNNING || t->phase == PHASE_AWAIT_FINAL) &&
			chain_failure(t->config.chain) == NULL;
}

/* ---- ahead of the line ---- */

static void tell_arrivals(struct stream_task *t)
{
	const struct event *barrier;
	uint32_t channel;

	for (uint32_t i = 0; i < t->config.input_count; i++) {
		while (input_gate_next_arrival(t->config.inputs[i], &channel, &barrier))
			stream_task_on_arrival(t, t->first_channel[i] + channel, barrier);
	}
}

/* From the lowest channel up, over all gates. */
static bool hear_one(struct stream_task *t)
{
	struct input_early early;

	for (uint32_t i = 0; i < t->config.input_count; i++) {
		if (!input_gate_next_early(t->config.inputs[i], &early))
			continue;
		struct event e = *early.event;
		uint32_t channel = t->first_channel[i] + early.channel;

		if (early.is_barrier)
			stream_task_on_barrier(t, channel, &e, BARRIER_AHEAD);
		else
			stream_task_on_announcement(t, channel, &e);
		return true;
	}
	return false;
}

static uint32_t hear_early(struct stream_task *t)
{
	uint32_t work = 0;

	while (stream_task_can_take(t) && hear_one(t))
		work++;
	return work;
}

uint32_t stream_task_hear(struct stream_task *t)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < t->config.input_count; i++)
		work += input_gate_poll(t->config.inputs[i]);
	tell_arrivals(t);
	work += hear_early(t);
	return work + stream_task_persist_input(t);
}

/* ---- the turn ---- */

static void begin_calls(struct stream_task *t)
{
	t->called_ns = t->config.clock->now_ns(t->config.clock);
}

/* Twice the call: the stream keeps a third of its pace while the disk is slow. */
static uint64_t rest_after(uint64_t call_ns)
{
	if (call_ns < REST_NS_MIN / 2)
		return REST_NS_MIN;
	return call_ns < REST_NS_MAX / 2 ? 2 * call_ns : REST_NS_MAX;
}

/* A call that has blocked gives the disk time afterwards. */
static bool is_turn_long(struct stream_task *t)
{
	uint64_t now_ns = t->config.clock->now_ns(t->config.clock);
	uint64_t call_ns = now_ns - t->called_ns;

	if (call_ns >= TURN_NS_MAX)
		t->rests_until_ns = now_ns + rest_after(call_ns);
	t->called_ns = now_ns;
	return now_ns >= t->now_ns + TURN_NS_MAX;
}

uint32_t stream_task_take_ends(struct stream_task *t)
{
	struct input_item item;
	uint32_t work = 0;

	for (uint32_t i = 0; i < t->config.input_count; i++) {
		while (barrier_handler_is_overtaking(t->handler) && stream_task_can_take(t) &&
				input_gate_next_end(t->config.inputs[i], &item)) {
			take_event(t, i, &item);
			work++;
		}
	}
	return work;
}

/* A snapshot has begun in this turn.  Its first step comes before more records: each would copy the
 * block it changes, out of order, which takes twice the time.  One item every turn takes all the
 * same, or checkpoints without a pause would leave no turn to what comes in. */
static bool has_begun_snapshot(const struct stream_task *t)
{
	return t->progress.step == CHECKPOINT_STEP_SNAPSHOT;
}

uint32_t stream_task_take_input(struct stream_task *t)
{
	uint32_t work = 0, dry = 0;

	begin_calls(t);
	for (uint32_t n = 0; n < TURN_ITEMS_MAX && dry < t->config.input_count; n++) {
		if (!stream_task_can_take(t) || !chain_advance(t->config.chain))
			break;
		if (take_item(t, t->next_gate)) {
			work++;
			dry = 0;
		} else {
			dry++;
			t->next_gate = (t->next_gate + 1) % t->config.input_count;
		}
		t->not_before_ns = chain_take_not_before(t->config.chain);
		if (t->not_before_ns > t->now_ns || is_turn_long(t) ||
				(work > 0 && has_begun_snapshot(t)))
			break;
	}
	return work;
}

bool stream_task_take_from(struct stream_task *t, uint32_t channel, uint64_t now_ns)
{
	uint32_t gate_index = 0;
	struct input_item item;

	CHECK(channel < t->channel_count);
	t->now_ns = now_ns;
	while (gate_index + 1 < t->config.input_count &&
			channel >= t->first_channel[gate_index + 1])
		gate_index++;
	(void)stream_task_hear(t);
	if (!stream_task_can_take(t) || !chain_advance(t->config.chain))
		return false;
	int count = input_gate_next_of(t->config.inputs[gate_index],
			channel - t->first_channel[gate_index], &item);
	return take_given(t, gate_index, count, &item);
}

uint32_t stream_task_poll_source(struct stream_task *t)
{
	uint32_t work = 0;

	begin_calls(t);
	for (uint32_t n = 0; n < TURN_POLLS_MAX; n++) {
		if (!stream_task_can_take(t) || t->phase != PHASE_RUNNING ||
				!chain_advance(t->config.chain))
			break;
		uint32_t room = chain_room(t->config.chain);
		if (room == 0)
			break;
		enum weir_poll result = chain_poll(t->config.chain, room);

		t->not_before_ns = chain_take_not_before(t->config.chain);
		if (result == WEIR_POLL_END) {
			t->phase = PHASE_LAST_WATERMARK;
			return work + 1;
		}
		if (result == WEIR_POLL_IDLE || is_turn_long(t))
			break;
		work++;
	}
	return work;
}
