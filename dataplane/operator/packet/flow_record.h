#pragma once

/*
 * flow_record: the records of the flow-metering job, from operator to operator.
 *
 *     pcap-source   captured_packet and the captured bytes (variable)
 *     flow-parse    flow_packet, keyed by its flow
 *     flow-window   flow_row, keyed by its flow
 *
 * All numbers are in host order; times are nanoseconds since 1970.
 */

#include <stdint.h>
#include <string.h>

/* What stands in front of the captured bytes of a packet. */
struct captured_packet {
	int64_t time_ns;
	uint32_t original_bytes; /* length of the frame on the wire */
	uint16_t link_type;      /* DLT_* of libpcap */
	uint8_t is_late;         /* behind the watermark of its source */
	uint8_t reserved;
};
_Static_assert(sizeof(struct captured_packet) == 16, "record layout");

/* Puts such a record at `at`: its size, the head, `kept` captured bytes.  What it takes there. */
static inline uint32_t captured_packet_put(uint8_t *at, const struct captured_packet *head,
		const uint8_t *bytes, uint32_t kept)
{
	uint32_t size = (uint32_t)sizeof(*head) + kept;

	memcpy(at, &size, sizeof(size));
	memcpy(at + sizeof(size), head, sizeof(*head));
	memcpy(at + sizeof(size) + sizeof(*head), bytes, kept);
	return (uint32_t)sizeof(size) + size;
}

/* One direction of a conversation, that of the outermost IP header.  Compared and hashed as
 * bytes: an IPv4 address is followed by zeros. */
struct flow_key {
	uint8_t source[16], destination[16]; /* network order */
	uint16_t source_port, destination_port;
	uint8_t protocol;
	uint8_t ip_version; /* 4 or 6 */
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct flow_key) == 40, "record layout");

/* What one packet adds to its flow. */
struct flow_packet {
	struct flow_key key;
	int64_t time_ns;
	uint32_t bytes;
	uint16_t tcp_flags; /* 12 bits: reserved, AE, CWR .. FIN */
	uint8_t is_late;
	uint8_t reserved[9];
};
_Static_assert(sizeof(struct flow_packet) == 64, "record layout");

/* A flow in a window [start, end). */
struct flow_row {
	struct flow_key key;
	int64_t window_start_ns, window_end_ns;
	uint64_t packets, bytes;
	int64_t first_ns, last_ns;
	uint16_t tcp_flags; /* of all packets, or-ed */
	uint8_t is_late;
	uint8_t reserved[5];
};
_Static_assert(sizeof(struct flow_row) == 96, "record layout");
