#include "control/coordinator/checkpoint_failure_manager.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* flink-semantics 9.1, written down a second time. */
static const char *const preflight[] = {
	"PERIODIC_SCHEDULER_SHUTDOWN",
	"TOO_MANY_CHECKPOINT_REQUESTS",
	"MINIMUM_TIME_BETWEEN_CHECKPOINTS",
	"NOT_ALL_REQUIRED_TASKS_RUNNING",
	"IO_EXCEPTION",
	"BLOCKING_OUTPUT_EXIST",
};

static const char *const counted[] = {
	"CHECKPOINT_DECLINED",
	"CHECKPOINT_ASYNC_EXCEPTION",
	"CHECKPOINT_EXPIRED",
	"FINALIZE_CHECKPOINT_FAILURE",
	"IO_EXCEPTION",
};

static bool is_in(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static const struct checkpoint_properties checkpoint = { .kind = KIND_CHECKPOINT };
static const struct checkpoint_properties savepoint = { .kind = KIND_SAVEPOINT };
static const struct checkpoint_properties stop = { .kind = KIND_SAVEPOINT_SUSPEND };

static enum failure_action fail(struct checkpoint_failure_manager *m, int64_t id,
		enum checkpoint_failure_reason reason)
{
	return checkpoint_failure_manager_on_failure(m, id, &checkpoint, reason, false);
}

Test(checkpoint_failure_reason, the_24_reasons_have_their_names_both_ways)
{
	enum checkpoint_failure_reason found;

	cr_assert(eq(int, REASONS_COUNT, 24));
	for (int i = 0; i < REASONS_COUNT; i++) {
		enum checkpoint_failure_reason r = (enum checkpoint_failure_reason)i;

		cr_assert(checkpoint_failure_reason_parse(
				checkpoint_failure_reason_name(r), &found));
		cr_assert(eq(int, (int)found, i));
		cr_assert(checkpoint_failure_reason_parse(
				checkpoint_failure_reason_short_name(r), &found));
		cr_assert(eq(int, (int)found, i));
		cr_assert(eq(int, strncmp(checkpoint_failure_reason_short_name(r), "CHECKPOINT_",
						      11) == 0,
				0));
	}
	cr_assert(not(checkpoint_failure_reason_parse("CHECKPOINT_", &found)));
	cr_assert(not(checkpoint_failure_reason_parse("expired", &found)));
}

Test(checkpoint_failure_reason, six_are_preflight_and_five_count)
{
	for (int i = 0; i < REASONS_COUNT; i++) {
		enum checkpoint_failure_reason r = (enum checkpoint_failure_reason)i;
		const char *name = checkpoint_failure_reason_name(r);

		cr_expect(eq(int, checkpoint_failure_reason_is_preflight(r),
					  is_in(preflight, 6, name)),
				"%s", name);
		cr_expect(eq(int, checkpoint_failure_reason_is_counted(r), is_in(counted, 5, name)),
				"%s", name);
	}
}

Test(checkpoint_failure_manager, each_reason_counts_or_not_by_the_table)
{
	for (int i = 0; i < REASONS_COUNT; i++) {
		enum checkpoint_failure_reason r = (enum checkpoint_failure_reason)i;
		const char *name = checkpoint_failure_reason_name(r);
		bool does_count = is_in(counted, 5, name);
		struct checkpoint_failure_manager m;

		checkpoint_failure_manager_init(&m, 0);
		cr_expect(eq(int, (int)fail(&m, 1, r),
					  does_count ? FAILURE_FAILS_JOB : FAILURE_TOLERATED),
				"%s", name);
		checkpoint_failure_manager_clear(&m);
		checkpoint_failure_manager_init(&m, 1);
		cr_expect(eq(int, (int)fail(&m, 1, r), FAILURE_TOLERATED), "%s", name);
		cr_expect(eq(u32, m.count, does_count), "%s", name);
		checkpoint_failure_manager_clear(&m);
	}
}

Test(checkpoint_failure_manager, the_action_depends_on_who_failed_and_what)
{
	for (int i = 0; i < REASONS_COUNT; i++) {
		enum checkpoint_failure_reason r = (enum checkpoint_failure_reason)i;
		const char *name = checkpoint_failure_reason_name(r);
		bool is_task_level = !is_in(preflight, 6, name);
		bool does_count = is_in(counted, 5, name);
		struct checkpoint_failure_manager m;

		checkpoint_failure_manager_init(&m, 0);
		/* FM-5: of a savepoint, on the coordinator's side: never. */
		cr_expect(eq(int,
					  (int)checkpoint_failure_manager_on_failure(
							  &m, 1, &savepoint, r, false),
					  FAILURE_TOLERATED),
				"%s", name);
		cr_expect(eq(int,
					  (int)checkpoint_failure_manager_on_failure(
							  &m, 2, &stop, r, false),
					  FAILURE_TOLERATED),
				"%s", name);
		/* FM-6: a task that fails a stop fails the job, whatever the reason. */
		cr_expect(eq(int,
					  (int)checkpoint_failure_manager_on_failure(
							  &m, 3, &stop, r, true),
					  is_task_level ? FAILURE_FAILS_JOB : FAILURE_TOLERATED),
				"%s", name);
		/* FM-6: of a plain savepoint the counter is used. */
		cr_expect(eq(int,
					  (int)checkpoint_failure_manager_on_failure(
							  &m, 4, &savepoint, r, true),
					  is_task_level && does_count
							  ? FAILURE_FAILS_JOB_IF_ATTEMPT_RUNS
							  : FAILURE_TOLERATED),
				"%s", name);
		checkpoint_failure_manager_clear(&m);
	}
}

Test(checkpoint_failure_manager, an_id_is_counted_once_and_no_id_every_time)
{
	struct checkpoint_failure_manager m;

	checkpoint_failure_manager_init(&m, 10);
	fail(&m, 3, REASON_EXPIRED);
	fail(&m, 3, REASON_DECLINED);
	fail(&m, 4, REASON_DECLINED);
	fail(&m, 3, REASON_DECLINED);
	cr_assert(eq(u32, m.count, 2));
	fail(&m, 0, REASON_IO_EXCEPTION);
	fail(&m, 0, REASON_IO_EXCEPTION);
	cr_assert(eq(u32, m.count, 4));
	checkpoint_failure_manager_clear(&m);
}

Test(checkpoint_failure_manager, more_than_are_tolerable_fail_the_job_and_start_anew)
{
	struct checkpoint_failure_manager m;

	checkpoint_failure_manager_init(&m, 2);
	cr_assert(eq(int, (int)fail(&m, 1, REASON_EXPIRED), FAILURE_TOLERATED));
	cr_assert(eq(int, (int)fail(&m, 2, REASON_EXPIRED), FAILURE_TOLERATED));
	cr_assert(eq(int, (int)fail(&m, 3, REASON_EXPIRED), FAILURE_FAILS_JOB));
	cr_assert(eq(u32, m.count, 0));
	/* The ids are forgotten too: a late second failure of an old one counts again. */
	cr_assert(eq(int, (int)fail(&m, 1, REASON_EXPIRED), FAILURE_TOLERATED));
	cr_assert(eq(u32, m.count, 1));
	checkpoint_failure_manager_clear(&m);
}

Test(checkpoint_failure_manager, only_a_newer_success_clears_and_older_failures_are_ignored)
{
	struct checkpoint_failure_manager m;

	checkpoint_failure_manager_init(&m, 5);
	fail(&m, 6, REASON_EXPIRED);
	checkpoint_failure_manager_on_success(&m, 7);
	cr_assert(eq(u32, m.count, 0));
	fail(&m, 7, REASON_EXPIRED);
	fail(&m, 5, REASON_EXPIRED);
	cr_assert(eq(u32, m.count, 0));
	fail(&m, 8, REASON_EXPIRED);
	checkpoint_failure_manager_on_success(&m, 6);
	checkpoint_failure_manager_on_success(&m, 7);
	cr_assert(eq(u32, m.count, 1));
	checkpoint_failure_manager_on_success(&m, 8);
	cr_assert(eq(u32, m.count, 0));
	checkpoint_failure_manager_clear(&m);
}

Test(checkpoint_failure_manager, the_largest_number_switches_counting_off)
{
	struct checkpoint_failure_manager m;

	checkpoint_failure_manager_init(&m, TOLERABLE_FAILURES_UNLIMITED);
	for (int64_t id = 1; id < 100; id++)
		cr_assert(eq(int, (int)fail(&m, id, REASON_EXPIRED), FAILURE_TOLERATED));
	cr_assert(eq(u32, m.count, 0));
	checkpoint_failure_manager_clear(&m);
}
