#pragma once

/*
 * resource_manager: the TaskManagers that are here: their connections, registration and heartbeats
 * (semantics FO-7).
 *
 * Place    control/coordinator; listens on the control port.
 * Thread   the loop's.
 * Memory   rows for MEMBERS_COUNT_MAX TaskManagers.
 * Errors   0 or -errno with one line from create.
 * Life     create, { joined, message, lost }*, destroy.
 *
 * A closed connection is a loss at once, silence one after heartbeat.timeout.  A TaskManager that
 * registers again under its name replaces what was there, which is lost first.
 */

#include "control/coordinator/membership.h"

#include "control/proto/weir.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct loop;
struct resource_manager;
struct task_manager_gateway;

enum { RESOURCE_TEXT_BYTES = 256, RESOURCE_CORES_MAX = 64 };

struct resource_manager_events {
	void (*joined)(void *owner, uint32_t member);
	/* Its gateway is still there, and goes when this returns. */
	void (*lost)(void *owner, uint32_t member, const char *reason);
	/* Everything but registration and the bare heartbeat. */
	void (*message)(void *owner, uint32_t member, const Weir__Envelope *envelope);
};

/* What people are shown of one. */
struct resource_row {
	char id[MEMBER_ID_BYTES];
	char host[RESOURCE_TEXT_BYTES];
	char peer[RESOURCE_TEXT_BYTES];
	char version[RESOURCE_TEXT_BYTES];
	char pages[RESOURCE_TEXT_BYTES];
	char link[RESOURCE_TEXT_BYTES]; /* its address to other TaskManagers; empty: none */
	char link_port[2 * RESOURCE_TEXT_BYTES]; /* what port that is */
	char packet_ports[8 * RESOURCE_TEXT_BYTES]; /* those of raw packets; empty: none */
	Weir__LinkNumbers numbers;      /* of its links, in the last heartbeat */
	uint32_t pid, slot_count, core_count;
	uint32_t cores[RESOURCE_CORES_MAX];
	uint64_t pool_bytes, state_bytes;
	int64_t heard_ms; /* wall clock */
};

int resource_manager_create(struct resource_manager **out, struct loop *l,
		const struct config *config, const struct resource_manager_events *events,
		void *owner);
uint16_t resource_manager_port(const struct resource_manager *r);
void resource_manager_destroy(struct resource_manager *r);

/* Where a job may go, or MEMBER_NONE; then it counts there until released. */
uint32_t resource_manager_take(struct resource_manager *r);
/* The same among those with a link that are not in `besides`. */
uint32_t resource_manager_take_linked(
		struct resource_manager *r, const uint32_t *besides, uint32_t count);
void resource_manager_release(struct resource_manager *r, uint32_t member);

/* NULL when it is gone. */
struct task_manager_gateway *resource_manager_gateway(
		const struct resource_manager *r, uint32_t member);
/* While it builds tasks it says nothing, and that is no silence. */
void resource_manager_set_busy(struct resource_manager *r, uint32_t member, bool is_busy);
/* Gives it up: its connection is closed and it is lost, for `reason`. */
void resource_manager_expel(struct resource_manager *r, uint32_t member, const char *reason);

uint32_t resource_manager_count(const struct resource_manager *r);
/* NULL: nobody has that number. */
const struct resource_row *resource_manager_row(const struct resource_manager *r, uint32_t member);
/* Jobs whose tasks run there. */
uint32_t resource_manager_jobs(const struct resource_manager *r, uint32_t member);
