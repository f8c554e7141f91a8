#pragma once

/*
 * port_guard: who is in a burst of a port whose driver takes its rings away when the peer goes.
 *
 * Place    nic; used by port.
 * Thread   enter and leave on any worker, each under a number of its own; create and destroy on
 *          the control thread; what must wait does so on the EAL's interrupt thread.
 * Memory   a memzone named after the port, in create.
 * Errors   0 or -errno from create.
 * Life     create, { enter, burst, leave }*, destroy.
 *
 * net_memif hears on the interrupt thread that its peer is gone: it marks the port as not
 * connected, ends its ear on the peer (rte_intr_callback_unregister) and unmaps the rings.  A burst
 * that had begun before the mark goes on reading them.  That call comes between, so this file has
 * one of that name in front of the EAL's: it waits until each has been seen outside, then makes the
 * EAL's.  A burst that begins later sees the mark and does nothing.
 */

#include <stdbool.h>
#include <stdint.h>

enum { PORT_GUARD_USERS_MAX = 128 };

struct port_guard;

int port_guard_create(struct port_guard **out, uint16_t port_id);
void port_guard_enter(struct port_guard *g, uint32_t user);
void port_guard_leave(struct port_guard *g, uint32_t user);
bool port_guard_is_somebody_in(const struct port_guard *g);
/* NULL is accepted. */
void port_guard_destroy(struct port_guard *g);
