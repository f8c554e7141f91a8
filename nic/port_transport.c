#include "nic/port_transport.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/wire/buf.h"
#include "nic/port.h"
#include "nic/received.h"

enum {
	/* Of the UDP destination port behind Ethernet, in headers without options. */
	IPV4_PORT_OFFSET = 14 + 20 + 2,
	IPV6_PORT_OFFSET = 14 + 40 + 2,
	BURST_MAX = 64,
	POOL_CACHE = 2 * BURST_MAX, /* a burst comes back whole, and goes out again while warm */
	START_INTERVAL_NS = 20000000, /* between attempts to find the other side */
	POOL_SLACK = 2 * BURST_MAX + POOL_CACHE + POOL_CACHE / 2,
};

/* What a reference to a body keeps in the private area of its mbuf. */
struct reference {
	struct rte_mbuf_ext_shared_info info;
	struct port_transport *transport;
	struct buf *owner;
};
static_assert(sizeof(struct reference) <= LINE_BYTES, "one line");

struct port_transport {
	struct transport transport;
	struct port *port;
	uint16_t port_id, queue;
	uint32_t queue_count;
	uint16_t udp_port; /* of queue 0 */
	bool can_refer, copies, receives_bufs;
	struct transport_counters counters;
	struct rte_mempool *heads, *references;
	uint64_t tried_ns; /* to start the port */
	uint32_t pending_head, pending_tail; /* made, not yet taken by the device */
	struct rte_mbuf *pending[BURST_MAX];
	struct buf *owners[BURST_MAX]; /* of their bodies, where the device copies; or NULL */
	uint32_t sent_count; /* owners of bodies that the device is done with; who is in has it */
	struct buf *sent[BURST_MAX];
	uint8_t *flat; /* for frames that arrived in pieces, a burst of them */
};

static struct port_transport *of(struct transport *t)
{
	return (struct port_transport *)t;
}

/* ---- out ---- */

/* Pieces of one buffer follow each other, and are one step for all of them. */
static void release_bufs(struct buf *const *bufs, uint32_t count)
{
	for (uint32_t i = 0, run; i < count; i += run) {
		for (run = 1; i + run < count && bufs[i + run] == bufs[i]; run++)
			;
		if (bufs[i] != NULL)
			buf_release_times(bufs[i], run);
	}
}

static void release_sent(struct port_transport *t)
{
	release_bufs(t->sent, t->sent_count);
	t->sent_count = 0;
}

/* In the middle of a burst of the device: an atomic step here would wait until all is written that
 * the device has copied so far, for each frame anew. */
static void body_is_sent(void *address, void *reference)
{
	struct port_transport *t = ((struct reference *)reference)->transport;

	(void)address;
	if (t->sent_count == BURST_MAX)
		release_sent(t);
	t->sent[t->sent_count++] = ((struct reference *)reference)->owner;
}

/* The device tells when it is done with the body. */
static void attach(struct port_transport *t, struct rte_mbuf *m, const struct frame_out *f)
{
	struct reference *r = rte_mbuf_to_priv(m);
	void *body = (void *)(uintptr_t)f->body;

	r->info.free_cb = body_is_sent;
	r->info.fcb_opaque = r;
	r->transport = t;
	r->owner = f->owner;
	rte_mbuf_ext_refcnt_set(&r->info, 1);
	rte_pktmbuf_attach_extbuf(m, body, (rte_iova_t)(uintptr_t)body, (uint16_t)f->body_bytes,
			&r->info);
}

/* A piece that is the body where it lies.  A device that copies is done with it when it has taken
 * it, and the mbuf, which has no bytes of its own, need not be told where others were. */
static void refer(struct port_transport *t, struct rte_mbuf *m, const struct frame_out *f)
{
	if (t->copies) {
		m->buf_addr = (void *)(uintptr_t)f->body;
		m->buf_iova = (rte_iova_t)(uintptr_t)f->body;
		m->buf_len = (uint16_t)f->body_bytes;
		m->data_off = 0;
	} else {
		attach(t, m, f);
	}
	m->data_len = (uint16_t)f->body_bytes;
}

static void ask_for_checksum(struct rte_mbuf *m, const struct frame_out *f)
{
	m->l2_len = f->l3_offset;
	m->l3_len = (uint64_t)(f->l4_offset - f->l3_offset) & 0x1ff;
	m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM |
			(m->l3_len == sizeof(struct rte_ipv4_hdr) ? RTE_MBUF_F_TX_IPV4
								  : RTE_MBUF_F_TX_IPV6);
}

/* Its body goes as a piece of its own. */
static bool is_referred(const struct port_transport *t, const struct frame_out *f)
{
	return t->can_refer && f->owner != NULL && f->body_bytes > 0;
}

/* A head in front of a body is as long as that, others are rarely longer. */
static void copy_head(uint8_t *to, const struct frame_out *f)
{
	if (f->head_bytes <= BUF_HEAD_BYTES)
		memcpy(to, f->head, BUF_HEAD_BYTES);
	else
		memcpy(to, f->head, f->head_bytes);
}

/* Makes `m` the frame, with `body` behind it where its body is referred to.  Returns the owner
 * of a body that is released as soon as the device has taken the frame, or NULL. */
static struct buf *make(struct port_transport *t, struct rte_mbuf *m, struct rte_mbuf *body,
		const struct frame_out *f)
{
	struct buf *owner = NULL;
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);

	copy_head(to, f);
	m->data_len = (uint16_t)f->head_bytes;
	m->pkt_len = f->head_bytes + f->body_bytes;
	if (body != NULL) {
		refer(t, body, f);
		m->next = body;
		m->nb_segs = 2;
		owner = t->copies ? f->owner : NULL;
	} else if (f->body_bytes > 0) {
		memcpy(to + f->head_bytes, f->body, f->body_bytes);
		m->data_len = (uint16_t)(f->head_bytes + f->body_bytes);
		if (f->owner != NULL)
			buf_release(f->owner);
	}
	if (f->wants_udp_checksum)
		ask_for_checksum(m, f);
	return owner;
}

static uint32_t referred_count(
		const struct port_transport *t, const struct frame_out *frames, uint32_t count)
{
	uint32_t referred = 0;

	for (uint32_t i = 0; i < count; i++)
		referred += is_referred(t, &frames[i]);
	return referred;
}

/* For as many frames as there are mbufs free for; 0: the device has them all. */
static uint32_t take_mbufs(struct port_transport *t, struct rte_mbuf **heads,
		struct rte_mbuf **bodies, const struct frame_out *frames, uint32_t count)
{
	for (; count > 0; count /= 2) {
		uint32_t referred = referred_count(t, frames, count);

		if (rte_pktmbuf_alloc_bulk(t->heads, heads, count) != 0)
			continue;
		if (referred == 0 || rte_pktmbuf_alloc_bulk(t->references, bodies, referred) == 0)
			return count;
		rte_pktmbuf_free_bulk(heads, count);
	}
	return 0;
}

/* Puts frames where the device takes them from; returns how many. */
static uint32_t stage(struct port_transport *t, const struct frame_out *frames, uint32_t count)
{
	struct rte_mbuf *bodies[BURST_MAX];
	uint32_t used = 0;

	count = take_mbufs(t, t->pending, bodies, frames, RTE_MIN(count, (uint32_t)BURST_MAX));
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *body = is_referred(t, &frames[i]) ? bodies[used++] : NULL;

		t->owners[i] = make(t, t->pending[i], body, &frames[i]);
	}
	t->pending_head = 0;
	t->pending_tail = count;
	return count;
}

/* True: nothing waits any more. */
static bool flush(struct port_transport *t)
{
	uint32_t count = t->pending_tail - t->pending_head;

	if (count > 0 && port_enter(t->port, t->queue)) {
		uint32_t taken = rte_eth_tx_burst(t->port_id, t->queue,
				t->pending + t->pending_head, (uint16_t)count);

		if (t->copies)
			release_bufs(t->owners + t->pending_head, taken);
		t->pending_head += taken;
		release_sent(t);
		port_leave(t->port, t->queue);
	}
	return t->pending_head == t->pending_tail;
}

static uint32_t transport_send(struct transport *transport, const struct frame_out *frames,
		uint32_t count)
{
	struct port_transport *t = of(transport);
	uint32_t taken = 0;

	while (taken < count && flush(t)) {
		uint32_t staged = stage(t, frames + taken, count - taken);

		if (staged == 0)
			break;
		taken += staged;
	}
	(void)flush(t);
	return taken;
}

static void transport_reclaim(struct transport *transport, uint64_t now_ns)
{
	struct port_transport *t = of(transport);

	if (t->queue == 0 && now_ns - t->tried_ns > START_INTERVAL_NS && !port_is_up(t->port)) {
		t->tried_ns = now_ns;
		port_try_start(t->port);
	}
	(void)flush(t);
	if (!port_enter(t->port, t->queue))
		return;
	(void)rte_eth_tx_done_cleanup(t->port_id, t->queue, 0);
	release_sent(t);
	port_leave(t->port, t->queue);
}

/* ---- in ---- */

/* The queue that a frame is for; this one for whatever is none of ours. */
static uint32_t queue_of(const struct port_transport *t, const struct rte_mbuf *m)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t at = bytes[12] == 0x86 ? IPV6_PORT_OFFSET : IPV4_PORT_OFFSET;

	if (m->data_len < IPV4_PORT_OFFSET || m->data_len < at + 2)
		return t->queue;

	uint32_t queue = ((uint32_t)bytes[at] << 8 | bytes[at + 1]) - t->udp_port;
	return queue < t->queue_count ? queue : t->queue;
}

/* Keeps what is for this queue, in order; the rest goes where it belongs. */
static uint32_t hand_over(struct port_transport *t, struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t queue = queue_of(t, mbufs[i]);

		if (queue == t->queue) {
			mbufs[kept++] = mbufs[i];
		} else if (rte_ring_enqueue(port_handed(t->port, queue), mbufs[i]) == 0) {
			t->counters.handed++;
		} else {
			t->counters.dropped++;
			rte_pktmbuf_free(mbufs[i]);
		}
	}
	return kept;
}

static uint32_t receive_mbufs(struct port_transport *t, struct rte_mbuf **mbufs, uint32_t count)
{
	struct rte_ring *handed = port_handed(t->port, t->queue);
	uint32_t got = 0;

	if (handed != NULL)
		got = rte_ring_sc_dequeue_burst(handed, (void **)mbufs, count, NULL);
	if (got == count || !port_enter(t->port, t->queue))
		return got;

	uint32_t more = rte_eth_rx_burst(
			t->port_id, t->queue, mbufs + got, (uint16_t)(count - got));
	port_leave(t->port, t->queue);
	return got + (handed != NULL ? hand_over(t, mbufs + got, more) : more);
}

static struct buf *buf_of(const struct port_transport *t, struct rte_mbuf *m)
{
	return t->receives_bufs && m->nb_segs == 1 ? rte_mbuf_to_priv(m) : NULL;
}

static uint32_t transport_receive(struct transport *transport, struct frame_in *frames,
		uint32_t count)
{
	struct port_transport *t = of(transport);
	struct rte_mbuf *mbufs[BURST_MAX];
	uint32_t got;

	if (count > BURST_MAX)
		count = BURST_MAX;
	got = receive_mbufs(t, mbufs, count);
	for (uint32_t i = 0; i < got; i++) {
		frames[i].handle = mbufs[i];
		frames[i].buf = buf_of(t, mbufs[i]);
		frames[i].bytes = received_bytes(mbufs[i],
				t->flat + (size_t)i * t->transport.frame_bytes_max,
				t->transport.frame_bytes_max, &frames[i].size);
	}
	return got;
}

static void transport_release(struct transport *transport, const struct frame_in *frames,
		uint32_t count)
{
	struct rte_mbuf *mbufs[BURST_MAX];
	uint32_t n = 0;

	(void)transport;
	for (uint32_t i = 0; i < count; i++) {
		if (frames[i].handle != NULL)
			mbufs[n++] = frames[i].handle;
		if (n == BURST_MAX || i + 1 == count) {
			rte_pktmbuf_free_bulk(mbufs, n);
			n = 0;
		}
	}
}

/* ---- life ---- */

static int make_pools(struct port_transport *t)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t count = (uint32_t)port_tx_descriptors(t->port) + POOL_SLACK;
	/* A body that has no owner is copied behind its head. */
	uint32_t head = RTE_MAX((uint32_t)FRAME_HEAD_BYTES_MAX, t->transport.frame_bytes_max);
	uint32_t head_room = RTE_PKTMBUF_HEADROOM + RTE_MAX(head, port_head_bytes_min(t->port));

	snprintf(name, sizeof(name), "weir_heads_%u_%u", t->port_id, t->queue);
	t->heads = rte_pktmbuf_pool_create(
			name, count, POOL_CACHE, 0, (uint16_t)head_room, SOCKET_ID_ANY);
	if (t->heads == NULL)
		return -ENOMEM;
	if (!t->can_refer)
		return 0;
	snprintf(name, sizeof(name), "weir_bodies_%u_%u", t->port_id, t->queue);
	t->references = rte_pktmbuf_pool_create(name, count, POOL_CACHE,
			RTE_ALIGN(sizeof(struct reference), RTE_MBUF_PRIV_ALIGN), 0,
			SOCKET_ID_ANY);
	return t->references != NULL ? 0 : -ENOMEM;
}

int port_transport_create(struct port_transport **out, struct port *port, uint32_t queue)
{
	struct port_transport *t = lines_alloc(sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->transport = (struct transport){
			.send = transport_send,
			.receive = transport_receive,
			.release = transport_release,
			.reclaim = transport_reclaim,
			.counters = &t->counters,
			.frame_bytes_max = port_frame_bytes_max(port),
			.can_udp_checksum = port_can_udp_checksum(port),
	};
	t->port = port;
	t->port_id = port_id(port);
	t->queue = (uint16_t)queue;
	t->queue_count = port_queue_count(port);
	t->udp_port = port_udp_port(port);
	t->can_refer = port_can_refer(port);
	t->copies = port_copies(port);
	t->receives_bufs = port_receives_bufs(port);
	t->flat = lines_alloc((size_t)BURST_MAX * t->transport.frame_bytes_max);
	if (t->flat == NULL || make_pools(t) != 0) {
		port_transport_destroy(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

struct transport *port_transport_port(struct port_transport *t)
{
	return &t->transport;
}

void port_transport_destroy(struct port_transport *t)
{
	if (t == NULL)
		return;
	port_stop(t->port);
	release_bufs(t->owners + t->pending_head, t->pending_tail - t->pending_head);
	for (; t->pending_head < t->pending_tail; t->pending_head++)
		rte_pktmbuf_free(t->pending[t->pending_head]);
	release_sent(t);
	rte_mempool_free(t->heads);
	rte_mempool_free(t->references);
	free(t->flat);
	free(t);
}
