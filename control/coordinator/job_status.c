#include "control/coordinator/job_status.h"

#include "dataplane/base/check.h"

#include <stdint.h>

const char *job_status_name(enum job_status status)
{
	static const char *const names[JOB_STATUS_COUNT] = {
			[JOB_STATUS_INITIALIZING] = "INITIALIZING",
			[JOB_STATUS_CREATED] = "CREATED",
			[JOB_STATUS_RUNNING] = "RUNNING",
			[JOB_STATUS_FAILING] = "FAILING",
			[JOB_STATUS_FAILED] = "FAILED",
			[JOB_STATUS_CANCELLING] = "CANCELLING",
			[JOB_STATUS_CANCELED] = "CANCELED",
			[JOB_STATUS_FINISHED] = "FINISHED",
			[JOB_STATUS_RESTARTING] = "RESTARTING",
			[JOB_STATUS_SUSPENDED] = "SUSPENDED",
	};

	CHECK(status < JOB_STATUS_COUNT);
	return names[status];
}

bool job_status_is_terminal(enum job_status status)
{
	return status == JOB_STATUS_FAILED || status == JOB_STATUS_CANCELED ||
			status == JOB_STATUS_FINISHED;
}

#define TO(status) (1u << JOB_STATUS_##status)

bool job_status_may_follow(enum job_status status, enum job_status next)
{
	static const uint32_t allowed[JOB_STATUS_COUNT] = {
			[JOB_STATUS_INITIALIZING] =
					TO(CREATED) | TO(FAILING) | TO(CANCELLING) | TO(SUSPENDED),
			[JOB_STATUS_CREATED] = TO(RUNNING) | TO(FAILING) | TO(CANCELLING) |
					TO(RESTARTING) | TO(SUSPENDED),
			[JOB_STATUS_RUNNING] = TO(FAILING) | TO(CANCELLING) | TO(FINISHED) |
					TO(RESTARTING) | TO(SUSPENDED),
			[JOB_STATUS_FAILING] = TO(FAILED) | TO(CANCELLING) | TO(SUSPENDED),
			[JOB_STATUS_CANCELLING] = TO(CANCELED) | TO(SUSPENDED),
			[JOB_STATUS_RESTARTING] = TO(CREATED) | TO(RUNNING) | TO(FAILING) |
					TO(CANCELLING) | TO(SUSPENDED),
	};

	CHECK(status < JOB_STATUS_COUNT && next < JOB_STATUS_COUNT);
	return (allowed[status] & 1u << next) != 0;
}
