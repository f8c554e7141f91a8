/* job_stop: the end that a user asks for, with a savepoint. */

#include "control/net/loop.h"
#include "tests/support/job_world.h"

#include <stdio.h>
#include <string.h>

static const struct id128 request_id = {{7}};

static void init(void)
{
	job_world_init();
	set("execution.checkpointing.interval=%s", "10 min");
	tm = join("tm-1");
}

TestSuite(job_stop, .init = init, .fini = job_world_fini);

static uint32_t count_savepoints(void)
{
	return count_metadata("savepoint-*");
}

static struct checkpoint_answer answer(void)
{
	struct checkpoint_answer a = {0};

	cr_assert(job_master_checkpoint_answer(job, request_id, &a));
	return a;
}

static void ask(void)
{
	struct savepoint_order order = {.end = SAVEPOINT_SUSPEND, .directory = directory};
	struct id128 id = request_id;
	char text[JOB_TEXT_BYTES];

	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
}

/* A job that is being stopped with a savepoint before it runs. */
static void stop(void)
{
	submit(counting, "none");
	ask();
}

Test(job_stop, takes_the_savepoint_as_soon_as_all_tasks_run)
{
	stop();
	WAIT_UNTIL(record()->confirmed_id == 1);
	cr_assert_not(answer().is_done, "tasks have still to end");
	cr_assert(is_in(JOB_STATUS_RUNNING));
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert(answer().is_success);
	cr_assert_eq(strncmp(answer().location, directory, strlen(directory)), 0);
	cr_assert_eq(count_savepoints(), 1);
}

/* FM-6. */
Test(job_stop, restarts_the_job_when_a_task_declines)
{
	fake_task_manager_behaviour(tm)->must_decline = true;
	stop();
	WAIT_UNTIL(job_master_counts(job).restarts == 1);
	cr_assert(answer().is_done);
	cr_assert_not(answer().is_success);
	cr_assert_eq(record()->trigger_count, 1, "nobody tries again by himself");
	cr_assert_eq(count_savepoints(), 0);
}

Test(job_stop, tells_of_a_job_that_failed_before_its_savepoint_was_complete)
{
	fake_task_manager_behaviour(tm)->must_ignore = true;
	stop();
	WAIT_UNTIL(record()->trigger_count == 1);
	fake_task_manager_status(tm, record()->tasks[0].attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(answer().is_done);
	cr_assert_not_null(strstr(answer().text, "out of luck"), "%s", answer().text);
}

/* CO-7 holds until the rules resume it; a stop that fails leaves no trace. */
Test(job_stop, goes_on_when_the_savepoint_has_no_place)
{
	char blocked[64];
	struct savepoint_order order = {.end = SAVEPOINT_DRAIN, .directory = blocked};
	struct id128 id = request_id;
	char text[JOB_TEXT_BYTES];

	snprintf(blocked, sizeof(blocked), "%s/file", directory);
	FILE *file = fopen(blocked, "w");
	cr_assert_not_null(file);
	fclose(file);
	submit(counting, "none");
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0);
	WAIT_UNTIL(answer().is_done);
	cr_assert_not_null(strstr(answer().text, "Not a directory"), "%s", answer().text);
	cr_assert(is_in(JOB_STATUS_RUNNING));
	cr_assert_eq(record()->trigger_count, 0);
	id = (struct id128){{8}};
	order.directory = directory;
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
}

/* ---- cancel with savepoint (SV-2) ---- */

static void cancel_with_savepoint(void)
{
	struct savepoint_order order = {.end = SAVEPOINT_CANCEL, .directory = directory};
	struct id128 id = request_id;
	char text[JOB_TEXT_BYTES];

	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING) &&
			job_master_execution(job, 1, 1)->state == EXECUTION_RUNNING);
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
	WAIT_UNTIL(answer().is_done);
}

Test(job_stop, cancels_a_job_when_its_savepoint_is_complete)
{
	cancel_with_savepoint();
	cr_assert(answer().is_success);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	cr_assert_eq(count_savepoints(), 1);
}

Test(job_stop, cancels_nothing_when_the_savepoint_failed_and_takes_checkpoints_again)
{
	set("execution.checkpointing.interval=%s", "20 ms");
	fake_task_manager_behaviour(tm)->must_decline = true;
	cancel_with_savepoint();
	cr_assert_not(answer().is_success);
	fake_task_manager_behaviour(tm)->must_decline = false;
	WAIT_UNTIL(record()->confirmed_id > 1);
	cr_assert(is_in(JOB_STATUS_RUNNING));
}

/* ---- behind the point of no return ---- */

/* SV-3, but the job does not go on: what its sinks committed belongs to the savepoint. */
Test(job_stop, with_a_complete_savepoint_a_job_whose_tasks_fail_only_leaves)
{
	stop();
	WAIT_UNTIL(record()->confirmed_id == 1);
	fake_task_manager_status(tm, record()->tasks[0].attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(record()->deploy_count == 2);
	cr_assert(record()->was_leaving);
	cr_assert_eq(record()->restored_id, 1, "the savepoint");
	cr_assert_not(answer().is_done);
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert(answer().is_success, "%s", answer().text);
	cr_assert_eq(record()->trigger_count, 1, "no checkpoint any more");
}

Test(job_stop, with_a_complete_savepoint_leaves_under_another_coordinator_too)
{
	stop();
	WAIT_UNTIL(record()->confirmed_id == 1);
	restart_coordinator();
	WAIT_UNTIL(record()->deploy_count == 1);
	cr_assert(record()->was_leaving);
	cr_assert_not(answer().is_done);
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert(answer().is_success);
	cr_assert_eq(count_savepoints(), 1);
}

Test(job_stop, is_answered_by_the_next_coordinator_when_the_job_has_ended)
{
	struct checkpoint_answer a;

	stop();
	WAIT_UNTIL(record()->confirmed_id == 1);
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED) && !job_master_is_busy(job));
	restart_coordinator();
	const struct ended_job *e = coordinator_ended_at(coordinator, 0);
	cr_assert_not_null(e);
	cr_assert(coordinator_has_news(coordinator));
	cr_assert_not(coordinator_ended_answer(coordinator, e, (struct id128){{8}}, &a));
	cr_assert(coordinator_ended_answer(coordinator, e, request_id, &a));
	cr_assert(a.is_success);
	cr_assert_eq(strncmp(a.location, directory, strlen(directory)), 0);
	cr_assert_not(coordinator_has_news(coordinator));
}

/* Nothing of it was durable yet: asked for again, it begins anew. */
Test(job_stop, is_forgotten_with_a_coordinator_that_dies_before_its_savepoint_is_complete)
{
	fake_task_manager_behaviour(tm)->must_ignore = true;
	stop();
	WAIT_UNTIL(record()->trigger_count == 1);
	restart_coordinator();
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING));
	struct checkpoint_answer a;
	cr_assert_not(job_master_checkpoint_answer(job, request_id, &a));
	cr_assert_not(record()->was_leaving);
	ask();
	WAIT_UNTIL(record()->confirmed_id > 0);
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert(answer().is_success);
	cr_assert_eq(count_savepoints(), 1);
}
