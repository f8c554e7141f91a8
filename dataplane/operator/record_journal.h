#pragma once

/*
 * record_journal: records of a source that nobody else keeps, on disk until a completed checkpoint
 * covers them.  Installed as <weir/record_journal.h>, beside operator.h.
 *
 * A record is given back by `next` only when it is durable, so no operator behind the source has
 * seen one that a crash can take away: what comes out after any number of crashes is what is in the
 * journal, each record once.  The position of a source is `taken` of the status, saved at its
 * barrier with `id`; open with both goes on from there: first the records that are on disk, then
 * new ones.  While the old ones are read again there is no place for new ones.
 *
 * Place    no type of the store; what an operator gets from journal_open.
 * Thread   the worker of the task; open and close on the control thread, where they may block.
 * Memory   the caller's, given in the config, until close.
 * Errors   a disk that is full: no place, tried again until there is room; checkpoints go on.  Any
 *          other error of the disk, and a journal that is damaged, fail the task.
 * Life     open in `open`, { place and append | next and take | trim }*, close in `close`.  What
 *          was appended when the task ends is written before it ends, unless the disk fails.
 */

#include "dataplane/operator/operator.h"

enum { WEIR_JOURNAL_BLOCK_BYTES = 128 * 1024 };

struct weir_journal_config {
	const char *directory;	   /* of this subtask alone; made when it is not there */
	void *memory;		   /* 4096-byte aligned; also the most that is not durable yet */
	uint64_t memory_bytes;	   /* at least four WEIR_JOURNAL_BLOCK_BYTES */
	uint32_t record_bytes_max; /* without the size in front; at most 64 KiB */
	uint64_t segment_bytes;	   /* of a file; at least two blocks */
	uint64_t disk_bytes_max;
	uint64_t id, sequence; /* of the restored position; id 0: none */
	/* Records that the position asks for and the journal has not: false refuses, true goes on
	 * behind them. */
	bool accepts_gap;
};

/* Sequences count all records of the journal, from 0. */
struct weir_journal_status {
	uint64_t id;	     /* of the journal, other than 0 */
	uint64_t first;	     /* the oldest on disk */
	uint64_t taken;	     /* the next one that `next` gives */
	uint64_t durable;    /* behind the last one that is */
	uint64_t appended;   /* behind the last one */
	uint64_t gap;	     /* records that were asked for and are not there */
	uint64_t replayed;   /* records that were read again */
	uint64_t lag_bytes;  /* appended and not durable */
	uint64_t disk_bytes; /* of all its files */
	bool is_replaying;   /* `durable` and `appended` are not known yet */
	bool is_full;	     /* the disk, or disk_bytes_max */
};

struct weir_journal {
	/* Where records may be built: at least `bytes` (at most half a block), the number comes
	 * back; 0: none now. */
	uint32_t (*place)(struct weir_journal *journal, uint32_t bytes, uint8_t **at);
	/* Variable records that stand there now. */
	void (*append)(struct weir_journal *journal, uint32_t count, uint32_t bytes);
	/* Up to `count_max` durable records in their order, valid until the next call of anything;
	 * false: none now. */
	bool (*next)(struct weir_journal *journal, uint32_t count_max, struct weir_batch *batch);
	/* They have gone on: `taken` is behind them. */
	void (*take)(struct weir_journal *journal, const struct weir_batch *batch);
	/* A completed checkpoint covers all before `sequence`. */
	void (*trim)(struct weir_journal *journal, uint64_t sequence);
	struct weir_journal_status status; /* only to be read */
};
