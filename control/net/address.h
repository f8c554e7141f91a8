#pragma once

/*
 * address: host and port as text, and as socket addresses.
 *
 * Errors   0 or -errno: -EINVAL not of that form, -EADDRNOTAVAIL no such host.
 */

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_HOST_BYTES = 256 };

/* Reads "host:port", "[v6]:port"; the port must be there and is 1..65535. */
int address_parse(const char *text, char host[ADDRESS_HOST_BYTES], uint16_t *port);

/* A listening, non-blocking socket on the first free port of first..last (0: any), or -errno.
 * `*port` is the one it got. */
int address_listen(const char *host, const uint16_t ports[2], uint16_t *port);
