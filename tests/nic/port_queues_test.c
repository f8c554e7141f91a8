/* Several queue pairs: two ports of one process joined by rings, queue to queue. */

#include "nic/port.h"
#include "nic/port_transport.h"

#include "dataplane/channel/transport.h"
#include "nic/eal.h"
#include "nic/port_driver.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdio.h>

enum { QUEUES = 2, UDP_PORT = 6125, DEPTH = 64, PORT_OFFSET_V4 = 36, PORT_OFFSET_V6 = 56 };

/* What port 0 sends by queue q, port 1 receives at queue q, and back. */
struct rig {
	struct rte_ring *rings[2][QUEUES];
	struct port *ports[2];
	struct port_transport *transports[2][QUEUES];
};

static void start(struct rig *r, uint32_t wanted)
{
	char error[PORT_ERROR_BYTES], name[32];

	eal_fixture_start("0", 128 << 20, NULL, 0);
	for (int i = 0; i < 2; i++) {
		for (uint32_t q = 0; q < QUEUES; q++) {
			snprintf(name, sizeof(name), "ring_%d_%u", i, q);
			r->rings[i][q] = rte_ring_create(name, DEPTH, SOCKET_ID_ANY, 0);
			cr_assert_not_null(r->rings[i][q]);
		}
	}
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		cr_assert_geq(rte_eth_from_rings(name, r->rings[1 - i], QUEUES, r->rings[i],
					      QUEUES, SOCKET_ID_ANY),
				0);
		snprintf(name, sizeof(name), "net_ring_w%d", i);
		struct port_config port = {.name = name, .rx_descriptors = 64,
				.tx_descriptors = 1100, .queue_count = wanted,
				.worker_count = QUEUES, .udp_port = UDP_PORT};
		cr_assert_eq(port_create(&r->ports[i], &port, error), 0, "%s", error);
		for (uint32_t q = 0; q < port_queue_count(r->ports[i]); q++)
			cr_assert_eq(port_transport_create(
						     &r->transports[i][q], r->ports[i], q),
					0);
	}
}

static void stop(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		for (uint32_t q = 0; q < QUEUES; q++)
			port_transport_destroy(r->transports[i][q]);
	}
	for (int i = 0; i < 2; i++)
		port_destroy(r->ports[i]);
	eal_stop();
}

static struct frame_out frame_to(uint16_t udp_port, bool is_ipv6)
{
	struct frame_out f = {.head_bytes = 100};
	uint32_t at = is_ipv6 ? PORT_OFFSET_V6 : PORT_OFFSET_V4;

	f.head[12] = is_ipv6 ? 0x86 : 0x08;
	f.head[13] = is_ipv6 ? 0xdd : 0x00;
	f.head[at] = (uint8_t)(udp_port >> 8);
	f.head[at + 1] = (uint8_t)udp_port;
	return f;
}

static uint32_t send_one(struct rig *r, uint32_t queue, uint16_t udp_port, bool is_ipv6)
{
	struct frame_out f = frame_to(udp_port, is_ipv6);
	struct transport *t = port_transport_port(r->transports[0][queue]);

	return t->send(t, &f, 1);
}

/* How many came to that queue of port 1. */
static uint32_t take(struct rig *r, uint32_t queue)
{
	struct transport *t = port_transport_port(r->transports[1][queue]);
	struct frame_in frames[32];
	uint32_t count = t->receive(t, frames, 32);

	t->release(t, frames, count);
	return count;
}

Test(port_queues, come_one_for_each_worker)
{
	char text[PORT_TEXT_BYTES];
	struct rig r = {0};

	start(&r, 0);
	cr_assert_eq(port_queue_count(r.ports[0]), QUEUES);
	cr_assert_eq(port_steering(r.ports[0]), PORT_STEERING_PAIRED);
	port_print(r.ports[0], text);
	cr_assert_not_null(strstr(text, "2 queue pairs, to which"), "%s", text);
	cr_assert_not_null(strstr(text, "by the sender's queue"), "%s", text);
	cr_assert_eq(send_one(&r, 1, UDP_PORT + 1, false), 1);
	cr_assert_eq(take(&r, 0), 0);
	cr_assert_eq(take(&r, 1), 1);
	cr_assert_eq(port_transport_port(r.transports[1][1])->counters->handed, 0);
	stop(&r);
}

Test(port_queues, hand_over_what_came_to_the_wrong_one)
{
	struct rig r = {0};

	start(&r, 2);
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		cr_assert_eq(send_one(&r, 0, UDP_PORT + 1, is_ipv6), 1);
		cr_assert_eq(send_one(&r, 0, UDP_PORT, is_ipv6), 1);
		cr_assert_eq(take(&r, 1), 0, "nobody has looked at queue 0 yet");
		cr_assert_eq(take(&r, 0), 1);
		cr_assert_eq(take(&r, 1), 1);
	}
	cr_assert_eq(port_transport_port(r.transports[1][0])->counters->handed, 2);
	/* What is none of ours stays for who counts such frames. */
	cr_assert_eq(send_one(&r, 0, UDP_PORT + 2, false), 1);
	cr_assert_eq(send_one(&r, 0, UDP_PORT - 1, false), 1);
	cr_assert_eq(take(&r, 0), 2);
	cr_assert_eq(take(&r, 1), 0);
	stop(&r);
}

Test(port_queues, count_what_found_the_other_ring_full)
{
	struct rig r = {0};
	uint32_t sent = 0, got = 0;

	start(&r, 2);
	for (uint32_t round = 0; round < 60; round++) {
		for (uint32_t i = 0; i < 32; i++)
			sent += send_one(&r, 0, UDP_PORT + 1, false);
		cr_assert_eq(take(&r, 0), 0);
	}
	for (uint32_t n; (n = take(&r, 1)) > 0;)
		got += n;

	const struct transport_counters *c = port_transport_port(r.transports[1][0])->counters;
	cr_assert_eq(sent, 60 * 32);
	cr_assert_gt(c->dropped, 0);
	cr_assert_eq(c->handed, got);
	cr_assert_eq(c->handed + c->dropped, sent);
	stop(&r);
}

/* A ring of 64 takes a part of each burst; what was accepted waits and is not lost. */
Test(port_queues, lose_nothing_to_partial_bursts)
{
	struct frame_out frames[48];
	struct rig r = {0};
	uint32_t sent = 0, got = 0;
	bool was_partial = false;

	start(&r, 2);
	struct transport *t = port_transport_port(r.transports[0][0]);
	for (uint32_t i = 0; i < 48; i++)
		frames[i] = frame_to(UDP_PORT, false);
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t taken = t->send(t, frames, 48);

		was_partial = was_partial || taken < 48;
		sent += taken;
		got += take(&r, 0);
	}
	for (uint32_t n = 1; n > 0; got += n) {
		t->reclaim(t, 1); /* a quiet sender still sends what waits */
		n = take(&r, 0);
	}
	cr_assert(was_partial);
	cr_assert_eq(got, sent);
	stop(&r);
}

Test(port_queues, are_refused_when_there_are_not_so_many)
{
	char error[PORT_ERROR_BYTES];
	struct rig r = {0};
	struct port *p;

	start(&r, 1);
	cr_assert_eq(port_queue_count(r.ports[0]), 1);
	cr_assert_null(port_handed(r.ports[0], 0));
	cr_assert_eq(port_steering(r.ports[0]), PORT_STEERING_ONE);
	port_stop(r.ports[1]);
	struct rte_ring *rings[QUEUES] = {r.rings[0][0], r.rings[0][1]};
	cr_assert_geq(rte_eth_from_rings("other", rings, QUEUES, rings, QUEUES, SOCKET_ID_ANY), 0);
	struct port_config config = {.name = "net_ring_other", .rx_descriptors = 64,
			.tx_descriptors = 64, .queue_count = 3, .worker_count = 4};
	cr_assert_eq(port_create(&p, &config, error), -EINVAL);
	cr_assert_not_null(strstr(error, "the device has 2"), "%s", error);
	stop(&r);
}

/* net_vmxnet3 would receive nothing: it takes no frame without a buffer to put in its place. */
Test(port_memory, has_room_for_a_second_ring_where_a_driver_fills_one)
{
	struct port_config plain = {.name = "net_e1000_em", .rx_descriptors = 1024,
			.tx_descriptors = 1024, .worker_count = 1};
	struct port_config doubled = plain, at_address = plain;

	doubled.name = "net_vmxnet3";
	at_address.name = "0000:03:00.0";
	cr_assert_not(port_driver_find("net_e1000_em")->has_second_ring);
	cr_assert_geq(port_memory_bytes(&doubled),
			port_memory_bytes(&plain) + 1024 * RTE_MBUF_DEFAULT_BUF_SIZE);
	cr_assert_eq(port_memory_bytes(&at_address), port_memory_bytes(&doubled),
			"it may be such a card");
}

/* One frame for each buffer: what `weir run --link memif` asks for. */
Test(port_memory, takes_little_more_for_few_large_frames)
{
	struct port_config usual = {.name = "net_memif0", .rx_descriptors = 1024,
			.tx_descriptors = 1024, .queue_count = 2, .worker_count = 2};
	struct port_config large = usual;

	large.mtu = 32882;
	large.rx_descriptors = large.tx_descriptors = 128;
	cr_assert_lt(port_memory_bytes(&large),
			port_memory_bytes(&usual) + 2 * ((size_t)64 << 20));
}

/* ---- what a device says it can ---- */

static struct rte_eth_dev_info device(uint16_t queues, uint64_t rss)
{
	return (struct rte_eth_dev_info){.max_rx_queues = queues, .max_tx_queues = queues,
			.flow_type_rss_offloads = rss};
}

Test(port_steer, takes_more_queues_only_where_something_is_won)
{
	const struct port_driver *card = port_driver_find("net_e1000_em");
	struct rte_eth_dev_info plain = device(8, 0);
	struct rte_eth_dev_info spreading = device(8, RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	struct rte_eth_dev_info by_address = device(8, RTE_ETH_RSS_IPV4);

	cr_assert_eq(port_steer_count(0, 4, card, &plain), 1);
	cr_assert_eq(port_steer_count(0, 4, card, &by_address), 1);
	cr_assert_eq(port_steer_count(0, 4, card, &spreading), 4);
	cr_assert_eq(port_steer_count(0, 16, card, &spreading), 8);
	cr_assert_eq(port_steer_count(2, 4, card, &plain), 2, "when told to");
	cr_assert_eq(port_steer_count(9, 16, card, &spreading), 0);
	cr_assert_eq(port_steer_count(0, 4, port_driver_find("net_memif0"), &plain), 4);
}

Test(port_steer, leaves_no_queue_unread_that_is_filled_all_the_same)
{
	const struct port_driver *af_packet = port_driver_find("net_af_packet0");
	struct rte_eth_dev_info four = device(4, 0);

	cr_assert_eq(port_steer_count(0, 4, af_packet, &four), 4);
	cr_assert_eq(port_steer_count(0, 8, af_packet, &four), 4);
	cr_assert_eq(port_steer_count(0, 1, af_packet, &four), 0, "one would serve one of four");
	cr_assert_eq(port_steer_count(2, 4, af_packet, &four), 0);
}

Test(port_steer, asks_for_no_more_of_rss_than_the_device_has)
{
	struct rte_eth_dev_info info = device(8,
			RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV4_TCP);
	const struct port_driver *card = port_driver_find("net_ixgbe");
	struct rte_eth_conf conf = {0};

	cr_assert_not(port_steer_configure(&conf, 1, false, card, &info));
	cr_assert_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	cr_assert(port_steer_configure(&conf, 4, false, card, &info));
	cr_assert_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	cr_assert_eq(conf.rx_adv_conf.rss_conf.rss_hf, RTE_ETH_RSS_NONFRAG_IPV4_UDP);
}

/* net_tap says it has RSS, and it is the kernel that spreads: what is told must be true. */
Test(port_steer, does_not_ask_for_rss_what_spreads_by_itself)
{
	struct rte_eth_dev_info info = device(16, RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	const struct port_driver *tap = port_driver_find("net_tap0");
	struct rte_eth_conf conf = {0};

	cr_assert_eq(port_steer_count(0, 4, tap, &info), 4);
	cr_assert_not(port_steer_configure(&conf, 4, false, tap, &info));
	cr_assert_not(port_steer_configure(&conf, 4, true, tap, &info));
	cr_assert_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	cr_assert_eq(port_steer_start_raw(0, 4, tap, false), PORT_STEERING_RAW_DEVICE);
}

Test(port_steer, raw_packets_come_by_more_queues_only_where_something_spreads_them)
{
	const struct port_driver *card = port_driver_find("net_e1000_em");
	const struct port_driver *af_packet = port_driver_find("net_af_packet0");
	struct rte_eth_dev_info plain = device(8, 0);
	struct rte_eth_dev_info by_address = device(8, RTE_ETH_RSS_IPV4);

	cr_assert_eq(port_steer_count_raw(0, 4, card, &plain), 1);
	cr_assert_eq(port_steer_count_raw(0, 4, card, &by_address), 4);
	cr_assert_eq(port_steer_count_raw(6, 4, card, &plain), 6, "when told to");
	cr_assert_eq(port_steer_count_raw(9, 4, card, &by_address), 0);
	cr_assert_eq(port_steer_count_raw(0, 4, port_driver_find("net_memif0"), &plain), 1,
			"the sender may know of one");
	cr_assert_eq(port_steer_count_raw(3, 1, port_driver_find("net_memif0"), &plain), 3);
	cr_assert_eq(port_steer_count_raw(0, 1, af_packet, &plain), 8, "the kernel fills all");
	cr_assert_eq(port_steer_count_raw(2, 1, af_packet, &plain), 8);
}

static int create_raw(
		const char *of_ring, uint32_t mtu, char error[PORT_ERROR_BYTES], struct port **port)
{
	char name[32];
	struct port_config raw = {.name = name, .mtu = mtu, .rx_descriptors = 64,
			.tx_descriptors = 64, .queue_count = 1, .worker_count = 1, .is_raw = true};
	struct rte_ring *ring = rte_ring_create(of_ring, DEPTH, SOCKET_ID_ANY, 0);

	cr_assert_not_null(ring);
	cr_assert_geq(rte_eth_from_rings(of_ring, &ring, 1, &ring, 1, SOCKET_ID_ANY), 0);
	snprintf(name, sizeof(name), "net_ring_%s", of_ring);
	return port_create(port, &raw, error);
}

Test(port_queues, a_port_of_raw_packets_that_would_be_cut_is_refused)
{
	char error[PORT_ERROR_BYTES];
	struct port *port;

	eal_fixture_start("0", 128 << 20, NULL, 0);
	cr_assert_eq(create_raw("long", 9205, error, &port), -EINVAL);
	cr_expect_not_null(strstr(error, "between 562 and 9204; set that of its device"), "%s",
			error);
	cr_assert_eq(create_raw("fits", 9204, error, &port), 0, "%s", error);
	port_destroy(port);
	eal_stop();
}
