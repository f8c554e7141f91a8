#pragma once

/*
 * net_link: the reliable link between two TaskManagers for one set of attempts: all channels of a
 * job that cross from one to the other, both ways (DESIGN "Remote link").
 *
 * Place    channel; a pure machine: frames and the time in, frames out.  net_endpoint feeds it from
 *          a transport.  A channel that crosses has a ring_channel at either end: the link drains
 *          the producer's and feeds the consumer's, so the gates see rings only.
 * Thread   the link's worker; create and destroy on the control thread while no worker has it.
 * Memory   all in create; buffers from the pool, for each incoming channel never more than its
 *          credit_count.
 * Time     now_ns, monotonic, as an argument.
 * Errors   the state tells: a peer that is not heard of is LOST, one that breaks the agreement
 *          makes the link BROKEN; both with a line.  Loss, reordering, repetition, damage of
 *          frames cost time, never records.
 * Life     create, { receive*, pump, send* }*, close, until is_over, destroy.
 *
 * Lanes: events, credit and acknowledgements are the control lane and never wait behind data.
 */

#include "dataplane/channel/net_frame.h"
#include "dataplane/channel/ring_channel.h"

struct buf_pool;
struct frame_out;
struct net_link;

enum { NET_LINK_TEXT_BYTES = 160, NET_LINK_CHANNELS_MAX = 4096 };

struct net_link_config {
	uint64_t token;            /* both ends have the same, nobody else has */
	struct net_path path;
	struct buf_pool *pool;     /* borrowed */
	struct ring_channel **out; /* to the peer, drained here; in the order both ends agree on */
	uint32_t out_count;
	struct ring_channel **in;  /* from the peer, fed here */
	uint32_t in_count;
	uint32_t window_frames;    /* what the peer's queue takes: NET_WINDOW_MIN..NET_WINDOW_MAX */
	uint64_t connect_timeout_ns; /* from the first pump to the first frame heard */
	uint64_t peer_timeout_ns;    /* nothing heard for so long: lost */
};

enum net_link_state {
	NET_LINK_CONNECTING, /* nothing heard yet */
	NET_LINK_UP,
	NET_LINK_CLOSING,    /* told to end; the peer does not know yet */
	NET_LINK_CLOSED,     /* the peer knows, or need not */
	NET_LINK_LOST,
	NET_LINK_BROKEN,
};

/* Counters only grow; the owner writes them. */
struct net_link_counters {
	uint64_t frames_in, frames_out, bytes_in, bytes_out;
	uint64_t bufs_in, bufs_out;
	uint64_t resent, late, timeouts; /* pieces sent again; that were only late; resend times */
	uint64_t duplicates, refused;    /* frames that had been here; that found no room */
	uint64_t credit_waits; /* a channel has sent all that its consumer has room for */
	uint64_t window_waits; /* there was more to send than may be under way */
	uint64_t rtt_ns, window;         /* now */
};

enum net_lane { NET_LANE_CONTROL, NET_LANE_DATA };

/* -EINVAL: a buffer of the pool does not fit NET_PIECES_MAX frames, counts out of bounds;
 * -ENOMEM. */
int net_link_create(struct net_link **out, const struct net_link_config *config);

uint64_t net_link_token(const struct net_link *l);

/* A decoded frame with the link's token, of `size` bytes on the wire; its buf is NULL afterwards
 * when it was kept. */
void net_link_receive(struct net_link *l, struct net_frame *f, uint32_t size, uint64_t now_ns);

/* Between wire and rings: hands over, takes, sees what is lost.  Returns how much it did. */
uint32_t net_link_pump(struct net_link *l, uint64_t now_ns);

/* Makes up to `count` frames of one lane; they count as sent. */
uint32_t net_link_send(struct net_link *l, enum net_lane lane, struct frame_out *frames,
		uint32_t count, uint64_t now_ns);

/* The tasks at this end are over.  What the peer does not have yet is not sent any more, unless
 * `must_drain`. */
void net_link_close(struct net_link *l, bool must_drain, uint64_t now_ns);

/* True when nothing is left to do: closed, lost or broken. */
bool net_link_is_over(const struct net_link *l);

enum net_link_state net_link_state(const struct net_link *l);
const char *net_link_state_name(enum net_link_state state);
/* Why it is LOST or BROKEN. */
const char *net_link_text(const struct net_link *l);
const struct net_link_counters *net_link_counters(struct net_link *l);
/* Adds what grows; of rtt and window the larger. */
void net_link_counters_add(struct net_link_counters *sum, const struct net_link_counters *more);

/* Releases what is in it.  NULL is accepted. */
void net_link_destroy(struct net_link *l);
