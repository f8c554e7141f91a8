#pragma once

/*
 * journal_io: what the parts of a journal share: the store, what is under way, what went wrong.
 *
 * Place    journal; inside struct journal, borrowed by its parts.
 * Thread   the worker of the task.
 * Errors   a full disk is waited for; the first of all others stays, with a text.
 */

#include "dataplane/checkpoint/store.h"

enum { JOURNAL_IO_TEXT_BYTES = 512, JOURNAL_RETRY_NS = 100000000 };

/* Whose request it is. */
enum journal_part { JOURNAL_READER, JOURNAL_SEGMENT, JOURNAL_BLOCKS, JOURNAL_TRIM };

struct journal_io {
	struct store *store; /* a share of its own: nobody else reaps it */
	uint64_t now_ns;
	uint32_t inflight_count;
	int failure; /* 0 or -errno */
	char text[JOURNAL_IO_TEXT_BYTES];
};

/* Queues a request; false: too many are under way, ask again at the next step. */
bool journal_ask(struct journal_io *io, enum journal_part part, uint32_t index,
		const struct store_request *request);

static inline enum journal_part journal_part_of(uint64_t tag)
{
	return (enum journal_part)(tag & 0xff);
}

static inline uint32_t journal_index_of(uint64_t tag)
{
	return (uint32_t)(tag >> 16);
}

static inline enum store_op journal_op_of(uint64_t tag)
{
	return (enum store_op)(tag >> 8 & 0xff);
}

void journal_fail(struct journal_io *io, int status, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

/* The disk has no room: nothing is lost, another try may do. */
bool journal_is_full_error(int64_t result);
