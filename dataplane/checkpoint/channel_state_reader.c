#include "dataplane/checkpoint/channel_state_reader.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

struct channel_state_reader {
	int fd;
	uint64_t file_bytes;
	char path[PATH_BYTES];
	uint32_t chunk_count;
	struct channel_state_chunk chunks[];
};

__attribute__((format(printf, 3, 4))) static int refuse(
		char *text, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, CHANNEL_STATE_READER_TEXT_BYTES, format, args);
	va_end(args);
	return status;
}

static int read_at(const struct channel_state_reader *r, uint64_t offset, void *room, size_t size,
		char *text)
{
	size_t at = 0;

	if (offset > r->file_bytes || size > r->file_bytes - offset)
		return refuse(text, -EBADMSG, "%s: ends at %llu, but %zu bytes of channel state "
				"are at offset %llu", r->path, (unsigned long long)r->file_bytes,
				size, (unsigned long long)offset);
	while (at < size) {
		ssize_t n = pread(r->fd, (char *)room + at, size - at, (off_t)(offset + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return refuse(text, n < 0 ? -errno : -EBADMSG, "%s: offset %llu: %s",
					r->path, (unsigned long long)(offset + at),
					n < 0 ? strerrordesc_np(errno)
					      : "the file has become shorter");
		at += (size_t)n;
	}
	return 0;
}

/* ---- open ------------------------------------------------------------------------------------ */

static int open_file(struct channel_state_reader *r, char *text)
{
	struct stat st;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return refuse(text, -errno, "%s: %s (channel state)", r->path,
				strerrordesc_np(errno));
	if (fstat(r->fd, &st) != 0)
		return refuse(text, -errno, "%s: %s", r->path, strerrordesc_np(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(text, -EBADMSG, "%s: is not a file", r->path);
	r->file_bytes = (uint64_t)st.st_size;
	return 0;
}

static int check_header(const struct channel_state_reader *r, const struct channel_state_owner *o,
		char *text)
{
	uint8_t bytes[CHANNEL_STATE_HEADER_BYTES];
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_header h;
	int rc = read_at(r, 0, bytes, sizeof(bytes), text);

	if (rc != 0)
		return rc;
	rc = channel_state_decode_header(&h, bytes, sizeof(bytes), why);
	if (rc != 0)
		return refuse(text, rc, "%s: %s", r->path, why);
	if (h.checkpoint_id != o->checkpoint_id)
		return refuse(text, -EBADMSG, "%s: is of checkpoint %lld, not %lld", r->path,
				(long long)h.checkpoint_id, (long long)o->checkpoint_id);
	return 0;
}

static int check_section(const struct channel_state_reader *r, const uint8_t *bytes,
		const struct channel_state_handle *h, const struct channel_state_owner *o,
		char *text)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_section s;
	uint32_t crc = 0;
	int rc = channel_state_check_section(
			bytes, channel_state_section_bytes(h->buf_count), &crc, why);

	if (rc == 0)
		rc = channel_state_decode_section(&s, bytes, CHANNEL_STATE_SECTION_BYTES, why);
	if (rc != 0)
		return refuse(text, rc, "%s: offset %llu: %s", r->path,
				(unsigned long long)h->offset, why);
	if (crc != h->crc || s.chunk_count != h->buf_count || s.bytes != h->bytes)
		return refuse(text, -EBADMSG, "%s: offset %llu: a section with checksum %08x, %u "
				"buffers, %llu bytes instead of %08x, %u, %llu", r->path,
				(unsigned long long)h->offset, crc, s.chunk_count,
				(unsigned long long)s.bytes, h->crc, h->buf_count,
				(unsigned long long)h->bytes);
	if (s.checkpoint_id != o->checkpoint_id || s.side != h->side || s.gate != h->gate ||
			s.channel != h->channel || s.subtask_index != o->subtask_index ||
			strcmp(s.vertex_uid, o->vertex_uid) != 0)
		return refuse(text, -EBADMSG, "%s: offset %llu: the section is of another channel",
				r->path, (unsigned long long)h->offset);
	return 0;
}

static int take_chunks(struct channel_state_reader *r, const uint8_t *bytes,
		const struct channel_state_handle *h, char *text)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->buf_count; i++) {
		struct channel_state_chunk *c = &r->chunks[i];
		int rc = channel_state_decode_chunk(
				c, bytes + channel_state_section_bytes(i), why);

		if (rc == 0 && c->offset + c->size > r->file_bytes)
			rc = refuse(why, -EBADMSG, "a buffer ends behind the file");
		if (rc != 0)
			return refuse(text, rc, "%s: offset %llu: %.200s", r->path,
					(unsigned long long)h->offset, why);
		sum += c->size;
	}
	r->chunk_count = h->buf_count;
	if (sum != h->bytes)
		return refuse(text, -EBADMSG, "%s: offset %llu: buffers of %llu bytes instead of "
				"%llu", r->path, (unsigned long long)h->offset,
				(unsigned long long)sum, (unsigned long long)h->bytes);
	return 0;
}

static int read_section(struct channel_state_reader *r, const struct channel_state_handle *h,
		const struct channel_state_owner *o, char *text)
{
	size_t size = channel_state_section_bytes(h->buf_count);
	uint8_t *bytes = malloc(size);

	if (bytes == NULL)
		return refuse(text, -ENOMEM, "%s: out of memory", r->path);
	int rc = read_at(r, h->offset, bytes, size, text);
	if (rc == 0)
		rc = check_section(r, bytes, h, o, text);
	if (rc == 0)
		rc = take_chunks(r, bytes, h, text);
	free(bytes);
	return rc;
}

int channel_state_open(struct channel_state_reader **out, const char *directory,
		const struct channel_state_handle *handle, const struct channel_state_owner *owner,
		char text[CHANNEL_STATE_READER_TEXT_BYTES])
{
	struct channel_state_reader *r;

	if (handle->buf_count > CHANNEL_STATE_CHUNKS_MAX)
		return refuse(text, -EBADMSG, "channel state with %u buffers", handle->buf_count);
	r = calloc(1, sizeof(*r) + handle->buf_count * sizeof(r->chunks[0]));
	if (r == NULL)
		return refuse(text, -ENOMEM, "channel state: out of memory");
	r->fd = -1;
	int bytes = snprintf(r->path, sizeof(r->path), "%s/%s", directory, handle->file);
	int rc = bytes < 0 || (size_t)bytes >= sizeof(r->path)
			? refuse(text, -ENAMETOOLONG, "the path of channel state is too long")
			: open_file(r, text);
	if (rc == 0)
		rc = check_header(r, owner, text);
	if (rc == 0)
		rc = read_section(r, handle, owner, text);
	if (rc != 0) {
		channel_state_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

uint32_t channel_state_chunk_count(const struct channel_state_reader *r)
{
	return r->chunk_count;
}

const struct channel_state_chunk *channel_state_chunk(
		const struct channel_state_reader *r, uint32_t index)
{
	CHECK(index < r->chunk_count);
	return &r->chunks[index];
}

int channel_state_read_chunk(const struct channel_state_reader *r, uint32_t index, uint8_t *room,
		char text[CHANNEL_STATE_READER_TEXT_BYTES])
{
	const struct channel_state_chunk *c = channel_state_chunk(r, index);
	int rc = read_at(r, c->offset, room, c->size, text);

	if (rc != 0)
		return rc;
	uint32_t crc = crc32c(0, room, c->size);
	if (crc != c->crc)
		return refuse(text, -EBADMSG, "%s: offset %llu: the checksum of %u bytes in flight "
				"is %08x instead of %08x", r->path, (unsigned long long)c->offset,
				c->size, crc, c->crc);
	return 0;
}

void channel_state_close(struct channel_state_reader *r)
{
	if (r == NULL)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

int channel_state_verify(const char *directory, const struct channel_state_handle *handle,
		const struct channel_state_owner *owner,
		char text[CHANNEL_STATE_READER_TEXT_BYTES])
{
	struct channel_state_reader *r;
	int rc = channel_state_open(&r, directory, handle, owner, text);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < r->chunk_count; i++) {
		uint8_t *room = malloc(r->chunks[i].size + 1);

		rc = room != NULL ? channel_state_read_chunk(r, i, room, text)
				  : refuse(text, -ENOMEM, "%s: out of memory", r->path);
		free(room);
	}
	channel_state_close(r);
	return rc;
}
