#pragma once

/*
 * received: a frame as a driver gave it, in one piece.
 *
 * Place    nic; used by port_transport and packet_queues.
 * Thread   any, on its own mbufs.
 * Memory   the mbuf's, or `flat` where the frame lies in several segments.
 * Errors   none: what is longer than most_bytes is cut.
 */

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <stdint.h>

enum { PACKET_BYTES_MAX = 9218 }; /* of packets that are none of a link */

static inline const uint8_t *received_bytes(
		const struct rte_mbuf *m, uint8_t *flat, uint32_t most_bytes, uint32_t *size)
{
	const uint8_t *bytes;

	*size = m->pkt_len < most_bytes ? m->pkt_len : most_bytes;
	bytes = m->nb_segs == 1 ? rte_pktmbuf_mtod(m, const uint8_t *)
				: rte_pktmbuf_read(m, 0, *size, flat);
	rte_prefetch0(bytes);
	return bytes;
}
