#pragma once

/*
 * port_transport: the transport port of the data plane over one queue pair of a port.  Frames that
 * came in here and are for another queue go there by ring.
 *
 * Place    nic; behind dataplane/channel/transport.h.
 * Thread   create and destroy on the control thread; the rest on the worker that owns the queue.
 * Memory   heads and references for every descriptor and one burst, all in create.
 * Errors   0 or -errno from create; else counts.
 * Life     create, { send, receive, release, reclaim }*, destroy, which stops the port: after all
 *          workers have ended.
 *
 * What the device does not take at once waits here, bounded by one burst; then nothing more is
 * taken until it is out.  A frame that arrives in pieces is put together.
 */

#include "dataplane/channel/transport.h"

struct port;
struct port_transport;

int port_transport_create(struct port_transport **out, struct port *port, uint32_t queue);
struct transport *port_transport_port(struct port_transport *t);
/* No reference to a body is left behind.  NULL is accepted. */
void port_transport_destroy(struct port_transport *t);
