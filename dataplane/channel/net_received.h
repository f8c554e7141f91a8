#pragma once

/*
 * net_received: which numbered frames of the peer have arrived: what an ACK tells it.
 *
 * Place    channel; part of a net_link.
 * Thread   the link's worker.
 * Memory   fixed.
 * Errors   none; numbers are compared as serial numbers, they wrap around.
 *
 * Numbers below the base are not waited for: they have arrived, or the peer has given them up and
 * sent what they carried under another number.
 */

#include "dataplane/channel/net_frame.h"

struct net_received {
	uint32_t base, top; /* top: one above the highest that has arrived */
	bool is_owed;       /* an ACK */
	uint64_t bits[NET_FRAME_WORDS_MAX];
};

enum net_arrival {
	NET_ARRIVAL_NEW,
	NET_ARRIVAL_SEEN,   /* a duplicate, or so old that its content has come another way */
	NET_ARRIVAL_BEYOND, /* further ahead than a peer may be */
};

/* Tells what it is, and learns from its age. */
enum net_arrival net_received_look(struct net_received *r, uint32_t number, uint16_t age);

/* What it carried has been taken; it was new. */
void net_received_mark(struct net_received *r, uint32_t number);

/* The words of an ACK, from *base on; returns how many. */
uint32_t net_received_words(
		struct net_received *r, uint32_t *base, uint64_t words[NET_FRAME_WORDS_MAX]);
