#pragma once

/*
 * finished_task: what a task that was restored as finished runs instead of its operators (RE-10).
 *
 * Place    task; task_group builds the chain of such a task from it.
 * Thread   as in operator.h.
 *
 * It has no input of its own and says nothing, so the task goes straight to its end: event time,
 * end of data, a final checkpoint, end of partition, as if its operators had just finished.
 */

#include "dataplane/operator/operator.h"

/* `is_source`: nothing stands in front of it. */
const struct weir_operator *finished_task_operator(bool is_source);
