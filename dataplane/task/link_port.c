#include "dataplane/task/link_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/channel/net_sent.h"
#include "dataplane/channel/pointer_queue.h"

enum { PUBLISH_NS = 10000000 };
enum { OPENED_COUNT_MAX = NET_ENDPOINT_LINKS_MAX, FAILURE_BYTES = 448 };

enum close_wish { CLOSE_NOT, CLOSE_DRAINED, CLOSE_NOW };

struct remote_link {
	struct net_link *link;
	struct link_port *port;
	struct net_address peer;
	char peer_text[NET_ADDRESS_TEXT_BYTES];
	/* the control thread writes */
	_Atomic uint8_t wish; /* enum close_wish */
	bool is_started;
	bool was_told;        /* its failure */
	/* the worker writes */
	_Atomic bool is_gone;
	_Atomic bool has_failed; /* `failure` is written */
	char failure[FAILURE_BYTES];
};

struct link_port {
	struct link_port_config config;
	uint8_t gateway[6];
	struct net_endpoint *endpoint;
	struct pointer_queue *opened; /* control -> worker */
	/* the worker's */
	uint32_t link_count;
	struct remote_link *links[NET_ENDPOINT_LINKS_MAX];
	_Atomic uint32_t own_count; /* started and not yet gone */
	struct net_link_counters past;      /* of links that are gone */
	struct net_link_counters published; /* read by others, word by word */
	uint64_t published_ns;
};

/* ---- life ---- */

int link_port_create(struct link_port **out, const struct link_port_config *config)
{
	struct link_port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->config = *config;
	if (config->gateway != NULL) {
		memcpy(p->gateway, config->gateway, sizeof(p->gateway));
		p->config.gateway = p->gateway;
	}
	p->opened = pointer_queue_create(OPENED_COUNT_MAX);
	if (p->opened == NULL ||
			net_endpoint_create(&p->endpoint, config->transport, &config->local) != 0) {
		link_port_destroy(p);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

void link_port_destroy(struct link_port *p)
{
	if (p == NULL)
		return;
	CHECK(p->link_count == 0 && atomic_load(&p->own_count) == 0);
	net_endpoint_destroy(p->endpoint);
	if (p->opened != NULL)
		pointer_queue_destroy(p->opened);
	free(p);
}

const struct net_address *link_port_address(const struct link_port *p)
{
	return &p->config.local;
}

/* ---- control thread ---- */

/* A burst as large as the peer's queue must not meet another link's. */
static uint32_t window_of(const struct net_address *peer)
{
	uint32_t window = peer->window_frames / 4 * 3;

	if (window < NET_WINDOW_MIN)
		return NET_WINDOW_MIN;
	return window < NET_WINDOW_MAX ? window : NET_WINDOW_MAX;
}

static int create_link(struct link_port *p, struct remote_link *l,
		const struct remote_link_config *config)
{
	struct net_link_config link = {
			.token = config->token,
			.pool = config->pool,
			.out = config->out,
			.out_count = config->out_count,
			.in = config->in,
			.in_count = config->in_count,
			.window_frames = window_of(&config->peer),
			.connect_timeout_ns = p->config.connect_timeout_ns,
			.peer_timeout_ns = p->config.peer_timeout_ns,
	};
	int rc = net_path_init(&link.path, &p->config.local, &config->peer, p->config.gateway);

	link.path.is_udp_offloaded = p->config.transport->can_udp_checksum;
	return rc != 0 ? rc : net_link_create(&l->link, &link);
}

int link_port_create_link(struct link_port *p, struct remote_link **out,
		const struct remote_link_config *config)
{
	struct remote_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->port = p;
	l->peer = config->peer;
	net_address_print(&config->peer, l->peer_text);
	int rc = atomic_load(&p->own_count) == NET_ENDPOINT_LINKS_MAX
			? -ENOSPC
			: create_link(p, l, config);
	if (rc != 0) {
		free(l);
		return rc;
	}
	*out = l;
	return 0;
}

void remote_link_start(struct remote_link *l)
{
	l->is_started = true;
	atomic_fetch_add(&l->port->own_count, 1);
	atomic_fetch_add(l->port->config.open_count, 1);
	CHECK(pointer_queue_push(l->port->opened, l));
}

void remote_link_close(struct remote_link *l, bool must_drain)
{
	uint8_t none = CLOSE_NOT;

	atomic_compare_exchange_strong(&l->wish, &none, must_drain ? CLOSE_DRAINED : CLOSE_NOW);
}

bool remote_link_is_gone(const struct remote_link *l)
{
	return !l->is_started || atomic_load_explicit(&l->is_gone, memory_order_acquire);
}

const char *remote_link_take_failure(struct remote_link *l)
{
	if (l->was_told || !atomic_load_explicit(&l->has_failed, memory_order_acquire))
		return NULL;
	l->was_told = true;
	return l->failure;
}

void remote_link_forget(struct remote_link *l)
{
	if (l == NULL)
		return;
	net_link_destroy(l->link);
	free(l);
}

/* Counters are 64-bit words that another thread may read at any time. */
static void copy_words(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
		uint64_t word = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);

		__atomic_store_n((uint64_t *)to + i, word, __ATOMIC_RELAXED);
	}
}

void link_port_add_numbers(const struct link_port *p, struct link_numbers *sum)
{
	struct net_endpoint_counters e;
	struct net_link_counters l;

	copy_words(&e, net_endpoint_counters(p->endpoint), sizeof(e));
	copy_words(&l, &p->published, sizeof(l));
	sum->link_count += atomic_load(&p->own_count);
	sum->frames_in += e.frames_in;
	sum->frames_out += e.frames_out;
	sum->bytes_in += e.bytes_in;
	sum->bytes_out += e.bytes_out;
	sum->corrupt += e.corrupt;
	sum->malformed += e.malformed;
	sum->unclaimed += e.foreign + e.unknown + l.refused;
	sum->partial_bursts += e.bursts_out_partial;
	if (p->config.transport->counters != NULL) {
		struct transport_counters t;

		copy_words(&t, p->config.transport->counters, sizeof(t));
		sum->handed_over += t.handed;
		sum->hand_over_full += t.dropped;
	}
	sum->resent += l.resent;
	sum->late += l.late;
	sum->duplicates += l.duplicates;
	sum->credit_waits += l.credit_waits;
	sum->window_waits += l.window_waits;
	if (l.rtt_ns > sum->rtt_ns)
		sum->rtt_ns = l.rtt_ns;
	if (l.window > sum->window)
		sum->window = l.window;
}

/* ---- worker ---- */

static void take_up(struct link_port *p)
{
	struct remote_link *l;

	while (p->link_count < NET_ENDPOINT_LINKS_MAX &&
			(l = pointer_queue_pop(p->opened)) != NULL) {
		CHECK(net_endpoint_attach(p->endpoint, l->link) == 0);
		p->links[p->link_count++] = l;
	}
}

/* Of a peer that was never heard of. */
static void print_checks(
		const struct link_port *p, const struct remote_link *l, char *text, size_t size)
{
	snprintf(text, size,
			" on port %.60s; look whether both ports are on one network (cable, VLAN, "
			"weir.link.gateway), frames of %u bytes pass (weir.link.mtu), and nothing "
			"in between drops UDP port %u; or the peer restores for longer than "
			"weir.link.connect-timeout",
			p->config.port, l->peer.frame_bytes_max, l->peer.udp_port);
}

/* LOST or BROKEN: its tasks cannot go on. */
static void tell_failure(struct link_port *p, struct remote_link *l)
{
	uint64_t one = 1;

	if (atomic_load_explicit(&l->has_failed, memory_order_relaxed))
		return;
	bool was_heard = net_link_counters(l->link)->frames_in > 0;
	int at = snprintf(l->failure, sizeof(l->failure), "the link to %.80s is %s: %s",
			l->peer_text, net_link_state_name(net_link_state(l->link)),
			net_link_text(l->link));
	if (!was_heard)
		print_checks(p, l, l->failure + at, sizeof(l->failure) - (size_t)at);
	atomic_store_explicit(&l->has_failed, true, memory_order_release);
	ssize_t written = write(p->config.news_fd, &one, sizeof(one));
	(void)written; /* a counter at its limit is readable all the same */
}

/* True: it is over, and somebody has asked for that. */
static bool look_after(struct link_port *p, struct remote_link *l, uint64_t now_ns)
{
	uint8_t wish = atomic_load_explicit(&l->wish, memory_order_acquire);

	if (wish != CLOSE_NOT)
		net_link_close(l->link, wish == CLOSE_DRAINED, now_ns);
	if (!net_link_is_over(l->link))
		return false;
	if (net_link_state(l->link) != NET_LINK_CLOSED)
		tell_failure(p, l);
	return wish != CLOSE_NOT;
}

/* Adds up what the links count, from time to time. */
static void publish(struct link_port *p, uint64_t now_ns)
{
	struct net_link_counters sum = p->past;

	if (now_ns - p->published_ns < PUBLISH_NS)
		return;
	p->published_ns = now_ns;
	for (uint32_t i = 0; i < p->link_count; i++)
		net_link_counters_add(&sum, net_link_counters(p->links[i]->link));
	copy_words(&p->published, &sum, sizeof(sum));
}

static void add_to_past(struct link_port *p, struct net_link *l)
{
	net_link_counters_add(&p->past, net_link_counters(l));
	p->past.rtt_ns = 0;
	p->past.window = 0;
	p->published_ns = 0;
}

/* Frames of others come in here, or it is the one that looks for the other side. */
static bool does_serve(const struct link_port *p)
{
	return p->config.index == 0 || p->config.serves_others;
}

uint32_t link_port_turn(struct link_port *p, uint64_t now_ns)
{
	take_up(p);
	for (uint32_t i = 0; i < p->link_count; i++) {
		struct remote_link *l = p->links[i];

		if (!look_after(p, l, now_ns))
			continue;
		net_endpoint_detach(p->endpoint, l->link);
		add_to_past(p, l->link);
		p->links[i--] = p->links[--p->link_count];
		atomic_fetch_sub(&p->own_count, 1);
		atomic_fetch_sub(p->config.open_count, 1);
		atomic_store_explicit(&l->is_gone, true, memory_order_release);
	}
	publish(p, now_ns);
	/* The queue of a device whose other side has fewer is not to be touched. */
	return p->link_count > 0 || does_serve(p) ? net_endpoint_turn(p->endpoint, now_ns) : 0;
}

bool link_port_is_needed(const struct link_port *p)
{
	if (atomic_load_explicit(&p->own_count, memory_order_relaxed) > 0)
		return true;
	return does_serve(p) &&
			atomic_load_explicit(p->config.open_count, memory_order_relaxed) > 0;
}
