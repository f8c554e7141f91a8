#include "dataplane/base/control_thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static char error[CONTROL_THREAD_ERROR_BYTES];

static int first_core(void)
{
	cpu_set_t set;
	int core = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(core, &set))
		core++;
	return core;
}

static void *policy(void *out)
{
	*(int *)out = sched_getscheduler(0);
	return NULL;
}

Test(control_thread, goes_first_and_its_threads_do_not)
{
	pthread_t thread;
	int of_thread = -1;

	cr_assert_eq(control_thread_schedule("test", true, "auto", error), 0);
	if (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK))
		cr_skip_test("real-time scheduling is not allowed here (ulimit -r)");
	pthread_create(&thread, NULL, policy, &of_thread);
	pthread_join(thread, NULL);
	cr_expect_eq(of_thread, SCHED_OTHER);
}

Test(control_thread, takes_turns_once_its_loop_is_over)
{
	cr_assert_eq(control_thread_schedule("test", true, "auto", error), 0);
	if (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK))
		cr_skip_test("real-time scheduling is not allowed here (ulimit -r)");
	control_thread_yield();
	cr_expect_eq(sched_getscheduler(0), SCHED_OTHER | SCHED_RESET_ON_FORK);
}

Test(control_thread, goes_first_again_behind_long_work)
{
	cr_assert_eq(control_thread_schedule("test", true, "auto", error), 0);
	if (sched_getscheduler(0) != (SCHED_RR | SCHED_RESET_ON_FORK))
		cr_skip_test("real-time scheduling is not allowed here (ulimit -r)");
	bool was_first = control_thread_yield();
	cr_expect(was_first);
	control_thread_resume(was_first);
	cr_expect_eq(sched_getscheduler(0), SCHED_RR | SCHED_RESET_ON_FORK);
}

Test(control_thread, takes_turns_behind_long_work_too_when_it_was_told_to)
{
	cr_assert_eq(control_thread_schedule("test", false, "auto", error), 0);
	bool was_first = control_thread_yield();
	cr_expect(!was_first);
	control_thread_resume(was_first);
	cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
}

Test(control_thread, takes_turns_when_it_is_told_to)
{
	cr_assert_eq(control_thread_schedule("test", false, "auto", error), 0);
	cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
}

Test(control_thread, stays_on_the_cores_that_are_named)
{
	char name[16];
	cpu_set_t set;

	snprintf(name, sizeof(name), "%d", first_core());
	cr_assert_eq(control_thread_schedule("test", false, name, error), 0);
	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	cr_expect_eq(CPU_COUNT(&set), 1);
	cr_expect(CPU_ISSET(first_core(), &set));
}

Test(control_thread, refuses_cores_that_are_not_there)
{
	cr_expect_eq(control_thread_schedule("test", false, "900", error), -EINVAL);
	cr_expect(strstr(error, "weir.control.cores: none of 900 "), "%s", error);
	cr_expect_eq(control_thread_schedule("test", false, "4000", error), -EINVAL);
}
