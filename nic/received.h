#pragma once

/*
 * received: a frame as a driver gave it, in one piece.
 *
 * Place    nic; used by port_transport and packet_queues.
 * Thread   any, on its own mbufs.
 * Memory   the mbuf's, or `flat` where the frame lies in several segments.
 * Errors   none: what is longer than FRAME_BYTES_MAX is cut.
 */

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "dataplane/channel/transport.h"

static inline const uint8_t *received_bytes(
		const struct rte_mbuf *m, uint8_t flat[FRAME_BYTES_MAX], uint32_t *size)
{
	const uint8_t *bytes;

	*size = m->pkt_len < FRAME_BYTES_MAX ? m->pkt_len : FRAME_BYTES_MAX;
	bytes = m->nb_segs == 1 ? rte_pktmbuf_mtod(m, const uint8_t *)
				: rte_pktmbuf_read(m, 0, *size, flat);
	rte_prefetch0(bytes);
	return bytes;
}
