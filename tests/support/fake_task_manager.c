#include "tests/support/fake_task_manager.h"

#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "control/proto/connection.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/operator/operator.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEAT_NS UINT64_C(20000000)

struct fake_task_manager {
	struct loop *loop;
	struct connection *connection; /* NULL: the coordinator closed it */
	struct loop_timer *beat;
	struct fake_behaviour behaviour;
	struct fake_record record;
	bool has_ended; /* its tasks said that their data has */
	char id[64];
};

static void send(struct fake_task_manager *f, Weir__Envelope *e)
{
	if (f->connection != NULL)
		(void)connection_send(f->connection, e);
}

/* ---- what tasks say ---- */

static void note_state(
		struct fake_task_manager *f, struct attempt_id attempt, Weir__AttemptState state)
{
	for (uint32_t i = 0; i < f->record.task_count; i++)
		if (id128_is_equal(f->record.tasks[i].attempt.id, attempt.id))
			f->record.tasks[i].is_running =
					state == WEIR__ATTEMPT_STATE__TASK_RUNNING;
}

void fake_task_manager_status(struct fake_task_manager *f, struct attempt_id attempt,
		Weir__AttemptState state, const char *error)
{
	Weir__TaskStatus m = WEIR__TASK_STATUS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&attempt.id);
	m.state = state;
	m.error = (char *)(uintptr_t)error;
	e.body_case = WEIR__ENVELOPE__BODY_TASK_STATUS;
	e.task_status = &m;
	send(f, &e);
	note_state(f, attempt, state);
}

void fake_task_manager_status_all(struct fake_task_manager *f, Weir__AttemptState state)
{
	for (uint32_t i = 0; i < f->record.task_count; i++)
		fake_task_manager_status(f, f->record.tasks[i].attempt, state, "");
}

void fake_task_manager_end_of_data(struct fake_task_manager *f)
{
	f->has_ended = true;
	for (uint32_t i = 0; i < f->record.task_count; i++) {
		Weir__EndOfData m = WEIR__END_OF_DATA__INIT;
		Weir__Envelope e = WEIR__ENVELOPE__INIT;

		m.attempt = message_id_bytes(&f->record.tasks[i].attempt.id);
		e.body_case = WEIR__ENVELOPE__BODY_END_OF_DATA;
		e.end_of_data = &m;
		send(f, &e);
	}
}

void fake_task_manager_located(struct fake_task_manager *f)
{
	Weir__SavepointLocated m = WEIR__SAVEPOINT_LOCATED__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.checkpoint_id = f->record.located_id;
	m.attempt = message_id_bytes(&f->record.tasks[0].attempt.id);
	e.body_case = WEIR__ENVELOPE__BODY_SAVEPOINT_LOCATED;
	e.savepoint_located = &m;
	send(f, &e);
}

void fake_task_manager_request_file(struct fake_task_manager *f, uint32_t task)
{
	Weir__OperatorEvent m = WEIR__OPERATOR_EVENT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&f->record.tasks[task].attempt.id);
	m.data = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "REQUEST"};
	e.body_case = WEIR__ENVELOPE__BODY_OPERATOR_EVENT;
	e.operator_event = &m;
	send(f, &e);
}

static uint32_t parallelism_of(const struct fake_task_manager *f, uint32_t vertex)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->record.task_count; i++)
		count += f->record.tasks[i].vertex == vertex;
	return f->behaviour.parallelism != 0 ? f->behaviour.parallelism : count;
}

static void acknowledge(struct fake_task_manager *f, const struct fake_task *t, int64_t id)
{
	uint8_t inline_bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8}, encoded[1024];
	struct state_handle handle = {.uid = "source", .name = "position",
			.kind = WEIR_STATE_VALUE, .value_bytes = 8, .version = 1, .item_count = 1,
			.bytes = inline_bytes, .size = 8, .crc = crc32c(0, inline_bytes, 8)};
	uint32_t parallelism = parallelism_of(f, t->vertex);
	struct task_state state = {.vertex_uid = f->behaviour.vertex_uids[t->vertex],
			.subtask_index = t->subtask_index, .parallelism = parallelism,
			.group_count = 128,
			.groups = key_group_range_of(t->subtask_index, parallelism, 128),
			.handle_count = 1, .handles = &handle};
	Weir__CheckpointMetrics metrics = WEIR__CHECKPOINT_METRICS__INIT;
	Weir__Acknowledge ack = WEIR__ACKNOWLEDGE__INIT, *acks[] = {&ack};
	Weir__AcknowledgeCheckpoints m = WEIR__ACKNOWLEDGE_CHECKPOINTS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	cr_assert_leq(task_state_encoded_bytes(&state), sizeof(encoded));
	task_state_encode(&state, encoded);
	ack.attempt = message_id_bytes(&t->attempt.id);
	ack.checkpoint_id = id;
	ack.metrics = &metrics;
	ack.finished_on_restore = t->is_finished;
	if (!t->is_finished)
		ack.state = (ProtobufCBinaryData){
				task_state_encoded_bytes(&state), encoded};
	m.n_acks = 1;
	m.acks = acks;
	e.body_case = WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS;
	e.acknowledge_checkpoints = &m;
	send(f, &e);
}

static void decline(struct fake_task_manager *f, const struct fake_task *t, int64_t id)
{
	Weir__DeclineCheckpoint m = WEIR__DECLINE_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&t->attempt.id);
	m.checkpoint_id = id;
	m.reason = WEIR__DECLINE_REASON__DECLINED_ASYNC_EXCEPTION;
	m.text = (char *)(uintptr_t) "the disk is full";
	e.body_case = WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT;
	e.decline_checkpoint = &m;
	send(f, &e);
}

/* ---- what the coordinator says ---- */

/* Regions are deployed one by one: tasks that run stay. */
static void forget_ended(struct fake_task_manager *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->record.task_count; i++)
		if (f->record.tasks[i].is_running)
			f->record.tasks[kept++] = f->record.tasks[i];
	f->record.task_count = kept;
}

static void on_submit(struct fake_task_manager *f, const Weir__SubmitTasks *m)
{
	Weir__DeployAnswer answer = WEIR__DEPLOY_ANSWER__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	forget_ended(f);
	uint32_t first = f->record.task_count;
	cr_assert_leq(first + m->n_tasks, FAKE_TASKS_MAX);
	f->record.deploy_count++;
	f->record.restored_id = m->restored_checkpoint_id;
	f->record.task_count += (uint32_t)m->n_tasks;
	f->record.was_leaving = m->leaving;
	f->record.rescaled_count = (uint32_t)m->n_rescaled_states;
	f->has_ended = false;
	f->record.final_id = 0;
	for (size_t i = 0; i < m->n_tasks; i++)
		f->record.tasks[first + i] = (struct fake_task){{message_id(&m->tasks[i]->attempt)},
				m->tasks[i]->vertex, m->tasks[i]->subtask_index,
				m->tasks[i]->state.len, m->tasks[i]->finished, false};
	answer.deployment = m->deployment;
	answer.status = f->behaviour.deploy_status;
	answer.error = (char *)(uintptr_t)(answer.status == 0 ? "" : "it does not fit");
	e.body_case = WEIR__ENVELOPE__BODY_DEPLOY_ANSWER;
	e.deploy_answer = &answer;
	send(f, &e);
	for (uint32_t i = first; answer.status == 0 && i < f->record.task_count; i++)
		fake_task_manager_status(f, f->record.tasks[i].attempt,
				WEIR__ATTEMPT_STATE__TASK_RUNNING, "");
}

static void on_trigger(struct fake_task_manager *f, const Weir__TriggerCheckpoint *m)
{
	f->record.trigger_count++;
	f->record.triggered_id = m->checkpoint_id;
	if (f->has_ended && f->record.final_id == 0)
		f->record.final_id = m->checkpoint_id;
	if (f->behaviour.must_ignore)
		return;
	if (f->behaviour.must_decline) {
		decline(f, &f->record.tasks[0], m->checkpoint_id);
		return;
	}
	for (uint32_t i = 0; i < f->record.task_count; i++)
		acknowledge(f, &f->record.tasks[i], m->checkpoint_id);
}

static void on_locate(struct fake_task_manager *f, const Weir__LocateSavepoint *m)
{
	f->record.located_id = m->checkpoint_id;
	snprintf(f->record.location, sizeof(f->record.location), "%s", m->location);
	if (!f->behaviour.must_not_locate)
		fake_task_manager_located(f);
}

static void on_cancel(struct fake_task_manager *f, const Weir__CancelTasks *m)
{
	f->record.cancel_count++;
	for (size_t i = 0; i < m->n_attempts; i++)
		fake_task_manager_status(f, (struct attempt_id){message_id(&m->attempts[i])},
				WEIR__ATTEMPT_STATE__TASK_CANCELED, "");
}

static void on_received(void *owner, struct connection *c, const Weir__Envelope *e)
{
	struct fake_task_manager *f = owner;
	struct fake_record *r = &f->record;

	(void)c;
	switch (e->body_case) {
	case WEIR__ENVELOPE__BODY_REGISTERED:
		r->is_registered = e->registered->accepted;
		snprintf(r->refusal, sizeof(r->refusal), "%s", e->registered->error);
		break;
	case WEIR__ENVELOPE__BODY_SUBMIT_TASKS:
		on_submit(f, e->submit_tasks);
		break;
	case WEIR__ENVELOPE__BODY_TRIGGER_CHECKPOINT:
		on_trigger(f, e->trigger_checkpoint);
		break;
	case WEIR__ENVELOPE__BODY_LOCATE_SAVEPOINT:
		on_locate(f, e->locate_savepoint);
		break;
	case WEIR__ENVELOPE__BODY_CONFIRM_CHECKPOINT:
		r->confirm_count++;
		r->confirmed_id = e->confirm_checkpoint->checkpoint_id;
		r->was_release = r->final_id != 0 && r->confirmed_id >= r->final_id;
		break;
	case WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT:
		r->abort_count++;
		r->aborted_id = e->abort_checkpoint->checkpoint_id;
		r->latest_id = e->abort_checkpoint->latest_completed_id;
		break;
	case WEIR__ENVELOPE__BODY_COORDINATOR_HEARTBEAT:
		r->beat_count++;
		break;
	case WEIR__ENVELOPE__BODY_CANCEL_TASKS:
		on_cancel(f, e->cancel_tasks);
		break;
	case WEIR__ENVELOPE__BODY_OPERATOR_EVENT:
		snprintf(r->event, sizeof(r->event), "%.*s", (int)e->operator_event->data.len,
				(const char *)e->operator_event->data.data);
		break;
	default:
		break;
	}
}

static void on_closed(void *owner, struct connection *c, const char *reason)
{
	struct fake_task_manager *f = owner;

	(void)reason;
	connection_close(c);
	f->connection = NULL;
	f->record.is_registered = false;
}

static const struct connection_events events = {on_received, on_closed};

/* ---- life ---- */

static void on_beat(void *context)
{
	struct fake_task_manager *f = context;
	Weir__TaskHeartbeat m = WEIR__TASK_HEARTBEAT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	loop_timer_set(f->beat, BEAT_NS);
	e.body_case = WEIR__ENVELOPE__BODY_TASK_HEARTBEAT;
	e.task_heartbeat = &m;
	if (f->record.is_registered && !f->behaviour.must_keep_quiet)
		send(f, &e);
}

static void send_register(struct fake_task_manager *f, uint32_t protocol_version)
{
	Weir__RegisterTaskManager m = WEIR__REGISTER_TASK_MANAGER__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.id = f->id;
	m.slot_count = 2;
	m.abi_version = WEIR_ABI_VERSION;
	m.protocol_version = protocol_version;
	m.link_address = (char *)(uintptr_t) "02:00:00:00:00:01 10.0.0.1 4789 1500 1024";
	e.body_case = WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER;
	e.register_task_manager = &m;
	send(f, &e);
}

void fake_task_manager_create(struct fake_task_manager **out, struct loop *l, uint16_t port,
		const char *id, uint32_t protocol_version)
{
	struct fake_task_manager *f = calloc(1, sizeof(*f));

	cr_assert_not_null(f);
	f->loop = l;
	snprintf(f->id, sizeof(f->id), "%s", id);
	cr_assert_eq(tcp_connection_open(&f->connection, l, "127.0.0.1", port, &events, f), 0);
	cr_assert_eq(loop_timer_create(&f->beat, l, on_beat, f), 0);
	loop_timer_set(f->beat, BEAT_NS);
	send_register(f, protocol_version);
	*out = f;
}

void fake_task_manager_destroy(struct fake_task_manager *f)
{
	if (f == NULL)
		return;
	if (f->connection != NULL)
		connection_close(f->connection);
	loop_timer_destroy(f->beat);
	free(f);
}

struct fake_behaviour *fake_task_manager_behaviour(struct fake_task_manager *f)
{
	return &f->behaviour;
}

const struct fake_record *fake_task_manager_record(const struct fake_task_manager *f)
{
	return &f->record;
}
