#pragma once

/*
 * transport: the port to a wire: bursts of Ethernet frames out, bursts of them in.
 *
 * Place    channel; used by net_endpoint.  Behind it: a DPDK queue pair (nic/port_transport), a
 *          wrapper that makes faults (net_faults), a wire in memory (tests).
 * Thread   the worker that owns the queue pair.
 * Memory   none is allocated after it was made.
 * Errors   counts: a full queue takes fewer frames than it was given, a quiet one gives none.
 * Life     made and ended by who wires it; { send, receive, release, reclaim }*.
 *
 * An outgoing frame is a head, copied at once, and a body that may be read until it is on the wire:
 * one reference to the body's owner travels with a frame that was taken, and the transport releases
 * it when it no longer reads the body; a body without an owner is copied at once.  Who makes frames
 * may give them scratch memory for such a body.  An incoming frame is one piece of memory, the
 * receiver's until it is released; when that is a buffer's, the receiver may keep the buffer.
 */

#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

enum {
	FRAME_HEAD_BYTES_MAX = 512,
	FRAME_BYTES_MIN = 576,  /* the smallest largest frame a path may have */
	/* With the Ethernet header, without the frame check sequence: more than any cable takes. */
	FRAME_BYTES_MAX = LINK_MTU_MAX + 14,
};

struct frame_out {
	uint8_t head[FRAME_HEAD_BYTES_MAX];
	uint32_t head_bytes, body_bytes;
	const uint8_t *body; /* NULL: none */
	struct buf *owner;   /* of the body; NULL: none */
	uint8_t *scratch;    /* of its maker, for a body put together; stays from frame to frame */
	uint32_t scratch_bytes;
	bool wants_udp_checksum; /* the transport fills it in; only when it says it can */
	uint8_t l3_offset, l4_offset;
};

struct frame_in {
	const uint8_t *bytes;
	uint32_t size;
	void *handle;    /* the transport's own; NULL: there is nothing to release */
	/* `bytes` lie in it, from BUF_HEAD_BYTES before its data on; NULL: in none.  Who keeps it
	 * sets `handle` to NULL. */
	struct buf *buf;
};

/* Of frames that came in at a queue whose worker is not theirs.  They only grow; the worker writes
 * them. */
struct transport_counters {
	uint64_t handed;  /* to the queue that they are for */
	uint64_t dropped; /* because that had no room: they are sent again */
};

struct transport {
	/* Takes frames from the front; returns how many.  Never waits. */
	uint32_t (*send)(struct transport *t, const struct frame_out *frames, uint32_t count);
	/* Gives up to `count` frames. */
	uint32_t (*receive)(struct transport *t, struct frame_in *frames, uint32_t count);
	void (*release)(struct transport *t, const struct frame_in *frames, uint32_t count);
	/* Asked of a quiet sender, from time to time: lets go of bodies that are on the wire
	 * already, sees whether the wire is there at all. */
	void (*reclaim)(struct transport *t, uint64_t now_ns);
	uint32_t frame_bytes_max;  /* of both directions */
	bool can_udp_checksum;     /* on the way out */
	const struct transport_counters *counters; /* NULL: all come where they belong */
};
