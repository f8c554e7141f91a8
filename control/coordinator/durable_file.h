#pragma once

/*
 * durable_file: one protobuf message in one file that is either whole or the one before.
 *
 * Place    control/coordinator.
 * Thread   any; blocks.
 * Errors   0 or -errno; -EBADMSG for a damaged file, with file and reason in `text`.
 * Format   "WEIRDUR1", 32-bit size, 32-bit CRC32C (little endian), the bytes.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DURABLE_TEXT_BYTES = 1536, DURABLE_PATH_BYTES = 1024 };

int durable_file_write(const char *path, const ProtobufCMessage *message);
int durable_file_read(const char *path, const ProtobufCMessageDescriptor *type,
		ProtobufCMessage **message, char text[DURABLE_TEXT_BYTES]);
/* The name of one that was being written aside: whoever wrote it is gone when nobody writes. */
bool durable_is_temporary(const char *name);

/* The same of plain bytes, which know themselves whether they are whole.  An error with
 * `*is_replaced`: whether the new ones or the old ones outlive a power cut nobody can say. */
int durable_bytes_write(const char *path, const uint8_t *bytes, size_t count, bool *is_replaced);
/* The bytes of a file, from malloc.  -EBADMSG: it is none, or larger than `bytes_max`. */
int durable_bytes_read(const char *path, size_t bytes_max, uint8_t **bytes, size_t *count);

/* fsync of a directory. */
int durable_sync_directory(const char *path);
/* Like mkdir -p, each new level durable. */
int durable_make_directory(const char *path);
