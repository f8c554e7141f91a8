#pragma once

/*
 * packet_port: raw frames of a NIC, for operators that take them or send them.  Installed as
 * <weir/packet_port.h>, beside operator.h.
 *
 * Place    no DPDK type; what an operator gets from port_acquire: its part of the port, to which
 *          some of the packets come when others take them, too.
 * Thread   the worker of the task; acquire and release of the port on the control thread.
 * Memory   packets are the port's until they are given back; what is sent is copied.
 * Time     weir_now_ns, for looking after a port whose other side is not there yet.
 * Errors   counts: a full port takes fewer, a quiet one gives none.
 */

#include "dataplane/operator/operator.h"

struct weir_packet {
	const uint8_t *bytes; /* from the Ethernet header on, without the frame check sequence */
	uint32_t size;
	void *handle; /* the port's own */
};

/* What never came to `receive` since the port was opened, as far as anybody counts it; of those who
 * take from one port, one tells of each loss. */
struct weir_port_losses {
	uint64_t missed;    /* found no descriptor, or no room on the way to the port */
	uint64_t no_buffer; /* found no memory */
	uint64_t errors;    /* came damaged */
	uint64_t ring_full; /* found the ring to their worker full */
};

/* As long as an operator has it; on the worker of the task. */
struct weir_packet_port {
	/* Gives up to `count` packets (at most 64), to be given back by `release`. */
	uint32_t (*receive)(struct weir_packet_port *port, struct weir_packet *packets,
			uint32_t count, uint64_t now_ns);
	void (*release)(struct weir_packet_port *port, const struct weir_packet *packets,
			uint32_t count);
	/* Takes packets from the front, copying them; returns how many.  Never waits. */
	uint32_t (*send)(struct weir_packet_port *port, const struct weir_packet *packets,
			uint32_t count, uint64_t now_ns);
	/* As counted a moment ago. */
	void (*losses)(struct weir_packet_port *port, struct weir_port_losses *out);
	uint32_t frame_bytes_max;
	uint64_t instance; /* another one each time a port is opened */
	uint64_t received; /* packets that `receive` gave since then */
	uint64_t handed;   /* of those, they came in at a queue of another worker */
	uint32_t queue_count; /* of the port's queues, that it has now */
	uint8_t mac[6];
};
