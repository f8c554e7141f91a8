#pragma once

/*
 * report_roll: the workers of one job, and up to which checkpoint each has answered for its tasks.
 *
 * Place    task, part of the task group; asked by its workers.
 * Thread   expect before the tasks are attached; answered and left on the worker named.  Of two
 *          that answer at the same time at least one hears that all have.
 * Time     none.
 * Errors   none.
 * Life     zeroed; expect for each worker with a task; { answered }*, left.
 *
 * Whoever answers last rings for all: a bell for each worker would wake control thread and
 * coordinator while another worker is still at the same checkpoint, and take its core.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/limits.h"

struct report_roll {
	uint32_t worker_count; /* those above have no task */
	struct {
		bool is_expected;
		_Atomic int64_t answered_id; /* INT64_MAX: it has no task any more */
	} workers[WORKERS_COUNT_MAX];
};

/* `worker` has a task of this job. */
void report_roll_expect(struct report_roll *r, uint32_t worker);
/* All tasks of this worker have answered for this checkpoint.  True: those of all workers have. */
bool report_roll_answered(struct report_roll *r, uint32_t worker, int64_t checkpoint_id);
/* Its last task has ended. */
void report_roll_left(struct report_roll *r, uint32_t worker);
