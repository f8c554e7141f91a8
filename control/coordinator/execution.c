#include "control/coordinator/execution.h"

#include "control/coordinator/task_manager_gateway.h"
#include "dataplane/base/check.h"

#include <string.h>

#define RATE_NS UINT64_C(1000000000)

/* An attempt id: 8 bytes of the run, 4 of the attempt number, 4 of the subtask, big endian. */
static void put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			(uint32_t)at[3];
}

void execution_reset(struct execution *e, uint32_t subtask, uint32_t attempt_number,
		uint64_t run, int64_t wall_ms)
{
	memset(e, 0, sizeof(*e));
	e->subtask = subtask;
	e->attempt_number = attempt_number;
	e->member = MEMBER_NONE;
	e->state = EXECUTION_CREATED;
	e->entered_ms[EXECUTION_CREATED] = wall_ms;
	e->numbers.watermark = INT64_MIN;
	put_u32(e->attempt.id.bytes, (uint32_t)(run >> 32));
	put_u32(e->attempt.id.bytes + 4, (uint32_t)run);
	put_u32(e->attempt.id.bytes + 8, attempt_number);
	put_u32(e->attempt.id.bytes + 12, subtask);
}

uint32_t execution_subtask_of(struct attempt_id attempt)
{
	return get_u32(attempt.id.bytes + 12);
}

uint32_t execution_number_of(struct attempt_id attempt)
{
	return get_u32(attempt.id.bytes + 8);
}

uint64_t execution_run_of(struct attempt_id attempt)
{
	return (uint64_t)get_u32(attempt.id.bytes) << 32 | get_u32(attempt.id.bytes + 4);
}

bool execution_is_terminal(const struct execution *e)
{
	return e->state == EXECUTION_FINISHED || e->state == EXECUTION_CANCELED ||
			e->state == EXECUTION_FAILED;
}

#define TO(state) (1u << EXECUTION_##state)

/* ---- numbers ---- */

void execution_take_numbers(struct execution *e, const struct execution_numbers *n)
{
	e->numbers = *n;
	if (e->older.read_at_ns == 0)
		e->older = e->oldest = *n;
	else if (n->read_at_ns - e->older.read_at_ns >= RATE_NS) {
		e->oldest = e->older;
		e->older = *n;
	}
}

/* Numbers only grow; a foreign one that does not is no rate. */
static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

struct execution_rates execution_rates(const struct execution *e)
{
	const struct execution_numbers *n = &e->numbers, *o = &e->oldest;
	double s = (double)(n->read_at_ns - o->read_at_ns) / 1e9, ns_in_ms = 1e6;

	if (execution_is_terminal(e) || n->read_at_ns <= o->read_at_ns)
		return (struct execution_rates){0};
	return (struct execution_rates){
			.records_in = rate(n->records_in, o->records_in, s),
			.records_out = rate(n->records_out, o->records_out, s),
			.bytes_in = rate(n->bytes_in, o->bytes_in, s),
			.bytes_out = rate(n->bytes_out, o->bytes_out, s),
			.buffers_in = rate(n->buffers_in, o->buffers_in, s),
			.buffers_out = rate(n->buffers_out, o->buffers_out, s),
			.busy_ms = rate(n->busy_ns, o->busy_ns, s) / ns_in_ms,
			.idle_ms = rate(n->idle_ns, o->idle_ns, s) / ns_in_ms,
			.backpressured_ms = rate(n->backpressured_ns, o->backpressured_ns, s) /
					ns_in_ms,
	};
}

bool execution_enter(struct execution *e, enum execution_state next, int64_t wall_ms)
{
	static const uint32_t allowed[EXECUTION_STATES_COUNT] = {
			[EXECUTION_CREATED] = TO(DEPLOYING) | TO(CANCELED) | TO(FAILED),
			[EXECUTION_DEPLOYING] = TO(INITIALIZING) | TO(RUNNING) | TO(FINISHED) |
					TO(CANCELING) | TO(CANCELED) | TO(FAILED),
			[EXECUTION_INITIALIZING] = TO(RUNNING) | TO(FINISHED) | TO(CANCELING) |
					TO(CANCELED) | TO(FAILED),
			[EXECUTION_RUNNING] = TO(FINISHED) | TO(CANCELING) | TO(CANCELED) |
					TO(FAILED),
			[EXECUTION_CANCELING] = TO(FINISHED) | TO(CANCELED) | TO(FAILED),
	};

	CHECK(next < EXECUTION_STATES_COUNT);
	if ((allowed[e->state] & 1u << next) == 0)
		return false;
	e->state = next;
	e->entered_ms[next] = wall_ms;
	return true;
}

void execution_take_slot(
		struct execution *e, uint32_t member, struct task_manager_gateway *gateway)
{
	CHECK(e->gateway == NULL);
	e->member = member;
	e->gateway = gateway;
}

void execution_drop_slot(struct execution *e)
{
	e->gateway = NULL;
}

void execution_trigger_checkpoint(struct execution *e, const struct trigger_call *call)
{
	if (e->gateway != NULL)
		task_manager_gateway_trigger(e->gateway, e->attempt, call);
}

void execution_notify_complete(struct execution *e, int64_t checkpoint_id,
		int64_t last_subsumed_id)
{
	if (e->gateway != NULL)
		task_manager_gateway_confirm(e->gateway, e->attempt, checkpoint_id,
				last_subsumed_id);
}

void execution_notify_aborted(
		struct execution *e, int64_t checkpoint_id, int64_t latest_completed_id)
{
	if (e->gateway != NULL)
		task_manager_gateway_abort(
				e->gateway, e->attempt, checkpoint_id, latest_completed_id);
}

void execution_cancel(struct execution *e)
{
	if (e->gateway != NULL)
		task_manager_gateway_cancel(e->gateway, e->attempt);
}

void execution_send_event(struct execution *e, uint32_t operator_index, const char *text)
{
	if (e->gateway != NULL)
		task_manager_gateway_event(
				e->gateway, e->attempt, operator_index, text, strlen(text));
}
