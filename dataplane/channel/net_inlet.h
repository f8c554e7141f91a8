#pragma once

/*
 * net_inlet: the receiving half of one channel that crosses a link: puts pieces together to
 * buffers, in order, and hands them to the consumer's ring_channel.
 *
 * Place    channel; part of a net_link; the sender's side of the consumer's ring_channel.
 * Thread   the link's worker.
 * Memory   fixed; buffers from the pool, never more than the credit that was granted.
 * Errors   take_*: 0 it is here (now or before), -EAGAIN there is no room for it (the peer sends it
 *          again), -EPROTO the peer does not keep the agreement.
 * Life     init, { take_*, deliver, credit }*, clear.
 *
 * One copy: from the frame into the buffer; none where a frame lies in a buffer of the pool and is
 * all of it.  A buffer is handed over when the announcement it names has been (DESIGN "Order
 * between the lanes").
 */

#include "dataplane/channel/net_frame.h"
#include "dataplane/channel/net_outlet.h"
#include "dataplane/channel/ring_channel.h"

struct buf_pool;

struct net_inlet_slot {
	struct buf *buf;       /* NULL: nothing of it has arrived */
	uint32_t missing_count; /* pieces */
	uint64_t arrived[NET_PIECES_MAX / 64];
};

struct net_inlet {
	struct ring_channel *ring;
	struct buf_pool *pool;
	uint32_t payload_max;
	uint64_t pushed;     /* buffers handed over */
	uint32_t held_count; /* slots with a buffer */
	uint32_t announced;  /* number of the last event handed over */
	uint64_t events_held; /* bits by number, masked */
	/* what the peer was told last */
	uint64_t told_processed;
	uint32_t told_event_limit;
	bool told_all_processed;
	bool is_broken; /* the peer announced something behind what it had sent */
	struct event events[CHANNEL_CONTROL_MAX];
	struct net_inlet_slot slots[CHANNEL_BUFFERS_MAX];
};

void net_inlet_init(struct net_inlet *in, struct ring_channel *ring, struct buf_pool *pool,
		uint32_t payload_max);

/* The piece's buf is NULL afterwards when it was kept. */
int net_inlet_take_data(struct net_inlet *in, struct net_frame_piece *piece);
int net_inlet_take_event(struct net_inlet *in, const struct net_frame *f);

/* Hands over what is in order.  Returns how many events and buffers. */
uint32_t net_inlet_deliver(struct net_inlet *in);

/* What the peer may do now.  True: there is news worth a frame. */
bool net_inlet_credit(const struct net_inlet *in, struct net_credit *credit);
/* It was sent; or it must be sent again. */
void net_inlet_told(struct net_inlet *in, const struct net_credit *credit);
void net_inlet_forget_told(struct net_inlet *in);

/* Releases what is here. */
void net_inlet_clear(struct net_inlet *in);
