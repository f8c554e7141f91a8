#include "dataplane/channel/net_received.h"

#include "dataplane/base/check.h"

#include <string.h>

enum { SPAN_MASK = NET_FRAME_SPAN - 1 };

static uint64_t *word_of(struct net_received *r, uint32_t number)
{
	return &r->bits[(number & SPAN_MASK) / 64];
}

static bool is_below(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Goes on over what has arrived without a gap. */
static void skip_arrived(struct net_received *r)
{
	for (uint32_t i = 0; i < NET_FRAME_WORDS_MAX; i++) {
		uint64_t *word = word_of(r, r->base);

		if (*word != UINT64_MAX) {
			r->base = (r->base & ~63u) + (uint32_t)__builtin_ctzll(~*word);
			return;
		}
		*word = 0;
		r->base = (r->base & ~63u) + 64;
	}
}

static void advance(struct net_received *r, uint32_t to)
{
	if (to - r->base >= NET_FRAME_SPAN) {
		memset(r->bits, 0, sizeof(r->bits));
	} else {
		for (uint32_t at = r->base & ~63u; at != (to & ~63u); at += 64)
			*word_of(r, at) = 0;
	}
	r->base = to;
	*word_of(r, to) |= (1ull << (to % 64)) - 1;
	if (is_below(r->top, to))
		r->top = to;
	skip_arrived(r);
}

enum net_arrival net_received_look(struct net_received *r, uint32_t number, uint16_t age)
{
	uint32_t oldest = number - age;

	if (is_below(r->base, oldest))
		advance(r, oldest);
	if (is_below(number, r->base)) {
		r->is_owed = true;
		return NET_ARRIVAL_SEEN;
	}
	if (number - (r->base & ~63u) >= NET_FRAME_SPAN)
		return NET_ARRIVAL_BEYOND;
	if ((*word_of(r, number) >> (number % 64) & 1) == 0)
		return NET_ARRIVAL_NEW;
	r->is_owed = true;
	return NET_ARRIVAL_SEEN;
}

void net_received_mark(struct net_received *r, uint32_t number)
{
	CHECK(number - (r->base & ~63u) < NET_FRAME_SPAN);
	*word_of(r, number) |= 1ull << (number % 64);
	r->is_owed = true;
	if (is_below(r->top, number + 1))
		r->top = number + 1;
	if (number == r->base)
		skip_arrived(r);
}

uint32_t net_received_words(
		struct net_received *r, uint32_t *base, uint64_t words[NET_FRAME_WORDS_MAX])
{
	uint32_t count = 0;

	*base = r->base & ~63u;
	for (uint32_t at = *base; is_below(at, r->top) && count < NET_FRAME_WORDS_MAX; at += 64)
		words[count++] = *word_of(r, at);
	r->is_owed = false;
	return count;
}
