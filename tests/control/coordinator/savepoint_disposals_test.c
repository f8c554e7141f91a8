/* savepoint_disposals: savepoints deleted by path (SL-9, 24). */

#include "control/coordinator/savepoint_disposals.h"

#include "control/net/loop.h"
#include "tests/support/job_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void init(void)
{
	job_world_init();
	set("execution.checkpointing.interval=%s", "10 min");
	set("execution.checkpointing.savepoint-dir=%s/savepoints", directory);
	tm = join("tm-1");
}

TestSuite(savepoint_disposals, .init = init, .fini = job_world_fini);

static struct id128 next_id(void)
{
	static uint8_t number;

	return (struct id128){{1, ++number}};
}

/* Its directory. */
static void take_savepoint(char path[256])
{
	struct savepoint_order order = {.end = SAVEPOINT_GO_ON};
	struct id128 id = next_id();
	struct checkpoint_answer a = {0};
	char text[JOB_TEXT_BYTES];

	WAIT_UNTIL(all_run());
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
	WAIT_UNTIL(job_master_checkpoint_answer(job, id, &a) && a.is_done);
	cr_assert(a.is_success, "%s", a.text);
	snprintf(path, 256, "%s", a.location);
}

static struct checkpoint_answer dispose(const char *path)
{
	struct id128 id = next_id();
	struct checkpoint_answer a = {0};

	cr_assert_eq(coordinator_dispose(coordinator, path, &id), 0);
	WAIT_UNTIL(coordinator_disposal_answer(coordinator, id, &a) && a.is_done);
	return a;
}

static void expect_refused(const char *path, const char *part)
{
	struct checkpoint_answer a = dispose(path);

	cr_expect_not(a.is_success);
	cr_expect_not_null(strstr(a.text, part), "%s", a.text);
}

Test(savepoint_disposals, deletes_all_of_a_savepoint_and_nothing_else)
{
	char path[256], other[256];

	submit(counting, "none");
	take_savepoint(path);
	take_savepoint(other);
	cr_expect(dispose(path).is_success);
	cr_expect_neq(access(path, F_OK), 0);
	cr_expect_eq(count_metadata("savepoints/savepoint-*"), 1);
	cr_expect_eq(access(other, F_OK), 0);
	expect_refused(path, "No such file");
}

Test(savepoint_disposals, takes_its_metadata_for_the_savepoint)
{
	char path[256], metadata[300];

	submit(counting, "none");
	take_savepoint(path);
	snprintf(metadata, sizeof(metadata), "%s/_metadata", path);
	cr_expect(dispose(metadata).is_success);
	cr_expect_neq(access(path, F_OK), 0);
}

Test(savepoint_disposals, leaves_alone_what_is_no_savepoint)
{
	struct id128 id = next_id();
	struct checkpoint_answer a = {0};
	char path[256];

	submit(counting, "none");
	WAIT_UNTIL(all_run());
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), 0);
	WAIT_UNTIL(job_master_checkpoint_answer(job, id, &a) && a.is_done && a.is_success);
	newest_metadata(path);
	expect_refused(path, "is no savepoint but checkpoint 1 of job counting");
	cr_expect_eq(count_checkpoints(), 1);
	expect_refused(directory, "_metadata");
	expect_refused("/", "_metadata");
}

Test(savepoint_disposals, leaves_alone_what_it_cannot_read)
{
	char path[256], metadata[300];

	submit(counting, "none");
	take_savepoint(path);
	snprintf(metadata, sizeof(metadata), "%s/_metadata", path);
	tear(metadata);
	expect_refused(path, "_metadata");
	cr_expect_eq(access(metadata, F_OK), 0);
}

/* NO_CLAIM: until a checkpoint of its own takes its place, the job restarts from it. */
Test(savepoint_disposals, leaves_alone_what_a_job_would_go_back_to_under_any_name)
{
	char path[256], alias[256];

	submit(counting, "none");
	take_savepoint(path);
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED) && !job_master_is_busy(job));
	submit(counting, path);
	expect_refused(path, "is in use: job counting would go back to it");
	WAIT_UNTIL(all_run());
	expect_refused(path, "is in use");
	snprintf(alias, sizeof(alias), "%s/alias", directory);
	cr_assert_eq(symlink(path, alias), 0);
	expect_refused(alias, "is in use");
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED) && !job_master_is_busy(job));
	cr_expect(dispose(path).is_success);
}

Test(savepoint_disposals, an_id_that_is_used_again_is_the_same_disposal)
{
	struct id128 id = next_id(), unknown = next_id(), made = {{0}};
	struct checkpoint_answer a = {0};
	char path[256];

	submit(counting, "none");
	take_savepoint(path);
	cr_assert_eq(coordinator_dispose(coordinator, path, &id), 0);
	cr_assert_eq(coordinator_dispose(coordinator, path, &id), 0);
	WAIT_UNTIL(coordinator_disposal_answer(coordinator, id, &a) && a.is_done);
	cr_assert_eq(coordinator_dispose(coordinator, path, &id), 0);
	cr_assert(coordinator_disposal_answer(coordinator, id, &a));
	cr_expect(a.is_success);
	cr_expect_not(coordinator_disposal_answer(coordinator, unknown, &a));
	cr_assert_eq(coordinator_dispose(coordinator, path, &made), 0);
	cr_expect_not(id128_is_equal(made, (struct id128){{0}}));
}

Test(savepoint_disposals, too_many_at_a_time_are_refused)
{
	struct checkpoint_answer a = {0};
	struct id128 id, last;

	for (int i = 0; i < DISPOSALS_MAX; i++) {
		last = next_id();
		cr_assert_eq(coordinator_dispose(coordinator, "/nothing", &last), 0);
	}
	id = next_id();
	cr_expect_eq(coordinator_dispose(coordinator, "/nothing", &id), -EAGAIN);
	WAIT_UNTIL(coordinator_disposal_answer(coordinator, last, &a) && a.is_done);
	cr_expect_eq(coordinator_dispose(coordinator, "/nothing", &id), 0);
	WAIT_UNTIL(coordinator_disposal_answer(coordinator, id, &a) && a.is_done);
}
