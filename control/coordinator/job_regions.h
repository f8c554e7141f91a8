#pragma once

/*
 * job_regions: the pipelined regions of a job: each is deployed by a message of its own, and
 * restarts alone when only its tasks failed (semantics FO-1).
 *
 * Place    control/coordinator; glue around pipelined_regions.
 * Thread   the loop's.
 * Memory   the job's.
 * Life     make with the job; { mark, deploy, answer }*; destroy.
 */

#include "control/coordinator/execution.h"

#include <stdbool.h>
#include <stdint.h>

struct job_master;

/* A TaskManager has room for so many deployments; a job with more regions restarts as a whole. */
enum { JOB_REGIONS_MAX = 32 };

struct job_region {
	uint64_t deployment; /* number of the newest one, for the TaskManager's answer */
	uint32_t building;   /* bits of places whose TaskManager has not answered it yet */
	bool must_restart;
};

struct job_regions {
	uint32_t count;
	uint32_t *of; /* by subtask */
	struct job_region at[JOB_REGIONS_MAX];
};

/* Once graph and sources are known; all of them are to be started. */
int job_make_regions(struct job_master *jm);
void job_destroy_regions(struct job_master *jm);

/* The task's region must start again; NULL: all must (FO-4).  True: one of them was well before. */
bool job_mark_region(struct job_master *jm, const struct execution *e);
bool job_must_restart(const struct job_master *jm, uint32_t subtask);
/* Nothing of the job runs on meanwhile. */
bool job_restarts_whole(const struct job_master *jm);
/* All that must restart has ended. */
bool job_is_ready_to_restart(const struct job_master *jm);
/* A TaskManager still builds some of it. */
bool job_is_building(const struct job_master *jm);
/* The region whose newest deployment has that number and waits for its answer; UINT32_MAX: none. */
uint32_t job_region_deployed_as(const struct job_master *jm, uint64_t deployment);
