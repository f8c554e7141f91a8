#include "dataplane/task/taskmanager_internal.h"

#include <errno.h>
#include <rte_launch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/channel/input_gate.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/wire/buf.h"

enum { STOP_ROUNDS_MAX = 2000, STOP_ROUND_NS = 1000000 };

/* ---- life ---- */

static int create_ports(struct taskmanager *tm)
{
	const struct taskmanager_config *c = &tm->config;
	int rc = 0;

	CHECK(c->link_address.queue_count <= c->worker_count);
	for (uint32_t i = 0; rc == 0 && i < c->link_address.queue_count; i++) {
		struct link_port_config port = {
			.transport = c->transports[i],
			.local = net_address_of_queue(&c->link_address, i),
			.index = i,
			.serves_others = c->is_link_spread,
			.open_count = &tm->open_link_count,
			.gateway = c->link_gateway,
			.port = c->link_port,
			.connect_timeout_ns = c->link_connect_timeout_ns,
			.peer_timeout_ns = c->link_peer_timeout_ns,
			.news_fd = tm->report_fd,
		};

		rc = link_port_create(&tm->ports[i], &port);
		tm->port_count += rc == 0;
	}
	return rc;
}

int taskmanager_create(struct taskmanager **out, const struct taskmanager_config *config,
		char error[TASKMANAGER_ERROR_BYTES])
{
	struct taskmanager *tm = calloc(1, sizeof(*tm));

	if (tm == NULL)
		return -ENOMEM;
	CHECK(config->worker_count >= 1 && config->worker_count <= WORKERS_COUNT_MAX);
	tm->config = *config;
	tm->report_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int status = tm->report_fd < 0 ? -errno : create_ports(tm);
	for (uint32_t i = 0; status == 0 && i < config->worker_count; i++) {
		struct worker_config worker = {
			.index = i,
			.must_spin = config->must_spin,
			.storage = config->storage,
			.pool = config->pool,
			.worker_count = config->worker_count,
			.clock = config->clock,
			.report_fd = tm->report_fd,
			.port = tm->ports[i],
		};

		status = worker_create(&tm->workers[i], &worker, error);
	}
	if (status != 0) {
		taskmanager_destroy(tm);
		return status;
	}
	*out = tm;
	return 0;
}

int taskmanager_start(struct taskmanager *tm, char error[TASKMANAGER_ERROR_BYTES])
{
	for (uint32_t i = 0; i < tm->config.worker_count; i++) {
		uint32_t lcore = tm->config.worker_lcores[i];
		int status = rte_eal_remote_launch(worker_run, tm->workers[i], lcore);

		if (status != 0) {
			snprintf(error, TASKMANAGER_ERROR_BYTES, "lcore %u did not start: %s",
					lcore, strerror(-status));
			return status;
		}
	}
	tm->is_started = true;
	return 0;
}

/* Workers end when they have no task left; meanwhile somebody must read their reports. */
static void drain(struct taskmanager *tm)
{
	const struct report *report;

	while ((report = taskmanager_next_report(tm)) != NULL)
		taskmanager_release_report(tm, report);
	taskmanager_free_groups(tm);
}

static bool have_stopped(const struct taskmanager *tm)
{
	for (uint32_t i = 0; i < tm->config.worker_count; i++) {
		if (!worker_has_stopped_mt(tm->workers[i]))
			return false;
	}
	return true;
}

void taskmanager_stop(struct taskmanager *tm)
{
	struct timespec round = {.tv_nsec = STOP_ROUND_NS};

	if (!tm->is_started)
		return;
	taskmanager_cancel_all(tm);
	for (uint32_t i = 0; i < tm->config.worker_count; i++)
		worker_request_stop_mt(tm->workers[i]);
	for (uint32_t n = 0; n < STOP_ROUNDS_MAX && !have_stopped(tm); n++) {
		drain(tm);
		nanosleep(&round, NULL);
	}
	/* A disk that hangs keeps its task; the process is about to end anyway. */
	if (!have_stopped(tm))
		return;
	rte_eal_mp_wait_lcore();
	drain(tm);
	tm->is_started = false;
}

void taskmanager_destroy(struct taskmanager *tm)
{
	if (tm == NULL || tm->is_started)
		return;
	CHECK(tm->group_count == 0);
	while (tm->local_first != NULL) {
		struct local_report *r = tm->local_first;

		tm->local_first = r->next;
		free(r);
	}
	for (uint32_t i = 0; i < tm->config.worker_count; i++)
		worker_destroy(tm->workers[i]);
	for (uint32_t i = 0; i < tm->port_count; i++)
		link_port_destroy(tm->ports[i]);
	if (tm->report_fd >= 0)
		close(tm->report_fd);
	free(tm);
}

/* ---- calls to one attempt ---- */

static struct task *find_task(struct taskmanager *tm, struct attempt_id attempt)
{
	for (uint32_t i = 0; i < tm->group_count; i++) {
		struct task_group *g = tm->groups[i];

		for (uint32_t k = 0; k < task_group_task_count(g); k++) {
			struct task *t = task_group_task(g, k);

			if (id128_is_equal(t->attempt.id, attempt.id))
				return t;
		}
	}
	return NULL;
}

/* 0, -ENOENT for a task that has ended, -EAGAIN when its worker does not keep up. */
static int post(struct task *t, const struct mail *mail, const void *data)
{
	if (!task_is_alive(t))
		return -ENOENT;
	struct mail *m = calloc(1, sizeof(*m) + mail->bytes);

	if (m == NULL)
		return -ENOMEM;
	*m = *mail;
	m->task = t;
	if (mail->bytes > 0)
		memcpy(m->data, data, mail->bytes);
	if (worker_post(t->worker, m))
		return 0;
	free(m);
	return -EAGAIN;
}

static int decline_here(struct taskmanager *tm, struct attempt_id attempt, int64_t checkpoint_id,
		enum decline_reason reason, const char *text)
{
	struct local_report *r = calloc(1, sizeof(*r));
	uint64_t one = 1;

	if (r == NULL)
		return -ENOMEM;
	r->report.kind = REPORT_DECLINE;
	r->report.attempt = attempt;
	r->report.checkpoint_id = checkpoint_id;
	r->report.reason = reason;
	snprintf(r->report.text, sizeof(r->report.text), "%s", text);
	if (tm->local_first == NULL)
		tm->local_first = r;
	else
		tm->local_last->next = r;
	tm->local_last = r;
	ssize_t written = write(tm->report_fd, &one, sizeof(one));
	(void)written; /* a counter at its limit is readable all the same */
	return 0;
}

int taskmanager_locate_savepoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, const char *location)
{
	struct task *t = find_task(tm, attempt);

	return t == NULL ? -ENOENT : task_group_locate_savepoint(t->group, checkpoint_id, location);
}

/* Its barrier finds the place by the savepoint's id. */
static bool locate(struct task *t, const struct checkpoint_request *request)
{
	return !snapshot_kind_is_savepoint(request->kind) ||
			(request->location != NULL &&
					task_group_locate_savepoint(t->group,
							request->checkpoint_id,
							request->location) == 0);
}

int taskmanager_trigger_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		const struct checkpoint_request *request)
{
	struct task *t = find_task(tm, attempt);
	struct mail mail = {.kind = MAIL_TRIGGER, .request = *request};
	enum decline_reason reason;

	if (t == NULL)
		return -ENOENT;
	const char *refusal = task_refusal(t, request, &reason);
	if (refusal != NULL)
		return decline_here(tm, attempt, request->checkpoint_id, reason, refusal);
	if (!locate(t, request))
		return decline_here(tm, attempt, request->checkpoint_id, DECLINE_TASK_FAILURE,
				"a savepoint needs a place with a path of less than 1024 bytes");
	mail.request.location = NULL;
	if (post(t, &mail, "") == 0)
		return 0;
	return decline_here(tm, attempt, request->checkpoint_id, DECLINE_TASK_CLOSING,
			"the task takes no mail");
}

int taskmanager_confirm_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t last_subsumed_id)
{
	struct task *t = find_task(tm, attempt);
	struct mail mail = {.kind = MAIL_CONFIRM, .checkpoint_id = checkpoint_id};

	(void)last_subsumed_id; /* no operator asks for it yet; it is on the wire (TE-3) */
	return t == NULL ? -ENOENT : post(t, &mail, "");
}

int taskmanager_abort_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t latest_completed_id)
{
	struct task *t = find_task(tm, attempt);
	struct mail mail = {
		.kind = MAIL_ABORT,
		.checkpoint_id = checkpoint_id,
		.latest_completed_id = latest_completed_id,
	};

	return t == NULL ? -ENOENT : post(t, &mail, "");
}

int taskmanager_operator_event(struct taskmanager *tm, struct attempt_id attempt,
		uint32_t operator_index, const void *data, uint32_t bytes)
{
	struct task *t = find_task(tm, attempt);
	struct mail mail = {.kind = MAIL_EVENT, .operator_index = operator_index, .bytes = bytes};

	if (t == NULL)
		return -ENOENT;
	if (bytes > REPORT_EVENT_BYTES_MAX || operator_index >= t->operator_count)
		return -EINVAL;
	return post(t, &mail, data);
}

int taskmanager_cancel(struct taskmanager *tm, struct attempt_id attempt)
{
	struct task *t = find_task(tm, attempt);
	struct mail mail = {.kind = MAIL_CANCEL};

	return t == NULL ? -ENOENT : post(t, &mail, "");
}

void taskmanager_cancel_all(struct taskmanager *tm)
{
	struct mail mail = {.kind = MAIL_CANCEL};

	for (uint32_t i = 0; i < tm->group_count; i++) {
		for (uint32_t k = 0; k < task_group_task_count(tm->groups[i]); k++)
			(void)post(task_group_task(tm->groups[i], k), &mail, "");
	}
}

bool taskmanager_has_deployed(struct taskmanager *tm, struct attempt_id attempt)
{
	taskmanager_free_groups(tm);
	return find_task(tm, attempt) != NULL;
}

/* ---- reports ---- */

int taskmanager_report_fd(struct taskmanager *tm)
{
	return tm->report_fd;
}

static const struct report *next_local_report(struct taskmanager *tm)
{
	struct local_report *r = tm->local_first;

	if (r == NULL)
		return NULL;
	tm->local_first = r->next;
	return &r->report;
}

/* Tasks cannot go on without a link that is lost: those of the group that have not ended fail. */
static void fail_unlinked(struct taskmanager *tm)
{
	for (uint32_t i = 0; i < tm->group_count; i++) {
		struct task_group *g = tm->groups[i];
		const char *text = task_group_take_link_failure(g);
		struct mail mail = {.kind = MAIL_FAIL};

		if (text == NULL)
			continue;
		mail.bytes = (uint32_t)strlen(text) + 1;
		for (uint32_t k = 0; k < task_group_task_count(g); k++)
			(void)post(task_group_task(g, k), &mail, text);
	}
}

const struct report *taskmanager_next_report(struct taskmanager *tm)
{
	if (tm->port_count > 0)
		fail_unlinked(tm);

	const struct report *report = next_local_report(tm);

	for (uint32_t i = 0; report == NULL && i < tm->config.worker_count; i++) {
		report = worker_next_report(tm->workers[tm->next_worker]);
		if (report != NULL && report->kind == REPORT_STATUS)
			worker_report_task(report)->status = report->status;
		tm->next_worker = (tm->next_worker + 1) % tm->config.worker_count;
	}
	return report;
}

void taskmanager_release_report(struct taskmanager *tm, const struct report *report)
{
	for (uint32_t i = 0; i < tm->config.worker_count; i++) {
		if (worker_owns_report(tm->workers[i], report)) {
			worker_release_report(tm->workers[i], report);
			return;
		}
	}
	free((void *)(uintptr_t)report); /* a local one; the report is its first member */
}

/* ---- numbers ---- */

static uint64_t age_of(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns != 0 && now_ns > then_ns ? now_ns - then_ns : 0;
}

static struct task_numbers numbers_of(const struct task *t, uint64_t now_ns)
{
	struct stream_task_progress progress = stream_task_progress(t->stream);
	struct stream_task_times times = stream_task_times(t->stream);
	struct task_numbers n = {
		.attempt = t->attempt,
		.busy_ns = times.busy_ns,
		.idle_ns = times.idle_ns,
		.backpressured_ns = times.backpressured_ns,
		.watermark = chain_current_watermark(t->chain),
		.step = progress.step,
		.step_ns = age_of(progress.since_ns, now_ns),
		.stuck_ns = age_of(worker_in_call_since_mt(t->worker, t), now_ns),
	};

	for (uint32_t i = 0; i < t->input_count; i++) {
		const struct input_gate_counters *c = input_gate_counters(t->inputs[i]);

		n.records_in += __atomic_load_n(&c->records, __ATOMIC_RELAXED);
		n.bytes_in += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
		n.buffers_in += __atomic_load_n(&c->bufs, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; i < t->output_count; i++) {
		const struct output_gate_counters *c = output_gate_counters(t->outputs[i]);

		n.records_out += __atomic_load_n(&c->records, __ATOMIC_RELAXED);
		n.bytes_out += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
		n.buffers_out += __atomic_load_n(&c->bufs, __ATOMIC_RELAXED);
	}
	return n;
}

uint32_t taskmanager_numbers(struct taskmanager *tm, struct task_numbers *out, uint32_t count_max)
{
	uint64_t now_ns = tm->config.clock->now_ns(tm->config.clock);
	uint32_t count = 0;

	for (uint32_t i = 0; i < tm->group_count; i++) {
		struct task_group *g = tm->groups[i];

		for (uint32_t k = 0; k < task_group_task_count(g) && count < count_max; k++)
			out[count++] = numbers_of(task_group_task(g, k), now_ns);
	}
	return count;
}

bool taskmanager_link_numbers(const struct taskmanager *tm, struct link_numbers *out)
{
	*out = (struct link_numbers){.queue_count = tm->port_count};
	for (uint32_t i = 0; i < tm->port_count; i++)
		link_port_add_numbers(tm->ports[i], out);
	return tm->port_count > 0;
}

void taskmanager_visit_counters(struct taskmanager *tm, struct attempt_id attempt,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context)
{
	struct task *t = find_task(tm, attempt);

	if (t != NULL)
		chain_visit_counters(t->chain, visit, context);
}

void taskmanager_print_memory(struct taskmanager *tm, char *text, size_t size)
{
	uint64_t pool = (uint64_t)tm->config.pool_count * tm->config.pool->capacity_bytes;

	snprintf(text, size,
			"buffers         %8u x %6u bytes %10.1f MiB\n"
			"operator state  %31.1f MiB\n"
			"sum             %31.1f MiB\n"
			"storage         %s\n",
			tm->config.pool_count, tm->config.pool->capacity_bytes,
			(double)pool / 1048576.0, (double)tm->config.state_bytes / 1048576.0,
			(double)(pool + tm->config.state_bytes) / 1048576.0,
			worker_storage(tm->workers[0]));
}
