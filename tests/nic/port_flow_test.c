/* Flow rules, of a device that holds so many of them as it is told: the three calls of rte_flow
 * that steering makes are answered here, and packets go where the rules say. */

#include "nic/port_steer.h"

#include "nic/port_driver.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <string.h>

enum { PORT = 3, UDP_PORT = 6125, RULES_MAX = 32, QUEUES_MAX = 8, NO_QUEUE = -1 };

/* The device: what it takes, and the rules it has. */
static uint32_t room;	  /* rules */
static bool knows_ipv6;	  /* many know only IPv4 */
static bool knows_spread; /* a rule that spreads */

struct rte_flow {
	bool is_ipv6, is_spread;
	int32_t udp_port; /* -1: any packet of that version */
	uint16_t queues[QUEUES_MAX];
	uint32_t queue_count;
};
static struct rte_flow rules[RULES_MAX];
static uint32_t rule_count, flushes;

static void begin(void)
{
	room = RULES_MAX;
	knows_ipv6 = knows_spread = true;
	rule_count = flushes = 0;
}

TestSuite(port_flow, .init = begin);

/* Ethernet, IP, and for one queue UDP with one whole port: nothing else is known here. */
static bool read_items(const struct rte_flow_item *item, struct rte_flow *rule)
{
	if (item->type != RTE_FLOW_ITEM_TYPE_ETH || item->spec != NULL)
		return false;
	item++;
	rule->is_ipv6 = item->type == RTE_FLOW_ITEM_TYPE_IPV6;
	if ((!rule->is_ipv6 && item->type != RTE_FLOW_ITEM_TYPE_IPV4) || item->spec != NULL)
		return false;
	item++;
	rule->udp_port = -1;
	if (item->type == RTE_FLOW_ITEM_TYPE_UDP) {
		const struct rte_flow_item_udp *spec = item->spec, *mask = item->mask;
		struct rte_flow_item_udp port_alone = {.hdr.dst_port = 0xffff};

		if (memcmp(mask, &port_alone, sizeof(port_alone)) != 0)
			return false;
		rule->udp_port = rte_be_to_cpu_16(spec->hdr.dst_port);
		item++;
	}
	return item->type == RTE_FLOW_ITEM_TYPE_END;
}

static bool read_actions(const struct rte_flow_action *action, struct rte_flow *rule)
{
	if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
		rule->queues[0] = ((const struct rte_flow_action_queue *)action->conf)->index;
		rule->queue_count = 1;
	} else if (action->type == RTE_FLOW_ACTION_TYPE_RSS && knows_spread) {
		const struct rte_flow_action_rss *spread = action->conf;

		rule->is_spread = true;
		rule->queue_count = spread->queue_num;
		memcpy(rule->queues, spread->queue, spread->queue_num * sizeof(rule->queues[0]));
	} else {
		return false;
	}
	return action[1].type == RTE_FLOW_ACTION_TYPE_END;
}

static bool read_rule(const struct rte_flow_attr *attr, const struct rte_flow_item *items,
		const struct rte_flow_action *actions, struct rte_flow *rule)
{
	*rule = (struct rte_flow){0};
	return attr->ingress && !attr->egress && !attr->transfer && read_items(items, rule) &&
	       read_actions(actions, rule) && (knows_ipv6 || !rule->is_ipv6);
}

int rte_flow_validate(uint16_t port_id, const struct rte_flow_attr *attr,
		const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
		struct rte_flow_error *error)
{
	struct rte_flow rule;

	(void)error;
	cr_assert_eq(port_id, PORT);
	return read_rule(attr, pattern, actions, &rule) ? 0 : -ENOTSUP;
}

/* What is valid may find no room. */
struct rte_flow *rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
		const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
		struct rte_flow_error *error)
{
	(void)error;
	cr_assert_eq(port_id, PORT);
	if (rule_count == room || !read_rule(attr, pattern, actions, &rules[rule_count]))
		return NULL;
	return &rules[rule_count++];
}

int rte_flow_flush(uint16_t port_id, struct rte_flow_error *error)
{
	(void)error;
	cr_assert_eq(port_id, PORT);
	rule_count = 0;
	flushes++;
	return 0;
}

/* The queue of a UDP datagram, NO_QUEUE where no rule or more than one is for it. */
static int queue_of(bool is_ipv6, uint16_t udp_port)
{
	int queue = NO_QUEUE;

	for (uint32_t i = 0; i < rule_count; i++) {
		if (rules[i].is_ipv6 != is_ipv6 || rules[i].udp_port != udp_port)
			continue;
		if (queue != NO_QUEUE)
			return NO_QUEUE;
		queue = rules[i].queues[0];
	}
	return queue;
}

static enum port_steering start(uint32_t queue_count, bool is_ipv6, bool has_spread)
{
	return port_steer_start(PORT, queue_count, UDP_PORT, is_ipv6, port_driver_find("net_ice"),
			has_spread);
}

Test(port_flow, each_queue_of_a_link_gets_its_udp_port_by_a_rule)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		rule_count = 0;
		cr_assert_eq(start(4, is_ipv6, true), PORT_STEERING_RULES);
		cr_assert_eq(rule_count, 4);
		for (uint16_t q = 0; q < 4; q++)
			cr_assert_eq(queue_of(is_ipv6, UDP_PORT + q), q);
		cr_assert_eq(queue_of(is_ipv6, UDP_PORT + 4), NO_QUEUE);
		cr_assert_eq(queue_of(is_ipv6, UDP_PORT - 1), NO_QUEUE);
		cr_assert_eq(queue_of(!is_ipv6, UDP_PORT), NO_QUEUE, "no frame of it comes");
	}
	cr_assert_eq(flushes, 0);
	cr_assert_not(port_steering_is_spread(PORT_STEERING_RULES));
}

Test(port_flow, a_device_that_knows_ipv4_alone_steers_a_link_of_ipv4)
{
	knows_ipv6 = false;
	cr_assert_eq(start(2, false, false), PORT_STEERING_RULES);
	rule_count = 0;
	cr_assert_eq(start(2, true, false), PORT_STEERING_DEVICE);
	cr_assert_eq(rule_count, 0);
}

Test(port_flow, a_rule_too_few_leaves_none_behind)
{
	room = 3;
	cr_assert_eq(start(4, false, true), PORT_STEERING_RSS);
	cr_assert_eq(rule_count, 0);
	cr_assert_eq(start(4, false, false), PORT_STEERING_DEVICE);
	cr_assert_eq(rule_count, 0);
	cr_assert_eq(flushes, 2);
	cr_assert_eq(start(3, false, false), PORT_STEERING_RULES);
}

Test(port_flow, no_rule_is_asked_for_where_none_is_needed)
{
	cr_assert_eq(start(1, false, true), PORT_STEERING_ONE);
	cr_assert_eq(port_steer_start(PORT, 4, UDP_PORT, false, port_driver_find("net_memif0"),
				     false),
			PORT_STEERING_PAIRED);
	cr_assert_eq(port_steer_start_raw(PORT, 4, port_driver_find("net_ice"), true),
			PORT_STEERING_RAW_RSS);
	cr_assert_eq(port_steer_start_raw(PORT, 4, port_driver_find("net_af_packet0"), false),
			PORT_STEERING_RAW_DEVICE);
	cr_assert_eq(rule_count, 0);
}

Test(port_flow, raw_packets_are_spread_by_rules_where_rss_is_not_to_be_had)
{
	cr_assert_eq(port_steer_start_raw(PORT, 3, port_driver_find("net_ice"), false),
			PORT_STEERING_RAW_RULE);
	cr_assert_eq(rule_count, 2, "one for each version of IP");
	cr_assert_neq(rules[0].is_ipv6, rules[1].is_ipv6);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert(rules[i].is_spread);
		cr_assert_eq(rules[i].queue_count, 3);
		for (uint16_t q = 0; q < 3; q++)
			cr_assert_eq(rules[i].queues[q], q);
	}
}

Test(port_flow, raw_packets_that_no_rule_spreads_are_handed_over)
{
	knows_ipv6 = false;
	cr_assert_eq(port_steer_start_raw(PORT, 3, port_driver_find("net_ice"), false),
			PORT_STEERING_RAW_ANY);
	cr_assert_eq(rule_count, 0, "half of them would spread unevenly");
	knows_spread = false;
	cr_assert_eq(port_steer_start_raw(PORT, 3, port_driver_find("net_ice"), false),
			PORT_STEERING_RAW_ANY);
	cr_assert_eq(flushes, 2);
}

/* Also what the log and REST say of it. */
Test(port_flow, each_way_has_a_name_of_its_own)
{
	for (int a = PORT_STEERING_ONE; a <= PORT_STEERING_RAW_ANY; a++) {
		for (int b = a + 1; b <= PORT_STEERING_RAW_ANY; b++)
			cr_assert_str_neq(port_steering_name((enum port_steering)a),
					port_steering_name((enum port_steering)b));
	}
	cr_assert_str_eq(port_steering_name(PORT_STEERING_RULES), "by flow rules for UDP ports");
}
