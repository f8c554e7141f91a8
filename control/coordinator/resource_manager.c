#include "control/coordinator/resource_manager.h"

#include "control/config/config.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/net/loop.h"
#include "control/net/tcp_listener.h"
#include "control/proto/connection.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/log.h"
#include "dataplane/operator/operator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REGISTER_TIMEOUT_S = 10,
	FAULT_BYTES = 256,
	SILENT_BEATS_MIN = 4, /* in a timeout, for a beat to be left out */
};

/* One connection; a member once it has registered. */
struct guest {
	struct guest *next;
	struct resource_manager *manager;
	struct connection *connection;
	uint32_t member; /* MEMBER_NONE before */
	uint64_t since_ns;
	uint64_t sent_count; /* of its connection, at the last beat */
};

struct resource_manager {
	struct loop *loop;
	struct tcp_listener *listener;
	struct loop_timer *beat;
	uint64_t interval_ns, beat_at_ns;
	const struct resource_manager_events *events;
	void *owner;
	struct guest *guests;
	struct membership membership;
	struct guest *members[MEMBERS_COUNT_MAX];
	struct task_manager_gateway *gateways[MEMBERS_COUNT_MAX];
	struct resource_row rows[MEMBERS_COUNT_MAX];
};

/* ---- leaving ---- */

static void remove_guest(struct guest *g)
{
	struct guest **at = &g->manager->guests;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}

static void dismiss(struct guest *g, const char *reason)
{
	struct resource_manager *r = g->manager;
	uint32_t member = g->member;

	if (member != MEMBER_NONE) {
		log_warn("resource_manager", "TaskManager %s is lost: %s", r->rows[member].id,
				reason);
		/* First, or what it ran would be given to it again. */
		membership_remove(&r->membership, member);
		r->events->lost(r->owner, member, reason);
		task_manager_gateway_destroy(r->gateways[member]);
		r->gateways[member] = NULL;
		r->members[member] = NULL;
	}
	connection_close(g->connection);
	remove_guest(g);
}

void resource_manager_expel(struct resource_manager *r, uint32_t member, const char *reason)
{
	if (member < MEMBERS_COUNT_MAX && r->members[member] != NULL)
		dismiss(r->members[member], reason);
}

/* ---- registration ---- */

static void answer(struct guest *g, const char *error)
{
	Weir__Registered m = WEIR__REGISTERED__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	struct resource_manager *r = g->manager;

	m.accepted = error == NULL;
	m.error = (char *)(uintptr_t)(error == NULL ? "" : error);
	m.heartbeat_interval_ms = (uint32_t)(r->interval_ns / 1000000);
	m.heartbeat_timeout_ms = (uint32_t)(r->membership.timeout_ns / 1000000);
	e.body_case = WEIR__ENVELOPE__BODY_REGISTERED;
	e.registered = &m;
	(void)connection_send(g->connection, &e);
}

static void fill_row(struct resource_row *row, const struct guest *g,
		const Weir__RegisterTaskManager *m)
{
	memset(row, 0, sizeof(*row));
	snprintf(row->id, sizeof(row->id), "%s", m->id);
	snprintf(row->host, sizeof(row->host), "%s", m->host);
	snprintf(row->peer, sizeof(row->peer), "%s", connection_peer(g->connection));
	snprintf(row->version, sizeof(row->version), "%s", m->version);
	snprintf(row->pages, sizeof(row->pages), "%s", m->pages);
	snprintf(row->link, sizeof(row->link), "%s", m->link_address);
	snprintf(row->link_port, sizeof(row->link_port), "%s", m->link_port);
	snprintf(row->packet_ports, sizeof(row->packet_ports), "%s", m->packet_ports);
	row->pid = m->pid;
	row->slot_count = m->slot_count;
	row->core_count = m->n_cores < RESOURCE_CORES_MAX ? (uint32_t)m->n_cores
							  : RESOURCE_CORES_MAX;
	for (uint32_t i = 0; i < row->core_count; i++)
		row->cores[i] = m->cores[i];
	row->pool_bytes = m->pool_bytes;
	row->state_bytes = m->state_bytes;
	row->heard_ms = clock_wall_ms();
}

/* The fourth word of a link's address; 0: no link. */
static uint32_t frame_bytes_of(const char *link)
{
	uint32_t bytes;

	return sscanf(link, "%*s %*s %*s %" SCNu32, &bytes) == 1 ? bytes : 0;
}

/* Whoever may be joined to it by a link must take frames of one size. */
static bool is_frame_odd(const struct resource_manager *r, const Weir__RegisterTaskManager *m,
		char text[FAULT_BYTES])
{
	uint32_t own = frame_bytes_of(m->link_address);

	for (uint32_t i = 0; own != 0 && i < MEMBERS_COUNT_MAX; i++) {
		uint32_t other = frame_bytes_of(r->rows[i].link);

		if (!r->membership.members[i].is_here || other == 0 || other == own ||
				strcmp(r->rows[i].id, m->id) == 0)
			continue;
		snprintf(text, FAULT_BYTES,
				"its link has frames of %" PRIu32 " bytes, that of TaskManager "
				"%.64s has %" PRIu32 "; give all the same weir.link.mtu",
				own, r->rows[i].id, other);
		return true;
	}
	return false;
}

/* What is in the way of a registration; NULL: nothing. */
static const char *fault_of(const struct guest *g, const Weir__RegisterTaskManager *m,
		char text[FAULT_BYTES])
{
	if (g->member != MEMBER_NONE)
		return "registered already";
	if (m->protocol_version != MESSAGE_PROTOCOL_VERSION)
		return "speaks another version of the protocol; install the same weir everywhere";
	if (m->abi_version != WEIR_ABI_VERSION)
		return "has another version of the operator table; install the same weir "
		       "everywhere";
	if (strlen(m->id) >= MEMBER_ID_BYTES)
		return "its name is too long";
	return is_frame_odd(g->manager, m, text) ? text : NULL;
}

/* False: the guest is gone. */
static bool enroll(struct guest *g, const Weir__RegisterTaskManager *m)
{
	struct resource_manager *r = g->manager;
	char text[FAULT_BYTES];
	const char *fault = fault_of(g, m, text);

	if (fault == NULL) {
		resource_manager_expel(
				r, membership_find(&r->membership, m->id), "it registered again");
		g->member = membership_add(&r->membership, m->id, clock_monotonic_ns());
		if (g->member == MEMBER_NONE)
			fault = "too many TaskManagers";
	}
	if (fault == NULL &&
			task_manager_gateway_create(&r->gateways[g->member], g->connection) != 0) {
		membership_remove(&r->membership, g->member);
		g->member = MEMBER_NONE;
		fault = "out of memory";
	}
	if (fault != NULL) {
		log_warn("resource_manager", "%s is refused: %s", connection_peer(g->connection),
				fault);
		answer(g, fault);
		dismiss(g, fault);
		return false;
	}
	r->members[g->member] = g;
	fill_row(&r->rows[g->member], g, m);
	answer(g, NULL);
	log_info("resource_manager", "TaskManager %s is here (process %u on %s, %u workers)", m->id,
			m->pid, m->host, m->slot_count);
	r->events->joined(r->owner, g->member);
	return true;
}

/* ---- messages ---- */

static void on_received(void *owner, struct connection *c, const Weir__Envelope *e)
{
	struct guest *g = owner;
	struct resource_manager *r = g->manager;

	(void)c;
	if (e->body_case == WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER) {
		enroll(g, e->register_task_manager);
		return;
	}
	if (g->member == MEMBER_NONE) {
		dismiss(g, "spoke before it registered");
		return;
	}
	membership_heard(&r->membership, g->member, clock_monotonic_ns());
	r->rows[g->member].heard_ms = clock_wall_ms();
	if (e->body_case == WEIR__ENVELOPE__BODY_TASK_HEARTBEAT &&
			e->task_heartbeat->link != NULL) {
		struct resource_row *row = &r->rows[g->member];

		row->numbers = *e->task_heartbeat->link;
		row->numbers.base.n_unknown_fields = 0; /* they are the message's */
		row->numbers.base.unknown_fields = NULL;
	}
	r->events->message(r->owner, g->member, e);
}

static void on_closed(void *owner, struct connection *c, const char *reason)
{
	(void)c;
	dismiss(owner, reason);
}

static const struct connection_events guest_events = {on_received, on_closed};

static void on_accepted(void *context, struct connection *c)
{
	struct resource_manager *r = context;
	struct guest *g = calloc(1, sizeof(*g));

	if (g == NULL) {
		connection_close(c);
		return;
	}
	*g = (struct guest){.next = r->guests, .manager = r, .connection = c,
			.member = MEMBER_NONE, .since_ns = clock_monotonic_ns()};
	r->guests = g;
	connection_own(c, &guest_events, g);
}

/* ---- heartbeats ---- */

static void send_heartbeats(struct resource_manager *r)
{
	Weir__CoordinatorHeartbeat m = WEIR__COORDINATOR_HEARTBEAT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	e.body_case = WEIR__ENVELOPE__BODY_COORDINATOR_HEARTBEAT;
	e.coordinator_heartbeat = &m;
	for (struct guest *g = r->guests; g != NULL; g = g->next) {
		if (g->member == MEMBER_NONE)
			continue;
		/* Whatever it was sent since the last one told it the same. */
		bool has_heard = g->connection->sent_count != g->sent_count;
		if (!has_heard || r->membership.timeout_ns / SILENT_BEATS_MIN < r->interval_ns)
			(void)connection_send(g->connection, &e);
		g->sent_count = g->connection->sent_count;
	}
}

static void drop_silent(struct resource_manager *r, uint64_t now_ns)
{
	uint32_t silent;
	char reason[96];

	while ((silent = membership_silent(&r->membership, now_ns)) != MEMBER_NONE) {
		snprintf(reason, sizeof(reason), "no heartbeat for %lu ms",
				(unsigned long)((now_ns - r->membership.members[silent].heard_ns) /
						1000000));
		resource_manager_expel(r, silent, reason);
	}
	for (struct guest *g = r->guests, *next; g != NULL; g = next) {
		next = g->next;
		if (g->member == MEMBER_NONE &&
				now_ns - g->since_ns > REGISTER_TIMEOUT_S * UINT64_C(1000000000))
			dismiss(g, "did not register");
	}
}

static void on_beat(void *context)
{
	struct resource_manager *r = context;
	uint64_t now_ns = clock_monotonic_ns();

	loop_timer_set(r->beat, r->interval_ns);
	if (now_ns - r->beat_at_ns > r->interval_ns + r->membership.timeout_ns / 2)
		membership_forgive(&r->membership, now_ns);
	r->beat_at_ns = now_ns;
	send_heartbeats(r);
	drop_silent(r, now_ns);
}

/* ---- life ---- */

int resource_manager_create(struct resource_manager **out, struct loop *l,
		const struct config *config, const struct resource_manager_events *events,
		void *owner)
{
	struct resource_manager *r = calloc(1, sizeof(*r));
	uint16_t port = (uint16_t)config_int(config, "jobmanager.rpc.port");

	if (r == NULL)
		return -ENOMEM;
	r->loop = l;
	r->events = events;
	r->owner = owner;
	r->interval_ns = (uint64_t)config_duration_ns(config, "heartbeat.interval");
	r->beat_at_ns = clock_monotonic_ns();
	membership_init(&r->membership, (uint64_t)config_duration_ns(config, "heartbeat.timeout"));
	int rc = tcp_listener_create(&r->listener, l, config_text(config, "jobmanager.bind-host"),
			(const uint16_t[]){port, port}, on_accepted, r);
	if (rc == 0)
		rc = loop_timer_create(&r->beat, l, on_beat, r);
	if (rc != 0) {
		resource_manager_destroy(r);
		return rc;
	}
	loop_timer_set(r->beat, r->interval_ns);
	*out = r;
	return 0;
}

uint16_t resource_manager_port(const struct resource_manager *r)
{
	return tcp_listener_port(r->listener);
}

void resource_manager_destroy(struct resource_manager *r)
{
	if (r == NULL)
		return;
	for (struct guest *g = r->guests, *next; g != NULL; g = next) {
		next = g->next;
		connection_close(g->connection);
		if (g->member != MEMBER_NONE)
			task_manager_gateway_destroy(r->gateways[g->member]);
		free(g);
	}
	loop_timer_destroy(r->beat);
	tcp_listener_destroy(r->listener);
	free(r);
}

/* ---- slots ---- */

uint32_t resource_manager_take(struct resource_manager *r)
{
	uint32_t member = membership_choose(&r->membership);

	if (member != MEMBER_NONE)
		r->membership.members[member].job_count++;
	return member;
}

static bool is_among(uint32_t member, const uint32_t *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (members[i] == member)
			return true;
	return false;
}

uint32_t resource_manager_take_linked(
		struct resource_manager *r, const uint32_t *besides, uint32_t count)
{
	uint32_t best = MEMBER_NONE;

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		const struct member *m = &r->membership.members[i];

		if (!m->is_here || r->rows[i].link[0] == '\0' || is_among(i, besides, count))
			continue;
		if (best == MEMBER_NONE || m->job_count < r->membership.members[best].job_count)
			best = i;
	}
	if (best != MEMBER_NONE)
		r->membership.members[best].job_count++;
	return best;
}

void resource_manager_release(struct resource_manager *r, uint32_t member)
{
	if (member >= MEMBERS_COUNT_MAX || !r->membership.members[member].is_here)
		return;
	CHECK(r->membership.members[member].job_count > 0);
	r->membership.members[member].job_count--;
}

struct task_manager_gateway *resource_manager_gateway(
		const struct resource_manager *r, uint32_t member)
{
	return member < MEMBERS_COUNT_MAX ? r->gateways[member] : NULL;
}

void resource_manager_set_busy(struct resource_manager *r, uint32_t member, bool is_busy)
{
	if (member < MEMBERS_COUNT_MAX && r->membership.members[member].is_here)
		membership_set_busy(&r->membership, member, is_busy, clock_monotonic_ns());
}

uint32_t resource_manager_count(const struct resource_manager *r)
{
	return membership_count(&r->membership);
}

const struct resource_row *resource_manager_row(const struct resource_manager *r, uint32_t member)
{
	if (member >= MEMBERS_COUNT_MAX || r->members[member] == NULL)
		return NULL;
	return &r->rows[member];
}

uint32_t resource_manager_jobs(const struct resource_manager *r, uint32_t member)
{
	return resource_manager_row(r, member) == NULL ? 0
						       : r->membership.members[member].job_count;
}
