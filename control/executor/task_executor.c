#include "control/executor/task_executor.h"

#include "control/executor/report_sender.h"
#include "control/executor/submission.h"
#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/control_thread.h"
#include "dataplane/base/log.h"
#include "dataplane/task/taskmanager.h"
#include "dataplane/wire/event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RETRY_MIN_MS = 50,
	RETRY_MAX_MS = 1000,
	GATHER_MS = 100, /* before the coordinator has said how often */
};

/* The job file of tasks that were deployed together. */
struct deployed {
	struct deployed *next;
	struct attempt_id first; /* of them */
	struct submission *submission;
};

struct task_executor {
	struct task_executor_config config;
	struct connection *connection; /* NULL: not connected */
	bool is_registered;
	struct report_sender *reports;
	struct loop_watch *report_watch;
	struct loop_timer *retry; /* until the next connection */
	struct loop_timer *beat;
	uint64_t retry_ms, interval_ns, timeout_ns, heard_ns, beat_at_ns;
	struct deployed *deployed;
	char host_name[256];
};

/* ---- jobs ---- */

/* Frees the files of tasks that are gone.  True: none is left. */
static bool forget_gone(struct task_executor *e)
{
	struct deployed **at = &e->deployed;

	while (*at != NULL) {
		struct deployed *d = *at;

		if (taskmanager_has_deployed(e->config.taskmanager, d->first)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		submission_destroy(d->submission);
		free(d);
	}
	return e->deployed == NULL;
}

static int deploy(struct task_executor *e, const Weir__SubmitTasks *m,
		char text[SUBMISSION_TEXT_BYTES])
{
	char error[TASKMANAGER_ERROR_BYTES] = "";
	struct submission *s;

	forget_gone(e);
	struct deployed *d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -ENOMEM;
	int rc = submission_create(&s, m, e->config.config, text);
	if (rc == 0) {
		rc = taskmanager_deploy(
				e->config.taskmanager, submission_deployment(s), error);
		if (rc != 0) {
			snprintf(text, SUBMISSION_TEXT_BYTES, "%s", error);
			submission_destroy(s);
		}
	}
	if (rc != 0) {
		free(d);
		return rc;
	}
	*d = (struct deployed){e->deployed, submission_deployment(s)->tasks[0].attempt, s};
	e->deployed = d;
	log_info("task_executor", "%zu tasks of job %s are deployed", m->n_tasks, m->job_name);
	return 0;
}

static void on_submit(struct task_executor *e, const Weir__SubmitTasks *m)
{
	char text[SUBMISSION_TEXT_BYTES] = "out of memory";
	Weir__DeployAnswer answer = WEIR__DEPLOY_ANSWER__INIT;
	Weir__Envelope envelope = WEIR__ENVELOPE__INIT;

	answer.deployment = m->deployment;
	/* State is zeroed and read: workers of other jobs go on meanwhile. */
	bool was_first = control_thread_yield();
	answer.status = deploy(e, m, text);
	control_thread_resume(was_first);
	if (answer.status != 0) {
		answer.error = text;
		log_error("task_executor", "job %s is refused: %s", m->job_name, text);
	}
	envelope.body_case = WEIR__ENVELOPE__BODY_DEPLOY_ANSWER;
	envelope.deploy_answer = &answer;
	(void)connection_send(e->connection, &envelope);
	/* Building took its time; the coordinator's beats wait to be read. */
	e->heard_ns = clock_monotonic_ns();
	e->beat_at_ns = e->heard_ns;
}

/* ---- calls to attempts ---- */

/* TE-1 */
static void decline_unknown(
		struct task_executor *e, const ProtobufCBinaryData *attempt, int64_t checkpoint_id)
{
	Weir__DeclineCheckpoint m = WEIR__DECLINE_CHECKPOINT__INIT;
	Weir__Envelope envelope = WEIR__ENVELOPE__INIT;

	m.attempt = *attempt;
	m.checkpoint_id = checkpoint_id;
	m.reason = WEIR__DECLINE_REASON__DECLINED_NO_SUCH_TASK;
	m.text = (char *)"no such task runs here";
	envelope.body_case = WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT;
	envelope.decline_checkpoint = &m;
	(void)connection_send(e->connection, &envelope);
}

static enum snapshot_kind kind_of(Weir__SnapshotKind kind)
{
	switch (kind) {
	case WEIR__SNAPSHOT_KIND__SAVEPOINT:
		return SNAPSHOT_SAVEPOINT;
	case WEIR__SNAPSHOT_KIND__SAVEPOINT_SUSPEND:
		return SNAPSHOT_SAVEPOINT_SUSPEND;
	case WEIR__SNAPSHOT_KIND__SAVEPOINT_TERMINATE:
		return SNAPSHOT_SAVEPOINT_TERMINATE;
	case WEIR__SNAPSHOT_KIND__FULL_CHECKPOINT:
		return SNAPSHOT_FULL_CHECKPOINT;
	default:
		return SNAPSHOT_CHECKPOINT;
	}
}

static void on_trigger(struct task_executor *e, const Weir__TriggerCheckpoint *m)
{
	struct checkpoint_request request = {
			.checkpoint_id = m->checkpoint_id,
			.timestamp_ms = m->timestamp_ms,
			.kind = kind_of(m->kind),
			.alignment = (uint8_t)m->alignment,
			.aligned_timeout_ms = m->aligned_timeout_ms,
			.location = m->location[0] == 0 ? NULL : m->location,
			.heard_ns = e->heard_ns,
	};

	for (size_t i = 0; i < m->n_attempts; i++) {
		struct attempt_id attempt = {message_id(&m->attempts[i])};

		if (taskmanager_trigger_checkpoint(e->config.taskmanager, attempt, &request) != 0)
			decline_unknown(e, &m->attempts[i], m->checkpoint_id);
	}
}

/* Those that are gone need no place (TE-1); the coordinator waits for the answer all the same. */
static void on_locate(struct task_executor *e, const Weir__LocateSavepoint *m)
{
	Weir__SavepointLocated answer = WEIR__SAVEPOINT_LOCATED__INIT;
	Weir__Envelope envelope = WEIR__ENVELOPE__INIT;

	for (size_t i = 0; i < m->n_attempts; i++) {
		struct attempt_id attempt = {message_id(&m->attempts[i])};
		int rc = taskmanager_locate_savepoint(e->config.taskmanager, attempt,
				m->checkpoint_id, m->location);

		if (rc != 0 && rc != -ENOENT)
			log_error("task_executor", "savepoint %" PRId64 " cannot go to %s: %s",
					m->checkpoint_id, m->location, strerror(-rc));
	}
	answer.checkpoint_id = m->checkpoint_id;
	answer.attempt = m->attempts[0];
	envelope.body_case = WEIR__ENVELOPE__BODY_SAVEPOINT_LOCATED;
	envelope.savepoint_located = &answer;
	(void)connection_send(e->connection, &envelope);
}

/* Nobody waits for an answer to these: a task that is gone needs no notice (TE-1). */
static void on_confirm(struct task_executor *e, const Weir__ConfirmCheckpoint *m)
{
	for (size_t i = 0; i < m->n_attempts; i++) {
		struct attempt_id attempt = {message_id(&m->attempts[i])};

		(void)taskmanager_confirm_checkpoint(e->config.taskmanager, attempt,
				m->checkpoint_id, m->last_subsumed_id);
	}
}

static void on_abort(struct task_executor *e, const Weir__AbortCheckpoint *m)
{
	for (size_t i = 0; i < m->n_attempts; i++) {
		struct attempt_id attempt = {message_id(&m->attempts[i])};

		(void)taskmanager_abort_checkpoint(e->config.taskmanager, attempt,
				m->checkpoint_id, m->latest_completed_id);
	}
}

/* One that is not here has ended, and its last status is on its way or was sent. */
static void on_cancel(struct task_executor *e, const Weir__CancelTasks *m)
{
	for (size_t i = 0; i < m->n_attempts; i++) {
		struct attempt_id attempt = {message_id(&m->attempts[i])};

		(void)taskmanager_cancel(e->config.taskmanager, attempt);
	}
}

static void on_event(struct task_executor *e, const Weir__OperatorEvent *m)
{
	struct attempt_id attempt = {message_id(&m->attempt)};

	if (m->data.len <= REPORT_EVENT_BYTES_MAX)
		(void)taskmanager_operator_event(e->config.taskmanager, attempt,
				m->operator_index, m->data.data, (uint32_t)m->data.len);
}

/* ---- the connection ---- */

static void retry_later(struct task_executor *e)
{
	loop_timer_set(e->retry, e->retry_ms * 1000000);
	e->retry_ms = e->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : e->retry_ms * 2;
}

/* The coordinator is gone. */
static void disconnect(struct task_executor *e, const char *reason)
{
	if (e->is_registered || e->retry_ms == RETRY_MIN_MS)
		log_warn("task_executor", "no coordinator at %s:%u: %s", e->config.host,
				e->config.port, reason);
	connection_close(e->connection);
	e->connection = NULL;
	e->is_registered = false;
	taskmanager_cancel_all(e->config.taskmanager);
	retry_later(e);
}

static void on_registered(struct task_executor *e, const Weir__Registered *m)
{
	if (!m->accepted) {
		e->config.refused(e->config.context, m->error);
		return;
	}
	e->is_registered = true;
	e->retry_ms = RETRY_MIN_MS;
	if (m->heartbeat_interval_ms > 0)
		e->interval_ns = m->heartbeat_interval_ms * UINT64_C(1000000);
	e->timeout_ns = m->heartbeat_timeout_ms * UINT64_C(1000000);
	log_info("task_executor", "registered as %s at %s:%u", e->config.id, e->config.host,
			e->config.port);
}

static void on_received(void *owner, struct connection *c, const Weir__Envelope *m)
{
	struct task_executor *e = owner;

	(void)c;
	e->heard_ns = clock_monotonic_ns();
	switch (m->body_case) {
	case WEIR__ENVELOPE__BODY_REGISTERED:
		on_registered(e, m->registered);
		break;
	case WEIR__ENVELOPE__BODY_COORDINATOR_HEARTBEAT:
		break;
	case WEIR__ENVELOPE__BODY_SUBMIT_TASKS:
		on_submit(e, m->submit_tasks);
		break;
	case WEIR__ENVELOPE__BODY_CANCEL_TASKS:
		on_cancel(e, m->cancel_tasks);
		break;
	case WEIR__ENVELOPE__BODY_TRIGGER_CHECKPOINT:
		on_trigger(e, m->trigger_checkpoint);
		break;
	case WEIR__ENVELOPE__BODY_LOCATE_SAVEPOINT:
		on_locate(e, m->locate_savepoint);
		break;
	case WEIR__ENVELOPE__BODY_CONFIRM_CHECKPOINT:
		on_confirm(e, m->confirm_checkpoint);
		break;
	case WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT:
		on_abort(e, m->abort_checkpoint);
		break;
	case WEIR__ENVELOPE__BODY_OPERATOR_EVENT:
		on_event(e, m->operator_event);
		break;
	default:
		log_warn("task_executor", "a message that is not for a TaskManager: %s",
				message_name(m));
		break;
	}
}

static void on_closed(void *owner, struct connection *c, const char *reason)
{
	(void)c;
	disconnect(owner, reason);
}

static const struct connection_events events = {on_received, on_closed};

static void send_register(struct task_executor *e)
{
	Weir__RegisterTaskManager m = WEIR__REGISTER_TASK_MANAGER__INIT;
	Weir__Envelope envelope = WEIR__ENVELOPE__INIT;

	m.id = (char *)(uintptr_t)e->config.id;
	m.pid = (uint32_t)getpid();
	m.host = e->host_name;
	m.slot_count = e->config.worker_count;
	m.n_cores = e->config.worker_count;
	m.cores = (uint32_t *)(uintptr_t)e->config.cores;
	m.abi_version = WEIR_ABI_VERSION;
	m.version = (char *)WEIR_VERSION;
	m.protocol_version = MESSAGE_PROTOCOL_VERSION;
	m.pool_bytes = e->config.pool_bytes;
	m.state_bytes = e->config.state_bytes;
	m.pages = (char *)(uintptr_t)e->config.pages;
	m.link_address = (char *)(uintptr_t)e->config.link_address;
	m.link_port = (char *)(uintptr_t)e->config.link_port;
	if (e->config.packet_ports != NULL)
		m.packet_ports = (char *)(uintptr_t)e->config.packet_ports;
	envelope.body_case = WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER;
	envelope.register_task_manager = &m;
	(void)connection_send(e->connection, &envelope);
}

static void on_retry(void *context)
{
	struct task_executor *e = context;

	report_sender_drain(e->reports, NULL);
	/* Tasks of a coordinator that is gone must be gone too before a new one asks for room. */
	if (!forget_gone(e) ||
			tcp_connection_open(&e->connection, e->config.loop, e->config.host,
					e->config.port, &events, e) != 0) {
		retry_later(e);
		return;
	}
	e->heard_ns = clock_monotonic_ns();
	send_register(e);
}

/* ---- reports and heartbeats ---- */

static void on_reports(void *context)
{
	struct task_executor *e = context;
	uint64_t count;
	ssize_t n = read(taskmanager_report_fd(e->config.taskmanager), &count, sizeof(count));

	(void)n; /* nothing to read: somebody was faster */
	report_sender_drain(e->reports, e->is_registered ? e->connection : NULL);
}

static void on_beat(void *context)
{
	struct task_executor *e = context;
	uint64_t now_ns = clock_monotonic_ns();

	loop_timer_set(e->beat, e->interval_ns);
	forget_gone(e);
	/* When we ourselves did not run for a while, its beats wait to be read. */
	if (now_ns - e->beat_at_ns > e->interval_ns + e->timeout_ns / 2)
		e->heard_ns = now_ns;
	e->beat_at_ns = now_ns;
	if (!e->is_registered)
		return;
	if (now_ns - e->heard_ns > e->timeout_ns) {
		disconnect(e, "no heartbeat");
		return;
	}
	report_sender_heartbeat(e->reports, e->connection);
}

/* ---- life ---- */

int task_executor_create(struct task_executor **out, const struct task_executor_config *config)
{
	struct task_executor *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return -ENOMEM;
	e->config = *config;
	e->retry_ms = RETRY_MIN_MS;
	e->interval_ns = GATHER_MS * UINT64_C(1000000);
	e->beat_at_ns = clock_monotonic_ns();
	if (gethostname(e->host_name, sizeof(e->host_name) - 1) != 0)
		e->host_name[0] = '?';
	int rc = report_sender_create(&e->reports, config->taskmanager);
	if (rc == 0)
		rc = loop_timer_create(&e->retry, config->loop, on_retry, e);
	if (rc == 0)
		rc = loop_timer_create(&e->beat, config->loop, on_beat, e);
	if (rc == 0)
		rc = loop_watch_create(&e->report_watch, config->loop,
				taskmanager_report_fd(config->taskmanager), on_reports, e);
	if (rc != 0) {
		task_executor_destroy(e);
		return rc;
	}
	loop_timer_set(e->retry, 0);
	loop_timer_set(e->beat, e->interval_ns);
	*out = e;
	return 0;
}

void task_executor_destroy(struct task_executor *e)
{
	if (e == NULL)
		return;
	if (e->connection != NULL)
		connection_close(e->connection);
	loop_watch_destroy(e->report_watch);
	loop_timer_destroy(e->beat);
	loop_timer_destroy(e->retry);
	report_sender_destroy(e->reports);
	for (struct deployed *d = e->deployed, *next; d != NULL; d = next) {
		next = d->next;
		submission_destroy(d->submission);
		free(d);
	}
	free(e);
}
