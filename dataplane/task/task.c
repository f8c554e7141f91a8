#include "dataplane/task/task.h"

#include "dataplane/wire/event.h"

const char *task_status_name(enum task_status status)
{
	static const char *const names[] = {"CREATED", "DEPLOYING", "INITIALIZING", "RUNNING",
			"CANCELING", "FINISHED", "CANCELED", "FAILED"};

	return names[status];
}

/* 10.3: what the coordinator computes is never anything else. */
static bool is_valid(const struct checkpoint_request *r)
{
	bool has_timeout = r->aligned_timeout_ms != ALIGNED_TIMEOUT_NONE;

	switch (r->alignment) {
	case ALIGNMENT_AT_LEAST_ONCE:
		return !has_timeout;
	case ALIGNMENT_ALIGNED:
		return !has_timeout || !snapshot_kind_is_savepoint(r->kind);
	case ALIGNMENT_UNALIGNED:
		return !has_timeout && !snapshot_kind_is_savepoint(r->kind);
	default:
		return false;
	}
}

const char *task_refusal(const struct task *t, const struct checkpoint_request *request,
		enum decline_reason *reason)
{
	if (t->status != TASK_RUNNING) {
		*reason = DECLINE_TASK_NOT_READY;
		return "the task is not RUNNING";
	}
	if (!is_valid(request)) {
		*reason = DECLINE_TASK_FAILURE;
		return "the options of the checkpoint contradict each other";
	}
	return NULL;
}

bool task_is_alive(const struct task *t)
{
	return t->status < TASK_FINISHED;
}
