#pragma once

/*
 * checkpoint_decision: what the checkpoint coordinator wants done.  The glue carries a decision
 * out and, where a line below names an answer, reports it with the decision's token.
 *
 * Place    control/coordinator, between the rules and the glue.
 * Memory   what a decision points to is valid until the next one is taken; `pending`, `completed`
 *          and `deletion` until the answer.
 */

#include "control/coordinator/checkpoint_failure_reason.h"
#include "control/coordinator/checkpoint_properties.h"
#include "control/coordinator/snapshot_state.h"
#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

struct completed_checkpoint;
struct pending_checkpoint;

enum checkpoint_decision_kind {
	DECIDE_DRAW_ID,          /* the next checkpoint id, durably: on_id_drawn */
	DECIDE_SET_NEXT_ID,      /* ids go on at .checkpoint_id (ID-1) */
	DECIDE_REMOVE_ID_COUNTER, /* the job has ended for good (ID-3) */
	DECIDE_PREPARE_LOCATION, /* of .checkpoint_id, under .path if a savepoint, which must be
	                            new and is that of .request: on_location_prepared */
	DECIDE_SNAPSHOT_COORDINATOR, /* operator coordinator .index: on_coordinator_snapshot */
	DECIDE_SNAPSHOT_HOOK,        /* master hook .index: on_hook_snapshot */
	DECIDE_ABORT_TRIGGERING, /* operator coordinators open their gateways again (TR-6) */
	DECIDE_TRIGGER_TASKS,    /* .subtasks with .attempts, .timestamp_ms, .options, .path (NULL:
	                            chk-<id>): on_task_trigger_failed for each that fails */
	DECIDE_WRITE_METADATA,   /* of .pending, at its location: on_metadata_written */
	DECIDE_INDEX_ADD,        /* .completed to the durable list: on_index_added */
	DECIDE_INDEX_REMOVE,     /* .checkpoint_id from it: on_index_removed */
	DECIDE_NOTIFY_COMPLETE,  /* .subtasks, .properties, .other_id: last subsumed or 0; then
	                            the operator coordinators */
	DECIDE_NOTIFY_ABORTED,   /* the same, .other_id: latest completed or 0 */
	DECIDE_DELETE,           /* .deletion, in the background: on_deleted */
	DECIDE_FAIL_JOB,         /* through the restart strategy (FM-8): .reason, .text, .subtask */
	DECIDE_REQUEST_DONE,     /* .request has its one outcome: .is_success and .path, or .reason
	                            and .text; .checkpoint_id 0: it never had a checkpoint */
};

enum deletion_kind {
	DELETION_PENDING,  /* an aborted checkpoint: .files, then the directory .location */
	DELETION_STORED,   /* a completed one: `_metadata` first, .files, the directory (SL-9) */
	DELETION_LATE,     /* .files of a message that came too late; .location may be NULL */
	DELETION_SHARED,   /* .files that no checkpoint uses any more: names of shared files */
	DELETION_LOCATION, /* the directory .location, made or filled after its abort */
};

struct deletion {
	enum deletion_kind kind;
	int64_t checkpoint_id;
	char *location; /* NULL: never prepared, or not known */
	struct file_list files;
};

struct checkpoint_decision {
	enum checkpoint_decision_kind kind;
	uint64_t token;
	int64_t checkpoint_id;
	int64_t timestamp_ms;
	int64_t other_id;
	struct checkpoint_properties properties;
	struct trigger_options options;
	bool is_all_ended; /* trigger, notify complete: all tasks had reported end of data before */
	uint32_t index;
	uint32_t subtask; /* UINT32_MAX: none */
	uint32_t subtask_count;
	uint32_t *subtasks;
	struct attempt_id *attempts;
	char *path;
	const struct pending_checkpoint *pending;
	const struct completed_checkpoint *completed;
	const struct deletion *deletion;
	uint64_t request;
	bool is_success, is_periodic;
	enum checkpoint_failure_reason reason;
	char *text;
};

/* "draw id", "trigger tasks" and so on, for logs. */
const char *checkpoint_decision_name(enum checkpoint_decision_kind kind);
