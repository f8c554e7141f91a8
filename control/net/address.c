#include "control/net/address.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 256 };

int address_parse(const char *text, char host[ADDRESS_HOST_BYTES], uint16_t *port)
{
	const char *colon = strrchr(text, ':');

	if (colon == NULL || colon == text)
		return -EINVAL;
	size_t bytes = (size_t)(colon - text);
	if (text[0] == '[' && colon[-1] == ']') {
		text++;
		bytes -= 2;
	}
	if (bytes == 0 || bytes >= ADDRESS_HOST_BYTES)
		return -EINVAL;

	size_t digits = strspn(colon + 1, "0123456789");
	unsigned long number = strtoul(colon + 1, NULL, 10);
	if (digits == 0 || digits > 5 || colon[1 + digits] != 0 || number == 0 ||
			number > UINT16_MAX)
		return -EINVAL;
	memcpy(host, text, bytes);
	host[bytes] = 0;
	*port = (uint16_t)number;
	return 0;
}

static int listen_on(const struct addrinfo *at)
{
	int one = 1;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);

	CHECK(getsockname(fd, (struct sockaddr *)&at, &bytes) == 0);
	if (at.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

int address_listen(const char *host, const uint16_t ports[2], uint16_t *port)
{
	struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
	int fd = -EADDRINUSE;

	for (uint32_t p = ports[0]; p <= ports[1]; p++) {
		char service[8];

		snprintf(service, sizeof(service), "%u", p);
		if (getaddrinfo(host, service, &want, &found) != 0)
			return -EADDRNOTAVAIL;
		fd = listen_on(found);
		freeaddrinfo(found);
		if (fd != -EADDRINUSE)
			break;
	}
	if (fd >= 0)
		*port = bound_port(fd);
	return fd;
}
