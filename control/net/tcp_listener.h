#pragma once

/*
 * tcp_listener: a port on which connections arrive.
 *
 * Place    net.
 * Thread   the loop's.
 * Memory   an accepted connection is the callee's; it takes it with connection_own before it
 *          returns.
 * Errors   0 or -errno (-EADDRINUSE: no port of the range is free).
 * Life     create, { accepted }*, destroy.
 */

#include "control/proto/connection.h"

#include <stdint.h>

struct loop;
struct tcp_listener;

typedef void (*tcp_accepted)(void *context, struct connection *c);

/* Takes the first free port of first..last; 0 takes any. */
int tcp_listener_create(struct tcp_listener **out, struct loop *l, const char *host,
		const uint16_t ports[2], tcp_accepted accepted, void *context);
uint16_t tcp_listener_port(const struct tcp_listener *t);
void tcp_listener_destroy(struct tcp_listener *t);
