#pragma once

/*
 * job_status: the states of a job, in Flink's words.
 *
 * Place    control/coordinator, the floor.
 */

#include <stdbool.h>

enum job_status {
	JOB_STATUS_INITIALIZING, /* what it begins from is being found and checked */
	JOB_STATUS_CREATED,      /* waits for a TaskManager */
	JOB_STATUS_RUNNING,
	JOB_STATUS_FAILING,
	JOB_STATUS_FAILED,
	JOB_STATUS_CANCELLING,
	JOB_STATUS_CANCELED,
	JOB_STATUS_FINISHED,
	JOB_STATUS_RESTARTING,
	JOB_STATUS_SUSPENDED, /* this coordinator ends, another goes on */
	JOB_STATUS_COUNT,
};

/* "RUNNING" and so on. */
const char *job_status_name(enum job_status status);
/* It is over and will not change. */
bool job_status_is_terminal(enum job_status status);
/* From one to the next. */
bool job_status_may_follow(enum job_status status, enum job_status next);
