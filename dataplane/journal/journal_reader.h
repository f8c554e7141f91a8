#pragma once

/*
 * journal_reader: reads a journal again, from a record on to its durable end.
 *
 * The end is where the blocks of the last segment end: at the first that is not whole.  When a
 * later block of that segment says that records behind the end were durable, they are damaged, not
 * torn; the same when another segment ends before the next one begins.
 *
 * Place    journal; driven by journal.c.
 * Thread   the worker of the task.
 * Memory   a buffer of at least JOURNAL_BLOCK_BYTES_MAX, given.
 * Errors   in journal_io: what cannot be read, -EBADMSG for what is damaged.
 * Life     begin, { step | finish | next and take }* until is_over; stop, step until is_idle.
 */

#include "dataplane/journal/journal_directory.h"
#include "dataplane/journal/journal_io.h"
#include "dataplane/operator/record_journal.h"

enum journal_reader_phase {
	JOURNAL_READ_OPEN,
	JOURNAL_READ_MORE,    /* the buffer is to be filled */
	JOURNAL_READ_BLOCK,   /* a block begins at `at` */
	JOURNAL_READ_RECORDS, /* of that block are given out */
	JOURNAL_READ_TAIL,    /* nothing durable may follow */
	JOURNAL_READ_CLOSE,
	JOURNAL_READ_OVER,
};

struct journal_reader {
	struct journal_io *io;
	const struct journal_directory *directory;
	uint8_t *buffer;
	uint32_t buffer_bytes;
	enum journal_reader_phase phase;
	bool is_busy, is_tail, is_end_of_file, is_stopped;
	uint32_t segment; /* index in the directory */
	int32_t file;	  /* -1: none */
	uint64_t offset;  /* of the buffer in the file */
	uint32_t filled, at;
	uint64_t sequence; /* of the next block; at the end behind the last record */
	uint64_t from;	   /* records before it are passed over */
	struct journal_block_head block;
	uint32_t taken_count, taken_bytes; /* of its records */
	char path[JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES];
};

/* `from` is in the journal: not before its first record.  Without a segment it is over at once. */
void journal_reader_begin(struct journal_reader *r, struct journal_io *io,
		const struct journal_directory *d, void *buffer, uint32_t buffer_bytes,
		uint64_t from);

uint32_t journal_reader_step(struct journal_reader *r);
void journal_reader_finish(struct journal_reader *r, enum store_op op, int64_t result);

bool journal_reader_next(struct journal_reader *r, uint32_t count_max, struct weir_batch *batch);
void journal_reader_take(struct journal_reader *r, const struct weir_batch *batch);

static inline bool journal_reader_is_over(const struct journal_reader *r)
{
	return r->phase == JOURNAL_READ_OVER;
}

void journal_reader_stop(struct journal_reader *r);
bool journal_reader_is_idle(const struct journal_reader *r);

/* Up to `count_max` of `count` variable records at `at`. */
void journal_records(
		const uint8_t *at, uint32_t count, uint32_t count_max, struct weir_batch *batch);
