#pragma once

/*
 * job_places: the TaskManagers that a job's tasks are on: one, or as many as weir.job.taskmanagers
 * says, joined by links.
 *
 * Place    control/coordinator; glue between job_master and resource_manager.
 * Thread   the loop's.
 * Memory   in the struct.
 * Errors   false: not enough TaskManagers are here.
 * Life     init, { take, subtask by subtask, lose, give back }*.
 *
 * Subtask i of every vertex of equal parallelism has the same place, so a forward edge stays in its
 * process.
 */

#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

struct job_master;

enum { JOB_PLACES_MAX = 16, PLACE_NONE = UINT32_MAX };

struct job_places {
	uint32_t count;                   /* wanted */
	uint32_t members[JOB_PLACES_MAX]; /* MEMBER_NONE: to be found */
};

void job_init_places(struct job_master *jm);

/* Finds TaskManagers for the places that have none. */
bool job_take_places(struct job_master *jm);
void job_give_back_places(struct job_master *jm);

/* What the job lacks to be deployed, as "waits for a TaskManager: ..."; false: nothing. */
enum { JOB_WAITING_BYTES = 128 };
bool job_is_waiting(const struct job_master *jm, char text[JOB_WAITING_BYTES]);

/* The place of a TaskManager, or PLACE_NONE. */
uint32_t job_place_of(const struct job_master *jm, uint32_t member);
/* Where a subtask is to run. */
uint32_t job_place_of_subtask(const struct job_master *jm, uint32_t subtask);

/* What was collected for any of them is sent. */
void job_flush_places(struct job_master *jm);

/* Of the link between two places, for the attempts of one deployment of one region. */
uint64_t job_link_token(const struct job_master *jm, uint32_t region, uint32_t a, uint32_t b);
