#pragma once

/*
 * packet_fanout: lets each af_packet port have a fan-out group of its own.
 *
 * Place    nic; used by eal, for what net_af_packet does in its start.
 * Thread   any.
 * Memory   none.
 * Life     look, before the EAL starts.
 *
 * net_af_packet puts the sockets of a port into a group of the kernel's whose number is the id of
 * the process XOR that of the interface, in 16 bits.  Two TaskManagers of one network namespace, at
 * neighbouring interfaces and started one after the other, often have the same number, and the
 * kernel refuses the second one: it has no port then.  The number is nobody's business, so this
 * file has a setsockopt in front of libc's that takes another one when that is refused.
 */

/* Fails a CHECK when it is not in front. */
void packet_fanout_look(void);
