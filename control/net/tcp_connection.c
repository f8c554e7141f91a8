#include "control/net/tcp_connection.h"

#include "control/net/loop_internal.h"
#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	CHUNK_BYTES = 16384,
	READ_BYTES_ONCE = 1024 * 1024, /* then others have their turn */
	/* Two of the largest messages. */
	WAITING_BYTES_MAX = 2 * (MESSAGE_BYTES_MAX + MESSAGE_HEAD_BYTES),
};

struct tcp_connection {
	struct connection port; /* first: the port's pointer is ours */
	struct bufferevent *bev; /* connects, and sends what the socket did not take at once */
	struct event *readable;  /* NULL: not connected yet */
	struct evbuffer *in;     /* the beginning of a frame */
	bool is_broken;   /* `closed` was called, or is being called */
	bool is_closing;  /* close was called inside a callback */
	bool is_overfull; /* given up because the peer takes nothing */
	uint32_t callback_depth;
	char peer[TCP_CONNECTION_TEXT_BYTES];
};

static void destroy(struct tcp_connection *t)
{
	if (t->readable != NULL)
		event_free(t->readable);
	if (t->in != NULL)
		evbuffer_free(t->in);
	if (t->bev != NULL)
		bufferevent_free(t->bev);
	free(t);
}

static void enter_callback(struct tcp_connection *t)
{
	t->callback_depth++;
}

/* Frees what was closed meanwhile.  False: it is gone. */
static bool leave_callback(struct tcp_connection *t)
{
	CHECK(t->callback_depth > 0);
	t->callback_depth--;
	if (t->is_closing && t->callback_depth == 0) {
		destroy(t);
		return false;
	}
	return true;
}

static bool is_over(const struct tcp_connection *t)
{
	return t->is_broken || t->is_closing;
}

static void break_off(struct tcp_connection *t, const char *reason)
{
	if (is_over(t))
		return;
	t->is_broken = true;
	bufferevent_disable(t->bev, EV_READ | EV_WRITE);
	if (t->readable != NULL)
		(void)event_del(t->readable);
	t->port.events->closed(t->port.owner, &t->port, reason);
}

/* Its size, once its head is there and tells; else 0. */
static size_t frame_bytes_of(struct tcp_connection *t, const uint8_t *head, size_t bytes)
{
	size_t frame_bytes;

	if (bytes < MESSAGE_HEAD_BYTES)
		return 0;
	if (message_frame_bytes(head, &frame_bytes) != 0) {
		break_off(t, "a frame of impossible size arrived");
		return 0;
	}
	return frame_bytes;
}

static void take_frame(struct tcp_connection *t, const uint8_t *frame, size_t frame_bytes)
{
	Weir__Envelope *envelope;

	if (message_unpack(frame, frame_bytes, &envelope) != 0) {
		break_off(t, "a message that cannot be read arrived");
		return;
	}
	t->port.events->received(t->port.owner, &t->port, envelope);
	message_free(envelope);
}

/* All whole frames of what waits. */
static void take_waiting(struct tcp_connection *t)
{
	uint8_t head[MESSAGE_HEAD_BYTES];

	while (!is_over(t)) {
		size_t waiting = evbuffer_get_length(t->in);
		ev_ssize_t copied = evbuffer_copyout(t->in, head, sizeof(head));
		size_t frame_bytes = frame_bytes_of(t, head, copied < 0 ? 0 : (size_t)copied);

		if (frame_bytes == 0 || waiting < frame_bytes)
			return;
		const uint8_t *frame = evbuffer_pullup(t->in, (ev_ssize_t)frame_bytes);
		if (frame == NULL) {
			break_off(t, "no memory for a message");
			return;
		}
		take_frame(t, frame, frame_bytes);
		evbuffer_drain(t->in, frame_bytes);
	}
}

/* Whole frames are read where they are; what is left waits for the rest of it. */
static void take_bytes(struct tcp_connection *t, const uint8_t *bytes, size_t count)
{
	size_t at = 0;

	while (evbuffer_get_length(t->in) == 0 && !is_over(t)) {
		size_t frame_bytes = frame_bytes_of(t, bytes + at, count - at);

		if (frame_bytes == 0 || frame_bytes > count - at)
			break;
		take_frame(t, bytes + at, frame_bytes);
		at += frame_bytes;
	}
	if (at == count || is_over(t))
		return;
	if (evbuffer_add(t->in, bytes + at, count - at) != 0)
		break_off(t, "no memory for a message");
	else
		take_waiting(t);
}

/* False: there is nothing more to be had now. */
static bool read_some(struct tcp_connection *t, int fd)
{
	uint8_t chunk[CHUNK_BYTES];
	ssize_t count = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (count > 0)
		take_bytes(t, chunk, (size_t)count);
	else if (count == 0)
		break_off(t, "closed by the peer");
	else if (errno != EAGAIN && errno != EINTR)
		break_off(t, evutil_socket_error_to_string(errno));
	return count == CHUNK_BYTES && !is_over(t);
}

/* For so long only: others want their turn. */
static void read_all(struct tcp_connection *t, int fd)
{
	size_t left = READ_BYTES_ONCE / CHUNK_BYTES;

	while (left-- > 0 && read_some(t, fd))
		;
}

/* Past the bufferevent, which asks the kernel more, copies once more and comes a turn later: this
 * is on the way of every trigger and of every acknowledgement. */
static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct tcp_connection *t = context;

	(void)what;
	enter_callback(t);
	read_all(t, fd);
	leave_callback(t);
}

/* The socket is connected. */
static int start(struct tcp_connection *t)
{
	int fd = bufferevent_getfd(t->bev), one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* send at once */
	t->readable = event_new(bufferevent_get_base(t->bev), fd, EV_READ | EV_PERSIST,
			on_readable, t);
	return t->readable != NULL && event_add(t->readable, NULL) == 0 ? 0 : -ENOMEM;
}

static void on_event(struct bufferevent *bev, short what, void *context)
{
	struct tcp_connection *t = context;
	const char *reason = NULL;

	enter_callback(t);
	if (what & BEV_EVENT_CONNECTED) {
		/* The time limit was for connecting only. */
		bufferevent_set_timeouts(bev, NULL, NULL);
		if (start(t) != 0)
			reason = "no memory for the connection";
	} else if (t->is_overfull) {
		reason = "the peer takes no messages";
	} else if (what & BEV_EVENT_EOF) {
		reason = "closed by the peer";
	} else if (what & BEV_EVENT_TIMEOUT) {
		reason = "timed out";
	} else if (what & BEV_EVENT_ERROR) {
		int dns = bufferevent_socket_get_dns_error(bev);

		reason = dns != 0 ? evutil_gai_strerror(dns)
				  : evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR());
	}
	if (reason != NULL) {
		/* What arrived before the end still counts. */
		if (t->readable != NULL && !is_over(t))
			read_all(t, bufferevent_getfd(bev));
		break_off(t, reason);
	}
	leave_callback(t);
}

/* Gives the socket what it takes now, past the bufferevent, which would ask the loop to wait until
 * it is writable: how many bytes that were.  An error is left for the bufferevent to find. */
static size_t write_now(struct tcp_connection *t, const uint8_t *frame, size_t frame_bytes)
{
	if (t->readable == NULL || evbuffer_get_length(bufferevent_get_output(t->bev)) > 0)
		return 0;
	ssize_t sent = send(bufferevent_getfd(t->bev), frame, frame_bytes,
			MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent > 0 ? (size_t)sent : 0;
}

static int tcp_send(struct connection *c, const Weir__Envelope *envelope)
{
	struct tcp_connection *t = (struct tcp_connection *)c;
	struct evbuffer *out = bufferevent_get_output(t->bev);
	uint8_t *frame;
	size_t frame_bytes;

	if (is_over(t) || t->is_overfull)
		return -ENOTCONN;
	if (evbuffer_get_length(out) > WAITING_BYTES_MAX) {
		t->is_overfull = true;
		bufferevent_trigger_event(t->bev, BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
		return -ENOBUFS;
	}
	int rc = message_pack(envelope, &frame, &frame_bytes);
	if (rc != 0)
		return rc;
	size_t sent = write_now(t, frame, frame_bytes);
	if (sent < frame_bytes && bufferevent_write(t->bev, frame + sent, frame_bytes - sent) != 0)
		rc = -ENOMEM;
	free(frame);
	return rc;
}

static void tcp_close(struct connection *c)
{
	struct tcp_connection *t = (struct tcp_connection *)c;

	CHECK(!t->is_closing);
	t->is_closing = true;
	if (t->callback_depth == 0)
		destroy(t);
}

static const char *tcp_peer(const struct connection *c)
{
	return ((const struct tcp_connection *)c)->peer;
}

static const struct connection_ops tcp_ops = {tcp_send, tcp_close, tcp_peer};

/* `fd` -1: not connected yet. */
static int create(struct tcp_connection **out, struct loop *l, int fd)
{
	struct tcp_connection *t = calloc(1, sizeof(*t));

	if (t != NULL)
		t->in = evbuffer_new();
	if (t != NULL && t->in != NULL)
		t->bev = bufferevent_socket_new(
				loop_base(l), fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (t == NULL || t->bev == NULL) {
		if (t != NULL)
			destroy(t);
		if (fd >= 0)
			evutil_closesocket(fd);
		return -ENOMEM;
	}
	t->port.ops = &tcp_ops;
	bufferevent_setcb(t->bev, NULL, NULL, on_event, t);
	bufferevent_set_max_single_write(t->bev, READ_BYTES_ONCE);
	*out = t;
	return 0;
}

int tcp_connection_open(struct connection **out, struct loop *l, const char *host, uint16_t port,
		const struct connection_events *events, void *owner)
{
	struct timeval limit = {TCP_CONNECT_TIMEOUT_S, 0};
	struct tcp_connection *t;
	int rc = create(&t, l, -1);

	if (rc != 0)
		return rc;
	connection_own(&t->port, events, owner);
	snprintf(t->peer, sizeof(t->peer), "%s:%u", host, port);
	bufferevent_set_timeouts(t->bev, NULL, &limit);
	bufferevent_enable(t->bev, EV_WRITE);
	/* A failure is told by on_event, later. */
	if (bufferevent_socket_connect_hostname(t->bev, NULL, AF_UNSPEC, host, port) != 0)
		bufferevent_trigger_event(t->bev, BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
	*out = &t->port;
	return 0;
}

static void print_peer(struct tcp_connection *t, int fd)
{
	struct sockaddr_storage from;
	socklen_t from_bytes = sizeof(from);
	char address[INET6_ADDRSTRLEN] = "?";
	unsigned int port = 0;

	if (getpeername(fd, (struct sockaddr *)&from, &from_bytes) == 0) {
		if (from.ss_family == AF_INET) {
			struct sockaddr_in *in = (struct sockaddr_in *)&from;

			evutil_inet_ntop(AF_INET, &in->sin_addr, address, sizeof(address));
			port = ntohs(in->sin_port);
		} else if (from.ss_family == AF_INET6) {
			struct sockaddr_in6 *in = (struct sockaddr_in6 *)&from;

			evutil_inet_ntop(AF_INET6, &in->sin6_addr, address, sizeof(address));
			port = ntohs(in->sin6_port);
		}
	}
	snprintf(t->peer, sizeof(t->peer), "%s:%u", address, port);
}

int tcp_connection_adopt(struct connection **out, struct loop *l, int fd)
{
	struct tcp_connection *t;
	int rc = create(&t, l, fd);

	if (rc != 0)
		return rc;
	print_peer(t, fd);
	bufferevent_enable(t->bev, EV_WRITE);
	rc = start(t);
	if (rc != 0) {
		destroy(t);
		return rc;
	}
	*out = &t->port;
	return 0;
}
