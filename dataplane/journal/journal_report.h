#pragma once

/*
 * journal_report: a journal as `weir inspect` shows it: its segments, and what reading every byte
 * of them found.
 *
 * Nothing is locked, made or deleted, so a journal in use can be looked at: what its task trims
 * meanwhile is left out, and what it is writing looks torn.
 *
 * Place    journal; reads files only.
 * Thread   one; blocks while it reads.
 * Memory   one report owns everything.
 * Errors   0 or -errno with one line when the directory cannot be read, -ENOENT when it has no
 *          segment; damage is in the report.
 * Life     create, destroy.
 */

#include "dataplane/journal/journal_directory.h"

enum { JOURNAL_REPORT_TEXT_BYTES = 384, JOURNAL_EDGE_BYTES = 16 };

/* What stands behind the last whole block of a segment. */
enum journal_tail {
	JOURNAL_TAIL_NONE,    /* the end of the file */
	JOURNAL_TAIL_ZEROS,   /* room that was not written yet */
	JOURNAL_TAIL_TORN,    /* what a crash tore; it was durable for nobody */
	JOURNAL_TAIL_DAMAGED, /* records that were durable and cannot be read */
};

/* The first bytes of a record. */
struct journal_edge {
	uint32_t bytes; /* 0: there is none */
	uint8_t at[JOURNAL_EDGE_BYTES];
};

struct journal_report_segment {
	uint64_t ordinal;
	uint64_t first, end; /* sequences: of its first record, behind its last whole one */
	uint64_t lost;	     /* records behind `end` that were durable, as far as that is known */
	uint64_t blocks, payload_bytes;
	uint64_t file_bytes, whole_bytes; /* whole: up to the end of the last whole block */
	enum journal_tail tail;
	char text[JOURNAL_REPORT_TEXT_BYTES]; /* about a tail that is torn or damaged */
	struct journal_edge first_record, last_record;
};

struct journal_report {
	char path[JOURNAL_PATH_BYTES];
	uint64_t id;	 /* 0: no header can be read */
	bool is_covered; /* some completed checkpoint covers records of it */
	uint32_t count, damaged_count;
	struct journal_report_segment segments[JOURNAL_SEGMENTS_MAX];
};

int journal_report_create(struct journal_report **out, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES]);
/* NULL is accepted. */
void journal_report_destroy(struct journal_report *r);
