/*
 * packet_end: a packet generator at the other end of a memif, and its own analyser: sends frames at
 * a rate on times that are fixed beforehand, and counts what comes back, and how late it is.
 *
 * usage: packet_end SOCKET CPU
 *
 * Says {"up": true} once the other end, which listens, is there.  Then commands from stdin, one a
 * line, each answered with one line of JSON; in between it sleeps.
 *   trial MS BYTES RATE    frames of so many bytes with their check sequence (0: IMIX, 64, 594 and
 *                          1518 at 7:4:1), so many a second, for so long
 *
 * A frame carries the time at which it was due, so a generator that is late makes the latency
 * worse, never better.  What the port does not take when it is due is lost; `behind` says how
 * far the generator was from its times at the worst, in microseconds.
 */

#include <inttypes.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/internet.h"
#include "dataplane/channel/net_path.h"
#include "nic/eal.h"
#include "nic/port.h"

enum {
	BURST = 32,
	MBUFS = 8192,
	ROOM_BYTES = 2048,
	DESCRIPTORS = 1024,
	CHECK_BYTES = 4,
	HEADER_BYTES = 42, /* Ethernet, IPv4, UDP */
	STAMP_AT = HEADER_BYTES,
	STAMP_BYTES = 16, /* when it was due, and of which trial it is */
	FRAME_BYTES_LEAST = HEADER_BYTES + STAMP_BYTES + CHECK_BYTES,
	MIX = 12,
	STEPS = 32, /* of the histogram, in each power of two */
	BUCKETS = 64 * STEPS,
};
#define UP_TIMEOUT_NS UINT64_C(15000000000)
#define RETRY_NS UINT64_C(20000000)
#define DRAIN_NS UINT64_C(30000000) /* without a frame: nothing is on the way any more */

struct generator {
	struct port *port;
	uint16_t id;
	struct rte_mempool *pool;
	uint64_t trial; /* its number */
	uint32_t bytes[MIX];
	uint8_t header[HEADER_BYTES];
};

/* One trial. */
struct tally {
	uint64_t begun_ns, rate, due, sent, refused, behind_ns;
	uint64_t received, strangers, heard_ns, latency_max_ns;
	uint64_t buckets[BUCKETS];
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "packet_end: %s: %s\n", what, why);
	exit(1);
}

/* ---- the port ---- */

static void start(struct generator *g, const char *socket, uint32_t cpu)
{
	char vdev[256], cpus[16], line[EAL_LINE_BYTES], error[EAL_ERROR_BYTES];
	const char *extra[1] = {vdev};
	struct port_config port = {.name = "net_memif0", .mtu = 1500,
		.rx_descriptors = DESCRIPTORS, .tx_descriptors = DESCRIPTORS, .queue_count = 1,
		.worker_count = 1, .udp_port = NET_UDP_PORT_DEFAULT};

	snprintf(vdev, sizeof(vdev), "--vdev=net_memif0,role=client,socket-abstract=no,socket=%s",
			socket);
	snprintf(cpus, sizeof(cpus), "%u", cpu);
	struct eal_config eal = {.worker_cpus = &cpu, .worker_count = 1, .control_cpus = cpus,
		.memory_bytes = 2 * port_memory_bytes(&port) + (size_t)MBUFS * 2 * ROOM_BYTES,
		.extra = extra, .extra_count = 1};
	if (eal_start(&eal, line, error) != 0)
		fail("EAL", error);
	if (port_create(&g->port, &port, error) != 0)
		fail("port", error);
	g->id = port_id(g->port);
	g->pool = rte_pktmbuf_pool_create("frames", MBUFS, 256, 0,
			ROOM_BYTES + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (g->pool == NULL)
		fail("port", "no memory for frames");

	uint64_t until_ns = clock_monotonic_ns() + UP_TIMEOUT_NS;
	while (!port_is_up(g->port)) {
		if (clock_monotonic_ns() > until_ns)
			fail("port", "the other end did not come");
		port_try_start(g->port);
		rte_delay_us_sleep(RETRY_NS / 1000);
	}
}

/* ---- frames ---- */

static void make_header(struct generator *g)
{
	static const uint8_t head[34] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0,
		0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1}; /* RFC 2544, C.2.2 */

	memcpy(g->header, head, sizeof(head));
	put_be16(g->header + 34, 7);
	put_be16(g->header + 36, 7);
}

static void fill(const struct generator *g, struct rte_mbuf *m, uint32_t bytes, uint64_t due_ns)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);

	bytes -= CHECK_BYTES;
	memcpy(at, g->header, HEADER_BYTES);
	put_be16(at + 16, bytes - 14);
	put_be16(at + 24, ~internet_sum(0, at + 14, 20) & 0xffff);
	put_be16(at + 38, bytes - 34);
	memcpy(at + STAMP_AT, &due_ns, sizeof(due_ns));
	memcpy(at + STAMP_AT + sizeof(due_ns), &g->trial, sizeof(g->trial));
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
}

static uint64_t due_at(const struct tally *t, uint64_t number)
{
	return t->begun_ns + (uint64_t)((double)number * 1e9 / (double)t->rate);
}

/* Sends what is due by now, at most a burst. */
static void send_due(struct generator *g, struct tally *t, uint64_t now_ns, uint64_t until_ns)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t count = 0;

	while (count < BURST) {
		uint64_t due_ns = due_at(t, t->due);

		if (due_ns > now_ns || due_ns >= until_ns)
			break;
		if (now_ns - due_ns > t->behind_ns)
			t->behind_ns = now_ns - due_ns;
		mbufs[count] = rte_pktmbuf_alloc(g->pool);
		if (mbufs[count] == NULL)
			fail("trial", "no frame is free");
		fill(g, mbufs[count++], g->bytes[t->due++ % MIX], due_ns);
	}
	if (count == 0)
		return;
	uint32_t taken = rte_eth_tx_burst(g->id, 0, mbufs, (uint16_t)count);
	rte_pktmbuf_free_bulk(mbufs + taken, count - taken);
	t->sent += taken;
	t->refused += count - taken;
}

/* ---- what comes back ---- */

static uint32_t bucket_of(uint64_t ns)
{
	uint32_t power = ns < STEPS ? 0 : 59 - (uint32_t)__builtin_clzll(ns);

	return ns < STEPS ? (uint32_t)ns : power * STEPS + (uint32_t)(ns >> (power - 1)) % STEPS;
}

/* The upper end of a bucket. */
static uint64_t bucket_ns(uint32_t bucket)
{
	uint32_t power = bucket / STEPS;

	return power == 0 ? bucket : ((uint64_t)(STEPS + bucket % STEPS) + 1) << (power - 1);
}

static void take(struct generator *g, struct tally *t, uint64_t now_ns)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t got = rte_eth_rx_burst(g->id, 0, mbufs, BURST);

	for (uint32_t i = 0; i < got; i++) {
		const uint8_t *at = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);
		uint64_t due_ns, trial;

		memcpy(&due_ns, at + STAMP_AT, sizeof(due_ns));
		memcpy(&trial, at + STAMP_AT + sizeof(due_ns), sizeof(trial));
		if (mbufs[i]->data_len < STAMP_AT + STAMP_BYTES || trial != g->trial) {
			t->strangers++;
			continue;
		}
		uint64_t ns = now_ns > due_ns ? now_ns - due_ns : 0;
		t->received++;
		t->buckets[bucket_of(ns)]++;
		if (ns > t->latency_max_ns)
			t->latency_max_ns = ns;
	}
	if (got > 0)
		t->heard_ns = now_ns;
	rte_pktmbuf_free_bulk(mbufs, got);
}

static double percentile_us(const struct tally *t, double percent)
{
	uint64_t rank = (uint64_t)((double)t->received * percent / 100), seen = 0;

	for (uint32_t i = 0; i < BUCKETS; i++) {
		seen += t->buckets[i];
		if (seen > rank)
			return (double)bucket_ns(i) / 1000;
	}
	return (double)t->latency_max_ns / 1000;
}

/* ---- commands ---- */

static void choose_bytes(struct generator *g, uint32_t bytes)
{
	static const uint32_t imix[MIX] = {64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64};

	for (uint32_t i = 0; i < MIX; i++)
		g->bytes[i] = bytes > 0 ? bytes : imix[i];
}

static void run_trial(struct generator *g, uint64_t window_ns, uint64_t rate)
{
	struct tally *t = calloc(1, sizeof(*t));

	CHECK(t != NULL);
	g->trial++;
	t->rate = rate;
	t->begun_ns = clock_monotonic_ns();
	t->heard_ns = t->begun_ns + window_ns;
	uint64_t until_ns = t->begun_ns + window_ns, now_ns = t->begun_ns, sent_ns;

	while (due_at(t, t->due) < until_ns) {
		now_ns = clock_monotonic_ns();
		send_due(g, t, now_ns, until_ns);
		take(g, t, now_ns);
	}
	sent_ns = now_ns - t->begun_ns;
	if (t->heard_ns < now_ns)
		t->heard_ns = now_ns;
	while (t->received < t->sent && now_ns - t->heard_ns < DRAIN_NS) {
		now_ns = clock_monotonic_ns();
		take(g, t, now_ns);
	}
	printf("{\"offered\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"refused\": %" PRIu64
	       ", \"received\": %" PRIu64 ", \"strangers\": %" PRIu64 ", \"ns\": %" PRIu64
	       ", \"behind_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
			t->due, t->sent, t->refused, t->received, t->strangers, sent_ns,
			(double)t->behind_ns / 1000, percentile_us(t, 50), percentile_us(t, 99),
			(double)t->latency_max_ns / 1000);
	fflush(stdout);
	free(t);
}

static bool obey(struct generator *g)
{
	char line[256];
	unsigned ms, bytes;
	uint64_t rate;

	if (fgets(line, sizeof(line), stdin) == NULL)
		return false;
	if (sscanf(line, "trial %u %u %" SCNu64, &ms, &bytes, &rate) != 3 || rate == 0 ||
			(bytes != 0 && bytes < FRAME_BYTES_LEAST) || bytes > 1518)
		fail("not a command", line);
	choose_bytes(g, bytes);
	run_trial(g, (uint64_t)ms * 1000000, rate);
	return true;
}

int main(int argc, char **argv)
{
	struct generator g = {0};

	if (argc != 3) {
		fprintf(stderr, "usage: packet_end SOCKET CPU\n");
		return 2;
	}
	start(&g, argv[1], (uint32_t)atoi(argv[2]));
	make_header(&g);
	g.trial = clock_monotonic_ns(); /* none of an earlier generator */
	printf("{\"up\": true}\n");
	fflush(stdout);
	while (obey(&g))
		;
	port_destroy(g.port);
	rte_mempool_free(g.pool);
	eal_stop();
	return 0;
}
