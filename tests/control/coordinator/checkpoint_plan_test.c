#include "control/coordinator/checkpoint_plan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* src(2) -pointwise-> map(2) -all-> sum(3) */
static struct execution_graph *make_graph(void)
{
	const struct execution_vertex vertices[] = {
		{ "src", 2, false },
		{ "map", 2, false },
		{ "sum", 3, false },
	};
	const struct execution_edge edges[] = {
		{ 0, 1, EDGE_POINTWISE },
		{ 1, 2, EDGE_ALL_TO_ALL },
	};
	struct execution_graph *g;

	cr_assert(eq(int, execution_graph_create(&g, vertices, 3, edges, 2), 0));
	for (uint32_t i = 0; i < 7; i++)
		execution_graph_set_state(g, i, EXECUTION_RUNNING);
	return g;
}

static struct checkpoint_plan *plan_of(const struct execution_graph *g)
{
	struct checkpoint_plan *p = NULL;
	uint32_t culprit;

	cr_assert(eq(int, checkpoint_plan_calculate(&p, g, true, &culprit), 0));
	return p;
}

static void expect_list(const uint32_t *list, uint32_t count, const char *expected)
{
	char text[64] = "";

	for (uint32_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", list[i]);
	cr_assert(eq(str, text, (char *)expected));
}

Test(checkpoint_plan, with_all_running_the_sources_are_triggered_and_all_are_waited_for)
{
	struct execution_graph *g = make_graph();
	struct checkpoint_plan *p = plan_of(g);

	expect_list(p->triggers, p->trigger_count, "0 1 ");
	expect_list(p->waits, p->wait_count, "0 1 2 3 4 5 6 ");
	cr_assert(eq(u32, p->finished_count, 0));
	cr_assert(not(p->is_all_ended));
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);
}

Test(checkpoint_plan, each_state_but_running_and_finished_is_in_the_way)
{
	for (int i = 0; i < EXECUTION_STATES_COUNT; i++) {
		struct execution_graph *g = make_graph();
		enum execution_state state = (enum execution_state)i;
		bool is_fine = state == EXECUTION_RUNNING || state == EXECUTION_FINISHED;
		struct checkpoint_plan *p = NULL;
		uint32_t culprit = 99;

		execution_graph_set_state(g, 5, state);
		cr_expect(eq(int, checkpoint_plan_calculate(&p, g, true, &culprit),
					  is_fine ? 0 : -EAGAIN),
				"%s", execution_state_name(state));
		if (!is_fine)
			cr_expect(eq(u32, culprit, 5));
		checkpoint_plan_destroy(p);
		execution_graph_destroy(g);
	}
}

Test(checkpoint_plan, a_finished_task_is_in_the_way_when_that_is_switched_off)
{
	struct execution_graph *g = make_graph();
	struct checkpoint_plan *p = NULL;
	uint32_t culprit = 99;

	execution_graph_set_state(g, 1, EXECUTION_FINISHED);
	cr_assert(eq(int, checkpoint_plan_calculate(&p, g, false, &culprit), -EAGAIN));
	cr_assert(eq(u32, culprit, 1));
	execution_graph_destroy(g);
}

Test(checkpoint_plan, a_task_is_triggered_when_none_of_its_own_producers_runs)
{
	struct execution_graph *g = make_graph();
	struct checkpoint_plan *p;

	execution_graph_set_state(g, 0, EXECUTION_FINISHED);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "1 2 ");
	expect_list(p->waits, p->wait_count, "1 2 3 4 5 6 ");
	cr_assert(not(p->is_vertex_finished[0]));
	checkpoint_plan_destroy(p);

	execution_graph_set_state(g, 1, EXECUTION_FINISHED);
	execution_graph_set_state(g, 2, EXECUTION_FINISHED);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "3 ");
	cr_assert(p->is_vertex_finished[0]);
	cr_assert(not(p->is_vertex_finished[1]));
	checkpoint_plan_destroy(p);

	execution_graph_set_state(g, 3, EXECUTION_FINISHED);
	execution_graph_set_state(g, 4, EXECUTION_FINISHED);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "5 6 ");
	expect_list(p->waits, p->wait_count, "5 6 ");
	cr_assert(eq(u32, p->finished_count, 5));
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);
}

Test(checkpoint_plan, a_running_task_behind_any_running_input_is_not_triggered)
{
	/* left(1) and right(1) both feed join(1). */
	const struct execution_vertex vertices[] = {
		{ "left", 1, false },
		{ "right", 1, false },
		{ "join", 1, false },
	};
	const struct execution_edge edges[] = {
		{ 0, 2, EDGE_ALL_TO_ALL },
		{ 1, 2, EDGE_POINTWISE },
	};
	struct execution_graph *g;
	struct checkpoint_plan *p;

	cr_assert(eq(int, execution_graph_create(&g, vertices, 3, edges, 2), 0));
	for (uint32_t i = 0; i < 3; i++)
		execution_graph_set_state(g, i, EXECUTION_RUNNING);
	execution_graph_set_state(g, 0, EXECUTION_FINISHED);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "1 ");
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);
}

Test(checkpoint_plan, pointwise_edges_of_unequal_parallelism_spread_evenly)
{
	const struct execution_edge edge = { 0, 1, EDGE_POINTWISE };
	const struct execution_vertex narrowing[] = { { "a", 4, false }, { "b", 2, false } };
	const struct execution_vertex widening[] = { { "a", 2, false }, { "b", 4, false } };
	struct execution_graph *g;
	struct checkpoint_plan *p;

	/* 4 to 2: b.0 reads a.0 and a.1 */
	cr_assert(eq(int, execution_graph_create(&g, narrowing, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 6; i++)
		execution_graph_set_state(g, i, i == 2 || i == 3 || i == 0 ? EXECUTION_FINISHED
								    : EXECUTION_RUNNING);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "1 5 ");
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);

	/* 2 to 4: b.2 and b.3 read a.1 */
	cr_assert(eq(int, execution_graph_create(&g, widening, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 6; i++)
		execution_graph_set_state(
				g, i, i == 1 ? EXECUTION_FINISHED : EXECUTION_RUNNING);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "0 4 5 ");
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);
}

Test(checkpoint_plan, remembers_the_attempts_and_whether_all_input_had_ended)
{
	struct execution_graph *g = make_graph();
	struct attempt_id second = { .id = { { 2 } } };
	struct checkpoint_plan *p;

	execution_graph_set_attempt(g, 4, second);
	execution_graph_set_state(g, 4, EXECUTION_RUNNING);
	for (uint32_t i = 0; i < 6; i++)
		execution_graph_set_ended(g, i);
	p = plan_of(g);
	cr_assert(not(p->is_all_ended));
	cr_assert(id128_is_equal(p->attempts[4].id, second.id));
	checkpoint_plan_destroy(p);
	execution_graph_set_state(g, 6, EXECUTION_FINISHED);
	p = plan_of(g);
	cr_assert(p->is_all_ended);
	checkpoint_plan_destroy(p);
	/* A new attempt has its input before it. */
	execution_graph_set_attempt(g, 0, second);
	cr_assert(not(execution_graph_is_ended(g)));
	execution_graph_destroy(g);
}

Test(execution_graph, refuses_what_is_not_a_graph)
{
	const struct execution_vertex good[] = { { "a", 1, false }, { "b", 1, false } };
	const struct execution_vertex empty[] = { { "a", 0, false } };
	const struct execution_edge backwards = { 1, 0, EDGE_ALL_TO_ALL };
	const struct execution_edge beyond = { 0, 2, EDGE_ALL_TO_ALL };
	struct execution_graph *g;

	cr_assert(eq(int, execution_graph_create(&g, good, 0, NULL, 0), -EINVAL));
	cr_assert(eq(int, execution_graph_create(&g, empty, 1, NULL, 0), -EINVAL));
	cr_assert(eq(int, execution_graph_create(&g, good, 2, &backwards, 1), -EINVAL));
	cr_assert(eq(int, execution_graph_create(&g, good, 2, &beyond, 1), -EINVAL));
}

/* PL-4: the task's own producer counts, when one feeds several. */
Test(checkpoint_plan, a_producer_of_several_pointwise_consumers_is_the_producer_of_each)
{
	const struct execution_vertex vertices[] = {{"src", 2, false}, {"map", 4, false}};
	const struct execution_edge edge = {0, 1, EDGE_POINTWISE};
	struct execution_graph *g;
	struct checkpoint_plan *p;

	cr_assert(eq(int, execution_graph_create(&g, vertices, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 6; i++)
		execution_graph_set_state(g, i, i == 0 ? EXECUTION_FINISHED : EXECUTION_RUNNING);
	p = plan_of(g);
	expect_list(p->triggers, p->trigger_count, "1 2 3 ");
	checkpoint_plan_destroy(p);
	execution_graph_destroy(g);
}
