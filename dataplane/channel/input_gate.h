#pragma once

/*
 * input_gate: the input channels of one edge of a task: what comes next, in order, each event
 * exactly at its cut.
 *
 * Place    channel; the head of a task, below the barrier handler.
 * Thread   the consumer's worker; create and destroy on the control thread.
 * Memory   all in create; holds at most credit_count buffers for each channel.
 * Errors   -EPROTO from next when a buffer does not hold what the edge agreed on.
 * Life     create, { poll, { next, consume }* , block, resume }*, destroy.
 *
 * A channel's credit grows when a buffer has been processed entirely, its watermark step included,
 * and is not being written as channel state any more.
 * A blocked channel goes on receiving what its credit allows, and processes nothing.
 */

#include "dataplane/channel/ring_channel.h"
#include "dataplane/operator/operator.h"
#include "dataplane/wire/event.h"

struct buf;
struct input_gate;

struct input_gate_config {
	struct ring_channel **channels; /* borrowed */
	uint32_t channel_count;         /* 1..CHANNELS_PER_GATE_MAX */
	uint32_t record_bytes;          /* 0: variable */
	uint32_t record_bytes_max;      /* variable: without the prefix */
};

/* Counters only grow; the owner reads them. */
struct input_gate_counters {
	uint64_t records, events; /* consumed */
	uint64_t bytes, bufs;     /* of buffers begun (IG-4) */
};

enum input_item_kind {
	INPUT_RECORDS,   /* .batch: at most RECORDS_COUNT_MAX records of one channel */
	INPUT_WATERMARK, /* .watermark: of the whole gate, higher than the one before */
	INPUT_EVENT,     /* .event: in line, at its cut */
};

struct input_item {
	enum input_item_kind kind;
	uint32_t channel; /* of records and events; a watermark is the whole gate's */
	struct weir_batch batch;
	int64_t watermark;
	const struct event *event; /* valid until consumed */
};

/* -EINVAL, -ENOMEM. */
int input_gate_create(struct input_gate **out, const struct input_gate_config *config);

/* Bytes one gate takes, without channels and buffers. */
uint64_t input_gate_memory_bytes(const struct input_gate_config *config);

uint32_t input_gate_channel_count(const struct input_gate *g);

/* Takes what has arrived: data, then control, in bounded bursts.  Returns how many. */
uint32_t input_gate_poll(struct input_gate *g);

/* What to process next: 1, or 0 when nothing can be processed now, or -EPROTO.  The item
 * stays the same until it is consumed, or until its channel is blocked. */
int input_gate_next(struct input_gate *g, struct input_item *item);

/* The same for one channel: who calls it decides the order between channels. */
int input_gate_next_of(struct input_gate *g, uint32_t channel, struct input_item *item);
/* The end of partition of a channel that has nothing else before it, whatever the others wait for.
 * False: there is none. */
bool input_gate_next_end(struct input_gate *g, struct input_item *item);

/* The item of the last next has been processed: its first `count` records, or (1) the watermark or
 * event; 0 leaves it as it is.  Consuming an end of partition closes the channel. */
void input_gate_consume(struct input_gate *g, uint32_t count);

/* From now on the channel processes nothing, until resumed; it must not be blocked already.  The
 * item given last may still be consumed, as the barrier that blocks its channel is. */
void input_gate_block(struct input_gate *g, uint32_t channel);
/* The same, from behind an event that was handled ahead of its turn, in .announcement. */
void input_gate_block_behind(struct input_gate *g, uint32_t channel, const struct event *e);
void input_gate_resume(struct input_gate *g, uint32_t channel);
bool input_gate_is_blocked(const struct input_gate *g, uint32_t channel);
/* Blocked, and the event behind which that holds has been passed. */
bool input_gate_is_stopped(const struct input_gate *g, uint32_t channel);

/* Channels whose end of partition has not been consumed. */
uint32_t input_gate_open_count(const struct input_gate *g);
bool input_gate_is_open(const struct input_gate *g, uint32_t channel);

/* Tells the producer of the channel (IG-1, SP-7). */
void input_gate_all_processed(struct input_gate *g, uint32_t channel);

/* The last watermark consumed; WEIR_WATERMARK_NONE at first. */
int64_t input_gate_watermark(const struct input_gate *g);

/* Buffers here, taken and not yet processed. */
uint32_t input_gate_queued_count(const struct input_gate *g);

const struct input_gate_counters *input_gate_counters(const struct input_gate *g);

/* ---- ahead of the line: barriers that are announced (IC-3), and channel state ---- */

/* A barrier that is to be heard of before its turn, each once; several together from the lowest
 * channel up. */
struct input_early {
	uint32_t channel;
	const struct event *event; /* valid until the next call of the gate */
	bool is_barrier;           /* to be handled now, and passed silently at its cut; otherwise
				    * announced only */
};

/* False: there is none. */
bool input_gate_next_early(struct input_gate *g, struct input_early *early);

/* IC-9: the barrier of that checkpoint, which was announced, is to come early.  False: it is not in
 * line. */
bool input_gate_convert(struct input_gate *g, uint32_t channel, int64_t checkpoint_id);

/* True while the event of that number waits in line to be handled there. */
bool input_gate_is_in_line(const struct input_gate *g, uint32_t channel, uint32_t announcement);

/* Barriers that came with the last polls, each once, in the order of each channel (IC-4). */
bool input_gate_next_arrival(
		struct input_gate *g, uint32_t *channel, const struct event **barrier);

/* Buffers of the channel processed entirely: its position in line. */
uint64_t input_gate_position(const struct input_gate *g, uint32_t channel);

/* Buffers below the answer have come, and every barrier before them was told as arrived (on a plain
 * ring: has been handled, PS-5). */
uint64_t input_gate_known_count(const struct input_gate *g, uint32_t channel);

/* Buffers of an earlier attempt that are ahead of all others of the channel. */
uint32_t input_gate_recovered_count(const struct input_gate *g, uint32_t channel);

/* The buffers of the channel that are here, 0 the next one - recovered ones, then those from the
 * position on - with the offset from which on it has not been processed (0 but for the first). */
uint32_t input_gate_inflight_count(const struct input_gate *g, uint32_t channel);
struct buf *input_gate_inflight_at(const struct input_gate *g, uint32_t channel, uint32_t index,
		uint32_t *offset);

/* The bytes of a record begun in buffers already processed (14.1); 0 bytes: none. */
const uint8_t *input_gate_partial(const struct input_gate *g, uint32_t channel, uint32_t *bytes);

/* ---- after a restore ---- */

/* Takes over buffers that were in flight in that channel when its checkpoint was taken, in order;
 * before anything is polled.  They are processed before all that arrives (RE-12), and part of what
 * is in flight until then.  -ENOMEM: they stay the caller's. */
int input_gate_restore(
		struct input_gate *g, uint32_t channel, struct buf *const *bufs, uint32_t count);

/* Recovered buffers not yet processed, in all channels. */
uint32_t input_gate_recovered_left(const struct input_gate *g);

/* Releases the buffers here.  NULL is accepted. */
void input_gate_destroy(struct input_gate *g);
