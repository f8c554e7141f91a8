/* A bad wire on purpose: as bad as it was told to be, the same way for the same seed. */

#include "dataplane/channel/net_faults.h"

#include "dataplane/wire/buf.h"
#include "tests/sim/mem_wire.h"
#include "tests/support/hand_clock.h"

#include <criterion/criterion.h>
#include <errno.h>

enum { FRAMES = 10000 };

struct world {
	struct hand_clock clock;
	struct mem_wire *wire;
	struct net_faults *faults;
	uint32_t arrived, damaged, out_of_order;
	uint64_t digest;
};

static void open(struct world *w, const char *text)
{
	struct net_faults_config config;
	char error[NET_FAULTS_TEXT_BYTES];

	cr_assert_eq(net_faults_parse(text, &config, error), 0, "%s", error);
	*w = (struct world){.clock = hand_clock_make(1000, 0),
			.wire = mem_wire_create(64, FRAME_BYTES_MAX)};
	cr_assert_eq(net_faults_create(&w->faults, mem_wire_end(w->wire, 0), &config,
				     &w->clock.clock),
			0);
}

static void close(struct world *w)
{
	net_faults_destroy(w->faults);
	mem_wire_destroy(w->wire);
}

static void receive(struct world *w, uint32_t *last)
{
	struct transport *t = mem_wire_end(w->wire, 1);
	struct frame_in in[64];
	uint32_t count = t->receive(t, in, 64);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number;

		memcpy(&number, in[i].bytes, 4);
		w->damaged += in[i].bytes[4] != 0x5a || in[i].bytes[5] != 0xa5;
		w->out_of_order += number < *last;
		w->digest = w->digest * 31 + number;
		*last = number;
	}
	w->arrived += count;
	t->release(t, in, count);
}

/* Sends numbered frames, some with a body that has an owner. */
static void send_all(struct world *w)
{
	struct transport *t = net_faults_transport(w->faults);
	struct buf_pool *pool;
	uint32_t last = 0;

	cr_assert_eq(buf_pool_from_heap(&pool, 256, 1), 0);
	struct buf *b = buf_alloc(pool);
	b->data[0] = 0xa5;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct frame_out f = {.head_bytes = 5, .body = b->data, .body_bytes = 1,
				.owner = b};

		memcpy(f.head, &i, 4);
		f.head[4] = 0x5a;
		buf_retain(b);
		cr_assert_eq(t->send(t, &f, 1), 1);
		w->clock.now_ns += 1000;
		receive(w, &last);
	}
	for (int i = 0; i < 1000; i++) {
		w->clock.now_ns += 1000;
		t->receive(t, NULL, 0);
		receive(w, &last);
	}
	cr_assert_eq(atomic_load(&b->refs), 1, "every reference is back");
	buf_release(b);
	buf_pool_destroy(pool);
}

Test(net_faults, passes_all_when_told_nothing)
{
	struct world w;

	open(&w, "seed=3");
	send_all(&w);
	cr_assert_eq(w.arrived, FRAMES);
	cr_assert_eq(w.out_of_order + w.damaged, 0);
	close(&w);
}

Test(net_faults, loses_repeats_and_damages_the_shares_it_was_told)
{
	struct world w;

	open(&w, "seed=3,loss=0.2,duplicate=0.05,corrupt=0.01");
	send_all(&w);
	const struct net_faults_counters *c = net_faults_counters(w.faults);
	cr_assert(c->lost > 0.18 * FRAMES && c->lost < 0.22 * FRAMES);
	cr_assert(c->repeated > 0.04 * FRAMES && c->repeated < 0.06 * FRAMES);
	cr_assert(c->damaged > 0.005 * FRAMES && c->damaged < 0.02 * FRAMES);
	cr_assert_eq(w.arrived, FRAMES - c->lost + c->repeated);
	cr_assert_gt(w.damaged, 0);
	close(&w);
}

Test(net_faults, reorders_by_holding_back_and_loses_nothing_by_that)
{
	struct world w;

	open(&w, "seed=3,reorder=0.1,delay=50us");
	send_all(&w);
	cr_assert_eq(w.arrived, FRAMES);
	cr_assert_gt(w.out_of_order, FRAMES / 20);
	close(&w);
}

Test(net_faults, does_the_same_again_for_the_same_seed)
{
	struct world a, b, c;

	open(&a, "seed=9,loss=0.1,reorder=0.1,delay=20us");
	open(&b, "seed=9,loss=0.1,reorder=0.1,delay=20us");
	open(&c, "seed=10,loss=0.1,reorder=0.1,delay=20us");
	send_all(&a);
	send_all(&b);
	send_all(&c);
	cr_assert_eq(a.digest, b.digest);
	cr_assert_neq(a.digest, c.digest);
	close(&a);
	close(&b);
	close(&c);
}

Test(net_faults, cuts_the_wire_for_a_while)
{
	struct world w;

	open(&w, "partition=1ms/300us");
	send_all(&w);
	cr_assert(w.arrived > 0.68 * FRAMES && w.arrived < 0.72 * FRAMES);
	close(&w);
}

/* As on a cable: they were on their way. */
Test(net_faults, loses_what_it_holds_back_when_its_time_comes_within_a_cut)
{
	struct frame_out f = {.head_bytes = 64};
	struct world w;
	uint32_t last = 0;

	open(&w, "delay=50us");
	struct transport *t = net_faults_transport(w.faults);
	for (uint32_t i = 0; i < 10; i++)
		cr_assert_eq(t->send(t, &f, 1), 1);
	net_faults_cut(w.faults, true);
	w.clock.now_ns += 60000;
	t->receive(t, NULL, 0);
	net_faults_cut(w.faults, false);
	t->receive(t, NULL, 0);
	receive(&w, &last);
	cr_assert_eq(w.arrived, 0);
	cr_assert_eq(net_faults_counters(w.faults)->cut_off, 10);
	close(&w);
}

Test(net_faults, says_what_it_would_take)
{
	const char *bad[] = {"loss", "loss=2", "loss=x", "delay=-1", "partition=5s",
			"partition=1s/2s", "colour=red", "seed="};
	struct net_faults_config config;
	char error[NET_FAULTS_TEXT_BYTES];

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(net_faults_parse(bad[i], &config, error), -EINVAL, "%s", bad[i]);
		cr_assert_not_null(strstr(error, "partition=EVERY/FOR"));
	}
}
