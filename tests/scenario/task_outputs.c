/*
 * Output subpartitions: a consumer takes everything at once, until the script blocks it.  Its
 * credit is given on demand, so that a blocked one has none left over.
 */

#include "tests/scenario/task_parts.h"

#include "dataplane/base/check.h"
#include "dataplane/base/key_group.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/wire/buf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_GROUPS = KEY_GROUPS_COUNT_MAX };

static const struct channel_config output_config = {.queue_count = 32, .credit_count = 32};

/* A key that the hash edge sends to that subpartition. */
static uint64_t key_for(uint32_t output, uint32_t count)
{
	uint64_t key = 0;

	while (key_group_subtask(key_group_of(key_hash(&key, sizeof(key)), OUTPUT_GROUPS),
			       OUTPUT_GROUPS, count) != output)
		key++;
	return key;
}

/* Buffers numbered below `count` may be sent. */
static void grant(struct output_end *end, uint64_t count)
{
	ring_channel_grant(end->channel, count - output_config.credit_count);
}

bool task_outputs_create(struct task_world *w)
{
	struct ring_channel *channels[CHANNELS_PER_GATE_MAX];
	uint32_t count = w->settings.output_count;

	if (count == 0)
		return true;
	if (buf_pool_from_heap(&w->output_pool, EMITTED_BYTES,
			    count * channel_buffers_max(&output_config)) != 0)
		return false;
	for (uint32_t o = 0; o < count; o++) {
		struct output_end *end = &w->outputs[o];

		if (ring_channel_create(&end->channel, &output_config) != 0)
			return false;
		channels[o] = end->channel;
		grant(end, 0);
		end->key = key_for(o, count);
	}
	struct output_gate_config config = {
			.pool = w->output_pool,
			.channels = channels,
			.partitioner = {.kind = PARTITIONER_HASH,
					.channel_count = count,
					.key_group_count = OUTPUT_GROUPS,
					.key_bytes = sizeof(uint64_t)},
			.record_bytes = EMITTED_BYTES,
			.flush_ns = 0,
	};
	return output_gate_create(&w->output_gate, &config) == 0;
}

void task_outputs_destroy(struct task_world *w)
{
	output_gate_destroy(w->output_gate);
	for (uint32_t o = 0; o < w->settings.output_count; o++) {
		ring_channel_destroy(w->outputs[o].channel);
		task_words_clear(&w->outputs[o].sent);
	}
	buf_pool_destroy(w->output_pool);
}

/* ---- receive ---- */

static void see_event(struct task_world *w, struct output_end *end, const struct event *e)
{
	switch ((enum event_kind)e->kind) {
	case EVENT_BARRIER:
		task_world_add(w, &end->sent, "sent", "%c%" PRId64,
				event_is_barrier_ahead(e) ? 'u' : 'b', e->checkpoint_id);
		return;
	case EVENT_CANCEL:
		task_world_add(w, &end->sent, "sent", "X%" PRId64, e->checkpoint_id);
		return;
	case EVENT_END_OF_DATA:
		task_world_add(w, &end->sent, "sent", "%s",
				e->stop_mode == STOP_NO_DRAIN ? "eod-no-drain" : "eod");
		return;
	case EVENT_END_OF_PARTITION:
		task_world_add(w, &end->sent, "sent", "E");
		return;
	}
	CHECK(!"an event kind");
}

/* Those with priority at once, the others when their cut is the position; in their order. */
static void see_due_events(struct task_world *w, struct output_end *end)
{
	uint32_t due = 0;

	while (due < end->event_count && end->events[due].cut == end->position) {
		if (due >= end->seen_count || !event_is_barrier_ahead(&end->events[due]))
			see_event(w, end, &end->events[due]);
		due++;
	}
	for (uint32_t i = due > end->seen_count ? due : end->seen_count; i < end->event_count;
			i++) {
		if (event_is_barrier_ahead(&end->events[i]))
			see_event(w, end, &end->events[i]);
	}
	end->event_count -= due;
	end->seen_count = end->event_count;
	memmove(end->events, end->events + due, end->event_count * sizeof(end->events[0]));
}

static void see_buf(struct task_world *w, struct output_end *end, struct buf *b)
{
	CHECK(b->sequence == end->position);
	for (uint32_t at = 0; at < b->size_bytes; at += EMITTED_BYTES) {
		uint32_t label = task_label_read(b->data + at + sizeof(uint64_t), sizeof(uint64_t));

		if (label != 0)
			task_world_add(w, &end->sent, "sent", "%s",
					task_world_label_text(w, label));
	}
	buf_release(b);
	end->position++;
}

/* Data first, then control, then look at both (DESIGN "Order between the lanes"). */
static bool receive(struct task_world *w, struct output_end *end)
{
	struct buf *bufs[64];
	uint32_t room = CHANNEL_CONTROL_MAX - end->event_count;
	uint32_t count = ring_channel_take(end->channel, bufs, 64);
	uint32_t events = ring_channel_take_events(
			end->channel, end->events + end->event_count, room);

	end->event_count += events;
	see_due_events(w, end);
	for (uint32_t i = 0; i < count; i++) {
		see_buf(w, end, bufs[i]);
		see_due_events(w, end);
	}
	return count + events > 0;
}

/* What waits is wanted at once.  A blocked consumer wants nothing, but a buffer without records,
 * which carries only event time, costs no credit. */
static void grant_wanted(struct output_end *end, const struct output_queue *q)
{
	uint32_t wanted = output_queue_count(q);

	if (end->is_blocked && wanted > 0)
		wanted = output_queue_at(q, 0)->size_bytes == 0;
	if (wanted > 0)
		grant(end, q->pushed_count + wanted);
}

bool task_outputs_move(struct task_world *w)
{
	bool has_moved = false;

	for (uint32_t o = 0; o < w->settings.output_count; o++)
		grant_wanted(&w->outputs[o], output_gate_queue(w->output_gate, o));
	if (w->output_gate != NULL)
		has_moved = output_gate_poll(w->output_gate, task_world_now_ns(w)) > 0;
	for (uint32_t o = 0; o < w->settings.output_count; o++)
		has_moved |= receive(w, &w->outputs[o]);
	return has_moved;
}
