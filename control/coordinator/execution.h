#pragma once

/*
 * execution: one attempt of one subtask: its state, its slot, and the calls to it (semantics
 * 12.1).
 *
 * Place    control/coordinator.
 * Thread   the loop's.
 * Memory   in the struct; the gateway is borrowed while the TaskManager is here.
 * Errors   a state that cannot follow the present one is not entered: false.
 *
 * A call without a slot sends nothing and is a success (EX-1).
 */

#include "control/coordinator/execution_graph.h"
#include "control/coordinator/membership.h"
#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

struct task_manager_gateway;
struct trigger_call;

enum { EXECUTION_TEXT_BYTES = 1024 };

/* What the task last said of itself. */
struct execution_numbers {
	uint64_t records_in, records_out, bytes_in, bytes_out, buffers_in, buffers_out;
	uint64_t busy_ns, idle_ns, backpressured_ns;
	int64_t watermark;
	uint64_t read_at_ns; /* the TaskManager's monotonic clock; 0: never */
};

struct execution {
	uint32_t subtask; /* of the execution graph */
	uint32_t attempt_number;
	struct attempt_id attempt;
	enum execution_state state;
	int64_t entered_ms[EXECUTION_STATES_COUNT]; /* wall clock, 0: never */
	uint32_t member;                            /* its slot's TaskManager or MEMBER_NONE */
	struct task_manager_gateway *gateway;       /* NULL: no slot */
	struct execution_numbers numbers;
	struct execution_numbers older, oldest; /* readings at least a second apart */
	char failure[EXECUTION_TEXT_BYTES];
};

/* A new attempt, CREATED and without a slot.  `run` makes the ids of this coordinator unlike any
 * other's. */
void execution_reset(struct execution *e, uint32_t subtask, uint32_t attempt_number,
		uint64_t run, int64_t wall_ms);

/* The subtask, attempt number and run that execution_reset put into an id. */
uint32_t execution_subtask_of(struct attempt_id attempt);
uint32_t execution_number_of(struct attempt_id attempt);
uint64_t execution_run_of(struct attempt_id attempt);

void execution_take_numbers(struct execution *e, const struct execution_numbers *n);

/* What was added in each second, over the last one or two; zeros while nothing is known. */
struct execution_rates {
	double records_in, records_out, bytes_in, bytes_out, buffers_in, buffers_out;
	double busy_ms, idle_ms, backpressured_ms; /* of each second */
};
struct execution_rates execution_rates(const struct execution *e);

bool execution_enter(struct execution *e, enum execution_state next, int64_t wall_ms);
bool execution_is_terminal(const struct execution *e);

void execution_take_slot(
		struct execution *e, uint32_t member, struct task_manager_gateway *gateway);
/* The TaskManager is gone, or the attempt has ended there. */
void execution_drop_slot(struct execution *e);

void execution_trigger_checkpoint(struct execution *e, const struct trigger_call *call);
void execution_notify_complete(struct execution *e, int64_t checkpoint_id,
		int64_t last_subsumed_id);
void execution_notify_aborted(
		struct execution *e, int64_t checkpoint_id, int64_t latest_completed_id);
void execution_cancel(struct execution *e);
void execution_send_event(struct execution *e, uint32_t operator_index, const char *text);
