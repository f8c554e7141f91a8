#include "dataplane/channel/net_frame.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/channel/transport.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little endian, as we are");

enum {
	MAGIC = 0x7277,
	KIND_AT = 3,
	BARE = 0x80, /* in a kind */
	CRC_AT = 4,
	COUNT_AT = 22,
	CREDIT_BYTES = 16,
	LIST_AT = 28, /* of credits */
	WORDS_AT = 32,
	NO_RECORD = 0xffff,
	FLAG_ALL_PROCESSED = 1,
	IPV4_PATH_BYTES = 42,
};
static_assert((int)IPV4_PATH_BYTES + NET_FRAME_DATA_BYTES == (int)BUF_HEAD_BYTES,
		"a port can receive a buffer where it is to lie");
/* Frames without a body lie in their head, and in the smallest frame a path may have. */
static_assert(NET_PATH_BYTES_MAX - 14 + NET_FRAME_DATA_BYTES <= LINK_HEADERS_BYTES_MAX,
		"the largest buffer fits one frame");
static_assert((int)FRAME_HEAD_BYTES_MAX < (int)FRAME_BYTES_MIN, "a head fits every path");
static_assert(NET_PATH_BYTES_MAX + WORDS_AT + NET_FRAME_SPAN / 8 <= FRAME_HEAD_BYTES_MAX + 0u,
		"an ACK fits a head");
static_assert(NET_PATH_BYTES_MAX + LIST_AT + NET_FRAME_CREDITS_MAX * CREDIT_BYTES <=
				FRAME_HEAD_BYTES_MAX + 0u,
		"credits fit a head");
static_assert((int)NET_PATH_BYTES_MAX + NET_FRAME_DATA_BYTES + BUF_BYTES_MAX <= FRAME_BYTES_MAX + 0,
		"a buffer fits a frame");
static_assert((int)BUF_BYTES_MAX < (int)NO_RECORD, "an offset is a 16-bit number");

uint32_t net_frame_payload_max(const struct net_path *p)
{
	return p->frame_bytes_max - p->byte_count - NET_FRAME_DATA_BYTES;
}

/* As they lie in a frame; what the compiler adds behind the last field does not. */
struct start {
	uint16_t magic;
	uint8_t version, kind;
	uint32_t crc;
	uint64_t token;
	uint32_t number;
	uint16_t age, channel;
};
static_assert(sizeof(struct start) == NET_FRAME_BYTES, "without a gap");

struct piece {
	uint32_t sequence;
	uint16_t offset, buf_bytes;
	uint32_t announcement;
	uint16_t first_record, bytes;
	int64_t watermark;
	uint16_t channel, nothing;
};
static_assert(offsetof(struct piece, nothing) + 2 == NET_FRAME_PIECE_BYTES, "without a gap");

/* Each field by itself, where it is to lie or lies: a copy of the whole would wait until all of it
 * is written. */
#define FIELD(type, field) (((struct type *)NULL)->field)
#define SET(at, type, field, value) \
	do { \
		const __typeof__(FIELD(type, field)) set_ = (value); \
		memcpy((at) + offsetof(struct type, field), &set_, sizeof(set_)); \
	} while (0)
#define GET(at, type, field) \
	({ \
		__typeof__(FIELD(type, field)) got_; \
		memcpy(&got_, (at) + offsetof(struct type, field), sizeof(got_)); \
		got_; \
	})

/* ---- encode ---- */

static void put(struct frame_out *f, const void *value, uint32_t bytes)
{
	memcpy(f->head + f->head_bytes, value, bytes);
	f->head_bytes += bytes;
}

static void put16(struct frame_out *f, uint32_t value)
{
	uint16_t v = (uint16_t)value;

	put(f, &v, sizeof(v));
}

static void put32(struct frame_out *f, uint32_t value)
{
	put(f, &value, sizeof(value));
}

static void put64(struct frame_out *f, uint64_t value)
{
	put(f, &value, sizeof(value));
}

void net_frame_begin(struct frame_out *f, const struct net_path *p,
		const struct net_frame_start *start)
{
	uint8_t *at = f->head + p->byte_count;

	net_path_begin(p, f);
	SET(at, start, magic, MAGIC);
	SET(at, start, version, NET_FRAME_VERSION);
	SET(at, start, kind, start->kind);
	SET(at, start, crc, 0);
	SET(at, start, token, start->token);
	SET(at, start, number, start->number);
	SET(at, start, age, start->age);
	SET(at, start, channel, start->channel);
	f->head_bytes += NET_FRAME_BYTES;
	if (start->kind == NET_FRAME_DATA)
		put16(f, 0);
}

static void describe(uint8_t *at, const struct net_piece *piece)
{
	const struct buf *b = piece->buf;
	bool has_record = b->first_record != BUF_NO_RECORD;

	CHECK(piece->offset + piece->bytes <= b->size_bytes);
	SET(at, piece, sequence, (uint32_t)b->sequence);
	SET(at, piece, offset, (uint16_t)piece->offset);
	SET(at, piece, buf_bytes, (uint16_t)b->size_bytes);
	SET(at, piece, announcement, piece->announcement);
	SET(at, piece, first_record, has_record ? (uint16_t)b->first_record : NO_RECORD);
	SET(at, piece, bytes, (uint16_t)piece->bytes);
	SET(at, piece, watermark, b->watermark);
	SET(at, piece, channel, piece->channel);
	SET(at, piece, nothing, 0);
}

/* Of a frame of data, whose pieces are still to come. */
static uint8_t *count_of(struct frame_out *f)
{
	return f->head + f->head_bytes - NET_FRAME_PIECES_AT + COUNT_AT;
}

void net_frame_put_data(struct frame_out *f, const struct net_piece *piece)
{
	const uint16_t count = 1;

	memcpy(count_of(f), &count, sizeof(count));
	describe(f->head + f->head_bytes, piece);
	f->head_bytes += NET_FRAME_PIECE_BYTES;
	if (piece->bytes == 0)
		return;
	f->body = piece->buf->data + piece->offset;
	f->body_bytes = piece->bytes;
	f->owner = piece->buf;
}

/* What is in front of the bytes says the same but for an offset and the numbers of the frame. */
static bool is_like(const struct frame_out *like, const struct net_path *p,
		const struct net_piece *piece)
{
	const uint8_t *said = like->head + p->byte_count + NET_FRAME_PIECES_AT;

	return p->has_bare_bodies && (!p->is_ipv6 || p->is_udp_offloaded) &&
			like->owner == piece->buf && like->body_bytes == piece->bytes &&
			GET(said, piece, announcement) == piece->announcement &&
			GET(said, piece, channel) == piece->channel;
}

bool net_frame_repeat(struct frame_out *f, const struct frame_out *like, const struct net_path *p,
		const struct net_frame_start *start, const struct net_piece *piece)
{
	uint8_t *at = f->head + p->byte_count;

	if (!is_like(like, p, piece))
		return false;
	CHECK(piece->offset + piece->bytes <= piece->buf->size_bytes);
	memcpy(f->head, like->head, NET_PATH_BYTES_MAX + NET_FRAME_DATA_BYTES);
	SET(at, start, token, start->token);
	SET(at, start, number, start->number);
	SET(at, start, age, start->age);
	SET(at + NET_FRAME_PIECES_AT, piece, offset, (uint16_t)piece->offset);
	f->head_bytes = like->head_bytes;
	f->body = piece->buf->data + piece->offset;
	f->body_bytes = piece->bytes;
	f->owner = piece->buf;
	f->wants_udp_checksum = like->wants_udp_checksum;
	f->l3_offset = like->l3_offset;
	f->l4_offset = like->l4_offset;
	return true;
}

static int32_t room_of(uint32_t in_frame, uint32_t in_scratch, uint32_t used)
{
	uint32_t room = in_frame < in_scratch ? in_frame : in_scratch;

	return room < used ? -1 : (int32_t)(room - used);
}

int32_t net_frame_share_room(const struct frame_out *f, const struct net_path *p)
{
	return room_of(p->frame_bytes_max - f->head_bytes, f->scratch_bytes,
			f->body_bytes + NET_FRAME_PIECE_BYTES);
}

int32_t net_frame_share_max(const struct net_path *p, uint32_t scratch_bytes)
{
	return room_of(p->frame_bytes_max - p->byte_count - NET_FRAME_PIECES_AT, scratch_bytes,
			NET_FRAME_PIECE_BYTES);
}

void net_frame_share_data(struct frame_out *f, const struct net_piece *piece)
{
	uint16_t count;

	CHECK(f->body_bytes + NET_FRAME_PIECE_BYTES + piece->bytes <= f->scratch_bytes);
	memcpy(&count, count_of(f), sizeof(count));
	count++;
	memcpy(count_of(f), &count, sizeof(count));
	describe(f->scratch + f->body_bytes, piece);
	f->body_bytes += NET_FRAME_PIECE_BYTES;
	memcpy(f->scratch + f->body_bytes, piece->buf->data + piece->offset, piece->bytes);
	f->body_bytes += piece->bytes;
	f->body = f->scratch;
}

void net_frame_put_event(struct frame_out *f, const struct event *e)
{
	const uint8_t bytes[4] = {e->options.snapshot, e->options.alignment, e->kind,
			e->stop_mode};

	put64(f, (uint64_t)e->checkpoint_id);
	put64(f, (uint64_t)e->timestamp_ms);
	put64(f, (uint64_t)e->options.aligned_timeout_ms);
	put64(f, e->cut);
	put64(f, (uint64_t)e->watermark);
	put32(f, e->announcement);
	put(f, bytes, sizeof(bytes));
	put64(f, e->boundary);
}

void net_frame_put_credits(struct frame_out *f, const struct net_credit *credits, uint32_t count)
{
	CHECK(count <= NET_FRAME_CREDITS_MAX);
	put16(f, count);
	put16(f, 0);
	for (uint32_t i = 0; i < count; i++) {
		put16(f, credits[i].channel);
		put16(f, credits[i].is_all_processed ? FLAG_ALL_PROCESSED : 0);
		put32(f, credits[i].event_limit);
		put64(f, credits[i].processed);
	}
}

void net_frame_put_ack(
		struct frame_out *f, uint32_t base, const uint64_t *words, uint32_t word_count)
{
	CHECK(word_count <= NET_FRAME_WORDS_MAX);
	put32(f, base);
	put16(f, word_count);
	put16(f, 0);
	put(f, words, word_count * 8);
}

/* The field itself counts as zero. */
static uint32_t checksum(const uint8_t *bytes, uint32_t size)
{
	uint8_t start[CRC_AT + 4] = {0};

	memcpy(start, bytes, CRC_AT);
	return crc32c(crc32c(0, start, sizeof(start)), bytes + CRC_AT + 4, size - CRC_AT - 4);
}

void net_frame_end(struct frame_out *f, const struct net_path *p)
{
	uint8_t *ours = f->head + p->byte_count;

	if (p->has_bare_bodies && f->owner != NULL) {
		ours[KIND_AT] |= BARE;
	} else {
		uint32_t crc = checksum(ours, f->head_bytes - p->byte_count);

		if (f->body_bytes > 0)
			crc = crc32c(crc, f->body, f->body_bytes);
		memcpy(ours + CRC_AT, &crc, sizeof(crc));
	}
	net_path_end(p, f);
}

/* ---- decode ---- */

static uint16_t get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint32_t piece_bytes(const uint8_t *at)
{
	return GET(at, piece, bytes);
}

/* What it says of itself; `left` bytes are behind that. */
static bool is_piece(const uint8_t *at, uint32_t left)
{
	uint32_t bytes = piece_bytes(at), buf_bytes = GET(at, piece, buf_bytes);
	uint32_t first_record = GET(at, piece, first_record);

	return bytes <= left && GET(at, piece, offset) + bytes <= buf_bytes &&
			(first_record == NO_RECORD || first_record < buf_bytes) &&
			(bytes > 0 || buf_bytes == 0);
}

static int decode_data(struct net_frame *f, const uint8_t *bytes, uint32_t size)
{
	uint32_t at = NET_FRAME_PIECES_AT, count = f->channel;

	if (size < at)
		return -EBADMSG;
	f->pieces = bytes + at;
	f->pieces_end = bytes + size;
	f->buf = NULL;
	for (; count > 0 && size - at >= NET_FRAME_PIECE_BYTES; count--) {
		if (!is_piece(bytes + at, size - at - NET_FRAME_PIECE_BYTES))
			return -EBADMSG;
		at += NET_FRAME_PIECE_BYTES + piece_bytes(bytes + at);
	}
	return count == 0 && at == size && f->channel > 0 ? 0 : -EBADMSG;
}

bool net_frame_next_piece(
		const struct net_frame *f, const uint8_t **at, struct net_frame_piece *piece)
{
	const uint8_t *p = *at;

	if (p == f->pieces_end)
		return false;

	uint32_t first_record = GET(p, piece, first_record);
	*piece = (struct net_frame_piece){
			.sequence = GET(p, piece, sequence),
			.announcement = GET(p, piece, announcement),
			.first_record = first_record == NO_RECORD ? BUF_NO_RECORD : first_record,
			.offset = GET(p, piece, offset),
			.buf_bytes = GET(p, piece, buf_bytes),
			.payload_bytes = piece_bytes(p),
			.watermark = GET(p, piece, watermark),
			.payload = p + NET_FRAME_PIECE_BYTES,
			.buf = f->buf,
			.channel = GET(p, piece, channel),
	};
	*at = p + NET_FRAME_PIECE_BYTES + piece->payload_bytes;
	return true;
}

static bool is_event(const struct event *e)
{
	return e->kind >= EVENT_BARRIER && e->kind <= EVENT_END_OF_PARTITION &&
			e->options.snapshot <= SNAPSHOT_SAVEPOINT_TERMINATE &&
			e->options.alignment <= ALIGNMENT_FORCED_ALIGNED &&
			e->stop_mode <= STOP_NO_DRAIN && e->announcement != 0 &&
			e->boundary <= e->cut;
}

static int decode_event(struct net_frame *f, const uint8_t *bytes, uint32_t size)
{
	if (size != NET_FRAME_EVENT_BYTES)
		return -EBADMSG;
	f->event = (struct event){
			.checkpoint_id = (int64_t)get64(bytes + 24),
			.timestamp_ms = (int64_t)get64(bytes + 32),
			.options.aligned_timeout_ms = (int64_t)get64(bytes + 40),
			.cut = get64(bytes + 48),
			.watermark = (int64_t)get64(bytes + 56),
			.announcement = get32(bytes + 64),
			.options.snapshot = bytes[68],
			.options.alignment = bytes[69],
			.kind = bytes[70],
			.stop_mode = bytes[71],
			.boundary = get64(bytes + 72),
	};
	return is_event(&f->event) ? 0 : -EBADMSG;
}

static int decode_credit(struct net_frame *f, const uint8_t *bytes, uint32_t size)
{
	if (size < LIST_AT)
		return -EBADMSG;
	f->credit_count = get16(bytes + 24);
	f->credits = bytes + LIST_AT;
	if (f->credit_count > NET_FRAME_CREDITS_MAX ||
			size != LIST_AT + f->credit_count * CREDIT_BYTES)
		return -EBADMSG;
	return 0;
}

static int decode_ack(struct net_frame *f, const uint8_t *bytes, uint32_t size)
{
	if (size < WORDS_AT)
		return -EBADMSG;
	f->base = get32(bytes + 24);
	f->word_count = get16(bytes + 28);
	f->words = bytes + WORDS_AT;
	if (f->word_count > NET_FRAME_WORDS_MAX || size != WORDS_AT + f->word_count * 8)
		return -EBADMSG;
	return 0;
}

int net_frame_decode(struct net_frame *f, const uint8_t *bytes, uint32_t size)
{
	if (size < NET_FRAME_BYTES)
		return -EBADMSG;
	if (GET(bytes, start, magic) != MAGIC ||
			GET(bytes, start, version) != NET_FRAME_VERSION)
		return -EBADMSG;
	f->is_bare = (bytes[KIND_AT] & BARE) != 0;
	f->kind = bytes[KIND_AT] & (BARE - 1);
	f->channel = GET(bytes, start, channel);
	if (f->is_bare && (f->kind != NET_FRAME_DATA || f->channel != 1 ||
					  size < NET_FRAME_DATA_BYTES))
		return -EBADMSG;
	if (GET(bytes, start, crc) != (f->is_bare ? 0 : checksum(bytes, size)))
		return -EILSEQ;
	f->token = GET(bytes, start, token);
	f->number = GET(bytes, start, number);
	f->age = GET(bytes, start, age);
	if (f->age >= NET_FRAME_SPAN)
		return -EBADMSG;
	switch (f->kind) {
	case NET_FRAME_DATA:
		return decode_data(f, bytes, size);
	case NET_FRAME_EVENT:
		return decode_event(f, bytes, size);
	case NET_FRAME_CREDIT:
		return decode_credit(f, bytes, size);
	case NET_FRAME_ACK:
		return decode_ack(f, bytes, size);
	case NET_FRAME_PING:
	case NET_FRAME_BYE:
		return size == NET_FRAME_BYTES ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

struct net_credit net_frame_credit_at(const struct net_frame *f, uint32_t index)
{
	const uint8_t *at = f->credits + index * CREDIT_BYTES;

	CHECK(index < f->credit_count);
	return (struct net_credit){
			.channel = get16(at),
			.is_all_processed = (get16(at + 2) & FLAG_ALL_PROCESSED) != 0,
			.event_limit = get32(at + 4),
			.processed = get64(at + 8),
	};
}

uint64_t net_frame_word_at(const struct net_frame *f, uint32_t index)
{
	CHECK(index < f->word_count);
	return get64(f->words + index * 8);
}
