#include "nic/port_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_memzone.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dataplane/base/check.h"
#include "nic/in_front.h"

/* A burst takes microseconds, but its thread may wait for a core meanwhile. */
enum { WAIT_ROUNDS_MAX = 100000, WAIT_ROUND_NS = 20000 };

/* Each writes its own line. */
struct user {
	_Atomic bool is_in;
} __rte_cache_aligned;

struct port_guard {
	const struct rte_memzone *zone;
	struct user users[PORT_GUARD_USERS_MAX];
};

static const char in_front_of[] = "rte_intr_callback_unregister";

static void name_zone(char name[RTE_MEMZONE_NAMESIZE], uint16_t port_id)
{
	snprintf(name, RTE_MEMZONE_NAMESIZE, "weir_guard_%u", port_id);
}

int port_guard_create(struct port_guard **out, uint16_t port_id)
{
	char name[RTE_MEMZONE_NAMESIZE];

	CHECK(is_in_front(in_front_of, (void (*)(void))rte_intr_callback_unregister));
	name_zone(name, port_id);
	const struct rte_memzone *zone =
			rte_memzone_reserve(name, sizeof(struct port_guard), SOCKET_ID_ANY, 0);
	if (zone == NULL)
		return -ENOMEM;
	*out = zone->addr;
	memset(zone->addr, 0, sizeof(**out));
	(*out)->zone = zone;
	return 0;
}

void port_guard_destroy(struct port_guard *g)
{
	if (g != NULL)
		(void)rte_memzone_free(g->zone);
}

/* Who enters says so before it looks at the port, and who waits has marked that before. */
void port_guard_enter(struct port_guard *g, uint32_t user)
{
	atomic_store(&g->users[user].is_in, true);
}

void port_guard_leave(struct port_guard *g, uint32_t user)
{
	atomic_store_explicit(&g->users[user].is_in, false, memory_order_release);
}

bool port_guard_is_somebody_in(const struct port_guard *g)
{
	for (uint32_t i = 0; i < PORT_GUARD_USERS_MAX; i++) {
		if (atomic_load(&g->users[i].is_in))
			return true;
	}
	return false;
}

/* ---- in front of the EAL's ---- */

/* Of each the burst that it may be in, no later one: among many who come and go the moment in which
 * nobody is in may never come. */
static void await_bursts(uint16_t port_id)
{
	const struct timespec round = {.tv_nsec = WAIT_ROUND_NS};
	char name[RTE_MEMZONE_NAMESIZE];
	uint32_t rounds = 0;

	name_zone(name, port_id);
	const struct rte_memzone *zone = rte_memzone_lookup(name);
	if (zone == NULL)
		return;

	const struct port_guard *g = zone->addr;
	for (uint32_t i = 0; i < PORT_GUARD_USERS_MAX; i++) {
		for (; rounds < WAIT_ROUNDS_MAX && atomic_load(&g->users[i].is_in); rounds++)
			nanosleep(&round, NULL);
	}
}

int rte_intr_callback_unregister(
		const struct rte_intr_handle *handle, rte_intr_callback_fn callback, void *context)
{
	int (*of_the_eal)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
	void *symbol = dlsym(RTLD_NEXT, in_front_of);
	uint16_t id;

	CHECK(symbol != NULL);
	memcpy(&of_the_eal, &symbol, sizeof(symbol));
	atomic_thread_fence(memory_order_seq_cst);
	RTE_ETH_FOREACH_DEV(id)
	{
		await_bursts(id);
	}
	return of_the_eal(handle, callback, context);
}
