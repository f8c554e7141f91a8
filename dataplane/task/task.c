#include "dataplane/task/task.h"

const char *task_status_name(enum task_status status)
{
	static const char *const names[] = {"CREATED", "DEPLOYING", "INITIALIZING", "RUNNING",
			"CANCELING", "FINISHED", "CANCELED", "FAILED"};

	return names[status];
}

const char *task_refusal(const struct task *t, const struct checkpoint_request *request,
		enum decline_reason *reason)
{
	if (t->status != TASK_RUNNING) {
		*reason = DECLINE_TASK_NOT_READY;
		return "the task is not RUNNING";
	}
	if (request->alignment != ALIGNMENT_ALIGNED) {
		*reason = DECLINE_TASK_FAILURE;
		return "this task takes aligned checkpoints only";
	}
	return NULL;
}

bool task_is_alive(const struct task *t)
{
	return t->status < TASK_FINISHED;
}
