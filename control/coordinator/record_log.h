#pragma once

/*
 * record_log: records appended to one file, each durable before the next one is written.
 *
 * The file has its full size from the start and its rest is zeros, so that an append overwrites
 * what is allocated: one write, one sync, and the file system has nothing to note.  It is written
 * anew when it is full.
 *
 * Place    control/coordinator.
 * Thread   one owner; blocks.
 * Memory   a log holds a descriptor; records handed to `take` are borrowed for the call.
 * Errors   0 or -errno.  -EBADMSG: damaged, with file and reason in `text`; never guessed around.
 *          A record whose writing was cut off was told to nobody and is dropped; it differs from a
 *          damaged one in that a sector of it is still zeros, with nothing but zeros behind it.
 * Life     open or write, { append }*, close.
 * Format   "WEIRLOG1", 32-bit size of the file, 32-bit CRC32C of these 12 bytes; then records,
 *          each at a multiple of 16: 32-bit size, number (1, 2 ...), CRC32C of the bytes begun with
 *          that of the record before, CRC32C of these 12 bytes; the bytes; the byte 0xa5.
 *          All numbers are little endian.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RECORD_LOG_TEXT_BYTES = 1536,
	RECORD_LOG_BYTES_MIN = 256 * 1024,
	RECORD_LOG_BYTES_MAX = 1024 * 1024 * 1024,
	RECORD_LOG_ZEROS_MAX = 511, /* in a row, in a record */
};

struct record_log {
	int fd; /* -1: not open */
	uint32_t bytes, end, number, sum;
};

/* One record; false when it makes no sense to the caller. */
typedef bool (*record_log_take)(void *context, const uint8_t *record, size_t bytes);

/* Reads the bytes of a file; `*l` is where they end, without a descriptor.  NULL, or what is wrong
 * with them. */
const char *record_log_decode(struct record_log *l, const uint8_t *file, size_t bytes,
		record_log_take take, void *context);

/* -ENOENT: there is none. */
int record_log_open(struct record_log *l, const char *path, record_log_take take, void *context,
		char text[RECORD_LOG_TEXT_BYTES]);
void record_log_close(struct record_log *l);

struct record_bytes {
	const uint8_t *data;
	size_t size;
};

/* A new file with these records in place of the old one, and room for as many again.  `l` is closed
 * before and open after it when it returns 0.  An error with `*is_replaced`: nobody can say which
 * of the two files outlives a power cut. */
int record_log_write(struct record_log *l, const char *path, const struct record_bytes *records,
		uint32_t count, bool *is_replaced);

/* -ENOSPC: there is no room, and nothing was written.  After any other error nobody can say whether
 * it was written, and there is no room for more. */
int record_log_append(struct record_log *l, struct record_bytes record);
