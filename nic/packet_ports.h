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
 * Losses are those the device counts, those that found a full ring on the way to their worker and,
 * where a driver stands on an interface of the kernel and counts none (af_packet), the packets that
 * the interface had and the port did not get within most of a second.  Of several subtasks that
 * take from one port, each loss is counted by one.
 */

#include "dataplane/operator/port_directory.h"
#include "nic/port.h"

struct packet_ports;

enum { PACKET_PORTS_MAX = 16 };

struct packet_ports_config {
	const char *const *names;
	uint32_t count;
	uint32_t queue_count; /* of each port; 0: one for each worker where it spreads packets */
	uint32_t worker_count;
	uint16_t descriptors; /* of each queue */
};

/* What they will take of the EAL, which must be told before. */
size_t packet_ports_memory_bytes(const struct packet_ports_config *config);

int packet_ports_open(struct packet_ports **out, const struct packet_ports_config *config,
		char error[PORT_ERROR_BYTES]);
struct port_directory *packet_ports_directory(struct packet_ports *ports);

/* Counts the losses anew, and looks for a peer that is away; about ten times a second. */
void packet_ports_look(struct packet_ports *ports);

/* Each in a line of at most PORT_TEXT_BYTES; false behind the last. */
bool packet_ports_print(
		const struct packet_ports *ports, uint32_t index, char text[PORT_TEXT_BYTES]);

/* NULL is accepted. */
void packet_ports_close(struct packet_ports *ports);
