#include "tests/support/link_world.h"

#include "dataplane/base/check.h"
#include "dataplane/wire/buf.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_SLACK = 0, NEVER_NS_SHIFT = 42 };

/* ---- what a channel carries ---- */

static uint32_t size_of(const struct link_world *w, uint32_t channel, uint64_t sequence)
{
	struct prng p;

	prng_seed(&p, w->config.seed * 31 + channel * 7919 + sequence);
	switch (prng_below(&p, 4)) {
	case 0:
		return w->config.buf_bytes;
	case 1:
		return (uint32_t)prng_below(&p, 20);
	default:
		return (uint32_t)prng_below(&p, w->config.buf_bytes + 1);
	}
}

static uint8_t byte_of(uint32_t channel, uint64_t sequence, uint32_t at)
{
	return (uint8_t)(channel * 131 + sequence * 17 + at * 7 + (at >> 8));
}

static void make_buf(struct link_world *w, struct link_end *end, struct link_channel *c)
{
	struct buf *b = buf_alloc(end->pool);

	cr_assert_not_null(b, "seed %lu: the pool is used up", w->config.seed);
	b->size_bytes = size_of(w, c->id, c->made);
	for (uint32_t i = 0; i < b->size_bytes; i++)
		b->data[i] = byte_of(c->id, c->made, i);
	b->first_record = b->size_bytes > 3 ? 3 : BUF_NO_RECORD;
	b->watermark = (int64_t)c->made * 10;
	output_queue_add(&c->queue, b);
	c->made++;
}

static void make_event(struct link_world *w, struct link_channel *c, enum event_kind kind)
{
	/* limits.h: so many are under way in one channel at most. */
	if (c->events_made - c->consumed_events >= 2 * CHECKPOINTS_IN_FLIGHT_MAX + 2 ||
			!output_queue_has_room(&c->queue, kind))
		return;
	c->events_made++;
	c->cuts[c->events_made % 4096] = c->made;
	output_queue_announce(&c->queue,
			&(struct event){.kind = (uint8_t)kind,
					.checkpoint_id = c->events_made,
					.timestamp_ms = 77,
					.options = {.alignment = prng_below(&w->prng, 2) == 0
									? ALIGNMENT_ALIGNED
									: ALIGNMENT_UNALIGNED,
							.aligned_timeout_ms =
									ALIGNED_TIMEOUT_NONE}});
	c->is_ended = kind == EVENT_END_OF_PARTITION;
}

static void produce(struct link_world *w, struct link_end *end, struct link_channel *c)
{
	uint32_t burst = (uint32_t)prng_below(&w->prng, 4);

	for (; burst > 0 && w->is_producing && !c->is_ended; burst--) {
		if (w->config.event_every > 0 &&
				prng_below(&w->prng, w->config.event_every) == 0)
			make_event(w, c, EVENT_BARRIER);
		if (c->made == w->config.buf_count)
			make_event(w, c, EVENT_END_OF_PARTITION);
		else if (output_queue_count(&c->queue) < w->config.channel.queue_count)
			make_buf(w, end, c);
	}
	output_queue_push(&c->queue);
}

/* ---- what comes out ---- */

static void check_buf(const struct link_world *w, const struct link_channel *c, const struct buf *b)
{
	uint64_t seed = w->config.seed;

	cr_assert_eq(b->sequence, c->position, "seed %lu: sequence", seed);
	cr_assert_eq(b->size_bytes, size_of(w, c->id, b->sequence), "seed %lu: size", seed);
	cr_assert_eq(b->watermark, (int64_t)b->sequence * 10, "seed %lu: watermark", seed);
	for (uint32_t i = 0; i < b->size_bytes; i++)
		cr_assert_eq(b->data[i], byte_of(c->id, b->sequence, i), "seed %lu: bytes", seed);
	/* What it names is in, and it is not across a cut. */
	cr_assert((int32_t)(b->announcement - c->announced) <= 0, "seed %lu: order", seed);
	cr_assert((int32_t)(b->announcement - c->consumed_events) >= 0, "seed %lu: cut", seed);
	cr_assert(c->event_count == 0 || c->events[0].cut > c->position, "seed %lu: cut", seed);
}

static void take(struct link_world *w, struct link_channel *c)
{
	struct event events[CHANNEL_CONTROL_MAX];
	uint64_t known = c->position; /* before now: what might have been processed */
	uint32_t room = CHANNEL_CONTROL_MAX - c->event_count;

	for (uint32_t i = 0; i < c->held &&
			(int32_t)(c->bufs[i]->announcement - c->announced) <= 0; i++)
		known++;
	c->held += ring_channel_take(c->far, c->bufs + c->held, CHANNEL_BUFFERS_MAX - c->held);
	cr_assert(c->held <= w->config.channel.credit_count, "seed %lu: credit", w->config.seed);

	uint32_t count = ring_channel_take_events(c->far, events, room);
	for (uint32_t i = 0; i < count; i++) {
		cr_assert_eq(events[i].announcement, ++c->announced, "seed %lu: event",
				w->config.seed);
		cr_assert_eq(events[i].cut, c->cuts[c->announced % 4096], "seed %lu: cut",
				w->config.seed);
		cr_assert_eq(events[i].checkpoint_id, c->announced, "seed %lu", w->config.seed);
		/* What the sender keeps is not seen before the barrier that overtook it. */
		cr_assert_leq(known, events[i].boundary, "seed %lu: boundary", w->config.seed);
		c->events[c->event_count++] = events[i];
	}
}

static bool consume_one(struct link_world *w, struct link_channel *c)
{
	if (c->event_count > 0 && c->events[0].cut == c->position) {
		c->consumed_events++;
		if (c->events[0].kind == EVENT_END_OF_PARTITION) {
			ring_channel_all_processed(c->far);
			c->is_over = true;
		}
		c->event_count--;
		memmove(c->events, c->events + 1, c->event_count * sizeof(c->events[0]));
		return true;
	}
	if (c->held == 0 || (int32_t)(c->bufs[0]->announcement - c->announced) > 0)
		return false;
	check_buf(w, c, c->bufs[0]);
	buf_release(c->bufs[0]);
	c->held--;
	memmove(c->bufs, c->bufs + 1, c->held * sizeof(c->bufs[0]));
	c->position++;
	ring_channel_grant(c->far, c->position);
	return true;
}

static void consume(struct link_world *w, struct link_channel *c)
{
	uint32_t burst = (uint32_t)prng_below(&w->prng, 5);

	if (!w->is_consuming || c->is_over)
		return;
	take(w, c);
	while (burst-- > 0 && consume_one(w, c))
		continue;
}

/* ---- steps ---- */

static void turn(struct link_world *w, int end)
{
	struct link_end *e = &w->ends[end];

	if (prng_below(&w->prng, 8) == 0)
		mem_wire_limit(w->wire, end, (uint32_t)prng_below(&w->prng, 5));
	net_endpoint_turn(e->endpoint, w->clock.now_ns);

	uint32_t used = buf_pool_used_count(e->pool);
	e->used_max = used > e->used_max ? used : e->used_max;
}

void link_world_step(struct link_world *w)
{
	w->clock.now_ns += 1 + prng_below(&w->prng, w->step_ns_max);
	for (int end = 0; end < 2; end++) {
		struct link_end *e = &w->ends[end];

		for (uint32_t i = 0; i < e->channel_count; i++)
			produce(w, e, &e->channels[i]);
		if (prng_below(&w->prng, 4) > 0)
			turn(w, end);
		for (uint32_t i = 0; i < e->channel_count; i++)
			consume(w, &e->channels[i]);
	}
}

bool link_world_is_over(const struct link_world *w)
{
	for (int end = 0; end < 2; end++) {
		for (uint32_t i = 0; i < w->ends[end].channel_count; i++) {
			if (!w->ends[end].channels[i].is_over)
				return false;
		}
	}
	return true;
}

bool link_world_run(struct link_world *w, uint32_t steps_max)
{
	for (; steps_max > 0 && !link_world_is_over(w); steps_max--)
		link_world_step(w);
	return link_world_is_over(w);
}

bool link_world_close(struct link_world *w, uint32_t steps_max)
{
	for (int end = 0; end < 2; end++)
		net_link_close(w->ends[end].link, true, w->clock.now_ns);
	for (; steps_max > 0; steps_max--) {
		if (net_link_is_over(w->ends[0].link) && net_link_is_over(w->ends[1].link))
			return true;
		link_world_step(w);
	}
	return false;
}

/* ---- life ---- */

static struct net_address address_of(const struct link_world *w, int end)
{
	char text[NET_ADDRESS_TEXT_BYTES];
	struct net_address a;

	snprintf(text, sizeof(text), "02:00:00:00:00:0%d %s%d 6125 %u 512 1", end + 1,
			w->config.is_ipv6 ? "fd00::" : "10.0.0.", end + 1,
			w->config.frame_bytes_max);
	cr_assert_eq(net_address_parse(text, &a), 0);
	return a;
}

static void create_channels(struct link_world *w, int end)
{
	struct link_end *e = &w->ends[end];

	e->channel_count = w->config.channel_count[end];
	for (uint32_t i = 0; i < e->channel_count; i++) {
		struct link_channel *c = &e->channels[i];

		c->id = (uint32_t)end * LINK_CHANNELS_MAX + i;
		cr_assert_eq(ring_channel_create(&c->near, &w->config.channel), 0);
		cr_assert_eq(ring_channel_create(&c->far, &w->config.channel), 0);
		output_queue_init(&c->queue, c->near);
	}
}

/* Exactly what its channels may hold: one buffer more is a bug. */
static void create_pool(struct link_world *w, int end)
{
	uint32_t count = w->ends[end].channel_count * channel_buffers_max(&w->config.channel) +
			w->ends[1 - end].channel_count * w->config.channel.credit_count;

	w->ends[end].pool = w->config.pool;
	if (w->config.pool == NULL)
		cr_assert_eq(buf_pool_from_heap(&w->ends[end].pool, w->config.buf_bytes,
					     count + POOL_SLACK),
				0);
}

static void create_link(struct link_world *w, int end)
{
	struct link_end *e = &w->ends[end], *peer = &w->ends[1 - end];
	struct net_address local = address_of(w, end), remote = address_of(w, 1 - end);
	struct ring_channel *out[LINK_CHANNELS_MAX], *in[LINK_CHANNELS_MAX];
	uint64_t never_ns = 1ull << NEVER_NS_SHIFT;
	struct net_link_config config = {
			.token = LINK_TOKEN,
			.pool = e->pool,
			.out = out,
			.out_count = e->channel_count,
			.in = in,
			.in_count = peer->channel_count,
			.window_frames = 256,
			.connect_timeout_ns = never_ns,
			.peer_timeout_ns = w->config.peer_timeout_ns > 0 ? w->config.peer_timeout_ns
									  : never_ns,
	};

	for (uint32_t i = 0; i < e->channel_count; i++)
		out[i] = e->channels[i].near;
	for (uint32_t i = 0; i < peer->channel_count; i++)
		in[i] = peer->channels[i].far;
	cr_assert_eq(net_path_init(&config.path, &local, &remote, NULL), 0);
	w->config.faults.seed = w->config.seed * 2 + (uint64_t)end;
	struct transport *wire = w->config.transports[end] != NULL ? w->config.transports[end]
								    : mem_wire_end(w->wire, end);
	cr_assert_eq(net_faults_create(&e->faults, wire, &w->config.faults, &w->clock.clock), 0);
	cr_assert_eq(net_endpoint_create(&e->endpoint, net_faults_transport(e->faults), &local), 0);
	cr_assert_eq(net_link_create(&e->link, &config), 0);
	cr_assert_eq(net_endpoint_attach(e->endpoint, e->link), 0);
}

struct link_world *link_world_create(const struct link_world_config *config)
{
	struct link_world *w = calloc(1, sizeof(*w));

	cr_assert_not_null(w);
	w->config = *config;
	w->clock = hand_clock_make(1000000, 0);
	w->step_ns_max = 20000;
	w->is_producing = true;
	w->is_consuming = true;
	prng_seed(&w->prng, config->seed);
	w->wire = mem_wire_create(config->wire_room, config->frame_bytes_max);
	for (int end = 0; end < 2; end++)
		create_channels(w, end);
	for (int end = 0; end < 2; end++)
		create_pool(w, end);
	for (int end = 0; end < 2; end++)
		create_link(w, end);
	return w;
}

void link_world_destroy(struct link_world *w)
{
	for (int end = 0; end < 2; end++) {
		struct link_end *e = &w->ends[end];

		net_endpoint_detach(e->endpoint, e->link);
		net_link_destroy(e->link);
		net_endpoint_destroy(e->endpoint);
		net_faults_destroy(e->faults);
	}
	for (int end = 0; end < 2; end++) {
		for (uint32_t i = 0; i < w->ends[end].channel_count; i++) {
			struct link_channel *c = &w->ends[end].channels[i];

			output_queue_clear(&c->queue);
			for (uint32_t k = 0; k < c->held; k++)
				buf_release(c->bufs[k]);
			ring_channel_destroy(c->near);
			ring_channel_destroy(c->far);
		}
	}
	for (int end = 0; end < 2 && w->config.pool == NULL; end++)
		buf_pool_destroy(w->ends[end].pool);
	mem_wire_destroy(w->wire);
	free(w);
}
