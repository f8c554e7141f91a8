#pragma once

/*
 * packet_ports: the ports of weir.nic.ports, for sources and sinks of raw packets.
 *
 * Place    nic; behind dataplane/operator/port_directory.h.
 * Thread   open, look, the directory and close on the control thread; the functions of a port on
 *          the worker whose task has it.
 * Memory   each port's own pools, all in open.
 * Errors   0 or -errno with one line that names the port.
 * Life     open, { acquire, bursts, release | look }*, close once no task has a port any more.
 *
 * Losses are those the device counts and, where a driver stands on an interface of the kernel and
 * counts none (af_packet), the packets that the interface had and the port did not get.
 */

#include "dataplane/operator/port_directory.h"
#include "nic/port.h"

struct packet_ports;

enum { PACKET_PORTS_MAX = 16 };

/* What they will take of the EAL, which must be told before. */
size_t packet_ports_memory_bytes(const char *const *names, uint32_t count, uint16_t descriptors);

int packet_ports_open(struct packet_ports **out, const char *const *names, uint32_t count,
		uint16_t descriptors, char error[PORT_ERROR_BYTES]);
struct port_directory *packet_ports_directory(struct packet_ports *ports);

/* Counts the losses anew; about ten times a second. */
void packet_ports_look(struct packet_ports *ports);

/* Each in a line of at most PORT_TEXT_BYTES; false behind the last. */
bool packet_ports_print(
		const struct packet_ports *ports, uint32_t index, char text[PORT_TEXT_BYTES]);

/* NULL is accepted. */
void packet_ports_close(struct packet_ports *ports);
