#pragma once

/*
 * net_capture: a transport around another one that writes down every frame, both ways, as a pcap
 * file that Wireshark reads (scripts/wireshark/weir.lua).
 *
 * Place    channel; for looking at a link (weir.link.capture).
 * Thread   that of the transport.
 * Memory   in create.
 * Time     the clock port's wall clock, for the frames' time stamps.
 * Errors   -errno from create; a file that cannot be written any more is closed, and the frames go
 *          on.
 * Life     create, used as a transport, destroy.
 *
 * It writes on the worker: who measures does not capture.
 */

#include "dataplane/channel/transport.h"

struct clock;
struct net_capture;

int net_capture_create(struct net_capture **out, struct transport *inner, const char *path,
		struct clock *clock);
struct transport *net_capture_transport(struct net_capture *c);
/* NULL is accepted; the inner transport is the caller's. */
void net_capture_destroy(struct net_capture *c);
