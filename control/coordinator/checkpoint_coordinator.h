#pragma once

/*
 * checkpoint_coordinator: when to trigger a checkpoint, whom, when to give up, what to keep
 * (flink-semantics 3 to 11, 21).  Facts and time in, decisions out.
 *
 * Place    control/coordinator, pure: no clock, socket or file.  The glue takes decisions after
 *          every call until there are none, carries them out and reports the answers.
 * Thread   one owner, the control thread; an answer may be reported while decisions wait.
 * Memory   heap; grows with checkpoints in flight, retained ones and the history.
 * Time     struct moment, given to every call that can lead to a decision.
 * Errors   0 or -errno for what users ask; late, stale and unknown messages are no errors.
 * Life     create, add_*, recover?, { restore*, start, facts*, stop }*, shutdown | end, destroy.
 */

#include "control/coordinator/acknowledgement.h"
#include "control/coordinator/checkpoint_decision.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/completed_checkpoint.h"
#include "control/coordinator/execution_graph.h"
#include "control/coordinator/moment.h"
#include "control/coordinator/pending_checkpoint.h"

struct checkpoint_coordinator;

struct checkpoint_coordinator_config {
	int64_t interval_ms;         /* 0: no periodic checkpoints */
	int64_t backlog_interval_ms; /* -1: the same, 0: none while a source has backlog (CO-5) */
	int64_t min_pause_ms;
	int64_t first_delay_ms; /* -1: drawn from [min pause, interval] (CO-3) */
	int64_t timeout_ms;
	int64_t smallest_ms; /* of interval and timeout: Flink's is 10 */
	uint32_t concurrent_max;
	uint32_t in_flight_max; /* forced ones included; Flink knows no such bound */
	int32_t tolerable_failures; /* INT32_MAX: any number */
	struct alignment_config alignment;
	bool is_finished_enabled; /* checkpoints after tasks finish */
	bool has_blocking_outputs;
	uint32_t retained_count;
	enum retention_policy retention;
	uint32_t queue_max;              /* RD-2: 1000 */
	uint32_t history_max;            /* of the statistics: 10 */
	const char *savepoint_directory; /* where savepoints go that name none; may be NULL */
	uint64_t seed;
};

/* Flink's defaults (section 23). */
struct checkpoint_coordinator_config checkpoint_coordinator_config_default(void);
/* CO-1, OP-1: what is raised, capped or switched off.  NULL, or what cannot be (OP-2, OP-6). */
const char *checkpoint_coordinator_config_normalise(struct checkpoint_coordinator_config *config);

/* `config` is normalised; `graph` is borrowed and kept up to date by the caller. */
void checkpoint_coordinator_create(struct checkpoint_coordinator **out,
		const struct checkpoint_coordinator_config *config, struct execution_graph *graph);
void checkpoint_coordinator_destroy(struct checkpoint_coordinator *c);

/* Before anything else; return the index that decisions name.  `vertex` UINT32_MAX: none. */
uint32_t checkpoint_coordinator_add_coordinator(struct checkpoint_coordinator *c, uint32_t vertex);
uint32_t checkpoint_coordinator_add_hook(struct checkpoint_coordinator *c);

/* ---- decisions and timers ---- */

/* The oldest decision not taken yet; false when there is none. */
bool checkpoint_coordinator_next_decision(
		struct checkpoint_coordinator *c, struct checkpoint_decision *d);
/* When on_timer should be called, monotonic; UINT64_MAX when no timer is set. */
uint64_t checkpoint_coordinator_next_timer(const struct checkpoint_coordinator *c);
/* Runs the earliest timer that is due; false when none is.  Call until false. */
bool checkpoint_coordinator_on_timer(struct checkpoint_coordinator *c, struct moment now);

/* ---- what the job and its users ask ---- */

/* CO-3: -EINVAL without an interval, -ESHUTDOWN. */
int checkpoint_coordinator_start(struct checkpoint_coordinator *c, struct moment now);
/* CO-7: aborts all that is queued or pending. */
void checkpoint_coordinator_stop(struct checkpoint_coordinator *c, struct moment now);
/* CO-8 */
void checkpoint_coordinator_shutdown(struct checkpoint_coordinator *c, struct moment now);
/* Shuts down, then closes the store by its retention rules (ST-5, ID-3). */
void checkpoint_coordinator_end(
		struct checkpoint_coordinator *c, enum job_end end, struct moment now);

enum request_kind {
	REQUEST_CHECKPOINT,  /* as configured */
	REQUEST_FULL,
	REQUEST_INCREMENTAL,
	REQUEST_SAVEPOINT,
	REQUEST_STOP,        /* stop with savepoint, suspend */
	REQUEST_STOP_DRAIN,  /* stop with savepoint, terminate */
};

struct trigger_request {
	enum request_kind kind;
	enum savepoint_format format;
	const char *directory;  /* of a savepoint; NULL: the configured one */
	struct id128 client_id; /* chosen by the client: asking twice is asking once; zeros: none */
};

/* TR-2 to TR-4, SV-3.  The outcome is a DECIDE_REQUEST_DONE with `*handle`; a repeated client id
 * gives the handle of the first request and starts nothing.  -EINVAL without a directory. */
int checkpoint_coordinator_request(struct checkpoint_coordinator *c,
		const struct trigger_request *request, struct moment now, uint64_t *handle);

/* ---- restore ---- */

/* A new process: what the durable list holds (ST-6), in any order; takes the objects.  -EINVAL if
 * two have one id or one has none; then it takes nothing. */
int checkpoint_coordinator_recover(struct checkpoint_coordinator *c,
		struct completed_checkpoint **entries, uint32_t count);
/* RE-1, RE-2, CM-1: the tasks start again from what this returns; NULL: from nothing.  While
 * checkpoint_coordinator_is_storing the glue waits: the answer decides which is the latest. */
const struct completed_checkpoint *checkpoint_coordinator_restore_latest(
		struct checkpoint_coordinator *c, struct moment now);
/* RE-3, 21.2: the job begins from `snapshot` (taken), read from `_metadata` by the caller; it is
 * added to the durable list.  -EINVAL for a bad id or one not above what is stored. */
int checkpoint_coordinator_restore_snapshot(struct checkpoint_coordinator *c,
		struct completed_checkpoint *snapshot, enum claim_mode mode, struct moment now);

/* ---- answers: `status` is 0 or -errno ---- */

void checkpoint_coordinator_on_id_drawn(struct checkpoint_coordinator *c, uint64_t token,
		int status, int64_t id, struct moment now);
/* `location` is the directory, copied. */
void checkpoint_coordinator_on_location_prepared(struct checkpoint_coordinator *c, uint64_t token,
		int status, const char *location, struct moment now);
/* By checkpoint, for they may be late; `state` is taken, NULL is "no state". */
void checkpoint_coordinator_on_coordinator_snapshot(struct checkpoint_coordinator *c,
		uint32_t index, int64_t id, int status, struct snapshot_state *state,
		struct moment now);
void checkpoint_coordinator_on_hook_snapshot(struct checkpoint_coordinator *c, uint32_t index,
		int64_t id, int status, struct snapshot_state *state, struct moment now);
void checkpoint_coordinator_on_metadata_written(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now);
enum { INDEX_MAYBE = 1 }; /* a status: nobody can say whether it was written */
void checkpoint_coordinator_on_index_added(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now);
void checkpoint_coordinator_on_index_removed(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now);
void checkpoint_coordinator_on_deleted(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now);

/* ---- what tasks say ---- */

struct task_failure {
	uint32_t subtask; /* UINT32_MAX: unknown */
	struct attempt_id attempt;
	int64_t checkpoint_id;
	enum checkpoint_failure_reason reason;
	const char *text; /* may be NULL */
};

/* EX-2: the call to trigger failed.  A dead connection is REASON_TRIGGER_CHECKPOINT_FAILURE. */
void checkpoint_coordinator_on_task_trigger_failed(struct checkpoint_coordinator *c,
		const struct task_failure *f, struct moment now);
/* Section 8.1.  The state in `a` is taken.  True if it came for one that lately expired (AK-6). */
bool checkpoint_coordinator_on_acknowledge(
		struct checkpoint_coordinator *c, struct acknowledgement *a, struct moment now);
void checkpoint_coordinator_on_decline(struct checkpoint_coordinator *c,
		const struct task_failure *f, struct moment now);
/* "Report metrics" (2.2): of a checkpoint the task did not finish. */
void checkpoint_coordinator_on_metrics(struct checkpoint_coordinator *c,
		const struct acknowledgement *a, struct moment now);
/* FO-12; false for an attempt that is not the current one. */
bool checkpoint_coordinator_on_task_end_of_data(struct checkpoint_coordinator *c, uint32_t subtask,
		struct attempt_id attempt, struct moment now);
/* CO-5: a source operator has, or no longer has, backlog. */
void checkpoint_coordinator_on_backlog(struct checkpoint_coordinator *c, uint32_t source,
		bool has_backlog, struct moment now);

/* ---- what is; for people, tests and metrics ---- */

struct checkpoint_stats *checkpoint_coordinator_stats(struct checkpoint_coordinator *c);
/* In order of creation; NULL behind the last. */
const struct pending_checkpoint *checkpoint_coordinator_pending(
		const struct checkpoint_coordinator *c, uint32_t index);
/* What is retained, oldest first; NULL behind the last. */
const struct completed_checkpoint *checkpoint_coordinator_retained(
		const struct checkpoint_coordinator *c, uint32_t index);
uint32_t checkpoint_coordinator_queued_count(const struct checkpoint_coordinator *c);
uint32_t checkpoint_coordinator_failure_count(const struct checkpoint_coordinator *c); /* FM-1 */
/* Deletions, removals or writes are still out: closing waits for them (CL-3). */
bool checkpoint_coordinator_is_busy(const struct checkpoint_coordinator *c);
/* A checkpoint is on its way into the durable list and cannot be aborted any more. */
bool checkpoint_coordinator_is_storing(const struct checkpoint_coordinator *c);
bool checkpoint_coordinator_is_triggering(const struct checkpoint_coordinator *c);
/* The wall clock's milliseconds when the request was admitted whose id is not there yet; or 0. */
int64_t checkpoint_coordinator_draws_id_since(const struct checkpoint_coordinator *c);
bool checkpoint_coordinator_is_scheduling(const struct checkpoint_coordinator *c);
/* When the next periodic request is due, monotonic; UINT64_MAX: never. */
uint64_t checkpoint_coordinator_next_periodic(const struct checkpoint_coordinator *c);
/* Monotonic end of the last completed checkpoint, savepoints included; UINT64_MAX: none yet. */
uint64_t checkpoint_coordinator_last_completion(const struct checkpoint_coordinator *c);
