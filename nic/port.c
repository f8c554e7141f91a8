#include "nic/port.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/wire/buf.h"
#include "nic/interrupt_thread.h"
#include "nic/mempool.h"
#include "nic/port_driver.h"
#include "nic/port_guard.h"
#include "nic/port_mtu.h"

enum {
	ETHERNET_BYTES = 14,
	JUMBO_BYTES = 9218,
	LINE_ROOM_BYTES = 64,
	DRIVER_BYTES = 32,
	RX_SLACK = 256, /* received and not yet released, and what the cache hides */
	POOL_CACHE = 64,
	MEMORY_SLACK = 2048,              /* frames */
	MEMORY_SLACK_LARGE = 768,         /* the same: of frames beyond jumbo */
	PAGE_BYTES = 4096,
	MEMORY_DEVICE_BYTES = 8 << 20,    /* what it takes beside its frames */
	MBUF_BYTES = 512,
	HANDED_COUNT = 1024,              /* frames under way to another queue */
};

static_assert((int)PORT_USERS_MAX <= (int)PORT_GUARD_USERS_MAX, "each has a number");

struct port {
	uint16_t id;
	char name[64], driver[DRIVER_BYTES];
	const struct port_driver *traits;
	uint32_t mtu, slot_bytes;
	uint16_t rx_descriptors, tx_descriptors;
	bool dials; /* starts once its server is there */
	bool is_memory, copies, can_udp_checksum, has_segments, can_reclaim, is_closed;
	_Atomic bool is_started;
	uint16_t udp_port;
	uint32_t queue_count;
	bool has_rss, is_raw, is_ipv6;
	enum port_steering steering;
	struct rte_mempool *rx_pool;
	bool has_bufs; /* then the pool is not ours */
	struct rte_ring *handed[PORT_QUEUES_MAX];
	struct port_guard *guard; /* NULL: its driver takes nothing away */
};

static uint32_t rx_bufs(const struct port_driver *driver, uint32_t descriptors)
{
	return (driver->has_second_ring ? 2 : 1) * descriptors + driver->rx_bufs;
}

/* In memory between two, one frame for each buffer.  The head is that of IPv4.  Where buffers are
 * far smaller than frames, the pool would only have more of them, and colder ones. */
uint32_t port_receive_bufs(const struct port_config *config)
{
	const struct port_driver *driver = port_driver_find(config->name);
	uint32_t room = RTE_MAX(config->mtu + ETHERNET_BYTES + LINE_ROOM_BYTES +
					RTE_PKTMBUF_HEADROOM, RTE_MBUF_DEFAULT_BUF_SIZE + 0u);

	if (config->buf_bytes == 0 || config->is_raw || config->is_ipv6 || !driver->is_memory ||
			driver->passes_on || room > buf_mempool_room_bytes(config->buf_bytes) ||
			config->mtu + ETHERNET_BYTES < BUF_HEAD_BYTES + config->buf_bytes)
		return 0;
	return RTE_MAX(config->queue_count, config->worker_count) *
			(rx_bufs(driver, config->rx_descriptors) + RX_SLACK);
}

/* With what a driver wants around it, and what rounds the size of a slot. */
static size_t frame_room(uint32_t mtu)
{
	return RTE_ALIGN_CEIL((size_t)mtu + ETHERNET_BYTES + LINE_ROOM_BYTES, PORT_SLOT_STEP_BYTES);
}

/* Frames to receive, heads to send, and those that are sent in place. */
size_t port_memory_bytes(const struct port_config *config)
{
	uint32_t queues = config->queue_count > 0 ? config->queue_count : config->worker_count;
	const struct port_driver *driver = port_driver_find(config->name);
	size_t frame = RTE_MBUF_DEFAULT_BUF_SIZE + MBUF_BYTES, slack = MEMORY_SLACK;

	if (config->mtu > RTE_ETHER_MTU)
		frame = RTE_MAX(frame_room(config->mtu), (size_t)JUMBO_BYTES) + MBUF_BYTES;
	if (frame > JUMBO_BYTES + MBUF_BYTES) {
		frame = RTE_ALIGN_CEIL(frame, PAGE_BYTES);
		slack = MEMORY_SLACK_LARGE;
	}

	size_t frames = config->tx_descriptors + slack;
	frames += port_receive_bufs(config) == 0 ? rx_bufs(driver, config->rx_descriptors) : 0;
	frames += queues > 1 && !driver->pairs ? HANDED_COUNT : 0;
	return (queues * frames + config->spare_bufs) * frame + MEMORY_DEVICE_BYTES;
}

static void list_ports(char text[PORT_TEXT_BYTES])
{
	uint16_t id;
	size_t at = 0;

	snprintf(text, PORT_TEXT_BYTES, "none");
	RTE_ETH_FOREACH_DEV(id)
	{
		char name[RTE_ETH_NAME_MAX_LEN];

		if (rte_eth_dev_get_name_by_port(id, name) == 0 && at < PORT_TEXT_BYTES)
			at += (size_t)snprintf(text + at, PORT_TEXT_BYTES - at, "%s%s",
					at > 0 ? ", " : "", name);
	}
}

static int find(struct port *p, const struct port_config *config, char error[PORT_ERROR_BYTES])
{
	char known[PORT_TEXT_BYTES];

	snprintf(p->name, sizeof(p->name), "%s", config->name);
	if (rte_eth_dev_get_port_by_name(config->name, &p->id) == 0)
		return 0;
	list_ports(known);
	snprintf(error, PORT_ERROR_BYTES,
			"no port is named %s (there are: %.256s); a virtual one is made by "
			"weir.eal.args, such as --vdev=net_memif0,role=server,"
			"socket=/run/weir.sock; weir doctor lists the NICs of this host",
			config->name, known);
	return -ENODEV;
}

static uint16_t bounded(uint16_t wanted, const struct rte_eth_desc_lim *limits)
{
	uint32_t count = wanted;

	if (limits->nb_max > 0 && count > limits->nb_max)
		count = limits->nb_max;
	if (count < limits->nb_min)
		count = limits->nb_min;
	if (limits->nb_align > 1)
		count = count / limits->nb_align * limits->nb_align;
	return (uint16_t)count;
}

/* Room for one frame in one piece. */
static int make_pool(struct port *p, const struct port_config *config,
		const struct rte_eth_dev_info *info)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = port_mtu_receive_bytes(p->mtu, info) + RTE_PKTMBUF_HEADROOM;

	if (room < RTE_MBUF_DEFAULT_BUF_SIZE)
		room = RTE_MBUF_DEFAULT_BUF_SIZE;
	p->has_bufs = config->bufs != NULL && p->is_memory && port_receive_bufs(config) > 0 &&
			room <= rte_pktmbuf_data_room_size(config->bufs);
	if (p->has_bufs) {
		p->rx_pool = config->bufs;
		return 0;
	}
	snprintf(name, sizeof(name), "weir_rx_%u", p->id);
	uint32_t count = rx_bufs(p->traits, p->rx_descriptors) + RX_SLACK;

	if (p->queue_count > 1 && !p->traits->pairs && !p->is_raw)
		count += HANDED_COUNT;
	count = p->queue_count * count + config->spare_bufs;
	/* What a device is told of a pool's memory may not reach to its last mbufs. */
	p->rx_pool = p->is_memory ? mempool_warm_mbufs(name, count, POOL_CACHE, 0, (uint16_t)room)
				  : rte_pktmbuf_pool_create(name, count, POOL_CACHE, 0,
						    (uint16_t)room, SOCKET_ID_ANY);
	return p->rx_pool != NULL ? 0 : -ENOMEM;
}

static int make_rings(struct port *p)
{
	for (uint32_t q = 0; p->queue_count > 1 && !p->is_raw && q < p->queue_count; q++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "weir_handed_%u_%u", p->id, q);
		p->handed[q] = rte_ring_create(name, HANDED_COUNT, SOCKET_ID_ANY, RING_F_SC_DEQ);
		if (p->handed[q] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int count_queues(struct port *p, const struct port_config *config,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES])
{
	p->udp_port = config->udp_port;
	p->is_raw = config->is_raw;
	p->is_ipv6 = config->is_ipv6;
	p->queue_count = p->is_raw ? port_steer_count_raw(config->queue_count,
						     config->worker_count, p->traits, info)
				   : port_steer_count(config->queue_count, config->worker_count,
						     p->traits, info);
	if (p->queue_count > 0 && p->queue_count <= PORT_QUEUES_MAX)
		return 0;
	uint32_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	if (p->traits->fills_all && config->queue_count <= most)
		snprintf(error, PORT_ERROR_BYTES,
				"port %s: all of its %u queue pairs get frames, and there are %u "
				"workers to serve them; give it as many (qpairs= in weir.eal.args)",
				p->name, most, config->worker_count);
	else
		snprintf(error, PORT_ERROR_BYTES,
				"port %s: %u queue pairs are not to be had: the device has %u, and "
				"there are %u workers to serve them; change %s",
				p->name, config->queue_count, most, config->worker_count,
				p->is_raw ? "weir.nic.queues" : "weir.link.queues");
	return -EINVAL;
}

static int set_up_queues(struct port *p)
{
	int rc = 0;

	for (uint32_t q = 0; rc == 0 && q < p->queue_count; q++) {
		rc = rte_eth_rx_queue_setup(p->id, (uint16_t)q, p->rx_descriptors, SOCKET_ID_ANY,
				NULL, p->rx_pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(p->id, (uint16_t)q, p->tx_descriptors,
					SOCKET_ID_ANY, NULL);
	}
	return rc;
}

static bool has_argument(const struct rte_eth_dev_info *info, const char *argument)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);

	return args != NULL && args->args != NULL && strstr(args->args, argument) != NULL;
}

/* A memif server listens from its start to its end, and takes whoever comes. */
static bool is_server(const struct rte_eth_dev_info *info)
{
	return has_argument(info, "role=server") || has_argument(info, "role=master");
}

static int configure(struct port *p, const struct port_config *config,
		char error[PORT_ERROR_BYTES])
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (rc != 0)
		return rc;
	snprintf(p->driver, sizeof(p->driver), "%s",
			info.driver_name != NULL ? info.driver_name : "?");
	p->traits = port_driver_find(p->driver);
	p->dials = p->traits->dials && !is_server(&info);
	p->is_memory = p->traits->is_memory && !has_argument(&info, "zero-copy=yes");
	p->copies = p->traits->copies && !has_argument(&info, "zero-copy=yes");
	rc = port_mtu_choose(&p->mtu, config, p->id, &info, error);
	if (rc == 0)
		rc = count_queues(p, config, &info, error);
	if (rc != 0)
		return rc;
	p->slot_bytes = port_mtu_slot_bytes(&info);
	p->has_rss = port_steer_configure(&conf, p->queue_count, p->is_raw, p->traits, &info);
	p->has_segments = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 ||
			p->traits->copies;
	/* A driver that copies sums in software, word by word, what IPv4 can do without. */
	p->can_udp_checksum = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0 &&
			!p->traits->copies;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->can_udp_checksum)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	/* Frames in one piece are all of one pool, and nobody else has them. */
	if (!p->has_segments)
		conf.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	if (p->mtu <= info.max_mtu && p->mtu + ETHERNET_BYTES + RTE_ETHER_CRC_LEN <=
			info.max_rx_pktlen)
		conf.rxmode.mtu = p->mtu;
	p->rx_descriptors = bounded(config->rx_descriptors, &info.rx_desc_lim);
	p->tx_descriptors = bounded(config->tx_descriptors, &info.tx_desc_lim);
	rc = rte_eth_dev_configure(
			p->id, (uint16_t)p->queue_count, (uint16_t)p->queue_count, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(
				p->id, &p->rx_descriptors, &p->tx_descriptors);
	if (rc == 0)
		rc = make_pool(p, config, &info);
	if (rc == 0)
		rc = make_rings(p);
	return rc == 0 ? set_up_queues(p) : rc;
}

/* Who enters says so before it looks, and who restarts shuts the door before it looks who is in:
 * one of them sees the other. */
bool port_enter(struct port *p, uint32_t user)
{
	if (p->guard == NULL)
		return true;
	port_guard_enter(p->guard, user);
	if (atomic_load(&p->is_started))
		return true;
	port_leave(p, user);
	return false;
}

void port_leave(struct port *p, uint32_t user)
{
	if (p->guard != NULL)
		port_guard_leave(p->guard, user);
}

static bool is_up(uint16_t port_id)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(port_id, &link) == 0 &&
			link.link_status == RTE_ETH_LINK_UP;
}

static int control(const struct port *p, int (*call)(uint16_t port_id))
{
	return p->traits->hears_peer ? interrupt_thread_call(call, p->id) : call(p->id);
}

/* The peer may have come since it was looked for. */
static int restart(uint16_t port_id)
{
	if (is_up(port_id))
		return 0;
	(void)rte_eth_dev_stop(port_id);
	return rte_eth_dev_start(port_id);
}

void port_try_start(struct port *p)
{
	if (!p->dials)
		return;
	bool was_started = atomic_exchange(&p->is_started, false);
	if (port_guard_is_somebody_in(p->guard)) {
		atomic_store(&p->is_started, was_started); /* the next time it is out */
		return;
	}
	atomic_store(&p->is_started, control(p, restart) == 0);
}

/* It would say so at each attempt. */
static void hush(const struct port *p)
{
	if (p->dials)
		(void)rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_EMERG);
}

/* A device that has an MTU of its own is told; a virtual one that has none passes what it is
 * given. */
static int start(struct port *p, const struct port_config *config)
{
	int rc = config->mtu > 0 ? rte_eth_dev_set_mtu(p->id, (uint16_t)config->mtu) : 0;

	if (rc != 0 && rc != -ENOTSUP && !p->traits->copies && !p->traits->is_memory)
		return rc;
	hush(p);
	rc = control(p, rte_eth_dev_start);
	p->steering = p->queue_count == 1 ? PORT_STEERING_ONE : PORT_STEERING_PAIRED;
	if (rc != 0)
		return p->dials ? 0 : rc;
	p->steering = p->is_raw ? port_steer_start_raw(
						  p->id, p->queue_count, p->traits, p->has_rss)
				: port_steer_start(p->id, p->queue_count, p->udp_port,
						  p->is_ipv6, p->traits, p->has_rss);
	p->is_started = true;
	/* Kernel devices would otherwise drop what is not for their own MAC. */
	(void)rte_eth_promiscuous_enable(p->id);
	p->can_reclaim = rte_eth_tx_done_cleanup(p->id, 0, 0) >= 0;
	return 0;
}

int port_create(struct port **out, const struct port_config *config, char error[PORT_ERROR_BYTES])
{
	struct port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->traits = port_driver_find(config->name);
	error[0] = '\0';
	int rc = find(p, config, error);
	if (rc == 0)
		rc = configure(p, config, error);
	if (rc == 0 && p->traits->unmaps)
		rc = port_guard_create(&p->guard, p->id);
	if (rc == 0)
		rc = start(p, config);
	if (rc != 0) {
		p->is_closed = p->driver[0] == '\0';
		if (error[0] == '\0')
			snprintf(error, PORT_ERROR_BYTES, "port %s (%s) did not start: %s",
					p->name, p->driver, strerror(-rc));
		port_destroy(p);
		return rc;
	}
	*out = p;
	return 0;
}

void port_stop(struct port *p)
{
	if (p->is_closed)
		return;
	p->is_closed = true;
	if (p->is_started)
		(void)control(p, rte_eth_dev_stop);
	(void)control(p, rte_eth_dev_close);
	p->is_started = false;
}

/* With what nobody took out: it may be a buffer of the pool that outlives the port. */
static void free_ring(struct rte_ring *ring)
{
	void *m;

	while (ring != NULL && rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

void port_destroy(struct port *p)
{
	if (p == NULL)
		return;
	port_stop(p);
	for (uint32_t q = 0; q < p->queue_count; q++)
		free_ring(p->handed[q]);
	if (!p->has_bufs)
		rte_mempool_free(p->rx_pool);
	port_guard_destroy(p->guard);
	free(p);
}

bool port_is_up(const struct port *p)
{
	return is_up(p->id);
}

const char *port_name(const struct port *p)
{
	return p->name;
}

uint16_t port_id(const struct port *p)
{
	return p->id;
}

uint32_t port_frame_bytes_max(const struct port *p)
{
	return p->mtu + ETHERNET_BYTES;
}

uint16_t port_rx_descriptors(const struct port *p)
{
	return p->rx_descriptors;
}

uint32_t port_head_bytes_min(const struct port *p)
{
	return p->slot_bytes > 0 ? p->slot_bytes + 1 : 0;
}

uint16_t port_tx_descriptors(const struct port *p)
{
	return p->tx_descriptors;
}

uint32_t port_queue_count(const struct port *p)
{
	return p->queue_count;
}

enum port_steering port_steering(const struct port *p)
{
	return p->steering;
}

struct rte_ring *port_handed(const struct port *p, uint32_t queue)
{
	return p->handed[queue];
}

bool port_joins_two(const struct port *p)
{
	return p->traits->pairs;
}

bool port_is_memory(const struct port *p)
{
	return p->is_memory;
}

bool port_receives_bufs(const struct port *p)
{
	return p->has_bufs;
}

uint16_t port_udp_port(const struct port *p)
{
	return p->udp_port;
}

void port_mac(const struct port *p, uint8_t mac[6])
{
	struct rte_ether_addr address = {{0}};

	(void)rte_eth_macaddr_get(p->id, &address);
	memcpy(mac, address.addr_bytes, 6);
}

bool port_can_udp_checksum(const struct port *p)
{
	return p->can_udp_checksum;
}

/* A body is read by the device until it is sent: we must be able to learn that it is. */
bool port_can_refer(const struct port *p)
{
	return p->has_segments && rte_eal_iova_mode() == RTE_IOVA_VA &&
			(p->can_reclaim || p->traits->copies);
}

bool port_copies(const struct port *p)
{
	return p->copies;
}

static const char *print_bodies(const struct port *p)
{
	if (port_can_refer(p))
		return "sent from where they lie";
	if (!p->has_segments)
		return "copied (its driver takes no frame in pieces)";
	if (rte_eal_iova_mode() != RTE_IOVA_VA)
		return "copied (it wants physical addresses)";
	return "copied (its driver does not say when they are sent)";
}

void port_print(const struct port *p, char text[PORT_TEXT_BYTES])
{
	char queues[96] = "one queue pair";

	if (p->queue_count > 1)
		snprintf(queues, sizeof(queues), "%u queue pairs, to which frames come %s,",
				p->queue_count, port_steering_name(p->steering));
	snprintf(text, PORT_TEXT_BYTES,
			"%s (%s): frames to %u bytes, %s of %u and %u descriptors, bodies are %s, "
			"UDP checksum by %s",
			p->name, p->driver, port_frame_bytes_max(p), queues, p->rx_descriptors,
			p->tx_descriptors, print_bodies(p),
			p->can_udp_checksum ? "the port" : "software");
}

bool port_kernel_packets(const struct port *p, uint64_t *packets)
{
	struct rte_eth_dev_info info;
	char name[IF_NAMESIZE], path[128];

	if (!p->traits->loses_unseen || rte_eth_dev_info_get(p->id, &info) != 0 ||
			if_indextoname(info.if_index, name) == NULL)
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets", name);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool is_read = fscanf(file, "%" SCNu64, packets) == 1;
	fclose(file);
	return is_read;
}

void port_counters(const struct port *p, struct port_counters *out)
{
	struct rte_eth_stats s = {0};

	(void)rte_eth_stats_get(p->id, &s);
	*out = (struct port_counters){
			.frames_in = s.ipackets,
			.frames_out = s.opackets,
			.bytes_in = s.ibytes,
			.bytes_out = s.obytes,
			.missed = s.imissed,
			.errors_in = s.ierrors,
			.errors_out = s.oerrors,
			.no_buffer = s.rx_nombuf,
	};
}
