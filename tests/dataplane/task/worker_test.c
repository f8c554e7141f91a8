/* worker: how one without tasks waits, and when it rings for what its tasks have said. */

#include "dataplane/task/worker.h"

#include "dataplane/base/clock.h"
#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/task/report_roll.h"
#include "dataplane/task/task.h"
#include "tests/support/task_fixture.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { MILLISECOND_NS = 1000000, LOOKS_MAX = 40 };

/* Each look moves it by more than any spinning lasts. */
struct counted_clock {
	struct clock clock;
	atomic_uint looks;
};

static uint64_t now_ns(struct clock *c)
{
	return (atomic_fetch_add(&((struct counted_clock *)c)->looks, 1) + 1) *
			(uint64_t)MILLISECOND_NS;
}

static int64_t wall_ms(struct clock *c)
{
	(void)c;
	return 0;
}

static struct counted_clock ticks = {{now_ns, wall_ms}, 0};

static void sleep_ms(long ms)
{
	struct timespec pause = {.tv_nsec = ms * MILLISECOND_NS};

	nanosleep(&pause, NULL);
}

static void *run(void *worker)
{
	worker_run(worker);
	return NULL;
}

static struct worker *start(pthread_t *thread)
{
	char error[TASKMANAGER_ERROR_BYTES];
	struct worker *w;

	cr_assert_eq(worker_create(&w,
				     &(struct worker_config){.storage = "threads",
						     .clock = &ticks.clock,
						     .report_fd = -1},
				     error),
			0);
	cr_assert_eq(pthread_create(thread, NULL, run, w), 0);
	return w;
}

static void stop(struct worker *w, pthread_t thread)
{
	worker_request_stop_mt(w);
	pthread_join(thread, NULL);
	worker_destroy(w);
}

Test(worker, without_tasks_hardly_ever_looks)
{
	pthread_t thread;
	struct worker *w = start(&thread);

	sleep_ms(50);
	unsigned int before = atomic_load(&ticks.looks);
	sleep_ms(400);
	cr_expect_leq(atomic_load(&ticks.looks) - before, LOOKS_MAX);
	stop(w, thread);
}

Test(worker, without_tasks_takes_mail_at_once)
{
	struct timespec began, ended;
	struct task task = {.mail_count = 0};
	pthread_t thread;
	struct worker *w = start(&thread);

	atomic_init(&task.is_detached, true);
	sleep_ms(50);
	clock_gettime(CLOCK_MONOTONIC, &began);
	/* Ten that must each wait for a look of its own would take a second. */
	for (int i = 0; i < 10; i++) {
		struct mail *m = calloc(1, sizeof(*m));

		m->kind = MAIL_CANCEL;
		m->task = &task;
		cr_assert(worker_post(w, m));
		while (task.mail_count > 0) {
			sched_yield();
			worker_free_mail(w);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	cr_expect_lt((ended.tv_sec - began.tv_sec) * 1000 +
					(ended.tv_nsec - began.tv_nsec) / MILLISECOND_NS,
			500);
	stop(w, thread);
}

Test(worker, declines_a_checkpoint_whose_trigger_comes_when_its_task_has_ended)
{
	struct report_roll roll = {0};
	struct task task = {.roll = &roll};
	const struct report *report = NULL;
	pthread_t thread;
	struct worker *w = start(&thread);
	struct mail *m = calloc(1, sizeof(*m));

	worker_adopt(w, &task);
	atomic_init(&task.is_detached, true);
	m->kind = MAIL_TRIGGER;
	m->task = &task;
	m->request.checkpoint_id = 7;
	cr_assert(worker_post(w, m));
	for (int i = 0; i < 1000 && report == NULL; i++) {
		sleep_ms(1);
		report = worker_next_report(w);
	}
	cr_assert_not_null(report);
	cr_expect_eq(report->kind, REPORT_DECLINE);
	cr_expect_eq(report->checkpoint_id, 7);
	cr_expect_eq(report->reason, DECLINE_TASK_CLOSING);
	worker_release_report(w, report);
	worker_free_mail(w);
	stop(w, thread);
}

Test(worker, without_tasks_stops_at_once)
{
	struct timespec began, ended;
	pthread_t thread;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int i = 0; i < 10; i++) {
		struct worker *w = start(&thread);

		sleep_ms(5);
		stop(w, thread);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	cr_expect_lt((ended.tv_sec - began.tv_sec) * 1000 +
					(ended.tv_nsec - began.tv_nsec) / MILLISECOND_NS,
			600);
}

/* ---- the bell: a clock set by hand, turns by hand, sources that have nothing to give ---- */

enum { TASKS = 3, OTHER_WORKER = 1 };

struct set_clock {
	struct clock clock;
	uint64_t now_ns;
};

static uint64_t set_now_ns(struct clock *c)
{
	return ((struct set_clock *)c)->now_ns;
}

struct rig {
	struct set_clock clock;
	struct worker *worker;
	struct report_roll roll, other_roll;
	struct task tasks[TASKS];
	struct task_fixture fixtures[TASKS];
	int bell;
};

static void rig_turn(struct rig *r, uint64_t passed_ns)
{
	r->clock.now_ns += passed_ns;
	worker_turn(r->worker);
}

static void rig_post(struct rig *r, uint32_t task, enum mail_kind kind)
{
	struct mail *m = calloc(1, sizeof(*m));

	m->kind = kind;
	m->task = &r->tasks[task];
	cr_assert(worker_post(r->worker, m));
}

static struct rig *rig_open(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	char error[TASKMANAGER_ERROR_BYTES];

	r->clock = (struct set_clock){{set_now_ns, wall_ms}, MILLISECOND_NS};
	r->bell = eventfd(0, EFD_NONBLOCK);
	cr_assert_eq(worker_create(&r->worker,
				     &(struct worker_config){.storage = "threads",
						     .clock = &r->clock.clock,
						     .report_fd = r->bell},
				     error),
			0);
	for (uint32_t i = 0; i < TASKS; i++) {
		task_fixture_init(&r->fixtures[i], 1);
		task_fixture_open(&r->fixtures[i], 0, NULL, &TASK_EDGE, NULL);
		r->tasks[i].stream = r->fixtures[i].task;
		atomic_init(&r->tasks[i].is_detached, false);
		r->tasks[i].roll = &r->roll;
		worker_adopt(r->worker, &r->tasks[i]);
		rig_post(r, i, MAIL_ATTACH);
	}
	rig_turn(r, 1000);
	return r;
}

static void rig_acknowledge(struct rig *r, uint32_t task, int64_t checkpoint_id)
{
	struct checkpoint_metrics metrics = {.ended_ns = r->clock.now_ns};
	struct task_reporter *reporter = &r->tasks[task].reporter;

	reporter->acknowledge(reporter, checkpoint_id, &metrics, NULL, NULL, false);
}

static void rig_acknowledge_all(struct rig *r, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < TASKS; i++)
		rig_acknowledge(r, i, checkpoint_id);
}

/* Another worker has a task of the same job. */
static struct rig *rig_open_beside_another(void)
{
	struct rig *r = rig_open();

	report_roll_expect(&r->roll, OTHER_WORKER);
	return r;
}

/* A snapshot that waits for its disk. */
static void rig_begin_snapshot(struct rig *r, uint32_t task)
{
	r->fixtures[task].store.is_hung = true;
	task_fixture_trigger(&r->fixtures[task], 1);
	rig_turn(r, 1000);
	cr_assert(stream_task_owes_answer(r->tasks[task].stream));
}

/* How often it has rung since the last look. */
static uint64_t rig_bells(struct rig *r)
{
	uint64_t count = 0;

	return read(r->bell, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static void rig_close(struct rig *r)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		r->fixtures[i].store.is_hung = false;
		fault_store_settle(&r->fixtures[i].store);
		rig_post(r, i, MAIL_CANCEL);
	}
	for (int i = 0; i < 100; i++)
		rig_turn(r, 1000);
	worker_free_mail(r->worker);
	for (uint32_t i = 0; i < TASKS; i++) {
		cr_assert(atomic_load(&r->tasks[i].is_detached));
		task_fixture_close(&r->fixtures[i]);
	}
	worker_destroy(r->worker);
	close(r->bell);
	free(r);
}

Test(worker, rings_once_for_the_acknowledgements_of_its_tasks)
{
	struct rig *r = rig_open();

	for (int64_t id = 7; id < 9; id++) {
		rig_acknowledge(r, 0, id);
		rig_turn(r, 1000);
		rig_acknowledge(r, 1, id);
		cr_expect_eq(rig_bells(r), 0);
		rig_acknowledge(r, 2, id);
		cr_expect_eq(rig_bells(r), 1, "at once: the turn may be a long one");
		rig_turn(r, MILLISECOND_NS);
		cr_expect_eq(rig_bells(r), 0);
	}
	rig_close(r);
}

Test(worker, rings_without_those_whose_checkpoint_does_not_come)
{
	struct rig *r = rig_open();

	rig_acknowledge(r, 0, 7);
	rig_turn(r, 400000);
	cr_expect_eq(rig_bells(r), 0);
	rig_turn(r, 100000);
	cr_expect_eq(rig_bells(r), 1);
	/* The last one rings for itself, though it alone is held. */
	rig_acknowledge(r, 1, 7);
	cr_expect_eq(rig_bells(r), 0);
	rig_acknowledge(r, 2, 7);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, waits_a_while_for_a_task_that_writes_its_snapshot)
{
	struct rig *r = rig_open();

	rig_begin_snapshot(r, 2);
	rig_acknowledge(r, 0, 7);
	rig_turn(r, 19 * MILLISECOND_NS);
	cr_expect_eq(rig_bells(r), 0);
	rig_turn(r, MILLISECOND_NS);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, rings_for_an_older_checkpoint_while_a_younger_one_is_not_complete)
{
	struct rig *r = rig_open();

	rig_acknowledge(r, 0, 7);
	rig_acknowledge(r, 1, 7);
	rig_acknowledge(r, 0, 8);
	cr_expect_eq(rig_bells(r), 0);
	rig_acknowledge(r, 2, 7);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, waits_for_no_task_of_another_job)
{
	struct rig *r = rig_open();

	for (uint32_t i = 0; i < 2; i++)
		r->tasks[i].group = (struct task_group *)r; /* is not looked into */
	r->tasks[2].roll = &r->other_roll;
	report_roll_expect(&r->other_roll, 0);
	rig_acknowledge(r, 0, 7);
	cr_expect_eq(rig_bells(r), 0);
	rig_acknowledge(r, 1, 7);
	cr_expect_eq(rig_bells(r), 1);
	rig_acknowledge(r, 2, 3);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, leaves_the_bell_to_another_worker_that_has_still_to_answer)
{
	struct rig *r = rig_open_beside_another();

	rig_acknowledge_all(r, 7);
	rig_turn(r, 1000);
	cr_expect_eq(rig_bells(r), 0);
	/* That one rings, and all there is is fetched. */
	cr_expect(report_roll_answered(&r->roll, OTHER_WORKER, 7));
	while (worker_next_report(r->worker) != NULL)
		;
	rig_turn(r, MILLISECOND_NS);
	cr_expect_eq(rig_bells(r), 0);
	rig_close(r);
}

Test(worker, rings_when_another_worker_has_answered_before)
{
	struct rig *r = rig_open_beside_another();

	cr_expect_not(report_roll_answered(&r->roll, OTHER_WORKER, 7));
	rig_acknowledge_all(r, 7);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, rings_when_another_worker_does_not_answer)
{
	struct rig *r = rig_open_beside_another();

	rig_acknowledge_all(r, 7);
	rig_turn(r, 500000);
	cr_expect_eq(rig_bells(r), 1);
	rig_close(r);
}

Test(worker, is_not_waited_for_once_its_last_task_has_ended)
{
	struct rig *r = rig_open_beside_another();

	for (uint32_t i = 0; i < TASKS; i++) {
		cr_expect_not(report_roll_answered(&r->roll, OTHER_WORKER, i + 1), "%u", i);
		rig_post(r, i, MAIL_CANCEL);
		for (int turn = 0; turn < 100; turn++)
			rig_turn(r, 1000);
	}
	cr_expect(report_roll_answered(&r->roll, OTHER_WORKER, 9));
	rig_close(r);
}

Test(worker, rings_at_once_for_all_other_words)
{
	struct rig *r = rig_open();
	struct task_reporter *reporter = &r->tasks[1].reporter;

	rig_acknowledge(r, 0, 7);
	reporter->decline(reporter, 7, DECLINE_TASK_CLOSING, "ends");
	cr_expect_eq(rig_bells(r), 1);
	rig_turn(r, 100 * (uint64_t)MILLISECOND_NS);
	cr_expect_eq(rig_bells(r), 0);
	rig_close(r);
}
