#pragma once

/*
 * mail: what the control thread asks of a task on a worker (flink-semantics 13.1).
 *
 * Place    task.
 * Thread   made on the control thread, carried out on the worker between two batches, freed on the
 *          control thread when it has come back.
 */

#include "dataplane/task/taskmanager.h"

struct task;

enum mail_kind {
	MAIL_ATTACH, /* the task is the worker's from now on */
	MAIL_TRIGGER,
	MAIL_CONFIRM,
	MAIL_ABORT,
	MAIL_EVENT,
	MAIL_FAIL, /* `data`: why, a text with its zero */
	MAIL_CANCEL,
};

struct mail {
	enum mail_kind kind;
	struct task *task;
	struct checkpoint_request request; /* trigger */
	int64_t checkpoint_id;             /* confirm, abort */
	int64_t latest_completed_id;       /* abort */
	uint32_t operator_index, bytes;    /* event; fail */
	uint8_t data[];
};
