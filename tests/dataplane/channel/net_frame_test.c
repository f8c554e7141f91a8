/* Frames as bytes: what was put in comes out, and nothing else is taken. */

#include "dataplane/channel/net_frame.h"

#include "dataplane/base/crc.h"
#include "dataplane/base/prng.h"
#include "dataplane/channel/transport.h"
#include "dataplane/wire/buf.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct net_address address(const char *text)
{
	struct net_address a;

	cr_assert_eq(net_address_parse(text, &a), 0, "%s", text);
	return a;
}

static struct net_path path(bool is_ipv6)
{
	struct net_address a = address(is_ipv6 ? "02:00:00:00:00:01 fd00::1 6125 1514 512 1"
					       : "02:00:00:00:00:01 10.0.0.1 6125 1514 512 1");
	struct net_address b = address(is_ipv6 ? "02:00:00:00:00:02 fd00::2 7000 1514 512 1"
					       : "02:00:00:00:00:02 10.0.0.2 7000 1514 512 1");
	struct net_path p;

	cr_assert_eq(net_path_init(&p, &a, &b, NULL), 0);
	cr_assert_eq(p.frame_bytes_max, 1514);
	return p;
}

static struct net_address remote(bool is_ipv6)
{
	return address(is_ipv6 ? "02:00:00:00:00:02 fd00::2 7000 1514 512 1"
			       : "02:00:00:00:00:02 10.0.0.2 7000 1514 512 1");
}

/* The frame as one piece of memory. */
static uint32_t flatten(const struct frame_out *f, uint8_t bytes[FRAME_BYTES_MAX])
{
	memcpy(bytes, f->head, f->head_bytes);
	if (f->body_bytes > 0)
		memcpy(bytes + f->head_bytes, f->body, f->body_bytes);
	return f->head_bytes + f->body_bytes;
}

static int decode(const uint8_t *bytes, uint32_t size, bool is_ipv6, struct net_frame *f)
{
	struct net_address to = remote(is_ipv6);
	const uint8_t *payload;
	uint32_t payload_bytes;
	int rc = net_path_strip(&to, bytes, size, &payload, &payload_bytes);

	return rc != 0 ? rc : net_frame_decode(f, payload, payload_bytes);
}

static void start(struct frame_out *f, const struct net_path *p, uint8_t kind)
{
	net_frame_begin(f, p,
			&(struct net_frame_start){.token = 0x1122334455667788, .number = 900,
					.age = 17, .kind = kind});
}

static struct buf *filled(struct buf_pool *pool, uint32_t bytes)
{
	struct buf *b = buf_alloc(pool);

	for (uint32_t i = 0; i < bytes; i++)
		b->data[i] = (uint8_t)(i * 3);
	b->size_bytes = bytes;
	b->sequence = 0x100000005;
	b->announcement = 9;
	b->first_record = 77;
	b->watermark = -5;
	return b;
}

static void check_data(bool is_ipv6)
{
	struct net_path p = path(is_ipv6);
	struct frame_out out = {0};
	struct net_frame in;
	struct net_frame_piece piece;
	struct buf_pool *pool;
	uint8_t bytes[FRAME_BYTES_MAX];

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 3000);
	start(&out, &p, NET_FRAME_DATA);
	net_frame_put_data(&out, &(struct net_piece){.buf = b, .announcement = 9, .offset = 1400,
						 .bytes = 1001, .channel = 3});
	net_frame_end(&out, &p);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), is_ipv6, &in), 0);
	cr_assert_eq(in.token, 0x1122334455667788);
	cr_assert_eq(in.number, 900);
	cr_assert_eq(in.age, 17);

	const uint8_t *at = in.pieces;
	cr_assert(net_frame_next_piece(&in, &at, &piece));
	cr_assert_eq(piece.channel, 3);
	cr_assert_eq(piece.sequence, 5, "the low half");
	cr_assert_eq(piece.offset, 1400);
	cr_assert_eq(piece.buf_bytes, 3000);
	cr_assert_eq(piece.announcement, 9);
	cr_assert_eq(piece.first_record, 77);
	cr_assert_eq(piece.watermark, -5);
	cr_assert_eq(piece.payload_bytes, 1001);
	cr_assert_arr_eq(piece.payload, b->data + 1400, 1001);
	cr_assert_not(net_frame_next_piece(&in, &at, &piece));
	buf_release(b);
	buf_pool_destroy(pool);
}

Test(net_frame, carries_a_piece_of_a_buffer)
{
	check_data(false);
	check_data(true);
}

/* A frame that small buffers share: `out` has the scratch memory. */
static void share(struct frame_out *out, const struct net_path *p, struct buf *b, uint16_t count)
{
	start(out, p, NET_FRAME_DATA);
	for (uint16_t i = 0; i < count; i++) {
		cr_assert_geq(net_frame_share_room(out, p), 16 + 16 * i);
		net_frame_share_data(out,
				&(struct net_piece){.buf = b, .announcement = i,
						.bytes = 16u + 16u * i, .channel = i});
	}
	net_frame_end(out, p);
}

Test(net_frame, carries_several_small_buffers_of_several_channels)
{
	struct net_path p = path(false);
	uint8_t bytes[FRAME_BYTES_MAX], scratch[1000];
	struct frame_out out = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};
	struct net_frame in;
	struct net_frame_piece piece;
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 80);
	share(&out, &p, b, 5);
	cr_assert_null(out.owner, "they were copied");
	cr_assert_eq(net_frame_share_room(&out, &p), 1000 - 240 - 6 * NET_FRAME_PIECE_BYTES);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), false, &in), 0);

	const uint8_t *at = in.pieces;
	for (uint32_t i = 0; i < 5; i++) {
		cr_assert(net_frame_next_piece(&in, &at, &piece));
		cr_assert_eq(piece.channel, i);
		cr_assert_eq(piece.announcement, i);
		cr_assert_eq(piece.payload_bytes, 16 + 16 * i);
		cr_assert_arr_eq(piece.payload, b->data, 16 + 16 * i);
	}
	cr_assert_not(net_frame_next_piece(&in, &at, &piece));
	buf_release(b);
	buf_pool_destroy(pool);
}

/* The room is that of the path, whatever the scratch memory has. */
Test(net_frame, shares_no_more_than_the_path_takes)
{
	struct net_path p = path(false);
	uint8_t scratch[2 * FRAME_BYTES_MIN];
	struct frame_out out = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};

	p.frame_bytes_max = FRAME_BYTES_MIN;
	start(&out, &p, NET_FRAME_DATA);
	cr_assert_eq(net_frame_share_room(&out, &p),
			FRAME_BYTES_MIN - 42 - NET_FRAME_DATA_BYTES);
	out.scratch_bytes = NET_FRAME_PIECE_BYTES - 1;
	cr_assert_eq(net_frame_share_room(&out, &p), -1);
}

/* A piece that says more than is left, a count that is not that of the pieces, bytes behind. */
Test(net_frame, refuses_pieces_that_do_not_fill_their_frame)
{
	struct net_path p = path(false);
	uint8_t bytes[FRAME_BYTES_MAX], scratch[1000];
	struct frame_out out = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};
	struct net_frame in;
	struct buf_pool *pool;
	const struct {
		uint32_t at;
		uint8_t value;
	} wrong[] = {{22, 0}, {22, 2}, {22, 4}, {26 + 2 * 28 + 16 + 32 + 14, 49},
			{26 + 28 + 16 + 14, 200}, {26 + 28 + 16 + 15, 1}, {26 + 28 + 16 + 4, 70}};

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 80);
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		share(&out, &p, b, 3);
		uint32_t size = flatten(&out, bytes) - 42;
		bytes[42 + wrong[i].at] = wrong[i].value;
		memset(bytes + 42 + 4, 0, 4);
		uint32_t crc = crc32c(0, bytes + 42, size);
		memcpy(bytes + 42 + 4, &crc, 4);
		cr_assert_eq(net_frame_decode(&in, bytes + 42, size), -EBADMSG, "case %u", i);
	}
	buf_release(b);
	buf_pool_destroy(pool);
}

Test(net_frame, carries_an_event_as_it_is)
{
	struct net_path p = path(false);
	struct frame_out out = {0};
	struct net_frame in;
	uint8_t bytes[FRAME_BYTES_MAX];
	struct event e = {.checkpoint_id = 5, .timestamp_ms = 1700000000000,
			.cut = 1ull << 40, .boundary = 7,
			.watermark = INT64_MIN, .announcement = 12, .kind = EVENT_END_OF_DATA,
			.stop_mode = STOP_NO_DRAIN,
			.options = {.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
					.snapshot = SNAPSHOT_SAVEPOINT,
					.alignment = ALIGNMENT_FORCED_ALIGNED}};

	start(&out, &p, NET_FRAME_EVENT);
	net_frame_put_event(&out, &e);
	net_frame_end(&out, &p);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), false, &in), 0);
	cr_assert_eq(in.event.checkpoint_id, e.checkpoint_id);
	cr_assert_eq(in.event.timestamp_ms, e.timestamp_ms);
	cr_assert_eq(in.event.cut, e.cut);
	cr_assert_eq(in.event.boundary, e.boundary);
	cr_assert_eq(in.event.watermark, e.watermark);
	cr_assert_eq(in.event.announcement, e.announcement);
	cr_assert_eq(in.event.kind, e.kind);
	cr_assert_eq(in.event.stop_mode, e.stop_mode);
	cr_assert_eq(in.event.options.aligned_timeout_ms, e.options.aligned_timeout_ms);
	cr_assert_eq(in.event.options.snapshot, e.options.snapshot);
	cr_assert_eq(in.event.options.alignment, e.options.alignment);
}

Test(net_frame, carries_credits_and_acknowledgements)
{
	struct net_path p = path(false);
	struct frame_out out = {0};
	struct net_frame in;
	uint8_t bytes[FRAME_BYTES_MAX];
	struct net_credit credits[2] = {{7, true, 64, 1ull << 33}, {8, false, 80, 2}};
	uint64_t words[3] = {1, UINT64_MAX, 5};

	start(&out, &p, NET_FRAME_CREDIT);
	net_frame_put_credits(&out, credits, 2);
	net_frame_end(&out, &p);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), false, &in), 0);
	cr_assert_eq(in.credit_count, 2);
	struct net_credit c = net_frame_credit_at(&in, 0);
	cr_assert(c.channel == 7 && c.is_all_processed && c.event_limit == 64);
	cr_assert_eq(c.processed, 1ull << 33);
	cr_assert_not(net_frame_credit_at(&in, 1).is_all_processed);

	start(&out, &p, NET_FRAME_ACK);
	net_frame_put_ack(&out, 640, words, 3);
	net_frame_end(&out, &p);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), false, &in), 0);
	cr_assert_eq(in.base, 640);
	cr_assert_eq(in.word_count, 3);
	cr_assert_eq(net_frame_word_at(&in, 2), 5);
}

/* Every bit counts, wherever it is; only the source address and MACs are nobody's business here. */
Test(net_frame, refuses_a_frame_with_any_bit_turned_over)
{
	struct net_path p = path(false);
	struct frame_out out = {0};
	struct net_frame in;
	uint8_t bytes[FRAME_BYTES_MAX];

	start(&out, &p, NET_FRAME_EVENT);
	net_frame_put_event(&out, &(struct event){.kind = EVENT_BARRIER, .announcement = 1});
	net_frame_end(&out, &p);
	uint32_t size = flatten(&out, bytes);
	for (uint32_t bit = 12 * 8; bit < size * 8; bit++) {
		if (bit / 8 == 34 || bit / 8 == 35 || bit / 8 == 40 || bit / 8 == 41)
			continue; /* UDP source port; UDP checksum, which IPv4 does without */
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_neq(decode(bytes, size, false, &in), 0, "bit %u", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	cr_assert_eq(decode(bytes, size, false, &in), 0);
}

Test(net_frame, refuses_a_frame_of_any_other_length)
{
	struct net_path p = path(false);
	struct frame_out out = {0};
	struct net_frame in;
	uint8_t bytes[FRAME_BYTES_MAX] = {0};

	start(&out, &p, NET_FRAME_PING);
	net_frame_end(&out, &p);
	uint32_t size = flatten(&out, bytes);
	for (uint32_t shorter = 0; shorter < size; shorter++)
		cr_assert_neq(decode(bytes, shorter, false, &in), 0);
	cr_assert_eq(decode(bytes, 60 > size ? 60 : size + 4, false, &in), 0, "Ethernet pads");
}

static struct net_frame_start numbered(uint32_t number)
{
	return (struct net_frame_start){.token = 0x1122334455667788, .number = number,
			.age = (uint16_t)(number - 880), .kind = NET_FRAME_DATA};
}

static void make_alone(struct frame_out *f, const struct net_path *p, uint32_t number,
		const struct net_piece *piece)
{
	struct net_frame_start s = numbered(number);

	net_frame_begin(f, p, &s);
	net_frame_put_data(f, piece);
	net_frame_end(f, p);
}

static void check_repeat(bool is_ipv6)
{
	struct net_path p = path(is_ipv6);
	struct frame_out like = {0}, plain = {0}, again = {0};
	struct net_frame_start s = numbered(901);
	uint8_t bytes[2][FRAME_BYTES_MAX];
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 3000);
	struct net_piece one = {.buf = b, .announcement = 9, .bytes = 1000, .channel = 3};
	struct net_piece two = one;

	two.offset = 1000;
	two.index = 1;
	p.has_bare_bodies = true;
	p.is_udp_offloaded = is_ipv6;
	make_alone(&like, &p, 900, &one);
	make_alone(&plain, &p, 901, &two);
	cr_assert(net_frame_repeat(&again, &like, &p, &s, &two));
	cr_assert_eq(again.owner, b);
	cr_assert_eq(again.wants_udp_checksum, plain.wants_udp_checksum);
	cr_assert_eq(again.l3_offset, plain.l3_offset);
	cr_assert_eq(again.l4_offset, plain.l4_offset);
	cr_assert_eq(flatten(&again, bytes[0]), flatten(&plain, bytes[1]));
	cr_assert_arr_eq(bytes[0], bytes[1], plain.head_bytes + plain.body_bytes);
	buf_release(b);
	buf_pool_destroy(pool);
}

Test(net_frame, repeats_one_as_if_it_were_made_from_its_start)
{
	check_repeat(false);
	check_repeat(true);
}

Test(net_frame, repeats_none_that_differs_in_more)
{
	struct net_path p = path(false), summed = p, ipv6 = path(true);
	struct frame_out like = {0}, f = {0};
	struct net_frame_start s = numbered(901);
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 2), 0);
	struct buf *b = filled(pool, 3000), *other = filled(pool, 3000);
	struct net_piece piece = {.buf = b, .announcement = 9, .bytes = 1000, .channel = 3};
	struct net_piece different[4] = {piece, piece, piece, piece};

	p.has_bare_bodies = true;
	ipv6.has_bare_bodies = true;
	make_alone(&like, &p, 900, &piece);
	cr_assert(net_frame_repeat(&f, &like, &p, &s, &piece));
	different[0].buf = other;
	different[1].bytes = 999;
	different[2].announcement = 10;
	different[3].channel = 4;
	for (int i = 0; i < 4; i++)
		cr_expect_not(net_frame_repeat(&f, &like, &p, &s, &different[i]), "%d", i);
	cr_assert_not(net_frame_repeat(&f, &like, &summed, &s, &piece), "it has a sum");
	make_alone(&like, &ipv6, 900, &piece);
	cr_assert_not(net_frame_repeat(&f, &like, &ipv6, &s, &piece), "UDP has a sum");
	buf_release(b);
	buf_release(other);
	buf_pool_destroy(pool);
}

/* Over memory within one host; a sum says that it is of a frame from elsewhere. */
Test(net_frame, sums_nothing_of_a_bare_one)
{
	struct net_path p = path(false);
	struct frame_out out = {0};
	struct net_frame in;
	struct buf_pool *pool;
	uint8_t bytes[FRAME_BYTES_MAX];

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 999);
	p.has_bare_bodies = true;
	start(&out, &p, NET_FRAME_DATA);
	net_frame_put_data(&out, &(struct net_piece){.buf = b, .announcement = 9, .bytes = 999});
	net_frame_end(&out, &p);
	uint32_t size = flatten(&out, bytes);
	cr_assert_eq(size, 96 + 999);
	cr_assert_eq(decode(bytes, size, false, &in), 0);
	cr_assert(in.is_bare);
	cr_assert_eq(in.kind, NET_FRAME_DATA);
	bytes[96] ^= 1;
	cr_assert_eq(decode(bytes, size, false, &in), 0);
	for (uint32_t bit = (42 + 4) * 8; bit < (42 + 8) * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(decode(bytes, size, false, &in), -EILSEQ, "bit %u", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	start(&out, &p, NET_FRAME_PING);
	net_frame_end(&out, &p);
	cr_assert_eq(decode(bytes, flatten(&out, bytes), false, &in), 0);
	cr_assert_not(in.is_bare);
	buf_release(b);
	buf_pool_destroy(pool);
}

static uint32_t ones_sum(uint32_t sum, const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		sum += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* RFC 8200, 8.1: the pseudo header, then UDP; the sum of all is all ones. */
Test(net_frame, gives_ipv6_the_udp_checksum_it_must_have)
{
	struct net_path p = path(true);
	struct frame_out out = {0};
	struct buf_pool *pool;
	uint8_t bytes[FRAME_BYTES_MAX];

	cr_assert_eq(buf_pool_from_heap(&pool, 4096, 1), 0);
	struct buf *b = filled(pool, 999);
	start(&out, &p, NET_FRAME_DATA);
	net_frame_put_data(&out, &(struct net_piece){.buf = b, .announcement = 9, .bytes = 999});
	net_frame_end(&out, &p);
	uint32_t size = flatten(&out, bytes);
	uint32_t sum = ones_sum(17 + size - 54, bytes + 22, 32);
	cr_assert_eq(ones_sum(sum, bytes + 54, size - 54), 0xffff);
	buf_release(b);
	buf_pool_destroy(pool);
}

Test(net_path, prints_an_address_as_it_reads_it)
{
	const char *good[] = {"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1 00c0ffee00000001",
			"02:aa:00:00:00:01 fd00::12 1 57472 512 64"};
	const char *bad[] = {"", "02:aa:00:00:00:01 10.1.2.3 6125", "x 10.1.2.3 6125 1514 512 1",
			"02:aa:00:00:00:01 10.1.2.300 6125 1514 512 1",
			"02:aa:00:00:00:01 10.1.2.3 0 1514 512 1",
			"02:aa:00:00:00:01 10.1.2.3 70000 1514 512 1",
			"02:aa:00:00:00:01 10.1.2.3 6125 575 512 1",
			"02:aa:00:00:00:01 10.1.2.3 6125 57473 512 1",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 0",
			"02:aa:00:00:00:01 10.1.2.3 65535 1514 512 2",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1 x",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1 0000000000000000",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1 c0ffee",
			"02:aa:00:00:00:01 10.1.2.3 6125 1514 512 1 00c0ffee00000001 1"};
	char text[NET_ADDRESS_TEXT_BYTES];
	struct net_address a;

	for (uint32_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(net_address_parse(good[i], &a), 0);
		net_address_print(&a, text);
		cr_assert_str_eq(text, good[i]);
	}
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(net_address_parse(bad[i], &a), -EINVAL, "%s", bad[i]);
}

Test(net_path, gives_each_queue_a_udp_port_of_its_own)
{
	struct net_address a = address("02:aa:00:00:00:01 10.1.2.3 6125 1514 512 4");

	cr_assert_eq(net_address_of_queue(&a, 0).udp_port, 6125);
	cr_assert_eq(net_address_of_queue(&a, 3).udp_port, 6128);
}

Test(net_path, is_refused_when_the_ends_take_frames_of_other_sizes)
{
	struct net_address a = remote(false), b = a;
	struct net_path p;

	b.frame_bytes_max = 9014;
	cr_assert_eq(net_path_init(&p, &a, &b, NULL), -EMSGSIZE);
	cr_assert_eq(net_path_init(&p, &b, &a, NULL), -EMSGSIZE);
	cr_assert_eq(net_path_init(&p, &b, &b, NULL), 0);
	cr_assert_eq(p.frame_bytes_max, 9014, "jumbo when both say so");
}

Test(net_path, has_bare_bodies_only_when_both_ends_say_so_on_one_host)
{
	struct net_address a = remote(false), b = a;
	struct net_path p;

	cr_assert_eq(net_path_init(&p, &a, &b, NULL), 0);
	cr_assert_not(p.has_bare_bodies, "nobody says it");
	a.host = 7;
	cr_assert_eq(net_path_init(&p, &a, &b, NULL), 0);
	cr_assert_not(p.has_bare_bodies, "one says it");
	b.host = 8;
	cr_assert_eq(net_path_init(&p, &a, &b, NULL), 0);
	cr_assert_not(p.has_bare_bodies, "on another host");
	b.host = 7;
	cr_assert_eq(net_path_init(&p, &a, &b, NULL), 0);
	cr_assert(p.has_bare_bodies);
}

Test(net_path, goes_to_the_gateway_when_there_is_one)
{
	struct net_address a = remote(false);
	const uint8_t gateway[6] = {2, 9, 9, 9, 9, 9};
	struct net_path p;

	cr_assert_eq(net_path_init(&p, &a, &a, gateway), 0);
	cr_assert_arr_eq(p.bytes, gateway, 6);
	cr_assert_eq(net_path_init(&p, &a, &a, NULL), 0);
	cr_assert_arr_eq(p.bytes, a.mac, 6);
}
