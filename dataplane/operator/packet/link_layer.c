#include "dataplane/operator/packet/link_layer.h"

#include <pcap/dlt.h>

enum {
	ETHER_BYTES = 14,
	ETHER_LENGTH_MAX = 1500, /* a type field up to here is the length of an LLC frame */
	COOKED_BYTES = 16,
	COOKED2_BYTES = 20,
	LLC_BYTES = 3,
	SNAP_BYTES = 8,
	PPPOE_BYTES = 6,
	MPLS_BYTES = 4,
	STEPS_MAX = 64, /* headers in front of IP; more is an attack or garbage */
};

enum { LINK_TYPE_RAW_OPENBSD = 14 }; /* raw IP by OpenBSD's number, elsewhere without a name */

enum {
	TYPE_COOKED_ETHER = 0x0003,
	TYPE_COOKED_LLC = 0x0004,
	TYPE_IP4 = 0x0800,
	TYPE_TRILL = 0x22f3,
	TYPE_BRIDGED = 0x6558,
	TYPE_VLAN = 0x8100,
	TYPE_IP6 = 0x86dd,
	TYPE_PPP = 0x880b,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_MULTICAST = 0x8848,
	TYPE_PPPOE = 0x8864,
	TYPE_JUMBO_LLC = 0x8870,
	TYPE_PROVIDER_VLAN = 0x88a8,
	TYPE_MACSEC = 0x88e5,
	TYPE_BACKBONE = 0x88e7,
	TYPE_FABRIC_PATH = 0x8903,
	TYPE_CISCO_METADATA = 0x8909,
	TYPE_VN_TAG = 0x8926,
	TYPE_HSR = 0x892f,
	TYPE_E_TAG = 0x893f,
	TYPE_NSH = 0x894f,
	TYPE_OLD_VLAN = 0x9100,
	TYPE_ARISTA = 0xd28b,
	TYPE_REDUNDANCY = 0xf1c1,
};

enum {
	PPP_IP4 = 0x0021,
	PPP_COMPRESSED_TCP = 0x002d,
	PPP_UNCOMPRESSED_TCP = 0x002f,
	PPP_BRIDGED = 0x0031,
	PPP_MULTILINK = 0x003d,
	PPP_ENCRYPTED = 0x0053,
	PPP_IP6 = 0x0057,
	PPP_COMPRESSED_LINK = 0x00fb,
	PPP_COMPRESSED = 0x00fd,
	PPP_MPLS = 0x0281,
	PPP_MPLS_MULTICAST = 0x0283,
};

/* What begins where the walk stands. */
enum step {
	STEP_ETHER,
	STEP_TYPE, /* an EtherType and what it announces */
	STEP_LLC,
	STEP_COOKED,
	STEP_COOKED2,
	STEP_PPP,
	STEP_HDLC,
	STEP_CISCO_HDLC,
	STEP_PPPOE,
	STEP_MPLS,
	STEP_LOOPBACK,     /* address family in either byte order */
	STEP_LOOPBACK_NET, /* address family in network order */
	STEP_IP_BY_VERSION,
	/* ends of the walk */
	STEP_IP,
	STEP_IP6,
	STEP_NO_IP,
	STEP_TRUNCATED,
	STEP_UNSUPPORTED,
};

/* Steps over `bytes`; false: they are not all there. */
static bool skip(struct link_walk *w, uint32_t bytes)
{
	if (w->left < bytes)
		return false;
	w->at += bytes;
	w->left -= bytes;
	return true;
}

static enum step skip_to(struct link_walk *w, uint32_t bytes, enum step next)
{
	return skip(w, bytes) ? next : STEP_TRUNCATED;
}

/* A length field says where the payload ends and padding begins. */
static void shorten(struct link_walk *w, uint32_t bytes)
{
	if (bytes < w->left)
		w->left = bytes;
}

/* A time stamp that a switch put in: subtype, version, and the time in 64 or 48 bits. */
static enum step skip_arista(struct link_walk *w)
{
	if (w->left < 4)
		return STEP_TRUNCATED;
	if (link_u16(w->at) != 1)
		return STEP_UNSUPPORTED;
	switch (w->at[3]) {
	case 0x10:
		return skip_to(w, 4 + 8, STEP_TYPE);
	case 0x20:
		return skip_to(w, 4 + 6, STEP_TYPE);
	default:
		return STEP_UNSUPPORTED;
	}
}

static enum step step_over_type(struct link_walk *w, uint16_t type)
{
	switch (type) {
	case TYPE_VLAN:
	case TYPE_PROVIDER_VLAN:
	case TYPE_OLD_VLAN:
		return skip_to(w, 2, STEP_TYPE);
	case TYPE_HSR:
	case TYPE_REDUNDANCY:
	case TYPE_VN_TAG:
		return skip_to(w, 4, STEP_TYPE);
	case TYPE_E_TAG:
		return skip_to(w, 6, STEP_TYPE);
	case TYPE_JUMBO_LLC:
		return STEP_LLC;
	case TYPE_MPLS:
	case TYPE_MPLS_MULTICAST:
		return STEP_MPLS;
	case TYPE_PPPOE:
		return STEP_PPPOE;
	case TYPE_BRIDGED:
		return STEP_ETHER;
	case TYPE_BACKBONE:
		return skip_to(w, 4, STEP_ETHER);
	case TYPE_FABRIC_PATH:
		return skip_to(w, 2, STEP_ETHER);
	case TYPE_ARISTA:
		return skip_arista(w);
	case TYPE_TRILL:
	case TYPE_PPP:
	case TYPE_MACSEC:
	case TYPE_CISCO_METADATA:
	case TYPE_NSH:
		return STEP_UNSUPPORTED;
	default:
		return STEP_NO_IP;
	}
}

/* Most packets are IP, so that comes first. */
static enum step follow_type(struct link_walk *w, uint16_t type)
{
	if (type == TYPE_IP4)
		return STEP_IP;
	return type == TYPE_IP6 ? STEP_IP6 : step_over_type(w, type);
}

static enum step step_type(struct link_walk *w)
{
	if (w->left < 2)
		return STEP_TRUNCATED;

	uint16_t type = link_u16(w->at);
	skip(w, 2);
	if (type > ETHER_LENGTH_MAX)
		return follow_type(w, type);
	shorten(w, type);
	return STEP_LLC;
}

static enum step step_llc(struct link_walk *w)
{
	if (w->left < LLC_BYTES)
		return STEP_TRUNCATED;
	if (w->at[0] == 0x06 && w->at[1] == 0x06 && w->at[2] == 0x03)
		return skip_to(w, LLC_BYTES, STEP_IP);
	if (w->at[0] != 0xaa || w->at[1] != 0xaa || w->at[2] != 0x03)
		return STEP_NO_IP;
	if (w->left < SNAP_BYTES)
		return STEP_TRUNCATED;
	/* Two organisations mean EtherTypes: none, and bridges of 802.1H. */
	if (w->at[3] != 0 || w->at[4] != 0 || (w->at[5] != 0 && w->at[5] != 0xf8))
		return STEP_NO_IP;
	uint16_t type = link_u16(w->at + 6);
	skip(w, SNAP_BYTES);
	return follow_type(w, type);
}

/* `type` is an EtherType, or a number of Linux' own. */
static enum step follow_cooked(struct link_walk *w, uint16_t type)
{
	if (type == TYPE_COOKED_LLC)
		return STEP_LLC;
	if (type == TYPE_COOKED_ETHER)
		return STEP_ETHER;
	return type > ETHER_LENGTH_MAX ? follow_type(w, type) : STEP_NO_IP;
}

static enum step step_cooked(struct link_walk *w)
{
	const uint8_t *header = w->at;

	if (!skip(w, COOKED_BYTES))
		return STEP_TRUNCATED;
	return follow_cooked(w, link_u16(header + 14));
}

static enum step step_cooked2(struct link_walk *w)
{
	const uint8_t *header = w->at;

	if (!skip(w, COOKED2_BYTES))
		return STEP_TRUNCATED;
	return follow_cooked(w, link_u16(header));
}

static enum step follow_ppp(uint16_t protocol)
{
	switch (protocol) {
	case PPP_IP4:
		return STEP_IP;
	case PPP_IP6:
		return STEP_IP6;
	case PPP_MPLS:
	case PPP_MPLS_MULTICAST:
		return STEP_MPLS;
	case PPP_COMPRESSED_TCP:
	case PPP_UNCOMPRESSED_TCP:
	case PPP_BRIDGED:
	case PPP_MULTILINK:
	case PPP_ENCRYPTED:
	case PPP_COMPRESSED_LINK:
	case PPP_COMPRESSED:
		return STEP_UNSUPPORTED;
	default:
		return STEP_NO_IP;
	}
}

/* The protocol field is one byte when that is odd (RFC 1661, 6.5). */
static enum step step_ppp(struct link_walk *w)
{
	uint16_t protocol;

	if (w->left < 1)
		return STEP_TRUNCATED;
	if ((w->at[0] & 1) != 0) {
		protocol = w->at[0];
		skip(w, 1);
	} else {
		if (w->left < 2)
			return STEP_TRUNCATED;
		protocol = link_u16(w->at);
		skip(w, 2);
	}
	return follow_ppp(protocol);
}

/* PPP with or without address and control (RFC 1662), or Cisco's framing. */
static enum step step_hdlc(struct link_walk *w)
{
	if (w->left < 2)
		return STEP_TRUNCATED;
	if (w->at[0] == 0xff)
		return skip_to(w, 2, STEP_PPP);
	return w->at[0] == 0x0f || w->at[0] == 0x8f ? STEP_CISCO_HDLC : STEP_PPP;
}

static enum step step_cisco_hdlc(struct link_walk *w)
{
	if (w->left < 4)
		return STEP_TRUNCATED;

	uint16_t type = link_u16(w->at + 2);
	skip(w, 4);
	return follow_type(w, type);
}

static enum step step_pppoe(struct link_walk *w)
{
	if (w->left < PPPOE_BYTES)
		return STEP_TRUNCATED;

	uint32_t bytes = link_u16(w->at + 4);
	skip(w, PPPOE_BYTES);
	shorten(w, bytes);
	return STEP_PPP;
}

static bool may_begin_ip(const uint8_t *at, uint16_t type)
{
	return type == TYPE_IP4 ? at[0] >> 4 == 4 : at[0] >> 4 == 6;
}

/* Does an Ethernet frame seem to begin `offset` bytes on? */
static bool looks_like_ether(const struct link_walk *w, uint32_t offset)
{
	if (w->left < offset + ETHER_BYTES + 1)
		return false;

	const uint8_t *header = w->at + offset;
	uint16_t type = link_u16(header + 12);
	switch (type) {
	case TYPE_IP4:
	case TYPE_IP6:
		return may_begin_ip(header + ETHER_BYTES, type);
	case TYPE_VLAN:
	case TYPE_PROVIDER_VLAN:
	case TYPE_OLD_VLAN:
	case TYPE_MPLS:
	case TYPE_PPPOE:
	case 0x0806: /* ARP */
	case 0x8863: /* PPPoE discovery */
	case 0x88cc: /* LLDP */
		return true;
	default:
		/* An LLC frame whose length fits. */
		return type >= LLC_BYTES && type <= ETHER_LENGTH_MAX &&
		       type <= w->left - offset - ETHER_BYTES;
	}
}

/* Behind the last label nothing says what follows; its first four bits do (RFC 4928).  A
 * pseudowire's control word begins with 0, but so may the address of an Ethernet frame. */
static enum step follow_labels(struct link_walk *w)
{
	if (w->left == 0)
		return STEP_TRUNCATED;
	switch (w->at[0] >> 4) {
	case 4:
		return STEP_IP;
	case 6:
		return STEP_IP6;
	case 1: /* associated channel (RFC 4385) */
		if (w->left < 4)
			return STEP_TRUNCATED;
		uint16_t channel = link_u16(w->at + 2);
		skip(w, 4);
		return channel == PPP_IP4 ? STEP_IP : channel == PPP_IP6 ? STEP_IP6 : STEP_NO_IP;
	case 0:
		if (looks_like_ether(w, 0) && !looks_like_ether(w, 4))
			return STEP_ETHER;
		return skip_to(w, 4, STEP_ETHER);
	default:
		return STEP_UNSUPPORTED;
	}
}

static enum step step_mpls(struct link_walk *w)
{
	bool is_last = false;

	while (!is_last) {
		if (w->left < MPLS_BYTES)
			return STEP_TRUNCATED;
		is_last = (w->at[2] & 1) != 0;
		skip(w, MPLS_BYTES);
	}
	return follow_labels(w);
}

/* BSD's address families; those of IPv6 differ from one system to the next. */
static enum step follow_family(uint32_t family)
{
	switch (family) {
	case 2:
		return STEP_IP;
	case 24: /* NetBSD, OpenBSD */
	case 28: /* FreeBSD */
	case 30: /* Darwin */
		return STEP_IP6;
	default:
		return STEP_NO_IP;
	}
}

static enum step step_loopback_net(struct link_walk *w)
{
	const uint8_t *at = w->at;

	if (!skip(w, 4))
		return STEP_TRUNCATED;
	return follow_family((uint32_t)link_u16(at) << 16 | link_u16(at + 2));
}

/* In the order of the machine that captured; an EtherType or PPP may stand there as well. */
static enum step step_loopback(struct link_walk *w)
{
	const uint8_t *at = w->at;

	if (!skip(w, 4))
		return STEP_TRUNCATED;
	uint32_t value = (uint32_t)link_u16(at) << 16 | link_u16(at + 2);
	if ((value & 0xffff) == 0)
		value = __builtin_bswap32(value);
	if (value >> 16 == 0xff03u)
		return follow_ppp((uint16_t)value);
	if ((value & 0xffff0000u) != 0)
		return STEP_NO_IP;
	return value > ETHER_LENGTH_MAX ? follow_type(w, (uint16_t)value) : follow_family(value);
}

static enum step step_ip_by_version(const struct link_walk *w)
{
	if (w->left == 0)
		return STEP_TRUNCATED;
	return w->at[0] >> 4 == 4 ? STEP_IP : w->at[0] >> 4 == 6 ? STEP_IP6 : STEP_NO_IP;
}

static bool first_step(uint32_t link_type, enum step *step)
{
	static const struct {
		uint32_t link_type;
		enum step step;
	} known[] = {
			{DLT_EN10MB, STEP_ETHER},
			{DLT_LINUX_SLL, STEP_COOKED},
			{DLT_LINUX_SLL2, STEP_COOKED2},
			{DLT_RAW, STEP_IP_BY_VERSION},
			{LINK_TYPE_RAW_OPENBSD, STEP_IP_BY_VERSION},
			{DLT_IPV4, STEP_IP},
			{DLT_IPV6, STEP_IP6},
			{DLT_NULL, STEP_LOOPBACK},
			{DLT_LOOP, STEP_LOOPBACK_NET},
			{DLT_PPP, STEP_HDLC},
			{DLT_PPP_SERIAL, STEP_HDLC},
			{DLT_C_HDLC, STEP_CISCO_HDLC},
			{DLT_PPP_ETHER, STEP_PPPOE},
	};

	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].link_type == link_type) {
			*step = known[i].step;
			return true;
		}
	}
	return false;
}

static enum step walk_on(struct link_walk *w, enum step step)
{
	switch (step) {
	case STEP_ETHER:
		return skip_to(w, ETHER_BYTES - 2, STEP_TYPE);
	case STEP_TYPE:
		return step_type(w);
	case STEP_LLC:
		return step_llc(w);
	case STEP_COOKED:
		return step_cooked(w);
	case STEP_COOKED2:
		return step_cooked2(w);
	case STEP_PPP:
		return step_ppp(w);
	case STEP_HDLC:
		return step_hdlc(w);
	case STEP_CISCO_HDLC:
		return step_cisco_hdlc(w);
	case STEP_PPPOE:
		return step_pppoe(w);
	case STEP_MPLS:
		return step_mpls(w);
	case STEP_LOOPBACK:
		return step_loopback(w);
	case STEP_LOOPBACK_NET:
		return step_loopback_net(w);
	case STEP_IP_BY_VERSION:
		return step_ip_by_version(w);
	default:
		return step;
	}
}

enum packet_reason link_find_ip(struct link_walk *w, uint32_t link_type)
{
	enum step step;

	if (!first_step(link_type, &step))
		return PACKET_UNSUPPORTED_LINK_TYPE;
	for (uint32_t i = 0; step < STEP_IP && i < STEPS_MAX; i++)
		step = walk_on(w, step);
	switch (step) {
	case STEP_IP:
	case STEP_IP6:
		w->may_be_ip4 = step == STEP_IP;
		return PACKET_IS_FLOW;
	case STEP_NO_IP:
		return PACKET_NO_IP;
	case STEP_TRUNCATED:
		return PACKET_TRUNCATED_LINK;
	default:
		return PACKET_UNSUPPORTED_ENCAPSULATION;
	}
}
