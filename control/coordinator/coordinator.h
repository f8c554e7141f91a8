#pragma once

/*
 * coordinator: the JobManager of one process: its jobs, TaskManagers and durable store.
 *
 * Place    top of control/coordinator; coordinator_main.c makes one, control/rest asks it.
 * Thread   the loop's.
 * Memory   jobs, running ones and the last COORDINATOR_ENDED_MAX that have ended.
 * Errors   0 or -errno with one line.
 * Life     create, recover?, the loop runs, suspend, destroy with the loop stopped.
 */

#include "control/config/config_error.h"
#include "control/coordinator/job_master.h"

enum { COORDINATOR_TEXT_BYTES = 1536, COORDINATOR_JOBS_MAX = 64, COORDINATOR_ENDED_MAX = 16 };

struct coordinator;

/* Listens for TaskManagers.  -EBUSY: another coordinator has the directory; -EADDRINUSE. */
int coordinator_create(struct coordinator **out, struct loop *l, const struct config *config,
		char text[COORDINATOR_TEXT_BYTES]);
/* Goes on with unfinished jobs of the store: all, or the one whose id is given (32 hex digits).
 * One that cannot be read is logged and left alone. */
void coordinator_recover(struct coordinator *c, const char *which);
/* Leaves the jobs to the next coordinator. */
void coordinator_suspend(struct coordinator *c);
/* Somebody may still come for what became of a stop. */
bool coordinator_has_news(const struct coordinator *c);
void coordinator_destroy(struct coordinator *c);

/* -EINVAL: the job file or a setting is wrong; -EEXIST: a job of that id is running; -EAGAIN: too
 * many jobs; -EIO: it cannot be made durable.  On 0 it is durable, now or since it was submitted
 * under the same id before. */
int coordinator_submit(struct coordinator *c, const struct job_submission *submission,
		struct job_id *id, struct config_error *error);

/* NULL behind the last; the newest first. */
struct job_master *coordinator_job_at(const struct coordinator *c, uint32_t index);
/* The newest of that id, or NULL. */
struct job_master *coordinator_find_job(const struct coordinator *c, struct job_id id);

/* What is left of a job that had ended before this coordinator began. */
struct ended_job {
	struct job_id id;
	Weir__JobRecord *record;
	bool is_told; /* who stopped it has heard of its end */
};

/* Those that were not submitted again since, the last COORDINATOR_ENDED_MAX, in no order; NULL
 * behind the last. */
const struct ended_job *coordinator_ended_at(const struct coordinator *c, uint32_t index);

/* What became of the stop with savepoint that ended it; false: it was no such request. */
bool coordinator_ended_answer(struct coordinator *c, const struct ended_job *e, struct id128 id,
		struct checkpoint_answer *answer);

/* Deletes a savepoint by its absolute path, unless it is in use; as savepoint_disposals_begin. */
int coordinator_dispose(struct coordinator *c, const char *path, struct id128 *id);
/* False: no such disposal. */
bool coordinator_disposal_answer(
		const struct coordinator *c, struct id128 id, struct checkpoint_answer *answer);

uint16_t coordinator_port(const struct coordinator *c);
const struct config *coordinator_config(const struct coordinator *c);
struct resource_manager *coordinator_resources(const struct coordinator *c);
