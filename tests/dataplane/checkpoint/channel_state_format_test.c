/* channel_state_format: each number has its place in the file, and what cannot be is refused. */

#include "dataplane/checkpoint/channel_state_format.h"

#include "dataplane/base/crc.h"
#include "dataplane/base/little_endian.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	CHUNKS = 2,
	SECTION_BYTES = CHANNEL_STATE_SECTION_BYTES + CHUNKS * CHANNEL_STATE_CHUNK_BYTES,
};

static const struct channel_state_header HEADER = {
	.checkpoint_id = 0x0102030405060708,
	.table_offset = 0x1112131415161718,
	.table_bytes = 0x2122232425262728,
	.section_count = 0x31323334,
};
static const struct channel_state_section SECTION = {
	.checkpoint_id = 0x0102030405060708,
	.vertex_uid = "map",
	.subtask_index = 0x11121314,
	.side = CHANNEL_STATE_OUTPUT,
	.gate = 0x21222324,
	.channel = 0x31323334,
	.bytes = 0x4142434445464748,
	.chunk_count = CHUNKS,
};
static const struct channel_state_chunk CHUNK = {
	.offset = 0x0102030405060708,
	.size = 0x71727374,
	.first_record = 0x21222324,
	.watermark = 0x3132333435363738,
	.crc = 0x41424344,
};

static char text[CHANNEL_STATE_FORMAT_TEXT_BYTES];

static uint32_t sum_around(const uint8_t *bytes, size_t size, size_t at)
{
	uint8_t copy[SECTION_BYTES];

	memcpy(copy, bytes, size);
	memset(copy + at, 0, 4);
	return crc32c(0, copy, size);
}

/* All that is not named is zero. */
static void check_zeros(const uint8_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(at[i], 0);
}

Test(channel_state_format, puts_each_number_of_a_header_in_its_place)
{
	uint8_t room[CHANNEL_STATE_HEADER_BYTES + 1];

	memset(room, 0xee, sizeof(room));
	channel_state_encode_header(room, &HEADER);
	cr_assert_eq(memcmp(room, "WEIRCHAN", 8), 0);
	cr_assert_eq(get_u32(room + 8), 1);
	cr_assert_eq(get_u32(room + 12), sum_around(room, CHANNEL_STATE_HEADER_BYTES, 12));
	cr_assert_eq(get_u64(room + 16), 0x0102030405060708);
	cr_assert_eq(get_u64(room + 24), 0x1112131415161718);
	cr_assert_eq(get_u64(room + 32), 0x2122232425262728);
	cr_assert_eq(get_u32(room + 40), 0x31323334);
	check_zeros(room + 44, 4);
	cr_assert_eq(room[CHANNEL_STATE_HEADER_BYTES], 0xee);
}

Test(channel_state_format, puts_each_number_of_a_section_in_its_place)
{
	uint8_t room[SECTION_BYTES];

	memset(room, 0xee, sizeof(room));
	channel_state_encode_section(room, &SECTION);
	cr_assert_eq(memcmp(room, "SECT", 4), 0);
	check_zeros(room + 4, 4);
	cr_assert_eq(get_u64(room + 8), 0x0102030405060708);
	cr_assert_eq(get_u64(room + 16), 0x4142434445464748);
	cr_assert_eq(get_u32(room + 24), CHUNKS);
	cr_assert_eq(get_u32(room + 28), 0x11121314);
	cr_assert_eq(get_u32(room + 32), 0x21222324);
	cr_assert_eq(get_u32(room + 36), 0x31323334);
	cr_assert_eq(get_u32(room + 40), 1);
	check_zeros(room + 44, 4);
	cr_assert_str_eq((char *)room + 48, "map");
	check_zeros(room + 51, CHANNEL_STATE_SECTION_BYTES - 51);
	cr_assert_eq(room[CHANNEL_STATE_SECTION_BYTES], 0xee);
}

Test(channel_state_format, puts_each_number_of_a_chunk_in_its_place)
{
	uint8_t room[CHANNEL_STATE_CHUNK_BYTES + 1];

	memset(room, 0xee, sizeof(room));
	channel_state_encode_chunk(room, &CHUNK);
	cr_assert_eq(get_u64(room), 0x0102030405060708);
	cr_assert_eq(get_u64(room + 8), 0x3132333435363738);
	cr_assert_eq(get_u32(room + 16), 0x71727374);
	cr_assert_eq(get_u32(room + 20), 0x21222324);
	cr_assert_eq(get_u32(room + 24), 0x41424344);
	check_zeros(room + 28, 4);
	cr_assert_eq(room[CHANNEL_STATE_CHUNK_BYTES], 0xee);
}

static void make_section(uint8_t room[SECTION_BYTES], const struct channel_state_section *s)
{
	channel_state_encode_section(room, s);
	for (uint32_t i = 0; i < CHUNKS; i++)
		channel_state_encode_chunk(room + CHANNEL_STATE_SECTION_BYTES +
				i * CHANNEL_STATE_CHUNK_BYTES, &CHUNK);
	(void)channel_state_seal_section(room, CHUNKS);
}

Test(channel_state_format, sums_a_section_up_with_its_chunks)
{
	uint8_t room[SECTION_BYTES];
	uint32_t crc = 0;

	make_section(room, &SECTION);
	uint32_t sum = sum_around(room, SECTION_BYTES, 4);
	cr_assert_eq(get_u32(room + 4), sum);
	cr_assert_eq(channel_state_seal_section(room, CHUNKS), sum);
	cr_assert_eq(channel_state_check_section(room, SECTION_BYTES, &crc, text), 0, "%s", text);
	cr_assert_eq(crc, sum);
	cr_assert_eq(channel_state_check_section(room, SECTION_BYTES - 1, &crc, text), -EBADMSG);
	cr_assert_not_null(strstr(text, "with 2 buffers ends after 175 bytes"), "%s", text);
	room[SECTION_BYTES - 1] ^= 1;
	cr_assert_eq(channel_state_check_section(room, SECTION_BYTES, &crc, text), -EBADMSG);
	cr_assert_not_null(strstr(text, "checksum of a section"), "%s", text);
}

Test(channel_state_format, reads_a_section_as_it_was_written)
{
	struct channel_state_section s, all = SECTION;
	uint8_t room[SECTION_BYTES];

	memset(all.vertex_uid, 'u', UID_BYTES_MAX - 1); /* the longest name there is */
	for (int side = CHANNEL_STATE_INPUT; side <= CHANNEL_STATE_OUTPUT; side++) {
		all.side = (enum channel_state_side)side;
		make_section(room, &all);
		memset(&s, 0xee, sizeof(s));
		cr_assert_eq(channel_state_decode_section(&s, room, CHANNEL_STATE_SECTION_BYTES,
				text), 0, "%s", text);
		cr_assert_eq(s.checkpoint_id, all.checkpoint_id);
		cr_assert_str_eq(s.vertex_uid, all.vertex_uid);
		cr_assert_eq(s.subtask_index, all.subtask_index);
		cr_assert_eq(s.side, all.side);
		cr_assert_eq(s.gate, all.gate);
		cr_assert_eq(s.channel, all.channel);
		cr_assert_eq(s.bytes, all.bytes);
		cr_assert_eq(s.chunk_count, CHUNKS);
	}
}

/* What a section becomes when `change` bytes at `at` are `value`. */
static int decode_with(size_t at, uint64_t value, size_t bytes)
{
	struct channel_state_section s;
	uint8_t room[SECTION_BYTES];

	make_section(room, &SECTION);
	for (size_t i = 0; i < bytes; i++)
		room[at + i] = (uint8_t)(value >> (8 * i));
	return channel_state_decode_section(&s, room, SECTION_BYTES, text);
}

Test(channel_state_format, refuses_a_section_with_numbers_that_cannot_be)
{
	struct channel_state_section s;
	uint8_t room[SECTION_BYTES];

	make_section(room, &SECTION);
	cr_assert_eq(channel_state_decode_section(&s, room, CHANNEL_STATE_SECTION_BYTES - 1, text),
			-EBADMSG);
	cr_assert_eq(decode_with(0, 'S' + 1, 1), -EBADMSG);
	cr_assert_not_null(strstr(text, "there is no section"), "%s", text);
	cr_assert_eq(decode_with(8, 1, 8), 0);
	cr_assert_eq(decode_with(8, 0, 8), -EBADMSG);
	cr_assert_not_null(strstr(text, "numbers that cannot be"), "%s", text);
	cr_assert_eq(decode_with(8, UINT64_MAX, 8), -EBADMSG);
	cr_assert_eq(decode_with(24, CHANNEL_STATE_CHUNKS_MAX, 4), 0);
	cr_assert_eq(decode_with(24, CHANNEL_STATE_CHUNKS_MAX + 1, 4), -EBADMSG);
	cr_assert_eq(decode_with(40, 0, 4), 0);
	cr_assert_eq(decode_with(40, 1, 4), 0);
	cr_assert_eq(decode_with(40, 2, 4), -EBADMSG);
	cr_assert_eq(decode_with(48 + UID_BYTES_MAX - 2, 'x', 1), 0);
	cr_assert_eq(decode_with(48 + UID_BYTES_MAX - 1, 'x', 1), -EBADMSG);
}

static int read_header(struct channel_state_header h)
{
	struct channel_state_header got;
	uint8_t room[CHANNEL_STATE_HEADER_BYTES];

	channel_state_encode_header(room, &h);
	int rc = channel_state_decode_header(&got, room, sizeof(room), text);
	if (rc == 0)
		cr_assert(got.checkpoint_id == h.checkpoint_id &&
				got.table_offset == h.table_offset &&
				got.table_bytes == h.table_bytes &&
				got.section_count == h.section_count);
	return rc;
}

Test(channel_state_format, refuses_a_header_with_numbers_that_cannot_be)
{
	cr_assert_eq(read_header(HEADER), 0, "%s", text);
	cr_assert_eq(read_header((struct channel_state_header){1, 0, 0, 0}), 0);
	cr_assert_eq(read_header((struct channel_state_header){0, 0, 0, 0}), -EBADMSG);
	cr_assert_not_null(strstr(text, "numbers that cannot be"), "%s", text);
	cr_assert_eq(read_header((struct channel_state_header){-1, 0, 0, 0}), -EBADMSG);
	cr_assert_eq(read_header((struct channel_state_header){1, INT64_MAX, 0, 0}), 0);
	cr_assert_eq(read_header((struct channel_state_header){1, 1ull << 63, 0, 0}), -EBADMSG);
	cr_assert_eq(read_header((struct channel_state_header){1, 7, INT64_MAX - 7, 0}), 0);
	cr_assert_eq(read_header((struct channel_state_header){1, 7, INT64_MAX - 6, 0}), -EBADMSG);
	cr_assert_eq(read_header((struct channel_state_header){1, 0, 336, 3}), 0);
	cr_assert_eq(read_header((struct channel_state_header){1, 0, 335, 3}), -EBADMSG);
	cr_assert_eq(read_header((struct channel_state_header){1, 0, 336, 4}), -EBADMSG);
}

Test(channel_state_format, refuses_what_is_no_header_of_this_version)
{
	struct channel_state_header h;
	uint8_t room[CHANNEL_STATE_HEADER_BYTES];

	channel_state_encode_header(room, &HEADER);
	cr_assert_eq(channel_state_decode_header(&h, room, sizeof(room) - 1, text), -EBADMSG);
	cr_assert_str_eq(text, "is not a channel-state file");
	room[7] ^= 1;
	cr_assert_eq(channel_state_decode_header(&h, room, sizeof(room), text), -EBADMSG);
	cr_assert_str_eq(text, "is not a channel-state file");
	room[7] ^= 1;
	room[8] = 2;
	cr_assert_eq(channel_state_decode_header(&h, room, sizeof(room), text), -EBADMSG);
	cr_assert_str_eq(text, "channel-state file of version 2; this is 1");
	room[8] = 1;
	room[47] ^= 1;
	cr_assert_eq(channel_state_decode_header(&h, room, sizeof(room), text), -EBADMSG);
	char expected[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	snprintf(expected, sizeof(expected), "the checksum of its header is %08x instead of %08x",
			sum_around(room, sizeof(room), 12), get_u32(room + 12));
	cr_assert_str_eq(text, expected);
}

static int read_chunk(struct channel_state_chunk c)
{
	struct channel_state_chunk got;
	uint8_t room[CHANNEL_STATE_CHUNK_BYTES];

	channel_state_encode_chunk(room, &c);
	int rc = channel_state_decode_chunk(&got, room, text);
	if (rc == 0)
		cr_assert(got.offset == c.offset && got.size == c.size &&
				got.first_record == c.first_record && got.crc == c.crc &&
				got.watermark == c.watermark);
	return rc;
}

Test(channel_state_format, refuses_a_chunk_with_numbers_that_cannot_be)
{
	struct channel_state_chunk c = CHUNK;

	cr_assert_eq(read_chunk(c), 0, "%s", text);
	c.offset = INT64_MAX - UINT32_MAX;
	cr_assert_eq(read_chunk(c), 0);
	c.offset++;
	cr_assert_eq(read_chunk(c), -EBADMSG);
	cr_assert_str_eq(text, "a buffer of channel state lies at 9223372032559808513");
	c = CHUNK;
	c.first_record = UINT32_MAX;
	cr_assert_eq(read_chunk(c), 0);
	c.first_record = c.size - 1;
	cr_assert_eq(read_chunk(c), 0);
	c.first_record = c.size;
	cr_assert_eq(read_chunk(c), -EBADMSG);
	c.size = 9;
	c.first_record = 9;
	cr_assert_eq(read_chunk(c), -EBADMSG);
	cr_assert_str_eq(text, "a buffer of channel state has 9 bytes and a record at 9");
}
