#pragma once

/*
 * checkpoint_failure_manager: counts failures in a row and says when they fail the job
 * (flink-semantics 9.2, FM-1 to FM-6).
 *
 * Place    control/coordinator, pure.
 * Thread   one owner.
 * Memory   inside the struct, and the ids counted since the last success.
 */

#include "control/coordinator/checkpoint_failure_reason.h"
#include "control/coordinator/checkpoint_properties.h"

#include <stdbool.h>
#include <stdint.h>

#define TOLERABLE_FAILURES_UNLIMITED INT32_MAX

struct checkpoint_failure_manager {
	int32_t tolerable;
	int64_t succeeded_id_max;
	uint32_t count; /* in a row */
	int64_t *counted_ids;
	uint32_t counted_id_count;
};

void checkpoint_failure_manager_init(struct checkpoint_failure_manager *m, int32_t tolerable);
void checkpoint_failure_manager_clear(struct checkpoint_failure_manager *m);

enum failure_action {
	FAILURE_TOLERATED,
	FAILURE_FAILS_JOB,
	FAILURE_FAILS_JOB_IF_ATTEMPT_RUNS, /* FM-6 */
};

/* `id` 0: it had none.  `has_attempt`: one task's doing. */
enum failure_action checkpoint_failure_manager_on_failure(struct checkpoint_failure_manager *m,
		int64_t id, const struct checkpoint_properties *properties,
		enum checkpoint_failure_reason reason, bool has_attempt);
void checkpoint_failure_manager_on_success(struct checkpoint_failure_manager *m, int64_t id);
