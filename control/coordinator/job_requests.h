#pragma once

/* job_requests: shared by the files of job_master: checkpoints and savepoints that somebody asked
 * for, and the last checkpoint of a job at its end. */

#include "control/coordinator/checkpoint_decision.h"
#include "control/coordinator/checkpoint_storage.h"
#include "control/coordinator/job_master.h"

enum { JOB_REQUESTS_MAX = 64 };

/* One that somebody asked for. */
struct job_request {
	struct id128 id;
	uint64_t handle; /* of the rules; 0: they have not been asked yet */
	bool is_used, is_done, is_success, is_savepoint;
	bool is_told;     /* somebody has heard that it is done */
	bool is_stop;     /* done when the job has ended */
	bool must_cancel; /* SV-2 */
	int64_t checkpoint_id;
	char location[STORAGE_PATH_BYTES];
	char text[JOB_TEXT_BYTES];
};

/* NULL: no such request. */
struct job_request *job_find_request(struct job_master *jm, struct id128 id);
/* By the handle that the rules gave it; NULL: none is under way with it. */
struct job_request *job_request_of(struct job_master *jm, uint64_t handle);
/* Makes an id where there is none. */
void job_make_request_id(struct job_master *jm, struct id128 *id);
/* A new one; NULL: too many are under way. */
struct job_request *job_add_request(struct job_master *jm, struct id128 id);
void job_fail_request(struct job_request *r, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
/* The rules' outcome of one. */
void job_on_request_done(struct job_master *jm, const struct checkpoint_decision *d);
/* A checkpoint failed: when it was the one that tasks at their end wait for, it is tried again,
 * for without an interval nobody else would. */
void job_retry_final(struct job_master *jm);
/* A task on its way out, which would have declined it, is gone. */
void job_hasten_final(struct job_master *jm);
void job_on_final_timer(void *context);
