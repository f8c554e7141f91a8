#pragma once

/*
 * link_tcp: what a link is compared with: the same buffers over a TCP connection of the kernel, on
 * the loopback, written one by one as they are flushed.
 *
 * Place    bench; part of link_end.
 * Thread   one.
 * Memory   one buffer.
 * Errors   ends the program with a line.
 */

#include <stdint.h>

/* Listens on the loopback.  Returns the socket. */
int link_tcp_listen(uint16_t *port);
/* Takes one connection and reads it to its end; bytes and nanoseconds of `window_ns`, which begins
 * `warm_up_ns` after the first byte. */
void link_tcp_receive(int listener, uint64_t warm_up_ns, uint64_t window_ns, uint64_t *bytes,
		uint64_t *ns);
/* Writes `flush_bytes` at a time for so long. */
void link_tcp_send(uint16_t port, uint32_t flush_bytes, uint64_t ns);
