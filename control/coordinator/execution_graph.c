#include "control/coordinator/execution_graph.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct subtask {
	struct attempt_id attempt;
	uint32_t vertex;
	enum execution_state state;
	bool is_ended;
};

struct execution_graph {
	uint32_t vertex_count, edge_count, subtask_count;
	struct execution_vertex *vertices;
	struct execution_edge *edges;
	uint32_t *firsts; /* the first subtask of each vertex */
	struct subtask *subtasks;
	uint32_t open_count; /* neither finished nor ended */
	uint32_t finished_count;
};

static const char *const state_names[EXECUTION_STATES_COUNT] = {
	[EXECUTION_CREATED] = "CREATED",
	[EXECUTION_DEPLOYING] = "DEPLOYING",
	[EXECUTION_INITIALIZING] = "INITIALIZING",
	[EXECUTION_RUNNING] = "RUNNING",
	[EXECUTION_FINISHED] = "FINISHED",
	[EXECUTION_CANCELING] = "CANCELING",
	[EXECUTION_CANCELED] = "CANCELED",
	[EXECUTION_FAILED] = "FAILED",
};

const char *execution_state_name(enum execution_state state)
{
	CHECK((unsigned int)state < EXECUTION_STATES_COUNT);
	return state_names[state];
}

bool execution_state_parse(const char *name, enum execution_state *state)
{
	for (int i = 0; i < EXECUTION_STATES_COUNT; i++) {
		if (strcmp(name, state_names[i]) == 0) {
			*state = (enum execution_state)i;
			return true;
		}
	}
	return false;
}

static bool is_graph(const struct execution_vertex *vertices, uint32_t vertex_count,
		const struct execution_edge *edges, uint32_t edge_count)
{
	uint64_t subtask_count = 0;

	for (uint32_t v = 0; v < vertex_count; v++) {
		if (vertices[v].parallelism == 0)
			return false;
		subtask_count += vertices[v].parallelism;
	}
	for (uint32_t e = 0; e < edge_count; e++) {
		if (edges[e].from >= edges[e].to || edges[e].to >= vertex_count)
			return false;
	}
	return vertex_count > 0 && subtask_count < UINT32_MAX;
}

int execution_graph_create(struct execution_graph **out, const struct execution_vertex *vertices,
		uint32_t vertex_count, const struct execution_edge *edges, uint32_t edge_count)
{
	if (!is_graph(vertices, vertex_count, edges, edge_count))
		return -EINVAL;

	struct execution_graph *g = heap_zeroed(1, sizeof(*g));

	g->vertex_count = vertex_count;
	g->edge_count = edge_count;
	g->vertices = heap_copy(vertices, vertex_count, sizeof(*vertices));
	g->edges = heap_copy(edges, edge_count, sizeof(*edges));
	g->firsts = heap_zeroed(vertex_count, sizeof(*g->firsts));
	for (uint32_t v = 0; v < vertex_count; v++) {
		g->vertices[v].name = heap_text(vertices[v].name);
		g->firsts[v] = g->subtask_count;
		g->subtask_count += vertices[v].parallelism;
	}
	g->subtasks = heap_zeroed(g->subtask_count, sizeof(*g->subtasks));
	for (uint32_t v = 0; v < vertex_count; v++) {
		for (uint32_t i = 0; i < vertices[v].parallelism; i++)
			g->subtasks[g->firsts[v] + i].vertex = v;
	}
	g->open_count = g->subtask_count;
	*out = g;
	return 0;
}

void execution_graph_destroy(struct execution_graph *g)
{
	if (g == NULL)
		return;
	for (uint32_t v = 0; v < g->vertex_count; v++)
		free((char *)g->vertices[v].name);
	free(g->vertices);
	free(g->edges);
	free(g->firsts);
	free(g->subtasks);
	free(g);
}

static struct subtask *at(struct execution_graph *g, uint32_t subtask)
{
	CHECK(subtask < g->subtask_count);
	return &g->subtasks[subtask];
}

static const struct subtask *peek(const struct execution_graph *g, uint32_t subtask)
{
	CHECK(subtask < g->subtask_count);
	return &g->subtasks[subtask];
}

/* Changes what is_ended counts. */
static void change(struct execution_graph *g, struct subtask *s, enum execution_state state,
		bool is_ended)
{
	g->open_count -= s->state != EXECUTION_FINISHED && !s->is_ended;
	g->finished_count -= s->state == EXECUTION_FINISHED;
	s->state = state;
	s->is_ended = is_ended;
	g->open_count += s->state != EXECUTION_FINISHED && !s->is_ended;
	g->finished_count += s->state == EXECUTION_FINISHED;
}

void execution_graph_set_attempt(
		struct execution_graph *g, uint32_t subtask, struct attempt_id attempt)
{
	struct subtask *s = at(g, subtask);

	s->attempt = attempt;
	change(g, s, EXECUTION_CREATED, false);
}

void execution_graph_set_state(
		struct execution_graph *g, uint32_t subtask, enum execution_state state)
{
	struct subtask *s = at(g, subtask);

	CHECK((unsigned int)state < EXECUTION_STATES_COUNT);
	change(g, s, state, s->is_ended);
}

void execution_graph_set_ended(struct execution_graph *g, uint32_t subtask)
{
	struct subtask *s = at(g, subtask);

	change(g, s, s->state, true);
}

uint32_t execution_graph_vertex_count(const struct execution_graph *g)
{
	return g->vertex_count;
}

uint32_t execution_graph_subtask_count(const struct execution_graph *g)
{
	return g->subtask_count;
}

uint32_t execution_graph_edge_count(const struct execution_graph *g)
{
	return g->edge_count;
}

const struct execution_vertex *execution_graph_vertex(const struct execution_graph *g, uint32_t v)
{
	CHECK(v < g->vertex_count);
	return &g->vertices[v];
}

const struct execution_edge *execution_graph_edge(const struct execution_graph *g, uint32_t e)
{
	CHECK(e < g->edge_count);
	return &g->edges[e];
}

uint32_t execution_graph_subtask(const struct execution_graph *g, uint32_t v, uint32_t index)
{
	CHECK(v < g->vertex_count);
	CHECK(index < g->vertices[v].parallelism);
	return g->firsts[v] + index;
}

uint32_t execution_graph_vertex_of(const struct execution_graph *g, uint32_t subtask)
{
	return peek(g, subtask)->vertex;
}

uint32_t execution_graph_index_of(const struct execution_graph *g, uint32_t subtask)
{
	return subtask - g->firsts[peek(g, subtask)->vertex];
}

struct attempt_id execution_graph_attempt(const struct execution_graph *g, uint32_t subtask)
{
	return peek(g, subtask)->attempt;
}

enum execution_state execution_graph_state(const struct execution_graph *g, uint32_t subtask)
{
	return peek(g, subtask)->state;
}

bool execution_graph_is_ended(const struct execution_graph *g)
{
	return g->open_count == 0 && g->finished_count < g->subtask_count;
}

void execution_graph_print_subtask(
		const struct execution_graph *g, uint32_t subtask, char text[SUBTASK_TEXT_BYTES])
{
	const struct execution_vertex *v = execution_graph_vertex(g, peek(g, subtask)->vertex);

	snprintf(text, SUBTASK_TEXT_BYTES, "%s (%u/%u)", v->name,
			execution_graph_index_of(g, subtask) + 1, v->parallelism);
}
