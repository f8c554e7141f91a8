#pragma once

/*
 * journal_segment: the segment that takes blocks, from making it durable to closing it.
 *
 * Place    journal; driven by journal_writer.
 * Thread   the worker of the task; init and free on the control thread.
 * Memory   one block for its header, allocated in init.
 * Errors   in journal_io; a full disk is tried again.
 * Life     init, { begin, step and finish until is_ready, blocks, end, ... until is_idle }*, free.
 */

#include "dataplane/journal/journal_directory.h"
#include "dataplane/journal/journal_io.h"

enum journal_segment_phase {
	JOURNAL_SEGMENT_NONE,
	JOURNAL_SEGMENT_OPEN,
	JOURNAL_SEGMENT_ALLOCATE,
	JOURNAL_SEGMENT_HEADER,
	JOURNAL_SEGMENT_SYNC,
	JOURNAL_SEGMENT_SYNC_DIRECTORY,
	JOURNAL_SEGMENT_READY,
	JOURNAL_SEGMENT_CLOSE,
};

struct journal_segment {
	struct journal_io *io;
	struct journal_directory *directory;
	uint64_t segment_bytes, disk_bytes_max;
	enum journal_segment_phase phase;
	bool is_busy, is_full;
	uint64_t retry_ns; /* while is_full */
	int32_t file;	   /* -1: none */
	uint64_t used;	   /* bytes given to blocks, and the header */
	struct journal_segment_header header;
	uint8_t *header_block;
	char path[JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES];
};

/* -ENOMEM. */
int journal_segment_init(struct journal_segment *s, struct journal_io *io,
		struct journal_directory *d, uint64_t segment_bytes, uint64_t disk_bytes_max);
void journal_segment_free(struct journal_segment *s);

/* A new one, whose first record will be `first`; there is none. */
void journal_segment_begin(
		struct journal_segment *s, uint64_t id, uint64_t first, uint32_t record_bytes_max);
/* No more blocks: it is closed.  All of them are durable. */
void journal_segment_end(struct journal_segment *s);

uint32_t journal_segment_step(struct journal_segment *s);
void journal_segment_finish(struct journal_segment *s, enum store_op op, int64_t result);

static inline bool journal_segment_is_ready(const struct journal_segment *s)
{
	return s->phase == JOURNAL_SEGMENT_READY;
}

static inline bool journal_segment_has_room(const struct journal_segment *s, uint32_t bytes)
{
	return s->segment_bytes - s->used >= bytes;
}

/* Whatever there is is closed. */
static inline bool journal_segment_is_idle(const struct journal_segment *s)
{
	return !s->is_busy && s->file < 0;
}
