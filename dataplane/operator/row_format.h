#pragma once

/*
 * row_format: records as lines of text.
 *
 *     flow-csv    window_start,window_end,src,dst,sport,dport,protocol,packets,bytes,first,last,
 *                 tcp_flags of a flow_row
 *     count-csv   key,count of a counted_record
 *
 * Times are RFC 3339 in UTC: with nine digits behind the second for packets, and for windows when
 * they do not begin at a whole second.  Addresses as inet_ntop writes them, the protocol as its
 * number, TCP flags as hexadecimal digits (0x012).
 *
 * Place    operator; pure.
 * Thread   any; no state.
 */

#include <stdint.h>

enum { ROW_BYTES_MAX = 320 };

struct row_format {
	const char *name;
	const char *header; /* a line, without its end */
	uint32_t record_bytes;
	/* Writes one line with its end; returns its bytes, at most ROW_BYTES_MAX. */
	uint32_t (*print)(const uint8_t *record, char line[ROW_BYTES_MAX]);
};

/* The names as a parameter's choices. */
#define ROW_FORMAT_CHOICES "flow-csv|count-csv"

/* By the index in the choices. */
const struct row_format *row_format_at(uint32_t index);
