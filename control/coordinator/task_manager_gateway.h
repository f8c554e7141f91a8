#pragma once

/*
 * task_manager_gateway: typed calls to one TaskManager over its connection (semantics 12.1).
 *
 * Place    control/coordinator; executions call it, it sends messages.
 * Thread   the loop's.
 * Memory   one batch of attempt ids.
 * Errors   what cannot be sent is told by the connection's `closed`; calls are then dropped.
 *
 * Calls of one kind and content for many attempts go in one message: they are collected until
 * another kind of call, or flush.
 */

#include "dataplane/base/ids.h"

#include "control/proto/weir.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct task_manager_gateway;

int task_manager_gateway_create(struct task_manager_gateway **out, struct connection *c);
void task_manager_gateway_destroy(struct task_manager_gateway *g);

struct trigger_call {
	int64_t checkpoint_id;
	int64_t timestamp_ms;
	Weir__SnapshotKind kind;
	uint32_t alignment; /* ordinal of 10.3 */
	int64_t aligned_timeout_ms;
	const char *location; /* of a savepoint; NULL: chk-<id> */
};

void task_manager_gateway_trigger(struct task_manager_gateway *g, struct attempt_id attempt,
		const struct trigger_call *call);
/* Where a savepoint goes; `location` must stay until the flush. */
void task_manager_gateway_locate(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, const char *location);
void task_manager_gateway_confirm(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t last_subsumed_id);
void task_manager_gateway_abort(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t latest_completed_id);
void task_manager_gateway_cancel(struct task_manager_gateway *g, struct attempt_id attempt);

/* These two are sent at once, behind what was collected before. */
void task_manager_gateway_event(struct task_manager_gateway *g, struct attempt_id attempt,
		uint32_t operator_index, const void *data, size_t bytes);
/* -EMSGSIZE: larger than a message may be. */
int task_manager_gateway_submit(
		struct task_manager_gateway *g, const Weir__SubmitTasks *submit);

/* Sends what was collected. */
void task_manager_gateway_flush(struct task_manager_gateway *g);
