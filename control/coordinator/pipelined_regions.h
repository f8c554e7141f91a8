#pragma once

/*
 * pipelined_regions: which subtasks restart together: those that records can pass between, directly
 * or by way of others (semantics FO-1).
 *
 * Place    control/coordinator, a rule.
 * Thread   any.
 * Memory   the caller's.
 *
 * An all-to-all edge joins all subtasks of its two vertices; a pointwise one joins a producer with
 * its own consumers only, so a job of forward edges has a region for each subtask index.
 */

#include "control/coordinator/execution_graph.h"

/* Fills the region of each subtask, numbered from 0 in the order of their lowest subtasks; returns
 * how many there are.  `must_join`, by vertex or NULL: its subtasks belong together in any case. */
uint32_t pipelined_regions_find(
		const struct execution_graph *g, const bool *must_join, uint32_t *region_of);
