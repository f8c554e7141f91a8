#pragma once

/*
 * port_steer: how a frame comes to the queue of the worker that it is for.  Of a link, each queue
 * has a UDP port of its own; raw packets are for whom they are spread to.
 *
 * Place    nic; used by port.
 * Thread   the control thread, once the port is configured or started.
 * Errors   none: what a device cannot do the next best does.
 */

#include <stdbool.h>
#include <stdint.h>

struct port_driver;
struct rte_eth_conf;
struct rte_eth_dev_info;

enum port_steering {
	PORT_STEERING_ONE,    /* one queue pair: nothing to choose */
	PORT_STEERING_PAIRED, /* the sender's queue is the receiver's */
	PORT_STEERING_RULES,  /* rte_flow, by UDP port */
	PORT_STEERING_RSS,    /* spread by a hash, then handed over by ring */
	PORT_STEERING_DEVICE, /* as the device likes, then handed over by ring */
	/* Raw packets. */
	PORT_STEERING_RAW_RSS,    /* spread by a hash */
	PORT_STEERING_RAW_RULE,   /* the same, by a rule of rte_flow */
	PORT_STEERING_RAW_DEVICE, /* as the device or the kernel spreads them */
	PORT_STEERING_RAW_ANY,    /* the device does not spread them: handed over by ring */
};

/* How many queue pairs: `wanted`, or for 0 one for each of `worker_count`, as far as the device
 * has them and something is won by it.  0: it does not have `wanted`, or fills more than that. */
uint32_t port_steer_count(uint32_t wanted, uint32_t worker_count, const struct port_driver *driver,
		const struct rte_eth_dev_info *info);

/* The same of raw packets: `wanted` may be more than workers, and 0 is one where the sender chooses
 * the queue, and all of a device that fills all it has. */
uint32_t port_steer_count_raw(uint32_t wanted, uint32_t worker_count,
		const struct port_driver *driver, const struct rte_eth_dev_info *info);

/* Asks for RSS where it is to be had, and nothing else spreads; true: it was. */
bool port_steer_configure(struct rte_eth_conf *conf, uint32_t queue_count, bool is_raw,
		const struct port_driver *driver, const struct rte_eth_dev_info *info);

/* Of a started port; rules where it takes one for every queue, for that version of IP alone: no
 * frame of the other comes, and many devices have no rule for it. */
enum port_steering port_steer_start(uint16_t port_id, uint32_t queue_count, uint16_t udp_port,
		bool is_ipv6, const struct port_driver *driver, bool has_spread);

/* The same of raw packets: RSS, else one rule for all queues. */
enum port_steering port_steer_start_raw(uint16_t port_id, uint32_t queue_count,
		const struct port_driver *driver, bool has_spread);

/* How frames come to their queue: "by flow rules ...". */
const char *port_steering_name(enum port_steering steering);
/* Whether frames may come in at a queue that they are not for. */
bool port_steering_is_spread(enum port_steering steering);
