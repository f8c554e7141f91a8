#pragma once

/*
 * checkpoint_plan: which tasks to trigger, to wait for and to notify (flink-semantics 6).
 *
 * Place    control/coordinator, pure.
 * Thread   one owner.
 * Memory   one object and its arrays, the caller's.
 * Errors   -EAGAIN: not all required tasks are running.
 */

#include "control/coordinator/execution_graph.h"

#include <stdbool.h>
#include <stdint.h>

struct checkpoint_plan {
	const struct execution_graph *graph; /* borrowed */
	uint32_t subtask_count, vertex_count;
	uint32_t trigger_count, wait_count, finished_count;
	uint32_t *triggers;          /* subtasks, ascending */
	uint32_t *waits;             /* to wait for and to commit to, ascending */
	struct attempt_id *attempts; /* of each subtask, as planned */
	bool *is_waited;             /* by subtask */
	bool *is_finished;           /* by subtask */
	bool *is_vertex_finished;    /* by vertex */
	bool is_all_ended;           /* all tasks had reported end of data (FO-12) */
};

/* PL-1 to PL-4.  On -EAGAIN `*culprit` is the subtask that is in the way.  With all tasks finished
 * there is a plan with nobody to wait for (PC-1). */
int checkpoint_plan_calculate(struct checkpoint_plan **out, const struct execution_graph *g,
		bool is_finished_enabled, uint32_t *culprit);
/* NULL is accepted. */
void checkpoint_plan_destroy(struct checkpoint_plan *p);
