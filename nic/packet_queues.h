#pragma once

/*
 * packet_queues: the receive queues of one port, among those who take its packets.
 *
 * Each taker has queues of its own where there are enough and the device spreads packets over
 * them.  Otherwise who has a queue hands packets over by ring: by a hash of addresses and ports,
 * the same in both directions of a flow.  When takers come and go, queues change hands: who had one
 * lets go of it at its next burst, and only then the next one has it.
 *
 * Place    nic; used by packet_ports.
 * Thread   receive and counts on the taker's worker; everything else on the control thread.  A
 *          taker's worker is not in receive while it joins or leaves.
 * Memory   the port's; a ring and room for packets in pieces at the first join of a taker.
 * Errors   0 or -errno.  A full ring loses packets, and they are counted.
 * Life     create, { join, receive*, leave | tidy }*, destroy before the port.
 */

#include "dataplane/operator/packet_port.h"
#include "nic/port.h"

enum { PACKET_TAKERS_MAX = 64, PACKETS_HANDED_MAX = 512 };

struct packet_queues;

int packet_queues_create(struct packet_queues **out, struct port *port);

int packet_queues_join(struct packet_queues *q, uint32_t taker);
/* What waits in its ring stays until tidy, or until it joins again. */
void packet_queues_leave(struct packet_queues *q, uint32_t taker);
/* From time to time: what waits for those who left goes to those who are there. */
void packet_queues_tidy(struct packet_queues *q);
/* Gives back all that is in the queues. */
void packet_queues_clear(struct packet_queues *q);

/* Up to `count` packets (at most 64), each to be given back with rte_pktmbuf_free of its handle. */
uint32_t packet_queues_receive(struct packet_queues *q, uint32_t taker,
		struct weir_packet *packets, uint32_t count);
/* What came to it by ring so far, and how many queues it has now. */
uint64_t packet_queues_handed(const struct packet_queues *q, uint32_t taker);
uint32_t packet_queues_held(const struct packet_queues *q, uint32_t taker);

/* Packets that found the ring of their taker full. */
uint64_t packet_queues_dropped(const struct packet_queues *q);
/* "3 tasks take packets from 2 queues, to which they come by RSS" */
void packet_queues_print(const struct packet_queues *q, char text[PORT_TEXT_BYTES]);

/* NULL is accepted. */
void packet_queues_destroy(struct packet_queues *q);
