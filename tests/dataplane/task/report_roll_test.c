#include "dataplane/task/report_roll.h"

#include <criterion/criterion.h>
#include <pthread.h>

Test(report_roll, is_complete_with_the_only_worker)
{
	struct report_roll r = {0};

	report_roll_expect(&r, 3);
	cr_expect(report_roll_answered(&r, 3, 1));
}

Test(report_roll, waits_for_every_worker_that_has_a_task)
{
	struct report_roll r = {0};

	report_roll_expect(&r, 0);
	report_roll_expect(&r, 2);
	report_roll_expect(&r, 5);
	cr_expect_not(report_roll_answered(&r, 5, 1));
	cr_expect_not(report_roll_answered(&r, 0, 1));
	cr_expect(report_roll_answered(&r, 2, 1));
	cr_expect_not(report_roll_answered(&r, 2, 2));
}

Test(report_roll, takes_a_newer_checkpoint_for_an_answer_to_an_older_one)
{
	struct report_roll r = {0};

	report_roll_expect(&r, 0);
	report_roll_expect(&r, 1);
	cr_expect_not(report_roll_answered(&r, 0, 7)); /* 6 was aborted there */
	cr_expect(report_roll_answered(&r, 1, 6));
	cr_expect(report_roll_answered(&r, 1, 7));
}

Test(report_roll, does_not_wait_for_a_worker_whose_tasks_have_ended)
{
	struct report_roll r = {0};

	report_roll_expect(&r, 0);
	report_roll_expect(&r, 1);
	report_roll_left(&r, 1);
	cr_expect(report_roll_answered(&r, 0, 9));
}

enum { ROUNDS = 20000 };

struct side {
	struct report_roll *roll;
	pthread_barrier_t *start;
	uint32_t worker;
	bool was_last[ROUNDS];
};

static void *answer_all(void *side)
{
	struct side *s = side;

	for (int64_t id = 1; id <= ROUNDS; id++) {
		pthread_barrier_wait(s->start);
		s->was_last[id - 1] = report_roll_answered(s->roll, s->worker, id);
	}
	return NULL;
}

Test(report_roll, tells_at_least_one_of_two_that_answer_at_once)
{
	static struct side sides[2];
	struct report_roll r = {0};
	pthread_barrier_t start;
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		report_roll_expect(&r, i);
		sides[i].roll = &r;
		sides[i].start = &start;
		sides[i].worker = i;
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, answer_all, &sides[i]);
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < ROUNDS; i++)
		cr_assert(sides[0].was_last[i] || sides[1].was_last[i], "%u", i + 1);
	pthread_barrier_destroy(&start);
}
