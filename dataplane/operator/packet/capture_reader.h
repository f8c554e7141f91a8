#pragma once

/*
 * capture_reader: a thread that reads capture files ahead of the source that collects them.
 *
 * Packets travel as records of flow_record.h in chunks that the two sides pass back and forth by
 * pointer; a source hands parts of a chunk on without copying them again.
 *
 * Place    operator/packet; behind builtin_pcap_source.
 * Thread   create and destroy on the control thread; order, take and give_back on the worker,
 *          where they neither block nor allocate.  The file is opened, read and checked on the
 *          reader's own thread, which also says in the log what is wrong with a file.
 * Memory   CHUNK_COUNT chunks, allocated in create.
 * Errors   as the end of a chunk, with a text.
 * Life     create, { order, take and give_back until a chunk ends the file }*, destroy.  destroy
 *          may come at any time.
 */

#include "dataplane/operator/operator.h"
#include "dataplane/operator/packet/capture_file.h"

enum {
	CHUNK_COUNT = 8,
	CHUNK_BYTES = 64 * 1024,
	CAPTURE_PATH_BYTES = 4096,
};

struct capture_reader;

struct capture_chunk {
	struct capture_identity identity;
	struct capture_mark mark; /* where its first packet begins in the file */
	uint32_t record_count, record_bytes;
	enum capture_end end; /* behind its records */
	bool is_no_capture;   /* a file among others that is none; ended */
	char text[CAPTURE_TEXT_BYTES];
	uint8_t records[CHUNK_BYTES];
};

/* A file to read, from `skip_count` packets behind `mark` on. */
struct capture_order {
	char path[CAPTURE_PATH_BYTES];
	struct capture_identity identity; /* of a restored position; else zeros */
	struct capture_mark mark;
	uint32_t skip_count;
	int64_t highest_ns; /* event time seen so far, in files before this one too */
	bool is_one_of_many; /* found in a directory: it need not be a capture */
};

struct capture_reader_config {
	uint32_t snap_bytes;          /* of a packet that are kept */
	int64_t out_of_orderness_ns;  /* a packet further behind the highest time is late */
};

/* -ENOMEM or -EAGAIN (no thread). */
int capture_reader_create(struct capture_reader **out, struct weir_context *ctx,
		const struct capture_reader_config *config);
void capture_reader_destroy(struct capture_reader *r);

/* Copies the order.  The file before must have ended. */
void capture_reader_order(struct capture_reader *r, const struct capture_order *order);

/* The next chunk in file order, or NULL: not read yet. */
const struct capture_chunk *capture_reader_take(struct capture_reader *r);
void capture_reader_give_back(struct capture_reader *r, const struct capture_chunk *chunk);

/* The watermark when `highest_ns` is the highest time seen. */
int64_t capture_watermark(int64_t highest_ns, int64_t out_of_orderness_ns);
