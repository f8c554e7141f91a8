#pragma once

/*
 * job_watchdog: says when a job's checkpoints fail, and when none completes for too long.
 *
 * Place    control/coordinator; part of job_master, beside the triggers and not behind them.
 * Thread   the loop's; a timer of its own.
 * Memory   in job_master.
 * Errors   0 or -errno from make; what it finds is logged and shown (job_master_watch).
 */

#include "control/coordinator/checkpoint_watchdog.h"

enum { WATCHDOG_TEXT_BYTES = 1536 };

struct job_master;
struct loop_timer;

struct job_watchdog {
	struct checkpoint_watchdog rules;
	struct loop_timer *timer;
	char overdue[WATCHDOG_TEXT_BYTES];     /* why none completes */
	/* The first of a row of failures with no completion between them: the others often only
	 * follow from it. */
	int64_t failed_id;
	char failed_text[WATCHDOG_TEXT_BYTES];
	int64_t failed_behind;                 /* the newest completed one then */
	uint32_t failed_count;                 /* of that row */
	uint64_t failed_told_ns;
	uint32_t failed_untold;                /* since then */
	char end_text[256];                    /* why the job's end is not durable; "": it can be */
};

int job_make_watchdog(struct job_master *jm);
/* Looks at what has completed; called whenever something happened, and by the timer. */
void job_watch(struct job_master *jm);
/* A checkpoint failed: logged, but at most once a second.  `id` 0: it never began. */
void job_note_failed_checkpoint(struct job_master *jm, int64_t id, const char *text);
/* Whether the job's end could be made durable: 0, or -errno and it is tried again.  Whoever waits
 * for the job is told, in place of what is overdue. */
void job_note_end(struct job_master *jm, int status);
/* A TaskManager is gone: which tasks were there, and which checkpoint that ends. */
void job_describe_loss(const struct job_master *jm, uint32_t member, const char *reason,
		char text[WATCHDOG_TEXT_BYTES]);
