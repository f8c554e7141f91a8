#pragma once

/*
 * net_sent: the numbered frames a link has sent and not yet heard of: what has arrived, what is
 * lost, how long the way is, when to try again and how much may be under way.
 *
 * Place    channel; part of a net_link.
 * Thread   the link's worker.
 * Memory   fixed.
 * Time     now_ns, monotonic, as an argument.
 * Errors   -EBADMSG from acknowledge: it speaks of frames that were never sent.
 *
 * Every transmission has a number of its own, so a time measured is never that of another one
 * (RFC 6298 without its ambiguity).  A frame is lost when enough later ones have arrived - how many
 * that is grows when the wire turns out to reorder - or when nothing was heard for the resend time,
 * which doubles each time.
 */

#include "dataplane/base/check.h"
#include "dataplane/channel/net_frame.h"

#include <stddef.h>

enum {
	NET_WINDOW_MIN = 32, /* frames under way at least, when the wire loses many */
	/* Words start at a multiple of 64; and the control lane has some room of its own. */
	NET_CONTROL_WINDOW_MAX = NET_FRAME_SPAN - 64,
	NET_WINDOW_MAX = NET_CONTROL_WINDOW_MAX - 64,
};

struct net_sent_record {
	uint64_t at_ns;
	uint32_t sequence; /* of an event: its announcement */
	uint32_t pieces_at; /* of data: where its pieces begin among all that were sent */
	uint16_t piece_count;
	uint16_t channel;  /* of an event */
	uint8_t kind;
};

/* Hears of each record, once or twice: acked may follow lost, when it was only late. */
struct net_sent_listener {
	void (*acked)(struct net_sent_listener *l, const struct net_sent_record *r);
	void (*lost)(struct net_sent_listener *l, const struct net_sent_record *r);
};

struct net_sent {
	struct net_sent_listener *listener;
	uint32_t oldest, next;  /* numbers */
	uint32_t in_flight;     /* awaited */
	uint32_t largest_acked; /* below `next`; `oldest` - 1 at first */
	uint32_t reordering;    /* later frames that must arrive before one is held lost */
	uint32_t window, window_max;
	bool is_starting;       /* the window still doubles */
	uint32_t round_end, round_acked, round_lost;
	uint64_t rtt_ns, rtt_var_ns; /* smoothed; 0: not measured */
	uint32_t backoff;
	uint64_t quiet_since_ns; /* nothing sent and nothing heard */
	uint64_t lost_count, timeout_count, late_count;
	uint64_t awaited[NET_FRAME_WORDS_MAX];
	uint64_t given_up[NET_FRAME_WORDS_MAX]; /* lost, but an ACK may still come */
	struct net_sent_record records[NET_FRAME_SPAN];
};

/* `window_max`: frames the peer takes before it looks, NET_WINDOW_MIN..NET_WINDOW_MAX. */
void net_sent_init(struct net_sent *s, uint32_t window_max, struct net_sent_listener *listener);

/* Frames that may be sent now. */
static inline uint32_t net_sent_room(const struct net_sent *s)
{
	uint32_t used = s->next - s->oldest;
	uint32_t span = used < NET_WINDOW_MAX ? NET_WINDOW_MAX - used : 0;
	uint32_t window = s->window > s->in_flight ? s->window - s->in_flight : 0;

	return span < window ? span : window;
}

/* The same for frames of the control lane, which the window does not hold back. */
static inline uint32_t net_sent_control_room(const struct net_sent *s)
{
	return NET_CONTROL_WINDOW_MAX - (s->next - s->oldest);
}

/* The record of the oldest frame that is not settled, or NULL. */
static inline const struct net_sent_record *net_sent_oldest(const struct net_sent *s)
{
	return s->oldest != s->next ? &s->records[s->oldest % NET_FRAME_SPAN] : NULL;
}

/* That of a frame which is counted in. */
static inline struct net_sent_record *net_sent_record(struct net_sent *s, uint32_t number)
{
	return &s->records[number % NET_FRAME_SPAN];
}

/* That of the newest. */
static inline struct net_sent_record *net_sent_newest(struct net_sent *s)
{
	return net_sent_record(s, s->next - 1);
}

static inline uint32_t net_sent_word(uint32_t number)
{
	return number % NET_FRAME_SPAN / 64;
}

static inline uint64_t net_sent_bit(uint32_t number)
{
	return 1ull << (number % 64);
}

/* Counts a frame in and returns its number; `record` but for its time.  Needs room.  Inline, so
 * that the record is made where it is to lie. */
static inline uint32_t net_sent_add(
		struct net_sent *s, const struct net_sent_record *record, uint64_t now_ns)
{
	uint32_t number = s->next;
	struct net_sent_record *r = net_sent_record(s, number);

	CHECK(number - s->oldest < NET_CONTROL_WINDOW_MAX);
	*r = *record;
	r->at_ns = now_ns;
	s->awaited[net_sent_word(number)] |= net_sent_bit(number);
	s->given_up[net_sent_word(number)] &= ~net_sent_bit(number);
	s->next++;
	s->in_flight++;
	s->quiet_since_ns = now_ns;
	return number;
}

/* An ACK. */
int net_sent_acknowledge(struct net_sent *s, const struct net_frame *ack, uint64_t now_ns);

/* What time alone makes lost.  True: nothing was heard for the resend time, and something must go
 * out that will be answered, even if the window has no room. */
bool net_sent_poll(struct net_sent *s, uint64_t now_ns);

/* How long nothing may be heard before the oldest frame is sent again. */
uint64_t net_sent_resend_ns(const struct net_sent *s);
