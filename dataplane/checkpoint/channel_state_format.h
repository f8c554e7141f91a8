#pragma once

/*
 * channel_state_format: the file of in-flight buffers, byte by byte (18.4, 18.5).
 *
 * Place    checkpoint; pure: no file is read or written here.
 * Errors   decode reads foreign bytes: -EBADMSG with one line.
 *
 * A file begins with a header in a block of its own; then the bytes of buffers, each where a write
 * past the page cache may put it; at the end the table: one section for each channel that had
 * data, behind it its chunks in stream order.  A handle points to a section, a section to all the
 * bytes of its channel.  All subtasks that share the file lie between each other: only the offsets
 * tell them apart.  Numbers are little endian; bytes that no section names mean nothing.
 */

#include "dataplane/base/limits.h"

#include <stddef.h>
#include <stdint.h>

enum {
	CHANNEL_STATE_VERSION = 1,
	CHANNEL_STATE_HEADER_BYTES = 48,
	CHANNEL_STATE_SECTION_BYTES = 112, /* without its chunks */
	CHANNEL_STATE_CHUNK_BYTES = 32,
	CHANNEL_STATE_CHUNKS_MAX = 1 << 20, /* of one section */
	CHANNEL_STATE_FORMAT_TEXT_BYTES = 256,
};

/* How the names of the files begin. */
#define CHANNEL_STATE_PREFIX "channels-"

enum channel_state_side { CHANNEL_STATE_INPUT, CHANNEL_STATE_OUTPUT };

/* Of a whole file. */
struct channel_state_header {
	int64_t checkpoint_id;
	uint64_t table_offset, table_bytes;
	uint32_t section_count;
};

/* One buffer, or what was left of it. */
struct channel_state_chunk {
	uint64_t offset; /* of its first byte in the file */
	uint32_t size;
	uint32_t first_record; /* offset of the first record that starts in it, or BUF_NO_RECORD */
	int64_t watermark;     /* holds behind its last record */
	uint32_t crc;          /* CRC32C of its bytes */
};

/* What was in flight in one channel. */
struct channel_state_section {
	int64_t checkpoint_id;
	char vertex_uid[UID_BYTES_MAX];
	uint32_t subtask_index;
	enum channel_state_side side;
	uint32_t gate, channel; /* or partition, subpartition */
	uint64_t bytes;         /* of all its chunks */
	uint32_t chunk_count;
};

/* Where a section is: what `_metadata` keeps (20.2, CS-21). */
struct channel_state_handle {
	enum channel_state_side side;
	uint32_t gate, channel;
	const char *file; /* in the directory of the checkpoint */
	uint64_t offset;  /* of the section */
	uint64_t bytes;   /* of records */
	uint32_t buf_count;
	uint32_t crc;     /* CRC32C of the section with its chunks, which have one each */
};

static inline uint64_t channel_state_section_bytes(uint32_t chunk_count)
{
	return CHANNEL_STATE_SECTION_BYTES + (uint64_t)chunk_count * CHANNEL_STATE_CHUNK_BYTES;
}

void channel_state_encode_header(uint8_t *room, const struct channel_state_header *h);
void channel_state_encode_section(uint8_t *room, const struct channel_state_section *s);
void channel_state_encode_chunk(uint8_t *room, const struct channel_state_chunk *c);
/* The last step for a section whose chunks are behind it: sums it up and returns the sum. */
uint32_t channel_state_seal_section(uint8_t *section, uint32_t chunk_count);

/* -EBADMSG: no such file, another version, damaged, or numbers that cannot be. */
int channel_state_decode_header(struct channel_state_header *h, const uint8_t *bytes, size_t size,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES]);

/* The head of a section; how many chunks follow is known to be in bounds.  Does not look at its
 * sum, for which the chunks are needed. */
int channel_state_decode_section(struct channel_state_section *s, const uint8_t *bytes,
		size_t size, char text[CHANNEL_STATE_FORMAT_TEXT_BYTES]);

/* The same with its chunks: all there, with the sum that it says, which is put out. */
int channel_state_check_section(const uint8_t *bytes, size_t size, uint32_t *crc,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES]);

/* One chunk behind a section that was checked. */
int channel_state_decode_chunk(struct channel_state_chunk *c, const uint8_t *bytes,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES]);
