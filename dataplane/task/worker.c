#include "dataplane/task/worker.h"

#include <errno.h>
#include <rte_pause.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/channel/pointer_queue.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/checkpoint/store_share.h"
#include "dataplane/task/link_port.h"
#include "dataplane/task/report_bell.h"
#include "dataplane/task/report_roll.h"
#include "dataplane/task/task.h"
#include "dataplane/wire/buf.h"

enum {
	REPORT_POOL_COUNT = 256,
	MAIL_BURST_MAX = 64,
	IDLE_SPIN_NS = 200000, /* idle for so long before the first sleep: a few buffers' time */
	LONG_SPIN_NS = 5000000, /* the same while the disk, or an operator, is about to go on */
	IDLE_SLEEP_NS_MIN = 20000,
	IDLE_SLEEP_NS_MAX = 500000,
	SLEEP_SLACK_NS = 2000,
	PARKED_NS_MAX = 100000000,
	REGIONS_MAX = 32, /* of the pool's memory */
};

/* A report and the task it is from. */
struct worker_report {
	struct report report;
	struct task *task;
};

struct worker {
	struct worker_config config;
	struct store *store;
	struct store_share *share;
	char storage[2 * STORE_WHY_BYTES + 2];
	struct pointer_queue *mail, *mail_back;       /* control -> worker -> control */
	struct pointer_queue *reports, *reports_back; /* worker -> control -> worker */
	struct worker_report *pool;
	uint32_t free_count;
	struct worker_report *free_reports[REPORT_POOL_COUNT];
	struct report_bell bell; /* for acknowledgements */
	uint32_t task_count;
	struct task *tasks[TASKS_PER_WORKER_MAX];
	uint64_t turn_ns;       /* when the last turn began */
	const struct task *in_call; /* whose turn or mail it is; NULL: nobody's */
	uint64_t idle_since_ns; /* 0: busy */
	uint64_t sleep_ns;      /* of the next sleep */
	atomic_bool must_stop, has_stopped;
	atomic_bool is_parked;  /* sleeps until mail comes, or its time is up */
	sem_t wake;
};

/* ---- life ---- */

static int create_queues(struct worker *w)
{
	w->mail = pointer_queue_create(MAILBOX_COUNT_MAX);
	w->mail_back = pointer_queue_create(MAILBOX_COUNT_MAX);
	w->reports = pointer_queue_create(REPORT_POOL_COUNT);
	w->reports_back = pointer_queue_create(REPORT_POOL_COUNT);
	w->pool = calloc(REPORT_POOL_COUNT, sizeof(w->pool[0]));
	if (w->mail == NULL || w->mail_back == NULL || w->reports == NULL ||
			w->reports_back == NULL || w->pool == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < REPORT_POOL_COUNT; i++)
		w->free_reports[w->free_count++] = &w->pool[i];
	return 0;
}

/* The store, and with it the buffers that it will write. */
static int open_store(struct worker *w, enum store_kind kind)
{
	struct iovec regions[REGIONS_MAX];
	char why[STORE_WHY_BYTES], buffers[STORE_WHY_BYTES];
	int status = store_open(&w->store, kind, why);

	snprintf(w->storage, sizeof(w->storage), "%s", why);
	if (status != 0 || w->config.pool == NULL)
		return status;
	uint32_t count = buf_pool_regions(w->config.pool, regions, REGIONS_MAX);
	status = store_enlist_buffers(w->store, regions, count, w->config.worker_count, buffers);
	if (status != -EOPNOTSUPP)
		snprintf(w->storage, sizeof(w->storage), "%s, %s", why, buffers);
	return 0;
}

int worker_create(struct worker **out, const struct worker_config *config,
		char error[TASKMANAGER_ERROR_BYTES])
{
	enum store_kind kind;
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	CHECK(store_kind_parse(config->storage, &kind));
	CHECK(sem_init(&w->wake, 0, 0) == 0);
	w->config = *config;
	int status = open_store(w, kind);
	if (status == 0)
		status = store_share_create(&w->share, w->store);
	if (status == 0)
		status = create_queues(w);
	if (status != 0) {
		snprintf(error, TASKMANAGER_ERROR_BYTES, "worker %u did not start: %.400s",
				config->index,
				w->storage[0] != '\0' && w->store == NULL ? w->storage
									  : strerror(-status));
		worker_destroy(w);
		return status;
	}
	*out = w;
	return 0;
}

void worker_destroy(struct worker *w)
{
	if (w == NULL)
		return;
	CHECK(w->task_count == 0);
	if (w->share != NULL)
		store_share_destroy(w->share);
	store_destroy(w->store);
	pointer_queue_destroy(w->mail);
	pointer_queue_destroy(w->mail_back);
	pointer_queue_destroy(w->reports);
	pointer_queue_destroy(w->reports_back);
	sem_destroy(&w->wake);
	free(w->pool);
	free(w);
}

const char *worker_storage(const struct worker *w)
{
	return w->storage;
}

struct store_share *worker_store_share(struct worker *w)
{
	return w->share;
}

/* ---- reports ---- */

static void take_back_reports(struct worker *w)
{
	struct worker_report *r;

	while ((r = pointer_queue_pop(w->reports_back)) != NULL) {
		if (r->report.kind == REPORT_ACKNOWLEDGE)
			stream_task_release_state(r->task->stream, r->report.checkpoint_id);
		w->free_reports[w->free_count++] = r;
	}
}

/* The control thread always gives them back, so this ends. */
static struct report *new_report(struct task *task, enum report_kind kind)
{
	struct worker *w = task->worker;

	while (w->free_count == 0) {
		rte_pause();
		take_back_reports(w);
	}
	struct worker_report *r = w->free_reports[--w->free_count];
	r->task = task;
	r->report.kind = kind;
	r->report.attempt = task->attempt;
	r->report.text[0] = '\0';
	return &r->report;
}

static void ring_bell(struct worker *w)
{
	uint64_t one = 1;

	report_bell_rung(&w->bell);
	ssize_t written = write(w->config.report_fd, &one, sizeof(one));
	(void)written; /* a counter at its limit is readable all the same */
}

static void send_report(struct worker *w, struct report *report)
{
	CHECK(pointer_queue_push(w->reports, report));
	ring_bell(w);
}

/* No other task of that job here has still to say its word of this checkpoint. */
static bool is_last(const struct worker *w, const struct task *t, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < w->task_count; i++) {
		const struct task *other = w->tasks[i];

		if (other->group == t->group && other->acknowledged_id < checkpoint_id)
			return false;
	}
	return true;
}

static void send_acknowledgement(struct task *t, struct report *report, uint64_t now_ns)
{
	struct worker *w = t->worker;

	if (report->checkpoint_id > t->acknowledged_id)
		t->acknowledged_id = report->checkpoint_id;
	CHECK(pointer_queue_push(w->reports, report));
	report_bell_hold(&w->bell, now_ns);
	if (is_last(w, t, report->checkpoint_id) &&
			report_roll_answered(t->roll, w->config.index, report->checkpoint_id))
		ring_bell(w);
}

static void ring_for_held(struct worker *w, uint64_t now_ns)
{
	bool is_answering = false;

	if (pointer_queue_is_empty(w->reports)) { /* another worker's bell was for them too */
		report_bell_rung(&w->bell);
		return;
	}
	for (uint32_t i = 0; i < w->task_count; i++)
		is_answering |= stream_task_owes_answer(w->tasks[i]->stream);
	if (report_bell_is_due(&w->bell, is_answering, now_ns))
		ring_bell(w);
}

static struct task *reporting_task(struct task_reporter *r)
{
	return (struct task *)((char *)r - offsetof(struct task, reporter));
}

static void report_status(struct task_reporter *r, enum task_status status, const char *text)
{
	struct task *t = reporting_task(r);
	struct report *report = new_report(t, REPORT_STATUS);

	report->status = status;
	report->is_final = status == TASK_FAILED && stream_task_is_failure_final(t->stream);
	snprintf(report->text, sizeof(report->text), "%s", text);
	send_report(t->worker, report);
}

static void report_end_of_data(struct task_reporter *r)
{
	struct task *t = reporting_task(r);

	crash_point("end-of-input");
	send_report(t->worker, new_report(t, REPORT_END_OF_DATA));
}

static void report_acknowledge(struct task_reporter *r, int64_t checkpoint_id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight, bool has_finished_operators)
{
	struct task *t = reporting_task(r);
	struct report *report = new_report(t, REPORT_ACKNOWLEDGE);

	crash_point("before-ack");
	report->checkpoint_id = checkpoint_id;
	report->metrics = *metrics;
	report->state = state;
	report->in_flight = in_flight;
	report->has_finished_operators = has_finished_operators;
	report->is_finished_on_restore = t->is_finished_on_restore;
	send_acknowledgement(t, report, metrics->ended_ns);
}

static void report_decline(struct task_reporter *r, int64_t checkpoint_id,
		enum decline_reason reason, const char *text)
{
	struct task *t = reporting_task(r);
	struct report *report = new_report(t, REPORT_DECLINE);

	report->checkpoint_id = checkpoint_id;
	report->reason = reason;
	snprintf(report->text, sizeof(report->text), "%s", text);
	send_report(t->worker, report);
}

static void collect_releases(struct task_reporter *r)
{
	take_back_reports(reporting_task(r)->worker);
}

static void report_event(
		struct event_port *port, uint32_t operator_index, const void *data, uint32_t bytes)
{
	struct task *t = (struct task *)((char *)port - offsetof(struct task, events));
	struct report *report = new_report(t, REPORT_EVENT);

	CHECK(bytes <= REPORT_EVENT_BYTES_MAX);
	report->operator_index = operator_index;
	report->event_bytes = bytes;
	memcpy(report->event, data, bytes);
	send_report(t->worker, report);
}

const struct report *worker_next_report(struct worker *w)
{
	return pointer_queue_pop(w->reports);
}

struct task *worker_report_task(const struct report *report)
{
	return ((const struct worker_report *)(const void *)report)->task;
}

bool worker_owns_report(const struct worker *w, const struct report *report)
{
	const struct worker_report *r = (const struct worker_report *)(const void *)report;

	return r >= w->pool && r < w->pool + REPORT_POOL_COUNT;
}

void worker_release_report(struct worker *w, const struct report *report)
{
	CHECK(pointer_queue_push(w->reports_back, (void *)(uintptr_t)report));
}

void worker_adopt(struct worker *w, struct task *t)
{
	t->worker = w;
	report_roll_expect(t->roll, w->config.index);
	t->reporter = (struct task_reporter){
		.status = report_status,
		.end_of_data = report_end_of_data,
		.acknowledge = report_acknowledge,
		.decline = report_decline,
		.collect = collect_releases,
	};
	t->events.send = report_event;
}

/* ---- mail ---- */

/* Whoever gives it something to do, after that. */
void worker_wake_mt(struct worker *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_exchange(&w->is_parked, false))
		sem_post(&w->wake);
}

bool worker_post(struct worker *w, struct mail *m)
{
	worker_free_mail(w);
	if (!pointer_queue_push(w->mail, m))
		return false;
	m->task->mail_count++;
	worker_wake_mt(w);
	return true;
}

void worker_free_mail(struct worker *w)
{
	struct mail *m;

	while ((m = pointer_queue_pop(w->mail_back)) != NULL) {
		m->task->mail_count--;
		free(m);
	}
}

static void attach(struct worker *w, struct task *t)
{
	CHECK(w->task_count < TASKS_PER_WORKER_MAX);
	w->tasks[w->task_count++] = t;
	stream_task_start(t->stream);
}

static void carry_out(struct worker *w, const struct mail *m, uint64_t now_ns)
{
	struct stream_task *s = m->task->stream;

	switch (m->kind) {
	case MAIL_ATTACH:
		attach(w, m->task);
		break;
	case MAIL_TRIGGER:
		stream_task_trigger_checkpoint(s, &m->request, now_ns);
		crash_point("after-barrier");
		break;
	case MAIL_CONFIRM:
		stream_task_notify_complete(s, m->checkpoint_id);
		break;
	case MAIL_ABORT:
		stream_task_notify_aborted(s, m->checkpoint_id, m->latest_completed_id);
		break;
	case MAIL_EVENT:
		stream_task_operator_event(s, m->operator_index, m->data, m->bytes);
		break;
	case MAIL_FAIL:
		stream_task_fail(s, (const char *)m->data);
		break;
	case MAIL_CANCEL:
		stream_task_cancel(s);
		break;
	}
}

/* For those who wonder where the worker is. */
static void enter_call(struct worker *w, const struct task *t)
{
	__atomic_store_n(&w->in_call, t, __ATOMIC_RELAXED);
}

/* The task has ended meanwhile (12.3): who waits for an answer gets one, other mail is dropped. */
static void return_to_sender(const struct mail *m)
{
	if (m->kind == MAIL_TRIGGER)
		report_decline(&m->task->reporter, m->request.checkpoint_id, DECLINE_TASK_CLOSING,
				"the task has ended");
}

static uint32_t take_mail(struct worker *w, uint64_t now_ns)
{
	uint32_t count = 0;

	while (count < MAIL_BURST_MAX) {
		struct mail *m = pointer_queue_pop(w->mail);

		if (m == NULL)
			break;
		enter_call(w, m->task);
		if (!atomic_load_explicit(&m->task->is_detached, memory_order_relaxed))
			carry_out(w, m, now_ns);
		else
			return_to_sender(m);
		CHECK(pointer_queue_push(w->mail_back, m));
		count++;
	}
	return count;
}

/* ---- the turn ---- */

static bool has_task_of(const struct worker *w, const struct task_group *g)
{
	for (uint32_t i = 0; i < w->task_count; i++) {
		if (w->tasks[i]->group == g)
			return true;
	}
	return false;
}

/* The control thread may free it from then on. */
static void let_go(struct worker *w, uint32_t index)
{
	struct task *t = w->tasks[index];

	w->tasks[index] = w->tasks[--w->task_count];
	if (!has_task_of(w, t->group))
		report_roll_left(t->roll, w->config.index);
	atomic_store_explicit(&t->is_detached, true, memory_order_release);
}

static uint32_t run_tasks(struct worker *w, uint64_t now_ns)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < w->task_count; i++) {
		struct task *t = w->tasks[i];

		enter_call(w, t);
		work += stream_task_turn(t->stream, now_ns);
		if (stream_task_is_ended(t->stream))
			let_go(w, i--);
	}
	return work;
}

uint32_t worker_turn(struct worker *w)
{
	uint64_t now_ns = w->config.clock->now_ns(w->config.clock);

	uint32_t work = take_mail(w, now_ns);
	take_back_reports(w);
	if (w->config.port != NULL)
		work += link_port_turn(w->config.port, now_ns);
	work += run_tasks(w, now_ns);
	enter_call(w, NULL);
	work += store_share_poll(w->share);
	if (w->bell.is_holding)
		ring_for_held(w, now_ns);
	if (work > 0)
		w->idle_since_ns = 0;
	else if (w->idle_since_ns == 0)
		w->idle_since_ns = now_ns;
	__atomic_store_n(&w->turn_ns, now_ns, __ATOMIC_RELAXED);
	return work;
}

uint64_t worker_in_call_since_mt(const struct worker *w, const struct task *t)
{
	if (__atomic_load_n(&w->in_call, __ATOMIC_RELAXED) != t)
		return 0;
	return __atomic_load_n(&w->turn_ns, __ATOMIC_RELAXED);
}

/* Sleeps for so long at most; mail ends it. */
static void park(struct worker *w, uint64_t ns)
{
	struct timespec until;

	atomic_store(&w->is_parked, true);
	atomic_thread_fence(memory_order_seq_cst);
	/* What came before it could see us parked did not wake us. */
	if (worker_turn(w) > 0 || atomic_load(&w->must_stop)) {
		atomic_store(&w->is_parked, false);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)sem_clockwait(&w->wake, CLOCK_MONOTONIC, &until);
	atomic_store(&w->is_parked, false);
}

/* Has tasks, or links of tasks elsewhere on this TaskManager. */
static bool is_needed(const struct worker *w)
{
	return w->task_count > 0 ||
			(w->config.port != NULL && link_port_is_needed(w->config.port));
}

/* An operator that holds its input back goes on soon, and the barrier that overtakes what waits for
 * it passes every worker on its way. */
static bool is_held(const struct worker *w)
{
	for (uint32_t i = 0; i < w->task_count; i++) {
		if (stream_task_holds_input(w->tasks[i]->stream))
			return true;
	}
	return false;
}

/* First the core is offered to whoever else waits for it, such as a thread that reads ahead for a
 * source; then sleep longer and longer, never longer than IDLE_SLEEP_NS_MAX, and only shortly while
 * the disk is about to answer, for what a checkpoint asks of it goes step after step.
 * Without a task only mail makes work: a TaskManager that stands by must cost nothing, for one that
 * looks every half millisecond disturbs whoever works on the same core. */
static void back_off(struct worker *w)
{
	bool is_on_disk = !store_share_is_idle(w->share);
	uint64_t idle_ns = w->turn_ns - w->idle_since_ns;

	if (w->config.must_spin) {
		rte_pause();
	} else if (idle_ns < (is_on_disk || is_held(w) ? LONG_SPIN_NS : IDLE_SPIN_NS)) {
		w->sleep_ns = IDLE_SLEEP_NS_MIN;
		sched_yield();
	} else if (!is_needed(w)) {
		park(w, PARKED_NS_MAX);
	} else if (is_on_disk) {
		park(w, IDLE_SLEEP_NS_MIN);
	} else {
		park(w, w->sleep_ns);
		w->sleep_ns = w->sleep_ns < IDLE_SLEEP_NS_MAX / 2 ? 2 * w->sleep_ns
								  : IDLE_SLEEP_NS_MAX;
	}
}

int worker_run(void *worker)
{
	struct worker *w = worker;

	/* The kernel's own 50 us would be longer than the sleep asked for. */
	(void)prctl(PR_SET_TIMERSLACK, SLEEP_SLACK_NS);
	while (!atomic_load_explicit(&w->must_stop, memory_order_relaxed) || is_needed(w)) {
		if (worker_turn(w) == 0)
			back_off(w);
	}
	atomic_store(&w->has_stopped, true);
	return 0;
}

void worker_request_stop_mt(struct worker *w)
{
	atomic_store(&w->must_stop, true);
	worker_wake_mt(w);
}

bool worker_has_stopped_mt(const struct worker *w)
{
	return atomic_load(&w->has_stopped);
}
