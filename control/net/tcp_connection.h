#pragma once

/*
 * tcp_connection: the connection port on TCP.
 *
 * Place    net.
 * Thread   the loop's.
 * Memory   what waits to be sent is bounded; a peer that takes nothing loses the connection.
 * Errors   a frame that is too large, fails its checksum or does not decode ends the connection.
 * Life     as control/proto/connection.h says.  Whoever wants another try makes a new one.
 */

#include "control/proto/connection.h"

#include <stdint.h>

struct loop;

enum { TCP_CONNECTION_TEXT_BYTES = 256, TCP_CONNECT_TIMEOUT_S = 5 };

/* Begins to connect; messages may be sent at once, they wait.  `host` is a name or an address.
 * -ENOMEM; what else goes wrong is told by `closed`. */
int tcp_connection_open(struct connection **out, struct loop *l, const char *host, uint16_t port,
		const struct connection_events *events, void *owner);

/* Takes a connected socket over, also when it fails. */
int tcp_connection_adopt(struct connection **out, struct loop *l, int fd);
