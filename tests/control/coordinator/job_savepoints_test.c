/* job_savepoints: a savepoint that is asked for again under the next coordinator (SV-1). */

#include "control/coordinator/job_savepoints.h"

#include "control/net/loop.h"
#include "tests/support/job_world.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static void init(void)
{
	job_world_init();
	set("execution.checkpointing.interval=%s", "10 min");
	set("execution.checkpointing.savepoint-dir=%s", directory);
	tm = join("tm-1");
}

TestSuite(job_savepoints, .init = init, .fini = job_world_fini);

static void ask(uint8_t number)
{
	struct savepoint_order order = {.end = SAVEPOINT_GO_ON};
	struct id128 id = {{number}};
	char text[JOB_TEXT_BYTES];

	WAIT_UNTIL(all_run());
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
}

static bool is_known(uint8_t number)
{
	struct checkpoint_answer a;

	return job_master_checkpoint_answer(job, (struct id128){{number}}, &a);
}

static struct checkpoint_answer answer(uint8_t number)
{
	struct checkpoint_answer a = {0};

	cr_assert(job_master_checkpoint_answer(job, (struct id128){{number}}, &a));
	return a;
}

static void take(uint8_t number)
{
	ask(number);
	WAIT_UNTIL(answer(number).is_done);
	cr_assert(answer(number).is_success, "%s", answer(number).text);
}

/* With metadata or without. */
static size_t count_directories(void)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/savepoint-*", directory);
	size_t count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return count;
}

Test(job_savepoints, asked_for_again_is_the_same_one)
{
	char location[256];

	submit(counting, "none");
	take(1);
	snprintf(location, sizeof(location), "%s", answer(1).location);
	restart_coordinator();
	ask(1);
	cr_expect(answer(1).is_done && answer(1).is_success && answer(1).is_savepoint);
	cr_expect_str_eq(answer(1).location, location);
	take(2);
	cr_expect_eq(count_metadata("savepoint-*"), 2);
	restart_coordinator();
	cr_expect(answer(1).is_success && answer(2).is_success);
}

Test(job_savepoints, that_was_not_complete_goes_and_begins_anew)
{
	submit(counting, "none");
	fake_task_manager_behaviour(tm)->must_ignore = true;
	ask(1);
	WAIT_UNTIL(record()->trigger_count == 1);
	cr_expect_eq(count_directories(), 1);
	restart_coordinator();
	cr_expect_eq(count_directories(), 0);
	cr_expect_not(is_known(1));
	take(1);
	cr_expect_eq(count_directories(), 1);
	cr_expect_eq(count_metadata("savepoint-*"), 1);
}

Test(job_savepoints, that_failed_leaves_nothing_behind)
{
	submit(counting, "none");
	fake_task_manager_behaviour(tm)->must_decline = true;
	ask(1);
	WAIT_UNTIL(answer(1).is_done);
	cr_expect_not(answer(1).is_success);
	restart_coordinator();
	cr_expect_not(is_known(1));
	cr_expect_eq(count_directories(), 0);
}

Test(job_savepoints, the_newest_are_remembered)
{
	submit(counting, "none");
	for (uint8_t i = 1; i <= SAVEPOINT_NOTES_MAX + 2; i++)
		take(i);
	restart_coordinator();
	cr_expect_not(is_known(2));
	for (uint8_t i = 3; i <= SAVEPOINT_NOTES_MAX + 2; i++)
		cr_expect(answer(i).is_success, "%d", i);
}

Test(job_savepoints, of_a_checkpoint_nothing_is_noted)
{
	struct id128 id = {{1}};

	submit(counting, "none");
	WAIT_UNTIL(all_run());
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), 0);
	WAIT_UNTIL(answer(1).is_done);
	restart_coordinator();
	cr_expect_not(is_known(1));
}
