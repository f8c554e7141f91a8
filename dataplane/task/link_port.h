#pragma once

/*
 * link_port: one queue pair of the port of this TaskManager to others: makes links and hands them
 * to the worker that owns it.
 *
 * Place    task; above channel/net_endpoint, used by taskmanager, task_group and worker.
 * Thread   turn and is_needed on the worker; everything else on the control thread.
 * Memory   in create and create_link; none in turn.
 * Time     now_ns in turn, monotonic.
 * Errors   0 or -errno; a link that is lost or broken says so once, and news_fd becomes readable.
 * Life     create, { create_link, start, close, until is_gone, forget }*, destroy with no link
 *          left.
 */

#include "dataplane/channel/net_endpoint.h"

struct link_port;
struct remote_link;

struct link_port_config {
	struct transport *transport; /* borrowed */
	struct net_address local;    /* of that queue */
	uint32_t index;              /* of it */
	bool serves_others;          /* frames for other queues may come in here */
	_Atomic uint32_t *open_count; /* of links at all queues; borrowed */
	const uint8_t *gateway;      /* MAC to send to on routed paths, or NULL */
	const char *port;            /* its name, for people; borrowed */
	uint64_t connect_timeout_ns, peer_timeout_ns;
	int news_fd;                 /* an eventfd */
};

int link_port_create(struct link_port **out, const struct link_port_config *config);
const struct net_address *link_port_address(const struct link_port *p);

/* ---- control thread ---- */

/* One end of a link: the peer's address of that queue, channels in the order that both ends agree
 * on. */
struct remote_link_config {
	uint64_t token;
	struct net_address peer;
	struct buf_pool *pool;
	struct ring_channel **out, **in; /* borrowed until it is gone, the arrays only at first */
	uint32_t out_count, in_count;
};

/* -EINVAL: the peer cannot be reached from here, or its frames are too small for the buffers. */
int link_port_create_link(struct link_port *p, struct remote_link **out,
		const struct remote_link_config *config);
/* The worker has it from now on. */
void remote_link_start(struct remote_link *l);
/* `must_drain`: when the peer has all that was sent; else at once.  Later calls do nothing. */
void remote_link_close(struct remote_link *l, bool must_drain);
/* The worker has let go of it and of its channels, or never had it. */
bool remote_link_is_gone(const struct remote_link *l);
/* Why it is lost or broken, once; else NULL. */
const char *remote_link_take_failure(struct remote_link *l);
/* Only when it is gone.  NULL is accepted. */
void remote_link_forget(struct remote_link *l);

/* What people are shown of all queues, as of a moment ago; each value is whole. */
struct link_numbers {
	uint32_t queue_count, link_count;
	uint64_t frames_in, frames_out, bytes_in, bytes_out;
	uint64_t resent, late, duplicates; /* pieces sent again; for nothing; frames seen before */
	uint64_t corrupt, malformed;       /* frames */
	uint64_t unclaimed;                /* frames for nobody here, or found no room */
	uint64_t handed_over, hand_over_full; /* frames: to another queue; that had no room */
	uint64_t partial_bursts;           /* the port took less than it was given */
	uint64_t credit_waits, window_waits;
	uint64_t rtt_ns, window;           /* the largest now */
};
void link_port_add_numbers(const struct link_port *p, struct link_numbers *sum);

/* ---- worker ---- */

/* Takes up new links, lets go of closed ones, and passes frames.  Returns how much was done. */
uint32_t link_port_turn(struct link_port *p, uint64_t now_ns);
/* It has links, or others need what it does. */
bool link_port_is_needed(const struct link_port *p);

/* NULL is accepted. */
void link_port_destroy(struct link_port *p);
