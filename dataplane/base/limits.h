#pragma once

/*
 * limits: every compile-time bound, and the relations that tie them.
 */

#include <assert.h>
#include <stdint.h>

enum {
	LINE_BYTES = 64,

	BUF_BYTES_DEFAULT = 32768, /* taskmanager.memory.segment-size */
	BUF_BYTES_MIN = 256,
	BUF_BYTES_MAX = 57344,     /* an mbuf's room is a 16-bit number */

	/* The largest buffer in one frame of a link, which ports that are memory carry. */
	LINK_HEADERS_BYTES_MAX = 114, /* behind Ethernet: IPv6, UDP, the link's own */
	LINK_MTU_MAX = BUF_BYTES_MAX + LINK_HEADERS_BYTES_MAX, /* weir.link.mtu */

	RECORD_BYTES_DEFAULT = 65536, /* a variable record, unless its operator says more or less */
	RECORD_BYTES_MAX = 1 << 20,   /* what it may say */

	BATCH_COUNT_MAX = 32,      /* buffers in one burst through a ring */
	RECORDS_COUNT_MAX = 512,   /* records in one batch handed to an operator */

	KEY_GROUPS_COUNT_MAX = 4096,
	KEY_BYTES_MAX = 256,

	VERTICES_COUNT_MAX = 64,
	EDGES_COUNT_MAX = 128,
	CHAIN_OPERATORS_MAX = 16,
	PARALLELISM_MAX = 1024,
	UID_BYTES_MAX = 64,        /* with the terminating zero */
	STATES_PER_OPERATOR_MAX = 8,
	COUNTERS_PER_OPERATOR_MAX = 32,

	CHANNELS_PER_GATE_MAX = 1024,
	GATES_PER_TASK_MAX = 8,
	OUTPUTS_PER_TASK_MAX = 8,
	CHANNEL_BUFFERS_MAX = 64,  /* buffers of one channel: queue of the sender, ring, receiver */
	CHANNEL_CONTROL_MAX = 64,  /* control elements under way in one channel */

	MAILBOX_COUNT_MAX = 1024,
	REPORTS_COUNT_MAX = 4096,
	WORKERS_COUNT_MAX = 64,
	TASKS_PER_WORKER_MAX = 256,

	RESTART_FAILURES_MAX = 1000, /* that a failure rate can count */
	CHECKPOINTS_IN_FLIGHT_MAX = 16,
	STORE_OPS_IN_FLIGHT_MAX = 256,
	STATE_INLINE_BYTES_MAX = 1048576,
	MESSAGE_BYTES_MAX = 64 * 1024 * 1024,
};

/* A ring index is masked, never divided. */
static_assert((CHANNEL_BUFFERS_MAX & (CHANNEL_BUFFERS_MAX - 1)) == 0, "power of two");
static_assert((CHANNEL_CONTROL_MAX & (CHANNEL_CONTROL_MAX - 1)) == 0, "power of two");
static_assert((MAILBOX_COUNT_MAX & (MAILBOX_COUNT_MAX - 1)) == 0, "power of two");
static_assert((KEY_GROUPS_COUNT_MAX & (KEY_GROUPS_COUNT_MAX - 1)) == 0, "power of two");
/* Each checkpoint may put a barrier and a cancel marker on a channel, next to end of data and
 * end of partition. */
static_assert(2 * CHECKPOINTS_IN_FLIGHT_MAX + 2 <= CHANNEL_CONTROL_MAX, "control always fits");
/* Each checkpoint may send one trigger, one abort and one completion to each task. */
static_assert(3 * CHECKPOINTS_IN_FLIGHT_MAX <= MAILBOX_COUNT_MAX, "control mail always fits");
