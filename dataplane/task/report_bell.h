#pragma once

/*
 * report_bell: when a worker rings for acknowledgements that it has posted.
 *
 * Place    task, part of the worker.  Pure.
 * Thread   the worker's.
 * Time     now_ns is handed in.
 * Errors   none.
 * Life     zeroed; { hold | is_due | rung }*.
 *
 * A bell wakes the control thread and then the coordinator, which take cores from whoever passes
 * the barrier on, and a checkpoint is complete with its last acknowledgement only.  So those of a
 * job's tasks on this TaskManager share a bell: the last of them rings (report_roll.h), and the
 * others wait for it, for as long as it is about to come.
 */

#include <stdbool.h>
#include <stdint.h>

/* Nobody else is at a checkpoint: its barrier may be about to come. */
#define REPORT_BELL_DELAY_NS UINT64_C(500000)
/* Somebody is: for so long a task that has answered may look as if it had not. */
#define REPORT_BELL_WAIT_NS UINT64_C(20000000)

struct report_bell {
	bool is_holding;        /* acknowledgements are posted, and not rung for */
	uint64_t held_since_ns; /* the first of them */
};

void report_bell_hold(struct report_bell *b, uint64_t now_ns);
/* `is_answering`: another task has a checkpoint's barrier, and has not answered. */
bool report_bell_is_due(const struct report_bell *b, bool is_answering, uint64_t now_ns);
void report_bell_rung(struct report_bell *b);
