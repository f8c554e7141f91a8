/* job_locations: savepoints of a job over two TaskManagers (SL-4). */

#include "control/net/loop.h"
#include "tests/support/job_world.h"

static const char pairs[] =
		"name: pairs\n"
		"vertices:\n"
		"  - uid: make\n"
		"    parallelism: 2\n"
		"    operators: [{uid: g, type: generator, records: 0}]\n"
		"  - uid: count\n"
		"    parallelism: 2\n"
		"    operators: [{uid: c, type: keyed-count}, {uid: d, type: digest-sink}]\n"
		"edges: [{from: make, to: count, partition: hash}]\n";

static struct fake_task_manager *other;

static struct fake_task_manager *join_half(const char *id)
{
	struct fake_task_manager *f = join(id);

	fake_task_manager_behaviour(f)->parallelism = 2;
	return f;
}

static void init(void)
{
	job_world_init();
	set("execution.checkpointing.interval=%s", "10 min");
	set("execution.checkpointing.savepoint-dir=%s", directory);
	set("weir.job.taskmanagers=%s", "2");
	tm = join_half("tm-1");
	other = join_half("tm-2");
}

static void fini(void)
{
	fake_task_manager_destroy(other);
	job_world_fini();
}

TestSuite(job_locations, .init = init, .fini = fini);

static const struct fake_record *others(void)
{
	return fake_task_manager_record(other);
}

static void run(void)
{
	submit(pairs, "none");
	WAIT_UNTIL(all_run());
}

static struct id128 ask(uint8_t number)
{
	struct savepoint_order order = {.end = SAVEPOINT_GO_ON};
	struct id128 id = {{number}};
	char text[JOB_TEXT_BYTES];

	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
	return id;
}

static struct checkpoint_answer answer(struct id128 id)
{
	struct checkpoint_answer a = {0};

	cr_assert(job_master_checkpoint_answer(job, id, &a));
	return a;
}

static void expect_success(uint8_t number)
{
	struct id128 id = ask(number);

	WAIT_UNTIL(answer(id).is_done);
	cr_expect(answer(id).is_success, "%s", answer(id).text);
}

Test(job_locations, triggers_when_every_task_manager_knows_where_it_goes)
{
	run();
	fake_task_manager_behaviour(other)->must_not_locate = true;
	struct id128 id = ask(1);
	WAIT_UNTIL(record()->located_id > 0 && others()->located_id > 0);
	cr_expect_str_eq(record()->location, others()->location);
	for (int i = 0; i < 20; i++)
		loop_turn(loop, 1000000);
	cr_expect_eq(record()->trigger_count + others()->trigger_count, 0);
	fake_task_manager_located(other);
	WAIT_UNTIL(answer(id).is_done);
	cr_expect(answer(id).is_success, "%s", answer(id).text);
	cr_expect_str_eq(answer(id).location, others()->location);
	cr_expect_eq(others()->trigger_count, 1);
	cr_expect_eq(count_metadata("savepoint-*"), 1);
}

Test(job_locations, waits_no_longer_for_one_that_is_lost)
{
	run();
	fake_task_manager_behaviour(other)->must_not_locate = true;
	struct id128 id = ask(1);
	WAIT_UNTIL(others()->located_id > 0);
	fake_task_manager_destroy(other);
	other = NULL;
	WAIT_UNTIL(answer(id).is_done);
	cr_expect_not(answer(id).is_success);
	other = join_half("tm-3");
	WAIT_UNTIL(all_run());
	expect_success(2);
	cr_expect_eq(count_metadata("savepoint-*"), 1);
}

Test(job_locations, an_answer_that_nobody_waits_for_is_dropped)
{
	run();
	expect_success(1);
	fake_task_manager_located(other);
	fake_task_manager_located(tm);
	expect_success(2);
}

Test(job_locations, tells_nobody_of_a_checkpoint)
{
	struct id128 id = {{9}};

	run();
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), 0);
	WAIT_UNTIL(answer(id).is_done);
	cr_expect(answer(id).is_success, "%s", answer(id).text);
	cr_expect_eq(record()->located_id, 0);
}
