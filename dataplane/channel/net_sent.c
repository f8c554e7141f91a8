#include "dataplane/channel/net_sent.h"

#include "dataplane/base/check.h"

#include <errno.h>

enum {
	REORDERING_MIN = 8,
	REORDERING_MAX = 512,
	RESEND_NS_FIRST = 5000000, /* before a round trip was measured */
	RESEND_NS_MIN = 1000000,   /* an idle peer sleeps for half of that */
	RESEND_NS_MAX = 100000000,
	CLOCK_NS = 100000,         /* added to a measured time at least */
	BACKOFF_MAX = 10,
	/* A round that loses more than one in so many frames meets a full queue, not a bad wire
	 * alone; fewer cost no speed. */
	LOSS_SHARE = 16,
};

static bool is_below(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

void net_sent_init(struct net_sent *s, uint32_t window_max, struct net_sent_listener *listener)
{
	CHECK(window_max >= NET_WINDOW_MIN && window_max <= NET_WINDOW_MAX);
	*s = (struct net_sent){
			.listener = listener,
			.largest_acked = UINT32_MAX,
			.reordering = REORDERING_MIN,
			.window = NET_WINDOW_MIN,
			.window_max = window_max,
			.is_starting = true,
	};
}

/* ---- time ---- */

/* RFC 6298, 2. */
static void measure(struct net_sent *s, uint64_t ns)
{
	if (s->rtt_ns == 0) {
		s->rtt_ns = ns > 0 ? ns : 1;
		s->rtt_var_ns = ns / 2;
		return;
	}

	uint64_t apart = ns > s->rtt_ns ? ns - s->rtt_ns : s->rtt_ns - ns;
	s->rtt_var_ns = (3 * s->rtt_var_ns + apart) / 4;
	s->rtt_ns = (7 * s->rtt_ns + ns) / 8;
}

static uint64_t patience_ns(const struct net_sent *s)
{
	if (s->rtt_ns == 0)
		return RESEND_NS_FIRST;

	uint64_t margin = 4 * s->rtt_var_ns;
	return s->rtt_ns + (margin > CLOCK_NS ? margin : CLOCK_NS);
}

uint64_t net_sent_resend_ns(const struct net_sent *s)
{
	uint64_t ns = patience_ns(s);

	if (ns < RESEND_NS_MIN)
		ns = RESEND_NS_MIN;
	ns <<= s->backoff;
	return ns < RESEND_NS_MAX ? ns : RESEND_NS_MAX;
}

/* ---- the window ---- */

/* Once a round trip: what was lost of what was sent tells whether the window is too large. */
static void end_round(struct net_sent *s)
{
	if (s->round_lost * LOSS_SHARE > s->round_acked + s->round_lost) {
		s->window = s->window / 4 * 3;
		s->is_starting = false;
	} else {
		s->window += s->is_starting ? s->window : s->window / 8;
	}
	if (s->window < NET_WINDOW_MIN)
		s->window = NET_WINDOW_MIN;
	if (s->window > s->window_max)
		s->window = s->window_max;
	s->round_end = s->next;
	s->round_acked = 0;
	s->round_lost = 0;
}

/* ---- what has arrived ---- */

static void tell_acked(struct net_sent *s, uint32_t from, uint64_t bits)
{
	for (; bits != 0; bits &= bits - 1) {
		uint32_t number = from + (uint32_t)__builtin_ctzll(bits);

		s->listener->acked(s->listener, net_sent_record(s, number));
	}
}

static void take_acked(struct net_sent *s, uint32_t from, uint64_t bits)
{
	uint32_t last = from + 63 - (uint32_t)__builtin_clzll(bits);

	tell_acked(s, from, bits);
	if (is_below(s->largest_acked, last))
		s->largest_acked = last;
}

/* It was late, not lost: the wire reorders by more than was thought. */
static void take_late(struct net_sent *s, uint32_t from, uint64_t bits)
{
	tell_acked(s, from, bits);
	s->late_count += (uint32_t)__builtin_popcountll(bits);
	s->reordering *= 2;
	if (s->reordering > REORDERING_MAX)
		s->reordering = REORDERING_MAX;
}

static uint64_t word_of_ack(const struct net_frame *ack, uint32_t from)
{
	if (is_below(from, ack->base))
		return UINT64_MAX;

	uint32_t index = (from - ack->base) / 64;
	return index < ack->word_count ? net_frame_word_at(ack, index) : 0;
}

/* Returns how many frames were newly heard of. */
static uint32_t take_words(struct net_sent *s, const struct net_frame *ack)
{
	uint32_t heard = 0;

	for (uint32_t from = s->oldest & ~63u; is_below(from, s->next); from += 64) {
		uint64_t word = word_of_ack(ack, from);
		uint64_t *awaited = &s->awaited[net_sent_word(from)];
		uint64_t *given_up = &s->given_up[net_sent_word(from)];
		uint64_t acked = *awaited & word, late = *given_up & word;

		if (acked != 0) {
			*awaited &= ~acked;
			heard += (uint32_t)__builtin_popcountll(acked);
			take_acked(s, from, acked);
		}
		if (late != 0) {
			*given_up &= ~late;
			take_late(s, from, late);
		}
	}
	return heard;
}

/* ---- what is lost ---- */

static void lose(struct net_sent *s, uint32_t number, uint64_t now_ns)
{
	struct net_sent_record *r = net_sent_record(s, number);

	CHECK((s->awaited[net_sent_word(number)] & net_sent_bit(number)) != 0);
	s->awaited[net_sent_word(number)] &= ~net_sent_bit(number);
	s->given_up[net_sent_word(number)] |= net_sent_bit(number);
	s->in_flight--;
	s->lost_count++;
	s->round_lost++;
	r->at_ns = now_ns; /* from now on: when it was given up */
	s->listener->lost(s->listener, r);
}

/* The numbers below `limit` that are still awaited. */
static void lose_below(struct net_sent *s, uint32_t limit, uint64_t now_ns)
{
	for (uint32_t from = s->oldest & ~63u; is_below(from, limit); from += 64) {
		uint64_t bits = s->awaited[net_sent_word(from)];

		if (limit - from < 64)
			bits &= net_sent_bit(limit) - 1;
		for (; bits != 0; bits &= bits - 1)
			lose(s, from + (uint32_t)__builtin_ctzll(bits), now_ns);
	}
}

/* Goes on to the first that is not settled, a word at a time.  False: there is none. */
static bool skip_settled(struct net_sent *s)
{
	while (s->oldest != s->next) {
		uint32_t word = net_sent_word(s->oldest), left = s->next - s->oldest;
		uint64_t open = (s->awaited[word] | s->given_up[word]) >> s->oldest % 64;
		uint32_t count = open != 0 ? (uint32_t)__builtin_ctzll(open)
					   : 64 - s->oldest % 64;

		if (open != 0 && count < left) {
			s->oldest += count;
			return true;
		}
		s->oldest += count < left ? count : left;
	}
	return false;
}

/* Leaves behind what is settled.  What was given up is kept for a while: its ACK may come. */
static void forget(struct net_sent *s, uint64_t now_ns)
{
	while (skip_settled(s)) {
		uint32_t at = s->oldest;

		if ((s->awaited[net_sent_word(at)] & net_sent_bit(at)) != 0 ||
				(s->next - at < NET_FRAME_SPAN / 2 &&
						now_ns - net_sent_record(s, at)->at_ns <
								patience_ns(s)))
			return;
		s->given_up[net_sent_word(at)] &= ~net_sent_bit(at);
	}
}

int net_sent_acknowledge(struct net_sent *s, const struct net_frame *ack, uint64_t now_ns)
{
	uint32_t before = s->largest_acked;

	if (ack->base % 64 != 0 || is_below(s->next, ack->base))
		return -EBADMSG;

	uint32_t heard = take_words(s, ack);
	s->in_flight -= heard;
	s->round_acked += heard;
	if (heard > 0) {
		s->backoff = 0;
		s->quiet_since_ns = now_ns;
	}
	if (heard > 0 && before != s->largest_acked)
		measure(s, now_ns - net_sent_record(s, s->largest_acked)->at_ns);
	if (is_below(s->oldest, s->largest_acked - s->reordering))
		lose_below(s, s->largest_acked - s->reordering, now_ns);
	forget(s, now_ns);
	if (heard > 0 && !is_below(s->largest_acked, s->round_end))
		end_round(s);
	return 0;
}

/* The first number that is awaited. */
static bool first_awaited(const struct net_sent *s, uint32_t *number)
{
	for (uint32_t from = s->oldest & ~63u; is_below(from, s->next); from += 64) {
		uint64_t bits = s->awaited[net_sent_word(from)];

		if (bits != 0) {
			*number = from + (uint32_t)__builtin_ctzll(bits);
			return true;
		}
	}
	return false;
}

bool net_sent_poll(struct net_sent *s, uint64_t now_ns)
{
	uint32_t number;

	forget(s, now_ns);
	if (s->in_flight == 0)
		return false;
	/* Later ones have arrived, and it has had the time for it. */
	while (first_awaited(s, &number) && is_below(number, s->largest_acked) &&
			now_ns - net_sent_record(s, number)->at_ns > patience_ns(s))
		lose(s, number, now_ns);
	if (s->in_flight == 0 || now_ns - s->quiet_since_ns < net_sent_resend_ns(s))
		return false;
	CHECK(first_awaited(s, &number));
	lose(s, number, now_ns);
	s->timeout_count++;
	s->quiet_since_ns = now_ns;
	if (s->backoff < BACKOFF_MAX)
		s->backoff++;
	if (s->backoff > 1)
		s->window = NET_WINDOW_MIN;
	return true;
}
