#include "dataplane/channel/net_link_internal.h"

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	PINGS = 4,            /* in the time after which a silent peer is lost */
	CLOSE_NS = 300000000, /* how long an end waits to be heard that it closes */
	BYE_NS = 100000000,   /* how long one that does not drain waits to say that it closes */
};

static struct net_link *link_of(struct net_sent_listener *l)
{
	return (struct net_link *)((char *)l - offsetof(struct net_link, listener));
}

/* ---- what became of a frame ---- */

static const struct net_sent_piece *piece_at(
		const struct net_link *l, const struct net_sent_record *r, uint32_t index)
{
	return &l->pieces[(r->pieces_at + index) % NET_LINK_PIECES_MAX];
}

static void pieces_acked(struct net_link *l, const struct net_sent_record *r)
{
	for (uint32_t i = 0; i < r->piece_count; i++) {
		const struct net_sent_piece *p = piece_at(l, r, i);

		net_outlet_acked_piece(&l->outlets[p->channel], p->sequence, p->index);
	}
}

static void pieces_lost(struct net_link *l, const struct net_sent_record *r)
{
	for (uint32_t i = 0; i < r->piece_count; i++) {
		const struct net_sent_piece *p = piece_at(l, r, i);

		net_outlet_lost_piece(&l->outlets[p->channel], p->sequence, p->index);
	}
	l->counters.resent += r->piece_count;
}

static void on_acked(struct net_sent_listener *listener, const struct net_sent_record *r)
{
	struct net_link *l = link_of(listener);

	if (r->kind == NET_FRAME_DATA)
		pieces_acked(l, r);
	else if (r->kind == NET_FRAME_EVENT)
		net_outlet_acked_event(&l->outlets[r->channel], r->sequence);
	else if (r->kind == NET_FRAME_BYE && l->state == NET_LINK_CLOSING)
		l->state = NET_LINK_CLOSED;
}

static void on_lost(struct net_sent_listener *listener, const struct net_sent_record *r)
{
	struct net_link *l = link_of(listener);

	switch (r->kind) {
	case NET_FRAME_DATA:
		pieces_lost(l, r);
		break;
	case NET_FRAME_EVENT:
		net_outlet_lost_event(&l->outlets[r->channel], r->sequence);
		break;
	case NET_FRAME_CREDIT:
		/* Which channels it spoke of is not remembered: all are told again. */
		for (uint32_t i = 0; i < l->config.in_count; i++)
			net_inlet_forget_told(&l->inlets[i]);
		break;
	case NET_FRAME_PING:
		l->must_ping = true;
		break;
	case NET_FRAME_BYE:
		l->must_say_bye = true;
		break;
	}
}

/* ---- life ---- */

static bool is_sane(const struct net_link_config *config, uint32_t payload_max)
{
	return config->out_count <= NET_LINK_CHANNELS_MAX &&
			config->in_count <= NET_LINK_CHANNELS_MAX &&
			config->window_frames >= NET_WINDOW_MIN &&
			config->window_frames <= NET_WINDOW_MAX && config->peer_timeout_ns > 0 &&
			config->connect_timeout_ns > 0 &&
			config->pool->capacity_bytes <= payload_max * NET_PIECES_MAX;
}

int net_link_create(struct net_link **out, const struct net_link_config *config)
{
	uint32_t payload_max = net_frame_payload_max(&config->path);

	if (!is_sane(config, payload_max))
		return -EINVAL;

	struct net_link *l = lines_alloc(sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->outlets = lines_alloc(config->out_count * sizeof(*l->outlets));
	l->inlets = lines_alloc(config->in_count * sizeof(*l->inlets));
	if (l->outlets == NULL || l->inlets == NULL) {
		free(l->outlets);
		free(l->inlets);
		free(l);
		return -ENOMEM;
	}
	l->config = *config;
	l->payload_max = payload_max;
	l->listener = (struct net_sent_listener){on_acked, on_lost};
	net_sent_init(&l->sent, config->window_frames, &l->listener);
	for (uint32_t i = 0; i < config->out_count; i++)
		net_outlet_init(&l->outlets[i], config->out[i], payload_max);
	for (uint32_t i = 0; i < config->in_count; i++)
		net_inlet_init(&l->inlets[i], config->in[i], config->pool, payload_max);
	*out = l;
	return 0;
}

void net_link_destroy(struct net_link *l)
{
	if (l == NULL)
		return;
	for (uint32_t i = 0; i < l->config.out_count; i++)
		net_outlet_clear(&l->outlets[i]);
	for (uint32_t i = 0; i < l->config.in_count; i++)
		net_inlet_clear(&l->inlets[i]);
	free(l->outlets);
	free(l->inlets);
	free(l);
}

static void end_as(struct net_link *l, enum net_link_state state, const char *text)
{
	if (net_link_is_over(l))
		return;
	l->state = state;
	snprintf(l->text, sizeof(l->text), "%s", text);
}

/* ---- receive ---- */

static void take_credits(struct net_link *l, const struct net_frame *f)
{
	for (uint32_t i = 0; i < f->credit_count; i++) {
		struct net_credit credit = net_frame_credit_at(f, i);

		if (credit.channel < l->config.out_count)
			net_outlet_credit(&l->outlets[credit.channel], &credit);
	}
}

/* Those that find room; what comes again is known by its number in its channel. */
static int take_pieces(struct net_link *l, struct net_frame *f)
{
	const uint8_t *at = f->pieces;
	struct net_frame_piece piece;
	int rc = 0;

	while (net_frame_next_piece(f, &at, &piece)) {
		int one = piece.channel < l->config.in_count
				? net_inlet_take_data(&l->inlets[piece.channel], &piece)
				: -EPROTO;

		f->buf = piece.buf;
		if (one == -EPROTO)
			return one;
		if (one != 0)
			rc = one;
	}
	return rc;
}

/* 0: all of it is here.  -EAGAIN: it found no room.  -EPROTO. */
static int take_content(struct net_link *l, struct net_frame *f)
{
	switch (f->kind) {
	case NET_FRAME_DATA:
		return take_pieces(l, f);
	case NET_FRAME_EVENT:
		return f->channel < l->config.in_count
				? net_inlet_take_event(&l->inlets[f->channel], f)
				: -EPROTO;
	case NET_FRAME_CREDIT:
		take_credits(l, f);
		return 0;
	case NET_FRAME_BYE:
		l->has_peer_closed = true;
		return 0;
	default:
		return 0;
	}
}

static void receive_numbered(struct net_link *l, struct net_frame *f)
{
	enum net_arrival arrival = net_received_look(&l->received, f->number, f->age);

	if (arrival == NET_ARRIVAL_SEEN) {
		l->counters.duplicates++;
		return;
	}
	if (arrival == NET_ARRIVAL_BEYOND) {
		l->counters.refused++;
		return;
	}

	int rc = take_content(l, f);
	if (rc == 0) {
		net_received_mark(&l->received, f->number);
		return;
	}
	l->counters.refused++;
	if (rc == -EPROTO)
		end_as(l, NET_LINK_BROKEN,
				"the peer sends what was not agreed on (taskmanager.memory."
				"segment-size and the link's frame size must be the same at both "
				"ends)");
}

void net_link_receive(struct net_link *l, struct net_frame *f, uint32_t size, uint64_t now_ns)
{
	CHECK(f->token == l->config.token);
	l->counters.frames_in++;
	l->counters.bytes_in += size;
	l->heard_ns = now_ns;
	if (l->state == NET_LINK_CONNECTING)
		l->state = NET_LINK_UP;
	if (l->state == NET_LINK_LOST || l->state == NET_LINK_BROKEN)
		return;
	if (f->is_bare && !l->config.path.has_bare_bodies)
		l->counters.refused++;
	else if (f->kind != NET_FRAME_ACK)
		receive_numbered(l, f);
	else if (net_sent_acknowledge(&l->sent, f, now_ns) != 0)
		l->counters.refused++;
}

/* ---- pump ---- */

static void check_peer(struct net_link *l, uint64_t now_ns)
{
	bool is_new = l->state == NET_LINK_CONNECTING;
	uint64_t limit = is_new ? l->config.connect_timeout_ns : l->config.peer_timeout_ns;
	uint64_t since = is_new ? l->began_ns : l->heard_ns;
	char text[NET_LINK_TEXT_BYTES];

	if (l->has_peer_closed)
		return;
	if (now_ns > since && now_ns - since > limit) {
		snprintf(text, sizeof(text), "nothing was %sheard of the peer for %" PRIu64 " ms",
				is_new ? "ever " : "", (now_ns - since) / 1000000);
		end_as(l, NET_LINK_LOST, text);
		return;
	}
	if (now_ns > since && now_ns - since > limit / PINGS &&
			now_ns - l->pinged_ns > limit / PINGS)
		l->must_ping = true;
}

static bool is_drained(const struct net_link *l)
{
	for (uint32_t i = 0; i < l->config.out_count; i++) {
		if (!net_outlet_is_drained(&l->outlets[i]))
			return false;
	}
	return true;
}

/* Says goodbye when all that must be said before is known to the peer. */
static void poll_close(struct net_link *l, uint64_t now_ns)
{
	if (l->has_peer_closed) {
		l->state = NET_LINK_CLOSED;
		return;
	}
	if (!l->has_said_bye && (!l->must_drain || is_drained(l))) {
		l->has_said_bye = true;
		l->must_say_bye = true;
		l->closed_ns = now_ns;
	}
	if (!l->has_said_bye || (l->must_drain && l->must_say_bye))
		return;
	/* Who does not drain waits for no answer, nor long for a device that takes no frame: the
	 * next attempt needs what this one has, and a word that is lost shows as silence. */
	uint64_t patience_ns = l->must_drain ? CLOSE_NS : l->must_say_bye ? BYE_NS : 0;
	if (now_ns - l->closed_ns >= patience_ns)
		l->state = NET_LINK_CLOSED;
}

static uint32_t pump_inlets(struct net_link *l)
{
	uint32_t moved = 0;

	for (uint32_t i = 0; i < l->config.in_count; i++) {
		struct net_inlet *in = &l->inlets[i];
		uint64_t before = in->pushed;

		moved += net_inlet_deliver(in);
		l->counters.bufs_in += in->pushed - before;
		if (in->is_broken)
			end_as(l, NET_LINK_BROKEN, "the peer announces events out of line");
	}
	return moved;
}

static uint32_t pump_outlets(struct net_link *l)
{
	uint32_t moved = 0;

	for (uint32_t i = 0; i < l->config.out_count; i++) {
		struct net_outlet *o = &l->outlets[i];
		bool was_out = o->is_out_of_credit;

		moved += net_outlet_collect(o);
		l->counters.credit_waits += o->is_out_of_credit && !was_out;
	}
	return moved;
}

uint32_t net_link_pump(struct net_link *l, uint64_t now_ns)
{
	uint32_t moved = 0;

	if (net_link_is_over(l))
		return 0;
	if (l->began_ns == 0) {
		l->began_ns = now_ns > 0 ? now_ns : 1;
		l->must_ping = true; /* the first word, sent again until it is heard */
	}
	moved += pump_inlets(l);
	moved += pump_outlets(l);
	/* The window may be too small by now for what was lost to go out again. */
	if (net_sent_poll(&l->sent, now_ns))
		l->must_ping = true;
	check_peer(l, now_ns);
	if (l->state == NET_LINK_CLOSING)
		poll_close(l, now_ns);
	return moved;
}

/* ---- end and questions ---- */

void net_link_close(struct net_link *l, bool must_drain, uint64_t now_ns)
{
	if (net_link_is_over(l) || l->state == NET_LINK_CLOSING)
		return;
	if (l->state == NET_LINK_CONNECTING)
		l->heard_ns = now_ns;
	l->state = NET_LINK_CLOSING;
	l->must_drain = must_drain;
	poll_close(l, now_ns);
}

bool net_link_is_over(const struct net_link *l)
{
	return l->state == NET_LINK_CLOSED || l->state == NET_LINK_LOST ||
			l->state == NET_LINK_BROKEN;
}

uint64_t net_link_token(const struct net_link *l)
{
	return l->config.token;
}

enum net_link_state net_link_state(const struct net_link *l)
{
	return l->state;
}

const char *net_link_state_name(enum net_link_state state)
{
	static const char *const names[] = {
			[NET_LINK_CONNECTING] = "connecting",
			[NET_LINK_UP] = "up",
			[NET_LINK_CLOSING] = "closing",
			[NET_LINK_CLOSED] = "closed",
			[NET_LINK_LOST] = "lost",
			[NET_LINK_BROKEN] = "broken",
	};

	CHECK((uint32_t)state < sizeof(names) / sizeof(names[0]));
	return names[state];
}

const char *net_link_text(const struct net_link *l)
{
	return l->text;
}

const struct net_link_counters *net_link_counters(struct net_link *l)
{
	l->counters.late = l->sent.late_count;
	l->counters.timeouts = l->sent.timeout_count;
	l->counters.rtt_ns = l->sent.rtt_ns;
	l->counters.window = l->sent.window;
	return &l->counters;
}

void net_link_counters_add(struct net_link_counters *sum, const struct net_link_counters *more)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)more;

	static_assert(offsetof(struct net_link_counters, window) + sizeof(uint64_t) ==
			sizeof(struct net_link_counters), "rtt_ns and window are the last two");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to) - 2; i++)
		to[i] += from[i];
	if (more->rtt_ns > sum->rtt_ns)
		sum->rtt_ns = more->rtt_ns;
	if (more->window > sum->window)
		sum->window = more->window;
}
