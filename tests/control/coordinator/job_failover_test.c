/* job_master: failures and restarts (semantics 22). */

#include "control/net/loop.h"
#include "dataplane/base/clock.h"
#include "tests/support/job_world.h"

#include <errno.h>
#include <string.h>

TestSuite(job_failover, .init = job_world_init, .fini = job_world_fini);

Test(job_failover, gives_the_tasks_of_a_lost_task_manager_to_the_one_that_stands_by)
{
	run_to(2);
	struct fake_task_manager *standby = join("tm-2");
	const struct fake_record *other = fake_task_manager_record(standby);

	WAIT_UNTIL(other->is_registered);
	int64_t last = record()->confirmed_id;
	struct attempt_id old = record()->tasks[0].attempt;
	fake_task_manager_destroy(tm);
	tm = standby;
	WAIT_UNTIL(record()->deploy_count == 1 && is_in(JOB_STATUS_RUNNING));
	cr_assert_geq(record()->restored_id, last);
	cr_assert_gt(record()->tasks[0].state_bytes, 0);
	cr_assert_not(id128_is_equal(record()->tasks[0].attempt.id, old.id));
	cr_assert_eq(job_master_counts(job).restarts, 1);
	int64_t restored = record()->restored_id;
	WAIT_UNTIL(record()->confirmed_id > restored);
}

Test(job_failover, gives_up_a_task_manager_that_falls_silent)
{
	run_to(1);
	fake_task_manager_behaviour(tm)->must_keep_quiet = true;
	fake_task_manager_behaviour(tm)->must_ignore = true;
	WAIT_UNTIL(!record()->is_registered);
	WAIT_UNTIL(is_in(JOB_STATUS_RESTARTING));
	const char *text = job_master_failure(job, 0)->text;
	cr_assert_not_null(strstr(text, "no heartbeat for"), "%s", text);
	cr_assert_not_null(strstr(text, "make (1/1) and 2 other tasks ran there"), "%s", text);
	cr_assert_not_null(strstr(text, "waiting for tasks"), "%s", text);
}

Test(job_failover, notices_silence_after_a_tenth_of_a_second_when_it_is_told_to)
{
	set("heartbeat.interval=%s", "20 ms");
	set("heartbeat.timeout=%s", "100 ms");
	end_coordinator();
	start_coordinator();
	run_to(1);
	fake_task_manager_behaviour(tm)->must_keep_quiet = true;
	fake_task_manager_behaviour(tm)->must_ignore = true;
	uint64_t began_ns = clock_monotonic_ns();
	WAIT_UNTIL(!record()->is_registered);
	uint64_t took_ms = (clock_monotonic_ns() - began_ns) / 1000000;
	cr_expect_geq(took_ms, 60);
	cr_expect_lt(took_ms, 500, "where none is set it is 500 ms");
}

Test(job_failover, sends_no_heartbeat_where_other_messages_tell_the_same)
{
	set("heartbeat.interval=%s", "50 ms");
	set("heartbeat.timeout=%s", "500 ms");
	end_coordinator();
	start_coordinator();
	run_to(1);
	uint32_t count = record()->beat_count;
	int64_t id = record()->confirmed_id;
	uint64_t began_ns = clock_monotonic_ns();
	WAIT_UNTIL(clock_monotonic_ns() - began_ns > 500000000); /* ten of them */
	cr_expect_lt(record()->beat_count - count, 5u);
	cr_expect_gt(record()->confirmed_id, id);
	fake_task_manager_behaviour(tm)->must_ignore = true; /* and nothing more is sent */
	count = record()->beat_count;
	WAIT_UNTIL(record()->beat_count > count + 5);
	cr_assert(record()->is_registered);
}

Test(job_failover, cancels_the_others_and_starts_new_attempts_when_one_task_fails)
{
	run_to(1);
	struct attempt_id old = record()->tasks[2].attempt;
	fake_task_manager_status(tm, old, WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(record()->deploy_count == 2 && is_in(JOB_STATUS_RUNNING));
	cr_assert_eq(record()->cancel_count, 1);
	cr_assert_str_eq(job_master_failure(job, 0)->text, "out of luck");
	cr_assert_str_eq(job_master_failure(job, 0)->task, "count (2/2)");
	cr_assert_str_eq(job_master_failure(job, 0)->task_manager, "tm-1");
	/* A late word of the old attempt changes nothing. */
	fake_task_manager_status(tm, old, WEIR__ATTEMPT_STATE__TASK_FAILED, "once more");
	int64_t id = record()->confirmed_id;
	WAIT_UNTIL(record()->confirmed_id > id + 1);
	cr_assert(is_in(JOB_STATUS_RUNNING));
	cr_assert_eq(record()->deploy_count, 2);
	cr_assert_geq(job_master_counts(job).stale_messages, 1);
}

Test(job_failover, fails_when_its_restarts_are_used_up)
{
	set("restart-strategy.type=%s", "none");
	run_to(1);
	fake_task_manager_status(tm, record()->tasks[0].attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(is_in(JOB_STATUS_FAILED));
	cr_assert_eq(record()->deploy_count, 1);
	WAIT_UNTIL(!job_master_is_busy(job));
	cr_assert_gt(count_checkpoints(), 0, "they are kept, RETAIN_ON_CANCELLATION");
}

/* Two regions. */
static const char apart[] =
		"name: apart\n"
		"config: {execution.checkpointing.interval: 5 ms}\n"
		"vertices:\n"
		"  - uid: make\n"
		"    operators: [{uid: g, type: generator, records: 0}]\n"
		"  - uid: count\n"
		"    parallelism: 2\n"
		"    operators: [{uid: c, type: keyed-count}, {uid: d, type: digest-sink}]\n"
		"  - uid: other\n"
		"    operators: [{uid: h, type: generator}, {uid: s, type: digest-sink}]\n"
		"edges: [{from: make, to: count, partition: hash}]\n";

static const struct fake_task *task_of(uint32_t vertex, uint32_t subtask)
{
	for (uint32_t i = 0; i < record()->task_count; i++)
		if (record()->tasks[i].vertex == vertex &&
				record()->tasks[i].subtask_index == subtask)
			return &record()->tasks[i];
	return NULL;
}

static void fail_task(uint32_t vertex, uint32_t subtask)
{
	fake_task_manager_status(tm, task_of(vertex, subtask)->attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
}

static void run_apart_to(int64_t id)
{
	tm = join("tm-1");
	fake_task_manager_behaviour(tm)->vertex_uids[0] = "make";
	fake_task_manager_behaviour(tm)->vertex_uids[1] = "count";
	fake_task_manager_behaviour(tm)->vertex_uids[2] = "other";
	submit(apart, "none");
	WAIT_UNTIL(record()->confirmed_id >= id);
}

Test(job_failover, restarts_only_the_region_of_the_task_that_failed)
{
	run_apart_to(1);
	cr_assert_eq(record()->deploy_count, 2);
	struct attempt_id kept = task_of(2, 0)->attempt, mate = task_of(0, 0)->attempt;
	fail_task(1, 1);
	WAIT_UNTIL(record()->deploy_count == 3 && is_in(JOB_STATUS_RUNNING));
	cr_expect(id128_is_equal(task_of(2, 0)->attempt.id, kept.id));
	cr_expect_not(id128_is_equal(task_of(0, 0)->attempt.id, mate.id));
	cr_expect_gt(record()->restored_id, 0);
	cr_expect_eq(job_master_counts(job).restarts, 1);
	int64_t id = record()->confirmed_id;
	WAIT_UNTIL(record()->confirmed_id > id + 1);
	cr_expect_eq(record()->deploy_count, 3);
}

Test(job_failover, takes_a_region_that_fails_meanwhile_along_in_the_same_restart)
{
	set("restart-strategy.type=%s", "fixed-delay");
	set("restart-strategy.fixed-delay.delay=%s", "100 ms");
	set("restart-strategy.fixed-delay.attempts=%s", "1");
	run_apart_to(1);
	fail_task(1, 1);
	WAIT_UNTIL(is_in(JOB_STATUS_RESTARTING));
	fail_task(2, 0);
	WAIT_UNTIL(record()->deploy_count == 4 && is_in(JOB_STATUS_RUNNING));
	cr_expect_eq(job_master_counts(job).restarts, 1);
	int64_t id = record()->confirmed_id;
	WAIT_UNTIL(record()->confirmed_id > id + 1);
}

Test(job_failover, restarts_every_region_of_a_lost_task_manager)
{
	run_apart_to(2);
	struct fake_task_manager *standby = join("tm-2");

	WAIT_UNTIL(fake_task_manager_record(standby)->is_registered);
	fake_task_manager_destroy(tm);
	tm = standby;
	WAIT_UNTIL(record()->deploy_count == 2 && is_in(JOB_STATUS_RUNNING));
	cr_expect_eq(record()->task_count, 4);
	cr_expect_eq(job_master_counts(job).restarts, 1);
}

Test(job_failover, restarts_every_region_when_one_cannot_be_restored)
{
	run_apart_to(1);
	fake_task_manager_behaviour(tm)->deploy_status = -EAGAIN;
	fail_task(1, 1);
	WAIT_UNTIL(record()->deploy_count >= 3);
	fake_task_manager_behaviour(tm)->deploy_status = 0;
	WAIT_UNTIL(record()->deploy_count >= 5 && is_in(JOB_STATUS_RUNNING));
	int64_t id = record()->confirmed_id;
	WAIT_UNTIL(record()->confirmed_id > id + 1);
	cr_expect_geq(job_master_counts(job).restarts, 2);
}

Test(job_failover, under_another_coordinator_waits_for_what_attempts_of_the_one_before_still_hold)
{
	run_to(1);
	restart_coordinator();
	fake_task_manager_behaviour(tm)->deploy_status = -EBUSY;
	WAIT_UNTIL(record()->deploy_count >= 2);
	fake_task_manager_behaviour(tm)->deploy_status = 0;
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING) && record()->confirmed_id > 1);
}

Test(job_failover, waits_at_its_first_start_for_what_is_about_to_come_free)
{
	fake_task_manager_behaviour(tm = join("tm-1"))->deploy_status = -EAGAIN;
	submit(counting, "none");
	WAIT_UNTIL(record()->deploy_count >= 2);
	fake_task_manager_behaviour(tm)->deploy_status = 0;
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING) && record()->confirmed_id >= 1);
}

Test(job_failover, does_not_wait_at_its_first_start_for_what_another_job_holds)
{
	fake_task_manager_behaviour(tm = join("tm-1"))->deploy_status = -EBUSY;
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_FAILED));
	cr_expect_eq(record()->deploy_count, 1);
}

Test(job_failover, moves_a_region_that_waits_for_its_restart_when_its_task_manager_is_lost)
{
	set("restart-strategy.type=%s", "fixed-delay");
	set("restart-strategy.fixed-delay.delay=%s", "200 ms");
	run_apart_to(1);
	struct fake_task_manager *standby = join("tm-2");

	WAIT_UNTIL(fake_task_manager_record(standby)->is_registered);
	fail_task(1, 1);
	WAIT_UNTIL(is_in(JOB_STATUS_RESTARTING));
	fake_task_manager_destroy(tm);
	tm = standby;
	WAIT_UNTIL(record()->deploy_count == 2 && is_in(JOB_STATUS_RUNNING));
	cr_expect_eq(record()->task_count, 4);
	cr_expect_eq(job_master_counts(job).restarts, 1);
}

