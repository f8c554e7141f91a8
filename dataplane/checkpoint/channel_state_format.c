/*
 * header:  magic 8, version 4, sum 4, checkpoint id 8, table offset 8, table bytes 8, sections 4,
 *          zero 4.  The sum is over the header with zeros in its place.
 * section: magic 4, sum 4, checkpoint id 8, bytes 8, chunks 4, subtask 4, gate 4, channel 4,
 *          side 4, zero 4, uid 64.  The sum is over the section with zeros in its place, and its
 *          chunks.
 * chunk:   offset 8, watermark 8, size 4, first record 4, sum 4, zero 4.
 */

#include "dataplane/checkpoint/channel_state_format.h"

#include "dataplane/base/crc.h"
#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEADER_MAGIC "WEIRCHAN"
enum { MAGIC_BYTES = 8, SUM_AT_HEADER = 12, SUM_AT_SECTION = 4 };

static const uint32_t section_magic = 0x54434553; /* "SECT" */

__attribute__((format(printf, 2, 3))) static int refuse(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, CHANNEL_STATE_FORMAT_TEXT_BYTES, format, args);
	va_end(args);
	return -EBADMSG;
}

/* ---- encode ---------------------------------------------------------------------------------- */

void channel_state_encode_header(uint8_t *room, const struct channel_state_header *h)
{
	memset(room, 0, CHANNEL_STATE_HEADER_BYTES);
	memcpy(room, HEADER_MAGIC, MAGIC_BYTES);
	put_u32(room + 8, CHANNEL_STATE_VERSION);
	put_u64(room + 16, (uint64_t)h->checkpoint_id);
	put_u64(room + 24, h->table_offset);
	put_u64(room + 32, h->table_bytes);
	put_u32(room + 40, h->section_count);
	put_u32(room + SUM_AT_HEADER,
			crc32c_around(room, CHANNEL_STATE_HEADER_BYTES, SUM_AT_HEADER));
}

void channel_state_encode_section(uint8_t *room, const struct channel_state_section *s)
{
	memset(room, 0, CHANNEL_STATE_SECTION_BYTES);
	put_u32(room, section_magic);
	put_u64(room + 8, (uint64_t)s->checkpoint_id);
	put_u64(room + 16, s->bytes);
	put_u32(room + 24, s->chunk_count);
	put_u32(room + 28, s->subtask_index);
	put_u32(room + 32, s->gate);
	put_u32(room + 36, s->channel);
	put_u32(room + 40, s->side);
	snprintf((char *)room + 48, UID_BYTES_MAX, "%s", s->vertex_uid);
}

void channel_state_encode_chunk(uint8_t *room, const struct channel_state_chunk *c)
{
	put_u64(room, c->offset);
	put_u64(room + 8, (uint64_t)c->watermark);
	put_u32(room + 16, c->size);
	put_u32(room + 20, c->first_record);
	put_u32(room + 24, c->crc);
	put_u32(room + 28, 0);
}

uint32_t channel_state_seal_section(uint8_t *section, uint32_t chunk_count)
{
	uint32_t crc = crc32c_around(
			section, channel_state_section_bytes(chunk_count), SUM_AT_SECTION);

	put_u32(section + SUM_AT_SECTION, crc);
	return crc;
}

/* ---- decode ---------------------------------------------------------------------------------- */

int channel_state_decode_header(struct channel_state_header *h, const uint8_t *bytes, size_t size,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES])
{
	if (size < CHANNEL_STATE_HEADER_BYTES || memcmp(bytes, HEADER_MAGIC, MAGIC_BYTES) != 0)
		return refuse(text, "is not a channel-state file");
	if (get_u32(bytes + 8) != CHANNEL_STATE_VERSION)
		return refuse(text, "channel-state file of version %u; this is %d",
				get_u32(bytes + 8), CHANNEL_STATE_VERSION);

	uint32_t crc = crc32c_around(bytes, CHANNEL_STATE_HEADER_BYTES, SUM_AT_HEADER);
	if (crc != get_u32(bytes + SUM_AT_HEADER))
		return refuse(text, "the checksum of its header is %08x instead of %08x", crc,
				get_u32(bytes + SUM_AT_HEADER));
	*h = (struct channel_state_header){
		.checkpoint_id = (int64_t)get_u64(bytes + 16),
		.table_offset = get_u64(bytes + 24),
		.table_bytes = get_u64(bytes + 32),
		.section_count = get_u32(bytes + 40),
	};
	if (h->checkpoint_id <= 0 || h->table_offset > INT64_MAX ||
			h->table_bytes > INT64_MAX - h->table_offset ||
			h->table_bytes / CHANNEL_STATE_SECTION_BYTES < h->section_count)
		return refuse(text, "its header has numbers that cannot be");
	return 0;
}

int channel_state_decode_section(struct channel_state_section *s, const uint8_t *bytes,
		size_t size, char text[CHANNEL_STATE_FORMAT_TEXT_BYTES])
{
	if (size < CHANNEL_STATE_SECTION_BYTES || get_u32(bytes) != section_magic)
		return refuse(text, "there is no section of channel state");
	*s = (struct channel_state_section){
		.checkpoint_id = (int64_t)get_u64(bytes + 8),
		.bytes = get_u64(bytes + 16),
		.chunk_count = get_u32(bytes + 24),
		.subtask_index = get_u32(bytes + 28),
		.gate = get_u32(bytes + 32),
		.channel = get_u32(bytes + 36),
		.side = get_u32(bytes + 40) == CHANNEL_STATE_INPUT ? CHANNEL_STATE_INPUT
								   : CHANNEL_STATE_OUTPUT,
	};
	memcpy(s->vertex_uid, bytes + 48, UID_BYTES_MAX);
	if (s->vertex_uid[UID_BYTES_MAX - 1] != '\0' || s->checkpoint_id <= 0 ||
			s->chunk_count > CHANNEL_STATE_CHUNKS_MAX ||
			get_u32(bytes + 40) > CHANNEL_STATE_OUTPUT)
		return refuse(text, "a section of channel state has numbers that cannot be");
	return 0;
}

int channel_state_check_section(const uint8_t *bytes, size_t size, uint32_t *crc,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES])
{
	struct channel_state_section s;
	int rc = channel_state_decode_section(&s, bytes, size, text);

	if (rc != 0)
		return rc;
	if (channel_state_section_bytes(s.chunk_count) > size)
		return refuse(text, "a section of channel state with %u buffers ends after %zu "
				"bytes", s.chunk_count, size);
	*crc = crc32c_around(bytes, channel_state_section_bytes(s.chunk_count), SUM_AT_SECTION);
	if (*crc != get_u32(bytes + SUM_AT_SECTION))
		return refuse(text, "the checksum of a section of channel state is %08x instead of "
				"%08x", *crc, get_u32(bytes + SUM_AT_SECTION));
	return 0;
}

int channel_state_decode_chunk(struct channel_state_chunk *c, const uint8_t *bytes,
		char text[CHANNEL_STATE_FORMAT_TEXT_BYTES])
{
	*c = (struct channel_state_chunk){
		.offset = get_u64(bytes),
		.watermark = (int64_t)get_u64(bytes + 8),
		.size = get_u32(bytes + 16),
		.first_record = get_u32(bytes + 20),
		.crc = get_u32(bytes + 24),
	};
	if (c->offset > INT64_MAX - UINT32_MAX)
		return refuse(text, "a buffer of channel state lies at %llu",
				(unsigned long long)c->offset);
	if (c->first_record != UINT32_MAX && c->first_record >= c->size)
		return refuse(text, "a buffer of channel state has %u bytes and a record at %u",
				c->size, c->first_record);
	return 0;
}
