#include "control/coordinator/task_manager_gateway.h"

#include "control/proto/connection.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum batch_kind {
	BATCH_NONE,
	BATCH_TRIGGER,
	BATCH_LOCATE,
	BATCH_CONFIRM,
	BATCH_ABORT,
	BATCH_CANCEL,
};

struct batch {
	enum batch_kind kind;
	struct trigger_call trigger; /* of a trigger */
	int64_t checkpoint_id;       /* of the others */
	int64_t other_id;
	const char *location;        /* of a locate */
	uint32_t count, room;
	struct id128 *attempts;
};

struct task_manager_gateway {
	struct connection *connection; /* borrowed */
	struct batch batch;
};

int task_manager_gateway_create(struct task_manager_gateway **out, struct connection *c)
{
	struct task_manager_gateway *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return -ENOMEM;
	g->connection = c;
	*out = g;
	return 0;
}

void task_manager_gateway_destroy(struct task_manager_gateway *g)
{
	if (g == NULL)
		return;
	free(g->batch.attempts);
	free(g);
}

/* ---- sending a batch ---- */

static void send_trigger(const struct task_manager_gateway *g, ProtobufCBinaryData *ids)
{
	const struct trigger_call *call = &g->batch.trigger;
	Weir__TriggerCheckpoint m = WEIR__TRIGGER_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.checkpoint_id = call->checkpoint_id;
	m.timestamp_ms = call->timestamp_ms;
	m.kind = call->kind;
	m.alignment = call->alignment;
	m.aligned_timeout_ms = call->aligned_timeout_ms;
	if (call->location != NULL)
		m.location = (char *)(uintptr_t)call->location;
	m.n_attempts = g->batch.count;
	m.attempts = ids;
	e.body_case = WEIR__ENVELOPE__BODY_TRIGGER_CHECKPOINT;
	e.trigger_checkpoint = &m;
	(void)connection_send(g->connection, &e);
}

static void send_locate(const struct task_manager_gateway *g, ProtobufCBinaryData *ids)
{
	Weir__LocateSavepoint m = WEIR__LOCATE_SAVEPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.checkpoint_id = g->batch.checkpoint_id;
	m.location = (char *)(uintptr_t)g->batch.location;
	m.n_attempts = g->batch.count;
	m.attempts = ids;
	e.body_case = WEIR__ENVELOPE__BODY_LOCATE_SAVEPOINT;
	e.locate_savepoint = &m;
	(void)connection_send(g->connection, &e);
}

static void send_confirm(const struct task_manager_gateway *g, ProtobufCBinaryData *ids)
{
	Weir__ConfirmCheckpoint m = WEIR__CONFIRM_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.checkpoint_id = g->batch.checkpoint_id;
	m.last_subsumed_id = g->batch.other_id;
	m.n_attempts = g->batch.count;
	m.attempts = ids;
	e.body_case = WEIR__ENVELOPE__BODY_CONFIRM_CHECKPOINT;
	e.confirm_checkpoint = &m;
	(void)connection_send(g->connection, &e);
}

static void send_abort(const struct task_manager_gateway *g, ProtobufCBinaryData *ids)
{
	Weir__AbortCheckpoint m = WEIR__ABORT_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.checkpoint_id = g->batch.checkpoint_id;
	m.latest_completed_id = g->batch.other_id;
	m.n_attempts = g->batch.count;
	m.attempts = ids;
	e.body_case = WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT;
	e.abort_checkpoint = &m;
	(void)connection_send(g->connection, &e);
}

static void send_cancel(const struct task_manager_gateway *g, ProtobufCBinaryData *ids)
{
	Weir__CancelTasks m = WEIR__CANCEL_TASKS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.n_attempts = g->batch.count;
	m.attempts = ids;
	e.body_case = WEIR__ENVELOPE__BODY_CANCEL_TASKS;
	e.cancel_tasks = &m;
	(void)connection_send(g->connection, &e);
}

void task_manager_gateway_flush(struct task_manager_gateway *g)
{
	struct batch *b = &g->batch;

	if (b->kind == BATCH_NONE)
		return;
	ProtobufCBinaryData *ids = malloc(b->count * sizeof(*ids));
	CHECK(ids != NULL);
	for (uint32_t i = 0; i < b->count; i++)
		ids[i] = message_id_bytes(&b->attempts[i]);
	if (b->kind == BATCH_TRIGGER)
		send_trigger(g, ids);
	else if (b->kind == BATCH_LOCATE)
		send_locate(g, ids);
	else if (b->kind == BATCH_CONFIRM)
		send_confirm(g, ids);
	else if (b->kind == BATCH_ABORT)
		send_abort(g, ids);
	else
		send_cancel(g, ids);
	free(ids);
	b->kind = BATCH_NONE;
	b->count = 0;
}

/* ---- collecting ---- */

static void begin(struct task_manager_gateway *g, enum batch_kind kind, int64_t checkpoint_id,
		int64_t other_id)
{
	struct batch *b = &g->batch;

	if (b->kind == kind && b->checkpoint_id == checkpoint_id && b->other_id == other_id)
		return;
	task_manager_gateway_flush(g);
	b->kind = kind;
	b->checkpoint_id = checkpoint_id;
	b->other_id = other_id;
}

static void add(struct task_manager_gateway *g, struct attempt_id attempt)
{
	struct batch *b = &g->batch;

	if (b->count == b->room) {
		b->room = b->room == 0 ? 16 : 2 * b->room;
		b->attempts = realloc(b->attempts, b->room * sizeof(*b->attempts));
		CHECK(b->attempts != NULL);
	}
	b->attempts[b->count++] = attempt.id;
}

void task_manager_gateway_trigger(struct task_manager_gateway *g, struct attempt_id attempt,
		const struct trigger_call *call)
{
	begin(g, BATCH_TRIGGER, call->checkpoint_id, 0);
	g->batch.trigger = *call;
	add(g, attempt);
}

void task_manager_gateway_locate(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, const char *location)
{
	begin(g, BATCH_LOCATE, checkpoint_id, 0);
	g->batch.location = location;
	add(g, attempt);
}

void task_manager_gateway_confirm(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t last_subsumed_id)
{
	begin(g, BATCH_CONFIRM, checkpoint_id, last_subsumed_id);
	add(g, attempt);
}

void task_manager_gateway_abort(struct task_manager_gateway *g, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t latest_completed_id)
{
	begin(g, BATCH_ABORT, checkpoint_id, latest_completed_id);
	add(g, attempt);
}

void task_manager_gateway_cancel(struct task_manager_gateway *g, struct attempt_id attempt)
{
	begin(g, BATCH_CANCEL, 0, 0);
	add(g, attempt);
}

/* ---- sent at once ---- */

void task_manager_gateway_event(struct task_manager_gateway *g, struct attempt_id attempt,
		uint32_t operator_index, const void *data, size_t bytes)
{
	Weir__OperatorEvent m = WEIR__OPERATOR_EVENT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	task_manager_gateway_flush(g);
	m.attempt = message_id_bytes(&attempt.id);
	m.operator_index = operator_index;
	m.data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
	e.body_case = WEIR__ENVELOPE__BODY_OPERATOR_EVENT;
	e.operator_event = &m;
	(void)connection_send(g->connection, &e);
}

int task_manager_gateway_submit(struct task_manager_gateway *g, const Weir__SubmitTasks *submit)
{
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	task_manager_gateway_flush(g);
	e.body_case = WEIR__ENVELOPE__BODY_SUBMIT_TASKS;
	e.submit_tasks = (Weir__SubmitTasks *)(uintptr_t)submit;
	int rc = connection_send(g->connection, &e);
	/* A broken connection is told by `closed`. */
	return rc == -EMSGSIZE || rc == -ENOMEM ? rc : 0;
}
