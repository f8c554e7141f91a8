#pragma once

/*
 * ring_channel: from one producer subtask to one consumer subtask of the same process.
 *
 * Place    channel; below the gates.  A link over a NIC offers the same verbs.
 * Thread   sender verbs on the producer's worker, receiver verbs on the consumer's worker; create
 *          and destroy on the control thread, while neither end is attached.
 * Memory   all of it in create.
 * Errors   counts of what was taken; a push beyond the credit is a bug of ours.
 * Life     create, { send*, receive* }, destroy (releases what is still in the lanes).
 *
 * Four lanes: data (a single-producer single-consumer ring of buffers), control (the same for
 * events, by value; the receiver of a plain channel looks at them in line only), credit (one
 * growing number: buffers numbered below it may be pushed) and a mark back (all records
 * processed, SP-7).  Control never waits behind data.  Order between the
 * two: the sender announces an event before it pushes a buffer numbered at its cut or above; the
 * receiver takes data first, then control, then processes.
 */

#include "dataplane/base/limits.h"
#include "dataplane/wire/event.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct ring_channel;

struct channel_config {
	uint32_t queue_count;  /* at the sender, 2 or more: open one and output queue */
	uint32_t credit_count; /* in the ring and at the receiver, 1 or more */
	bool is_plain; /* no lane of its own for control: events are heard of in line only, so that
			* none overtakes anything (how a plain ring is compared; PS-5) */
};

/* The buffers of one channel never exceed this: a pool that holds the sum of it over all channels
 * is never used up. */
static inline uint32_t channel_buffers_max(const struct channel_config *config)
{
	return config->queue_count + config->credit_count;
}

/* -EINVAL: counts out of bounds or together more than CHANNEL_BUFFERS_MAX; -ENOMEM. */
int ring_channel_create(struct ring_channel **out, const struct channel_config *config);

/* Bytes one channel takes, without its buffers. */
uint64_t ring_channel_memory_bytes(const struct channel_config *config);

const struct channel_config *ring_channel_config(const struct ring_channel *c);

/* ---- sender ---- */

/* Buffers numbered below the answer may be pushed.  Reads a line of the other side. */
uint64_t ring_channel_credit(const struct ring_channel *c);

/* Hands over `count` buffers; all are taken, since the credit covers them. */
void ring_channel_push(struct ring_channel *c, struct buf *const *bufs, uint32_t count);

/* Puts events on the control lane; returns how many it had room for, from the front. */
uint32_t ring_channel_announce(struct ring_channel *c, const struct event *events, uint32_t count);

/* True once the consumer has processed all records up to the end of data. */
bool ring_channel_is_all_processed(const struct ring_channel *c);

/* ---- receiver ---- */

/* Takes up to `count` buffers. */
uint32_t ring_channel_take(struct ring_channel *c, struct buf **bufs, uint32_t count);

/* Takes up to `count` events. */
uint32_t ring_channel_take_events(struct ring_channel *c, struct event *events, uint32_t count);

/* Raises the credit: buffers numbered below processed_count are done with. */
void ring_channel_grant(struct ring_channel *c, uint64_t processed_count);

void ring_channel_all_processed(struct ring_channel *c);

/* NULL is accepted. */
void ring_channel_destroy(struct ring_channel *c);
