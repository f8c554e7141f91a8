#pragma once

/*
 * coordinator_world: what a coordinator script runs in: the production coordinator, a simulated
 * store that fails or hangs on demand, simulated tasks, and a record of all that came of it.
 *
 * Place    tests/scenario, behind scenario_coordinator.
 * Thread   one; time is `now_ms`, for both clocks.
 */

#include "control/coordinator/checkpoint_coordinator.h"
#include "tests/scenario/scenario.h"

enum { NAMES_COUNT_MAX = 64 };

struct named {
	char *name;
	bool is_sync;
};

struct snapshot {
	char *path;
	int64_t id;
	bool is_savepoint;
	struct file_list files;
	struct shared_list shared;
};

/* A list of what happened, one text for each; `taken` were asserted. */
struct journal {
	char **items;
	uint32_t count, taken;
};

/* Who was told what, one entry for each checkpoint. */
struct told {
	int64_t id, other_id;
	bool *subtasks; /* of the job */
	bool has_coordinators;
};

struct told_list {
	struct told *items;
	uint32_t count, taken;
};

/* Where a durable step happens. */
enum where { WHERE_ID, WHERE_LOCATION, WHERE_METADATA, WHERE_INDEX, WHERES_COUNT };
enum behaviour { BEHAVIOUR_OK, BEHAVIOUR_FAIL, BEHAVIOUR_SLOW };

struct hung {
	enum where where;
	uint64_t token;
	int64_t id;
	char *path;
	const struct pending_checkpoint *pending;
	const struct completed_checkpoint *completed;
};

struct hung_deletion {
	uint64_t token;
	const struct deletion *what;
};

/* What is known of one checkpoint that was pending once. */
struct seen {
	int64_t id;
	struct trigger_options options;
	bool has_options;
	bool *is_waited, *has_acknowledged; /* by subtask */
	struct attempt_id *attempts;
	char *finished; /* what its metadata calls finished, blank-separated; NULL: not written */
};

struct world {
	struct scenario *s;
	struct checkpoint_coordinator_config config;
	bool has_first_delay;
	struct execution_vertex vertices[NAMES_COUNT_MAX];
	uint32_t vertex_count;
	struct execution_edge edges[NAMES_COUNT_MAX];
	uint32_t edge_count;
	struct named coordinators[NAMES_COUNT_MAX];
	uint32_t coordinator_count;
	struct named hooks[NAMES_COUNT_MAX];
	uint32_t hook_count;
	struct snapshot snapshots[NAMES_COUNT_MAX];
	uint32_t snapshot_count;

	struct execution_graph *graph;
	struct checkpoint_coordinator *coordinator;
	uint32_t subtask_count;
	uint32_t *attempt_numbers; /* by subtask */
	bool *is_lost;
	int64_t now_ms;
	uint32_t event_count;

	/* durable */
	int64_t id_drawn;
	struct completed_checkpoint **index;
	uint32_t index_count;

	enum behaviour behaviours[WHERES_COUNT];
	int statuses[WHERES_COUNT];
	struct hung *hung;
	uint32_t hung_count;
	enum behaviour deleting;
	struct hung_deletion *hung_deletions;
	uint32_t hung_deletion_count;

	struct journal completed, aborted, rejected, discarded, deleted, job_failed;
	struct told_list triggered, notified, notified_abort;
	struct file_list event_deleted; /* of the present event, sorted at its end */
	int64_t *event_discarded;
	uint32_t event_discarded_count;
	struct seen *seen;
	uint32_t seen_count;
	bool is_job_failed;
	int64_t restored_id;
};

void journal_add(struct journal *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct moment world_now(const struct world *w);
struct attempt_id world_attempt(uint32_t subtask, uint32_t number);
struct seen *world_seen(struct world *w, int64_t id);

/* A coordinator and all subtasks RUNNING. */
void world_start(struct world *w);
void world_clear(struct world *w);

/* Takes and carries out decisions until there are none. */
void world_drain(struct world *w);
/* The end of an event: what it deleted is written down, in order. */
void world_settle(struct world *w);

/* ---- coordinator_store.c ---- */

/* A durable step: answered at once, or `h` hangs; takes `h->path`. */
void world_step(struct world *w, struct hung *h);
void world_index_add(struct world *w, const struct completed_checkpoint *from);
void world_index_remove(struct world *w, int64_t id);
void world_delete(struct world *w, const struct checkpoint_decision *d);
/* What hangs at `where` (WHERES_COUNT: anywhere) finishes with `status`. */
void world_settle_store(struct world *w, enum where where, int status);
void world_settle_deletions(struct world *w, uint32_t count);

/* ---- time, failover, words ---- */

void world_advance(struct world *w, int64_t ms);
/* All subtasks begin a new attempt that runs. */
void world_new_attempts(struct world *w);
void world_restore_latest(struct world *w);
void world_failover(struct world *w);

/* "src.0 src.1" of those in the set; operator coordinators behind. */
void world_print_told(const struct world *w, const struct told *t, struct scenario_text *text);
void world_print_subtask(const struct world *w, uint32_t subtask, struct scenario_text *text);
