#pragma once

/*
 * job_locations: tells all TaskManagers of a job where a savepoint goes, before any of them sees a
 * barrier of it: barriers come from other TaskManagers too, and do not carry a path (SL-4).
 *
 * Place    control/coordinator; between the directory's making and the rules' next step.
 * Thread   the loop's.
 * Memory   in the struct; of one savepoint: the rules trigger one at a time.
 * Errors   none: a TaskManager that is lost is waited for no longer, and fails the job elsewhere.
 */

#include "control/coordinator/checkpoint_storage.h"

#include "control/proto/weir.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

struct job_master;

struct job_locations {
	uint64_t token;   /* for the rules */
	int64_t id;       /* 0: none is under way */
	uint32_t waiting; /* bits: places that have not answered, and are there */
	char location[STORAGE_PATH_BYTES];
};

/* When all have answered, the rules hear that its place is prepared. */
void job_tell_location(
		struct job_master *jm, uint64_t token, int64_t id, const char *location);

/* False: nobody here waits for it. */
bool job_on_savepoint_located(
		struct job_master *jm, uint32_t member, const Weir__SavepointLocated *m);

/* Places may have been given up. */
void job_check_locations(struct job_master *jm);
