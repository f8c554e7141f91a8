/*
 * header: magic 8, version 4, sum 4, id 8, ordinal 8, first 8, largest record 4, zeros to 64.
 * block:  magic 4, sum of the head 4, ordinal 8, sequence 8, durable 8, count 4, bytes 4,
 *         sum of the payload 4, zero 4.  Sums are CRC32C; that of a head is over the head with
 *         zeros in its place.
 */

#include "dataplane/journal/journal_format.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEADER_MAGIC "WEIRJRNL"
enum { MAGIC_BYTES = 8, SUM_AT_HEADER = 12, SUM_AT_BLOCK = 4, NAME_DIGITS = 16 };

static const char name_begin[] = "segment-";
static const uint32_t block_magic = 0x4b4c424a; /* "JBLK" */

__attribute__((format(printf, 2, 3))) static int refuse(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, JOURNAL_TEXT_BYTES, format, args);
	va_end(args);
	return -EBADMSG;
}

/* ---- names ----------------------------------------------------------------------------------- */

void journal_name(char name[JOURNAL_NAME_BYTES], uint64_t ordinal)
{
	snprintf(name, JOURNAL_NAME_BYTES, "%s%016llx", name_begin, (unsigned long long)ordinal);
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int journal_name_parse(const char *name, uint64_t *ordinal)
{
	const size_t begin_bytes = sizeof(name_begin) - 1;

	if (strlen(name) != begin_bytes + NAME_DIGITS || memcmp(name, name_begin, begin_bytes) != 0)
		return -EINVAL;
	*ordinal = 0;
	for (size_t i = 0; i < NAME_DIGITS; i++) {
		int digit = digit_of(name[begin_bytes + i]);

		if (digit < 0)
			return -EINVAL;
		*ordinal = *ordinal << 4 | (uint64_t)digit;
	}
	return 0;
}

/* ---- the header ------------------------------------------------------------------------------ */

void journal_encode_header(uint8_t *room, const struct journal_segment_header *h)
{
	memset(room, 0, JOURNAL_ALIGN_BYTES);
	memcpy(room, HEADER_MAGIC, MAGIC_BYTES);
	put_u32(room + 8, JOURNAL_VERSION);
	put_u64(room + 16, h->id);
	put_u64(room + 24, h->ordinal);
	put_u64(room + 32, h->first);
	put_u32(room + 40, h->record_bytes_max);
	put_u32(room + SUM_AT_HEADER, crc32c_around(room, JOURNAL_HEADER_BYTES, SUM_AT_HEADER));
}

int journal_decode_header(struct journal_segment_header *h, const uint8_t *bytes, size_t size,
		char text[JOURNAL_TEXT_BYTES])
{
	if (size < JOURNAL_HEADER_BYTES || memcmp(bytes, HEADER_MAGIC, MAGIC_BYTES) != 0)
		return refuse(text, "is not a segment of a journal");
	if (get_u32(bytes + 8) != JOURNAL_VERSION)
		return refuse(text, "segment of version %u; this is %d", get_u32(bytes + 8),
				JOURNAL_VERSION);
	uint32_t crc = crc32c_around(bytes, JOURNAL_HEADER_BYTES, SUM_AT_HEADER);
	if (crc != get_u32(bytes + SUM_AT_HEADER))
		return refuse(text, "the checksum of its header is %08x instead of %08x", crc,
				get_u32(bytes + SUM_AT_HEADER));
	*h = (struct journal_segment_header){
			.id = get_u64(bytes + 16),
			.ordinal = get_u64(bytes + 24),
			.first = get_u64(bytes + 32),
			.record_bytes_max = get_u32(bytes + 40),
	};
	if (h->id == 0 || h->record_bytes_max > JOURNAL_PAYLOAD_BYTES_MAX - sizeof(uint32_t))
		return refuse(text, "its header has an id of 0, or records larger than a block");
	return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

uint32_t journal_seal_block(uint8_t *block, const struct journal_block_head *head)
{
	uint32_t used = JOURNAL_BLOCK_HEAD_BYTES + head->bytes;
	uint32_t total = journal_block_bytes(head->bytes);

	CHECK(head->bytes <= JOURNAL_PAYLOAD_BYTES_MAX && head->count > 0);
	memset(block + used, 0, total - used);
	memset(block, 0, JOURNAL_BLOCK_HEAD_BYTES);
	put_u32(block, block_magic);
	put_u64(block + 8, head->ordinal);
	put_u64(block + 16, head->sequence);
	put_u64(block + 24, head->durable);
	put_u32(block + 32, head->count);
	put_u32(block + 36, head->bytes);
	put_u32(block + 40, crc32c(0, block + JOURNAL_BLOCK_HEAD_BYTES, head->bytes));
	put_u32(block + SUM_AT_BLOCK, crc32c_around(block, JOURNAL_BLOCK_HEAD_BYTES, SUM_AT_BLOCK));
	return total;
}

int journal_decode_head(struct journal_block_head *head, const uint8_t *bytes, size_t size,
		char text[JOURNAL_TEXT_BYTES])
{
	if (size < JOURNAL_BLOCK_HEAD_BYTES || get_u32(bytes) != block_magic)
		return refuse(text, "no block begins here");
	uint32_t crc = crc32c_around(bytes, JOURNAL_BLOCK_HEAD_BYTES, SUM_AT_BLOCK);
	if (crc != get_u32(bytes + SUM_AT_BLOCK))
		return refuse(text, "the checksum of the head of a block is %08x instead of %08x",
				crc, get_u32(bytes + SUM_AT_BLOCK));
	*head = (struct journal_block_head){
			.ordinal = get_u64(bytes + 8),
			.sequence = get_u64(bytes + 16),
			.durable = get_u64(bytes + 24),
			.count = get_u32(bytes + 32),
			.bytes = get_u32(bytes + 36),
	};
	if (head->count == 0 || head->bytes > JOURNAL_PAYLOAD_BYTES_MAX ||
			head->count > head->bytes / sizeof(uint32_t) ||
			head->sequence > UINT64_MAX - head->count)
		return refuse(text, "the head of a block has numbers that cannot be");
	return 0;
}

static int check_records(const struct journal_block_head *head, const uint8_t *at,
		uint32_t record_bytes_max, char text[JOURNAL_TEXT_BYTES])
{
	uint32_t left = head->bytes;

	for (uint32_t i = 0; i < head->count; i++) {
		if (left < sizeof(uint32_t))
			return refuse(text, "a block has %u of %u records", i, head->count);
		uint32_t size = get_u32(at);
		left -= (uint32_t)sizeof(uint32_t);
		if (size > left || size > record_bytes_max)
			return refuse(text, "a record of %u bytes; at most %u are left for it",
					size, left < record_bytes_max ? left : record_bytes_max);
		at += sizeof(uint32_t) + size;
		left -= size;
	}
	return left == 0 ? 0 : refuse(text, "%u bytes behind the last record of a block", left);
}

int journal_check_block(struct journal_block_head *head, const uint8_t *bytes, size_t size,
		uint32_t record_bytes_max, char text[JOURNAL_TEXT_BYTES])
{
	int rc = journal_decode_head(head, bytes, size, text);

	if (rc != 0)
		return rc;
	if (head->bytes > size - JOURNAL_BLOCK_HEAD_BYTES)
		return refuse(text, "a block is cut behind %zu bytes", size);
	uint32_t crc = crc32c(0, bytes + JOURNAL_BLOCK_HEAD_BYTES, head->bytes);
	if (crc != get_u32(bytes + 40))
		return refuse(text, "the checksum of a block is %08x instead of %08x", crc,
				get_u32(bytes + 40));
	return check_records(head, bytes + JOURNAL_BLOCK_HEAD_BYTES, record_bytes_max, text);
}
