#include "control/coordinator/checkpoint_failure_reason.h"

#include "dataplane/base/check.h"

#include <string.h>

#define PREFIX "CHECKPOINT_"

struct row {
	const char *name;
	const char *text;
	bool is_preflight;
	bool is_counted;
};

/* 9.1, in its order. */
static const struct row rows[REASONS_COUNT] = {
	{ "PERIODIC_SCHEDULER_SHUTDOWN", "periodic checkpoints are switched off", true, false },
	{ "TOO_MANY_CHECKPOINT_REQUESTS", "too many requests are queued", true, false },
	{ "MINIMUM_TIME_BETWEEN_CHECKPOINTS",
			"the pause after the last completed checkpoint is not over", true, false },
	{ "NOT_ALL_REQUIRED_TASKS_RUNNING", "not all required tasks are running", true, false },
	{ "IO_EXCEPTION", "storage failed while the checkpoint was triggered", true, true },
	{ "BLOCKING_OUTPUT_EXIST", "the job has blocking outputs", true, false },
	{ PREFIX "ASYNC_EXCEPTION", "a task failed to write its state", false, true },
	{ "CHANNEL_STATE_SHARED_STREAM_EXCEPTION",
			"another subtask failed in the channel-state file they share", false,
			false },
	{ PREFIX "EXPIRED", "the checkpoint took longer than its timeout", false, true },
	{ PREFIX "SUBSUMED", "a newer checkpoint completed first", false, false },
	{ PREFIX "DECLINED", "a task declined", false, true },
	{ PREFIX "DECLINED_TASK_NOT_READY", "a task was not ready", false, false },
	{ PREFIX "DECLINED_TASK_CLOSING", "a task was closing", false, false },
	{ PREFIX "DECLINED_SUBSUMED", "a task saw a newer barrier", false, false },
	{ PREFIX "DECLINED_ON_CANCELLATION_BARRIER", "a task saw a cancel marker", false, false },
	{ PREFIX "DECLINED_INPUT_END_OF_STREAM", "an input of a task ended", false, false },
	{ PREFIX "COORDINATOR_SHUTDOWN", "the coordinator shut down", false, false },
	{ PREFIX "COORDINATOR_SUSPEND", "the coordinator was suspended", false, false },
	{ "JOB_FAILOVER_REGION", "tasks failed over", false, false },
	{ "TASK_FAILURE", "a task failed to start it", false, false },
	{ "TASK_CHECKPOINT_FAILURE", "a TaskManager does not know the task", false, false },
	{ "UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE",
			"a TaskManager does not know the task it was to notify", false, false },
	{ "FINALIZE_CHECKPOINT_FAILURE", "the checkpoint could not be made durable", false, true },
	{ "TRIGGER_CHECKPOINT_FAILURE", "the checkpoint could not be triggered", false, false },
};

static const struct row *row_of(enum checkpoint_failure_reason reason)
{
	CHECK((unsigned int)reason < REASONS_COUNT);
	return &rows[reason];
}

static const char *without_prefix(const char *name)
{
	size_t length = strlen(PREFIX);

	return strncmp(name, PREFIX, length) == 0 ? name + length : name;
}

const char *checkpoint_failure_reason_name(enum checkpoint_failure_reason reason)
{
	return row_of(reason)->name;
}

const char *checkpoint_failure_reason_short_name(enum checkpoint_failure_reason reason)
{
	return without_prefix(row_of(reason)->name);
}

const char *checkpoint_failure_reason_text(enum checkpoint_failure_reason reason)
{
	return row_of(reason)->text;
}

bool checkpoint_failure_reason_parse(const char *name, enum checkpoint_failure_reason *reason)
{
	for (int i = 0; i < REASONS_COUNT; i++) {
		if (strcmp(name, rows[i].name) == 0 ||
				strcmp(name, without_prefix(rows[i].name)) == 0) {
			*reason = (enum checkpoint_failure_reason)i;
			return true;
		}
	}
	return false;
}

bool checkpoint_failure_reason_is_preflight(enum checkpoint_failure_reason reason)
{
	return row_of(reason)->is_preflight;
}

bool checkpoint_failure_reason_is_counted(enum checkpoint_failure_reason reason)
{
	return row_of(reason)->is_counted;
}
