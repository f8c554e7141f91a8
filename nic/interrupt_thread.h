#pragma once

/*
 * interrupt_thread: calls into drivers made on the EAL's interrupt thread.
 *
 * Place    nic; used by port.
 * Thread   any but the interrupt thread; a caller waits until its call has returned.
 * Errors   what the call returns.
 *
 * net_memif and net_virtio_user hear of their peer on that thread and take away there what a stop,
 * start or close on another thread is using, without a lock: made there, too, these come one after
 * the other.
 */

#include <stdint.h>

/* rte_eth_dev_stop, _start or _close of a port. */
int interrupt_thread_call(int (*call)(uint16_t port_id), uint16_t port_id);
