#include "dataplane/channel/output_queue.h"

enum { BUFS_MASK = CHANNEL_BUFFERS_MAX - 1, EVENTS_MASK = CHANNEL_CONTROL_MAX - 1 };

void output_queue_init(struct output_queue *q, struct ring_channel *channel)
{
	*q = (struct output_queue){
			.channel = channel,
			.credit = ring_channel_credit(channel),
	};
}

void output_queue_add(struct output_queue *q, struct buf *b)
{
	CHECK(output_queue_count(q) < CHANNEL_BUFFERS_MAX);
	b->sequence = q->next_sequence;
	b->announcement = q->announcement;
	q->bufs[q->next_sequence & BUFS_MASK] = b;
	q->next_sequence++;
}

/* How much room stays for kinds that must not be turned away. */
static uint32_t reserved(enum event_kind kind)
{
	switch (kind) {
	case EVENT_BARRIER:
		return OUTPUT_QUEUE_EVENTS_RESERVED;
	case EVENT_CANCEL:
		return 2;
	case EVENT_END_OF_DATA:
		return 1;
	case EVENT_END_OF_PARTITION:
		return 0;
	}
	CHECK(!"an event kind");
	return 0;
}

bool output_queue_has_room(const struct output_queue *q, enum event_kind kind)
{
	return output_queue_event_count(q) + reserved(kind) < CHANNEL_CONTROL_MAX;
}

void output_queue_announce(struct output_queue *q, const struct event *e)
{
	CHECK(output_queue_has_room(q, (enum event_kind)e->kind));

	struct event *copy = &q->events[q->event_tail & EVENTS_MASK];
	*copy = *e;
	copy->cut = q->next_sequence;
	copy->announcement = ++q->announcement;
	q->event_tail++;
}

static uint32_t push_events(struct output_queue *q)
{
	uint32_t moved = 0;

	while (q->event_head != q->event_tail) {
		uint32_t from = q->event_head & EVENTS_MASK;
		uint32_t run = output_queue_event_count(q);

		if (run > CHANNEL_CONTROL_MAX - from)
			run = CHANNEL_CONTROL_MAX - from;

		uint32_t taken = ring_channel_announce(q->channel, &q->events[from], run);
		q->event_head += taken;
		moved += taken;
		if (taken < run)
			break;
	}
	return moved;
}

/* Buffers below it may leave: credited, and before every event that has not left. */
static uint64_t push_limit(struct output_queue *q)
{
	uint64_t limit = q->next_sequence;

	if (q->event_head != q->event_tail)
		limit = q->events[q->event_head & EVENTS_MASK].cut;
	if (q->credit < limit)
		q->credit = ring_channel_credit(q->channel);
	return q->credit < limit ? q->credit : limit;
}

uint32_t output_queue_push(struct output_queue *q)
{
	uint32_t moved = push_events(q);
	uint64_t limit = push_limit(q);

	while (q->pushed_count < limit) {
		uint32_t from = (uint32_t)q->pushed_count & BUFS_MASK;
		uint64_t run = limit - q->pushed_count;

		if (run > CHANNEL_BUFFERS_MAX - from)
			run = CHANNEL_BUFFERS_MAX - from;
		ring_channel_push(q->channel, &q->bufs[from], (uint32_t)run);
		q->pushed_count += run;
		moved += (uint32_t)run;
	}
	return moved;
}

void output_queue_clear(struct output_queue *q)
{
	for (; q->pushed_count < q->next_sequence; q->pushed_count++)
		buf_release(q->bufs[q->pushed_count & BUFS_MASK]);
	q->event_head = q->event_tail;
}
