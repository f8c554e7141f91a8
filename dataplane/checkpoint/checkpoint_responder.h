#pragma once

/*
 * checkpoint_responder: the port on which a task answers for its checkpoints.
 *
 * Place    checkpoint; implemented by the task's reports, and by scenario scripts.
 * Thread   called on the worker of the task.
 */

#include "dataplane/checkpoint/checkpoint_metrics.h"

struct channel_state_result;
struct task_state;

struct checkpoint_responder {
	/* `state` and `in_flight` (NULL: it has none) stay valid until
	 * subtask_checkpoint_coordinator_release. */
	void (*acknowledge)(struct checkpoint_responder *r, int64_t checkpoint_id,
			const struct checkpoint_metrics *metrics, const struct task_state *state,
			const struct channel_state_result *in_flight);
	void (*decline)(struct checkpoint_responder *r, int64_t checkpoint_id,
			enum decline_reason reason, const char *text);
	/* Optional: hands in the releases that have arrived by now, so that a checkpoint that comes
	 * right behind an answer finds its writer free. */
	void (*collect)(struct checkpoint_responder *r);
};
