#pragma once

/*
 * barrier_run: a barrier handler that is told facts and says decisions, as words.
 *
 * Facts: "b5@0" an aligned barrier of checkpoint 5 on channel 0, "r" the same asked for by the
 * coordinator, "t" a timeoutable one in line, "a" its announcement, "c" itself ahead of the line;
 * "u" an unaligned one; "n" a barrier has come, "x" a cancel marker, "e@0" the end of channel 0,
 * "+20@0" time passes, "*@0" the timer runs.  Decisions:
 * "block0" ("block0-behind"), "resume0", "convert0", "prepare5", "start5", "trigger5" ("trigger5u"
 * unaligned), "stop5", "all5", "abort5:subsumed".
 */

#include "dataplane/checkpoint/barrier_handler.h"

enum { TEXT_BYTES = 256, TIMEOUT_MS = 100 };

struct barrier_run {
	struct barrier_handler *handler;
	uint64_t now_ns;
	int64_t wall_ms;
	int64_t timestamp_ms;
	bool is_alternating; /* barriers may be announced; "all5" is of interest */
	char text[TEXT_BYTES]; /* decisions of the last facts */
};

/* A row of a table: what was told before, a fact, and what comes of it. */
struct barrier_row {
	const char *name;
	const char *before; /* leads to the state */
	const char *fact;
	const char *decisions;
	int64_t current, pending;
};

void barrier_run_open(struct barrier_run *r, uint32_t channels, bool has_finished_tasks);
void barrier_run_open_counting(
		struct barrier_run *r, uint32_t channels, bool has_finished_tasks);
void barrier_run_close(struct barrier_run *r);

/* What a row of facts led to. */
const char *barrier_run_tell(struct barrier_run *r, const char *facts);

/* The oldest one pending, or 0. */
int64_t barrier_run_pending(const struct barrier_run *r);

/* Tells what was before and the fact of a row; an open run. */
void barrier_run_expect(struct barrier_run *r, const struct barrier_row *row);
