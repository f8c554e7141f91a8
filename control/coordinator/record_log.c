#include "control/coordinator/record_log.h"

#include "control/coordinator/durable_file.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FILE_HEAD_BYTES = 16,
	HEAD_BYTES = 16, /* of a record; never torn, for it does not cross a sector's border */
	ALIGN_BYTES = 16,
	SECTOR_BYTES = 512, /* what a disk writes whole or not at all */
	PAGE_BYTES = 4096,
	ROOM_FACTOR = 4, /* a new file is so many times as large as what is in it */
	END_MARK = 0xa5,
};

static const char magic[8] = {'W', 'E', 'I', 'R', 'L', 'O', 'G', '1'};

struct head {
	uint32_t size, number, sum;
};

static bool is_zero(const uint8_t *at, size_t bytes)
{
	return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* What a record takes in the file. */
static uint64_t room_of(size_t record_bytes)
{
	return (HEAD_BYTES + (uint64_t)record_bytes + 1 + ALIGN_BYTES - 1) / ALIGN_BYTES *
			ALIGN_BYTES;
}

/* ---- writing ---- */

/* A sector of zeros must mean that it was not written. */
static bool has_long_zeros(const struct record_bytes *r)
{
	uint32_t zeros = 0;

	for (size_t i = 0; i < r->size && zeros <= RECORD_LOG_ZEROS_MAX; i++)
		zeros = r->data[i] == 0 ? zeros + 1 : 0;
	return zeros > RECORD_LOG_ZEROS_MAX;
}

static void put_record(struct record_log *l, uint8_t *at, struct record_bytes record)
{
	CHECK(record.size > 0 && !has_long_zeros(&record));
	l->number++;
	l->sum = crc32c(l->sum, record.data, record.size);
	put_u32(at, (uint32_t)record.size);
	put_u32(at + 4, l->number);
	put_u32(at + 8, l->sum);
	put_u32(at + 12, crc32c(0, at, 12));
	memcpy(at + HEAD_BYTES, record.data, record.size);
	at[HEAD_BYTES + record.size] = END_MARK;
}

static int write_whole(int fd, const uint8_t *bytes, size_t count, off_t at)
{
	while (count > 0) {
		ssize_t n = pwrite(fd, bytes, count, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		count -= (size_t)n;
		at += n;
	}
	return 0;
}

int record_log_append(struct record_log *l, struct record_bytes record)
{
	uint64_t room = room_of(record.size);

	if (l->fd < 0 || room > l->bytes - l->end)
		return -ENOSPC;
	uint8_t *bytes = calloc(1, room);
	if (bytes == NULL)
		return -ENOSPC;
	uint32_t at = l->end;
	l->end = l->bytes; /* until it is known to be whole */
	put_record(l, bytes, record);
	int rc = write_whole(l->fd, bytes, room, at);
	free(bytes);
	if (rc == 0 && fdatasync(l->fd) != 0)
		rc = -errno;
	if (rc == 0)
		l->end = at + (uint32_t)room;
	return rc;
}

/* The whole file, from malloc; NULL: too much. */
static uint8_t *image_of(struct record_log *l, const struct record_bytes *records, uint32_t count)
{
	uint64_t used = FILE_HEAD_BYTES;

	for (uint32_t i = 0; i < count; i++)
		used += room_of(records[i].size);
	uint64_t bytes = (used * ROOM_FACTOR + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (bytes < RECORD_LOG_BYTES_MIN)
		bytes = RECORD_LOG_BYTES_MIN;
	uint8_t *image = bytes > RECORD_LOG_BYTES_MAX ? NULL : calloc(1, bytes);
	if (image == NULL)
		return NULL;
	*l = (struct record_log){.fd = -1, .bytes = (uint32_t)bytes, .end = FILE_HEAD_BYTES};
	memcpy(image, magic, sizeof(magic));
	put_u32(image + 8, l->bytes);
	put_u32(image + 12, crc32c(0, image, 12));
	for (uint32_t i = 0; i < count; i++) {
		put_record(l, image + l->end, records[i]);
		l->end += (uint32_t)room_of(records[i].size);
	}
	return image;
}

int record_log_write(struct record_log *l, const char *path, const struct record_bytes *records,
		uint32_t count, bool *is_replaced)
{
	record_log_close(l);
	*is_replaced = false;
	uint8_t *image = image_of(l, records, count);
	if (image == NULL)
		return -ENOMEM;
	int rc = durable_bytes_write(path, image, l->bytes, is_replaced);
	free(image);
	if (rc != 0)
		return rc;
	l->fd = open(path, O_WRONLY | O_CLOEXEC);
	return l->fd < 0 ? -errno : 0;
}

/* ---- reading ---- */

/* False: no head of a record. */
static bool read_head(struct head *h, const uint8_t *at)
{
	*h = (struct head){get_u32(at), get_u32(at + 4), get_u32(at + 8)};
	return h->size > 0 && get_u32(at + 12) == crc32c(0, at, 12);
}

static size_t sector_end(size_t at)
{
	return (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
}

/* Whether a sector, or what [from, to) has of it, was never written. */
static bool lacks_sector(const uint8_t *file, size_t from, size_t to)
{
	for (size_t at = from; at < to;) {
		size_t next = sector_end(at) < to ? sector_end(at) : to;

		if (is_zero(file + at, next - at))
			return true;
		at = next;
	}
	return false;
}

/* Whether a later record stands somewhere behind: then the one before it had been whole. */
static bool has_later(const uint8_t *file, size_t bytes, size_t at, uint32_t number)
{
	struct head h;

	for (; bytes - at >= HEAD_BYTES; at += ALIGN_BYTES)
		if (read_head(&h, file + at) && h.number > number)
			return true;
	return false;
}

/* Whether what stands where a record should is one that was being written. */
static bool is_cut_off(const struct record_log *l, const uint8_t *file, size_t bytes)
{
	const uint8_t *at = file + l->end;
	struct head h;

	if (read_head(&h, at)) {
		size_t left = bytes - l->end - HEAD_BYTES;

		if (h.number != l->number + 1 || h.size >= left)
			return false;
		size_t to = l->end + HEAD_BYTES + (size_t)h.size + 1;
		return lacks_sector(file, l->end, to) && is_zero(file + to, bytes - to);
	}
	size_t next = sector_end(l->end) < bytes ? sector_end(l->end) : bytes;
	return is_zero(at, next - l->end) && !has_later(file, bytes, next, l->number + 1);
}

/* Takes the record at the end of what was read.  False: there is no whole one. */
static bool take_next(struct record_log *l, const uint8_t *file, struct record_bytes *record)
{
	const uint8_t *at = file + l->end;
	struct head h;

	if (!read_head(&h, at) || h.number != l->number + 1)
		return false;
	uint64_t room = room_of(h.size);
	if (room > l->bytes - l->end)
		return false;
	const uint8_t *mark = at + HEAD_BYTES + h.size;
	if (crc32c(l->sum, at + HEAD_BYTES, h.size) != h.sum || *mark != END_MARK ||
			!is_zero(mark + 1, (size_t)(at + room - (mark + 1))))
		return false;
	*record = (struct record_bytes){at + HEAD_BYTES, h.size};
	l->number = h.number;
	l->sum = h.sum;
	l->end += (uint32_t)room;
	return true;
}

const char *record_log_decode(struct record_log *l, const uint8_t *file, size_t bytes,
		record_log_take take, void *context)
{
	struct record_bytes record;

	*l = (struct record_log){.fd = -1, .end = FILE_HEAD_BYTES};
	if (bytes < FILE_HEAD_BYTES || memcmp(file, magic, sizeof(magic)) != 0)
		return "does not begin with WEIRLOG1";
	if (get_u32(file + 12) != crc32c(0, file, 12))
		return "damaged: the checksum of its head does not fit";
	if (get_u32(file + 8) != bytes || bytes % ALIGN_BYTES != 0 || bytes > RECORD_LOG_BYTES_MAX)
		return "torn: not as long as its head says";
	l->bytes = (uint32_t)bytes;
	while (l->bytes - l->end >= HEAD_BYTES && take_next(l, file, &record))
		if (!take(context, record.data, record.size))
			return "holds a record of no known kind";
	if (is_zero(file + l->end, bytes - l->end))
		return NULL;
	if (!is_cut_off(l, file, bytes))
		return "damaged: the checksum of a record does not fit";
	l->end = l->bytes; /* its remains must not come to stand behind a new one */
	return NULL;
}

int record_log_open(struct record_log *l, const char *path, record_log_take take, void *context,
		char text[RECORD_LOG_TEXT_BYTES])
{
	uint8_t *file = NULL;
	size_t bytes = 0;
	int rc = durable_bytes_read(path, RECORD_LOG_BYTES_MAX, &file, &bytes);

	l->fd = -1;
	if (rc != 0) {
		snprintf(text, RECORD_LOG_TEXT_BYTES, "%s: %s", path,
				rc == -EBADMSG ? "no file of ours" : strerror(-rc));
		return rc;
	}
	const char *fault = record_log_decode(l, file, bytes, take, context);
	free(file);
	if (fault != NULL) {
		snprintf(text, RECORD_LOG_TEXT_BYTES, "%s: %s", path, fault);
		return -EBADMSG;
	}
	l->fd = open(path, O_WRONLY | O_CLOEXEC);
	if (l->fd >= 0)
		return 0;
	rc = -errno;
	snprintf(text, RECORD_LOG_TEXT_BYTES, "%s: %s", path, strerror(-rc));
	return rc;
}

void record_log_close(struct record_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
