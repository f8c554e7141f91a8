/* The sending half of a net_link: what it has to say, as frames. */

#include "dataplane/channel/net_link_internal.h"
#include "dataplane/wire/buf.h"

enum {
	TURN_PIECES_MAX = 32,    /* of one channel before the next has its turn */
	SHARED_BYTES_MAX = 2048, /* a copy of more costs what a frame does */
	SHARED_REST_MIN = NET_FRAME_PIECE_BYTES + 64, /* that makes a frame worth sharing */
};

static struct net_frame_start start_of(
		const struct net_link *l, uint8_t kind, uint32_t number, uint32_t channel)
{
	return (struct net_frame_start){
			.token = l->config.token,
			.number = number,
			.age = (uint16_t)(number - l->sent.oldest),
			.channel = (uint16_t)channel,
			.kind = kind,
	};
}

static void start_frame(struct net_link *l, struct frame_out *f, uint8_t kind, uint32_t number,
		uint32_t channel)
{
	const struct net_frame_start start = start_of(l, kind, number, channel);

	net_frame_begin(f, &l->config.path, &start);
}

static void count_frame(struct net_link *l, const struct frame_out *f)
{
	l->counters.frames_out++;
	l->counters.bytes_out += f->head_bytes + f->body_bytes;
}

static void end_frame(struct net_link *l, struct frame_out *f)
{
	net_frame_end(f, &l->config.path);
	count_frame(l, f);
}

static uint32_t send_ack(struct net_link *l, struct frame_out *frames, uint32_t room)
{
	uint64_t words[NET_FRAME_WORDS_MAX];
	uint32_t base;

	if (room == 0 || !l->received.is_owed)
		return 0;

	uint32_t count = net_received_words(&l->received, &base, words);
	start_frame(l, frames, NET_FRAME_ACK, l->sent.oldest, 0);
	net_frame_put_ack(frames, base, words, count);
	end_frame(l, frames);
	return 1;
}

static void start_numbered(struct net_link *l, struct frame_out *f,
		const struct net_sent_record *record, uint64_t now_ns)
{
	uint32_t number = net_sent_add(&l->sent, record, now_ns);

	net_sent_newest(&l->sent)->pieces_at = l->pieces_end;
	start_frame(l, f, record->kind, number, record->channel);
}

static uint32_t send_events(
		struct net_link *l, struct frame_out *frames, uint32_t room, uint64_t now_ns)
{
	uint32_t made = 0;
	const struct event *e;

	for (uint32_t i = 0; i < l->config.out_count && made < room; i++) {
		uint32_t channel = l->event_turn;

		while (made < room && net_outlet_next_event(&l->outlets[channel], &e)) {
			struct frame_out *f = &frames[made++];

			start_numbered(l, f,
					&(struct net_sent_record){.kind = NET_FRAME_EVENT,
							.channel = (uint16_t)channel,
							.sequence = e->announcement},
					now_ns);
			net_frame_put_event(f, e);
			end_frame(l, f);
		}
		if (made < room)
			l->event_turn = channel + 1 < l->config.out_count ? channel + 1 : 0;
	}
	return made;
}

static uint32_t gather_credits(struct net_link *l, struct net_credit *credits, uint32_t *at)
{
	uint32_t count = 0;

	for (; *at < l->config.in_count && count < NET_FRAME_CREDITS_MAX; (*at)++) {
		struct net_credit *c = &credits[count];

		if (!net_inlet_credit(&l->inlets[*at], c))
			continue;
		c->channel = (uint16_t)*at;
		net_inlet_told(&l->inlets[*at], c);
		count++;
	}
	return count;
}

static uint32_t send_credits(
		struct net_link *l, struct frame_out *frames, uint32_t room, uint64_t now_ns)
{
	struct net_credit credits[NET_FRAME_CREDITS_MAX];
	uint32_t made = 0, at = 0;

	while (made < room) {
		uint32_t count = gather_credits(l, credits, &at);

		if (count == 0)
			break;

		struct frame_out *f = &frames[made++];
		start_numbered(l, f, &(struct net_sent_record){.kind = NET_FRAME_CREDIT}, now_ns);
		net_frame_put_credits(f, credits, count);
		end_frame(l, f);
	}
	return made;
}

static uint32_t send_bare(struct net_link *l, struct frame_out *f, uint8_t kind, uint64_t now_ns)
{
	start_numbered(l, f, &(struct net_sent_record){.kind = kind}, now_ns);
	end_frame(l, f);
	return 1;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t send_control(
		struct net_link *l, struct frame_out *frames, uint32_t count, uint64_t now_ns)
{
	uint32_t made = send_ack(l, frames, count);
	uint32_t room = smaller(count, made + net_sent_control_room(&l->sent));

	if (l->must_say_bye && made < room) {
		l->must_say_bye = false;
		made += send_bare(l, &frames[made], NET_FRAME_BYE, now_ns);
	}
	if (l->has_said_bye || l->has_peer_closed)
		return made;
	made += send_events(l, frames + made, room - made, now_ns);
	made += send_credits(l, frames + made, room - made, now_ns);
	if (l->must_ping && made < room) {
		l->must_ping = false;
		l->pinged_ns = now_ns;
		made += send_bare(l, &frames[made], NET_FRAME_PING, now_ns);
	}
	return made;
}

/* ---- data ---- */

/* Frames being filled; of the one at `made` that is open, more may come. */
struct packer {
	struct frame_out *frames;
	uint32_t made, room;
	bool is_open;
	int32_t share_max; /* a larger piece has no frame with others */
	const struct frame_out *alone; /* the last that was made for one from its start, or NULL */
	uint64_t now_ns;
	struct buf *owner; /* of the last frames made, so many, which still need their references */
	uint32_t owner_count;
};

/* Of frames in a row with pieces of one buffer: a step for each would wait until its frame is
 * written. */
static void take_references(struct packer *k)
{
	if (k->owner_count > 0)
		buf_retain_times(k->owner, k->owner_count);
	k->owner_count = 0;
}

static void owe_reference(struct packer *k, struct buf *owner)
{
	if (owner != k->owner)
		take_references(k);
	k->owner = owner;
	k->owner_count += owner != NULL;
}

static void end_open(struct net_link *l, struct packer *k)
{
	if (k->is_open)
		end_frame(l, &k->frames[k->made++]);
	k->is_open = false;
}

static void note_piece(struct net_link *l, const struct net_piece *piece)
{
	l->pieces[l->pieces_end++ % NET_LINK_PIECES_MAX] = (struct net_sent_piece){
			.sequence = (uint32_t)piece->buf->sequence,
			.channel = piece->channel,
			.index = piece->index,
	};
	net_sent_newest(&l->sent)->piece_count++;
}

/* What one more piece may have; -1: none fits. */
static int32_t share_room(const struct net_link *l, const struct frame_out *f)
{
	int32_t left = net_frame_share_room(f, &l->config.path);

	return left < SHARED_BYTES_MAX ? left : SHARED_BYTES_MAX;
}

/* The most that the first of several may have. */
static int32_t share_max(const struct net_link *l, uint32_t scratch_bytes)
{
	int32_t most = net_frame_share_max(&l->config.path, scratch_bytes);

	return (most < SHARED_BYTES_MAX ? most : SHARED_BYTES_MAX) - SHARED_REST_MIN;
}

/* A frame for a piece alone, sent from where it lies. */
static void put_alone(struct net_link *l, struct packer *k, const struct net_piece *piece)
{
	const struct net_path *path = &l->config.path;
	const struct net_sent_record record = {
			.kind = NET_FRAME_DATA, .pieces_at = l->pieces_end};
	uint32_t number = net_sent_add(&l->sent, &record, k->now_ns);
	const struct net_frame_start start = start_of(l, NET_FRAME_DATA, number, 0);
	struct frame_out *f = &k->frames[k->made++];

	note_piece(l, piece);
	if (k->alone == NULL || !net_frame_repeat(f, k->alone, path, &start, piece)) {
		net_frame_begin(f, path, &start);
		net_frame_put_data(f, piece);
		net_frame_end(f, path);
		k->alone = f;
	}
	owe_reference(k, f->owner);
	count_frame(l, f);
}

/* Small ones share a frame, as long as no other would have to be made for them; a large one is sent
 * from where it lies. */
static void put_piece(struct net_link *l, struct packer *k, const struct net_piece *piece)
{
	if (k->is_open && (int32_t)piece->bytes > share_room(l, &k->frames[k->made]))
		end_open(l, k);

	if (!k->is_open && (int32_t)piece->bytes > k->share_max) {
		put_alone(l, k, piece);
		return;
	}
	if (!k->is_open)
		start_numbered(l, &k->frames[k->made],
				&(struct net_sent_record){.kind = NET_FRAME_DATA}, k->now_ns);
	k->is_open = true;
	note_piece(l, piece);
	net_frame_share_data(&k->frames[k->made], piece);
}

/* What the outlet has next, if it still fits. */
static bool next_piece(struct net_link *l, const struct packer *k, struct net_outlet *o,
		struct net_piece *piece)
{
	const struct net_sent_record *oldest = net_sent_oldest(&l->sent);
	int32_t bytes_max = BUF_BYTES_MAX;

	if (oldest != NULL && l->pieces_end - oldest->pieces_at == NET_LINK_PIECES_MAX)
		return false;
	if (k->made + k->is_open == k->room)
		bytes_max = k->is_open ? share_room(l, &k->frames[k->made]) : -1;
	return bytes_max >= 0 && net_outlet_next_piece(o, (uint32_t)bytes_max, piece);
}

/* A large piece ends the frame of small ones before it. */
static void pack_outlet(struct net_link *l, struct packer *k, uint32_t channel)
{
	struct net_outlet *o = &l->outlets[channel];
	uint64_t before = o->sending;
	struct net_piece piece;

	for (uint32_t i = 0; i < TURN_PIECES_MAX && next_piece(l, k, o, &piece); i++) {
		piece.channel = (uint16_t)channel;
		put_piece(l, k, &piece);
	}
	l->counters.bufs_out += o->sending - before;
}

static bool has_more(const struct net_link *l)
{
	for (uint32_t i = 0; i < l->config.out_count; i++) {
		if (l->outlets[i].sending < l->outlets[i].sendable ||
				l->outlets[i].lost_count > 0)
			return true;
	}
	return false;
}

static uint32_t send_data(
		struct net_link *l, struct frame_out *frames, uint32_t count, uint64_t now_ns)
{
	struct packer k = {.frames = frames,
			.room = smaller(count, net_sent_room(&l->sent)),
			.share_max = count > 0 ? share_max(l, frames->scratch_bytes) : 0,
			.now_ns = now_ns};

	if (l->has_said_bye || l->has_peer_closed)
		return 0;
	for (uint32_t i = 0; i < l->config.out_count && k.made < k.room; i++) {
		pack_outlet(l, &k, l->data_turn);
		l->data_turn = l->data_turn + 1 < l->config.out_count ? l->data_turn + 1 : 0;
	}
	end_open(l, &k);
	take_references(&k);
	if (k.made == k.room && k.made < count && net_sent_room(&l->sent) == 0 && has_more(l))
		l->counters.window_waits++;
	return k.made;
}

uint32_t net_link_send(struct net_link *l, enum net_lane lane, struct frame_out *frames,
		uint32_t count, uint64_t now_ns)
{
	if (l->state == NET_LINK_LOST || l->state == NET_LINK_BROKEN)
		return 0;
	return lane == NET_LANE_CONTROL ? send_control(l, frames, count, now_ns)
					: send_data(l, frames, count, now_ns);
}
