#pragma once

/*
 * checkpoint_stats: what happened to each of the last checkpoints, subtask by subtask, failed ones
 * included, and how long completed ones took (flink-semantics 24.1, 24.2).
 *
 * Place    control/coordinator, pure.  checkpoint_coordinator writes it, REST and CLI read it.
 * Thread   one owner.
 * Memory   heap; history_max records plus the latest of each kind.
 * Time     wall-clock milliseconds, -1 where there is none yet; moments of the monotonic clock for
 *          what is finer.
 * Errors   none: an event for a checkpoint that is not in the history is dropped.
 */

#include "control/coordinator/acknowledgement.h"
#include "control/coordinator/checkpoint_failure_reason.h"
#include "control/coordinator/checkpoint_plan.h"
#include "control/coordinator/checkpoint_properties.h"
#include "control/coordinator/moment.h"
#include "dataplane/base/histogram.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_TEXT_BYTES = 128 };

enum checkpoint_status { CHECKPOINT_IN_PROGRESS, CHECKPOINT_COMPLETED, CHECKPOINT_FAILED };

/* Where a checkpoint is on its way; a failed one keeps the last. */
enum checkpoint_phase {
	PHASE_LOCATION,     /* its directory is being made */
	PHASE_COORDINATORS, /* operator coordinators take their snapshots */
	PHASE_HOOKS,        /* master hooks do */
	PHASE_TASKS,        /* tasks have yet to acknowledge */
	PHASE_METADATA,     /* `_metadata` is being written */
	PHASE_INDEX,        /* it is being added to the list of completed checkpoints */
};

/* "waiting for tasks" and so on. */
const char *checkpoint_phase_name(enum checkpoint_phase phase);

struct subtask_stats {
	int64_t ack_ms;
	uint64_t ack_ns; /* the same on the coordinator's monotonic clock; 0: not acknowledged */
	struct attempt_id attempt; /* that was planned */
	struct subtask_metrics metrics;
	uint32_t kept_count; /* channels that had data in flight */
	struct channel_metrics *kept;
	bool is_finished; /* it had finished before; acknowledged at once, all zeros */
	bool is_aborted;  /* metrics of an incomplete report */
};

struct checkpoint_record {
	uint32_t references;
	int64_t id, trigger_ms;
	uint64_t tasks_ns; /* monotonic: when tasks were triggered; 0: not yet */
	struct checkpoint_properties properties;
	enum checkpoint_status status;
	enum checkpoint_phase phase;
	int64_t latest_ack_ms;
	int64_t end_ms; /* completed or failed */
	int64_t checkpointed_bytes, state_bytes, processed_bytes, persisted_bytes;
	uint32_t subtask_count;       /* of the job; the length of `subtasks` */
	uint32_t planned_count;       /* awaited or finished: Flink's num_subtasks */
	uint32_t acknowledged_count;
	uint32_t latest_subtask;      /* who acknowledged last; UINT32_MAX: nobody */
	bool is_unaligned;
	char *location;               /* NULL until completed */
	enum checkpoint_failure_reason reason; /* of a failed one */
	char *failure_message;        /* NULL, or: reason, phase, subtask, elapsed */
	uint32_t failure_subtask;     /* the one to blame or to wait for; UINT32_MAX: none */
	struct subtask_stats *subtasks;
};

/* Latest acknowledgement (failed: failure) minus trigger; -1 when there is none. */
int64_t checkpoint_record_duration_ms(const struct checkpoint_record *r);
/* The last to acknowledge; of a failed one whom to blame or who was waited for.  UINT32_MAX: nobody
 * yet. */
uint32_t checkpoint_record_slowest(const struct checkpoint_record *r);

/* Of completed checkpoints. */
enum checkpoint_summary {
	SUMMARY_DURATION_MS,
	SUMMARY_CHECKPOINTED_BYTES,
	SUMMARY_STATE_BYTES,
	SUMMARY_PROCESSED_BYTES,
	SUMMARY_PERSISTED_BYTES,
	SUMMARIES_COUNT,
};

struct checkpoint_counts {
	uint64_t restored, total, in_progress, completed, failed;
};

struct checkpoint_stats;

void checkpoint_stats_create(struct checkpoint_stats **out, const struct execution_graph *graph,
		uint32_t history_max);
void checkpoint_stats_destroy(struct checkpoint_stats *s);

/* ---- reading; a record is valid until the next event ---- */

struct checkpoint_counts checkpoint_stats_counts(const struct checkpoint_stats *s);
const struct histogram *checkpoint_stats_summary(
		const struct checkpoint_stats *s, enum checkpoint_summary which);
/* Newest first; NULL behind the last. */
const struct checkpoint_record *checkpoint_stats_history(
		const struct checkpoint_stats *s, uint32_t index);
const struct checkpoint_record *checkpoint_stats_find(const struct checkpoint_stats *s, int64_t id);
const struct checkpoint_record *checkpoint_stats_latest_completed(const struct checkpoint_stats *s);
const struct checkpoint_record *checkpoint_stats_latest_savepoint(const struct checkpoint_stats *s);
const struct checkpoint_record *checkpoint_stats_latest_failed(const struct checkpoint_stats *s);

struct restored_stats {
	int64_t id; /* 0: never restored */
	int64_t restore_ms;
	bool is_savepoint;
	char *location;
};
const struct restored_stats *checkpoint_stats_restored(const struct checkpoint_stats *s);

/* ---- events ---- */

void checkpoint_stats_on_pending(struct checkpoint_stats *s, int64_t id,
		const struct checkpoint_properties *properties, const struct checkpoint_plan *plan,
		int64_t wall_ms);
void checkpoint_stats_on_phase(
		struct checkpoint_stats *s, int64_t id, enum checkpoint_phase phase);
/* PHASE_TASKS begins. */
void checkpoint_stats_on_tasks_triggered(struct checkpoint_stats *s, int64_t id, uint64_t now_ns);
void checkpoint_stats_on_acknowledge(
		struct checkpoint_stats *s, const struct acknowledgement *a, struct moment now);
/* What subtasks say they are at, between trigger and acknowledgement. */
enum subtask_step { SUBTASK_NOTHING, SUBTASK_ALIGNING, SUBTASK_SNAPSHOT, SUBTASK_WRITING };

struct subtask_progress {
	enum subtask_step step;
	int64_t step_ms;  /* for so long, when it said so */
	int64_t stuck_ms; /* a call of its operators had not ended for so long */
	int64_t heard_ms; /* wall clock; 0: never */
};

void checkpoint_stats_on_progress(
		struct checkpoint_stats *s, uint32_t subtask, const struct subtask_progress *p);
/* "writing its state for 580 ms": what is known of a subtask that is waited for. */
void checkpoint_stats_print_progress(const struct checkpoint_stats *s, uint32_t subtask,
		int64_t wall_ms, char text[PROGRESS_TEXT_BYTES]);
/* Of one that failed, or of a subtask that did not finish (2.2, AK-6). */
void checkpoint_stats_on_incomplete(
		struct checkpoint_stats *s, const struct acknowledgement *a, int64_t wall_ms);
void checkpoint_stats_on_completed(
		struct checkpoint_stats *s, int64_t id, const char *location, int64_t wall_ms);

struct checkpoint_blame {
	enum checkpoint_failure_reason reason;
	uint32_t subtask; /* who declined; UINT32_MAX: the one that is waited for, if any */
	const char *text; /* NULL, or what was said */
};
/* Composes the failure message. */
void checkpoint_stats_on_failed(struct checkpoint_stats *s, int64_t id,
		const struct checkpoint_blame *blame, int64_t wall_ms);
/* The oldest in progress as a failure would be told: phase, subtask, elapsed.  To be freed; NULL:
 * none is in progress. */
char *checkpoint_stats_explain_pending(const struct checkpoint_stats *s, int64_t wall_ms);
/* TR-7: a failure that never was in progress. */
void checkpoint_stats_on_failed_unborn(struct checkpoint_stats *s);
void checkpoint_stats_on_restored(
		struct checkpoint_stats *s, int64_t id, bool is_savepoint, const char *location,
		int64_t wall_ms);
