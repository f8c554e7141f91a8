/* Who takes packets from a port, and what becomes of each: over rings in place of a wire. */

#include "nic/packet_ports.h"

#include "dataplane/operator/packet_port.h"
#include "nic/eal.h"
#include "nic/packet_queues.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>

enum { QUEUES = 2, DEPTH = 1024, TAKERS = 3, FRAME = 60, FLOWS = 40, NUMBER_OFFSET = 44 };

struct rig {
	struct rte_ring *in[QUEUES], *out[QUEUES];
	struct rte_mempool *pool;
	struct packet_ports *ports;
	struct port_directory *directory;
	struct weir_packet_port *takers[TAKERS];
	uint64_t seen[TAKERS];	   /* packets of each */
	int32_t taker_of[FLOWS];   /* plus one */
	uint32_t put;
	bool is_split; /* a flow came to two takers */
};

static void start(struct rig *r, uint32_t queues)
{
	static const char *const names[] = {"net_ring_w"};
	char error[PORT_ERROR_BYTES], name[32];
	struct packet_ports_config config = {.names = names, .count = 1, .queue_count = queues,
			.worker_count = QUEUES, .descriptors = 64};

	eal_fixture_start("0", 128 << 20, NULL, 0);
	for (uint32_t q = 0; q < QUEUES; q++) {
		snprintf(name, sizeof(name), "in_%u", q);
		r->in[q] = rte_ring_create(name, DEPTH, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "out_%u", q);
		r->out[q] = rte_ring_create(name, DEPTH, SOCKET_ID_ANY, 0);
		cr_assert(r->in[q] != NULL && r->out[q] != NULL);
	}
	cr_assert_geq(rte_eth_from_rings("w", r->in, QUEUES, r->out, QUEUES, SOCKET_ID_ANY), 0);
	r->pool = rte_pktmbuf_pool_create("packets", 4095, 0, 0, 512, SOCKET_ID_ANY);
	cr_assert_not_null(r->pool);
	cr_assert_eq(packet_ports_open(&r->ports, &config, error), 0, "%s", error);
	r->directory = packet_ports_directory(r->ports);
}

static void stop(struct rig *r)
{
	packet_ports_close(r->ports);
	eal_stop();
}

static void join(struct rig *r, uint32_t taker)
{
	char error[WEIR_ERROR_BYTES];

	r->takers[taker] = r->directory->acquire(
			r->directory, "net_ring_w", taker, WEIR_PORT_RECEIVE, error);
	cr_assert_not_null(r->takers[taker], "%s", error);
}

static void leave(struct rig *r, uint32_t taker)
{
	r->directory->release(r->directory, r->takers[taker], WEIR_PORT_RECEIVE);
}

/* A UDP datagram of a flow, or of its way back. */
static void put(struct rig *r, uint32_t queue, uint32_t flow, bool is_back)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	cr_assert_not_null(m);
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, FRAME);
	const uint8_t ends[2][4] = {{10, 0, (uint8_t)flow, 1}, {192, 0, 2, 7}};
	const uint8_t ports[2][2] = {{4, (uint8_t)flow}, {0, 53}};

	memset(at, 0, FRAME);
	at[12] = 0x08;
	at[14] = 0x45;
	at[23] = 17;
	for (int i = 0; i < 2; i++) {
		memcpy(at + 26 + 4 * i, ends[i ^ is_back], 4);
		memcpy(at + 34 + 2 * i, ports[i ^ is_back], 2);
	}
	at[NUMBER_OFFSET] = (uint8_t)flow;
	cr_assert_eq(rte_ring_enqueue(r->in[queue], m), 0);
	r->put++;
}

static uint32_t take(struct rig *r, uint32_t taker)
{
	struct weir_packet packets[64];
	struct weir_packet_port *p = r->takers[taker];
	uint32_t count = p->receive(p, packets, 64, 1);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t flow = packets[i].bytes[NUMBER_OFFSET];

		cr_assert_eq(packets[i].size, FRAME);
		cr_assert_lt(flow, FLOWS);
		r->is_split |= r->taker_of[flow] != 0 && r->taker_of[flow] != (int32_t)taker + 1;
		r->taker_of[flow] = (int32_t)taker + 1;
	}
	p->release(p, packets, count);
	r->seen[taker] += count;
	return count;
}

static uint32_t take_all(struct rig *r, uint32_t takers)
{
	uint32_t all = 0, count = 1;

	while (count > 0) {
		count = 0;
		for (uint32_t i = 0; i < takers; i++)
			count += take(r, i);
		all += count;
	}
	return all;
}

static struct weir_port_losses losses_of(struct rig *r, uint32_t taker)
{
	struct weir_port_losses losses;

	packet_ports_look(r->ports);
	r->takers[taker]->losses(r->takers[taker], &losses);
	return losses;
}

Test(packet_ports, each_task_has_a_queue_of_its_own)
{
	struct rig r = {0};

	start(&r, 2);
	join(&r, 0);
	join(&r, 1);
	for (uint32_t i = 0; i < 30; i++)
		put(&r, i % 3 == 0, i % FLOWS, false);
	cr_expect_eq(take_all(&r, 2), 30);
	cr_expect_eq(r.seen[0], 20);
	cr_expect_eq(r.seen[1], 10);
	cr_expect_eq(r.takers[0]->queue_count, 1);
	cr_expect_eq(r.takers[1]->queue_count, 1);
	cr_expect_eq(r.takers[0]->handed + r.takers[1]->handed, 0);
	stop(&r);
}

Test(packet_ports, a_lone_task_takes_from_all_queues_until_another_comes)
{
	struct rig r = {0};

	start(&r, 2);
	join(&r, 0);
	put(&r, 0, 1, false);
	put(&r, 1, 2, false);
	cr_expect_eq(take_all(&r, 1), 2);
	cr_expect_eq(r.takers[0]->queue_count, 2);
	join(&r, 1);
	put(&r, 1, 2, false);
	cr_expect_eq(take(&r, 1), 0, "the first one still has it");
	cr_expect_eq(take(&r, 0), 0, "and lets go of it now");
	cr_expect_eq(take(&r, 1), 1);
	leave(&r, 1);
	put(&r, 1, 2, false);
	cr_expect_eq(take(&r, 0), 1);
	cr_expect_eq(r.takers[0]->queue_count, 2);
	stop(&r);
}

Test(packet_ports, more_tasks_than_queues_are_handed_packets_flow_by_flow)
{
	struct rig r = {0};

	start(&r, 1);
	for (uint32_t i = 0; i < TAKERS; i++)
		join(&r, i);
	for (uint32_t i = 0; i < 8 * FLOWS; i++)
		put(&r, 0, i % FLOWS, i / FLOWS % 2 == 1);
	cr_expect_eq(take_all(&r, TAKERS), 8 * FLOWS);
	cr_expect_not(r.is_split, "a flow and its way back come to one task");
	for (uint32_t i = 0; i < TAKERS; i++)
		cr_expect_gt(r.seen[i], 8 * FLOWS / TAKERS / 3, "task %u: %lu", i, r.seen[i]);
	cr_expect_eq(r.takers[0]->handed, 0);
	cr_expect_eq(r.takers[1]->handed, r.seen[1]);
	cr_expect_eq(r.takers[2]->handed, r.seen[2]);
	cr_expect_eq(r.takers[0]->queue_count, 1);
	cr_expect_eq(r.takers[1]->queue_count, 0);
	stop(&r);
}

/* Two of three rings are not emptied: what does not fit is lost, and told of by one task. */
Test(packet_ports, a_full_ring_loses_packets_and_counts_them_once)
{
	struct rig r = {0};

	start(&r, 1);
	for (uint32_t i = 0; i < TAKERS; i++)
		join(&r, i);
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 20 * FLOWS; i++)
			put(&r, 0, i % FLOWS, false);
		while (rte_ring_count(r.in[0]) > 0)
			take(&r, 0);
	}
	take_all(&r, TAKERS);

	struct weir_port_losses first = losses_of(&r, 0);
	uint64_t seen = r.seen[0] + r.seen[1] + r.seen[2];
	cr_expect_gt(first.ring_full, 0);
	cr_expect_eq(seen + first.ring_full, r.put, "%lu and %lu of %u", seen, first.ring_full,
			r.put);
	for (uint32_t i = 1; i < TAKERS; i++)
		cr_expect_eq(losses_of(&r, i).ring_full, 0);
	/* When that task has gone another one tells of what comes then, and of no more. */
	leave(&r, 0);
	uint64_t before = r.seen[1] + r.seen[2], put_before = r.put;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 20 * FLOWS; i++)
			put(&r, 0, i % FLOWS, false);
		while (rte_ring_count(r.in[0]) > 0)
			take(&r, 1);
	}
	while (take(&r, 1) + take(&r, 2) > 0)
		;
	struct weir_port_losses second = losses_of(&r, 1);
	cr_expect_gt(second.ring_full, 0);
	cr_expect_eq(r.seen[1] + r.seen[2] - before + second.ring_full, r.put - put_before);
	cr_expect_eq(losses_of(&r, 0).ring_full, first.ring_full);
	stop(&r);
}

Test(packet_ports, what_waits_for_a_task_that_left_comes_to_the_others)
{
	struct rig r = {0};

	start(&r, 1);
	join(&r, 0);
	join(&r, 1);
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		put(&r, 0, i % FLOWS, false);
	while (rte_ring_count(r.in[0]) > 0)
		take(&r, 0);
	leave(&r, 1);
	cr_expect_lt(r.seen[0], r.put);
	packet_ports_look(r.ports);
	while (take(&r, 0) > 0)
		;
	cr_expect_eq(r.seen[0], r.put);
	stop(&r);
}

/* As of a task that failed: its ledger goes on. */
Test(packet_ports, a_task_that_comes_again_has_its_own_part_of_the_port)
{
	struct rig r = {0};

	start(&r, 2);
	join(&r, 0);
	join(&r, 1);
	uint64_t instance = r.takers[1]->instance;
	put(&r, 1, 1, false);
	take_all(&r, 2);
	leave(&r, 0);
	leave(&r, 1);
	join(&r, 1);
	cr_expect_eq(r.takers[1]->instance, instance);
	cr_expect_eq(r.takers[1]->received, 1);
	put(&r, 0, 1, false);
	cr_expect_eq(take(&r, 1), 1, "and all queues while it is alone");
	join(&r, 0);
	cr_expect_neq(r.takers[0]->instance, instance);
	stop(&r);
}

Test(packet_ports, packets_go_out_by_a_queue_for_each_task_that_sends)
{
	const uint8_t bytes[FRAME] = {1};
	struct weir_packet packet = {bytes, FRAME, NULL};
	struct weir_packet_port *senders[QUEUES];
	char error[WEIR_ERROR_BYTES];
	struct rig r = {0};

	start(&r, 2);
	join(&r, 0);
	for (uint32_t i = 0; i < QUEUES; i++) {
		senders[i] = r.directory->acquire(
				r.directory, "net_ring_w", i, WEIR_PORT_SEND, error);
		cr_assert_not_null(senders[i], "%s", error);
		cr_expect_eq(senders[i]->send(senders[i], &packet, 1, 1), 1);
		cr_expect_eq(rte_ring_count(r.out[i]), 1);
	}
	cr_expect_eq(senders[0], r.takers[0], "one part for both");
	cr_expect_null(r.directory->acquire(r.directory, "net_ring_w", 2, WEIR_PORT_SEND, error));
	cr_expect_not_null(strstr(error, "2 tasks send to it already"), "%s", error);
	cr_expect_null(r.directory->acquire(
			r.directory, "net_ring_w", 0, WEIR_PORT_RECEIVE, error));
	cr_expect_not_null(strstr(error, "is taken"), "%s", error);
	r.directory->release(r.directory, senders[0], WEIR_PORT_SEND);
	cr_expect_not_null(r.directory->acquire(
			r.directory, "net_ring_w", 2, WEIR_PORT_SEND, error));
	stop(&r);
}

/* Packets of every kind, cut anywhere: none is read beyond its end. */
Test(packet_ports, any_bytes_are_spread)
{
	static const uint8_t kinds[][2] = {{0x08, 0x00}, {0x86, 0xdd}, {0x81, 0x00}, {0x08, 0x06}};
	uint32_t put_count = 0;
	struct rig r = {0};

	start(&r, 1);
	join(&r, 0);
	join(&r, 1);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t size = 1; size <= 80; size++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(r.pool);
			uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)size);

			memset(at, 0x11 + (int)size, size);
			if (size >= 14)
				memcpy(at + 12, kinds[i], 2);
			cr_assert_eq(rte_ring_enqueue(r.in[0], m), 0);
			put_count++;
		}
	}
	struct weir_packet packets[64];
	uint64_t got = 0;
	for (uint32_t i = 0; i < 20; i++) {
		struct weir_packet_port *p = r.takers[i % 2];
		uint32_t count = p->receive(p, packets, 64, 1);

		p->release(p, packets, count);
		got += count;
	}
	cr_expect_eq(got, put_count);
	stop(&r);
}
