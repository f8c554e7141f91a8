#pragma once

/*
 * soak_coordinator: triggers, collects, completes and aborts checkpoints of one attempt of a job,
 * as the coordinator does (flink-semantics 6 to 11), in one thread with the TaskManager.
 *
 * Place    tests.
 * Memory   inside the struct, and the states it has collected.
 * Life     init, { on_report, trigger, abort_any, confirm }*, clear.
 */

#include "dataplane/base/prng.h"
#include "dataplane/task/taskmanager.h"
#include "tests/soak/soak_record.h"

enum { SOAK_PENDING_MAX = 4, SOAK_TEXT_BYTES = 1024 };

struct soak_task {
	uint32_t vertex, index;
	struct attempt_id attempt;
	enum task_status status;
	bool has_ended; /* all its input is in */
};

struct soak_pending {
	struct soak_record record;
	bool is_waited[SOAK_TASKS_MAX];
	uint32_t missing;
};

struct soak_coordinator {
	const struct soak_plan *plan;
	const struct soak_life *life;
	const char *directory;
	struct taskmanager *tm;
	uint32_t task_count;
	struct soak_task tasks[SOAK_TASKS_MAX];
	int64_t next_id, completed_id;
	uint32_t pending_count, acknowledged, completed, aborted, declined;
	struct soak_pending pending[SOAK_PENDING_MAX]; /* by id */
	bool must_die_completing; /* once more has completed, before or after the word is out */
	char declined_text[SOAK_TEXT_BYTES / 2]; /* why, the last time */
	bool has_failed;          /* a task has */
	bool is_failure_final;
	char failure[SOAK_TEXT_BYTES];
};

void soak_coordinator_init(struct soak_coordinator *c, const struct soak_plan *p,
		const struct soak_life *l, const char *directory);
void soak_coordinator_clear(struct soak_coordinator *c);

/* All subtasks, with the parallelism of the life. */
void soak_coordinator_add_tasks(struct soak_coordinator *c);

/* Reads what the TaskManager has to say. */
void soak_coordinator_listen(struct soak_coordinator *c);

/* False: not now. */
bool soak_coordinator_trigger(struct soak_coordinator *c, bool is_savepoint, int64_t wall_ms);
/* The one of that place among the pending ones. */
void soak_coordinator_abort(struct soak_coordinator *c, uint32_t place);

bool soak_coordinator_is_over(const struct soak_coordinator *c);
bool soak_coordinator_have_ended(const struct soak_coordinator *c);
