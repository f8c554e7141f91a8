/* A memif's peer goes while we are in a burst, over and over: its driver unmaps the rings on a
 * thread of its own. */

#include "dataplane/base/clock.h"
#include "nic/eal.h"
#include "nic/port.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 150, UP_TRIES = 100000, BURST = 32, FRAME_BYTES = 1500, TURNS_MIN = 50, USERS = 8 };

/* The end that stays. */
struct survivor {
	char directory[32], socket[64];
	struct port *port;
	pthread_t worker;
	struct rte_mempool *pool;
	_Atomic bool must_end;
	_Atomic uint64_t turns;
};

static struct port *plug(const char *name, const char *role, const char *socket)
{
	char args[256], error[PORT_ERROR_BYTES];
	struct port *p = NULL;

	snprintf(args, sizeof(args), "role=%s,socket-abstract=no,socket=%s", role, socket);
	cr_assert_eq(rte_eal_hotplug_add("vdev", name, args), 0);
	struct port_config config = {.name = name, .rx_descriptors = 64, .tx_descriptors = 64,
			.worker_count = 1, .udp_port = 6125};
	cr_assert_eq(port_create(&p, &config, error), 0, "%s", error);
	return p;
}

static void send_burst(struct port *p, struct rte_mempool *pool)
{
	struct rte_mbuf *mbufs[BURST];

	if (rte_pktmbuf_alloc_bulk(pool, mbufs, BURST) != 0)
		return;
	for (uint32_t i = 0; i < BURST; i++)
		(void)rte_pktmbuf_append(mbufs[i], FRAME_BYTES);
	uint32_t sent = rte_eth_tx_burst(port_id(p), 0, mbufs, BURST);
	rte_pktmbuf_free_bulk(mbufs + sent, BURST - sent);
}

static void *work(void *context)
{
	struct survivor *s = context;
	struct rte_mbuf *mbufs[BURST];

	while (!s->must_end) {
		s->turns++;
		if (!port_enter(s->port, 0))
			continue;
		send_burst(s->port, s->pool);
		uint32_t got = rte_eth_rx_burst(port_id(s->port), 0, mbufs, BURST);
		port_leave(s->port, 0);
		rte_pktmbuf_free_bulk(mbufs, got);
	}
	return NULL;
}

static void meet_and_leave(struct survivor *s, int round)
{
	char name[32];

	snprintf(name, sizeof(name), "net_memif%d", 100 + round);
	struct port *peer = plug(name, "client", s->socket);
	for (int i = 0; i < UP_TRIES && !(port_is_up(s->port) && port_is_up(peer)); i++)
		usleep(100);
	cr_assert(port_is_up(s->port) && port_is_up(peer), "round %d", round);
	uint64_t turns = s->turns;
	while (s->turns < turns + TURNS_MIN) {
		if (port_enter(peer, 0))
			send_burst(peer, s->pool);
		port_leave(peer, 0);
	}
	port_destroy(peer);
}

static void ignore(void *context)
{
	(void)context;
}

/* All are in but one, and each is that one in its turn. */
static void *relay(void *context)
{
	struct survivor *s = context;

	for (uint32_t i = 0; i < USERS; i++)
		(void)port_enter(s->port, i);
	for (uint32_t i = 0; !s->must_end; i = (i + 1) % USERS) {
		port_leave(s->port, i);
		s->turns++;
		for (int pause = 0; pause < 100; pause++)
			rte_pause();
		(void)port_enter(s->port, i);
	}
	for (uint32_t i = 0; i < USERS; i++)
		port_leave(s->port, i);
	return NULL;
}

static void begin(struct survivor *s, void *(*body)(void *))
{
	strcpy(s->directory, "/tmp/weir-port-XXXXXX");
	cr_assert_not_null(mkdtemp(s->directory));
	snprintf(s->socket, sizeof(s->socket), "%s/sock", s->directory);
	eal_fixture_start("0-1", 256 << 20, NULL, 0);
	s->pool = rte_pktmbuf_pool_create(
			"frames", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	cr_assert_not_null(s->pool);
	s->port = plug("net_memif0", "server", s->socket);
	cr_assert_eq(pthread_create(&s->worker, NULL, body, s), 0);
}

static void end(struct survivor *s)
{
	s->must_end = true;
	pthread_join(s->worker, NULL);
	port_destroy(s->port);
	rte_mempool_free(s->pool);
	(void)unlink(s->socket);
	rmdir(s->directory);
	eal_stop();
}

Test(port_guard, waits_for_no_burst_that_begins_later)
{
	struct survivor s = {0};

	begin(&s, relay);
	while (s.turns < TURNS_MIN)
		usleep(100);
	uint64_t began_ns = clock_monotonic_ns();
	cr_expect_lt(rte_intr_callback_unregister(NULL, ignore, NULL), 0);
	cr_expect_lt(clock_monotonic_ns() - began_ns, UINT64_C(5000000000));
	end(&s);
}

Test(port_guard, keeps_the_rings_for_who_is_in_a_burst_when_the_peer_goes)
{
	struct survivor s = {0};

	begin(&s, work);
	for (int round = 0; round < ROUNDS; round++)
		meet_and_leave(&s, round);
	end(&s);
}
