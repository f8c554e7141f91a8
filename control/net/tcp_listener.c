#include "control/net/tcp_listener.h"

#include "control/net/address.h"
#include "control/net/loop_internal.h"
#include "control/net/tcp_connection.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tcp_listener {
	struct evconnlistener *listener;
	struct loop *loop;
	tcp_accepted accepted;
	void *context;
	uint16_t port;
};

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
		int from_bytes, void *context)
{
	struct tcp_listener *t = context;
	struct connection *c;

	(void)listener;
	(void)from;
	(void)from_bytes;
	if (tcp_connection_adopt(&c, t->loop, fd) == 0)
		t->accepted(t->context, c);
}

static void on_error(struct evconnlistener *listener, void *context)
{
	(void)listener;
	(void)context;
	log_warn("net", "cannot accept a connection: %s",
			evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
}

int tcp_listener_create(struct tcp_listener **out, struct loop *l, const char *host,
		const uint16_t ports[2], tcp_accepted accepted, void *context)
{
	uint16_t port;
	int fd = address_listen(host, ports, &port);

	if (fd < 0)
		return fd;
	struct tcp_listener *t = calloc(1, sizeof(*t));
	if (t != NULL) {
		*t = (struct tcp_listener){
				.loop = l, .accepted = accepted, .context = context, .port = port};
		t->listener = evconnlistener_new(loop_base(l), on_accept, t,
				LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	}
	if (t == NULL || t->listener == NULL) {
		close(fd);
		free(t);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(t->listener, on_error);
	*out = t;
	return 0;
}

uint16_t tcp_listener_port(const struct tcp_listener *t)
{
	return t->port;
}

void tcp_listener_destroy(struct tcp_listener *t)
{
	if (t == NULL)
		return;
	evconnlistener_free(t->listener);
	free(t);
}
