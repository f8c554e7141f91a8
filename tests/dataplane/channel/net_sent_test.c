/* What is held lost, when it is sent again, and how much may be under way. */

#include "dataplane/channel/net_sent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

enum { MS = 1000000 };

struct world {
	struct net_sent_listener listener;
	uint32_t acked[4096], lost[4096];
	uint32_t acked_count, lost_count;
	struct net_sent sent;
};

static void on_acked(struct net_sent_listener *l, const struct net_sent_record *r)
{
	struct world *w = (struct world *)l;

	w->acked[w->acked_count++] = r->sequence;
}

static void on_lost(struct net_sent_listener *l, const struct net_sent_record *r)
{
	struct world *w = (struct world *)l;

	w->lost[w->lost_count++] = r->sequence;
}

static struct world *create(void)
{
	struct world *w = calloc(1, sizeof(*w));

	w->listener = (struct net_sent_listener){on_acked, on_lost};
	net_sent_init(&w->sent, 512, &w->listener);
	return w;
}

static void send(struct world *w, uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++)
		net_sent_add(&w->sent,
				&(struct net_sent_record){.kind = NET_FRAME_DATA,
						.sequence = w->sent.next},
				now_ns);
}

/* Acknowledges from `base` on by bits. */
static int acknowledge(struct world *w, uint32_t base, uint64_t word, uint64_t now_ns)
{
	struct net_frame f = {.base = base, .word_count = 1, .words = (const uint8_t *)&word};

	return net_sent_acknowledge(&w->sent, &f, now_ns);
}

Test(net_sent, measures_the_round_trip_and_resends_after_it)
{
	struct world *w = create();

	send(w, 1, 100 * MS);
	cr_assert_eq(acknowledge(w, 0, 1, 110 * MS), 0);
	cr_assert_eq(w->sent.rtt_ns, 10 * MS);
	cr_assert_eq(net_sent_resend_ns(&w->sent), 30 * MS, "RFC 6298: R + 4 * R/2");
	send(w, 1, 200 * MS);
	net_sent_poll(&w->sent, 229 * MS);
	cr_assert_eq(w->lost_count, 0);
	net_sent_poll(&w->sent, 231 * MS);
	cr_assert_eq(w->lost_count, 1);
	cr_assert_eq(w->lost[0], 1);
	free(w);
}

Test(net_sent, waits_twice_as_long_each_time_and_forgets_that_when_heard)
{
	struct world *w = create();
	uint64_t first = net_sent_resend_ns(&w->sent);

	send(w, 1, 1);
	net_sent_poll(&w->sent, 1 + first);
	cr_assert_eq(net_sent_resend_ns(&w->sent), 2 * first);
	send(w, 1, 1 + first);
	net_sent_poll(&w->sent, 1 + first + 2 * first);
	cr_assert_eq(net_sent_resend_ns(&w->sent), 4 * first);
	send(w, 1, 40 * MS);
	cr_assert_eq(acknowledge(w, 0, 4, 40 * MS + 10), 0);
	cr_assert_leq(net_sent_resend_ns(&w->sent), first);
	free(w);
}

Test(net_sent, holds_a_frame_lost_when_enough_later_ones_have_arrived)
{
	struct world *w = create();

	send(w, 20, 1);
	cr_assert_eq(acknowledge(w, 0, 0x0fe, 2), 0); /* 1..7 */
	cr_assert_eq(w->lost_count, 0);
	cr_assert_eq(acknowledge(w, 0, 0xfffe, 3), 0); /* 1..15 */
	cr_assert_eq(w->lost_count, 1);
	cr_assert_eq(w->lost[0], 0);
	cr_assert_eq(w->acked_count, 15, "each is heard of once");
	cr_assert_eq(w->sent.in_flight, 4);
	free(w);
}

Test(net_sent, learns_that_the_wire_reorders)
{
	struct world *w = create();
	uint32_t before = w->sent.reordering;

	send(w, 20, 1);
	cr_assert_eq(acknowledge(w, 0, 0xfffe, 3), 0);
	cr_assert_eq(acknowledge(w, 0, 0xffff, 4), 0);
	cr_assert_eq(w->sent.late_count, 1);
	cr_assert_eq(w->acked[w->acked_count - 1], 0, "what was only late has arrived");
	cr_assert_gt(w->sent.reordering, before);
	free(w);
}

/* A bad wire is not a full queue: few losses cost no speed, many do. */
Test(net_sent, makes_the_window_smaller_only_when_much_is_lost)
{
	struct world *w = create();

	for (int round = 0; round < 8; round++) {
		uint32_t base = w->sent.next;

		send(w, 32, (uint64_t)round * MS);
		cr_assert_eq(acknowledge(w, base & ~63u, base % 64 == 0 ? 0xffffffff : UINT64_MAX,
					     (uint64_t)round * MS + 1000),
				0);
	}
	cr_assert_eq(w->sent.window, 512);

	uint32_t base = w->sent.next;
	cr_assert_eq(base % 64, 0);
	send(w, 64, 10 * MS);
	cr_assert_eq(acknowledge(w, base, ~1ull, 11 * MS), 0);
	cr_assert_eq(w->lost_count, 1);
	send(w, 64, 20 * MS);
	cr_assert_eq(acknowledge(w, base + 64, UINT64_MAX, 21 * MS), 0);
	cr_assert_eq(w->sent.window, 512, "1 of 128");
	send(w, 64, 30 * MS);
	cr_assert_eq(acknowledge(w, base + 128, 0xffff000000000000, 31 * MS), 0);
	send(w, 64, 40 * MS);
	cr_assert_eq(acknowledge(w, base + 192, UINT64_MAX, 41 * MS), 0);
	cr_assert_lt(w->sent.window, 512);
	cr_assert_geq(w->sent.window, NET_WINDOW_MIN);
	free(w);
}

Test(net_sent, refuses_to_hear_of_what_it_never_sent)
{
	struct world *w = create();

	send(w, 3, 1);
	cr_assert_eq(acknowledge(w, 64, 1, 2), -EBADMSG);
	cr_assert_eq(acknowledge(w, 1, 1, 2), -EBADMSG, "words start at a multiple of 64");
	cr_assert_eq(acknowledge(w, 0, UINT64_MAX, 2), 0);
	cr_assert_eq(w->acked_count, 3);
	free(w);
}

/* Numbers wrap around. */
Test(net_sent, goes_on_across_the_end_of_the_numbers)
{
	struct world *w = create();

	w->sent.oldest = w->sent.next = UINT32_MAX - 31;
	w->sent.largest_acked = w->sent.next - 1;
	w->sent.round_end = w->sent.next;
	send(w, 64, 1);
	cr_assert_eq(acknowledge(w, UINT32_MAX - 63, UINT64_MAX, 2), 0);
	cr_assert_eq(w->acked_count, 32);
	cr_assert_eq(acknowledge(w, 0, 0xffffffff, 3), 0);
	cr_assert_eq(w->acked_count, 64);
	cr_assert_eq(w->sent.oldest, 32);
	cr_assert_eq(w->lost_count, 0);
	free(w);
}
