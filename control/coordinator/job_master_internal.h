#pragma once

/* job_master_internal: what the files of job_master share. */

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_coordinator.h"
#include "control/coordinator/checkpoint_storage.h"
#include "control/coordinator/directories_ahead.h"
#include "control/coordinator/job_locations.h"
#include "control/coordinator/job_master.h"
#include "control/coordinator/job_places.h"
#include "control/coordinator/job_regions.h"
#include "control/coordinator/job_requests.h"
#include "control/coordinator/job_stop.h"
#include "control/coordinator/job_watchdog.h"
#include "control/coordinator/restart_strategy.h"
#include "control/coordinator/split_enumerator.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/prng.h"

enum {
	JOB_FAILURES_MAX = 16,
	JOB_RECENT_MAX = 256, /* durations of completed checkpoints that outlive a coordinator */
};

/* The coordinator of a source that hands files out. */
struct job_files {
	uint32_t place, operator_index;
	uint32_t index; /* among the operator coordinators of the rules */
	const char *uid, *path;
	struct split_enumerator *enumerator;
};

/* What is known of a task on its way out (TK-13). */
struct job_leaving {
	int64_t final_id;  /* the first one acknowledged behind its last words; 0: none */
	uint64_t since_ns; /* when it was told that it may go; 0: not yet */
};

struct job_master {
	struct job_services services;
	struct config *config;
	struct job_spec *spec;
	char id_text[ID128_TEXT_BYTES];
	char job_path[STORAGE_PATH_BYTES]; /* of its checkpoints */
	Weir__JobRecord *record;
	bool is_recovery;
	uint32_t io_count; /* works under way on the I/O thread */
	enum job_status status;
	int64_t entered_ms[JOB_STATUS_COUNT];

	/* Subtasks: numbers of the execution graph, whose vertices stand in topological order. */
	struct execution_graph *graph;
	uint32_t subtask_count;
	struct execution *executions;
	uint64_t *counters;         /* of all subtasks */
	uint32_t *counters_at;      /* by subtask */
	uint64_t run;               /* makes attempt ids unique */
	uint32_t attempt_number;
	struct prng prng;

	/* Deployment. */
	struct job_places places;   /* where the tasks are */
	uint64_t generation;        /* an answer to an older question is dropped */
	struct job_regions regions;
	bool is_preparing;          /* what it restores is being read */
	bool was_deployed;          /* in this life of the coordinator */
	bool was_finished[VERTICES_COUNT_MAX]; /* by place: all of it, when restored (RE-10) */
	struct job_leaving *leaving;           /* by subtask */
	int64_t restored_id;

	/* Failover. */
	struct restart_strategy restarts;
	struct loop_timer *restart_timer, *cancel_timer;
	bool is_delayed;            /* the restart waits for its time */
	bool is_restore_refused;
	bool is_ending;             /* its end is being made durable */
	uint64_t stale_count;       /* messages of attempts that are no more */
	uint32_t failure_count;
	struct job_failure failures[JOB_FAILURES_MAX];

	/* Checkpoints. */
	struct checkpoint_coordinator *checkpoints;
	struct loop_timer *checkpoint_timer;
	bool is_pumping;
	struct job_locations locations;
	bool is_periodic_off;       /* somebody asked for that */
	struct loop_timer *final_timer; /* until the last checkpoint is tried again */
	bool is_released;           /* all tasks were told that they may end (TK-13) */
	int64_t next_id, reserved_id; /* to be given out next; the first that may not yet be */
	int reserve_status;         /* how the last one went: said at the first that fails */
	bool is_reserving;          /* more of them, ahead of need */
	struct directories_ahead ahead;
	uint32_t hook; /* of the job file */
	uint8_t *hook_state;
	size_t hook_bytes;
	Weir__JobHookState *hook_job; /* the same, readable */
	uint32_t files_count;
	struct job_files *files;
	struct job_request requests[JOB_REQUESTS_MAX];
	uint32_t request_next;
	uint64_t completed_before, failed_before; /* under earlier coordinators */
	uint64_t failed_wanted;                   /* of those that failed: by a stop, see there */
	uint32_t recent_count;
	int32_t recent_ms[JOB_RECENT_MAX]; /* a ring, by completed count */
	struct job_watchdog watch;
	bool must_quiet;            /* no checkpoints any more: the tasks were released */
	struct job_stop stop;
	struct loop_timer *stop_timer;
};

struct moment job_now(void);

/* ---- job_master.c ---- */

/* Enters the status, with all that hangs on it; a status that may not follow is a bug. */
void job_enter(struct job_master *jm, enum job_status next);
/* Starts periodic checkpoints when all tasks run. */
void job_check_running(struct job_master *jm);
/* The vertex of the spec at a place of the topological order. */
const struct job_vertex *job_vertex_at(const struct job_master *jm, uint32_t place);
/* The current attempt of that id, or NULL. */
struct execution *job_find_execution(struct job_master *jm, struct attempt_id attempt);
/* The id is one that this job made in this coordinator's life. */
bool job_is_own(const struct job_master *jm, struct attempt_id attempt);
/* An attempt says something: the same, but NULL is counted when it was one of this job (the message
 * is to be dropped). */
struct execution *job_hear(struct job_master *jm, struct attempt_id attempt);
void job_set_execution(struct job_master *jm, struct execution *e, enum execution_state next);
/* Posts to the I/O thread; until `done` has run the job is busy. */
void job_post(struct job_master *jm, void (*work)(void *), void (*done)(void *), void *context);
/* The same where nobody waits for `done`: while the job goes on, it does not wake the loop. */
void job_post_quiet(
		struct job_master *jm, void (*work)(void *), void (*done)(void *), void *context);
bool job_is_going_on(const struct job_master *jm);
/* NULL: out of memory. */
Weir__JobRecord *job_copy_record(const Weir__JobRecord *from);
/* Writes the job's record in the background; `done` may be NULL.  A failure is logged. */
void job_write_record(struct job_master *jm, void (*done)(struct job_master *jm, int status));

/* ---- job_start.c ---- */

/* Finds what the job begins from, in the background, then job_deploy. */
void job_begin(struct job_master *jm);
/* What the master hook keeps with each checkpoint. */
int job_make_hook_state(struct job_master *jm, struct config_error *error);

/* ---- job_rescale.c ---- */

/* Those that tasks of the region take their shares of; to be freed. */
struct metadata;
ProtobufCBinaryData *job_rescaled_states(const struct job_master *jm, const struct metadata *m,
		uint32_t region, size_t *count);

/* ---- job_rewind.c ---- */

/* Blocks.  Nothing that sinks committed may be above the checkpoint `id` at `location`, which the
 * job goes on from: it is taken back when rewinding is allowed, else -EEXIST with its name.
 * `is_older`: a newer checkpoint was passed over. */
int job_rewind(struct job_master *jm, const char *location, int64_t id, bool is_older,
		char text[JOB_TEXT_BYTES]);

/* ---- job_deployment.c ---- */

/* Deploys what must start when it is time and there is a TaskManager; else it waits. */
void job_deploy(struct job_master *jm);
/* It is time. */
bool job_may_deploy(const struct job_master *jm);
/* False: nobody here waits for it. */
bool job_on_deploy_answer(
		struct job_master *jm, uint32_t member, const Weir__DeployAnswer *answer);
void job_on_operator_event(struct job_master *jm, struct execution *e,
		const Weir__OperatorEvent *event);
/* Sends what the enumerators have for their subtasks. */
void job_send_files(struct job_master *jm);

/* ---- job_failover.c ---- */

/* A failure: the task's region restarts, with `e` NULL all do; or the job ends. */
void job_fail(struct job_master *jm, const struct execution *e, const char *text);
/* It cannot go on, and trying again would not help. */
void job_fail_for_good(struct job_master *jm, const struct execution *e, const char *text);
void job_cancel_tasks(struct job_master *jm);
/* All tasks have ended: what that means for the job. */
void job_check_ended(struct job_master *jm);
void job_on_status(struct job_master *jm, struct execution *e, const Weir__TaskStatus *m);
void job_take_numbers(struct job_master *jm, const Weir__TaskNumbers *n);
void job_on_restart_timer(void *context);
void job_on_cancel_timer(void *context);

/* ---- job_checkpoints.c ---- */

int job_make_checkpoints(struct job_master *jm, struct config_error *error);
/* CO-7.  `is_wanted`: nobody misses what is aborted by it, for the job has ended as it should. */
void job_stop_checkpoints(struct job_master *jm, bool is_wanted);
/* Carries out what the rules decided, and sets their timer. */
void job_pump(struct job_master *jm);
void job_on_checkpoint_timer(void *context);
void job_on_acknowledge(struct job_master *jm, const Weir__Acknowledge *a);
void job_on_decline(struct job_master *jm, const Weir__DeclineCheckpoint *m);
