#include "bench/link_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"

enum { READ_BYTES = 1 << 17 };

static int ok(int rc, const char *what)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "link_end: tcp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int link_tcp_listen(uint16_t *port)
{
	struct sockaddr_in a = loopback(0);
	socklen_t size = sizeof(a);
	int fd = ok(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");

	ok(bind(fd, (struct sockaddr *)&a, sizeof(a)), "bind");
	ok(listen(fd, 1), "listen");
	ok(getsockname(fd, (struct sockaddr *)&a, &size), "getsockname");
	*port = ntohs(a.sin_port);
	return fd;
}

void link_tcp_receive(int listener, uint64_t warm_up_ns, uint64_t window_ns, uint64_t *bytes,
		uint64_t *ns)
{
	int fd = ok(accept(listener, NULL, NULL), "accept");
	uint8_t *to = malloc(READ_BYTES);
	uint64_t total = 0, first_ns = 0, began_ns = 0, before = 0;
	ssize_t got;

	CHECK(to != NULL);
	*bytes = 0;
	*ns = 0;
	while ((got = read(fd, to, READ_BYTES)) > 0) {
		uint64_t now_ns = clock_monotonic_ns();

		total += (uint64_t)got;
		if (first_ns == 0)
			first_ns = now_ns;
		if (began_ns == 0 && now_ns - first_ns >= warm_up_ns) {
			began_ns = now_ns;
			before = total;
		}
		if (began_ns != 0 && *ns < window_ns) {
			*ns = now_ns - began_ns;
			*bytes = total - before;
		}
	}
	ok((int)got, "read");
	free(to);
	close(fd);
}

void link_tcp_send(uint16_t port, uint32_t flush_bytes, uint64_t ns)
{
	struct sockaddr_in a = loopback(port);
	int fd = ok(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"), on = 1;
	uint8_t *from = calloc(1, flush_bytes);
	uint64_t until_ns;

	CHECK(from != NULL);
	ok(connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect");
	ok(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
	until_ns = clock_monotonic_ns() + ns;
	while (clock_monotonic_ns() < until_ns) {
		for (uint32_t at = 0; at < flush_bytes;)
			at += (uint32_t)ok((int)write(fd, from + at, flush_bytes - at), "write");
	}
	free(from);
	close(fd);
}
