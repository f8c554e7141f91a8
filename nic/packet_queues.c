#include "nic/packet_queues.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/channel/transport.h"
#include "nic/received.h"

enum {
	BURST_MAX = 64,
	NOBODY = UINT8_MAX,
	MAC_BYTES = 6,
	TYPE_OFFSET = 12,
	VLAN_BYTES = 4,
	IPV4_BYTES_MIN = 20,
	IPV6_BYTES = 40,
	PORTS_BYTES = 4,
	TCP_PROTOCOL = 6,
	UDP_PROTOCOL = 17,
};
static_assert((int)PACKET_TAKERS_MAX + (int)PORT_QUEUES_MAX <= (int)PORT_USERS_MAX,
		"a number for each");
static_assert((int)PACKET_TAKERS_MAX < (int)NOBODY, "told apart");

/* Its worker writes, but for what is said. */
struct taker {
	struct rte_ring *ring; /* packets that came elsewhere; set before others can see it */
	uint8_t (*flat)[PACKET_BYTES_MAX];
	uint64_t held, handed; /* queues, a bit for each; packets that came by ring */
	uint32_t change_seen, next;
	_Atomic uint64_t dropped; /* because the ring of another was full */
	bool is_in;		  /* of the control thread */
} __attribute__((aligned(LINE_BYTES)));

struct queue {
	_Atomic uint8_t wanted; /* the taker who shall have it; written by the control thread */
	_Atomic uint8_t holder; /* who has it */
};

struct packet_queues {
	struct port *port;
	uint16_t port_id;
	uint32_t queue_count;
	uint64_t tidied_dropped; /* of the control thread */
	/* Written by the control thread, read by workers, each whole: an old one does no harm. */
	_Atomic uint32_t change, target_count; /* 0: nothing is handed over */
	_Atomic uint8_t targets[PACKET_TAKERS_MAX];
	struct queue queues[PORT_QUEUES_MAX];
	struct taker takers[PACKET_TAKERS_MAX];
};

/* ---- on the worker ---- */

/* Lets go of queues that others shall have, and takes those that are free for it. */
static void settle(struct packet_queues *q, uint32_t taker)
{
	struct taker *t = &q->takers[taker];
	uint32_t change = atomic_load_explicit(&q->change, memory_order_acquire);
	bool is_settled = true;

	if (t->change_seen == change)
		return;
	for (uint32_t i = 0; i < q->queue_count; i++) {
		uint8_t wanted = atomic_load_explicit(&q->queues[i].wanted, memory_order_relaxed);
		uint8_t nobody = NOBODY;
		uint64_t bit = UINT64_C(1) << i;

		if ((t->held & bit) != 0 && wanted != taker) {
			t->held &= ~bit;
			atomic_store_explicit(
					&q->queues[i].holder, NOBODY, memory_order_release);
		} else if ((t->held & bit) == 0 && wanted == taker) {
			if (atomic_compare_exchange_strong(
					    &q->queues[i].holder, &nobody, (uint8_t)taker))
				t->held |= bit;
			else
				is_settled = false;
		}
	}
	if (is_settled)
		t->change_seen = change;
}

static uint32_t mix(uint32_t hash, uint32_t value)
{
	hash = (hash ^ value) * UINT32_C(0x9e3779b1);
	return hash ^ hash >> 15;
}

/* Two fields side by side, whichever comes first. */
static uint32_t mix_pair(uint32_t hash, const uint8_t *at, uint32_t bytes)
{
	uint32_t a = 0, b = 0;

	for (uint32_t i = 0; i < bytes; i += 2) {
		a = mix(a, (uint32_t)at[i] << 8 | at[i + 1]);
		b = mix(b, (uint32_t)at[bytes + i] << 8 | at[bytes + i + 1]);
	}
	return mix(hash, a + b);
}

/* Of UDP and TCP; pieces of a datagram have ports in the first one alone, so none counts. */
static uint32_t mix_ports(uint32_t hash, uint8_t protocol, const uint8_t *at, const uint8_t *end)
{
	if ((protocol != UDP_PROTOCOL && protocol != TCP_PROTOCOL) || end - at < PORTS_BYTES)
		return hash;
	return mix_pair(hash, at, PORTS_BYTES / 2);
}

static uint32_t hash_of(const uint8_t *at, uint32_t size)
{
	const uint8_t *end = at + size, *ip = at + TYPE_OFFSET + 2;

	if (size < TYPE_OFFSET + 2)
		return 0;
	while (end - ip >= VLAN_BYTES && (ip[-2] == 0x81 || ip[-2] == 0x88) &&
			(ip[-1] == 0x00 || ip[-1] == 0xa8))
		ip += VLAN_BYTES;
	if (ip[-2] == 0x08 && ip[-1] == 0x00 && end - ip >= IPV4_BYTES_MIN) {
		uint32_t hash = mix_pair(0, ip + 12, 4);
		bool is_piece = (ip[6] & 0x3f) != 0 || ip[7] != 0;

		return is_piece ? hash : mix_ports(hash, ip[9], ip + 4 * (ip[0] & 0x0f), end);
	}
	if (ip[-2] == 0x86 && ip[-1] == 0xdd && end - ip >= IPV6_BYTES)
		return mix_ports(mix_pair(0, ip + 8, 16), ip[6], ip + IPV6_BYTES, end);
	return mix_pair(0, at, MAC_BYTES);
}

/* Keeps what is for this taker, in order; the rest goes to the rings of the others. */
static uint32_t hand_over(struct packet_queues *q, uint32_t taker, uint32_t target_count,
		struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t kept = 0, dropped = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct rte_mbuf *m = mbufs[i];
		uint32_t hash = hash_of(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
		uint32_t index = (uint32_t)((uint64_t)mix(0, hash) * target_count >> 32);
		uint8_t target = atomic_load_explicit(&q->targets[index], memory_order_acquire);

		if (target == taker) {
			mbufs[kept++] = mbufs[i];
		} else if (rte_ring_enqueue(q->takers[target].ring, mbufs[i]) != 0) {
			rte_pktmbuf_free(mbufs[i]);
			dropped++;
		}
	}
	if (dropped > 0)
		atomic_fetch_add_explicit(
				&q->takers[taker].dropped, dropped, memory_order_relaxed);
	return kept;
}

/* Of its queues in turn, so that none waits for another. */
static uint32_t take_of_queues(
		struct packet_queues *q, uint32_t taker, struct rte_mbuf **mbufs, uint32_t count)
{
	struct taker *t = &q->takers[taker];
	uint32_t target_count = atomic_load_explicit(&q->target_count, memory_order_acquire);
	uint32_t got = 0;

	if (t->held == 0 || !port_enter(q->port, PORT_QUEUES_MAX + taker))
		return 0;
	t->next++;
	for (uint32_t i = 0; i < q->queue_count && got < count; i++) {
		uint32_t queue = (t->next + i) % q->queue_count;

		if ((t->held >> queue & 1) == 0)
			continue;
		uint32_t more = rte_eth_rx_burst(q->port_id, (uint16_t)queue, mbufs + got,
				(uint16_t)(count - got));
		got += target_count > 0 ? hand_over(q, taker, target_count, mbufs + got, more)
					: more;
	}
	port_leave(q->port, PORT_QUEUES_MAX + taker);
	return got;
}

uint32_t packet_queues_receive(struct packet_queues *q, uint32_t taker,
		struct weir_packet *packets, uint32_t count)
{
	struct taker *t = &q->takers[taker];
	struct rte_mbuf *mbufs[BURST_MAX];

	if (count > BURST_MAX)
		count = BURST_MAX;
	settle(q, taker);
	uint32_t got = rte_ring_sc_dequeue_burst(t->ring, (void **)mbufs, count, NULL);
	t->handed += got;
	if (got < count)
		got += take_of_queues(q, taker, mbufs + got, count - got);
	for (uint32_t i = 0; i < got; i++) {
		packets[i].handle = mbufs[i];
		packets[i].bytes = received_bytes(
				mbufs[i], t->flat[i], PACKET_BYTES_MAX, &packets[i].size);
	}
	return got;
}

uint64_t packet_queues_handed(const struct packet_queues *q, uint32_t taker)
{
	return q->takers[taker].handed;
}

uint32_t packet_queues_held(const struct packet_queues *q, uint32_t taker)
{
	return (uint32_t)__builtin_popcountll(q->takers[taker].held);
}

/* ---- on the control thread ---- */

static uint32_t list_takers(const struct packet_queues *q, uint8_t out[PACKET_TAKERS_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PACKET_TAKERS_MAX; i++) {
		if (q->takers[i].is_in)
			out[count++] = (uint8_t)i;
	}
	return count;
}

/* Deals queues and packets out anew. */
static void deal(struct packet_queues *q)
{
	uint8_t takers[PACKET_TAKERS_MAX];
	uint32_t count = list_takers(q, takers);
	bool hands_over = count > q->queue_count ||
			  port_steering(q->port) == PORT_STEERING_RAW_ANY;

	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&q->targets[i], takers[i], memory_order_release);
	atomic_store_explicit(&q->target_count, hands_over && count > 1 ? count : 0,
			memory_order_release);
	for (uint32_t i = 0; i < q->queue_count; i++)
		atomic_store_explicit(&q->queues[i].wanted,
				count > 0 ? takers[i % count] : NOBODY, memory_order_relaxed);
	atomic_fetch_add_explicit(&q->change, 1, memory_order_release);
}

static int prepare(struct packet_queues *q, uint32_t taker)
{
	struct taker *t = &q->takers[taker];
	char name[RTE_RING_NAMESIZE];

	if (t->ring != NULL)
		return 0;
	t->flat = lines_alloc(BURST_MAX * sizeof(t->flat[0]));
	if (t->flat == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "weir_packets_%u_%u", q->port_id, taker);
	t->ring = rte_ring_create(
			name, PACKETS_HANDED_MAX, SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (t->ring != NULL)
		return 0;
	free(t->flat);
	t->flat = NULL;
	return -ENOMEM;
}

int packet_queues_join(struct packet_queues *q, uint32_t taker)
{
	CHECK(taker < PACKET_TAKERS_MAX && !q->takers[taker].is_in);
	int rc = prepare(q, taker);
	if (rc != 0)
		return rc;
	q->takers[taker].is_in = true;
	deal(q);
	return 0;
}

void packet_queues_leave(struct packet_queues *q, uint32_t taker)
{
	struct taker *t = &q->takers[taker];

	CHECK(t->is_in);
	t->is_in = false;
	t->held = 0;
	deal(q);
	for (uint32_t i = 0; i < q->queue_count; i++) {
		if (atomic_load(&q->queues[i].holder) == taker)
			atomic_store_explicit(
					&q->queues[i].holder, NOBODY, memory_order_release);
	}
}

void packet_queues_tidy(struct packet_queues *q)
{
	uint8_t takers[PACKET_TAKERS_MAX];
	uint32_t count = list_takers(q, takers), turn = 0;

	for (uint32_t i = 0; i < PACKET_TAKERS_MAX && count > 0; i++) {
		struct taker *t = &q->takers[i];
		void *m;

		while (!t->is_in && t->ring != NULL && rte_ring_sc_dequeue(t->ring, &m) == 0) {
			if (rte_ring_enqueue(q->takers[takers[turn++ % count]].ring, m) == 0)
				continue;
			rte_pktmbuf_free(m);
			q->tidied_dropped++;
		}
	}
}

void packet_queues_clear(struct packet_queues *q)
{
	struct rte_mbuf *mbufs[BURST_MAX];

	for (uint32_t i = 0; i < q->queue_count; i++) {
		uint32_t count = 1;

		for (uint32_t total = 0; count > 0 && total < port_rx_descriptors(q->port);
				total += count) {
			count = port_enter(q->port, PORT_QUEUES_MAX)
						? rte_eth_rx_burst(q->port_id, (uint16_t)i, mbufs,
								  BURST_MAX)
						: 0;
			port_leave(q->port, PORT_QUEUES_MAX);
			rte_pktmbuf_free_bulk(mbufs, count);
		}
	}
}

uint64_t packet_queues_dropped(const struct packet_queues *q)
{
	uint64_t dropped = q->tidied_dropped;

	for (uint32_t i = 0; i < PACKET_TAKERS_MAX; i++)
		dropped += atomic_load_explicit(&q->takers[i].dropped, memory_order_relaxed);
	return dropped;
}

void packet_queues_print(const struct packet_queues *q, char text[PORT_TEXT_BYTES])
{
	uint8_t takers[PACKET_TAKERS_MAX];
	uint32_t count = list_takers(q, takers);
	const char *how = port_steering_name(port_steering(q->port));

	if (atomic_load(&q->target_count) > 0)
		how = "by a hash, handed over by ring";
	int length = snprintf(text, PORT_TEXT_BYTES, "%u %s packets from %u %s", count,
			count == 1 ? "task takes" : "tasks take", q->queue_count,
			q->queue_count == 1 ? "queue" : "queues");
	if (q->queue_count > 1 || count > 1)
		snprintf(text + length, PORT_TEXT_BYTES - (size_t)length, ", to which they come %s",
				how);
}

/* ---- life ---- */

int packet_queues_create(struct packet_queues **out, struct port *port)
{
	struct packet_queues *q = lines_alloc(sizeof(*q));

	if (q == NULL)
		return -ENOMEM;
	q->port = port;
	q->port_id = port_id(port);
	q->queue_count = port_queue_count(port);
	for (uint32_t i = 0; i < PORT_QUEUES_MAX; i++) {
		atomic_init(&q->queues[i].wanted, NOBODY);
		atomic_init(&q->queues[i].holder, NOBODY);
	}
	*out = q;
	return 0;
}

void packet_queues_destroy(struct packet_queues *q)
{
	if (q == NULL)
		return;
	for (uint32_t i = 0; i < PACKET_TAKERS_MAX; i++) {
		struct taker *t = &q->takers[i];
		void *m;

		while (t->ring != NULL && rte_ring_sc_dequeue(t->ring, &m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(t->ring);
		free(t->flat);
	}
	free(q);
}
