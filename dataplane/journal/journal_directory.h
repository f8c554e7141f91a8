#pragma once

/*
 * journal_directory: which segments a journal has.
 *
 * Place    journal.
 * Thread   open and close on the control thread, where they block; the table then belongs to the
 *          worker of the task.
 * Memory   the caller's struct.
 * Errors   0 or -errno with one line: -EBUSY when another task, here or in another process, has it
 *          open; -EBADMSG when a segment is damaged.
 * Life     open, close.  Between the two nobody else can open it.
 *
 * A last segment whose header a crash tore has no durable block and is deleted.
 */

#include "dataplane/journal/journal_format.h"

#include <stdbool.h>

enum {
	JOURNAL_SEGMENTS_MAX = 1024,
	JOURNAL_PATH_BYTES = 1024,
	JOURNAL_DIRECTORY_TEXT_BYTES = 512,
};

/* Its file, once it exists: some completed checkpoint covers records of this journal. */
#define JOURNAL_COVERED_NAME "covered"

struct journal_segment_entry {
	uint64_t ordinal, first, bytes;
};

struct journal_directory {
	char path[JOURNAL_PATH_BYTES];
	int lock;    /* descriptor + 1; 0: not open */
	uint64_t id; /* 0: no segment yet */
	uint64_t next_ordinal;
	bool is_covered;
	uint32_t record_bytes_max; /* the most that a segment may have */
	uint32_t count;
	struct journal_segment_entry
			segments[JOURNAL_SEGMENTS_MAX]; /* by ordinal, without a hole */
};

/* Makes it and the directory above it when they are not there. */
int journal_directory_open(struct journal_directory *d, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES]);
void journal_directory_close(struct journal_directory *d);

/* Only which segments there are, by ordinal alone, and whether it is covered; nothing is locked or
 * changed, and there is nothing to close. */
int journal_directory_list(struct journal_directory *d, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES]);

/* The path of a segment; at most JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES. */
void journal_segment_path(
		const struct journal_directory *d, uint64_t ordinal, char *path, size_t size);

uint64_t journal_directory_bytes(const struct journal_directory *d);
/* The oldest one is gone. */
void journal_directory_forget_oldest(struct journal_directory *d);
