#include "control/coordinator/directories_ahead.h"

#include <criterion/criterion.h>

static void add_next(struct directories_ahead *a, int64_t next_id, int64_t wanted)
{
	cr_assert_eq(directories_ahead_next(a, next_id), wanted);
	directories_ahead_add(a, wanted);
	directories_ahead_made(a, wanted, true);
}

Test(directories_ahead, the_first_is_for_the_next_checkpoint)
{
	struct directories_ahead a = {0};

	cr_expect_not(directories_ahead_take(&a, 4));
	add_next(&a, 5, 5);
	cr_expect_not(directories_ahead_take(&a, 4));
	cr_expect(directories_ahead_take(&a, 5));
	cr_expect_not(directories_ahead_take(&a, 5), "once");
}

/* The id of 5 was drawn before 1 could go, that of 6 was not before 2 could. */
Test(directories_ahead, one_more_is_for_the_checkpoint_behind_it)
{
	struct directories_ahead a = {0};

	add_next(&a, 6, 6);
	add_next(&a, 6, 7);
	cr_expect_eq(directories_ahead_next(&a, 6), 0, "these are enough");
	cr_expect(directories_ahead_take(&a, 6));
	add_next(&a, 8, 8);
	cr_expect(directories_ahead_take(&a, 7));
	cr_expect(directories_ahead_take(&a, 8));
}

Test(directories_ahead, one_is_not_there_before_it_was_made)
{
	struct directories_ahead a = {0};

	directories_ahead_add(&a, 5);
	cr_expect_not(directories_ahead_take(&a, 5));
	directories_ahead_made(&a, 5, true);
	cr_expect_not(directories_ahead_take(&a, 5), "whoever took it has waited for it");
	directories_ahead_add(&a, 6);
	directories_ahead_made(&a, 6, false);
	cr_expect_eq(directories_ahead_next(&a, 6), 6, "it could not be made");
	cr_expect_eq(directories_ahead_drop(&a, INT64_MAX), 0);
}

/* A savepoint takes an id and has its directory elsewhere. */
Test(directories_ahead, those_passed_over_are_dropped)
{
	struct directories_ahead a = {0};

	add_next(&a, 5, 5);
	add_next(&a, 5, 6);
	cr_expect_eq(directories_ahead_drop(&a, 4), 0);
	cr_expect_eq(directories_ahead_drop(&a, 5), 5);
	cr_expect_eq(directories_ahead_drop(&a, 5), 0);
	cr_expect(directories_ahead_take(&a, 6));
	add_next(&a, 7, 7);
	add_next(&a, 7, 8);
	cr_expect_eq(directories_ahead_drop(&a, INT64_MAX) + directories_ahead_drop(&a, INT64_MAX),
			15, "the job ends");
	cr_expect_eq(directories_ahead_drop(&a, INT64_MAX), 0);
}
