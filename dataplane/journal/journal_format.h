#pragma once

/*
 * journal_format: the files of a journal, byte by byte.
 *
 * A journal is a directory of segments, `segment-<ordinal, 16 hex digits>`, in the order of their
 * ordinals.  A segment begins with a header in the first JOURNAL_ALIGN_BYTES; blocks follow, each
 * beginning at a multiple of that.  A block holds records one after the other: a 32-bit size and
 * that many bytes.  Numbers are little endian.
 *
 * The sequence counts records from the beginning of the journal.  A segment ends where the next one
 * begins (`first`); the last one at the first block that is not whole, or not the one expected:
 * what a crash tore was durable for nobody.  A later block that says otherwise (`durable`) tells
 * damage from that.
 *
 * Place    journal; pure: no file is read or written here.
 * Thread   any.
 * Errors   decode reads foreign bytes: -EBADMSG with one line.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	JOURNAL_VERSION = 1,
	JOURNAL_ALIGN_BYTES = 4096,
	JOURNAL_HEADER_BYTES = 64, /* the rest of its block is zeros */
	JOURNAL_BLOCK_HEAD_BYTES = 48,
	JOURNAL_BLOCK_BYTES_MAX = 128 * 1024, /* of a block with its head and padding */
	JOURNAL_PAYLOAD_BYTES_MAX = JOURNAL_BLOCK_BYTES_MAX - JOURNAL_BLOCK_HEAD_BYTES,
	JOURNAL_NAME_BYTES = 32,
	JOURNAL_TEXT_BYTES = 256,
};

struct journal_segment_header {
	uint64_t id;	  /* of the journal */
	uint64_t ordinal; /* of the segment */
	uint64_t first;	  /* sequence of its first record */
	uint32_t record_bytes_max;
};

struct journal_block_head {
	uint64_t ordinal;      /* of its segment */
	uint64_t sequence;     /* of its first record */
	uint64_t durable;      /* all records before this one were, when it was written */
	uint32_t count, bytes; /* of records; of payload */
};

/* What a block takes in the file. */
static inline uint32_t journal_block_bytes(uint32_t payload_bytes)
{
	return (JOURNAL_BLOCK_HEAD_BYTES + payload_bytes + JOURNAL_ALIGN_BYTES - 1) &
	       ~(uint32_t)(JOURNAL_ALIGN_BYTES - 1);
}

void journal_name(char name[JOURNAL_NAME_BYTES], uint64_t ordinal);
/* The ordinal in a name; -EINVAL: not the name of a segment. */
int journal_name_parse(const char *name, uint64_t *ordinal);

/* JOURNAL_ALIGN_BYTES of it. */
void journal_encode_header(uint8_t *room, const struct journal_segment_header *h);
int journal_decode_header(struct journal_segment_header *h, const uint8_t *bytes, size_t size,
		char text[JOURNAL_TEXT_BYTES]);

/* The payload stands behind the room for the head; pads it with zeros, returns the bytes of the
 * block. */
uint32_t journal_seal_block(uint8_t *block, const struct journal_block_head *head);

/* The head alone, with its sum; its numbers are in bounds. */
int journal_decode_head(struct journal_block_head *head, const uint8_t *bytes, size_t size,
		char text[JOURNAL_TEXT_BYTES]);

/* A whole block: its sums, and `count` records of up to `record_bytes_max` that fill it. */
int journal_check_block(struct journal_block_head *head, const uint8_t *bytes, size_t size,
		uint32_t record_bytes_max, char text[JOURNAL_TEXT_BYTES]);
