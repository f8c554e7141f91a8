#pragma once

/*
 * port: one DPDK Ethernet device as weir uses it: found by name, asked what it can, set up with one
 * queue pair for each worker where that is of use, started.
 *
 * Place    nic; port_transport works on its queue pairs, packet_queues on those of raw packets.
 * Thread   create and destroy on the control thread, after eal_start; enter and leave on any
 *          worker, each under a number of its own; try_start on one thread at a time.
 * Memory   receive buffers for the descriptors and what is under way, each of one largest frame; or
 *          those of a link's own pool (port_receive_bufs), all back there after destroy.
 * Errors   0 or -errno with one line that names the port and what to do.
 * Life     create, { enter, bursts, leave }*, stop, destroy.
 *
 * Offloads are what the device says it has, never assumed: several segments on the way out (a body
 * is sent from where it lies), the UDP checksum.
 */

#include "nic/port_steer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port;
struct rte_mempool;
struct rte_ring;

enum {
	PORT_ERROR_BYTES = 512,
	PORT_TEXT_BYTES = 384,
	PORT_QUEUES_MAX = 64,
	PORT_USERS_MAX = 2 * PORT_QUEUES_MAX,
};

struct port_config {
	const char *name;          /* "net_memif0", "0000:01:00.0" */
	uint32_t mtu;              /* 0: the device's own */
	uint16_t rx_descriptors, tx_descriptors; /* wanted; the device may round or bound them */
	uint32_t queue_count;      /* 0: as many as workers, as far as that is of use */
	uint32_t worker_count;     /* 1..PORT_QUEUES_MAX */
	uint16_t udp_port;         /* of queue 0; the next is that of queue 1, and so on */
	bool is_ipv6;              /* frames to those UDP ports are of IPv6 */
	bool is_raw;               /* anybody's packets: no queue has a UDP port */
	uint32_t spare_bufs;       /* received packets that may be anywhere else meanwhile */
	uint32_t buf_bytes;        /* of those that a link carries; 0: it may carry any */
	struct rte_mempool *bufs;  /* theirs, for port_create; borrowed */
};

/* Buffers that a port takes from their own pool, to receive into: those whose frames hold a whole
 * one.  0: it has a pool of its own. */
uint32_t port_receive_bufs(const struct port_config *config);

/* What it will take of the EAL, which must be told before. */
size_t port_memory_bytes(const struct port_config *config);

int port_create(struct port **out, const struct port_config *config,
		char error[PORT_ERROR_BYTES]);

uint16_t port_id(const struct port *p);
const char *port_name(const struct port *p);
/* Without the frame check sequence. */
uint32_t port_frame_bytes_max(const struct port *p);
uint16_t port_rx_descriptors(const struct port *p);
void port_mac(const struct port *p, uint8_t mac[6]);
bool port_can_udp_checksum(const struct port *p);
/* Whether a frame may be in several pieces, and those come back from the device in time. */
bool port_can_refer(const struct port *p);
/* What its transmit call took is copied, and done with. */
bool port_copies(const struct port *p);
/* Heads in smaller mbufs take a slot of the ring each, and a body another: the receiver then has to
 * put them together.  0: it is all the same. */
uint32_t port_head_bytes_min(const struct port *p);
uint16_t port_tx_descriptors(const struct port *p);
uint32_t port_queue_count(const struct port *p);
enum port_steering port_steering(const struct port *p);
/* Frames that came in elsewhere and are for that queue; NULL when there is but one queue, and of
 * raw packets. */
struct rte_ring *port_handed(const struct port *p, uint32_t queue);
/* Its wire has two ends, and no more. */
bool port_joins_two(const struct port *p);
/* What it receives lies in buffers (wire/buf.h), each in the private area of its mbuf. */
bool port_receives_bufs(const struct port *p);
/* Its frames stay in memory that it shares with the other end, into which they are copied. */
bool port_is_memory(const struct port *p);
uint16_t port_udp_port(const struct port *p);

/* "net_memif0 (net_memif): frames to 1514 bytes, bodies sent in place, ..." */
void port_print(const struct port *p, char text[PORT_TEXT_BYTES]);

/* What the device itself counts. */
struct port_counters {
	uint64_t frames_in, frames_out, bytes_in, bytes_out;
	uint64_t missed, errors_in, errors_out, no_buffer;
};
void port_counters(const struct port *p, struct port_counters *out);

/* Packets that the kernel's interface below the port has had; false: it stands on none, or takes
 * them past it.  net_af_packet loses packets between the two and counts none of them. */
bool port_kernel_packets(const struct port *p, uint64_t *packets);

/* Whether the other side is there: a cable, a process. */
bool port_is_up(const struct port *p);
/* True: bursts may be asked of the port until it is left.  A number below PORT_USERS_MAX is of one
 * thread; a link's is that of its queue. */
bool port_enter(struct port *p, uint32_t user);
void port_leave(struct port *p, uint32_t user);
/* A memif client whose server was not there, or has gone: looks again, once nobody is in. */
void port_try_start(struct port *p);

/* The device lets go of all it was given to send. */
void port_stop(struct port *p);
/* NULL is accepted. */
void port_destroy(struct port *p);
