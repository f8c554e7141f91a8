/* Input channels: the sender's end is ours, and so is the order in which things are taken. */

#include "tests/scenario/task_parts.h"

#include "dataplane/base/check.h"
#include "dataplane/channel/input_gate.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void task_label_write(uint8_t *record, uint32_t bytes, uint32_t number)
{
	for (uint32_t i = 0; i < bytes; i++)
		record[i] = i < sizeof(number) ? (uint8_t)(number >> 8 * i) : 0;
}

uint32_t task_label_read(const uint8_t *record, uint32_t bytes)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < bytes && i < sizeof(number); i++)
		number |= (uint32_t)record[i] << 8 * i;
	return number;
}

/* ---- life ---- */

static int create_gate(struct task_world *w, uint32_t gate)
{
	uint32_t first = w->first_channel[gate], count = w->settings.gate_channels[gate];
	struct ring_channel *channels[CHANNELS_PER_GATE_MAX];
	struct input_gate_config config = {
			.channels = channels,
			.channel_count = count,
			.record_bytes = w->settings.buffer_bytes,
			.record_bytes_max = w->settings.buffer_bytes,
	};

	for (uint32_t c = 0; c < count; c++)
		channels[c] = w->lines[first + c].channel;
	return input_gate_create(&w->input_gates[gate], &config);
}

bool task_lines_create(struct task_world *w)
{
	struct channel_config config = {
			.queue_count = LINE_QUEUE_COUNT, .credit_count = LINE_CREDIT_COUNT};
	uint32_t count = w->settings.channel_count, first = 0;

	if (buf_pool_from_heap(&w->input_pool, w->settings.buffer_bytes,
			    count * channel_buffers_max(&config) + 1) != 0)
		return false;
	for (uint32_t c = 0; c < count; c++) {
		w->lines[c].is_local = w->settings.is_local[w->settings.link_count == 1 ? 0 : c];
		config.is_plain = w->lines[c].is_local;
		if (ring_channel_create(&w->lines[c].channel, &config) != 0)
			return false;
		output_queue_init(&w->lines[c].queue, w->lines[c].channel);
	}
	for (uint32_t g = 0; g < w->settings.gate_count; g++) {
		w->first_channel[g] = first;
		if (create_gate(w, g) != 0)
			return false;
		first += w->settings.gate_channels[g];
	}
	return true;
}

void task_lines_destroy(struct task_world *w)
{
	for (uint32_t g = 0; g < w->settings.gate_count; g++)
		input_gate_destroy(w->input_gates[g]);
	for (uint32_t c = 0; c < w->settings.channel_count; c++) {
		if (w->lines[c].channel != NULL)
			output_queue_clear(&w->lines[c].queue);
		ring_channel_destroy(w->lines[c].channel);
	}
	buf_pool_destroy(w->input_pool);
}

/* ---- arrive ---- */

static bool has_room(const struct output_queue *q, const struct element *e)
{
	for (uint32_t i = 0; i < e->event_count; i++) {
		if (!output_queue_has_room(q, (enum event_kind)e->events[i].kind))
			return false;
	}
	return e->event_count > 0 || output_queue_count(q) < LINE_QUEUE_COUNT;
}

static void push_element(struct task_world *w, struct element *e)
{
	struct output_queue *q = &w->lines[e->channel].queue;

	e->is_pushed = true;
	for (uint32_t i = 0; i < e->event_count; i++)
		output_queue_announce(q, &e->events[i]);
	e->announcement = q->announcement;
	if (e->event_count > 0)
		return;
	struct buf *b = buf_alloc(w->input_pool);
	CHECK(b != NULL);
	b->size_bytes = b->capacity_bytes;
	b->first_record = 0;
	task_label_write(b->data, b->size_bytes, e->label);
	output_queue_add(q, b);
}

/* Puts into the channel what has arrived on it, as far as it has room. */
static void push_line(struct task_world *w, uint32_t channel)
{
	struct output_queue *q = &w->lines[channel].queue;

	for (uint32_t i = 0; i < w->element_count && !w->lines[channel].is_local; i++) {
		struct element *e = &w->elements[i];

		if (e->channel != channel || e->is_pushed)
			continue;
		if (!has_room(q, e))
			break;
		push_element(w, e);
	}
	(void)output_queue_push(q);
}

/* What a local link holds goes into the channel only to be taken, or if it overtakes the rest. */
static void push_local(struct task_world *w, struct element *e)
{
	struct input_line *line = &w->lines[e->channel];

	if (!line->is_local || e->is_pushed)
		return;
	push_element(w, e);
	(void)output_queue_push(&line->queue);
}

void task_lines_arrive(struct task_world *w, const struct element *e)
{
	w->elements = reallocarray(w->elements, w->element_count + 1, sizeof(*e));
	CHECK(w->elements != NULL);
	w->elements[w->element_count++] = *e;
	if (e->is_ahead)
		push_local(w, &w->elements[w->element_count - 1]);
	push_line(w, e->channel);
}

/* ---- take ---- */

struct gate_place {
	const struct input_gate *gate;
	uint32_t channel;
};

static struct gate_place place_of(const struct task_world *w, uint32_t channel)
{
	uint32_t gate = 0;

	while (gate + 1 < w->settings.gate_count && channel >= w->first_channel[gate + 1])
		gate++;
	return (struct gate_place){w->input_gates[gate], channel - w->first_channel[gate]};
}

bool task_lines_is_blocked(const struct task_world *w, uint32_t channel)
{
	struct gate_place p = place_of(w, channel);

	return input_gate_is_blocked(p.gate, p.channel);
}

static bool is_stopped(const struct task_world *w, uint32_t channel)
{
	struct gate_place p = place_of(w, channel);

	return input_gate_is_stopped(p.gate, p.channel);
}

/* It was handled ahead of the line: when its turn comes, there is nothing to take. */
static bool was_handled(const struct task_world *w, const struct element *e)
{
	struct gate_place p = place_of(w, e->channel);

	return e->is_pushed && e->event_count == 1 && e->events[0].kind == EVENT_BARRIER &&
			!input_gate_is_in_line(p.gate, p.channel, e->announcement);
}

/* Data is one record and so one item. */
static bool is_taken(const struct task_world *w, const struct element *e)
{
	if (e->is_ahead || (e->taken_count > 0 && e->taken_count >= e->event_count))
		return true;
	return was_handled(w, e);
}

static bool take_element(struct task_world *w, uint32_t index)
{
	do {
		struct element *e = &w->elements[index];

		if (stream_task_status(w->task) != TASK_RUNNING)
			return false;
		push_line(w, e->channel);
		push_local(w, e);
		if (!stream_task_take_from(w->task, e->channel, task_world_now_ns(w)))
			return false;
		w->elements[index].taken_count++;
		task_world_serve(w);
	} while (!is_taken(w, &w->elements[index]));
	return true;
}

bool task_lines_take(struct task_world *w)
{
	for (uint32_t i = 0; i < w->element_count; i++) {
		uint32_t channel = w->elements[i].channel;

		if (is_taken(w, &w->elements[i]) || is_stopped(w, channel))
			continue;
		if (take_element(w, i))
			return true;
		/* The block may lie behind what was handled ahead: it is reached now. */
		if (!is_stopped(w, channel))
			return false;
	}
	return false;
}
