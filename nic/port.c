#include "nic/port.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nic/port_driver.h"
#include "nic/port_mtu.h"

enum {
	ETHERNET_BYTES = 14,
	FRAME_BYTES_LIMIT = 9218, /* transport.h's FRAME_BYTES_MAX */
	DRIVER_BYTES = 32,
	RX_SLACK = 256, /* received and not yet released, and what the cache hides */
	POOL_CACHE = 64,
	STOP_US = 50000,
	MEMORY_SLACK = 2048,              /* frames */
	MEMORY_DEVICE_BYTES = 8 << 20,    /* what it takes beside its frames */
	MBUF_BYTES = 512,
};

struct port {
	uint16_t id;
	char name[64], driver[DRIVER_BYTES];
	const struct port_driver *traits;
	uint32_t mtu;
	uint16_t rx_descriptors, tx_descriptors;
	bool can_udp_checksum, has_segments, can_reclaim, is_started, is_closed;
	struct rte_mempool *rx_pool;
};

/* Frames to receive, heads to send, and those that are sent in place. */
size_t port_memory_bytes(const struct port_config *config)
{
	size_t frames = (size_t)config->rx_descriptors + config->tx_descriptors + MEMORY_SLACK;
	size_t frame = config->mtu > RTE_ETHER_MTU ? FRAME_BYTES_LIMIT : RTE_MBUF_DEFAULT_BUF_SIZE;

	frames += port_driver_find(config->name)->rx_bufs;
	return frames * (frame + MBUF_BYTES) + MEMORY_DEVICE_BYTES;
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
			"no port is named %s (there are: %s); a virtual one is made by "
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
static int make_pool(struct port *p, const struct rte_eth_dev_info *info)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = port_mtu_receive_bytes(p->mtu, info) + RTE_PKTMBUF_HEADROOM;

	if (room < RTE_MBUF_DEFAULT_BUF_SIZE)
		room = RTE_MBUF_DEFAULT_BUF_SIZE;
	snprintf(name, sizeof(name), "weir_rx_%u", p->id);
	p->rx_pool = rte_pktmbuf_pool_create(name,
			p->rx_descriptors + p->traits->rx_bufs + RX_SLACK, POOL_CACHE, 0,
			(uint16_t)room, SOCKET_ID_ANY);
	return p->rx_pool != NULL ? 0 : -ENOMEM;
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
	rc = port_mtu_choose(&p->mtu, config, p->id, &info, error);
	if (rc != 0)
		return rc;
	p->has_segments = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 ||
			p->traits->copies;
	p->can_udp_checksum = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
	conf.txmode.offloads = info.tx_offload_capa &
			(RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	if (p->mtu <= info.max_mtu && p->mtu + ETHERNET_BYTES + RTE_ETHER_CRC_LEN <=
			info.max_rx_pktlen)
		conf.rxmode.mtu = p->mtu;
	p->rx_descriptors = bounded(config->rx_descriptors, &info.rx_desc_lim);
	p->tx_descriptors = bounded(config->tx_descriptors, &info.tx_desc_lim);
	rc = rte_eth_dev_configure(p->id, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(
				p->id, &p->rx_descriptors, &p->tx_descriptors);
	if (rc == 0)
		rc = make_pool(p, &info);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(p->id, 0, p->rx_descriptors, SOCKET_ID_ANY, NULL,
				p->rx_pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(p->id, 0, p->tx_descriptors, SOCKET_ID_ANY, NULL);
	return rc;
}

bool port_is_running(const struct port *p)
{
	return p->is_started;
}

void port_try_start(struct port *p)
{
	if (!p->traits->dials)
		return;
	if (p->is_started)
		(void)rte_eth_dev_stop(p->id);
	p->is_started = rte_eth_dev_start(p->id) == 0;
}

/* It would say so at each attempt. */
static void hush(const struct port *p)
{
	if (p->traits->dials)
		(void)rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_EMERG);
}

/* A device that has an MTU of its own is told; a virtual one that has none passes what it is
 * given. */
static int start(struct port *p, const struct port_config *config)
{
	int rc = config->mtu > 0 ? rte_eth_dev_set_mtu(p->id, (uint16_t)config->mtu) : 0;

	if (rc != 0 && rc != -ENOTSUP && !p->traits->copies)
		return rc;
	hush(p);
	rc = rte_eth_dev_start(p->id);
	if (rc != 0)
		return p->traits->dials ? 0 : rc;
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
		(void)rte_eth_dev_stop(p->id);
	/* net_memif hears on another thread of a peer that goes, and is not safe against that while
	 * it closes. */
	if (p->traits->dials)
		usleep(STOP_US);
	(void)rte_eth_dev_close(p->id);
	p->is_started = false;
}

void port_destroy(struct port *p)
{
	if (p == NULL)
		return;
	port_stop(p);
	rte_mempool_free(p->rx_pool);
	free(p);
}

bool port_is_up(const struct port *p)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(p->id, &link) == 0 &&
			link.link_status == RTE_ETH_LINK_UP;
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

uint16_t port_tx_descriptors(const struct port *p)
{
	return p->tx_descriptors;
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

void port_print(const struct port *p, char text[PORT_TEXT_BYTES])
{
	snprintf(text, PORT_TEXT_BYTES,
			"%s (%s): frames to %u bytes, one queue pair of %u and %u descriptors, "
			"bodies are %s, UDP checksum by %s",
			p->name, p->driver, port_frame_bytes_max(p), p->rx_descriptors,
			p->tx_descriptors,
			port_can_refer(p) ? "sent from where they lie" : "copied",
			p->can_udp_checksum ? "the port" : "software");
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
