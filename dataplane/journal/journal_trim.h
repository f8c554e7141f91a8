#pragma once

/*
 * journal_trim: deletes the segments that a completed checkpoint covers, one at a time, oldest
 * first, and marks the journal as covered before the first.
 *
 * Place    journal; driven by journal.c.
 * Thread   the worker of the task.
 * Errors   in journal_io: a segment that cannot be deleted.  The mark may be late on a full disk.
 */

#include "dataplane/journal/journal_directory.h"
#include "dataplane/journal/journal_io.h"

enum journal_mark_phase {
	JOURNAL_MARK_OPEN,
	JOURNAL_MARK_CLOSE,
	JOURNAL_MARK_SYNC_DIRECTORY,
	JOURNAL_MARK_DONE,
};

struct journal_trim {
	struct journal_io *io;
	struct journal_directory *directory;
	bool is_wanted, is_busy;
	uint64_t sequence; /* all before it is covered */
	enum journal_mark_phase mark;
	uint64_t retry_ns;
	int32_t file;
	char path[JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES];
};

void journal_trim_init(struct journal_trim *t, struct journal_io *io, struct journal_directory *d);
/* Never lower than before. */
void journal_trim_to(struct journal_trim *t, uint64_t sequence);
uint32_t journal_trim_step(struct journal_trim *t);
void journal_trim_finish(struct journal_trim *t, enum store_op op, int64_t result);

static inline bool journal_trim_is_idle(const struct journal_trim *t)
{
	return !t->is_busy && t->mark != JOURNAL_MARK_CLOSE;
}
