#include "dataplane/taskmanager_link.h"

#include "control/config/config.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/internet.h"
#include "dataplane/base/log.h"
#include "dataplane/channel/net_capture.h"
#include "dataplane/channel/net_faults.h"
#include "nic/port.h"
#include "nic/port_transport.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One queue pair, and what stands in front of it. */
struct wire {
	struct port_transport *port;
	struct net_faults *faults;
	struct net_capture *capture;
};

struct taskmanager_link {
	struct port *port;
	uint32_t queue_count;
	struct wire wires[PORT_QUEUES_MAX];
	struct transport *transports[PORT_QUEUES_MAX];
	struct net_address address;
	uint8_t gateway[6];
	bool has_gateway;
	uint64_t connect_timeout_ns, peer_timeout_ns;
	char text[NET_ADDRESS_TEXT_BYTES], port_text[PORT_TEXT_BYTES];
};

static bool is_ipv6(const struct config *config)
{
	return strchr(config_text(config, "weir.link.address"), ':') != NULL;
}

static struct port_config port_config(const struct config *config, uint32_t worker_count)
{
	uint16_t descriptors = (uint16_t)config_int(config, "weir.link.descriptors");

	return (struct port_config){
			.name = config_text(config, "weir.link.port"),
			.mtu = (uint32_t)config_int(config, "weir.link.mtu"),
			.rx_descriptors = descriptors,
			.tx_descriptors = descriptors,
			.queue_count = (uint32_t)config_int(config, "weir.link.queues"),
			.worker_count = worker_count,
			.udp_port = (uint16_t)config_int(config, "weir.link.udp-port"),
			.is_ipv6 = is_ipv6(config),
			.buf_bytes = (uint32_t)config_size(
					config, "taskmanager.memory.segment-size"),
	};
}

size_t taskmanager_link_memory_bytes(const struct config *config, uint32_t worker_count)
{
	struct port_config port = port_config(config, worker_count);

	return port.name[0] == '\0' ? 0 : port_memory_bytes(&port);
}

uint32_t taskmanager_link_receive_bufs(const struct config *config, uint32_t worker_count)
{
	struct port_config port = port_config(config, worker_count);

	return port.name[0] == '\0' ? 0 : port_receive_bufs(&port);
}

/* The kernel's own name of this boot: another host has another, whatever joins them. */
static uint64_t host_id(void)
{
	char text[64] = "", digits[17];
	uint32_t count = 0;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f == NULL)
		return 0;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	for (const char *at = text; *at != '\0' && count < sizeof(digits) - 1; at++) {
		if (isxdigit((unsigned char)*at))
			digits[count++] = *at;
	}
	digits[count] = '\0';
	return strtoull(digits, NULL, 16);
}

/* A wire that is bad on purpose damages frames, and must be found out. */
static void choose_checksum(struct taskmanager_link *l, const struct config *config)
{
	if (!port_is_memory(l->port) || config_text(config, "weir.link.faults")[0] != '\0' ||
			!config_is_choice(config, "weir.link.checksum", "auto"))
		return;
	l->address.host = host_id();
}

/* 169.254.x.y by the MAC: frames go by MAC and token, so two of one address do no harm. */
static void choose_address(struct taskmanager_link *l, const struct config *config)
{
	const char *text = config_text(config, "weir.link.address");
	struct net_address *a = &l->address;

	port_mac(l->port, a->mac);
	a->udp_port = port_udp_port(l->port);
	a->frame_bytes_max = (uint16_t)port_frame_bytes_max(l->port);
	a->window_frames = port_rx_descriptors(l->port);
	a->queue_count = (uint16_t)l->queue_count;
	a->is_ipv6 = is_ipv6(config);
	if (strcmp(text, "auto") == 0)
		memcpy(a->ip,
				(const uint8_t[]){169, 254, (uint8_t)(a->mac[4] % 254 + 1),
						a->mac[5]},
				4);
	else
		CHECK(inet_pton(a->is_ipv6 ? AF_INET6 : AF_INET, text, a->ip) == 1);
	choose_checksum(l, config);
	net_address_print(a, l->text);
}

static int spoil_wire(struct taskmanager_link *l, uint32_t queue, const struct config *config,
		char error[TASKMANAGER_LINK_ERROR_BYTES])
{
	const char *text = config_text(config, "weir.link.faults");
	struct net_faults_config faults;
	char why[NET_FAULTS_TEXT_BYTES];

	if (text[0] == '\0')
		return 0;
	if (net_faults_parse(text, &faults, why) != 0) {
		snprintf(error, TASKMANAGER_LINK_ERROR_BYTES, "weir.link.faults: %s", why);
		return -EINVAL;
	}
	if (queue == 0)
		log_warn("taskmanager", "the link is made bad on purpose: %s", text);
	int rc = net_faults_create(
			&l->wires[queue].faults, l->transports[queue], &faults, clock_real());
	if (rc == 0)
		l->transports[queue] = net_faults_transport(l->wires[queue].faults);
	return rc;
}

/* What the link says and hears, before any fault on the way out. */
static int capture_wire(struct taskmanager_link *l, uint32_t queue, const struct config *config,
		char error[TASKMANAGER_LINK_ERROR_BYTES])
{
	const char *prefix = config_text(config, "weir.link.capture");
	char path[1100];

	if (prefix[0] == '\0')
		return 0;
	int length = snprintf(path, sizeof(path), "%.1000s.%d", prefix, (int)getpid());
	if (l->queue_count > 1)
		snprintf(path + length, sizeof(path) - (size_t)length, ".%u", queue);
	int rc = net_capture_create(
			&l->wires[queue].capture, l->transports[queue], path, clock_real());
	if (rc == 0)
		l->transports[queue] = net_capture_transport(l->wires[queue].capture);
	else
		snprintf(error, TASKMANAGER_LINK_ERROR_BYTES, "weir.link.capture: %.1000s: %s",
				path, strerror(-rc));
	return rc;
}

static int open_wire(struct taskmanager_link *l, uint32_t queue, const struct config *config,
		char error[TASKMANAGER_LINK_ERROR_BYTES])
{
	struct wire *w = &l->wires[queue];
	int rc = port_transport_create(&w->port, l->port, queue);

	if (rc != 0)
		return rc;
	l->transports[queue] = port_transport_port(w->port);
	rc = spoil_wire(l, queue, config, error);
	return rc == 0 ? capture_wire(l, queue, config, error) : rc;
}

static int open_queues(struct taskmanager_link *l, const struct config *config,
		char error[TASKMANAGER_LINK_ERROR_BYTES])
{
	int rc = 0;

	l->queue_count = port_queue_count(l->port);
	if (port_udp_port(l->port) + l->queue_count - 1 > UINT16_MAX) {
		snprintf(error, TASKMANAGER_LINK_ERROR_BYTES,
				"weir.link.udp-port: %u queues need as many ports from %u on",
				l->queue_count, port_udp_port(l->port));
		return -EINVAL;
	}
	for (uint32_t q = 0; rc == 0 && q < l->queue_count; q++)
		rc = open_wire(l, q, config, error);
	return rc;
}

static void print_port(struct taskmanager_link *l)
{
	port_print(l->port, l->port_text);
	size_t at = strlen(l->port_text);
	snprintf(l->port_text + at, sizeof(l->port_text) - at, ", buffers are summed%s",
			l->address.host != 0 ? " unless both ends are memory of this host" : "");
}

int taskmanager_link_open(struct taskmanager_link **out, const struct config *config,
		uint32_t worker_count, struct rte_mempool *bufs,
		char error[TASKMANAGER_LINK_ERROR_BYTES])
{
	struct port_config port = port_config(config, worker_count);

	port.bufs = bufs;
	*out = NULL;
	if (port.name[0] == '\0')
		return 0;
	struct taskmanager_link *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	int rc = port_create(&l->port, &port, error);
	if (rc == 0)
		rc = open_queues(l, config, error);
	if (rc != 0) {
		taskmanager_link_close(l);
		return rc;
	}
	choose_address(l, config);
	l->has_gateway = mac_parse(config_text(config, "weir.link.gateway"), l->gateway);
	l->connect_timeout_ns = (uint64_t)config_duration_ns(config, "weir.link.connect-timeout");
	l->peer_timeout_ns = (uint64_t)config_duration_ns(config, "weir.link.timeout");
	print_port(l);
	log_info("taskmanager", "link: %s at %s", l->port_text, l->text);
	*out = l;
	return 0;
}

const char *taskmanager_link_text(const struct taskmanager_link *l)
{
	return l != NULL ? l->text : "";
}

const char *taskmanager_link_port(const struct taskmanager_link *l)
{
	return l != NULL ? l->port_text : "";
}

void taskmanager_link_fill(const struct taskmanager_link *l, struct taskmanager_config *config)
{
	if (l == NULL)
		return;
	config->transports = l->transports;
	config->link_address = l->address;
	config->link_gateway = l->has_gateway ? l->gateway : NULL;
	config->is_link_spread = port_steering_is_spread(port_steering(l->port));
	config->does_link_join_two = port_joins_two(l->port);
	config->link_port = port_name(l->port);
	config->link_connect_timeout_ns = l->connect_timeout_ns;
	config->link_peer_timeout_ns = l->peer_timeout_ns;
}

void taskmanager_link_close(struct taskmanager_link *l)
{
	if (l == NULL)
		return;
	for (uint32_t q = 0; q < PORT_QUEUES_MAX; q++) {
		net_capture_destroy(l->wires[q].capture);
		net_faults_destroy(l->wires[q].faults);
		port_transport_destroy(l->wires[q].port);
	}
	port_destroy(l->port);
	free(l);
}
