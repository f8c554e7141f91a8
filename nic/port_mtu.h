#pragma once

/*
 * port_mtu: the largest IP packet of a port: what was asked for, held against what device and
 * network interface can.
 *
 * Place    nic; used by port.
 * Thread   the control thread, once.
 * Errors   -EINVAL with one line that says what to do.
 */

#include "nic/port.h"

struct rte_eth_dev_info;

enum { PORT_MTU_MIN = 562, PORT_SLOT_STEP_BYTES = 1024 };

/* What a buffer must hold, so that a frame lies in one piece and the driver takes it. */
uint32_t port_mtu_receive_bytes(uint32_t mtu, const struct rte_eth_dev_info *info);

/* What one slot of its ring holds, of a driver whose slots have a size; else 0. */
uint32_t port_mtu_slot_bytes(const struct rte_eth_dev_info *info);

int port_mtu_choose(uint32_t *mtu, const struct port_config *config, uint16_t port_id,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES]);
