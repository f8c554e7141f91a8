#include "dataplane/channel/net_outlet.h"

#include "dataplane/base/check.h"
#include "dataplane/wire/buf.h"

enum { BUFS_MASK = CHANNEL_BUFFERS_MAX - 1, EVENTS_MASK = CHANNEL_CONTROL_MAX - 1 };
static_assert(CHANNEL_CONTROL_MAX == 64, "one bit for each event");

static struct net_outlet_slot *slot_of(struct net_outlet *o, uint64_t sequence)
{
	return &o->slots[sequence & BUFS_MASK];
}

void net_outlet_init(struct net_outlet *o, struct ring_channel *ring, uint32_t payload_max)
{
	*o = (struct net_outlet){
			.ring = ring,
			.payload_max = payload_max,
			.credit_count = ring_channel_config(ring)->credit_count,
			.event_base = 1,
			.event_sending = 1,
			.event_end = 1,
			.event_limit = CHANNEL_CONTROL_MAX,
	};
}

/* ---- from the producer ---- */

static uint32_t collect_bufs(struct net_outlet *o)
{
	struct buf *taken[BATCH_COUNT_MAX];
	uint32_t count = ring_channel_take(o->ring, taken, BATCH_COUNT_MAX);

	for (uint32_t i = 0; i < count; i++) {
		struct buf *b = taken[i];
		uint32_t pieces = net_pieces_of(b->size_bytes, o->payload_max);

		CHECK(b->sequence == o->collected && pieces <= NET_PIECES_MAX);
		*slot_of(o, o->collected) = (struct net_outlet_slot){
				.buf = b,
				.announcement = b->announcement,
				.piece_count = pieces,
		};
		o->collected++;
	}
	return count;
}

/* One run of the array; `*all`: the ring had no more. */
static uint32_t collect_events(struct net_outlet *o, bool *all)
{
	uint32_t room = CHANNEL_CONTROL_MAX - (o->event_end - o->event_base);
	uint32_t from = o->event_end & EVENTS_MASK;

	if (room > CHANNEL_CONTROL_MAX - from)
		room = CHANNEL_CONTROL_MAX - from;

	uint32_t count = ring_channel_take_events(o->ring, &o->events[from], room);
	for (uint32_t i = 0; i < count; i++, o->event_end++) {
		uint64_t bit = 1ull << (o->event_end & EVENTS_MASK);

		CHECK(o->events[from + i].announcement == o->event_end);
		o->events_acked &= ~bit;
		o->events_lost &= ~bit;
	}
	*all = count < room;
	return count;
}

/* Gives back what is done with at every one of three places. */
static void give_back(struct net_outlet *o)
{
	uint64_t before = o->base;

	while (o->base < o->processed) {
		struct net_outlet_slot *s = slot_of(o, o->base);

		if (atomic_load_explicit(&s->buf->refs, memory_order_acquire) > 1)
			break;
		buf_release(s->buf);
		s->buf = NULL;
		o->base++;
	}
	if (o->base != before)
		ring_channel_grant(o->ring, o->base);
}

/* What may have been pushed behind an event that is in by now, and lies behind its boundary, waits
 * for it.  The last CHANNEL_CONTROL_MAX events are still here, acknowledged or not. */
static void order(struct net_outlet *o)
{
	for (uint64_t q = o->sendable; q < o->collected; q++) {
		struct net_outlet_slot *s = slot_of(o, q);
		uint32_t number = o->event_end - 1;

		while (number != s->announcement && o->event_end - number < CHANNEL_CONTROL_MAX &&
				o->events[number & EVENTS_MASK].boundary > q)
			number--;
		if (number != s->announcement && o->event_end - number < CHANNEL_CONTROL_MAX)
			s->announcement = number;
	}
}

uint32_t net_outlet_collect(struct net_outlet *o)
{
	uint32_t count = collect_bufs(o), events;
	bool has_all;

	do {
		events = collect_events(o, &has_all);
		count += events;
	} while (events > 0 && !has_all);
	if (o->sendable != o->collected && has_all) {
		order(o);
		o->sendable = o->collected;
	}
	if (o->base < o->processed)
		give_back(o);
	o->is_out_of_credit = o->collected - o->base >= o->credit_count;
	return count;
}

/* ---- to the peer ---- */

static void fill_piece(const struct net_outlet *o, const struct net_outlet_slot *s, uint32_t index,
		struct net_piece *piece)
{
	uint32_t left = s->buf->size_bytes - index * o->payload_max;

	piece->buf = s->buf;
	piece->announcement = s->announcement;
	piece->index = (uint16_t)index;
	piece->offset = index * o->payload_max;
	piece->bytes = left < o->payload_max ? left : o->payload_max;
}

static bool next_lost_piece(struct net_outlet *o, uint32_t bytes_max, struct net_piece *piece)
{
	for (uint64_t q = o->processed; q < o->collected; q++) {
		struct net_outlet_slot *s = slot_of(o, q);

		for (uint32_t w = 0; w < NET_PIECES_MAX / 64; w++) {
			if (s->lost[w] == 0)
				continue;
			fill_piece(o, s, w * 64 + (uint32_t)__builtin_ctzll(s->lost[w]), piece);
			if (piece->bytes > bytes_max)
				return false;
			s->lost[w] &= s->lost[w] - 1;
			o->lost_count--;
			return true;
		}
	}
	CHECK(!"a lost piece is in some slot");
	return false;
}

bool net_outlet_next_piece(struct net_outlet *o, uint32_t bytes_max, struct net_piece *piece)
{
	if (o->lost_count > 0)
		return next_lost_piece(o, bytes_max, piece);
	if (o->sending == o->sendable)
		return false;

	const struct net_outlet_slot *s = slot_of(o, o->sending);
	fill_piece(o, s, o->next_piece, piece);
	if (piece->bytes > bytes_max)
		return false;
	if (++o->next_piece == s->piece_count) {
		o->next_piece = 0;
		o->sending++;
	}
	return true;
}

bool net_outlet_next_event(struct net_outlet *o, const struct event **e)
{
	if (o->events_lost != 0) {
		*e = &o->events[__builtin_ctzll(o->events_lost)];
		o->events_lost &= o->events_lost - 1;
		return true;
	}
	if (o->event_sending == o->event_end || (int32_t)(o->event_limit - o->event_sending) < 0)
		return false;
	*e = &o->events[o->event_sending++ & EVENTS_MASK];
	return true;
}

/* ---- what became of it ---- */

/* The slot of a piece of which the peer may still want to hear, or NULL. */
static struct net_outlet_slot *find_slot(struct net_outlet *o, uint32_t sequence)
{
	uint32_t index = sequence - (uint32_t)o->processed;

	if (index >= (uint32_t)(o->collected - o->processed))
		return NULL;
	return slot_of(o, o->processed + index);
}

static void forget_lost(struct net_outlet *o, struct net_outlet_slot *s)
{
	for (uint32_t w = 0; w < NET_PIECES_MAX / 64; w++) {
		o->lost_count -= (uint32_t)__builtin_popcountll(s->lost[w]);
		s->lost[w] = 0;
	}
}

void net_outlet_acked_piece(struct net_outlet *o, uint32_t sequence, uint32_t index)
{
	struct net_outlet_slot *s = find_slot(o, sequence);
	uint64_t bit = 1ull << (index % 64);

	if (s == NULL || (s->acked[index / 64] & bit) != 0)
		return;
	s->acked[index / 64] |= bit;
	s->acked_count++;
	if ((s->lost[index / 64] & bit) != 0) {
		s->lost[index / 64] &= ~bit;
		o->lost_count--;
	}
}

void net_outlet_lost_piece(struct net_outlet *o, uint32_t sequence, uint32_t index)
{
	struct net_outlet_slot *s = find_slot(o, sequence);
	uint64_t bit = 1ull << (index % 64);

	if (s == NULL || ((s->acked[index / 64] | s->lost[index / 64]) & bit) != 0)
		return;
	s->lost[index / 64] |= bit;
	o->lost_count++;
}

static bool is_waiting(const struct net_outlet *o, uint32_t number)
{
	return number - o->event_base < o->event_sending - o->event_base;
}

void net_outlet_acked_event(struct net_outlet *o, uint32_t number)
{
	if (!is_waiting(o, number))
		return;
	o->events_acked |= 1ull << (number & EVENTS_MASK);
	o->events_lost &= ~(1ull << (number & EVENTS_MASK));
	while (o->event_base != o->event_sending &&
			(o->events_acked >> (o->event_base & EVENTS_MASK) & 1) != 0)
		o->event_base++;
}

void net_outlet_lost_event(struct net_outlet *o, uint32_t number)
{
	uint64_t bit = 1ull << (number & EVENTS_MASK);

	if (is_waiting(o, number) && (o->events_acked & bit) == 0)
		o->events_lost |= bit;
}

void net_outlet_credit(struct net_outlet *o, const struct net_credit *credit)
{
	if (credit->processed > o->processed && credit->processed <= o->sending) {
		for (; o->processed < credit->processed; o->processed++)
			forget_lost(o, slot_of(o, o->processed));
	}
	if ((int32_t)(credit->event_limit - o->event_limit) > 0)
		o->event_limit = credit->event_limit;
	if (credit->is_all_processed && !o->is_all_processed) {
		o->is_all_processed = true;
		ring_channel_all_processed(o->ring);
	}
}

bool net_outlet_is_drained(const struct net_outlet *o)
{
	if (o->event_base != o->event_end || o->sending != o->collected)
		return false;
	for (uint64_t q = o->processed; q < o->collected; q++) {
		const struct net_outlet_slot *s = &o->slots[q & BUFS_MASK];

		if (s->acked_count < s->piece_count)
			return false;
	}
	return true;
}

void net_outlet_clear(struct net_outlet *o)
{
	for (; o->base < o->collected; o->base++)
		buf_release(slot_of(o, o->base)->buf);
	o->processed = o->collected;
	o->sendable = o->collected;
	o->sending = o->collected;
}
