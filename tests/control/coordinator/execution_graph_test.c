#include "control/coordinator/execution_graph.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

static int try_graph(const struct execution_vertex *vertices, uint32_t vertex_count,
		const struct execution_edge *edges, uint32_t edge_count)
{
	struct execution_graph *g = NULL;
	int status = execution_graph_create(&g, vertices, vertex_count, edges, edge_count);

	execution_graph_destroy(g);
	return status;
}

Test(execution_graph, every_state_has_a_name_that_is_understood)
{
	enum execution_state state;

	for (int i = 0; i < EXECUTION_STATES_COUNT; i++) {
		cr_assert(execution_state_parse(
				execution_state_name((enum execution_state)i), &state));
		cr_assert(eq(int, (int)state, i));
	}
	cr_assert(not(execution_state_parse("SLEEPING", &state)));
	cr_assert(not(execution_state_parse("", &state)));
}

Test(execution_graph, a_vertex_has_subtasks_and_an_edge_leads_on)
{
	const struct execution_vertex good[] = { { "a", 1, false }, { "b", 2, false },
		{ "c", 1, false } };
	const struct execution_vertex none[] = { { "a", 1, false }, { "b", 0, false } };
	const struct execution_edge line[] = { { 0, 1, EDGE_POINTWISE }, { 1, 2, EDGE_POINTWISE } };
	const struct execution_edge loop[] = { { 0, 1, EDGE_POINTWISE }, { 1, 1, EDGE_POINTWISE } };
	const struct execution_edge back[] = { { 0, 1, EDGE_POINTWISE }, { 2, 1, EDGE_POINTWISE } };
	const struct execution_edge away[] = { { 0, 1, EDGE_POINTWISE }, { 1, 3, EDGE_POINTWISE } };

	cr_assert(eq(int, try_graph(good, 3, line, 2), 0));
	cr_assert(eq(int, try_graph(good, 0, NULL, 0), -EINVAL));
	cr_assert(eq(int, try_graph(none, 2, line, 1), -EINVAL));
	cr_assert(eq(int, try_graph(good, 3, loop, 2), -EINVAL));
	cr_assert(eq(int, try_graph(good, 3, back, 2), -EINVAL));
	cr_assert(eq(int, try_graph(good, 3, away, 2), -EINVAL));
}

Test(execution_graph, subtasks_are_numbered_with_32_bits)
{
	const struct execution_vertex many[] = { { "a", UINT32_MAX, false } };
	const struct execution_vertex halves[] = { { "a", 1U << 31, false },
		{ "b", 1U << 31, false } };

	cr_assert(eq(int, try_graph(many, 1, NULL, 0), -EINVAL));
	cr_assert(eq(int, try_graph(halves, 2, NULL, 0), -EINVAL));
}

/* FO-12: all have ended, but not all are gone. */
Test(execution_graph, a_job_has_ended_when_the_last_of_its_subtasks_that_is_left_has)
{
	const struct execution_vertex vertex = { "a", 2, false };
	struct execution_graph *g;

	cr_assert(eq(int, execution_graph_create(&g, &vertex, 1, NULL, 0), 0));
	execution_graph_set_state(g, 0, EXECUTION_FINISHED);
	execution_graph_set_state(g, 1, EXECUTION_RUNNING);
	cr_assert(not(execution_graph_is_ended(g)));
	execution_graph_set_ended(g, 1);
	cr_assert(execution_graph_is_ended(g));
	execution_graph_set_state(g, 1, EXECUTION_FINISHED);
	cr_assert(not(execution_graph_is_ended(g))); /* nobody is left to ask */
	for (uint32_t i = 0; i < 2; i++) {
		execution_graph_set_attempt(g, i, (struct attempt_id){ { .bytes = { 1 } } });
		execution_graph_set_state(g, i, EXECUTION_RUNNING);
		cr_assert(not(execution_graph_is_ended(g)));
	}
	execution_graph_set_ended(g, 0);
	cr_assert(not(execution_graph_is_ended(g)));
	execution_graph_set_ended(g, 1);
	cr_assert(execution_graph_is_ended(g));
	execution_graph_destroy(g);
}
