#pragma once

/*
 * fake_task_manager: a TaskManager that speaks the real protocol over real TCP and runs nothing:
 * tasks run as soon as they are deployed, and acknowledge each checkpoint that is triggered.
 *
 * Place    tests only; on the loop of the test.
 * Life     create, the loop turns, destroy.
 */

#include "control/coordinator/execution.h"

#include "control/proto/message.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct fake_task_manager;

enum { FAKE_TASKS_MAX = 64 };

struct fake_task {
	struct attempt_id attempt;
	uint32_t vertex, subtask_index;
	size_t state_bytes; /* it was restored with */
	bool is_finished;   /* restored as finished */
	bool is_running;
};

/* What a test may set before and read after. */
struct fake_behaviour {
	int32_t deploy_status; /* not 0: deployments are refused with it */
	bool must_decline;     /* instead of acknowledging */
	bool must_ignore;      /* triggers are not answered */
	bool must_keep_quiet;  /* no heartbeats */
	uint32_t parallelism;  /* of every vertex; 0: all subtasks are here */
	bool must_not_locate;  /* where a savepoint goes is heard and not answered */
	const char *vertex_uids[4]; /* of the job, for the states that are acknowledged */
};

struct fake_record {
	bool is_registered;
	char refusal[256];
	uint32_t deploy_count, trigger_count, confirm_count, abort_count, cancel_count;
	uint32_t rescaled_count; /* states to be shared out */
	uint32_t beat_count;     /* of the coordinator */
	int64_t restored_id, triggered_id, confirmed_id, aborted_id, latest_id;
	int64_t final_id; /* the first one triggered after their end of data */
	bool was_leaving; /* the newest deployment */
	bool was_release; /* that one, or a later one, was confirmed last */
	char event[256];
	char location[256];    /* of the savepoint it was told of last */
	int64_t located_id;
	uint32_t task_count; /* that run, and those of the newest deployment */
	struct fake_task tasks[FAKE_TASKS_MAX];
};

/* Connects and registers; with `protocol_version` MESSAGE_PROTOCOL_VERSION as a real one. */
void fake_task_manager_create(struct fake_task_manager **out, struct loop *l, uint16_t port,
		const char *id, uint32_t protocol_version);
void fake_task_manager_destroy(struct fake_task_manager *f);

struct fake_behaviour *fake_task_manager_behaviour(struct fake_task_manager *f);
const struct fake_record *fake_task_manager_record(const struct fake_task_manager *f);

/* What its tasks say, all of the newest deployment or one of any. */
void fake_task_manager_end_of_data(struct fake_task_manager *f);
void fake_task_manager_status_all(struct fake_task_manager *f, Weir__AttemptState state);
void fake_task_manager_status(struct fake_task_manager *f, struct attempt_id attempt,
		Weir__AttemptState state, const char *error);
/* The answer to what it was told of last, for all that it has. */
void fake_task_manager_located(struct fake_task_manager *f);
void fake_task_manager_request_file(struct fake_task_manager *f, uint32_t task);
