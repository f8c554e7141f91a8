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
	CHECK(false); /* there is no other kind */
	return 0;
}

bool output_queue_has_room(const struct output_queue *q, enum event_kind kind)
{
	return output_queue_event_count(q) + reserved(kind) < CHANNEL_CONTROL_MAX;
}

static struct event *event_at(struct output_queue *q, uint32_t index)
{
	return &q->events[index & EVENTS_MASK];
}

static bool is_timeoutable(const struct event *e)
{
	return e->kind == EVENT_BARRIER && checkpoint_options_is_timeoutable(&e->options);
}

static bool is_waiting(const struct output_queue *q, const struct event *e)
{
	return is_timeoutable(e) && q->pushed_count < e->cut &&
			!ring_channel_config(q->channel)->is_plain;
}

/* Those before `index` that would hold it up. */
static void let_go(struct output_queue *q, uint32_t index)
{
	for (uint32_t i = q->event_head; i != index; i++) {
		if (is_timeoutable(event_at(q, i)))
			event_at(q, i)->options.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE;
	}
}

void output_queue_announce(struct output_queue *q, const struct event *e)
{
	CHECK(output_queue_has_room(q, (enum event_kind)e->kind));
	bool is_overtaking = event_is_barrier_ahead(e) &&
			!ring_channel_config(q->channel)->is_plain;

	if (is_overtaking) {
		let_go(q, q->event_tail);
		(void)output_queue_push(q);
	}
	struct event *copy = event_at(q, q->event_tail);
	*copy = *e;
	copy->cut = q->next_sequence;
	copy->boundary = is_overtaking ? q->pushed_count : copy->cut;
	copy->announcement = ++q->announcement;
	q->event_tail++;
}

/* ---- timeout ---- */

/* The index of the barrier that waits, or the tail. */
static uint32_t find_held(const struct output_queue *q, int64_t checkpoint_id)
{
	for (uint32_t i = q->event_head; i != q->event_tail; i++) {
		const struct event *e = &q->events[i & EVENTS_MASK];

		if (e->checkpoint_id == checkpoint_id && is_waiting(q, e))
			return i;
	}
	return q->event_tail;
}

bool output_queue_is_held(const struct output_queue *q, int64_t checkpoint_id)
{
	return find_held(q, checkpoint_id) != q->event_tail;
}

void output_queue_let_go(struct output_queue *q, int64_t checkpoint_id)
{
	uint32_t index = find_held(q, checkpoint_id);

	if (index != q->event_tail)
		let_go(q, index + 1);
}

uint32_t output_queue_time_out(struct output_queue *q, int64_t checkpoint_id)
{
	(void)output_queue_push(q);
	uint32_t index = find_held(q, checkpoint_id);
	if (index == q->event_tail)
		return 0;

	struct event *e = event_at(q, index);
	let_go(q, index);
	e->options = checkpoint_options_as_unaligned(&e->options);
	e->boundary = q->pushed_count;
	return (uint32_t)(e->cut - e->boundary);
}

/* ---- push ---- */

/* Events that may leave now, from the head, in one run of the array. */
static uint32_t leaving_run(const struct output_queue *q)
{
	uint32_t from = q->event_head & EVENTS_MASK;
	uint32_t most = output_queue_event_count(q), run = 0;

	if (most > CHANNEL_CONTROL_MAX - from)
		most = CHANNEL_CONTROL_MAX - from;
	while (run < most && !is_waiting(q, &q->events[from + run]))
		run++;
	return run;
}

static uint32_t push_events(struct output_queue *q)
{
	uint32_t moved = 0;

	while (q->event_head != q->event_tail) {
		uint32_t run = leaving_run(q);
		uint32_t taken = run == 0 ? 0 : ring_channel_announce(q->channel,
						event_at(q, q->event_head), run);

		q->event_head += taken;
		moved += taken;
		if (taken == 0 || taken < run)
			break;
	}
	return moved;
}

/* Buffers below it may leave: credited, and before every event that has not left. */
static uint64_t push_limit(struct output_queue *q)
{
	uint64_t limit = q->next_sequence;

	if (q->event_head != q->event_tail)
		limit = event_at(q, q->event_head)->boundary;
	if (q->credit < limit)
		q->credit = ring_channel_credit(q->channel);
	return q->credit < limit ? q->credit : limit;
}

static uint32_t push_bufs(struct output_queue *q)
{
	uint64_t limit = push_limit(q);
	uint32_t moved = 0;

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

/* A barrier that waited for the last of its buffers leaves right behind it. */
uint32_t output_queue_push(struct output_queue *q)
{
	uint32_t moved = 0, now;

	do {
		now = push_events(q);
		now += push_bufs(q);
		moved += now;
	} while (now > 0 && q->event_head != q->event_tail);
	return moved;
}

void output_queue_clear(struct output_queue *q)
{
	for (; q->pushed_count < q->next_sequence; q->pushed_count++)
		buf_release(q->bufs[q->pushed_count & BUFS_MASK]);
	q->event_head = q->event_tail;
}
