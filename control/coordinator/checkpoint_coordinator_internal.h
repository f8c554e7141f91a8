#pragma once

/*
 * checkpoint_coordinator_internal: what the files of the checkpoint coordinator share.
 *
 *   checkpoint_coordinator.c   settings, life, requests, timers, scheduler
 *   checkpoint_trigger.c       from an admitted request to the trigger (4.2)
 *   checkpoint_collect.c       what tasks say, completion, abort (8)
 *   checkpoint_retention.c     the store's changes, deletion, restore, the end (11, 21.2)
 *   checkpoint_decision.c      the queue of decisions
 */

#include "control/coordinator/checkpoint_coordinator.h"
#include "control/coordinator/checkpoint_failure_manager.h"
#include "control/coordinator/checkpoint_request_decider.h"
#include "control/coordinator/checkpoints_cleaner.h"
#include "control/coordinator/completed_checkpoint_store.h"
#include "control/coordinator/shared_state_registry.h"
#include "dataplane/base/prng.h"

enum { EXPIRED_IDS_COUNT = 16, CLIENT_IDS_COUNT = 1000 }; /* section 3 */

#define NEVER_NS UINT64_MAX

struct timer {
	uint64_t due_ns; /* NEVER_NS: not set */
	uint64_t order;  /* those of one time run in the order they were set */
};

enum completing { COMPLETING_NOT, COMPLETING_WRITING, COMPLETING_WRITTEN, COMPLETING_INDEXING };

/* What an outcome is reported with. */
struct request_name {
	uint64_t handle;
	bool is_periodic;
};

/* One checkpoint in flight. */
struct flight {
	struct pending_checkpoint *pending;
	struct request_name request;
	struct timer canceller;
	enum completing completing;
	uint64_t token;                         /* of the write or the change that is out */
	struct completed_checkpoint *completed; /* while indexing, then the store's */
};

enum trigger_step { STEP_IDLE, STEP_ID, STEP_LOCATION, STEP_COORDINATORS, STEP_HOOKS };

/* The one request in the pipeline; not idle is Flink's isTriggering. */
struct triggering {
	enum trigger_step step;
	struct queued_request *request;
	struct checkpoint_plan *plan; /* until there is a pending checkpoint */
	struct pending_checkpoint *pending;
	int64_t timestamp_ms;
	uint64_t token;
	bool *is_coordinator_out, *is_hook_out;
	uint32_t out_count;
};

/* A write of `_metadata` whose checkpoint was aborted meanwhile. */
struct orphan_write {
	uint64_t token;
	struct pending_checkpoint *pending;
};

/* A checkpoint on its way out of the durable list. */
struct removal {
	struct completed_checkpoint *completed;
	uint64_t token; /* 0: it failed, tried again with the next change */
	bool is_end;    /* the job has ended; otherwise it was subsumed */
};

struct client_request {
	struct id128 id;
	uint64_t handle;
};

struct checkpoint_coordinator {
	struct checkpoint_coordinator_config config;
	struct execution_graph *graph;
	struct prng prng;
	uint32_t coordinator_count, hook_count;
	uint32_t *coordinator_vertices;

	bool is_shutdown, is_closed, is_suspended;
	enum job_end end; /* once closed */
	bool is_scheduling;
	bool is_full_forced; /* CM-1 */
	bool should_ask;     /* the decider, before the next decision is taken (RD-8) */
	struct moment latest; /* when anything happened last */
	struct timer periodic;
	uint64_t planned_ns;         /* of the next periodic trigger */
	uint64_t last_completion_ns; /* NEVER_NS: none yet */
	uint64_t token, timer_order, handle; /* the last ones given out */
	bool *has_backlog;           /* by vertex */
	uint32_t backlog_count;

	struct checkpoint_request_decider *decider;
	struct triggering triggering;
	struct flight *flights; /* the pending ones, in order of creation */
	uint32_t flight_count;
	struct orphan_write *orphans;
	uint32_t orphan_count;
	int64_t expired_ids[EXPIRED_IDS_COUNT]; /* a ring */
	uint64_t expired_count;
	struct client_request clients[CLIENT_IDS_COUNT]; /* a ring */
	uint64_t client_count;

	struct checkpoint_failure_manager failures;
	struct checkpoint_stats *stats;
	struct completed_checkpoint_store *store;
	struct shared_state_registry *registry;
	struct checkpoints_cleaner *cleaner;
	struct removal *removals;
	uint32_t removal_count;
	uint64_t restore_token;    /* of the change that adds what the job began from */
	int64_t kept_id_min;       /* at the end: of those that stay */

	struct checkpoint_decision *decisions; /* those not taken yet: [decision_head, count) */
	uint32_t decision_head, decision_count, decision_room;
	struct checkpoint_decision taken; /* what the last one taken owns */
};

/* Why something failed, and whose doing it was. */
struct blame {
	enum checkpoint_failure_reason reason;
	uint32_t subtask; /* UINT32_MAX: nobody's */
	bool has_attempt; /* a task's own doing: FM-6, not FM-5 */
	bool is_ending;   /* the scheduler or the coordinator stops, or the job restarts */
	struct attempt_id attempt;
	const char *text; /* may be NULL */
};

/* ---- checkpoint_decision.c ---- */

/* A new decision at the end of the queue, to be filled in before the next one is made. */
struct checkpoint_decision *coordinator_decide(struct checkpoint_coordinator *c,
		enum checkpoint_decision_kind kind, int64_t checkpoint_id);
/* The outcome of a request; `id` 0: it never had a checkpoint; `text` NULL: that of the reason. */
void coordinator_request_failed(struct checkpoint_coordinator *c,
		const struct request_name *request, int64_t id,
		enum checkpoint_failure_reason reason, const char *text);
void coordinator_drop_decisions(struct checkpoint_coordinator *c);
uint64_t coordinator_token(struct checkpoint_coordinator *c);

/* ---- checkpoint_coordinator.c ---- */

void coordinator_set_timer(struct checkpoint_coordinator *c, struct timer *t, uint64_t due_ns);
/* RD-8: the decider is asked when the present event has been dealt with. */
void coordinator_ask(struct checkpoint_coordinator *c);
/* Ends every event: asks the decider, as long as there is reason to. */
void coordinator_settle(struct checkpoint_coordinator *c, struct moment now);
void coordinator_abort_all(struct checkpoint_coordinator *c,
		enum checkpoint_failure_reason reason, struct moment now);

/* ---- checkpoint_trigger.c ---- */

void coordinator_trigger(
		struct checkpoint_coordinator *c, struct queued_request *r, struct moment now);
/* TR-7 for what never had a checkpoint. */
void coordinator_fail_unborn(struct checkpoint_coordinator *c, const struct queued_request *r,
		const struct blame *blame, struct moment now);

/* ---- checkpoint_collect.c ---- */

/* NULL when no such checkpoint is pending. */
struct flight *coordinator_flight(struct checkpoint_coordinator *c, int64_t id);
/* AB-2.  `f` is gone afterwards. */
void coordinator_abort(struct checkpoint_coordinator *c, struct flight *f,
		const struct blame *blame, struct moment now);
/* Section 8.2, if everybody has acknowledged.  `f` may be gone afterwards. */
void coordinator_try_complete(
		struct checkpoint_coordinator *c, struct flight *f, struct moment now);
/* SV-3: the job goes on as before, unless the scheduler was to stop, or the job is to restart. */
void coordinator_resume_after_stop(struct checkpoint_coordinator *c,
		const struct checkpoint_properties *properties, const struct blame *blame,
		struct moment now);
/* The failure manager's word (9.2). */
void coordinator_note_failure(struct checkpoint_coordinator *c, int64_t id,
		const struct checkpoint_properties *properties, const struct blame *blame,
		const char *message);
/* The files of a message that came too late (AK-5, AK-6); takes the state. */
void coordinator_discard_late(
		struct checkpoint_coordinator *c, int64_t id, struct snapshot_state *state);
/* The durable list has, or has not, taken the checkpoint of `f`. */
void coordinator_indexed(
		struct checkpoint_coordinator *c, struct flight *f, int status, struct moment now);

/* ---- checkpoint_retention.c ---- */

void coordinator_delete(struct checkpoint_coordinator *c, const struct deletion *what);
/* ST-2, ST-3: adds it, subsumes others.  Returns the id that notifications carry, or 0. */
int64_t coordinator_retain(
		struct checkpoint_coordinator *c, struct completed_checkpoint *completed);
/* A checkpoint that is or was stored, wherever it is now; NULL: not known. */
const struct completed_checkpoint *coordinator_find_stored(
		const struct checkpoint_coordinator *c, int64_t id);
