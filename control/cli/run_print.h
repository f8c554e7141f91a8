#pragma once

/*
 * run_print: what `weir run` and `weir submit` show: progress while the job runs, its result at the
 * end.
 *
 * Place    control/cli; pure but for the stream it writes to.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Zero-initialised at the start of a run. */
struct run_progress {
	bool is_tty, has_line; /* a line that the next one replaces */
	uint64_t shown_ns, records_in, records_ns;
	int64_t failed_id;               /* of the checkpoint whose failure was told last */
	uint64_t failed_ns, overdue_ns;  /* when those were told; 0: never */
	uint64_t waits_ns;               /* since when it cannot be deployed; 0: it can */
	bool has_told_waiting;
};

/* One line of progress: at each call on a terminal, else every other second.  `summary` NULL: the
 * coordinator does not answer. */
void run_print_progress(struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns);
/* A checkpoint that failed, that none completes for too long, that the job has waited for its
 * TaskManagers for a second: what is new of that, each at most once a second. */
void run_print_troubles(struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns);
/* Ends the line that would be replaced, so that something else may be said. */
void run_print_break(struct run_progress *p, FILE *out);

/* The result as a table, or as one JSON object: `summary` with wall_s.  false: out of memory. */
bool run_print_result(FILE *out, const json_t *summary, double wall_s, bool json);
