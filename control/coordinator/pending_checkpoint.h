#pragma once

/*
 * pending_checkpoint: the record of one checkpoint in flight (flink-semantics 7): who has yet to
 * acknowledge, and what the others handed in.
 *
 * Place    control/coordinator, pure; owned by checkpoint_coordinator, read by the glue when it
 *          writes `_metadata`.
 * Thread   one owner.
 * Memory   counted references.
 * Errors   the results of section 7 (PC-3, PC-5); misuse trips CHECK.
 * Life     create, { acknowledge* }, (finalise | abort), release.
 */

#include "control/coordinator/acknowledgement.h"
#include "control/coordinator/checkpoint_failure_reason.h"
#include "control/coordinator/checkpoint_plan.h"
#include "control/coordinator/checkpoint_properties.h"
#include "control/coordinator/completed_checkpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct pending_checkpoint;

struct pending_config {
	int64_t id;
	int64_t timestamp_ms; /* wall clock of the trigger */
	struct checkpoint_properties properties;
	uint32_t coordinator_count, hook_count;
	const uint32_t *coordinator_vertices; /* UINT32_MAX: of none; outlives the checkpoint */
};

/* Takes over the caller's reference of `plan`. */
void pending_checkpoint_create(struct pending_checkpoint **out,
		const struct pending_config *config, struct checkpoint_plan *plan);
void pending_checkpoint_retain(struct pending_checkpoint *p);
void pending_checkpoint_release(struct pending_checkpoint *p);

/* ---- what it is ---- */

int64_t pending_checkpoint_id(const struct pending_checkpoint *p);
int64_t pending_checkpoint_timestamp_ms(const struct pending_checkpoint *p);
const struct checkpoint_properties *pending_checkpoint_properties(
		const struct pending_checkpoint *p);
const struct checkpoint_plan *pending_checkpoint_plan(const struct pending_checkpoint *p);
/* NULL until it is prepared. */
const char *pending_checkpoint_location(const struct pending_checkpoint *p);

/* ---- what it holds; for `_metadata` ---- */

/* What one subtask acknowledged; NULL when it has not (it is awaited, or it finished before). */
struct pending_subtask {
	struct subtask_metrics metrics;
	struct snapshot_state state;
	enum finish_flag finish;
};
const struct pending_subtask *pending_checkpoint_subtask(
		const struct pending_checkpoint *p, uint32_t subtask);
/* PL-5, PL-6: its state is the marker "finished", not what it acknowledged. */
bool pending_checkpoint_is_subtask_finished(const struct pending_checkpoint *p, uint32_t subtask);
bool pending_checkpoint_is_vertex_finished(const struct pending_checkpoint *p, uint32_t vertex);
/* NULL when it stored nothing, or its vertex has finished (PL-5). */
const struct snapshot_state *pending_checkpoint_coordinator(
		const struct pending_checkpoint *p, uint32_t index);
/* NULL when it stored nothing (PC-5). */
const struct snapshot_state *pending_checkpoint_hook(
		const struct pending_checkpoint *p, uint32_t index);

/* The names of the private files of everybody: how many.  The array is to be freed, the names are
 * borrowed. */
uint32_t pending_checkpoint_files(const struct pending_checkpoint *p, const char ***names);

/* ---- collecting ---- */

enum acknowledge_result { ACK_SUCCESS, ACK_DUPLICATE, ACK_UNKNOWN, ACK_DISCARDED };

/* On ACK_SUCCESS the state of `a` is taken, otherwise it stays with the caller. */
enum acknowledge_result pending_checkpoint_acknowledge(
		struct pending_checkpoint *p, struct acknowledgement *a);
enum acknowledge_result pending_checkpoint_acknowledge_coordinator(
		struct pending_checkpoint *p, uint32_t index, struct snapshot_state *state);
enum acknowledge_result pending_checkpoint_acknowledge_hook(
		struct pending_checkpoint *p, uint32_t index, struct snapshot_state *state);

bool pending_checkpoint_is_awaited(const struct pending_checkpoint *p, uint32_t subtask);
uint32_t pending_checkpoint_awaited_count(const struct pending_checkpoint *p);
/* The snapshot of that one is in, with state or without. */
bool pending_checkpoint_has_coordinator(const struct pending_checkpoint *p, uint32_t index);
bool pending_checkpoint_has_hook(const struct pending_checkpoint *p, uint32_t index);
bool pending_checkpoint_is_fully_acknowledged(const struct pending_checkpoint *p);
bool pending_checkpoint_is_disposed(const struct pending_checkpoint *p);
/* PC-6: not a savepoint. */
bool pending_checkpoint_is_subsumable(const struct pending_checkpoint *p);

void pending_checkpoint_set_location(struct pending_checkpoint *p, const char *location);

/* ---- ending ---- */

/* PL-5: false, with the reason, when finished tasks stand in the way. */
bool pending_checkpoint_is_finishable(
		const struct pending_checkpoint *p, enum checkpoint_failure_reason *reason);

/* PC-7: makes the completed checkpoint and disposes of this one, deleting nothing. */
void pending_checkpoint_finalise(struct pending_checkpoint *p, int64_t wall_ms,
		struct completed_checkpoint **out);

/* PC-8: disposes of it; `files` gets the private files that must go.  The states stay readable,
 * for a write of `_metadata` may be under way, until the last reference goes. */
void pending_checkpoint_abort(struct pending_checkpoint *p,
		enum checkpoint_failure_reason reason, struct file_list *files);
