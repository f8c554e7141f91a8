#pragma once

/* channel_state_internal: what channel_state_writer.c (the doors of the subtasks),
 * channel_state_executor.c (order of checkpoints, memory) and channel_state_file.c (one file)
 * share. */

#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/store.h"

enum {
	CHANNEL_STATE_FILES_MAX = 3,   /* one under way, the others written or cleaned up */
	CHANNEL_STATE_WRITES_MAX = 32, /* with the disk at a time */
	CHANNEL_STATE_PATH_BYTES = 1024,
	CHANNEL_STATE_NAME_BYTES = 128,
	CHUNK_NONE = UINT32_MAX,
};

/* One buffer of a file: held, then written, then only a row of the table. */
struct held_chunk {
	struct buf *buf;      /* NULL: the bytes are in the staging memory, or written */
	const uint8_t *bytes; /* of the records; NULL once they are written */
	uint64_t offset;      /* of the bytes in the file, once issued */
	int64_t watermark;
	uint32_t size, first_record, crc;
	uint32_t channel;     /* number of its channel in the executor */
	uint32_t next;        /* of the channel, or of the free ones */
	uint32_t staged_page, staged_count; /* count 0: not staged */
	bool is_issued;       /* the disk has it now */
};

/* One channel in one file. */
struct held_channel {
	uint32_t first, last, next_waiting; /* chunks, or CHUNK_NONE */
	uint32_t chunk_count;
	uint64_t bytes;
	bool is_active; /* in the ring of those with waiting chunks */
};

enum channel_file_phase {
	CHANNEL_FILE_FREE,
	CHANNEL_FILE_COLLECTING, /* data is taken, and written */
	CHANNEL_FILE_TABLE,      /* all is written but table and header */
	CHANNEL_FILE_CLEANING,   /* failed or given up */
};

enum channel_disk_phase {
	DISK_NONE,
	DISK_OPENING,
	DISK_OPEN,
	DISK_ALLOCATING,
	DISK_SYNCING,
	DISK_SYNCED,
	DISK_CLOSING,
	DISK_CLOSED,
	DISK_UNLINKING,
};

struct channel_file {
	int64_t checkpoint_id;
	enum channel_file_phase phase;
	enum channel_disk_phase disk_phase;
	int32_t fd;
	uint32_t inflight_count;
	uint32_t waiting_count; /* chunks not yet issued */
	uint32_t chunk_count;
	uint64_t end;           /* of what was given a place */
	uint64_t wanted;        /* what all chunks so far take, at most */
	uint64_t allocated, allocating; /* end of what the file has, and will have */
	uint64_t table_bytes, table_written; /* bytes issued of the table, header last */
	uint32_t section_count;
	bool is_header_issued;
	bool is_reusing;         /* there is one to write over, as far as is known */
	bool is_second_try;      /* to open it: it was not as the last time */
	bool is_participant[CHANNEL_STATE_SUBTASKS_MAX]; /* subtasks it waits for */
	struct held_channel *channels;
	uint32_t *active;        /* ring of channel numbers */
	uint32_t active_head, active_count;
	char name[CHANNEL_STATE_NAME_BYTES];
	char path[CHANNEL_STATE_PATH_BYTES];
};

/* Of one subtask and checkpoint. */
struct writer_result {
	int64_t checkpoint_id; /* 0: free */
	bool is_input_finished, is_output_finished, is_done;
	int status;
	enum decline_reason reason;
	struct channel_state_result result;
	struct channel_state_handle *handles;
	char file[CHANNEL_STATE_NAME_BYTES];
	char text[CHANNEL_STATE_TEXT_BYTES];
};

struct channel_state_writer {
	struct channel_state_executor *executor;
	struct channel_state_subtask subtask;
	uint32_t index;         /* in the executor */
	uint32_t first_channel; /* number of its first one in the executor */
	uint32_t channel_count, input_channel_count;
	uint32_t held_count;    /* buffers of it that are held */
	bool is_closed;
	struct writer_result results[CHANNEL_STATE_RESULTS_MAX];
};

struct channel_state_executor {
	struct channel_state_executor_config config;
	uint64_t now_ns, progress_ns; /* when the disk last answered, or had nothing to do */
	bool is_fresh;                /* nobody has stepped since it had nothing to do */
	bool is_reusing;              /* there was a file to write over, the last time */
	int64_t ongoing_id;           /* CS-13; -1: none yet */
	struct channel_file *ongoing; /* NULL: it is over */
	int ongoing_status;           /* of an ongoing id that failed by the disk */
	char ongoing_text[CHANNEL_STATE_TEXT_BYTES];
	int64_t aborted_id;           /* CS-15, the largest */
	uint32_t aborted_by;
	enum decline_reason aborted_reason;
	char aborted_text[CHANNEL_STATE_TEXT_BYTES];
	uint32_t writer_count, channel_count;
	uint32_t free_chunk;
	const struct channel_file *table_of; /* who uses the table, or NULL */
	struct channel_file files[CHANNEL_STATE_FILES_MAX];
	struct channel_state_writer *writers;
	struct channel_state_handle *handles;
	struct held_chunk *chunks;
	uint16_t *issued;     /* of each channel: buffers with the disk */
	uint16_t *writer_of;  /* of each channel */
	bool *staging_used;   /* for each page */
	uint8_t *staging, *table;
	uint8_t *header;      /* one block */
};

static inline uint64_t channel_state_round_up(uint64_t n)
{
	return (n + STORE_ALIGN_BYTES - 1) / STORE_ALIGN_BYTES * STORE_ALIGN_BYTES;
}

/* Neither free nor given up. */
static inline bool channel_file_is_live(const struct channel_file *f)
{
	return f->phase == CHANNEL_FILE_COLLECTING || f->phase == CHANNEL_FILE_TABLE;
}

/* ---- channel_state_chunk.c ---- */

/* The first page of a free run of at most `bytes`; its length in pages, 0: none is free. */
uint32_t channel_staging_take(struct channel_state_executor *e, uint32_t bytes, uint32_t *page);
/* What it takes in the file: the blocks its bytes lie in. */
uint32_t channel_chunk_file_bytes(const struct held_chunk *c);
/* Puts a chunk behind the others of its channel.  Fails the file when there is no room. */
void channel_file_add(struct channel_state_executor *e, struct channel_file *f, uint32_t channel,
		const struct held_chunk *chunk);
/* Writes what waits, as much as may be with the disk; how many buffers. */
uint32_t channel_chunks_issue(struct channel_state_executor *e, struct channel_file *f);
/* The disk does not answer: copies buffers that it does not have yet, or fails the file. */
uint32_t channel_chunks_copy(struct channel_state_executor *e, struct channel_file *f);
/* Nothing reads the chunk's bytes any more. */
void channel_chunk_drop_bytes(struct channel_state_executor *e, struct held_chunk *c);
void channel_chunk_free(struct channel_state_executor *e, uint32_t index);
/* All of a file; those that the disk has now are freed when they come back. */
void channel_chunks_free(struct channel_state_executor *e, struct channel_file *f);

/* ---- channel_state_file.c ---- */

/* A free file begins; its participants are all writers that are not closed. */
void channel_file_begin(
		struct channel_state_executor *e, struct channel_file *f, int64_t checkpoint_id);
/* One request about the file, for a chunk or CHUNK_NONE; false: not now. */
bool channel_file_submit(struct channel_state_executor *e, struct channel_file *f,
		struct store_request *r, uint32_t chunk);
/* Goes on with all files; how much was done. */
uint32_t channel_files_step(struct channel_state_executor *e);
/* Gives the file up: releases what was not issued, removes it when the rest has come back. */
void channel_file_give_up(struct channel_state_executor *e, struct channel_file *f);
bool channel_files_are_free(const struct channel_state_executor *e);
bool channel_files_are_writing(const struct channel_state_executor *e);

/* ---- channel_state_executor.c ---- */

/* CS-20: the file of the ongoing checkpoint fails by the disk. */
void channel_executor_fail(struct channel_state_executor *e, struct channel_file *f, int status,
		const char *what);
/* All participants have finished (CS-19). */
bool channel_executor_is_complete(
		const struct channel_state_executor *e, const struct channel_file *f);
/* The file is durable, or there was nothing to write. */
void channel_executor_complete(struct channel_state_executor *e, struct channel_file *f);
/* The file that is still to be had of a checkpoint, or NULL. */
struct channel_file *channel_executor_file(
		const struct channel_state_executor *e, int64_t checkpoint_id);
struct writer_result *channel_writer_result(
		const struct channel_state_writer *w, int64_t checkpoint_id);
/* CS-13; the outcome of a start that came too late is put into `r` (CS-12). */
void channel_executor_start(
		struct channel_state_writer *w, struct writer_result *r, int64_t checkpoint_id);
/* CS-15. */
void channel_executor_abort(struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason reason, const char *text);
void channel_executor_release(struct channel_state_writer *w);
