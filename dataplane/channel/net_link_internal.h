#pragma once

/*
 * net_link_internal: a net_link, to its own two files: what it hears and sees to (net_link.c), what
 * it says (net_link_send.c).
 *
 * Place    channel; nobody else's.
 * Thread   the link's worker.
 * Memory   the struct, and what net_link_create allocates.
 * Life     net_link.h.
 */

#include "dataplane/channel/net_inlet.h"
#include "dataplane/channel/net_link.h"
#include "dataplane/channel/net_outlet.h"
#include "dataplane/channel/net_received.h"
#include "dataplane/channel/net_sent.h"
#include "dataplane/channel/transport.h"

enum { NET_LINK_PIECES_MAX = 8192 }; /* in frames that are not settled */
static_assert((NET_LINK_PIECES_MAX & (NET_LINK_PIECES_MAX - 1)) == 0, "an index is masked");
static_assert((int)NET_LINK_PIECES_MAX >= (int)NET_FRAME_SPAN, "each frame can have one");

/* What a frame of data had in it. */
struct net_sent_piece {
	uint32_t sequence; /* of the buffer, low half */
	uint16_t channel, index;
};

struct net_link {
	struct net_sent_listener listener;
	struct net_link_config config;
	enum net_link_state state;
	bool must_drain, has_said_bye, must_say_bye, must_ping;
	bool has_peer_closed;
	uint64_t began_ns, heard_ns, pinged_ns, closed_ns;
	struct net_outlet *outlets;
	struct net_inlet *inlets;
	uint32_t payload_max;
	uint32_t data_turn, event_turn; /* outlets whose turn it is */
	struct net_received received;
	struct net_sent sent;
	uint32_t pieces_end; /* of all that were sent */
	struct net_sent_piece pieces[NET_LINK_PIECES_MAX];
	struct net_link_counters counters;
	char text[NET_LINK_TEXT_BYTES];
};
