/* Any bytes as a segment of a journal: refused, or records that stay within their block. */

#include "dataplane/base/check.h"
#include "dataplane/base/little_endian.h"
#include "dataplane/journal/journal_format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Walks it as readers do; what is read is added up, so that a byte behind the end is seen. */
static uint64_t walk(const uint8_t *payload, const struct journal_block_head *head)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < head->count; i++) {
		uint32_t bytes = get_u32(payload);

		for (uint32_t k = 0; k < bytes; k++)
			sum += payload[4 + k];
		payload += 4 + bytes;
	}
	return sum;
}

static void read_blocks(const uint8_t *bytes, size_t size)
{
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;
	uint64_t sum = 0;
	size_t at = 0;

	while (at < size && journal_check_block(&head, bytes + at, size - at, 8192, text) == 0) {
		sum += walk(bytes + at + JOURNAL_BLOCK_HEAD_BYTES, &head);
		at += journal_block_bytes(head.bytes);
	}
	CHECK(sum <= size * UINT64_C(255));
}

/* Gives the sums that random bytes never have, so that what is behind them is reached. */
static void seal(uint8_t *block, size_t size)
{
	struct journal_block_head head = {.ordinal = 1, .sequence = 2, .durable = 1};

	if (size < 2 * JOURNAL_ALIGN_BYTES)
		return;
	head.count = block[0] | 1;
	head.bytes = get_u32(block) % (JOURNAL_ALIGN_BYTES - JOURNAL_BLOCK_HEAD_BYTES);
	(void)journal_seal_block(block, &head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[JOURNAL_TEXT_BYTES];
	struct journal_segment_header header;
	struct journal_block_head head;
	uint8_t *copy = malloc(size + 2 * JOURNAL_ALIGN_BYTES);
	uint8_t *exact = malloc(size + 1);

	memcpy(exact, data, size);
	(void)journal_decode_header(&header, exact, size, text);
	(void)journal_decode_head(&head, exact, size, text);
	read_blocks(exact, size);
	memcpy(copy, data, size);
	memset(copy + size, 0, 2 * JOURNAL_ALIGN_BYTES);
	seal(copy, size + 2 * JOURNAL_ALIGN_BYTES);
	read_blocks(copy, size + 2 * JOURNAL_ALIGN_BYTES);
	free(copy);
	free(exact);
	return 0;
}
