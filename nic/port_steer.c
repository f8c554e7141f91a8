#include "nic/port_steer.h"

#include <rte_ethdev.h>
#include <rte_flow.h>
#include <stddef.h>

#include "dataplane/base/check.h"
#include "nic/port_driver.h"

enum { RULES_MAX = 64 };

static const uint64_t rss_raw = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP |
		RTE_ETH_RSS_SCTP;
static const uint64_t rss_wanted = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP |
		RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6;

/* What a hash over addresses alone spreads is one peer, all of it in one queue. */
static bool has_rss(const struct rte_eth_dev_info *info)
{
	return (info->flow_type_rss_offloads &
			(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)) != 0;
}

uint32_t port_steer_count(uint32_t wanted, uint32_t worker_count, const struct port_driver *driver,
		const struct rte_eth_dev_info *info)
{
	uint32_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (wanted > worker_count || wanted > most)
		return 0;
	if (driver->fills_all)
		return most <= worker_count && (wanted == 0 || wanted == most) ? most : 0;
	if (wanted > 0)
		return wanted;
	if (!driver->pairs && !driver->spreads && !has_rss(info))
		return 1;
	return worker_count < most ? worker_count : most;
}

uint32_t port_steer_count_raw(uint32_t wanted, uint32_t worker_count,
		const struct port_driver *driver, const struct rte_eth_dev_info *info)
{
	uint32_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (wanted > most)
		return 0;
	if (driver->fills_all)
		return most;
	if (wanted > 0)
		return wanted;
	if (driver->pairs || (!driver->spreads && (info->flow_type_rss_offloads & rss_raw) == 0))
		return 1;
	return worker_count < most ? worker_count : most;
}

bool port_steer_configure(struct rte_eth_conf *conf, uint32_t queue_count, bool is_raw,
		const struct port_driver *driver, const struct rte_eth_dev_info *info)
{
	uint64_t types = info->flow_type_rss_offloads & (is_raw ? rss_raw : rss_wanted);

	if (queue_count == 1 || driver->pairs || driver->spreads ||
			(is_raw ? types == 0 : !has_rss(info)))
		return false;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = types;
	return true;
}

static struct rte_flow *make_rule(uint16_t port_id, uint16_t udp_port, uint16_t queue, bool is_ipv6)
{
	static const struct rte_flow_attr in = {.ingress = 1};
	const struct rte_flow_item_udp spec = {.hdr.dst_port = rte_cpu_to_be_16(udp_port)};
	const struct rte_flow_item_udp mask = {.hdr.dst_port = UINT16_MAX};
	const struct rte_flow_action_queue to = {.index = queue};
	const struct rte_flow_item pattern[] = {
			{.type = RTE_FLOW_ITEM_TYPE_ETH},
			{.type = is_ipv6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4},
			{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &spec, .mask = &mask},
			{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action actions[] = {
			{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to},
			{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error;

	if (rte_flow_validate(port_id, &in, pattern, actions, &error) != 0)
		return NULL;
	return rte_flow_create(port_id, &in, pattern, actions, &error);
}

/* All of them, or none is left behind. */
static bool make_rules(uint16_t port_id, uint32_t queue_count, uint16_t udp_port, bool is_ipv6)
{
	struct rte_flow_error error;

	for (uint32_t queue = 0; queue < queue_count; queue++) {
		if (make_rule(port_id, (uint16_t)(udp_port + queue), (uint16_t)queue, is_ipv6))
			continue;
		(void)rte_flow_flush(port_id, &error);
		return false;
	}
	return true;
}

enum port_steering port_steer_start(uint16_t port_id, uint32_t queue_count, uint16_t udp_port,
		bool is_ipv6, const struct port_driver *driver, bool has_spread)
{
	CHECK(queue_count <= RULES_MAX);
	if (queue_count == 1)
		return PORT_STEERING_ONE;
	if (driver->pairs)
		return PORT_STEERING_PAIRED;
	if (make_rules(port_id, queue_count, udp_port, is_ipv6))
		return PORT_STEERING_RULES;
	return has_spread ? PORT_STEERING_RSS : PORT_STEERING_DEVICE;
}

/* One rule that spreads packets of that kind over all queues. */
static bool make_spread(uint16_t port_id, uint32_t queue_count, bool is_ipv6)
{
	static const struct rte_flow_attr in = {.ingress = 1};
	uint16_t queues[RULES_MAX];
	const struct rte_flow_action_rss spread = {
			.types = rss_raw, .queue_num = queue_count, .queue = queues};
	const struct rte_flow_item pattern[] = {
			{.type = RTE_FLOW_ITEM_TYPE_ETH},
			{.type = is_ipv6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4},
			{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action actions[] = {
			{.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &spread},
			{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error;

	for (uint32_t i = 0; i < queue_count; i++)
		queues[i] = (uint16_t)i;
	return rte_flow_validate(port_id, &in, pattern, actions, &error) == 0 &&
	       rte_flow_create(port_id, &in, pattern, actions, &error) != NULL;
}

enum port_steering port_steer_start_raw(uint16_t port_id, uint32_t queue_count,
		const struct port_driver *driver, bool has_spread)
{
	struct rte_flow_error error;

	CHECK(queue_count <= RULES_MAX);
	if (queue_count == 1)
		return PORT_STEERING_ONE;
	if (driver->pairs)
		return PORT_STEERING_PAIRED;
	if (has_spread)
		return PORT_STEERING_RAW_RSS;
	if (driver->spreads)
		return PORT_STEERING_RAW_DEVICE;
	if (make_spread(port_id, queue_count, false) && make_spread(port_id, queue_count, true))
		return PORT_STEERING_RAW_RULE;
	(void)rte_flow_flush(port_id, &error);
	return PORT_STEERING_RAW_ANY;
}

const char *port_steering_name(enum port_steering steering)
{
	static const char *const names[] = {
			[PORT_STEERING_ONE] = "at once",
			[PORT_STEERING_PAIRED] = "by the sender's queue",
			[PORT_STEERING_RULES] = "by flow rules for UDP ports",
			[PORT_STEERING_RSS] = "by RSS and, where it errs, by ring",
			[PORT_STEERING_DEVICE] = "by ring from where the device puts them",
			[PORT_STEERING_RAW_RSS] = "by RSS",
			[PORT_STEERING_RAW_RULE] = "by flow rules that spread them",
			[PORT_STEERING_RAW_DEVICE] = "as the driver spreads them",
			[PORT_STEERING_RAW_ANY] = "unspread",
	};

	CHECK((uint32_t)steering < sizeof(names) / sizeof(names[0]));
	return names[steering];
}

bool port_steering_is_spread(enum port_steering steering)
{
	return steering == PORT_STEERING_RSS || steering == PORT_STEERING_DEVICE;
}
