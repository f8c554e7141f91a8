#include "dataplane/channel/net_inlet.h"

#include "dataplane/base/check.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <string.h>

enum {
	BUFS_MASK = CHANNEL_BUFFERS_MAX - 1,
	EVENTS_MASK = CHANNEL_CONTROL_MAX - 1,
	EVENT_NEWS_MIN = CHANNEL_CONTROL_MAX / 4,
};
static_assert(CHANNEL_CONTROL_MAX == 64, "one bit for each event");

void net_inlet_init(struct net_inlet *in, struct ring_channel *ring, struct buf_pool *pool,
		uint32_t payload_max)
{
	*in = (struct net_inlet){
			.ring = ring,
			.pool = pool,
			.payload_max = payload_max,
			.told_event_limit = CHANNEL_CONTROL_MAX,
	};
}

/* ---- data ---- */

/* Which piece of its buffer it is; -1: none. */
static int32_t index_of(const struct net_inlet *in, const struct net_frame_piece *p)
{
	uint32_t left = p->buf_bytes - p->offset;

	if (p->payload_bytes != (left < in->payload_max ? left : in->payload_max))
		return -1;
	if (p->offset == 0)
		return 0;

	uint32_t index = p->offset / in->payload_max;
	return index * in->payload_max == p->offset ? (int32_t)index : -1;
}

/* The buffer that the piece is, or one to copy it into; NULL: the pool has none. */
static struct buf *find_buf(struct net_inlet *in, struct net_frame_piece *p)
{
	struct buf *b = p->buf;

	if (b == NULL || b->pool != in->pool || p->payload != b->data ||
			p->payload_bytes != p->buf_bytes)
		return buf_alloc(in->pool);
	buf_begin(b);
	p->buf = NULL;
	return b;
}

/* The first piece of a buffer: it may be any. */
static int begin(struct net_inlet *in, struct net_inlet_slot *s, uint64_t sequence,
		struct net_frame_piece *p)
{
	uint32_t pieces = net_pieces_of(p->buf_bytes, in->payload_max);

	if (p->buf_bytes > in->pool->capacity_bytes || pieces > NET_PIECES_MAX)
		return -EPROTO;

	struct buf *b = find_buf(in, p);
	if (b == NULL)
		return -EAGAIN;
	b->sequence = sequence;
	b->size_bytes = p->buf_bytes;
	b->first_record = p->first_record;
	b->announcement = p->announcement;
	b->watermark = p->watermark;
	*s = (struct net_inlet_slot){.buf = b, .missing_count = pieces};
	in->held_count++;
	return 0;
}

static void keep(struct net_inlet_slot *s, const struct net_frame_piece *p, uint32_t index)
{
	uint64_t bit = 1ull << (index % 64);

	if ((s->arrived[index / 64] & bit) != 0)
		return;
	s->arrived[index / 64] |= bit;
	s->missing_count--;
	if (p->payload != s->buf->data)
		memcpy(s->buf->data + p->offset, p->payload, p->payload_bytes);
}

int net_inlet_take_data(struct net_inlet *in, struct net_frame_piece *p)
{
	int32_t ahead = (int32_t)(p->sequence - (uint32_t)in->pushed);
	int32_t index = index_of(in, p);

	if (index < 0)
		return -EPROTO;
	if (ahead < 0)
		return 0; /* handed over long ago */

	uint64_t sequence = in->pushed + (uint32_t)ahead;
	struct net_inlet_slot *s = &in->slots[sequence & BUFS_MASK];
	if (sequence >= ring_channel_credit(in->ring))
		return -EPROTO;
	if (s->buf == NULL) {
		int rc = begin(in, s, sequence, p);
		if (rc != 0)
			return rc;
	}
	CHECK(s->buf->sequence == sequence);
	if (s->buf->size_bytes != p->buf_bytes)
		return -EPROTO;
	keep(s, p, (uint32_t)index);
	return 0;
}

/* ---- events ---- */

int net_inlet_take_event(struct net_inlet *in, const struct net_frame *f)
{
	int32_t ahead = (int32_t)(f->event.announcement - in->announced);

	if (ahead <= 0)
		return 0;
	if (ahead > CHANNEL_CONTROL_MAX)
		return -EPROTO;
	in->events[f->event.announcement & EVENTS_MASK] = f->event;
	in->events_held |= 1ull << (f->event.announcement & EVENTS_MASK);
	return 0;
}

/* ---- hand over ---- */

static uint32_t deliver_events(struct net_inlet *in)
{
	uint32_t count = 0;

	while (in->events_held != 0) {
		uint32_t at = (in->announced + 1) & EVENTS_MASK;

		if ((in->events_held >> at & 1) == 0)
			break;
		if (in->events[at].cut < in->pushed) {
			in->is_broken = true;
			break;
		}
		if (ring_channel_announce(in->ring, &in->events[at], 1) == 0)
			break;
		in->events_held &= ~(1ull << at);
		in->announced++;
		count++;
	}
	return count;
}

static uint32_t deliver_bufs(struct net_inlet *in)
{
	struct buf *ready[CHANNEL_BUFFERS_MAX];
	uint32_t count = 0;

	while (count < in->held_count) {
		struct net_inlet_slot *s = &in->slots[(in->pushed + count) & BUFS_MASK];

		if (s->buf == NULL || s->missing_count > 0 ||
				(int32_t)(s->buf->announcement - in->announced) > 0)
			break;
		ready[count++] = s->buf;
		s->buf = NULL;
	}
	if (count == 0)
		return 0;
	ring_channel_push(in->ring, ready, count);
	in->pushed += count;
	in->held_count -= count;
	return count;
}

uint32_t net_inlet_deliver(struct net_inlet *in)
{
	uint32_t count = in->events_held != 0 ? deliver_events(in) : 0;

	return in->held_count > 0 ? count + deliver_bufs(in) : count;
}

/* ---- credit ---- */

bool net_inlet_credit(const struct net_inlet *in, struct net_credit *credit)
{
	credit->processed = ring_channel_credit(in->ring) -
			ring_channel_config(in->ring)->credit_count;
	credit->event_limit = in->announced + CHANNEL_CONTROL_MAX;
	credit->is_all_processed = ring_channel_is_all_processed(in->ring);
	return credit->processed != in->told_processed ||
			credit->is_all_processed != in->told_all_processed ||
			credit->event_limit - in->told_event_limit >= EVENT_NEWS_MIN;
}

void net_inlet_told(struct net_inlet *in, const struct net_credit *credit)
{
	in->told_processed = credit->processed;
	in->told_event_limit = credit->event_limit;
	in->told_all_processed = credit->is_all_processed;
}

void net_inlet_forget_told(struct net_inlet *in)
{
	in->told_processed = UINT64_MAX;
}

void net_inlet_clear(struct net_inlet *in)
{
	for (uint32_t i = 0; i < CHANNEL_BUFFERS_MAX; i++) {
		if (in->slots[i].buf != NULL)
			buf_release(in->slots[i].buf);
		in->slots[i].buf = NULL;
	}
	in->held_count = 0;
}
