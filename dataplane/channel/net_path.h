#pragma once

/*
 * net_path: from one end of a link to the other: addresses, and what stands in front of every
 * frame's own header: Ethernet, IPv4 or IPv6, UDP.
 *
 * Place    channel; plain values; an address travels in a TaskManager's registration, so that no
 *          ARP is needed.
 * Thread   any.
 * Memory   none.
 * Errors   -EINVAL, -EMSGSIZE with nothing else done; -EBADMSG for a frame that is damaged or
 *          hostile, -ENOMSG for one that is not for us.
 */

#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct frame_out;

enum {
	NET_ADDRESS_TEXT_BYTES = 128,
	NET_PATH_BYTES_MAX = 62, /* Ethernet, IPv6, UDP */
	NET_UDP_PORT_DEFAULT = 6125,
};

/* One end.  An IPv4 address is in the first four bytes. */
struct net_address {
	uint8_t mac[6];
	uint8_t ip[16];
	uint16_t udp_port;
	uint16_t frame_bytes_max; /* the largest it sends and takes, with the Ethernet header */
	uint16_t window_frames;   /* that its queue takes before it looks */
	uint16_t queue_count;     /* queue pairs, each with its own of as many UDP ports */
	uint64_t host; /* that its port does not leave, and what arrives need not be summed; or 0 */
	bool is_ipv6;
};

struct net_path {
	uint8_t bytes[NET_PATH_BYTES_MAX]; /* lengths and checksums are 0 */
	uint32_t byte_count;
	uint32_t ip_sum;          /* of the IPv4 header, and of the pseudo header for UDP */
	uint32_t udp_sum;
	uint32_t frame_bytes_max;
	bool is_ipv6, is_udp_offloaded;
	bool has_bare_bodies; /* memory from end to end: what is sent in place is not summed */
};

/* "02:00:00:00:00:01 10.0.0.1 6125 1514 1024 2", as print writes it; a host is one word more, of
 * 16 hexadecimal digits.  -EINVAL. */
int net_address_parse(const char *text, struct net_address *a);
void net_address_print(const struct net_address *a, char text[NET_ADDRESS_TEXT_BYTES]);

/* That of one queue. */
struct net_address net_address_of_queue(const struct net_address *a, uint32_t queue);

/* `gateway`: the MAC to send to on a routed path, NULL: the remote end's own.  -EINVAL when one end
 * speaks IPv4 and the other IPv6, or they take less than FRAME_BYTES_MIN; -EMSGSIZE when they do
 * not take the same. */
int net_path_init(struct net_path *p, const struct net_address *local,
		const struct net_address *remote, const uint8_t *gateway);

/* Starts a frame: puts addresses into its head. */
void net_path_begin(const struct net_path *p, struct frame_out *f);

/* Ends it: lengths and checksums, now that head and body are known. */
void net_path_end(const struct net_path *p, struct frame_out *f);

/* The UDP payload of a frame to the address and port of `local`. */
int net_path_strip(const struct net_address *local, const uint8_t *bytes, uint32_t size,
		const uint8_t **payload, uint32_t *payload_bytes);
