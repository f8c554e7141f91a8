#include "control/coordinator/pending_checkpoint.h"

#include <criterion/criterion.h>
#include <string.h>

/* What scenario scripts cannot say: tasks of a vertex that had finished in part, restored so. */

static struct execution_graph *graph;
static struct pending_checkpoint *pending;

/* src (2) -> sum (1), all running. */
static void begin(bool has_union_state)
{
	const struct execution_vertex vertices[] = {
			{"src", 2, has_union_state}, {"sum", 1, false}};
	const struct execution_edge edges[] = {{0, 1, EDGE_ALL_TO_ALL}};
	struct pending_config config = {.id = 1};
	struct checkpoint_plan *plan;
	uint32_t culprit;

	cr_assert_eq(execution_graph_create(&graph, vertices, 2, edges, 1), 0);
	for (uint32_t s = 0; s < 3; s++)
		execution_graph_set_state(graph, s, EXECUTION_RUNNING);
	cr_assert_eq(checkpoint_plan_calculate(&plan, graph, true, &culprit), 0);
	pending_checkpoint_create(&pending, &config, plan);
}

static void acknowledge(uint32_t subtask, enum finish_flag finish)
{
	struct acknowledgement a = {.subtask = subtask, .checkpoint_id = 1, .finish = finish};

	cr_assert_eq(pending_checkpoint_acknowledge(pending, &a), ACK_SUCCESS);
}

static void end(void)
{
	pending_checkpoint_release(pending);
	execution_graph_destroy(graph);
}

/* PL-5, PL-6. */
Test(pending_finished, a_subtask_restored_as_finished_alone_stays_finished_alone)
{
	enum checkpoint_failure_reason reason;

	begin(false);
	acknowledge(0, FINISH_SUBTASK_RESTORED_AS_FINISHED);
	acknowledge(1, FINISH_NONE);
	acknowledge(2, FINISH_NONE);
	cr_assert(pending_checkpoint_is_subtask_finished(pending, 0));
	cr_assert_not(pending_checkpoint_is_subtask_finished(pending, 1));
	cr_assert_not(pending_checkpoint_is_vertex_finished(pending, 0));
	cr_assert(pending_checkpoint_is_finishable(pending, &reason));
	end();
}

Test(pending_finished, one_restored_with_all_of_its_vertex_speaks_for_the_others)
{
	begin(false);
	acknowledge(0, FINISH_RESTORED_AS_FINISHED);
	cr_assert(pending_checkpoint_is_vertex_finished(pending, 0));
	cr_assert(pending_checkpoint_is_subtask_finished(pending, 1));
	end();
}

Test(pending_finished, union_state_cannot_be_finished_in_part_by_a_restore_either)
{
	enum checkpoint_failure_reason reason = REASON_DECLINED;

	begin(true);
	acknowledge(0, FINISH_SUBTASK_RESTORED_AS_FINISHED);
	acknowledge(1, FINISH_NONE);
	acknowledge(2, FINISH_NONE);
	cr_assert_not(pending_checkpoint_is_finishable(pending, &reason));
	cr_assert_eq(reason, REASON_DECLINED_TASK_CLOSING);
	end();
}
