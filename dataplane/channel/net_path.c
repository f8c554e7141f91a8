#include "dataplane/channel/net_path.h"

#include "dataplane/base/check.h"
#include "dataplane/base/internet.h"
#include "dataplane/channel/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	ETHERTYPE_V4 = 0x0800,
	ETHERTYPE_V6 = 0x86dd,
	PROTOCOL_UDP = 17,
	HOPS = 64,
	HOST_DIGITS = 16,
};

/* ---- addresses as text ---- */

static bool parse_host(const char *text, uint64_t *host)
{
	char *end;

	if (*text == '\0')
		return true;
	if (*text != ' ' || strspn(text + 1, "0123456789abcdef") != HOST_DIGITS)
		return false;
	*host = strtoull(text + 1, &end, 16);
	return *end == '\0' && *host != 0;
}

int net_address_parse(const char *text, struct net_address *a)
{
	char mac[32], ip[64];
	uint32_t port, frame_bytes, window, queues;
	int end = 0;

	*a = (struct net_address){0};
	if (sscanf(text, "%31s %63s %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 "%n", mac, ip,
			    &port, &frame_bytes, &window, &queues, &end) != 6 ||
			!parse_host(text + end, &a->host) || !mac_parse(mac, a->mac))
		return -EINVAL;
	a->is_ipv6 = strchr(ip, ':') != NULL;
	if (inet_pton(a->is_ipv6 ? AF_INET6 : AF_INET, ip, a->ip) != 1)
		return -EINVAL;
	if (port == 0 || port > UINT16_MAX || frame_bytes < FRAME_BYTES_MIN ||
			frame_bytes > FRAME_BYTES_MAX || window == 0 || window > UINT16_MAX ||
			queues == 0 || queues > UINT16_MAX - port + 1)
		return -EINVAL;
	a->udp_port = (uint16_t)port;
	a->frame_bytes_max = (uint16_t)frame_bytes;
	a->window_frames = (uint16_t)window;
	a->queue_count = (uint16_t)queues;
	return 0;
}

void net_address_print(const struct net_address *a, char text[NET_ADDRESS_TEXT_BYTES])
{
	char ip[INET6_ADDRSTRLEN];
	const uint8_t *m = a->mac;

	CHECK(inet_ntop(a->is_ipv6 ? AF_INET6 : AF_INET, a->ip, ip, sizeof(ip)) != NULL);
	int at = snprintf(text, NET_ADDRESS_TEXT_BYTES,
			"%02x:%02x:%02x:%02x:%02x:%02x %s %u %u %u %u", m[0], m[1], m[2], m[3],
			m[4], m[5], ip, a->udp_port, a->frame_bytes_max, a->window_frames,
			a->queue_count);
	if (a->host != 0)
		snprintf(text + at, NET_ADDRESS_TEXT_BYTES - (size_t)at, " %016" PRIx64,
				a->host);
}

struct net_address net_address_of_queue(const struct net_address *a, uint32_t queue)
{
	struct net_address one = *a;

	CHECK(queue < a->queue_count);
	one.udp_port = (uint16_t)(a->udp_port + queue);
	one.queue_count = 1;
	return one;
}

/* ---- the path ---- */

static void build_ipv4(struct net_path *p, const struct net_address *local,
		const struct net_address *remote)
{
	uint8_t *ip = p->bytes + ETHERNET_BYTES;

	ip[0] = 0x45;
	ip[6] = 0x40; /* do not fragment */
	ip[8] = HOPS;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, local->ip, 4);
	memcpy(ip + 16, remote->ip, 4);
	p->ip_sum = internet_sum(0, ip, IPV4_BYTES);
	p->udp_sum = internet_sum(PROTOCOL_UDP, ip + 12, 8);
}

static void build_ipv6(struct net_path *p, const struct net_address *local,
		const struct net_address *remote)
{
	uint8_t *ip = p->bytes + ETHERNET_BYTES;

	ip[0] = 0x60;
	ip[6] = PROTOCOL_UDP;
	ip[7] = HOPS;
	memcpy(ip + 8, local->ip, 16);
	memcpy(ip + 24, remote->ip, 16);
	p->udp_sum = internet_sum(PROTOCOL_UDP, ip + 8, 32);
}

int net_path_init(struct net_path *p, const struct net_address *local,
		const struct net_address *remote, const uint8_t *gateway)
{
	if (local->is_ipv6 != remote->is_ipv6 || local->frame_bytes_max < FRAME_BYTES_MIN)
		return -EINVAL;
	if (local->frame_bytes_max != remote->frame_bytes_max)
		return -EMSGSIZE;
	*p = (struct net_path){
			.is_ipv6 = local->is_ipv6,
			.byte_count = ETHERNET_BYTES + UDP_BYTES +
					(local->is_ipv6 ? IPV6_BYTES : IPV4_BYTES),
			.frame_bytes_max = local->frame_bytes_max,
			.has_bare_bodies = local->host != 0 && local->host == remote->host,
	};
	memcpy(p->bytes, gateway != NULL ? gateway : remote->mac, 6);
	memcpy(p->bytes + 6, local->mac, 6);
	put_be16(p->bytes + 12, p->is_ipv6 ? ETHERTYPE_V6 : ETHERTYPE_V4);
	if (p->is_ipv6)
		build_ipv6(p, local, remote);
	else
		build_ipv4(p, local, remote);

	uint8_t *udp = p->bytes + p->byte_count - UDP_BYTES;
	put_be16(udp, local->udp_port);
	put_be16(udp + 2, remote->udp_port);
	return 0;
}

void net_path_begin(const struct net_path *p, struct frame_out *f)
{
	memcpy(f->head, p->bytes, sizeof(p->bytes));
	f->head_bytes = p->byte_count;
	f->body_bytes = 0;
	f->body = NULL;
	f->owner = NULL;
	f->wants_udp_checksum = false;
	f->l3_offset = ETHERNET_BYTES;
	f->l4_offset = (uint8_t)(p->byte_count - UDP_BYTES);
}

/* IPv4 goes without: the frame has a better checksum of its own.  IPv6 must have it. */
static void put_udp_checksum(const struct net_path *p, struct frame_out *f, uint32_t udp_bytes)
{
	uint8_t *udp = f->head + f->l4_offset;

	if (p->is_udp_offloaded) {
		put_be16(udp + 6, internet_fold(p->udp_sum + udp_bytes));
		f->wants_udp_checksum = true;
		return;
	}
	if (!p->is_ipv6)
		return;

	uint32_t in_head = f->head_bytes - f->l4_offset;
	CHECK(in_head % 2 == 0 || f->body_bytes == 0);
	uint32_t sum = internet_sum(p->udp_sum + udp_bytes, udp, in_head);
	sum = ~internet_sum(sum, f->body, f->body_bytes) & 0xffff;
	put_be16(udp + 6, sum == 0 ? 0xffff : sum);
}

void net_path_end(const struct net_path *p, struct frame_out *f)
{
	uint32_t udp_bytes = f->head_bytes - f->l4_offset + f->body_bytes;
	uint8_t *ip = f->head + ETHERNET_BYTES;

	CHECK(f->head_bytes + f->body_bytes <= p->frame_bytes_max);
	put_be16(f->head + f->l4_offset + 4, udp_bytes);
	if (p->is_ipv6) {
		put_be16(ip + 4, udp_bytes);
	} else {
		put_be16(ip + 2, udp_bytes + IPV4_BYTES);
		put_be16(ip + 10, ~internet_fold(p->ip_sum + udp_bytes + IPV4_BYTES) & 0xffff);
	}
	put_udp_checksum(p, f, udp_bytes);
}

/* ---- what arrives ---- */

/* Finds the UDP header of an IPv4 packet for us. */
static int strip_ipv4(const struct net_address *local, const uint8_t *ip, uint32_t size,
		const uint8_t **udp, uint32_t *udp_bytes)
{
	if (size < IPV4_BYTES || ip[0] != 0x45)
		return -EBADMSG;

	uint32_t total = get_be16(ip + 2);
	if (total < IPV4_BYTES + UDP_BYTES || total > size)
		return -EBADMSG;
	if (ip[9] != PROTOCOL_UDP || memcmp(ip + 16, local->ip, 4) != 0)
		return -ENOMSG;
	if ((get_be16(ip + 6) & 0x3fff) != 0 || internet_sum(0, ip, IPV4_BYTES) != 0xffff)
		return -EBADMSG;
	*udp = ip + IPV4_BYTES;
	*udp_bytes = total - IPV4_BYTES;
	return 0;
}

static int strip_ipv6(const struct net_address *local, const uint8_t *ip, uint32_t size,
		const uint8_t **udp, uint32_t *udp_bytes)
{
	if (size < IPV6_BYTES || ip[0] >> 4 != 6)
		return -EBADMSG;

	uint32_t total = get_be16(ip + 4);
	if (total < UDP_BYTES || total > size - IPV6_BYTES)
		return -EBADMSG;
	if (ip[6] != PROTOCOL_UDP || memcmp(ip + 24, local->ip, 16) != 0)
		return -ENOMSG;
	*udp = ip + IPV6_BYTES;
	*udp_bytes = total;
	return 0;
}

int net_path_strip(const struct net_address *local, const uint8_t *bytes, uint32_t size,
		const uint8_t **payload, uint32_t *payload_bytes)
{
	const uint8_t *udp;
	uint32_t udp_bytes;

	if (size < ETHERNET_BYTES)
		return -EBADMSG;
	if (get_be16(bytes + 12) != (local->is_ipv6 ? ETHERTYPE_V6 : ETHERTYPE_V4))
		return -ENOMSG;

	int rc = local->is_ipv6 ? strip_ipv6(local, bytes + ETHERNET_BYTES, size - ETHERNET_BYTES,
						  &udp, &udp_bytes)
				: strip_ipv4(local, bytes + ETHERNET_BYTES, size - ETHERNET_BYTES,
						  &udp, &udp_bytes);
	if (rc != 0)
		return rc;
	if (get_be16(udp + 2) != local->udp_port)
		return -ENOMSG;
	if (get_be16(udp + 4) != udp_bytes)
		return -EBADMSG;
	*payload = udp + UDP_BYTES;
	*payload_bytes = udp_bytes - UDP_BYTES;
	return 0;
}
