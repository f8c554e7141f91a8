#include "control/coordinator/checkpoint_plan.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>

void checkpoint_plan_destroy(struct checkpoint_plan *p)
{
	if (p == NULL)
		return;
	free(p->triggers);
	free(p->waits);
	free(p->attempts);
	free(p->is_waited);
	free(p->is_finished);
	free(p->is_vertex_finished);
	free(p);
}

static struct checkpoint_plan *plan_new(const struct execution_graph *g)
{
	struct checkpoint_plan *p = heap_zeroed(1, sizeof(*p));

	p->graph = g;
	p->subtask_count = execution_graph_subtask_count(g);
	p->vertex_count = execution_graph_vertex_count(g);
	p->triggers = heap_zeroed(p->subtask_count, sizeof(*p->triggers));
	p->waits = heap_zeroed(p->subtask_count, sizeof(*p->waits));
	p->attempts = heap_zeroed(p->subtask_count, sizeof(*p->attempts));
	p->is_waited = heap_zeroed(p->subtask_count, sizeof(*p->is_waited));
	p->is_finished = heap_zeroed(p->subtask_count, sizeof(*p->is_finished));
	p->is_vertex_finished = heap_zeroed(p->vertex_count, sizeof(*p->is_vertex_finished));
	p->is_all_ended = execution_graph_is_ended(g);
	return p;
}

/* PL-1, PL-2: fills who finished and who is waited for. */
static int sort_out(struct checkpoint_plan *p, bool is_finished_enabled, uint32_t *culprit)
{
	for (uint32_t s = 0; s < p->subtask_count; s++) {
		enum execution_state state = execution_graph_state(p->graph, s);

		p->attempts[s] = execution_graph_attempt(p->graph, s);
		p->is_finished[s] = state == EXECUTION_FINISHED;
		p->is_waited[s] = state == EXECUTION_RUNNING;
		if (p->is_finished[s] ? !is_finished_enabled : !p->is_waited[s]) {
			*culprit = s;
			return -EAGAIN;
		}
		p->finished_count += p->is_finished[s];
		if (p->is_waited[s])
			p->waits[p->wait_count++] = s;
	}
	return 0;
}

static void find_finished_vertices(struct checkpoint_plan *p)
{
	for (uint32_t v = 0; v < p->vertex_count; v++)
		p->is_vertex_finished[v] = true;
	for (uint32_t i = 0; i < p->wait_count; i++)
		p->is_vertex_finished[execution_graph_vertex_of(p->graph, p->waits[i])] = false;
}

/* A consumer of a pointwise edge: the range of producers it reads from. */
static void pointwise_range(uint32_t index, uint32_t producers, uint32_t consumers,
		uint32_t *first, uint32_t *behind)
{
	*first = (uint32_t)((uint64_t)index * producers / consumers);
	*behind = (uint32_t)((uint64_t)(index + 1) * producers / consumers);
	if (producers < consumers)
		*behind = *first + 1;
}

static bool is_any_running(const struct checkpoint_plan *p, uint32_t vertex, uint32_t first,
		uint32_t behind)
{
	for (uint32_t i = first; i < behind; i++) {
		if (p->is_waited[execution_graph_subtask(p->graph, vertex, i)])
			return true;
	}
	return false;
}

/* PL-4: which subtasks a running producer of this edge will send a barrier to. */
static void follow_edge(const struct checkpoint_plan *p, const struct execution_edge *e,
		bool *has_running_producer)
{
	uint32_t producers = execution_graph_vertex(p->graph, e->from)->parallelism;
	uint32_t consumers = execution_graph_vertex(p->graph, e->to)->parallelism;

	if (e->pattern == EDGE_ALL_TO_ALL && p->is_vertex_finished[e->from])
		return;
	for (uint32_t i = 0; i < consumers; i++) {
		uint32_t first = 0;
		uint32_t behind = producers;
		bool is_running = e->pattern == EDGE_ALL_TO_ALL;

		if (!is_running) {
			pointwise_range(i, producers, consumers, &first, &behind);
			is_running = is_any_running(p, e->from, first, behind);
		}
		if (is_running)
			has_running_producer[execution_graph_subtask(p->graph, e->to, i)] = true;
	}
}

/* PL-3 and PL-4 in one: with no task finished these are the subtasks of the sources. */
static void find_triggers(struct checkpoint_plan *p)
{
	bool *has_running_producer = heap_zeroed(p->subtask_count, sizeof(bool));

	for (uint32_t e = 0; e < execution_graph_edge_count(p->graph); e++)
		follow_edge(p, execution_graph_edge(p->graph, e), has_running_producer);
	for (uint32_t i = 0; i < p->wait_count; i++) {
		if (!has_running_producer[p->waits[i]])
			p->triggers[p->trigger_count++] = p->waits[i];
	}
	free(has_running_producer);
	CHECK((p->trigger_count > 0) == (p->wait_count > 0));
}

int checkpoint_plan_calculate(struct checkpoint_plan **out, const struct execution_graph *g,
		bool is_finished_enabled, uint32_t *culprit)
{
	struct checkpoint_plan *p = plan_new(g);
	int rc = sort_out(p, is_finished_enabled, culprit);

	if (rc != 0) {
		checkpoint_plan_destroy(p);
		return rc;
	}
	find_finished_vertices(p);
	find_triggers(p);
	*out = p;
	return 0;
}
