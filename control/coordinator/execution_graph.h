#pragma once

/*
 * execution_graph: the facts about a running job that checkpointing looks at: vertices, edges, and
 * for each subtask its current attempt, that attempt's state, and whether its input has ended.
 *
 * Place    control/coordinator.  The glue keeps it up to date, the rules only read it.
 * Thread   one owner, the control thread.
 * Memory   one allocation for each array, at create.
 * Errors   -EINVAL for a graph that is none; a subtask number out of range trips CHECK.
 *
 * A subtask is a number 0..subtask_count-1: vertices in order, the subtasks of each in order.
 */

#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

enum execution_state {
	EXECUTION_CREATED,
	EXECUTION_DEPLOYING,
	EXECUTION_INITIALIZING,
	EXECUTION_RUNNING,
	EXECUTION_FINISHED,
	EXECUTION_CANCELING,
	EXECUTION_CANCELED,
	EXECUTION_FAILED,
	EXECUTION_STATES_COUNT,
};

/* "RUNNING" and so on. */
const char *execution_state_name(enum execution_state state);
bool execution_state_parse(const char *name, enum execution_state *state);

enum edge_pattern { EDGE_ALL_TO_ALL, EDGE_POINTWISE };

/* In topological order; one without inputs is a source. */
struct execution_vertex {
	const char *name;    /* copied */
	uint32_t parallelism;
	bool has_union_state; /* an operator of it has union list state (PL-5) */
};

struct execution_edge {
	uint32_t from, to; /* vertices, from < to */
	enum edge_pattern pattern;
};

struct execution_graph;

int execution_graph_create(struct execution_graph **out, const struct execution_vertex *vertices,
		uint32_t vertex_count, const struct execution_edge *edges, uint32_t edge_count);
void execution_graph_destroy(struct execution_graph *g);

/* ---- what happens ---- */

/* A new attempt of the subtask: CREATED, its input not ended.  All subtasks begin with an attempt
 * of zeros. */
void execution_graph_set_attempt(
		struct execution_graph *g, uint32_t subtask, struct attempt_id attempt);
void execution_graph_set_state(
		struct execution_graph *g, uint32_t subtask, enum execution_state state);
/* The current attempt reported end of data (FO-12); by way of
 * checkpoint_coordinator_on_task_end_of_data. */
void execution_graph_set_ended(struct execution_graph *g, uint32_t subtask);

/* ---- what is ---- */

uint32_t execution_graph_vertex_count(const struct execution_graph *g);
uint32_t execution_graph_subtask_count(const struct execution_graph *g);
uint32_t execution_graph_edge_count(const struct execution_graph *g);
const struct execution_vertex *execution_graph_vertex(const struct execution_graph *g, uint32_t v);
const struct execution_edge *execution_graph_edge(const struct execution_graph *g, uint32_t e);

uint32_t execution_graph_subtask(const struct execution_graph *g, uint32_t v, uint32_t index);
uint32_t execution_graph_vertex_of(const struct execution_graph *g, uint32_t subtask);
uint32_t execution_graph_index_of(const struct execution_graph *g, uint32_t subtask);

struct attempt_id execution_graph_attempt(const struct execution_graph *g, uint32_t subtask);
enum execution_state execution_graph_state(const struct execution_graph *g, uint32_t subtask);

/* Every subtask has finished or reported end of data, and at least one has not finished. */
bool execution_graph_is_ended(const struct execution_graph *g);

enum { SUBTASK_TEXT_BYTES = 128 };

/* "uid (3/8)", as Flink names subtasks. */
void execution_graph_print_subtask(
		const struct execution_graph *g, uint32_t subtask, char text[SUBTASK_TEXT_BYTES]);
