/* Input channels: the sender's end is ours, and so is the order in which things are taken. */

#include "tests/scenario/task_world.h"

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
	const struct channel_config config = {LINE_QUEUE_COUNT, LINE_CREDIT_COUNT};
	uint32_t count = w->settings.channel_count, first = 0;

	if (buf_pool_from_heap(&w->input_pool, w->settings.buffer_bytes,
			    count * channel_buffers_max(&config) + 1) != 0)
		return false;
	for (uint32_t c = 0; c < count; c++) {
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

	for (uint32_t i = 0; i < w->element_count; i++) {
		struct element *e = &w->elements[i];

		if (e->channel != channel || e->is_pushed)
			continue;
		if (!has_room(q, e))
			break;
		push_element(w, e);
	}
	(void)output_queue_push(q);
}

void task_lines_arrive(struct task_world *w, const struct element *e)
{
	w->elements = reallocarray(w->elements, w->element_count + 1, sizeof(*e));
	CHECK(w->elements != NULL);
	w->elements[w->element_count++] = *e;
	push_line(w, e->channel);
}

/* ---- take ---- */

bool task_lines_is_blocked(const struct task_world *w, uint32_t channel)
{
	uint32_t gate = 0;

	while (gate + 1 < w->settings.gate_count && channel >= w->first_channel[gate + 1])
		gate++;
	return input_gate_is_blocked(w->input_gates[gate], channel - w->first_channel[gate]);
}

static bool is_taken(const struct element *e)
{
	return e->taken_count > 0 && e->taken_count >= e->event_count;
}

/* Data is one record and so one item. */
static bool take_element(struct task_world *w, uint32_t index)
{
	do {
		struct element *e = &w->elements[index];

		if (stream_task_status(w->task) != TASK_RUNNING)
			return false;
		push_line(w, e->channel);
		if (!stream_task_take_from(w->task, e->channel))
			return false;
		e->taken_count++;
		task_world_serve(w);
	} while (!is_taken(&w->elements[index]));
	return true;
}

bool task_lines_take(struct task_world *w)
{
	for (uint32_t i = 0; i < w->element_count; i++) {
		if (!is_taken(&w->elements[i]) && !task_lines_is_blocked(w, w->elements[i].channel))
			return take_element(w, i);
	}
	return false;
}
