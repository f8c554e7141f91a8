#pragma once

/*
 * connection: the port through which control messages travel; TCP in the programs, a pipe of
 * messages in tests.
 *
 * Place    proto.
 * Thread   the loop's thread.
 * Memory   send copies; a received message is freed when `received` returns.
 * Errors   whatever breaks a connection ends it: `closed` is called once, with the reason, and
 *          nothing after it.
 * Life     made by its implementation, { send }*, close.  close may be called from a callback; it
 *          frees the connection and calls nothing.
 */

#include "control/proto/message.h"

#include <stdint.h>

struct connection;

struct connection_events {
	void (*received)(void *owner, struct connection *c, const Weir__Envelope *envelope);
	void (*closed)(void *owner, struct connection *c, const char *reason);
};

struct connection_ops {
	int (*send)(struct connection *c, const Weir__Envelope *envelope);
	void (*close)(struct connection *c);
	const char *(*peer)(const struct connection *c);
};

struct connection {
	const struct connection_ops *ops;
	const struct connection_events *events;
	void *owner;
	uint64_t sent_count; /* of messages, also those that could not be sent */
};

/* 0; -EMSGSIZE; -ENOTCONN after the connection broke; -ENOBUFS when the peer takes nothing and
 * the connection has been given up (`closed` follows). */
static inline int connection_send(struct connection *c, const Weir__Envelope *envelope)
{
	c->sent_count++;
	return c->ops->send(c, envelope);
}

static inline void connection_close(struct connection *c)
{
	c->ops->close(c);
}

/* Who gets what comes from now on. */
static inline void connection_own(
		struct connection *c, const struct connection_events *events, void *owner)
{
	c->events = events;
	c->owner = owner;
}

/* "127.0.0.1:4711", for the log. */
static inline const char *connection_peer(const struct connection *c)
{
	return c->ops->peer(c);
}
