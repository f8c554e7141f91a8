#pragma once

/*
 * port_driver: what must be known of a driver and cannot be asked of the device.
 *
 * Place    nic; used by port.
 * Thread   any.
 * Errors   none: an unknown driver is taken for one of a card.
 */

#include <stdbool.h>
#include <stdint.h>

struct port_driver {
	const char *name; /* "net_memif" */
	bool copies;      /* its transmit call copies: nothing is left for later */
	bool has_frame_size; /* framesz=, of which it does not tell */
	bool has_slot_size;  /* bsize=, the same; frames larger than that overrun its ring */
	bool loses_unseen;   /* on the way from the kernel's interface, and counts none of it */
	bool is_memory;   /* shared with the other end; no wire */
	bool passes_on;   /* what it receives is the sender's own memory */
	bool pairs;       /* joins two; what one queue sends comes in at the same one there */
	bool spreads;     /* over its queues, whether asked or not */
	bool fills_all;   /* and over those that nobody set up, too */
	bool dials;       /* a client that does not start before its server is there */
	bool unmaps;      /* its rings when the peer goes, whoever is in a burst: port_guard.h */
	bool hears_peer;  /* come and go on the interrupt thread: see interrupt_thread.h */
	bool has_second_ring; /* of as many descriptors, filled from the same buffers */
	uint32_t rx_bufs; /* it takes so many at once beside its descriptors */
};

/* By the driver's name, or by that of a virtual device: "net_memif0".  The address of a card does
 * not tell its driver: then what any of them may take. */
const struct port_driver *port_driver_find(const char *name);
