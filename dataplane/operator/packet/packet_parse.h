#pragma once

/*
 * packet_parse: from the captured bytes of a frame to the flow it belongs to.
 *
 * Steps over VLAN tags and other tags of switches, MPLS labels, Ethernet pseudowires, PPPoE and
 * LLC/SNAP down to the outermost IP header; what that header carries, a tunnel too, is its payload.
 *
 * Place    operator/packet; pure.
 * Thread   any; no state.
 * Errors   every byte is hostile and none is read before its presence is known.  What is no flow
 *          has a reason.
 */

#include "dataplane/operator/packet/flow_record.h"

#define PACKET_REASONS(X)                                                                          \
	X(UNSUPPORTED_LINK_TYPE, "unsupported_link_type")                                          \
	X(UNSUPPORTED_ENCAPSULATION, "unsupported_encapsulation")                                  \
	X(TRUNCATED_LINK, "truncated_link")                                                        \
	X(NO_IP, "no_ip")                                                                          \
	X(TRUNCATED_IP, "truncated_ip")                                                            \
	X(MALFORMED_IP, "malformed_ip")

/*
 * UNSUPPORTED_LINK_TYPE      the capture's link type is none of packet_link_type_is_known
 * UNSUPPORTED_ENCAPSULATION  there may be IP in it, behind headers that are not stepped over
 * TRUNCATED_LINK             ends before it is clear what the frame carries
 * NO_IP                      carries something else: ARP, LLDP, LCP ...
 * TRUNCATED_IP               not all of the fixed part of the IP header was captured
 * MALFORMED_IP               wrong version, or a header or total length below what it must be
 */
enum packet_reason {
	PACKET_IS_FLOW,
#define X(name, text) PACKET_##name,
	PACKET_REASONS(X)
#undef X
	PACKET_REASON_COUNT,
};

struct packet {
	struct flow_key key;
	uint16_t tcp_flags;
};

/* PACKET_IS_FLOW and fills `packet`, or why not.  Ports are 0 in fragments after the first, in
 * protocols without ports and when they were not captured; then flags are 0 too. */
enum packet_reason packet_parse(
		uint32_t link_type, const uint8_t *bytes, uint32_t size, struct packet *packet);
