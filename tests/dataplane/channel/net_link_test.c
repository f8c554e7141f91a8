/* The link on a wire of every quality: what comes out is what went in, with bounded memory. */

#include "dataplane/channel/net_inlet.h"
#include "dataplane/wire/buf.h"
#include "tests/support/link_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

enum { STEPS_MAX = 2000000 };

static struct link_world_config clean(void)
{
	return (struct link_world_config){
			.seed = 1,
			.channel = {.queue_count = 4, .credit_count = 4},
			.channel_count = {2, 1},
			.buf_count = 60,
			.buf_bytes = 4096,
			.frame_bytes_max = 700,
			.wire_room = 256,
			.event_every = 10,
	};
}

static void run_to_the_end(const struct link_world_config *config)
{
	struct link_world *w = link_world_create(config);

	cr_assert(link_world_run(w, STEPS_MAX), "seed %lu: not all has arrived", config->seed);
	cr_assert(link_world_close(w, STEPS_MAX), "seed %lu: it does not close", config->seed);
	for (int end = 0; end < 2; end++)
		cr_assert_eq(net_link_state(w->ends[end].link), NET_LINK_CLOSED, "seed %lu: %s",
				config->seed, net_link_text(w->ends[end].link));
	link_world_destroy(w);
}

/* Some seeds more than a build has time for: WEIR_LINK_SEEDS=10000. */
static uint64_t seed_count(void)
{
	const char *text = getenv("WEIR_LINK_SEEDS");

	return text != NULL ? strtoull(text, NULL, 10) : 400;
}

/* A wire, channels and sizes drawn from the seed. */
static struct link_world_config drawn(uint64_t seed)
{
	struct link_world_config c = clean();
	struct prng p;

	prng_seed(&p, seed);
	c.seed = seed;
	c.channel.queue_count = 2 + (uint32_t)prng_below(&p, 6);
	c.channel.credit_count = 1 + (uint32_t)prng_below(&p, 12);
	c.channel_count[0] = 1 + (uint32_t)prng_below(&p, LINK_CHANNELS_MAX);
	c.channel_count[1] = (uint32_t)prng_below(&p, LINK_CHANNELS_MAX + 1);
	c.buf_count = 5 + (uint32_t)prng_below(&p, 40);
	c.buf_bytes = 256 << prng_below(&p, 6);
	c.frame_bytes_max = FRAME_BYTES_MIN + (uint32_t)prng_below(&p, 2000);
	c.wire_room = 16 + (uint32_t)prng_below(&p, 200);
	c.event_every = (uint32_t)prng_below(&p, 20);
	c.is_ipv6 = prng_below(&p, 3) == 0;
	c.faults.loss = prng_unit(&p) * 0.2;
	c.faults.duplicate = prng_unit(&p) * 0.1;
	c.faults.corrupt = prng_unit(&p) * 0.05;
	c.faults.reorder = prng_unit(&p) * 0.3;
	c.faults.delay_ns = prng_below(&p, 500000);
	if (prng_below(&p, 3) == 0) {
		c.faults.partition_every_ns = 5000000 + prng_below(&p, 50000000);
		c.faults.partition_ns = prng_below(&p, c.faults.partition_every_ns / 2);
	}
	return c;
}

Test(net_link, carries_buffers_and_events_over_a_clean_wire)
{
	struct link_world_config c = clean();
	struct link_world *w = link_world_create(&c);

	cr_assert(link_world_run(w, STEPS_MAX));
	cr_assert_eq(net_link_state(w->ends[0].link), NET_LINK_UP);
	cr_assert_eq(net_link_counters(w->ends[0].link)->bufs_out, 120);
	cr_assert_eq(net_link_counters(w->ends[1].link)->bufs_in, 120);
	cr_assert_eq(net_link_counters(w->ends[0].link)->resent, 0);
	cr_assert_gt(net_link_counters(w->ends[0].link)->rtt_ns, 0);
	link_world_destroy(w);
}

Test(net_link, carries_them_over_ipv6)
{
	struct link_world_config c = clean();

	c.is_ipv6 = true;
	run_to_the_end(&c);
}

Test(net_link, uses_jumbo_frames_when_the_path_takes_them)
{
	struct link_world_config c = clean();

	c.buf_bytes = 32768;
	c.frame_bytes_max = 9014;
	run_to_the_end(&c);
}

Test(net_link, delivers_exactly_what_was_sent_whatever_the_wire_does)
{
	for (uint64_t seed = 1; seed <= seed_count(); seed++) {
		struct link_world_config c = drawn(seed);

		run_to_the_end(&c);
	}
}

Test(net_link, tells_the_producer_that_all_was_processed)
{
	struct link_world_config c = clean();

	c.faults.loss = 0.1;
	struct link_world *w = link_world_create(&c);
	cr_assert_not(ring_channel_is_all_processed(w->ends[0].channels[0].near));
	cr_assert(link_world_run(w, STEPS_MAX));
	for (int i = 0; i < 4000; i++)
		link_world_step(w);
	cr_assert(ring_channel_is_all_processed(w->ends[0].channels[0].near));
	cr_assert(ring_channel_is_all_processed(w->ends[0].channels[1].near));
	link_world_destroy(w);
}

/* DESIGN "Channel": backpressure reaches the producer; nothing is dropped and nothing grows. */
Test(net_link, stops_the_producer_when_the_consumer_does_not_take)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.event_every = 0;
	w = link_world_create(&c);
	w->is_consuming = false;
	for (int i = 0; i < 5000; i++)
		link_world_step(w);
	cr_assert_eq(w->ends[0].channels[0].made, c.channel.queue_count + c.channel.credit_count);
	cr_assert_eq(buf_pool_used_count(w->ends[1].pool),
			2 * c.channel.credit_count + channel_buffers_max(&c.channel));

	uint64_t frames = net_link_counters(w->ends[0].link)->frames_out;
	for (int i = 0; i < 2000; i++)
		link_world_step(w);
	cr_assert_lt(net_link_counters(w->ends[0].link)->frames_out, frames + 20,
			"a stopped link is quiet");
	w->is_consuming = true;
	cr_assert(link_world_run(w, STEPS_MAX));
	cr_assert_eq(mem_wire_overflow_count(w->wire), 0);
	link_world_destroy(w);
}

/* The control lane never waits behind data. */
Test(net_link, lets_a_barrier_overtake_data_that_waits_for_the_wire)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.event_every = 0;
	c.channel_count[0] = 1;
	c.channel_count[1] = 0;
	c.channel.credit_count = 30;
	w = link_world_create(&c);
	struct link_channel *ch = &w->ends[0].channels[0];

	w->is_consuming = false;
	w->is_producing = false;
	for (uint32_t i = 0; i < 30; i++) {
		struct buf *b = buf_alloc(w->ends[0].pool);

		b->size_bytes = 4096;
		output_queue_add(&ch->queue, b);
	}
	output_queue_push(&ch->queue);
	net_endpoint_turn(w->ends[0].endpoint, w->clock.now_ns);
	output_queue_announce(&ch->queue, &(struct event){.kind = EVENT_BARRIER});
	output_queue_push(&ch->queue);

	struct event e;
	struct buf *bufs[32];
	uint32_t arrived = 0;
	for (int i = 0; i < 4 && ring_channel_take_events(ch->far, &e, 1) == 0; i++) {
		w->clock.now_ns += 1000;
		net_endpoint_turn(w->ends[0].endpoint, w->clock.now_ns);
		net_endpoint_turn(w->ends[1].endpoint, w->clock.now_ns);
		arrived += ring_channel_take(ch->far, bufs + arrived, 32 - arrived);
	}
	cr_assert_eq(e.cut, 30);
	cr_assert_lt(arrived, 30, "it came before data that was sent before it");
	for (uint32_t i = 0; i < arrived; i++)
		buf_release(bufs[i]);
	link_world_destroy(w);
}

/* Adds `count` buffers of `bytes` to a channel of end 0, by whom nothing else is made. */
static void add_bufs(struct link_world *w, uint32_t channel, uint32_t count, uint32_t bytes)
{
	struct link_channel *ch = &w->ends[0].channels[channel];

	w->is_producing = false;
	for (uint32_t i = 0; i < count; i++) {
		struct buf *b = buf_alloc(w->ends[0].pool);

		memset(b->data, 0, bytes);
		b->size_bytes = bytes;
		output_queue_add(&ch->queue, b);
	}
	output_queue_push(&ch->queue);
}

/* Frames that one turn sends of what is there. */
static uint64_t frames_of_a_turn(struct link_world *w)
{
	struct net_link *l = w->ends[0].link;
	uint64_t before = net_link_counters(l)->frames_out;

	net_endpoint_turn(w->ends[0].endpoint, w->clock.now_ns);
	return net_link_counters(l)->frames_out - before;
}

Test(net_link, puts_small_buffers_that_wait_into_one_frame)
{
	struct link_world_config c = clean();

	c.channel.credit_count = 16;
	struct link_world *w = link_world_create(&c);
	w->is_consuming = false;
	(void)frames_of_a_turn(w); /* the first word */
	add_bufs(w, 0, 1, 64);
	cr_assert_eq(frames_of_a_turn(w), 1, "one goes at once");
	add_bufs(w, 0, 6, 64);
	add_bufs(w, 1, 1, 0);
	cr_assert_eq(frames_of_a_turn(w), 1, "those of both channels: 7 * 28 + 6 * 64 bytes");
	add_bufs(w, 0, 8, 64);
	cr_assert_eq(frames_of_a_turn(w), 2, "as many as the path takes");
	add_bufs(w, 1, 1, 64);
	add_bufs(w, 1, 1, 700 - 42 - NET_FRAME_DATA_BYTES);
	add_bufs(w, 1, 1, 64);
	cr_assert_eq(frames_of_a_turn(w), 3, "a full one goes alone, and in its turn");
	net_endpoint_turn(w->ends[1].endpoint, w->clock.now_ns);
	cr_assert_eq(net_link_counters(w->ends[1].link)->bufs_in, 19);
	cr_assert_eq(net_link_counters(w->ends[0].link)->bufs_out, 19);
	link_world_destroy(w);
}

/* Else sender and receiver work by turns: all credit is under way while one of them looks on. */
Test(net_link, takes_in_a_part_of_what_waits_before_its_consumers_have_their_turn)
{
	struct link_world_config c = clean();

	c.channel_count[0] = 4;
	c.channel.credit_count = 60;
	struct link_world *w = link_world_create(&c);
	w->is_consuming = false;
	for (uint32_t i = 0; i < 4; i++)
		add_bufs(w, i, 45, 64);
	(void)frames_of_a_turn(w);
	(void)frames_of_a_turn(w); /* so many of each channel a turn */
	net_endpoint_turn(w->ends[1].endpoint, w->clock.now_ns);
	uint64_t taken = net_link_counters(w->ends[1].link)->bufs_in;
	cr_assert(taken >= 128 && taken < 180, "%lu of 180", taken);
	net_endpoint_turn(w->ends[1].endpoint, w->clock.now_ns);
	cr_assert_eq(net_link_counters(w->ends[1].link)->bufs_in, 180);
	link_world_destroy(w);
}

/* A frame that is all of a buffer of the pool is that buffer; from another pool it is copied. */
Test(net_link, keeps_the_buffer_that_a_frame_lies_in)
{
	struct channel_config config = {.queue_count = 2, .credit_count = 2};
	struct buf_pool *pools[2];
	struct ring_channel *ring;
	static struct net_inlet in;
	struct buf *lent[3], *got[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(buf_pool_from_heap(&pools[i], 64, 3), 0);
	cr_assert_eq(ring_channel_create(&ring, &config), 0);
	net_inlet_init(&in, ring, pools[0], 100);
	for (uint32_t i = 0; i < 3; i++) {
		bool is_ours = i != 1;

		lent[i] = buf_alloc(pools[is_ours ? 0 : 1]);
		memset(lent[i]->data, (int)i, 64);
		struct net_frame_piece piece = {.sequence = i % 2, .buf_bytes = 64,
				.payload_bytes = 64, .payload = lent[i]->data, .buf = lent[i],
				.first_record = BUF_NO_RECORD};
		cr_assert_eq(net_inlet_take_data(&in, &piece), 0);
		cr_assert_eq(piece.buf == NULL, i == 0, "buffer %u", i);
	}
	cr_assert_eq(net_inlet_deliver(&in), 2);
	cr_assert_eq(ring_channel_take(ring, got, 2), 2);
	cr_assert_eq(got[0], lent[0]);
	cr_assert_eq(got[0]->data[63], 0, "what came again is not taken");
	cr_assert_neq(got[1], lent[1]);
	cr_assert_eq(got[1]->data[63], 1);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(got[i]->sequence, i);
		buf_release(got[i]);
		buf_release(lent[1 + i]);
	}
	ring_channel_destroy(ring);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(buf_pool_used_count(pools[i]), 0);
		buf_pool_destroy(pools[i]);
	}
}

/* All of a lost frame comes again, and what was seen of it is not seen twice. */
Test(net_link, sends_small_buffers_again_when_their_frame_is_lost)
{
	struct link_world_config c = clean();

	c.channel_count[0] = 4;
	c.channel.credit_count = 16;
	c.buf_bytes = 256;
	c.buf_count = 3000;
	c.faults = (struct net_faults_config){.loss = 0.05, .duplicate = 0.05, .corrupt = 0.02,
			.reorder = 0.1, .delay_ns = 100000};
	struct link_world *w = link_world_create(&c);
	cr_assert(link_world_run(w, STEPS_MAX));
	const struct net_link_counters *n = net_link_counters(w->ends[0].link);
	cr_assert_gt(n->resent, 0);
	cr_assert_eq(n->bufs_out, 12000);
	link_world_destroy(w);
}

Test(net_link, goes_on_after_a_partition_shorter_than_the_time_of_patience)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.buf_count = 2000;
	c.peer_timeout_ns = 500000000;
	w = link_world_create(&c);
	for (int i = 0; i < 200; i++)
		link_world_step(w);
	net_faults_cut(w->ends[0].faults, true);
	net_faults_cut(w->ends[1].faults, true);
	uint64_t until_ns = w->clock.now_ns + 300000000;
	while (w->clock.now_ns < until_ns)
		link_world_step(w);
	cr_assert_not(link_world_is_over(w));
	net_faults_cut(w->ends[0].faults, false);
	net_faults_cut(w->ends[1].faults, false);
	cr_assert(link_world_run(w, STEPS_MAX));
	cr_assert_eq(net_link_state(w->ends[0].link), NET_LINK_UP);
	link_world_destroy(w);
}

Test(net_link, reports_a_peer_that_is_gone)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.buf_count = 2000;
	c.peer_timeout_ns = 200000000;
	w = link_world_create(&c);
	for (int i = 0; i < 200; i++)
		link_world_step(w);
	net_faults_cut(w->ends[1].faults, true);
	uint64_t cut_ns = w->clock.now_ns;
	while (!net_link_is_over(w->ends[0].link))
		link_world_step(w);
	cr_assert_eq(net_link_state(w->ends[0].link), NET_LINK_LOST);
	cr_assert_lt(w->clock.now_ns - cut_ns, 250000000);
	cr_assert_not_null(strstr(net_link_text(w->ends[0].link), "200 ms"), "%s",
			net_link_text(w->ends[0].link));
	link_world_destroy(w);
}

/* Turns of end 0 alone, of which the device takes no frame; returns when `until_ns` has come or the
 * link is over. */
static void turn_in_vain(struct link_world *w, uint64_t until_ns)
{
	while (w->clock.now_ns < until_ns && !net_link_is_over(w->ends[0].link)) {
		w->clock.now_ns += 1000000;
		mem_wire_limit(w->wire, 0, 0);
		net_endpoint_turn(w->ends[0].endpoint, w->clock.now_ns);
	}
}

/* The next attempt waits for what this one has, and would wait for as long as for a lost peer. */
Test(net_link, closes_soon_though_its_device_takes_no_frame_any_more)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.buf_count = 2000;
	w = link_world_create(&c);
	for (int i = 0; i < 200; i++)
		link_world_step(w);
	turn_in_vain(w, w->clock.now_ns + 50000000);
	uint64_t closed_ns = w->clock.now_ns;
	net_link_close(w->ends[0].link, false, closed_ns);
	cr_expect_not(net_link_is_over(w->ends[0].link), "it would say goodbye");
	turn_in_vain(w, closed_ns + 110000000);
	cr_expect_eq(net_link_state(w->ends[0].link), NET_LINK_CLOSED);
	link_world_destroy(w);
}

/* An idle link is not a lost one: it asks from time to time. */
Test(net_link, stays_up_while_nothing_flows)
{
	struct link_world_config c = clean();
	struct link_world *w;

	c.peer_timeout_ns = 100000000;
	w = link_world_create(&c);
	w->is_producing = false;
	w->step_ns_max = 1000000;
	for (int i = 0; i < 5000; i++)
		link_world_step(w);
	cr_assert_eq(net_link_state(w->ends[0].link), NET_LINK_UP);
	cr_assert_lt(net_link_counters(w->ends[0].link)->frames_out, 1000);
	link_world_destroy(w);
}

/* Frames of an earlier attempt carry another token. */
Test(net_link, takes_no_frame_of_another_pair_of_attempts)
{
	struct link_world_config c = clean();
	struct link_world *w = link_world_create(&c);
	struct net_endpoint *e = w->ends[1].endpoint;

	net_endpoint_detach(e, w->ends[1].link);
	for (int i = 0; i < 100; i++)
		link_world_step(w);
	cr_assert_gt(net_endpoint_counters(e)->unknown, 0);
	cr_assert_eq(net_endpoint_counters(e)->malformed, 0);
	cr_assert_eq(net_endpoint_attach(e, w->ends[1].link), 0);
	cr_assert(link_world_run(w, STEPS_MAX));
	link_world_destroy(w);
}

Test(net_link, counts_what_it_waits_for)
{
	struct link_world_config c = clean();
	struct link_world *w = link_world_create(&c);
	struct net_link_counters sum = {.resent = 2, .rtt_ns = 1, .window = UINT64_MAX};

	w->is_consuming = false;
	for (int i = 0; i < 2000; i++)
		link_world_step(w);
	cr_assert_geq(net_link_counters(w->ends[0].link)->credit_waits, c.channel_count[0]);
	w->is_consuming = true;
	cr_assert(link_world_run(w, STEPS_MAX));

	const struct net_link_counters *own = net_link_counters(w->ends[0].link);
	net_link_counters_add(&sum, own);
	cr_assert_eq(sum.resent, own->resent + 2);
	cr_assert_eq(sum.credit_waits, own->credit_waits);
	cr_assert_eq(sum.frames_out, own->frames_out);
	cr_assert_eq(sum.rtt_ns, own->rtt_ns, "the larger");
	cr_assert_eq(sum.window, UINT64_MAX, "the larger");
	link_world_destroy(w);
}

Test(net_link, waits_for_its_window_when_there_is_more)
{
	struct link_world_config c = clean();

	c.buf_bytes = 32768;
	c.channel.credit_count = 16;
	struct link_world *w = link_world_create(&c);
	cr_assert(link_world_run(w, STEPS_MAX));
	cr_assert_gt(net_link_counters(w->ends[0].link)->window_waits, 0);
	link_world_destroy(w);
}

static void pass(struct link_world *w, uint64_t ns)
{
	for (uint64_t until_ns = w->clock.now_ns + ns; w->clock.now_ns < until_ns;)
		link_world_step(w);
}

/* Many frames are under way, all are lost, and the window is smaller than that by now. */
Test(net_link, asks_again_at_once_when_more_is_lost_than_the_window_holds)
{
	struct link_world_config c = clean();

	c.channel_count[0] = 4;
	c.channel_count[1] = 0;
	c.buf_bytes = 32768;
	c.buf_count = 5000;
	c.channel.credit_count = 16;
	c.event_every = 0;
	struct link_world *w = link_world_create(&c);
	for (int i = 0; i < 3000; i++)
		link_world_step(w);
	for (int end = 0; end < 2; end++)
		net_faults_cut(w->ends[end].faults, true);
	pass(w, 300000000);
	cr_assert_not(link_world_is_over(w));
	for (int end = 0; end < 2; end++)
		net_faults_cut(w->ends[end].faults, false);

	uint64_t before = net_link_counters(w->ends[1].link)->bufs_in;
	pass(w, 250000000); /* two times the longest resend time, and some more */
	cr_assert_gt(net_link_counters(w->ends[1].link)->bufs_in, before + 100,
			"window %lu, %lu times", net_link_counters(w->ends[0].link)->window,
			net_link_counters(w->ends[0].link)->timeouts);
	link_world_destroy(w);
}

Test(net_link, is_refused_when_buffers_do_not_fit_the_frames_of_the_path)
{
	struct net_address a, b;
	struct net_link_config config = {.window_frames = 64, .connect_timeout_ns = 1,
			.peer_timeout_ns = 1};
	struct net_link *l;

	cr_assert_eq(net_address_parse("02:00:00:00:00:01 10.0.0.1 6125 600 512 1", &a), 0);
	cr_assert_eq(net_address_parse("02:00:00:00:00:02 10.0.0.2 6125 600 512 1", &b), 0);
	cr_assert_eq(net_path_init(&config.path, &a, &b, NULL), 0);
	cr_assert_eq(buf_pool_from_heap(&config.pool, 65535, 1), 0);
	cr_assert_eq(net_link_create(&l, &config), -EINVAL);
	buf_pool_destroy(config.pool);
}
