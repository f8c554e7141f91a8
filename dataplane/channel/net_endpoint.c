#include "dataplane/channel/net_endpoint.h"

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/wire/buf.h"

#include <errno.h>

enum {
	/* A turn: more, and the peer waits for its credit while all of it is taken in. */
	RECEIVE_FRAMES_MAX = 128,
	RECEIVE_PIECES_MAX = 128,
	RECEIVE_BURST_MIN = 2,
	RECEIVE_BURST_MAX = 8,
	/* At once, either way: a port that is memory shows a burst when all of it is copied. */
	BURST_BYTES = 128 << 10,
	SEND_BURSTS_MAX = 4,
	CONTROL_STAGE = 32,
	DATA_STAGE_MIN = 4,
	DATA_STAGE_MAX = 64,
	SCRATCH_BYTES_MAX = 8192, /* of a frame */
	QUIET_TURNS = 16, /* without a frame sent before transmitted buffers are asked for */
};

/* Frames made and not yet taken by the transport: from `head` to `tail`. */
struct stage {
	struct frame_out *frames;
	uint8_t *scratch;
	uint32_t head, tail, room;
};

struct net_endpoint {
	struct transport *transport;
	struct net_address local;
	uint32_t link_count, link_turn;
	struct net_link *links[NET_ENDPOINT_LINKS_MAX];
	struct stage stages[2]; /* by lane */
	uint32_t receive_burst;
	uint32_t quiet_turns;
	struct net_endpoint_counters counters;
};

/* ---- life ---- */

static int create_stage(struct stage *s, uint32_t room, uint32_t scratch_bytes)
{
	s->room = room;
	s->frames = lines_alloc(room * sizeof(*s->frames));
	s->scratch = lines_alloc((size_t)room * scratch_bytes);
	if (s->frames == NULL || s->scratch == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < room; i++) {
		s->frames[i].scratch = s->scratch + (size_t)i * scratch_bytes;
		s->frames[i].scratch_bytes = scratch_bytes;
	}
	return 0;
}

/* As many frames as BURST_BYTES has, within bounds. */
static uint32_t burst_of(const struct transport *t, uint32_t least, uint32_t most)
{
	uint32_t count = BURST_BYTES / t->frame_bytes_max;

	if (count < least)
		return least;
	return count < most ? count : most;
}

int net_endpoint_create(struct net_endpoint **out, struct transport *transport,
		const struct net_address *local)
{
	struct net_endpoint *e = lines_alloc(sizeof(*e));

	if (e == NULL)
		return -ENOMEM;
	e->transport = transport;
	e->local = *local;
	e->receive_burst = burst_of(transport, RECEIVE_BURST_MIN, RECEIVE_BURST_MAX);

	uint32_t scratch = transport->frame_bytes_max < SCRATCH_BYTES_MAX
			? transport->frame_bytes_max
			: SCRATCH_BYTES_MAX;
	if (create_stage(&e->stages[NET_LANE_CONTROL], CONTROL_STAGE, 0) != 0 ||
			create_stage(&e->stages[NET_LANE_DATA],
					burst_of(transport, DATA_STAGE_MIN, DATA_STAGE_MAX),
					scratch) != 0) {
		net_endpoint_destroy(e);
		return -ENOMEM;
	}
	*out = e;
	return 0;
}

void net_endpoint_destroy(struct net_endpoint *e)
{
	if (e == NULL)
		return;
	CHECK(e->link_count == 0);
	for (uint32_t lane = 0; lane < 2; lane++) {
		struct stage *s = &e->stages[lane];

		for (; s->head < s->tail; s->head++) {
			if (s->frames[s->head].owner != NULL)
				buf_release(s->frames[s->head].owner);
		}
		free(s->frames);
		free(s->scratch);
	}
	free(e);
}

int net_endpoint_attach(struct net_endpoint *e, struct net_link *l)
{
	if (e->link_count == NET_ENDPOINT_LINKS_MAX)
		return -ENOSPC;
	e->links[e->link_count++] = l;
	return 0;
}

void net_endpoint_detach(struct net_endpoint *e, struct net_link *l)
{
	for (uint32_t i = 0; i < e->link_count; i++) {
		if (e->links[i] == l) {
			e->links[i] = e->links[--e->link_count];
			e->link_turn = 0;
			return;
		}
	}
	CHECK(!"a link is detached where it was attached");
}

const struct net_endpoint_counters *net_endpoint_counters(const struct net_endpoint *e)
{
	return &e->counters;
}

/* ---- receive ---- */

static struct net_link *find_link(const struct net_endpoint *e, uint64_t token)
{
	for (uint32_t i = 0; i < e->link_count; i++) {
		if (net_link_token(e->links[i]) == token)
			return e->links[i];
	}
	return NULL;
}

/* Returns how many pieces of buffers were in it. */
static uint32_t take_frame(struct net_endpoint *e, struct frame_in *in, uint64_t now_ns)
{
	const uint8_t *payload;
	uint32_t payload_bytes;
	struct net_frame f;

	e->counters.bytes_in += in->size;
	int rc = net_path_strip(&e->local, in->bytes, in->size, &payload, &payload_bytes);
	if (rc == 0)
		rc = net_frame_decode(&f, payload, payload_bytes);
	if (rc != 0) {
		if (rc == -ENOMSG)
			e->counters.foreign++;
		else if (rc == -EILSEQ)
			e->counters.corrupt++;
		else
			e->counters.malformed++;
		return 0;
	}

	struct net_link *l = find_link(e, f.token);
	bool is_lent = in->buf != NULL && f.kind == NET_FRAME_DATA && f.channel == 1;
	if (is_lent)
		f.buf = in->buf;
	if (l != NULL)
		net_link_receive(l, &f, in->size, now_ns);
	else
		e->counters.unknown++;
	if (is_lent && f.buf == NULL)
		in->handle = NULL;
	return f.kind == NET_FRAME_DATA ? f.channel : 0;
}

static uint32_t receive(struct net_endpoint *e, uint64_t now_ns)
{
	struct frame_in frames[RECEIVE_BURST_MAX];
	uint64_t bytes_before = e->counters.bytes_in;
	uint32_t total = 0, pieces = 0;

	while (total < RECEIVE_FRAMES_MAX && pieces < RECEIVE_PIECES_MAX &&
			e->counters.bytes_in - bytes_before < BURST_BYTES) {
		uint32_t count = e->transport->receive(e->transport, frames, e->receive_burst);

		for (uint32_t i = 0; i < count; i++)
			pieces += take_frame(e, &frames[i], now_ns);
		e->transport->release(e->transport, frames, count);
		total += count;
		if (count < e->receive_burst)
			break;
	}
	e->counters.frames_in += total;
	return total;
}

/* ---- send ---- */

/* Offers what is staged, once.  True: all was taken. */
static bool drain(struct net_endpoint *e, struct stage *s)
{
	uint32_t count = s->tail - s->head;

	if (count == 0)
		return true;

	uint32_t taken = e->transport->send(e->transport, s->frames + s->head, count);
	CHECK(taken <= count);
	for (uint32_t i = 0; i < taken; i++)
		e->counters.bytes_out += s->frames[s->head + i].head_bytes +
				s->frames[s->head + i].body_bytes;
	e->counters.frames_out += taken;
	s->head += taken;
	if (taken < count) {
		e->counters.bursts_out_partial++;
		return false;
	}
	s->head = 0;
	s->tail = 0;
	return true;
}

/* Lets links fill a stage that is empty, each in its turn.  Returns how many frames. */
static uint32_t fill(struct net_endpoint *e, enum net_lane lane, uint64_t now_ns)
{
	struct stage *s = &e->stages[lane];

	for (uint32_t i = 0; i < e->link_count && s->tail < s->room; i++) {
		uint32_t at = (e->link_turn + i) % e->link_count;

		s->tail += net_link_send(e->links[at], lane, s->frames + s->tail,
				s->room - s->tail, now_ns);
	}
	return s->tail;
}

static uint32_t send(struct net_endpoint *e, uint64_t now_ns)
{
	uint64_t before = e->counters.frames_out;

	for (uint32_t burst = 0; burst < SEND_BURSTS_MAX; burst++) {
		if (!drain(e, &e->stages[NET_LANE_CONTROL]))
			break;
		uint32_t made = fill(e, NET_LANE_CONTROL, now_ns);
		if (!drain(e, &e->stages[NET_LANE_CONTROL]) ||
				!drain(e, &e->stages[NET_LANE_DATA]))
			break;
		made += fill(e, NET_LANE_DATA, now_ns);
		if (made == 0 || !drain(e, &e->stages[NET_LANE_DATA]))
			break;
	}
	if (++e->link_turn >= e->link_count)
		e->link_turn = 0;
	return (uint32_t)(e->counters.frames_out - before);
}

uint32_t net_endpoint_turn(struct net_endpoint *e, uint64_t now_ns)
{
	uint32_t work = receive(e, now_ns);

	for (uint32_t i = 0; i < e->link_count; i++)
		work += net_link_pump(e->links[i], now_ns);

	uint32_t sent = send(e, now_ns);
	if (sent > 0)
		e->quiet_turns = 0;
	else if (++e->quiet_turns % QUIET_TURNS == 0)
		e->transport->reclaim(e->transport, now_ns);
	return work + sent;
}
