#pragma once

/*
 * record: records inside buffers (DESIGN "Buffer").
 *
 * Place    wire.
 * Thread   one owner.
 * Memory   a reader allocates its scratch (one record) in create, nothing afterwards.
 * Errors   what a buffer says is not trusted: -EPROTO for a record larger than agreed, for a size
 *          that leaves half a fixed record, and for a first-record offset that does not match.
 * Life     reader: create, { feed, { peek, advance }* }*, destroy.
 *
 * Records of one fixed size are packed and never span buffers.  Variable records are a 32-bit
 * size in host order and that many bytes, without gaps; both may span any number of buffers.
 */

#include "dataplane/operator/operator.h"
#include "dataplane/wire/buf.h"

enum { RECORD_PREFIX_BYTES = 4 };

/* Records of that fixed size that fit one buffer. */
static inline uint32_t record_count_per_buf(uint32_t capacity_bytes, uint32_t record_bytes)
{
	return capacity_bytes / record_bytes;
}

/* Takes the part of one variable record, prefix included, that the open buffer has room for:
 * `*done` bytes of it were written before, and are more on return.  True: all of it is in.  The
 * first call for a record notes where it starts. */
bool record_write(struct buf *b, const uint8_t *record, uint32_t record_bytes, uint32_t *done);

struct record_reader;

struct record_reader_config {
	uint32_t record_bytes;     /* fixed size, or 0 for variable ones */
	uint32_t record_bytes_max; /* variable: largest record, its prefix not counted */
};

/* -EINVAL for a size of 0, -ENOMEM. */
int record_reader_create(struct record_reader **out, const struct record_reader_config *config);

/* Begins a buffer, which stays the caller's; the one before must have been read to its end.
 * -EPROTO. */
int record_reader_feed(struct record_reader *r, const struct buf *b);

/* The next whole records, at most records_max (1 or more), in place where they do not span:
 * 1, or 0 when the buffer is used up (the start of a record that goes on in the next buffer has
 * been put aside), or -EPROTO.  Stays the same until advance; valid until then. */
int record_reader_peek(struct record_reader *r, uint32_t records_max, struct weir_batch *out);

/* Leaves the first `count` records of the last peek behind. */
void record_reader_advance(struct record_reader *r, uint32_t count);

/* Offset in the buffer that was fed from which on it has not been read. */
uint32_t record_reader_offset(const struct record_reader *r);

/* The start of a record that was put aside, for channel state (14.1); 0 bytes: none. */
const uint8_t *record_reader_partial(const struct record_reader *r, uint32_t *bytes);

/* NULL is accepted. */
void record_reader_destroy(struct record_reader *r);
