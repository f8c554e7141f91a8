#pragma once

/*
 * input_channel: the receiver's end of one channel: what has arrived, and how far in line the
 * consumer is.
 *
 * Place    channel; part of an input gate, one for each channel.
 * Thread   the consumer's worker.
 * Memory   a record reader in init; buffers here belong to it until they are processed.
 * Errors   -EPROTO from head when a buffer does not hold what the edge agreed on.
 * Life     init, { poll, head, advance, finish, pop }*, clear.
 *
 * A buffer that somebody else still refers to when it is processed is being written as channel
 * state: it is kept, and neither it nor what was processed behind it gives its credit back until
 * poll finds that it is written.
 *
 * Recovered buffers (19.2) are of an earlier attempt: they are ahead of all that the producer of
 * this one sends, count in no position and cost no credit.  Until they are processed the position
 * stays 0 and no event is due.
 *
 * Position = buffers processed entirely.  An event is due when its cut is the position: nothing is
 * processed across it.  No buffer is begun before the event it names is in (DESIGN "Order between
 * the lanes").
 *
 * A barrier may be of interest ahead of its turn (IC-3, IC-9); its mark says so.  One that was
 * handled then is passed without a word when its turn has come.
 */

#include "dataplane/channel/ring_channel.h"
#include "dataplane/operator/operator.h"
#include "dataplane/wire/buf.h"

struct record_reader;
struct record_reader_config;

/* What an event is, ahead of its turn. */
enum event_mark {
	MARK_IN_LINE,
	MARK_ANNOUNCE, /* the handler is to hear of it */
	MARK_AHEAD,    /* the handler is to have it now */
	MARK_HANDLED,  /* the handler has had it */
};

struct input_channel {
	struct ring_channel *channel;
	struct record_reader *reader;
	uint64_t taken_count;   /* buffers taken from the ring */
	uint64_t position;
	uint64_t returned_count; /* buffers given back with their credit; at most the position */
	uint32_t recovered_head, recovered_count;
	struct buf **recovered; /* those from head on are here */
	int64_t watermark;    /* of the last buffer or event read to its end */
	uint32_t announced;   /* number of the last event taken */
	uint32_t event_head, event_tail;
	uint32_t arrival_head; /* events before it were told as arrived */
	bool is_open, is_blocked, is_plain;
	bool is_begun;        /* the reader has the buffer at the position */
	uint32_t blocked_behind; /* blocked once the event of that number is passed; 0: at once */
	uint32_t early_count; /* events marked ANNOUNCE or AHEAD */
	struct buf *bufs[CHANNEL_BUFFERS_MAX];    /* by sequence, masked */
	struct event events[CHANNEL_CONTROL_MAX]; /* by running index, masked */
	uint8_t marks[CHANNEL_CONTROL_MAX];       /* enum event_mark */
};

enum input_head {
	INPUT_HEAD_NONE,    /* nothing can be processed now */
	INPUT_HEAD_EVENT,   /* the next event is due */
	INPUT_HEAD_HANDLED, /* the same, and it was handled ahead of its turn */
	INPUT_HEAD_RECORDS, /* whole records of the buffer begun */
	INPUT_HEAD_END,     /* the buffer begun has been read to its end */
};

/* -EINVAL, -ENOMEM. */
int input_channel_init(struct input_channel *ch, struct ring_channel *channel,
		const struct record_reader_config *config);

/* Takes data, then control.  Returns how many buffers, and adds the events to `*events`. */
uint32_t input_channel_poll(struct input_channel *ch, uint32_t *events);

/* What is at the head of the line, an enum input_head, beginning the next buffer if need be;
 * fills `batch` for records.  -EPROTO. */
int input_channel_head(struct input_channel *ch, struct weir_batch *batch);

/* Leaves records of the last batch behind. */
void input_channel_advance(struct input_channel *ch, uint32_t count);

/* The buffer begun is processed: gives back the buffer and its credit, unless it is being
 * written. */
void input_channel_finish(struct input_channel *ch);

/* The event due is processed. */
void input_channel_pop(struct input_channel *ch);

/* Takes over recovered buffers, in order, before anything is polled.  -ENOMEM. */
int input_channel_restore(struct input_channel *ch, struct buf *const *bufs, uint32_t count);

static inline uint32_t input_channel_recovered_left(const struct input_channel *ch)
{
	return ch->recovered_count - ch->recovered_head;
}

/* The first event that is marked for now, which then is so no more; NULL: none.  `*is_barrier`: it
 * is to be handled, not only announced. */
const struct event *input_channel_next_early(struct input_channel *ch, bool *is_barrier);

/* The next barrier that has come and was not told as arrived, or NULL.  None on a plain ring: there
 * a barrier arrives when it is heard of. */
const struct event *input_channel_next_arrival(struct input_channel *ch);

/* True while the event of that number is here and was not handled ahead of its turn. */
bool input_channel_is_in_line(const struct input_channel *ch, uint32_t announcement);

/* IC-9: marks a barrier that waits in line AHEAD.  False: it is not there. */
bool input_channel_convert(struct input_channel *ch, int64_t checkpoint_id);

/* True when only events handled ahead of their turn are before the end of partition. */
bool input_channel_is_at_end(const struct input_channel *ch);

/* Buffers below the answer have come, and so has every barrier before them. */
uint64_t input_channel_known_count(const struct input_channel *ch);

/* Nothing is given any more: blocked, and past the event behind which that holds. */
static inline bool input_channel_is_stopped(const struct input_channel *ch)
{
	return ch->is_blocked && ch->blocked_behind == 0;
}

/* Not yet processed, recovered ones first. */
static inline uint32_t input_channel_count(const struct input_channel *ch)
{
	return input_channel_recovered_left(ch) + (uint32_t)(ch->taken_count - ch->position);
}

static inline uint32_t input_channel_event_count(const struct input_channel *ch)
{
	return ch->event_tail - ch->event_head;
}

/* 0 is the next one; index < count. */
static inline struct buf *input_channel_buf(const struct input_channel *ch, uint32_t index)
{
	uint32_t left = input_channel_recovered_left(ch);

	if (__builtin_expect(index < left, 0))
		return ch->recovered[ch->recovered_head + index];
	return ch->bufs[(ch->position + index - left) & (CHANNEL_BUFFERS_MAX - 1)];
}

static inline const struct event *input_channel_event(
		const struct input_channel *ch, uint32_t index)
{
	return &ch->events[(ch->event_head + index) & (CHANNEL_CONTROL_MAX - 1)];
}

/* Releases what is here. */
void input_channel_clear(struct input_channel *ch);
