#pragma once

/*
 * output_queue: the sender's end of one channel: numbers its buffers, and holds what the receiver
 * has not credited yet (DESIGN "Channel").
 *
 * Place    channel; part of an output gate, one for each channel.
 * Thread   the producer's worker.
 * Memory   fixed; buffers in the queue belong to it.
 * Errors   -EAGAIN when events pile up at a receiver that takes none; nothing is dropped.
 * Life     init, { add, announce, push }*, clear.
 *
 * Never pushes a buffer numbered at the boundary of an event, or above, before that event is on the
 * control lane.  A buffer names the last event made before it.  On a ring that
 * is enough, where control is read after data; what a barrier overtook is renamed for a wire
 * (net_outlet.c, order; tests/model/barrier.pml, NAMED_WHEN_MADE says why).
 *
 * How the rules of 17.3 are met.  An unaligned barrier leaves at once (SP-12); what it overtakes is
 * what is still here then, and stays the sender's to persist.  A timeoutable barrier waits here
 * until all before it has left (SP-13, SP-14: then nothing of the sender's is overtaken), or until
 * it is timed out and leaves like an unaligned one (SP-15).  All others leave at once and take
 * effect at their cut.  Events leave in their order: a timeoutable barrier that a younger unaligned
 * one would have to wait for is stale by then, and goes ahead of it as a plain aligned one, which
 * nobody is told of before its turn.
 */

#include "dataplane/channel/ring_channel.h"
#include "dataplane/wire/buf.h"

/* Room kept for what must always go through: end of data, end of partition, a cancel marker. */
enum { OUTPUT_QUEUE_EVENTS_RESERVED = 3 };

struct output_queue {
	struct ring_channel *channel;
	uint64_t next_sequence; /* of the next buffer added */
	uint64_t pushed_count;  /* buffers below it have left */
	uint64_t credit;        /* as last read from the channel */
	uint32_t announcement;  /* number of the last event made */
	uint32_t event_head, event_tail;
	struct buf *bufs[CHANNEL_BUFFERS_MAX];      /* by sequence, masked */
	struct event events[CHANNEL_CONTROL_MAX];   /* by running index, masked */
};

void output_queue_init(struct output_queue *q, struct ring_channel *channel);

static inline uint32_t output_queue_count(const struct output_queue *q)
{
	return (uint32_t)(q->next_sequence - q->pushed_count);
}

static inline uint32_t output_queue_event_count(const struct output_queue *q)
{
	return q->event_tail - q->event_head;
}

static inline bool output_queue_is_empty(const struct output_queue *q)
{
	return q->next_sequence == q->pushed_count && q->event_tail == q->event_head;
}

/* The buffer at `index` of those that wait, 0 the oldest; for channel state. */
static inline struct buf *output_queue_at(const struct output_queue *q, uint32_t index)
{
	DCHECK(index < output_queue_count(q));
	return q->bufs[(q->pushed_count + index) & (CHANNEL_BUFFERS_MAX - 1)];
}

/* Takes over a finished buffer; gives it its number and the last announcement's. */
void output_queue_add(struct output_queue *q, struct buf *b);

/* True when an event of that kind can be announced now. */
bool output_queue_has_room(const struct output_queue *q, enum event_kind kind);

/* Puts a copy of `e` in line behind the last buffer: fills its cut, boundary and number.  Needs
 * room.  What an unaligned barrier has overtaken is all that is in the queue afterwards. */
void output_queue_announce(struct output_queue *q, const struct event *e);

/* Moves what may leave: events, then buffers by credit.  Returns how many of both moved. */
uint32_t output_queue_push(struct output_queue *q);

/* True while the timeoutable barrier of that checkpoint waits for the data before it. */
bool output_queue_is_held(const struct output_queue *q, int64_t checkpoint_id);

/* The barrier of that checkpoint, if it waits here, waits no longer: it takes effect at its cut. */
void output_queue_let_go(struct output_queue *q, int64_t checkpoint_id);

/* SP-15: makes that barrier an unaligned one, which the next push sends.  Returns how many buffers
 * it overtakes, the first ones of the queue; 0: it does not wait (any more), nothing was done. */
uint32_t output_queue_time_out(struct output_queue *q, int64_t checkpoint_id);

/* Releases the buffers that wait, forgets the events. */
void output_queue_clear(struct output_queue *q);
