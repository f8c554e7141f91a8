#include "dataplane/operator/packet/packet_parse.h"

#include "dataplane/operator/packet/link_layer.h"

#include <string.h>

enum {
	IP4_BYTES = 20,
	IP6_BYTES = 40,
	IP6_EXTENSIONS_MAX = 32, /* more than fit in a frame that means well */
	PORT_BYTES = 4,
	TCP_FLAGS_AT = 12,
};

enum {
	IP_HOP_BY_HOP = 0,
	IP_TCP = 6,
	IP_UDP = 17,
	IP_DCCP = 33,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_AUTHENTICATION = 51,
	IP_NO_NEXT = 59,
	IP_DESTINATION = 60,
	IP_SCTP = 132,
	IP_MOBILITY = 135,
	IP_UDP_LITE = 136,
	IP_HIP = 139,
	IP_SHIM6 = 140,
};

/* The ports, and the flags of TCP, at the front of a payload. */
static void parse_transport(const uint8_t *at, uint32_t left, struct packet *packet)
{
	struct flow_key *key = &packet->key;

	switch (key->protocol) {
	case IP_TCP:
	case IP_UDP:
	case IP_DCCP:
	case IP_SCTP:
	case IP_UDP_LITE:
		if (left < PORT_BYTES)
			return;
		key->source_port = link_u16(at);
		key->destination_port = link_u16(at + 2);
		if (key->protocol == IP_TCP && left >= TCP_FLAGS_AT + 2)
			packet->tcp_flags = link_u16(at + TCP_FLAGS_AT) & 0x0fff;
		return;
	default:
		return;
	}
}

static enum packet_reason parse_ip4(const uint8_t *at, uint32_t left, struct packet *packet)
{
	if (left < IP4_BYTES)
		return PACKET_TRUNCATED_IP;

	uint32_t header_bytes = (at[0] & 0x0fu) * 4;
	uint32_t total_bytes = link_u16(at + 2);
	uint32_t offset = link_u16(at + 6) & 0x1fff;

	/* A total length of 0 is left to the network card by the sender (segmentation offload). */
	if (header_bytes < IP4_BYTES || (total_bytes != 0 && total_bytes < header_bytes))
		return PACKET_MALFORMED_IP;
	memcpy(packet->key.source, at + 12, 4);
	memcpy(packet->key.destination, at + 16, 4);
	packet->key.ip_version = 4;
	packet->key.protocol = at[9];
	if (total_bytes != 0 && total_bytes < left)
		left = total_bytes; /* what follows is padding */
	if (offset == 0 && left > header_bytes)
		parse_transport(at + header_bytes, left - header_bytes, packet);
	return PACKET_IS_FLOW;
}

/* The size of the extension header `next` that begins at `at`; 0: it is none, or ends there. */
static uint32_t extension_bytes(uint8_t next, const uint8_t *at, uint32_t left)
{
	uint32_t bytes;

	if (left < 8)
		return 0;
	switch (next) {
	case IP_HOP_BY_HOP:
	case IP_ROUTING:
	case IP_DESTINATION:
		bytes = (at[1] + 1u) * 8;
		break;
	case IP_FRAGMENT:
		bytes = 8;
		break;
	case IP_AUTHENTICATION:
		bytes = (at[1] + 2u) * 4;
		break;
	case IP_MOBILITY:
	case IP_HIP:
	case IP_SHIM6:
		/* Their own payload, as a rule; then they are what the packet is about. */
		bytes = at[0] == IP_NO_NEXT ? 0 : (at[1] + 1u) * 8;
		break;
	default:
		bytes = 0;
	}
	return bytes <= left ? bytes : 0;
}

static enum packet_reason parse_ip6(const uint8_t *at, uint32_t left, struct packet *packet)
{
	if (left < IP6_BYTES)
		return PACKET_TRUNCATED_IP;

	uint32_t payload_bytes = link_u16(at + 4); /* 0: jumbogram or segmentation offload */
	uint8_t next = at[6];
	uint32_t bytes = 0;

	memcpy(packet->key.source, at + 8, 16);
	memcpy(packet->key.destination, at + 24, 16);
	packet->key.ip_version = 6;
	at += IP6_BYTES;
	left -= IP6_BYTES;
	if (payload_bytes != 0 && payload_bytes < left)
		left = payload_bytes;
	for (uint32_t i = 0; i < IP6_EXTENSIONS_MAX; i++) {
		bytes = extension_bytes(next, at, left);
		if (bytes == 0)
			break;
		bool is_later_fragment = next == IP_FRAGMENT && (link_u16(at + 2) & 0xfff8) != 0;

		next = at[0];
		at += bytes;
		left -= bytes;
		if (is_later_fragment) {
			left = 0;
			break;
		}
	}
	packet->key.protocol = next;
	parse_transport(at, left, packet);
	return PACKET_IS_FLOW;
}

enum packet_reason packet_parse(
		uint32_t link_type, const uint8_t *bytes, uint32_t size, struct packet *packet)
{
	struct link_walk walk = {.at = bytes, .left = size};
	enum packet_reason reason = link_find_ip(&walk, link_type);

	if (reason != PACKET_IS_FLOW)
		return reason;
	memset(packet, 0, sizeof(*packet));
	if (walk.left == 0)
		return PACKET_TRUNCATED_IP;
	uint8_t version = walk.at[0] >> 4;
	if (version == 4 && walk.may_be_ip4)
		return parse_ip4(walk.at, walk.left, packet);
	if (version == 6)
		return parse_ip6(walk.at, walk.left, packet);
	return PACKET_MALFORMED_IP;
}
