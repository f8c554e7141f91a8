/* The transport over real drivers of DPDK: two memif ports of one process, in two directions. */

#include "nic/port_transport.h"

#include "dataplane/wire/buf.h"
#include "nic/eal.h"
#include "nic/mempool.h"
#include "nic/port.h"
#include "tests/support/eal_fixture.h"
#include "tests/support/link_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS_MAX = 5000000, UP_TRIES = 3000, BUF_BYTES = 32768, BUFS = 300 };

struct rig {
	char directory[64];
	struct port *ports[2];
	struct port_transport *transports[2];
	struct mempool *bufs; /* that both receive into, or NULL */
	uint32_t queue_count; /* 0: one */
};

static struct port_config port_of(int end, uint32_t mtu)
{
	return (struct port_config){.name = end == 0 ? "net_memif0" : "net_memif1",
			.mtu = mtu, .rx_descriptors = 512, .tx_descriptors = 512,
			.worker_count = 1, .udp_port = 6125, .buf_bytes = BUF_BYTES};
}

static void make_bufs(struct rig *r, uint32_t mtu)
{
	struct port_config port = port_of(0, mtu);
	uint32_t count = port_receive_bufs(&port);
	char error[512];

	if (count > 0)
		cr_assert_eq(mempool_create(&r->bufs, BUFS + 2 * count, BUF_BYTES, 1, error), 0,
				"%s", error);
}

static void start_with(struct rig *r, uint32_t mtu, const char *client_argument)
{
	uint32_t slot = mtu > 9000 ? 33792 : mtu > 2000 ? 9216 : 2048;
	char socket[128], server[256], client[256], error[PORT_ERROR_BYTES];

	snprintf(r->directory, sizeof(r->directory), "/tmp/weir-port-XXXXXX");
	cr_assert_not_null(mkdtemp(r->directory));
	snprintf(socket, sizeof(socket), "%s/memif.sock", r->directory);
	snprintf(server, sizeof(server),
			"--vdev=net_memif0,role=server,bsize=%u,socket-abstract=no,socket=%s",
			slot, socket);
	snprintf(client, sizeof(client),
			"--vdev=net_memif1,role=client,bsize=%u,socket-abstract=no,socket=%s%s",
			slot, socket, client_argument);
	const char *extra[] = {server, client, "--single-file-segments"};
	eal_fixture_start("0", 256 << 20, extra, 3);
	make_bufs(r, mtu);
	for (int i = 0; i < 2; i++) {
		struct port_config port = port_of(i, mtu);

		port.bufs = r->bufs != NULL ? mempool_mbufs(r->bufs) : NULL;
		if (r->queue_count > 0)
			port.queue_count = port.worker_count = r->queue_count;
		cr_assert_eq(port_create(&r->ports[i], &port, error), 0, "%s", error);
		cr_assert_eq(port_transport_create(&r->transports[i], r->ports[i], 0), 0);
	}
	for (int i = 0; i < UP_TRIES && !(port_is_up(r->ports[0]) && port_is_up(r->ports[1])); i++)
		usleep(1000);
	cr_assert(port_is_up(r->ports[0]) && port_is_up(r->ports[1]));
}

static void start(struct rig *r, uint32_t mtu)
{
	start_with(r, mtu, "");
}

static void stop(struct rig *r)
{
	char path[128];

	for (int i = 0; i < 2; i++) {
		port_transport_destroy(r->transports[i]);
		port_destroy(r->ports[i]);
	}
	mempool_destroy(r->bufs);
	eal_stop();
	snprintf(path, sizeof(path), "%s/memif.sock", r->directory);
	(void)unlink(path);
	rmdir(r->directory);
}

static void carry(uint32_t mtu, double loss)
{
	struct rig r = {0};

	start(&r, mtu);
	struct link_world_config c = {
			.seed = 5,
			.channel = {.queue_count = 4, .credit_count = 8},
			.channel_count = {3, 2},
			.buf_count = 300,
			.buf_bytes = BUF_BYTES,
			.frame_bytes_max = port_frame_bytes_max(r.ports[0]),
			.wire_room = 1,
			.event_every = 10,
			.faults = {.loss = loss, .duplicate = loss, .corrupt = loss},
			.transports = {port_transport_port(r.transports[0]),
					port_transport_port(r.transports[1])},
			.pool = r.bufs != NULL ? mempool_bufs(r.bufs) : NULL,
	};
	struct link_world *w = link_world_create(&c);
	struct port_counters counters;

	cr_assert(link_world_run(w, STEPS_MAX));
	cr_assert(link_world_close(w, STEPS_MAX));
	port_counters(r.ports[0], &counters);
	cr_assert_gt(counters.frames_out, 900);
	for (int end = 0; end < 2; end++) {
		struct transport *t = c.transports[end];
		const struct net_endpoint_counters *seen =
				net_endpoint_counters(w->ends[end].endpoint);

		cr_expect(loss > 0 || seen->corrupt + seen->malformed + seen->foreign == 0,
				"the driver has damaged frames: %" PRIu64 " corrupt, %" PRIu64
				" malformed, %" PRIu64 " foreign",
				seen->corrupt, seen->malformed, seen->foreign);
		t->reclaim(t, w->clock.now_ns);
	}
	link_world_destroy(w);
	stop(&r);
}

Test(port_transport, carries_a_link_over_memif)
{
	carry(0, 0);
}

Test(port_transport, carries_jumbo_frames_over_memif)
{
	carry(9000, 0);
}

Test(port_transport, carries_a_buffer_in_one_frame_over_memif)
{
	carry(33000, 0);
}

Test(port_transport, carries_buffers_in_one_frame_each_that_is_lost_at_times)
{
	carry(33000, 0.05);
}

/* The receiver may keep it: then nothing is released, and nothing was copied but by the driver. */
Test(port_transport, receives_a_whole_buffer_into_one)
{
	struct rig r = {0};
	struct frame_out out = {.head_bytes = BUF_HEAD_BYTES, .body_bytes = BUF_BYTES};
	struct frame_in in;

	start(&r, 33000);
	struct transport *from = port_transport_port(r.transports[0]);
	struct transport *to = port_transport_port(r.transports[1]);
	struct buf_pool *pool = mempool_bufs(r.bufs);
	uint32_t used = buf_pool_used_count(pool);
	struct buf *b = buf_alloc(pool);
	memset(b->data, 5, BUF_BYTES);
	out.body = b->data;
	out.owner = b;
	buf_retain(b);
	cr_assert_eq(from->send(from, &out, 1), 1);
	for (uint64_t try = 1; to->receive(to, &in, 1) == 0; try++) {
		cr_assert_leq(try, UP_TRIES);
		from->reclaim(from, try * 1000000);
		usleep(1000);
	}
	cr_assert_not_null(in.buf);
	cr_assert_neq(in.buf, b);
	buf_release(b);
	cr_assert_eq(in.bytes + BUF_HEAD_BYTES, in.buf->data);
	cr_assert_eq((uintptr_t)in.buf->data % BUF_BLOCK_BYTES, 0);
	cr_assert_eq(in.size, BUF_HEAD_BYTES + BUF_BYTES);
	in.handle = NULL;
	to->release(to, &in, 1);
	buf_begin(in.buf);
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		cr_assert_eq(in.buf->data[i], 5);
	cr_assert_eq(buf_pool_used_count(pool), used + 1);
	buf_release(in.buf);
	cr_assert_eq(buf_pool_used_count(pool), used);
	stop(&r);
}

/* The pool would not let itself be destroyed. */
Test(port, gives_back_buffers_that_were_handed_to_a_queue_and_never_taken)
{
	struct rig r = {.queue_count = 2};

	start(&r, 33000);
	uint32_t used = buf_pool_used_count(mempool_bufs(r.bufs));
	for (uint32_t q = 0; q < 2; q++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(mempool_mbufs(r.bufs));

		cr_assert_not_null(m);
		cr_assert_eq(rte_ring_enqueue(port_handed(r.ports[0], q), m), 0);
	}
	port_transport_destroy(r.transports[0]);
	r.transports[0] = NULL;
	port_destroy(r.ports[0]);
	r.ports[0] = NULL;
	cr_expect_eq(buf_pool_used_count(mempool_bufs(r.bufs)), used);
	stop(&r);
}

/* Those of a cable, of IPv6, of a port whose other end hands on its own memory. */
Test(port, receives_into_buffers_only_where_a_frame_is_one)
{
	struct port_config c = port_of(0, 33000);

	cr_assert_gt(port_receive_bufs(&c), 512);
	c.mtu = BUF_BYTES + BUF_HEAD_BYTES - 14;
	cr_assert_gt(port_receive_bufs(&c), 512);
	c.mtu--;
	cr_assert_eq(port_receive_bufs(&c), 0);
	c.mtu = 1500;
	c.buf_bytes = 64;
	cr_assert_eq(port_receive_bufs(&c), 0, "the mbufs of so small ones hold no frame");
	c = port_of(0, 33000);
	c.is_ipv6 = true;
	cr_assert_eq(port_receive_bufs(&c), 0);
	c = port_of(0, 33000);
	c.name = "net_af_packet0";
	cr_assert_eq(port_receive_bufs(&c), 0);
	c.name = "net_ring0";
	cr_assert_eq(port_receive_bufs(&c), 0);
}

Test(port_transport, carries_a_link_that_loses_frames)
{
	carry(0, 0.05);
}

/* Then what arrives may change until it is released, and only its sum tells. */
Test(port, is_memory_only_while_its_driver_copies)
{
	struct rig r = {0};

	start_with(&r, 0, ",zero-copy=yes");
	cr_assert(port_is_memory(r.ports[0]));
	cr_assert_not(port_is_memory(r.ports[1]));
	stop(&r);
}

Test(port, says_which_ports_there_are_when_one_is_not)
{
	struct rig r = {0};
	struct port_config config = {.name = "net_memif7", .rx_descriptors = 64,
			.tx_descriptors = 64, .worker_count = 1};
	char error[PORT_ERROR_BYTES];
	struct port *p;

	start(&r, 0);
	cr_assert_eq(port_create(&p, &config, error), -ENODEV);
	cr_assert_not_null(strstr(error, "net_memif0, net_memif1"), "%s", error);
	stop(&r);
}

