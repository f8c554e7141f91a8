#include "control/coordinator/pipelined_regions.h"

/* While they are joined each subtask names another of its region, the lowest one itself. */
static uint32_t lowest_of(uint32_t *leads_to, uint32_t subtask)
{
	while (leads_to[subtask] != subtask) {
		leads_to[subtask] = leads_to[leads_to[subtask]];
		subtask = leads_to[subtask];
	}
	return subtask;
}

static void join(uint32_t *leads_to, uint32_t a, uint32_t b)
{
	uint32_t x = lowest_of(leads_to, a), y = lowest_of(leads_to, b);

	if (x < y)
		leads_to[y] = x;
	else
		leads_to[x] = y;
}

static void join_vertex(const struct execution_graph *g, uint32_t vertex, uint32_t *leads_to)
{
	uint32_t first = execution_graph_subtask(g, vertex, 0);

	for (uint32_t i = 1; i < execution_graph_vertex(g, vertex)->parallelism; i++)
		join(leads_to, first, execution_graph_subtask(g, vertex, i));
}

static uint32_t share(uint32_t index, uint32_t all, uint32_t parts)
{
	return (uint32_t)((uint64_t)index * all / parts);
}

/* Pointwise, one subtask of the narrower side has neighbours of the wider one. */
static void join_edge(
		const struct execution_graph *g, const struct execution_edge *e, uint32_t *leads_to)
{
	uint32_t producers = execution_graph_vertex(g, e->from)->parallelism;
	uint32_t consumers = execution_graph_vertex(g, e->to)->parallelism;

	if (e->pattern == EDGE_ALL_TO_ALL) {
		join_vertex(g, e->from, leads_to);
		join_vertex(g, e->to, leads_to);
	}
	if (producers <= consumers) {
		for (uint32_t i = 0; i < consumers; i++)
			join(leads_to,
					execution_graph_subtask(g, e->from,
							share(i, producers, consumers)),
					execution_graph_subtask(g, e->to, i));
		return;
	}
	for (uint32_t i = 0; i < consumers; i++)
		for (uint32_t k = share(i, producers, consumers);
				k < share(i + 1, producers, consumers); k++)
			join(leads_to, execution_graph_subtask(g, e->from, k),
					execution_graph_subtask(g, e->to, i));
}

uint32_t pipelined_regions_find(
		const struct execution_graph *g, const bool *must_join, uint32_t *region_of)
{
	uint32_t subtask_count = execution_graph_subtask_count(g), count = 0;

	for (uint32_t s = 0; s < subtask_count; s++)
		region_of[s] = s;
	for (uint32_t v = 0; v < execution_graph_vertex_count(g); v++)
		if (must_join != NULL && must_join[v])
			join_vertex(g, v, region_of);
	for (uint32_t e = 0; e < execution_graph_edge_count(g); e++)
		join_edge(g, execution_graph_edge(g, e), region_of);
	for (uint32_t s = 0; s < subtask_count; s++)
		region_of[s] = lowest_of(region_of, s);
	/* The lowest of each region comes before its others, and gets the number. */
	for (uint32_t s = 0; s < subtask_count; s++)
		region_of[s] = region_of[s] == s ? count++ : region_of[region_of[s]];
	return count;
}
