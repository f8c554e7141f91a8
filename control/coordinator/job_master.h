#pragma once

/*
 * job_master: one job from its submission to its end: its graph, executions, checkpoints,
 * failovers (semantics 1, 4, 12.1, 19.1, 22).
 *
 * Place    control/coordinator; glue around the rules.
 * Thread   the loop's; what blocks runs on the I/O thread.
 * Memory   the job's own; everything of `services` is borrowed and outlives it.
 * Errors   0 or -errno with one message from create; afterwards the job fails and says why.
 * Life     create, keep, start or recover, start; { events, calls }*, suspend?, destroy with the
 *          loop stopped and the I/O thread ended.
 */

#include "control/config/config_error.h"
#include "control/coordinator/execution.h"
#include "control/coordinator/job_status.h"
#include "dataplane/base/ids.h"

#include "control/proto/durable.pb-c.h"
#include "control/proto/message.h"

#include <stdbool.h>
#include <stdint.h>

struct checkpoint_stats;
struct config;
struct ha_store;
struct io_thread;
struct job_master;
struct job_spec;
struct loop;
struct resource_manager;

enum { JOB_TEXT_BYTES = 1536 };

struct job_services {
	struct loop *loop;
	struct io_thread *io;
	struct ha_store *ha;
	struct resource_manager *resources;
	const struct config *config; /* of the coordinator */
};

/* What a user hands in.  All borrowed during create. */
struct job_submission {
	const char *file_name, *file_text, *plugin_dir;
	const char *const *overrides; /* "UID.PARAM=VALUE" */
	uint32_t override_count;
	const char *const *settings; /* "KEY=VALUE", before `config:` of the file */
	uint32_t setting_count;
	struct id128 id; /* of the submission, so that it can be repeated; zeros: none */
	const char *restore; /* "none", "latest" or a path */
	bool allow_rewind;
};

/* Zeros are the id of none. */
bool job_record_is_submission(const Weir__JobRecord *record, struct id128 id);

/* A new job.  -EINVAL: the job file, an override or a setting is wrong. */
int job_master_create(struct job_master **out, const struct job_services *services,
		const struct job_submission *submission, struct config_error *error);
/* One that another coordinator left unfinished. */
int job_master_recover(struct job_master **out, const struct job_services *services,
		const Weir__JobRecord *record, struct config_error *error);
void job_master_destroy(struct job_master *jm);

/* Makes a new job durable, before anybody is told that it is accepted; blocks. */
int job_master_keep(struct job_master *jm);
void job_master_start(struct job_master *jm);

/* ---- events of the resource manager ---- */

void job_master_on_joined(struct job_master *jm);
void job_master_on_lost(struct job_master *jm, uint32_t member, const char *reason);
/* False: it is not for this job. */
bool job_master_on_message(
		struct job_master *jm, uint32_t member, const Weir__Envelope *envelope);

/* ---- what users ask ---- */

void job_master_cancel(struct job_master *jm);
/* A final checkpoint, then cancel. */
void job_master_stop(struct job_master *jm);
/* This coordinator ends: the job stays as it is, for the next one. */
void job_master_suspend(struct job_master *jm);

/* Stops or starts the periodic checkpoints; what is under way when they stop is aborted (CO-7).  It
 * holds until the other is asked for, over restarts but not over coordinators. */
void job_master_set_periodic(struct job_master *jm, bool is_on);

enum checkpoint_type { CHECKPOINT_CONFIGURED, CHECKPOINT_FULL };

/* Triggers a checkpoint.  `id` zeros: a new request id is made and given back; one that was used
 * before starts nothing.  -EAGAIN: the job is not running. */
int job_master_checkpoint(struct job_master *jm, enum checkpoint_type type, struct id128 *id);

/* What a savepoint is taken for: the job goes on, is cancelled (SV-2), or stops with it (SV-3). */
enum savepoint_end { SAVEPOINT_GO_ON, SAVEPOINT_CANCEL, SAVEPOINT_SUSPEND, SAVEPOINT_DRAIN };

struct savepoint_order {
	enum savepoint_end end;
	bool is_native;        /* the format asked for; both are written the same way */
	const char *directory; /* NULL: execution.checkpointing.savepoint-dir */
};

/* Takes a savepoint; `id` as above.  -EINVAL: no directory; -EAGAIN: the job is over, or at its
 * end, or not running; -EBUSY: it is being stopped already.  `text` says so in one line. */
int job_master_savepoint(struct job_master *jm, const struct savepoint_order *order,
		struct id128 *id, char text[JOB_TEXT_BYTES]);

struct checkpoint_answer {
	bool is_done, is_success, is_savepoint;
	int64_t checkpoint_id;
	const char *location; /* of a savepoint that succeeded */
	const char *text;     /* of a failure; both valid until the next call */
};

/* False: no such request.  Of a stop: done when the job has ended. */
bool job_master_checkpoint_answer(
		struct job_master *jm, struct id128 id, struct checkpoint_answer *answer);

/* It ended because somebody asked for that, and who asked has not come for the answer yet. */
bool job_master_has_news(const struct job_master *jm);

/* ---- what is; valid until the loop goes on ---- */

struct job_id job_master_id(const struct job_master *jm);
/* It was accepted under that id, by this coordinator or by one before it. */
bool job_master_is_submission(const struct job_master *jm, struct id128 id);
const char *job_master_name(const struct job_master *jm);
enum job_status job_master_status(const struct job_master *jm);
/* When it entered that status, wall clock; 0: never. */
int64_t job_master_entered_ms(const struct job_master *jm, enum job_status status);
const struct job_spec *job_master_spec(const struct job_master *jm);
const struct config *job_master_config(const struct job_master *jm);
struct checkpoint_stats *job_master_checkpoints(struct job_master *jm);

/* False: its files are gone, or will be soon. */
bool job_master_is_retained(const struct job_master *jm, int64_t checkpoint_id);

/* Directories of the snapshots that it may still go back to; none when it is over. */
void job_master_visit_snapshots(const struct job_master *jm,
		void (*visit)(void *context, const char *location), void *context);

struct job_counts {
	uint64_t records_in, records_out;
	uint64_t checkpoints_completed, checkpoints_failed; /* over all coordinators */
	uint32_t restarts;
	int64_t checkpoint_p50_ms, checkpoint_p99_ms, checkpoint_last_ms; /* -1: none */
	uint64_t stale_messages; /* of attempts that are no more, dropped, in this coordinator */
};
struct job_counts job_master_counts(const struct job_master *jm);

/* Whether its checkpoints do what they should. */
struct job_watch {
	int64_t since_completed_ms; /* or since it began; -1: none is expected */
	const char *overdue;        /* NULL, or why that is too long */
	/* The newest row of failed checkpoints with none completed between them: its first one,
	 * which names subtask, phase and elapsed time; NULL: none ever failed. */
	const char *failure;
	int64_t failed_id;          /* of that one; 0: it never began */
	uint32_t failed_count;      /* so far; 0: one has completed since */
};
struct job_watch job_master_watch(const struct job_master *jm);

/* Operator counters of the job, summed over its subtasks, in the order of the job file. */
void job_master_visit_counters(const struct job_master *jm,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context);

/* The same of one subtask. */
void job_master_visit_subtask_counters(const struct job_master *jm, uint32_t place,
		uint32_t subtask_index,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context);

/* Places: vertices in topological order.  The vertex of the spec, and its current attempts. */
uint32_t job_master_vertex(const struct job_master *jm, uint32_t place);
const struct execution *job_master_execution(
		const struct job_master *jm, uint32_t place, uint32_t subtask_index);

/* "uid (1/2)", of a subtask by its number in checkpoint statistics; `text`. */
const char *job_master_print_subtask(
		const struct job_master *jm, uint32_t subtask, char text[SUBTASK_TEXT_BYTES]);

struct job_failure {
	int64_t wall_ms;
	char task[128];         /* "uid (1/2)" or "" */
	char task_manager[64];  /* "" when none is to blame */
	char text[EXECUTION_TEXT_BYTES];
};
/* Newest first; NULL behind the last. */
const struct job_failure *job_master_failure(const struct job_master *jm, uint32_t index);
/* Something of it is under way on the I/O thread; it must not be destroyed. */
bool job_master_is_busy(const struct job_master *jm);
/* It ended because what it should begin from was refused. */
bool job_master_is_restore_refused(const struct job_master *jm);
