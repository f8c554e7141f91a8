#pragma once

/*
 * checkpoint_failure_reason: why a checkpoint failed, the 24 reasons of flink-semantics 9.1.
 *
 * Place    control/coordinator, the floor of the rules.
 * Thread   any.
 * Errors   a name that is not known is false.
 */

#include <stdbool.h>

enum checkpoint_failure_reason {
	REASON_PERIODIC_SCHEDULER_SHUTDOWN,
	REASON_TOO_MANY_CHECKPOINT_REQUESTS,
	REASON_MINIMUM_TIME_BETWEEN_CHECKPOINTS,
	REASON_NOT_ALL_REQUIRED_TASKS_RUNNING,
	REASON_IO_EXCEPTION,
	REASON_BLOCKING_OUTPUT_EXIST,
	REASON_ASYNC_EXCEPTION,
	REASON_CHANNEL_STATE_SHARED_STREAM_EXCEPTION,
	REASON_EXPIRED,
	REASON_SUBSUMED,
	REASON_DECLINED,
	REASON_DECLINED_TASK_NOT_READY,
	REASON_DECLINED_TASK_CLOSING,
	REASON_DECLINED_SUBSUMED,
	REASON_DECLINED_ON_CANCELLATION_BARRIER,
	REASON_DECLINED_INPUT_END_OF_STREAM,
	REASON_COORDINATOR_SHUTDOWN,
	REASON_COORDINATOR_SUSPEND,
	REASON_JOB_FAILOVER_REGION,
	REASON_TASK_FAILURE,
	REASON_TASK_CHECKPOINT_FAILURE,
	REASON_UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE,
	REASON_FINALIZE_CHECKPOINT_FAILURE,
	REASON_TRIGGER_CHECKPOINT_FAILURE,
	REASONS_COUNT,
};

/* Flink's name: "CHECKPOINT_EXPIRED". */
const char *checkpoint_failure_reason_name(enum checkpoint_failure_reason reason);

/* The same without the prefix "CHECKPOINT_", as scenario scripts write it. */
const char *checkpoint_failure_reason_short_name(enum checkpoint_failure_reason reason);

/* What it means, for people: "the checkpoint timed out". */
const char *checkpoint_failure_reason_text(enum checkpoint_failure_reason reason);

/* Takes both forms of the name. */
bool checkpoint_failure_reason_parse(const char *name, enum checkpoint_failure_reason *reason);

/* It happens before tasks are involved. */
bool checkpoint_failure_reason_is_preflight(enum checkpoint_failure_reason reason);

/* It counts against the tolerable failures: exactly five do. */
bool checkpoint_failure_reason_is_counted(enum checkpoint_failure_reason reason);
