#pragma once

/*
 * journal_writer: takes records into blocks, writes them, and gives them out once they are durable.
 *
 * Blocks are a ring: open (filling), closed, written, durable, given out.  Group commit: while a
 * sync is under way the open block fills; when nothing is under way, whatever there is goes.  So a
 * quiet source waits for one write and sync, a busy one shares them among many records.
 *
 * Place    journal; driven by journal.c.
 * Thread   the worker of the task; init and free on the control thread.
 * Memory   the blocks are given, their table is allocated in init.
 * Errors   in journal_io.  On a full disk what is taken waits, and once all blocks are full no
 *          more is taken.
 * Life     init, begin, { place and append | next and take | step | finish }*, stop, step until
 *          is_idle, free.  stop writes what was taken, unless the disk fails or is full.
 */

#include "dataplane/journal/journal_segment.h"
#include "dataplane/operator/record_journal.h"

struct journal_block {
	uint32_t count, bytes; /* of records */
	uint32_t taken_count, taken_bytes;
	uint64_t sequence, offset;
	bool is_busy, is_written;
};

struct journal_writer {
	struct journal_io *io;
	struct journal_segment *segment;
	uint8_t *memory;
	uint32_t block_count;
	struct journal_block *blocks;
	uint64_t id;
	uint32_t record_bytes_max;
	/* Numbers of blocks, in their order: given out <= durable <= written <= sent <= closed. */
	uint64_t given, durable, written, sent, closed;
	uint64_t syncing; /* blocks before it are durable when the sync ends */
	bool has_open, is_syncing, is_stopped;
	bool is_full; /* the last write found no room */
	uint64_t retry_ns;
	uint64_t appended_sequence, durable_sequence, taken_sequence;
	uint64_t appended_bytes, durable_bytes; /* of records */
};

/* -ENOMEM. */
int journal_writer_init(struct journal_writer *w, struct journal_io *io, struct journal_segment *s,
		void *memory, uint64_t memory_bytes);
void journal_writer_free(struct journal_writer *w);

/* The next record has that number. */
void journal_writer_begin(struct journal_writer *w, uint64_t id, uint64_t sequence,
		uint32_t record_bytes_max);

uint32_t journal_writer_place(struct journal_writer *w, uint32_t bytes, uint8_t **at);
void journal_writer_append(struct journal_writer *w, uint32_t count, uint32_t bytes);
bool journal_writer_next(struct journal_writer *w, uint32_t count_max, struct weir_batch *batch);
void journal_writer_take(struct journal_writer *w, const struct weir_batch *batch);

uint32_t journal_writer_step(struct journal_writer *w);
void journal_writer_finish(
		struct journal_writer *w, enum store_op op, uint32_t index, int64_t result);

void journal_writer_stop(struct journal_writer *w);
bool journal_writer_is_idle(const struct journal_writer *w);
