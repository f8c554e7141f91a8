/* pipelined_regions: what restarts together (semantics FO-1). */

#include "control/coordinator/pipelined_regions.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { SUBTASKS_MAX = 16 };

static uint32_t vertex_count, edge_count;
static struct execution_vertex vertices[8];
static struct execution_edge edges[8];

static void vertex(uint32_t parallelism)
{
	vertices[vertex_count++] = (struct execution_vertex){"v", parallelism, false};
}

static void edge(uint32_t from, uint32_t to, enum edge_pattern pattern)
{
	edges[edge_count++] = (struct execution_edge){from, to, pattern};
}

/* The region of each subtask, one digit each. */
static const char *regions(const bool *must_join)
{
	static char text[SUBTASKS_MAX + 1];
	uint32_t region_of[SUBTASKS_MAX], highest = 0;
	struct execution_graph *g;

	cr_assert_eq(execution_graph_create(&g, vertices, vertex_count, edges, edge_count), 0);
	uint32_t n = execution_graph_subtask_count(g);
	cr_assert_leq(n, SUBTASKS_MAX);
	uint32_t count = pipelined_regions_find(g, must_join, region_of);
	for (uint32_t s = 0; s < n; s++) {
		text[s] = (char)('0' + region_of[s]);
		highest = region_of[s] > highest ? region_of[s] : highest;
	}
	text[n] = '\0';
	cr_expect_eq(count, highest + 1);
	execution_graph_destroy(g);
	return text;
}

Test(pipelined_regions, an_all_to_all_edge_makes_one_of_all_its_subtasks)
{
	vertex(2);
	vertex(3);
	edge(0, 1, EDGE_ALL_TO_ALL);
	cr_expect_str_eq(regions(NULL), "00000");
}

Test(pipelined_regions, a_pointwise_edge_makes_one_of_each_pair)
{
	vertex(3);
	vertex(3);
	edge(0, 1, EDGE_POINTWISE);
	cr_expect_str_eq(regions(NULL), "012012");
}

Test(pipelined_regions, a_pointwise_edge_to_fewer_or_more_joins_neighbours)
{
	vertex(4);
	vertex(2);
	vertex(4);
	edge(0, 1, EDGE_POINTWISE);
	edge(1, 2, EDGE_POINTWISE);
	cr_expect_str_eq(regions(NULL), "0011010011");
}

Test(pipelined_regions, a_pointwise_edge_gives_the_odd_one_to_the_last)
{
	vertex(3);
	vertex(2);
	edge(0, 1, EDGE_POINTWISE);
	cr_expect_str_eq(regions(NULL), "01101");
}

Test(pipelined_regions, vertices_without_an_edge_stand_alone)
{
	vertex(1);
	vertex(2);
	cr_expect_str_eq(regions(NULL), "012");
}

Test(pipelined_regions, parts_of_the_graph_that_do_not_meet_are_apart)
{
	vertex(2);
	vertex(1);
	vertex(2);
	vertex(1);
	edge(0, 2, EDGE_ALL_TO_ALL);
	edge(1, 3, EDGE_POINTWISE);
	cr_expect_str_eq(regions(NULL), "001001");
}

Test(pipelined_regions, a_late_edge_joins_what_was_apart)
{
	vertex(2);
	vertex(2);
	vertex(2);
	vertex(1);
	edge(0, 2, EDGE_POINTWISE);
	edge(1, 2, EDGE_POINTWISE);
	edge(2, 3, EDGE_ALL_TO_ALL);
	cr_expect_str_eq(regions(NULL), "0000000");
}

Test(pipelined_regions, subtasks_of_a_vertex_can_be_held_together)
{
	bool must_join[2] = {true, false};

	vertex(3);
	vertex(3);
	edge(0, 1, EDGE_POINTWISE);
	cr_expect_str_eq(regions(must_join), "000000");
}
