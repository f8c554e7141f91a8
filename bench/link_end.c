/*
 * link_end: one of two processes that a port joins.  Buffers cross as the product sends them, by
 * net_link, net_endpoint and port_transport, or frames as fast as the port takes them, by
 * rte_eth_tx_burst and rte_eth_rx_burst alone, or the same buffers by a TCP connection beside it.
 *
 * usage: link_end send|receive memif|vhost SOCKET MTU FLUSH_BYTES CHANNELS CREDIT CPU
 *
 * Says {"port": ..., "payload": bytes of a buffer that fit one frame, "tcp": its TCP port} once
 * both ends are there.  Then commands from stdin, one a line, the same to both ends, each answered
 * with one line of JSON; in between it sleeps.
 *   weir MS FAULTS     buffers over the link; FAULTS as in weir.link.faults, or -
 *   raw MS FRAME       frames of so many bytes, without their check sequence
 *   carry MS FRAME     the same, their bytes out of buffers and into buffers, as a link has them
 *   tcp MS PORT        buffers by TCP
 */

#include <arpa/inet.h>
#include <inttypes.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/link_tcp.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/channel/net_endpoint.h"
#include "dataplane/channel/net_faults.h"
#include "dataplane/wire/buf.h"
#include "nic/eal.h"
#include "nic/mempool.h"
#include "nic/port.h"
#include "nic/port_transport.h"

enum {
	CHANNELS_MAX = 32,
	QUEUE_COUNT = 4,
	DESCRIPTORS = 1024, /* weir.link.descriptors */
	RING_LOG2 = 10,
	LARGE_DESCRIPTORS = 128, /* for frames larger than jumbo: the rings stay in the cache */
	LARGE_RING_LOG2 = 7,
	JUMBO_MTU = 9204,
	RAW_BURST = 32,
	RAW_MBUFS = 8192,
	SLACK_BUFS = 64,
	HEADER_BYTES = 42, /* Ethernet, IPv4, UDP */
	CARRIED_BUFS = 32,
	ETHERNET_BYTES = 14,
};
#define UP_TIMEOUT_NS UINT64_C(15000000000)
#define WARM_UP_NS UINT64_C(60000000)
#define SENDER_MORE_NS UINT64_C(40000000) /* the window of the receiver begins later */
#define PEER_TIMEOUT_NS UINT64_C(2000000000)
#define TOKEN UINT64_C(0x6c696e6b00000000)

struct end {
	bool is_sender;
	uint32_t mtu, flush_bytes, channel_count, cpu;
	struct channel_config channel;
	struct port *port;
	struct port_transport *transport;
	struct mempool *pool;
	struct rte_mempool *raw_pool, *raw_bodies;
	struct net_address local, remote;
	uint32_t pieces; /* frames of a buffer */
	int listener;
	uint32_t runs;
	uint64_t got_frames, got_bytes, got_ns; /* of the last run, at the receiver */
};

/* One run of a link. */
struct run {
	struct net_faults *faults;
	struct net_endpoint *endpoint;
	struct net_link *link;
	struct ring_channel *channels[CHANNELS_MAX];
	uint64_t moved[CHANNELS_MAX]; /* buffers of each channel */
	uint64_t bufs;
};

struct window {
	uint64_t first_ns, began_ns, ended_ns, before, count;
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "link_end: %s: %s\n", what, why);
	exit(1);
}

/* ---- the port ---- */

static uint16_t descriptors(const struct end *e)
{
	return e->mtu > JUMBO_MTU ? LARGE_DESCRIPTORS : DESCRIPTORS;
}

static uint32_t slot_bytes(uint32_t mtu)
{
	if (mtu <= 2000)
		return 2048;
	return mtu <= JUMBO_MTU - 2 ? 9216 : RTE_ALIGN_CEIL(mtu + ETHERNET_BYTES, 1024u);
}

static uint32_t raw_room(const struct end *e)
{
	return RTE_MAX(e->mtu, (uint32_t)JUMBO_MTU) + 64 + RTE_PKTMBUF_HEADROOM;
}

static struct port_config port_config(const struct end *e, bool is_memif)
{
	return (struct port_config){
		.name = is_memif ? "net_memif0" : e->is_sender ? "net_vhost0" : "net_virtio_user0",
		.mtu = e->mtu, .rx_descriptors = descriptors(e), .tx_descriptors = descriptors(e),
		.queue_count = 1, .worker_count = 1, .udp_port = NET_UDP_PORT_DEFAULT,
		.buf_bytes = e->flush_bytes};
}

static void start_eal(struct end *e, bool is_memif, const char *socket)
{
	char vdev[256], cpus[16], line[EAL_LINE_BYTES], error[EAL_ERROR_BYTES];
	const char *extra[2] = {vdev, "--single-file-segments"};
	const uint32_t workers[1] = {e->cpu};
	struct port_config port = port_config(e, is_memif);
	uint32_t buf_count = e->channel_count * channel_buffers_max(&e->channel) + SLACK_BUFS +
			port_receive_bufs(&port);

	if (is_memif)
		snprintf(vdev, sizeof(vdev),
				"--vdev=net_memif0,role=%s,bsize=%u,rsize=%u,socket-abstract=no,"
				"socket=%s",
				e->is_sender ? "client" : "server", slot_bytes(e->mtu),
				e->mtu > JUMBO_MTU ? LARGE_RING_LOG2 : RING_LOG2, socket);
	else
		snprintf(vdev, sizeof(vdev),
				e->is_sender ? "--vdev=net_vhost0,iface=%s,client=1"
					     : "--vdev=net_virtio_user0,path=%s,server=1,"
					       "queue_size=%u",
				socket, (unsigned)descriptors(e));
	snprintf(cpus, sizeof(cpus), "%u", e->cpu);
	struct eal_config eal = {.worker_cpus = workers, .worker_count = 1, .control_cpus = cpus,
		.memory_bytes = mempool_memory_bytes(buf_count, e->flush_bytes, 1) +
				2 * port_memory_bytes(&port) +
				(size_t)RAW_MBUFS * (raw_room(e) + 512),
		.extra = extra, .extra_count = is_memif || e->is_sender ? 1 : 2};
	if (eal_start(&eal, line, error) != 0 || eal_attach(&eal, error) != 0)
		fail("EAL", error);
	if (mempool_create(&e->pool, buf_count, e->flush_bytes, 1,
			    error) != 0)
		fail("pool", error);
}

static void open_port(struct end *e, bool is_memif)
{
	char error[PORT_ERROR_BYTES];
	struct port_config config = port_config(e, is_memif);

	config.bufs = mempool_mbufs(e->pool);
	if (port_create(&e->port, &config, error) != 0)
		fail("port", error);
	if (port_transport_create(&e->transport, e->port, 0) != 0)
		fail("port", "no memory for its transport");
	e->raw_pool = rte_pktmbuf_pool_create("raw", RAW_MBUFS, 256, 0,
			(uint16_t)raw_room(e), SOCKET_ID_ANY);
	e->raw_bodies = rte_pktmbuf_pool_create("bodies", RAW_MBUFS / 4, 256, 0, 0, SOCKET_ID_ANY);
	if (e->raw_pool == NULL || e->raw_bodies == NULL)
		fail("port", "no memory for raw frames");
}

/* Addresses that both ends know without a word: the receiver is .1, the sender .2. */
static struct net_address address_of(const struct end *e, bool is_sender)
{
	return (struct net_address){.mac = {2, 0, 0, 0, 0, is_sender ? 2 : 1},
		.ip = {10, 0, 0, is_sender ? 2 : 1},
		.udp_port = NET_UDP_PORT_DEFAULT,
		.frame_bytes_max = (uint16_t)port_frame_bytes_max(e->port),
		.window_frames = port_rx_descriptors(e->port),
		.queue_count = 1};
}

static void find_peer(struct end *e)
{
	struct transport *t = port_transport_port(e->transport);
	uint64_t until_ns = clock_monotonic_ns() + UP_TIMEOUT_NS;
	char text[PORT_TEXT_BYTES];
	uint16_t tcp_port;
	struct net_path path;

	while (!port_is_up(e->port)) {
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns > until_ns)
			fail("port", "the other end did not come");
		t->reclaim(t, now_ns);
		rte_delay_us_sleep(1000);
	}
	e->local = address_of(e, e->is_sender);
	e->remote = address_of(e, !e->is_sender);
	CHECK(net_path_init(&path, &e->local, &e->remote, NULL) == 0);
	uint32_t payload = net_frame_payload_max(&path);
	e->pieces = (e->flush_bytes + payload - 1) / payload;
	e->listener = link_tcp_listen(&tcp_port);
	port_print(e->port, text);
	printf("{\"port\": \"%s\", \"payload\": %u, \"tcp\": %u}\n", text, payload, tcp_port);
	fflush(stdout);
}

/* ---- what is measured: the time between two counts ---- */

/* False: the window is over. */
static bool watch(struct window *w, uint64_t count, uint64_t now_ns, uint64_t window_ns)
{
	if (count == 0)
		return true;
	if (w->first_ns == 0)
		w->first_ns = now_ns;
	if (w->began_ns == 0) {
		if (now_ns - w->first_ns < WARM_UP_NS)
			return true;
		w->began_ns = now_ns;
		w->before = count;
	}
	w->ended_ns = now_ns;
	w->count = count - w->before;
	return now_ns - w->began_ns < window_ns;
}

static void keep(struct end *e, uint64_t frames, uint64_t bytes, uint64_t ns)
{
	e->got_frames = frames;
	e->got_bytes = bytes;
	e->got_ns = ns;
}

/* ---- weir ---- */

static void open_run(struct end *e, struct run *r, const char *faults)
{
	struct transport *t = port_transport_port(e->transport);
	struct net_link_config config = {.token = TOKEN + e->runs,
		.pool = mempool_bufs(e->pool),
		.window_frames = e->remote.window_frames / 4u * 3, /* as link_port has it */
		.connect_timeout_ns = UP_TIMEOUT_NS,
		.peer_timeout_ns = PEER_TIMEOUT_NS};
	struct net_faults_config bad;
	char why[NET_FAULTS_TEXT_BYTES];

	if (strcmp(faults, "-") != 0) {
		if (net_faults_parse(faults, &bad, why) != 0)
			fail("faults", why);
		CHECK(net_faults_create(&r->faults, t, &bad, clock_real()) == 0);
		t = net_faults_transport(r->faults);
	}
	for (uint32_t i = 0; i < e->channel_count; i++)
		CHECK(ring_channel_create(&r->channels[i], &e->channel) == 0);
	config.out = r->channels;
	config.in = r->channels;
	config.out_count = e->is_sender ? e->channel_count : 0;
	config.in_count = e->is_sender ? 0 : e->channel_count;
	CHECK(net_path_init(&config.path, &e->local, &e->remote, NULL) == 0);
	config.path.is_udp_offloaded = t->can_udp_checksum;
	config.path.has_bare_bodies = strcmp(faults, "-") == 0; /* as weir.link.checksum: auto */
	if (net_link_create(&r->link, &config) != 0)
		fail("link", "a buffer does not fit its frames");
	CHECK(net_endpoint_create(&r->endpoint, t, &e->local) == 0);
	CHECK(net_endpoint_attach(r->endpoint, r->link) == 0);
}

static void close_run(struct end *e, struct run *r)
{
	struct transport *t = port_transport_port(e->transport);
	uint64_t now_ns = clock_monotonic_ns();

	net_link_close(r->link, false, now_ns);
	while (!net_link_is_over(r->link))
		net_endpoint_turn(r->endpoint, clock_monotonic_ns());
	net_endpoint_detach(r->endpoint, r->link);
	net_endpoint_destroy(r->endpoint);
	net_link_destroy(r->link);
	for (uint32_t i = 0; i < e->channel_count; i++)
		ring_channel_destroy(r->channels[i]);
	net_faults_destroy(r->faults);
	t->reclaim(t, now_ns);
}

/* As many buffers as there is credit for; each says who it is. */
static void produce(struct end *e, struct run *r, uint32_t channel)
{
	struct ring_channel *c = r->channels[channel];
	uint64_t credit = ring_channel_credit(c);
	struct buf *bufs[BATCH_COUNT_MAX];
	uint32_t count = 0;

	while (count < BATCH_COUNT_MAX && r->moved[channel] < credit) {
		struct buf *b = buf_alloc(mempool_bufs(e->pool));
		uint64_t who;

		if (b == NULL)
			break;
		b->sequence = r->moved[channel]++;
		b->size_bytes = e->flush_bytes;
		b->first_record = 0;
		who = b->sequence << 8 | channel;
		memcpy(b->data, &who, sizeof(who));
		bufs[count++] = b;
	}
	if (count > 0)
		ring_channel_push(c, bufs, count);
}

static void consume(struct run *r, uint32_t channel)
{
	struct buf *bufs[BATCH_COUNT_MAX];
	uint32_t count = ring_channel_take(r->channels[channel], bufs, BATCH_COUNT_MAX);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t who;

		memcpy(&who, bufs[i]->data, sizeof(who));
		CHECK(who == (r->moved[channel]++ << 8 | channel));
		buf_release(bufs[i]);
	}
	if (count > 0)
		ring_channel_grant(r->channels[channel], r->moved[channel]);
	r->bufs += count;
}

static void check_link(const struct run *r)
{
	if (net_link_state(r->link) == NET_LINK_LOST || net_link_state(r->link) == NET_LINK_BROKEN)
		fail("link", net_link_text(r->link));
}

static void send_weir(struct end *e, struct run *r, uint64_t window_ns)
{
	struct net_link_counters c = {0};
	uint64_t up_ns = 0, now_ns;

	do {
		for (uint32_t i = 0; i < e->channel_count; i++)
			produce(e, r, i);
		now_ns = clock_monotonic_ns();
		net_endpoint_turn(r->endpoint, now_ns);
		check_link(r);
		if (up_ns == 0 && net_link_state(r->link) == NET_LINK_UP)
			up_ns = now_ns;
		if (now_ns - up_ns < window_ns) /* the receiver is there all this time */
			c = *net_link_counters(r->link);
	} while (up_ns == 0 || now_ns - up_ns < WARM_UP_NS + window_ns + SENDER_MORE_NS);
	printf("{\"resent\": %" PRIu64 ", \"timeouts\": %" PRIu64 ", \"late\": %" PRIu64
	       ", \"credit_waits\": %" PRIu64 ", \"window_waits\": %" PRIu64
	       ", \"rtt_us\": %" PRIu64 ", \"window\": %" PRIu64 "}\n",
			c.resent, c.timeouts, c.late, c.credit_waits, c.window_waits,
			c.rtt_ns / 1000, c.window);
	fflush(stdout);
}

static void receive_weir(struct end *e, struct run *r, uint64_t window_ns)
{
	struct window w = {0};
	uint64_t now_ns;

	do {
		now_ns = clock_monotonic_ns();
		net_endpoint_turn(r->endpoint, now_ns);
		check_link(r);
		for (uint32_t i = 0; i < e->channel_count; i++)
			consume(r, i);
	} while (watch(&w, r->bufs, now_ns, window_ns));
	keep(e, w.count * e->pieces, w.count * e->flush_bytes, w.ended_ns - w.began_ns);
}

static void run_weir(struct end *e, uint64_t window_ns, const char *faults)
{
	struct run r = {0};

	e->runs++;
	open_run(e, &r, faults);
	if (e->is_sender)
		send_weir(e, &r, window_ns);
	else
		receive_weir(e, &r, window_ns);
	close_run(e, &r);
}

/* ---- bare bursts ---- */

/* The buffers that frames are pieces of, in turn. */
struct carrier {
	struct buf *bufs[CARRIED_BUFS];
	uint32_t at, offset, piece_bytes;
};

static void open_carrier(struct end *e, struct carrier *c, uint32_t frame_bytes)
{
	*c = (struct carrier){.piece_bytes = frame_bytes - BUF_HEAD_BYTES};
	for (uint32_t i = 0; i < CARRIED_BUFS; i++) {
		c->bufs[i] = buf_alloc(mempool_bufs(e->pool));
		CHECK(c->bufs[i] != NULL && c->piece_bytes <= e->flush_bytes);
	}
}

static void close_carrier(struct carrier *c)
{
	for (uint32_t i = 0; i < CARRIED_BUFS; i++)
		buf_release(c->bufs[i]);
}

static uint8_t *next_piece(const struct end *e, struct carrier *c)
{
	if (c->offset + c->piece_bytes > e->flush_bytes) {
		c->offset = 0;
		c->at = (c->at + 1) % CARRIED_BUFS;
	}
	c->offset += c->piece_bytes;
	return c->bufs[c->at]->data + c->offset - c->piece_bytes;
}

/* The mbuf becomes a head, and another its body, where that lies. */
static void attach_piece(struct end *e, struct carrier *c, struct rte_mbuf *m)
{
	struct rte_mbuf *body = rte_pktmbuf_alloc(e->raw_bodies);

	if (body == NULL)
		fail("carry", "the port holds more frames than it should");
	body->buf_addr = next_piece(e, c);
	body->buf_len = (uint16_t)c->piece_bytes;
	body->data_off = 0;
	body->data_len = (uint16_t)c->piece_bytes;
	m->data_len = BUF_HEAD_BYTES;
	m->next = body;
	m->nb_segs = 2;
}

static void send_raw(struct end *e, uint64_t window_ns, uint32_t frame_bytes, struct carrier *c)
{
	uint64_t until_ns = clock_monotonic_ns() + WARM_UP_NS + window_ns + SENDER_MORE_NS;
	struct rte_mbuf *mbufs[RAW_BURST];
	uint8_t header[HEADER_BYTES] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45};
	uint16_t id = port_id(e->port);

	while (clock_monotonic_ns() < until_ns) {
		if (rte_pktmbuf_alloc_bulk(e->raw_pool, mbufs, RAW_BURST) != 0) {
			(void)rte_eth_tx_done_cleanup(id, 0, 0);
			continue;
		}
		for (uint32_t i = 0; i < RAW_BURST; i++) {
			memcpy(rte_pktmbuf_mtod(mbufs[i], void *), header, sizeof(header));
			mbufs[i]->data_len = (uint16_t)frame_bytes;
			mbufs[i]->pkt_len = frame_bytes;
			if (c != NULL)
				attach_piece(e, c, mbufs[i]);
		}
		uint32_t taken = rte_eth_tx_burst(id, 0, mbufs, RAW_BURST);
		rte_pktmbuf_free_bulk(mbufs + taken, RAW_BURST - taken);
	}
	printf("{}\n");
	fflush(stdout);
}

static void receive_raw(struct end *e, uint64_t window_ns, uint32_t frame_bytes, struct carrier *c)
{
	uint64_t giving_up_ns = clock_monotonic_ns() + UP_TIMEOUT_NS, now_ns, count = 0;
	struct rte_mbuf *mbufs[RAW_BURST];
	struct window w = {0};

	do {
		uint32_t got = rte_eth_rx_burst(port_id(e->port), 0, mbufs, RAW_BURST);

		for (uint32_t i = 0; c != NULL && i < got; i++)
			memcpy(next_piece(e, c), rte_pktmbuf_mtod(mbufs[i], uint8_t *) +
					BUF_HEAD_BYTES, c->piece_bytes);
		rte_pktmbuf_free_bulk(mbufs, got);
		count += got;
		now_ns = clock_monotonic_ns();
		if (now_ns > giving_up_ns)
			fail("raw", "no frame came");
	} while (watch(&w, count, now_ns, window_ns));
	keep(e, w.count, w.count * frame_bytes, w.ended_ns - w.began_ns);
}

static void run_raw(struct end *e, uint64_t window_ns, uint32_t frame_bytes, bool carries)
{
	struct carrier c;

	if (carries)
		open_carrier(e, &c, frame_bytes);
	if (e->is_sender)
		send_raw(e, window_ns, frame_bytes, carries ? &c : NULL);
	else
		receive_raw(e, window_ns, frame_bytes, carries ? &c : NULL);
	if (carries)
		close_carrier(&c);
}

/* What is still on the way is none of the next run, and nobody begins that before the answer: a
 * link whose first words nobody heard starts slowly. */
static void drain(struct end *e)
{
	struct rte_mbuf *mbufs[RAW_BURST];
	uint64_t until_ns = clock_monotonic_ns() + 2 * SENDER_MORE_NS;

	while (clock_monotonic_ns() < until_ns) {
		uint32_t got = rte_eth_rx_burst(port_id(e->port), 0, mbufs, RAW_BURST);

		rte_pktmbuf_free_bulk(mbufs, got);
	}
}

/* ---- commands ---- */

static void answer(struct end *e)
{
	drain(e);
	printf("{\"frames\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"ns\": %" PRIu64 "}\n",
			e->got_frames, e->got_bytes, e->got_ns);
	fflush(stdout);
}

static void run_tcp(struct end *e, uint64_t window_ns, uint16_t port)
{
	uint64_t bytes, ns;

	if (e->is_sender) {
		link_tcp_send(port, e->flush_bytes, WARM_UP_NS + window_ns + SENDER_MORE_NS);
		printf("{}\n");
		fflush(stdout);
	} else {
		link_tcp_receive(e->listener, WARM_UP_NS, window_ns, &bytes, &ns);
		keep(e, bytes / e->flush_bytes, bytes, ns);
	}
}

static bool obey(struct end *e)
{
	char line[256], verb[8], argument[200];
	unsigned ms;

	if (fgets(line, sizeof(line), stdin) == NULL)
		return false;
	if (sscanf(line, "%7s %u %199s", verb, &ms, argument) != 3)
		fail("not a command", line);

	uint64_t window_ns = (uint64_t)ms * 1000000;
	if (strcmp(verb, "weir") == 0)
		run_weir(e, window_ns, argument);
	else if (strcmp(verb, "raw") == 0 || strcmp(verb, "carry") == 0)
		run_raw(e, window_ns, (uint32_t)atoi(argument), verb[0] == 'c');
	else if (strcmp(verb, "tcp") == 0)
		run_tcp(e, window_ns, (uint16_t)atoi(argument));
	else
		fail("not a command", line);
	if (!e->is_sender)
		answer(e);
	return true;
}

int main(int argc, char **argv)
{
	struct end e = {0};

	if (argc != 9) {
		fprintf(stderr, "usage: link_end send|receive memif|vhost SOCKET MTU FLUSH_BYTES "
				"CHANNELS CREDIT CPU\n");
		return 2;
	}
	bool is_memif = strcmp(argv[2], "memif") == 0;

	e.is_sender = strcmp(argv[1], "send") == 0;
	e.mtu = (uint32_t)atoi(argv[4]);
	e.flush_bytes = (uint32_t)atoi(argv[5]);
	e.channel_count = (uint32_t)atoi(argv[6]);
	e.channel.queue_count = QUEUE_COUNT;
	e.channel.credit_count = (uint32_t)atoi(argv[7]);
	e.cpu = (uint32_t)atoi(argv[8]);
	CHECK(e.channel_count >= 1 && e.channel_count <= CHANNELS_MAX && e.flush_bytes >= 64);
	start_eal(&e, is_memif, argv[3]);
	open_port(&e, is_memif);
	find_peer(&e);
	while (obey(&e))
		;
	port_transport_destroy(e.transport);
	port_destroy(e.port);
	mempool_destroy(e.pool);
	eal_stop();
	return 0;
}
