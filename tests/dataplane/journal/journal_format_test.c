/* journal_format: what was written is read back, and nothing else is. */

#include "dataplane/journal/journal_format.h"

#include "dataplane/base/little_endian.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

enum { RECORD_MAX = 100 };

static uint8_t block[JOURNAL_BLOCK_BYTES_MAX];
static char text[JOURNAL_TEXT_BYTES];

/* `count` records of 1, 2, 3 ... bytes; returns the bytes of the block. */
static uint32_t make_block(uint32_t count)
{
	struct journal_block_head head = {.ordinal = 7, .sequence = 1000, .durable = 990};
	uint8_t *at = block + JOURNAL_BLOCK_HEAD_BYTES;

	for (uint32_t i = 0; i < count; i++) {
		put_u32(at, i + 1);
		memset(at + 4, (int)i, i + 1);
		at += 4 + i + 1;
	}
	head.count = count;
	head.bytes = (uint32_t)(at - block) - JOURNAL_BLOCK_HEAD_BYTES;
	return journal_seal_block(block, &head);
}

static int check(uint32_t size)
{
	struct journal_block_head head;

	return journal_check_block(&head, block, size, RECORD_MAX, text);
}

Test(journal_format, a_header_is_read_as_it_was_written)
{
	const struct journal_segment_header in = {0x1122334455667788, 3, 1u << 30, 276};
	struct journal_segment_header out;
	uint8_t room[JOURNAL_ALIGN_BYTES];

	journal_encode_header(room, &in);
	cr_assert_eq(journal_decode_header(&out, room, sizeof(room), text), 0);
	cr_expect_eq(out.id, in.id);
	cr_expect_eq(out.ordinal, in.ordinal);
	cr_expect_eq(out.first, in.first);
	cr_expect_eq(out.record_bytes_max, in.record_bytes_max);
	for (uint32_t i = 0; i < JOURNAL_HEADER_BYTES; i++) {
		room[i] ^= 0x10;
		cr_expect_eq(journal_decode_header(&out, room, sizeof(room), text), -EBADMSG,
				"byte %u", i);
		room[i] ^= 0x10;
	}
	cr_expect_eq(journal_decode_header(&out, room, JOURNAL_HEADER_BYTES - 1, text), -EBADMSG);
}

Test(journal_format, names_are_ordinals_and_other_names_are_none)
{
	char name[JOURNAL_NAME_BYTES];
	uint64_t ordinal;

	journal_name(name, 0xfedcba9876543210);
	cr_assert_eq(journal_name_parse(name, &ordinal), 0);
	cr_expect_eq(ordinal, 0xfedcba9876543210);
	cr_expect_eq(journal_name_parse("segment-", &ordinal), -EINVAL);
	cr_expect_eq(journal_name_parse("segment-000000000000000g", &ordinal), -EINVAL);
	cr_expect_eq(journal_name_parse("segment-00000000000000000", &ordinal), -EINVAL);
	cr_expect_eq(journal_name_parse("covered", &ordinal), -EINVAL);
}

Test(journal_format, a_block_is_whole_or_refused_whichever_byte_of_it_is_wrong)
{
	uint32_t size = make_block(12);

	cr_expect_eq(size % JOURNAL_ALIGN_BYTES, 0);
	cr_expect_eq(check(size), 0, "%s", text);
	uint32_t used = JOURNAL_BLOCK_HEAD_BYTES + get_u32(block + 36);
	for (uint32_t i = 0; i < used; i++) {
		if (i >= 44 && i < 48)
			continue; /* is zero, and means nothing */
		block[i] ^= 1;
		cr_expect_eq(check(size), -EBADMSG, "byte %u", i);
		block[i] ^= 1;
	}
	for (uint32_t i = 0; i < used; i++)
		cr_expect_eq(check(i), -EBADMSG, "cut behind %u", i);
}

Test(journal_format, records_must_fill_a_block_and_fit_where_they_go)
{
	struct journal_block_head head = {.ordinal = 1, .count = 2, .bytes = 16};
	uint8_t *at = block + JOURNAL_BLOCK_HEAD_BYTES;

	put_u32(at, 4);
	put_u32(at + 8, 4);
	cr_expect_eq(check(journal_seal_block(block, &head)), 0);
	put_u32(at + 8, 3);
	cr_expect_eq(check(journal_seal_block(block, &head)), -EBADMSG);
	cr_expect(strstr(text, "behind the last") != NULL, "%s", text);
	put_u32(at + 8, 5);
	cr_expect_eq(check(journal_seal_block(block, &head)), -EBADMSG);
	put_u32(at, UINT32_MAX);
	cr_expect_eq(check(journal_seal_block(block, &head)), -EBADMSG);
	put_u32(at, 4);
	put_u32(at + 8, 4);
	head.count = 3;
	cr_expect_eq(check(journal_seal_block(block, &head)), -EBADMSG);
	head = (struct journal_block_head){.count = 1, .bytes = 4 + RECORD_MAX + 1};
	put_u32(at, RECORD_MAX + 1);
	cr_expect_eq(check(journal_seal_block(block, &head)), -EBADMSG);
	cr_expect(strstr(text, "101 bytes") != NULL, "%s", text);
}
