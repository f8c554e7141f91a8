#pragma once

/*
 * link_layer: what stands in front of the outermost IP header of a captured frame.
 *
 * Place    operator/packet; behind packet_parse.
 * Thread   any; no state.
 * Errors   as in packet_parse.h.
 */

#include "dataplane/operator/packet/packet_parse.h"

#include <stdbool.h>
#include <stdint.h>

/* Where we stand in a frame. */
struct link_walk {
	const uint8_t *at;
	uint32_t left;
	bool may_be_ip4; /* false: announced as IPv6, and as nothing else */
};

/* Network order. */
static inline uint16_t link_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Moves `walk` to the IP header.  PACKET_IS_FLOW: it begins there, with any number of bytes. */
enum packet_reason link_find_ip(struct link_walk *walk, uint32_t link_type);
