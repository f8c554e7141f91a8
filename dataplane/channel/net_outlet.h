#pragma once

/*
 * net_outlet: the sending half of one channel that crosses a link: takes what the producer pushes,
 * cuts buffers into pieces of one frame, keeps them until the peer has them.
 *
 * Place    channel; part of a net_link; the receiver's side of the producer's ring_channel.
 * Thread   the link's worker.
 * Memory   fixed; buffers here belong to it; never more than credit_count of them.
 * Errors   none: a credit that goes back is old and ignored.
 * Life     init, { collect, next_*, acked_*, lost_*, credit }*, clear.
 *
 * A buffer names the last event made before it, but it may also lie behind the boundary of a later
 * one, which overtakes it here and then must come first there too: the sender keeps what is between
 * boundary and cut.  So no buffer leaves before every event pushed ahead of it is here; there is
 * always room for those, since no more are under way in a channel than limits.h says.
 *
 * A buffer leaves when all its pieces have arrived, the peer's consumer has processed it, and no
 * transport reads it any more: then the producer gets its credit back.
 */

#include "dataplane/channel/net_frame.h"
#include "dataplane/channel/ring_channel.h"

enum { NET_PIECES_MAX = 128 };

/* Frames that a buffer of that size takes; no division for what fits one. */
static inline uint32_t net_pieces_of(uint32_t buf_bytes, uint32_t payload_max)
{
	return buf_bytes <= payload_max ? 1 : (buf_bytes + payload_max - 1) / payload_max;
}

struct net_outlet_slot {
	struct buf *buf;
	uint32_t announcement; /* it must not be seen before that event is */
	uint32_t piece_count, acked_count;
	uint64_t acked[NET_PIECES_MAX / 64];
	uint64_t lost[NET_PIECES_MAX / 64];
};

struct net_outlet {
	struct ring_channel *ring;
	uint32_t payload_max, credit_count;
	uint64_t base;       /* buffers below it have been given back */
	uint64_t processed;  /* by the peer's consumer */
	uint64_t collected;  /* taken from the ring */
	uint64_t sendable;   /* of those: all events pushed before them are known */
	uint64_t sending;    /* the first buffer with pieces never sent */
	uint32_t next_piece; /* of it */
	uint32_t lost_count; /* pieces to send again */
	bool is_all_processed;
	bool is_out_of_credit; /* as many are here as the consumer has room for */
	/* events, by number: 1, 2, 3 ... */
	uint32_t event_base, event_sending, event_end; /* unacked, never sent, not yet here */
	uint32_t event_limit;  /* the peer has room below and at it */
	uint64_t events_acked, events_lost; /* bits by number, masked */
	struct event events[CHANNEL_CONTROL_MAX];
	struct net_outlet_slot slots[CHANNEL_BUFFERS_MAX];
};

void net_outlet_init(struct net_outlet *o, struct ring_channel *ring, uint32_t payload_max);

/* Takes data, then control, from the producer, and returns credit to it.  Returns how many. */
uint32_t net_outlet_collect(struct net_outlet *o);

/* What to send next, first of all what was lost; its channel is not filled in.  False: nothing, or
 * it has more than `bytes_max`. */
bool net_outlet_next_piece(struct net_outlet *o, uint32_t bytes_max, struct net_piece *piece);
bool net_outlet_next_event(struct net_outlet *o, const struct event **e);

void net_outlet_acked_piece(struct net_outlet *o, uint32_t sequence, uint32_t index);
void net_outlet_lost_piece(struct net_outlet *o, uint32_t sequence, uint32_t index);
void net_outlet_acked_event(struct net_outlet *o, uint32_t number);
void net_outlet_lost_event(struct net_outlet *o, uint32_t number);

void net_outlet_credit(struct net_outlet *o, const struct net_credit *credit);

/* True when the peer has everything that came from the producer so far. */
bool net_outlet_is_drained(const struct net_outlet *o);

/* Releases what is here. */
void net_outlet_clear(struct net_outlet *o);
