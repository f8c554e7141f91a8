#include "control/executor/report_sender.h"

#include "control/proto/connection.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/task/link_port.h"
#include "dataplane/task/taskmanager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ACKS_MAX = 256,
	ACK_BYTES_MAX = MESSAGE_BYTES_MAX / 2, /* of states in one message */
	TASKS_MAX = 4096,
	COUNTERS_MAX = CHAIN_OPERATORS_MAX * (COUNTERS_PER_OPERATOR_MAX + 2),
};

struct ack {
	Weir__Acknowledge message;
	Weir__CheckpointMetrics metrics;
	struct id128 attempt;
};

struct report_sender {
	struct taskmanager *taskmanager;
	uint32_t ack_count;
	size_t ack_bytes;
	struct ack acks[ACKS_MAX];
	Weir__Acknowledge *pointers[ACKS_MAX];
	struct task_numbers numbers[TASKS_MAX];
};

int report_sender_create(struct report_sender **out, struct taskmanager *tm)
{
	struct report_sender *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->taskmanager = tm;
	*out = s;
	return 0;
}

static void drop_acks(struct report_sender *s)
{
	for (uint32_t i = 0; i < s->ack_count; i++)
		free(s->acks[i].message.state.data);
	s->ack_count = 0;
	s->ack_bytes = 0;
}

void report_sender_destroy(struct report_sender *s)
{
	if (s == NULL)
		return;
	drop_acks(s);
	free(s);
}

/* ---- acknowledgements ---- */

static void send_acks(struct report_sender *s, struct connection *c)
{
	Weir__AcknowledgeCheckpoints m = WEIR__ACKNOWLEDGE_CHECKPOINTS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	if (s->ack_count == 0)
		return;
	uint64_t now_ns = clock_monotonic_ns();
	for (uint32_t i = 0; i < s->ack_count; i++) {
		s->acks[i].metrics.sent_at = now_ns;
		s->pointers[i] = &s->acks[i].message;
	}
	m.n_acks = s->ack_count;
	m.acks = s->pointers;
	e.body_case = WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS;
	e.acknowledge_checkpoints = &m;
	(void)connection_send(c, &e);
	drop_acks(s);
}

static_assert((int)CHECKPOINT_TIMED_OUT == (int)WEIR__CHECKPOINT_MODE__CHECKPOINT_TIMED_OUT &&
				(int)CHECKPOINT_UNALIGNED ==
						(int)WEIR__CHECKPOINT_MODE__CHECKPOINT_UNALIGNED,
		"modes are the same on both sides");

static void fill_metrics(Weir__CheckpointMetrics *m, const struct checkpoint_metrics *from)
{
	weir__checkpoint_metrics__init(m);
	m->alignment_duration = from->alignment_duration_ns;
	m->bytes_processed_during_alignment = from->bytes_processed_during_alignment;
	m->bytes_persisted_during_alignment = from->bytes_persisted_during_alignment;
	m->sync_duration = from->sync_duration_ns;
	m->async_duration = from->async_duration_ns;
	m->start_delay = from->start_delay_ns;
	m->bytes_persisted = from->bytes_persisted;
	m->total_bytes = from->total_bytes;
	m->unaligned = from->is_unaligned;
	m->heard_at = from->heard_ns;
	m->began_at = from->began_ns;
	m->ended_at = from->ended_ns;
	m->mode = (Weir__CheckpointMode)from->mode;
	m->channels = from->channel_count;
	m->buffers = from->buf_count;
	m->files = from->file_count;
}

/* What the task was, and what was in flight, are one description. */
static struct task_state whole_state(const struct report *r)
{
	struct task_state state = {0};

	if (r->state != NULL)
		state = *r->state;
	if (r->in_flight != NULL) {
		CHECK(r->state != NULL);
		state.channel_count = r->in_flight->handle_count;
		state.channels = r->in_flight->handles;
	}
	return state;
}

static void collect_ack(struct report_sender *s, struct connection *c, const struct report *r)
{
	struct task_state state = whole_state(r);
	size_t bytes = r->state == NULL || r->is_finished_on_restore
			? 0
			: task_state_encoded_bytes(&state);

	if (s->ack_count == ACKS_MAX || s->ack_bytes + bytes > ACK_BYTES_MAX)
		send_acks(s, c);
	struct ack *a = &s->acks[s->ack_count];
	weir__acknowledge__init(&a->message);
	a->attempt = r->attempt.id;
	a->message.attempt = message_id_bytes(&a->attempt);
	a->message.checkpoint_id = r->checkpoint_id;
	fill_metrics(&a->metrics, &r->metrics);
	if (r->is_finished_on_restore) /* nothing of it is kept */
		a->metrics.bytes_persisted = a->metrics.total_bytes = 0;
	a->message.metrics = &a->metrics;
	a->message.finished_operators = r->has_finished_operators;
	a->message.finished_on_restore = r->is_finished_on_restore;
	if (bytes > 0) {
		a->message.state.data = malloc(bytes);
		CHECK(a->message.state.data != NULL);
		a->message.state.len = bytes;
		task_state_encode(&state, a->message.state.data);
	}
	s->ack_count++;
	s->ack_bytes += bytes;
}

/* ---- numbers ---- */

struct counters {
	uint32_t count;
	Weir__OperatorCounter rows[COUNTERS_MAX];
	Weir__OperatorCounter *pointers[COUNTERS_MAX];
};

static void add_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	struct counters *c = context;

	if (c->count == COUNTERS_MAX)
		return;
	Weir__OperatorCounter *row = &c->rows[c->count];
	weir__operator_counter__init(row);
	row->uid = (char *)(uintptr_t)uid;
	row->name = (char *)(uintptr_t)name;
	row->value = value;
	c->pointers[c->count++] = row;
}

static void fill_numbers(struct report_sender *s, Weir__TaskNumbers *m,
		const struct task_numbers *n, struct counters *counters)
{
	weir__task_numbers__init(m);
	m->attempt = message_id_bytes(&n->attempt.id);
	m->records_in = n->records_in;
	m->records_out = n->records_out;
	m->bytes_in = n->bytes_in;
	m->bytes_out = n->bytes_out;
	m->buffers_in = n->buffers_in;
	m->buffers_out = n->buffers_out;
	m->busy_ns = n->busy_ns;
	m->idle_ns = n->idle_ns;
	m->backpressured_ns = n->backpressured_ns;
	m->watermark = n->watermark;
	m->read_at_ns = clock_monotonic_ns();
	m->checkpoint_step = n->step;
	m->checkpoint_step_ns = n->step_ns;
	m->stuck_ns = n->stuck_ns;
	counters->count = 0;
	taskmanager_visit_counters(s->taskmanager, n->attempt, add_counter, counters);
	m->n_counters = counters->count;
	m->counters = counters->pointers;
}

/* The numbers of one attempt, or NULL. */
static const struct task_numbers *find_numbers(struct report_sender *s, struct attempt_id attempt)
{
	uint32_t count = taskmanager_numbers(s->taskmanager, s->numbers, TASKS_MAX);

	for (uint32_t i = 0; i < count; i++)
		if (id128_is_equal(s->numbers[i].attempt.id, attempt.id))
			return &s->numbers[i];
	return NULL;
}

static bool fill_link(const struct taskmanager *tm, Weir__LinkNumbers *m)
{
	struct link_numbers n;

	weir__link_numbers__init(m);
	if (!taskmanager_link_numbers(tm, &n))
		return false;
	m->queues = n.queue_count;
	m->links = n.link_count;
	m->frames_in = n.frames_in;
	m->frames_out = n.frames_out;
	m->bytes_in = n.bytes_in;
	m->bytes_out = n.bytes_out;
	m->resent = n.resent;
	m->late = n.late;
	m->duplicates = n.duplicates;
	m->corrupt = n.corrupt;
	m->malformed = n.malformed;
	m->unclaimed = n.unclaimed;
	m->partial_bursts = n.partial_bursts;
	m->credit_waits = n.credit_waits;
	m->window_waits = n.window_waits;
	m->rtt_ns = n.rtt_ns;
	m->window = n.window;
	m->handed_over = n.handed_over;
	m->hand_over_full = n.hand_over_full;
	return true;
}

void report_sender_heartbeat(struct report_sender *s, struct connection *c)
{
	uint32_t count = taskmanager_numbers(s->taskmanager, s->numbers, TASKS_MAX);
	Weir__TaskNumbers *rows = calloc(count + 1, sizeof(*rows));
	Weir__TaskNumbers **pointers = calloc(count + 1, sizeof(*pointers));
	/* Large, and hardly used: not worth its zeros. */
	struct counters *counters = malloc((count + 1) * sizeof(*counters));
	Weir__TaskHeartbeat m = WEIR__TASK_HEARTBEAT__INIT;
	Weir__LinkNumbers link;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	CHECK(rows != NULL && pointers != NULL && counters != NULL);
	for (uint32_t i = 0; i < count; i++) {
		fill_numbers(s, &rows[i], &s->numbers[i], &counters[i]);
		pointers[i] = &rows[i];
	}
	m.n_tasks = count;
	m.tasks = pointers;
	m.link = fill_link(s->taskmanager, &link) ? &link : NULL;
	e.body_case = WEIR__ENVELOPE__BODY_TASK_HEARTBEAT;
	e.task_heartbeat = &m;
	(void)connection_send(c, &e);
	free(rows);
	free(pointers);
	free(counters);
}

/* ---- the other reports ---- */

static Weir__AttemptState state_of(enum task_status status)
{
	static const Weir__AttemptState states[] = {
			[TASK_CREATED] = WEIR__ATTEMPT_STATE__TASK_CREATED,
			[TASK_DEPLOYING] = WEIR__ATTEMPT_STATE__TASK_DEPLOYING,
			[TASK_INITIALIZING] = WEIR__ATTEMPT_STATE__TASK_INITIALIZING,
			[TASK_RUNNING] = WEIR__ATTEMPT_STATE__TASK_RUNNING,
			[TASK_CANCELING] = WEIR__ATTEMPT_STATE__TASK_CANCELING,
			[TASK_FINISHED] = WEIR__ATTEMPT_STATE__TASK_FINISHED,
			[TASK_CANCELED] = WEIR__ATTEMPT_STATE__TASK_CANCELED,
			[TASK_FAILED] = WEIR__ATTEMPT_STATE__TASK_FAILED,
	};

	CHECK(status <= TASK_FAILED);
	return states[status];
}

static void send_status(struct report_sender *s, struct connection *c, const struct report *r)
{
	Weir__TaskStatus m = WEIR__TASK_STATUS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	Weir__TaskNumbers numbers;
	struct counters *counters = NULL;

	m.attempt = message_id_bytes(&r->attempt.id);
	m.state = state_of(r->status);
	m.is_final = r->is_final;
	if (r->status == TASK_FAILED)
		m.error = (char *)(uintptr_t)r->text;
	if (r->status >= TASK_FINISHED) {
		const struct task_numbers *n = find_numbers(s, r->attempt);

		counters = n == NULL ? NULL : calloc(1, sizeof(*counters));
		if (counters != NULL) {
			fill_numbers(s, &numbers, n, counters);
			m.numbers = &numbers;
		}
	}
	e.body_case = WEIR__ENVELOPE__BODY_TASK_STATUS;
	e.task_status = &m;
	(void)connection_send(c, &e);
	free(counters);
}

static Weir__DeclineReason reason_of(enum decline_reason reason)
{
	static const Weir__DeclineReason reasons[] = {
			[DECLINE_TASK_NOT_READY] = WEIR__DECLINE_REASON__DECLINED_TASK_NOT_READY,
			[DECLINE_TASK_CLOSING] = WEIR__DECLINE_REASON__DECLINED_TASK_CLOSING,
			[DECLINE_TASK_FAILURE] = WEIR__DECLINE_REASON__DECLINED_TASK_FAILURE,
			[DECLINE_SUBSUMED] = WEIR__DECLINE_REASON__DECLINED_SUBSUMED,
			[DECLINE_ON_CANCELLATION_BARRIER] =
					WEIR__DECLINE_REASON__DECLINED_ON_CANCELLATION_BARRIER,
			[DECLINE_INPUT_END_OF_STREAM] =
					WEIR__DECLINE_REASON__DECLINED_INPUT_END_OF_STREAM,
			[DECLINE_ASYNC_EXCEPTION] = WEIR__DECLINE_REASON__DECLINED_ASYNC_EXCEPTION,
			[DECLINE_SHARED_STREAM] = WEIR__DECLINE_REASON__DECLINED_SHARED_STREAM,
			[DECLINE_CHECKPOINT_SUBSUMED] =
					WEIR__DECLINE_REASON__DECLINED_CHECKPOINT_SUBSUMED,
			[DECLINE_OTHER] = WEIR__DECLINE_REASON__DECLINED_OTHER,
	};

	CHECK(reason <= DECLINE_OTHER);
	return reasons[reason];
}

static void send_decline(struct connection *c, const struct report *r)
{
	Weir__DeclineCheckpoint m = WEIR__DECLINE_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&r->attempt.id);
	m.checkpoint_id = r->checkpoint_id;
	m.reason = reason_of(r->reason);
	m.text = (char *)(uintptr_t)r->text;
	e.body_case = WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT;
	e.decline_checkpoint = &m;
	(void)connection_send(c, &e);
}

static void send_end_of_data(struct connection *c, const struct report *r)
{
	Weir__EndOfData m = WEIR__END_OF_DATA__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&r->attempt.id);
	e.body_case = WEIR__ENVELOPE__BODY_END_OF_DATA;
	e.end_of_data = &m;
	(void)connection_send(c, &e);
}

static void send_event(struct connection *c, const struct report *r)
{
	Weir__OperatorEvent m = WEIR__OPERATOR_EVENT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	m.attempt = message_id_bytes(&r->attempt.id);
	m.operator_index = r->operator_index;
	m.data = (ProtobufCBinaryData){r->event_bytes, (uint8_t *)(uintptr_t)r->event};
	e.body_case = WEIR__ENVELOPE__BODY_OPERATOR_EVENT;
	e.operator_event = &m;
	(void)connection_send(c, &e);
}

static void send_report(struct report_sender *s, struct connection *c, const struct report *r)
{
	if (r->kind == REPORT_ACKNOWLEDGE) {
		collect_ack(s, c, r);
		return;
	}
	/* What a task said before goes before. */
	send_acks(s, c);
	switch (r->kind) {
	case REPORT_STATUS:
		send_status(s, c, r);
		break;
	case REPORT_END_OF_DATA:
		send_end_of_data(c, r);
		break;
	case REPORT_DECLINE:
		send_decline(c, r);
		break;
	case REPORT_EVENT:
		send_event(c, r);
		break;
	case REPORT_ACKNOWLEDGE:
		break;
	}
}

void report_sender_drain(struct report_sender *s, struct connection *c)
{
	const struct report *r;

	while ((r = taskmanager_next_report(s->taskmanager)) != NULL) {
		if (r->kind == REPORT_STATUS && r->status == TASK_FAILED)
			log_error("task_executor", "a task failed: %s", r->text);
		if (c != NULL)
			send_report(s, c, r);
		taskmanager_release_report(s->taskmanager, r);
	}
	if (c != NULL)
		send_acks(s, c);
}
