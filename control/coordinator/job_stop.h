#pragma once

/* job_stop: shared by the files of job_master: the end that a user asks for. */

#include "control/coordinator/checkpoint_decision.h"
#include "control/coordinator/checkpoint_storage.h"
#include "control/coordinator/job_master.h"

struct job_request;

enum stop_step {
	STOP_NONE,
	STOP_WITH_CHECKPOINT, /* a last checkpoint, then cancel */
	STOP_WAITING,         /* until all tasks can take a savepoint */
	STOP_SAVING,          /* the synchronous savepoint is under way */
	STOP_LEAVING,         /* it is complete: tasks commit and end, whatever happens */
};

/* How the job is being stopped. */
struct job_stop {
	enum stop_step step;
	struct id128 request;
	uint64_t since_ns;
	enum savepoint_end end;
	bool is_native;
	char directory[STORAGE_PATH_BYTES];
};

int job_stop_with_savepoint(struct job_master *jm, const struct savepoint_order *order,
		struct id128 id, char text[JOB_TEXT_BYTES]);
void job_on_stop_timer(void *context);
/* The outcome of its savepoint. */
void job_stop_on_saved(struct job_master *jm, struct job_request *r,
		const struct checkpoint_decision *d);
/* The record says where the savepoint will be and who asked for it; NULL: there is none. */
void job_stop_announce(Weir__JobRecord *record, const char *location, struct id128 request);
/* What a coordinator before this one announced: the job leaves, or nothing came of it. */
void job_stop_recover(struct job_master *jm);
/* The job has come to its end. */
void job_stop_on_end(struct job_master *jm);
