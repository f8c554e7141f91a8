#pragma once

/*
 * net_endpoint: one queue pair of a port at work: bursts from the transport to the links they are
 * for, and what the links have to say out in bursts.
 *
 * Place    channel; between a transport and the net_links of one worker.
 * Thread   the worker; create and destroy on the control thread while no worker has it.
 * Memory   all in create; links are borrowed.
 * Time     now_ns, monotonic, as an argument.
 * Errors   frames that are not for a link here are counted by reason and dropped.
 * Life     create, { attach, turn*, detach }*, destroy with no link attached.
 *
 * Frames the transport did not take wait here, those of the control lane apart from data, so that
 * control goes first again at the next turn.
 */

#include "dataplane/channel/net_link.h"
#include "dataplane/channel/transport.h"

struct net_endpoint;

enum { NET_ENDPOINT_LINKS_MAX = 256 };

/* Counters only grow; the owner writes them. */
struct net_endpoint_counters {
	uint64_t frames_in, frames_out, bytes_in, bytes_out;
	uint64_t bursts_out_partial; /* the transport took fewer than it was given */
	uint64_t malformed, corrupt; /* not as long as it says; the checksum */
	uint64_t foreign, unknown;   /* not to our address and port; no link has the token */
};

int net_endpoint_create(struct net_endpoint **out, struct transport *transport,
		const struct net_address *local);

/* -ENOSPC. */
int net_endpoint_attach(struct net_endpoint *e, struct net_link *l);
void net_endpoint_detach(struct net_endpoint *e, struct net_link *l);

/* Receives, pumps every link, sends; in bounded bursts.  Returns how much was done. */
uint32_t net_endpoint_turn(struct net_endpoint *e, uint64_t now_ns);

const struct net_endpoint_counters *net_endpoint_counters(const struct net_endpoint *e);

/* NULL is accepted. */
void net_endpoint_destroy(struct net_endpoint *e);
