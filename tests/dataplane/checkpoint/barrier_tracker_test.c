#include "tests/support/barrier_run.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* ---- 16.7: counting ---- */

static const struct barrier_row COUNTING[] = {
		{"first", "", "b5@1", "", 5, 5},
		{"same channel again", "b5@1", "b5@1", "", 5, 5},
		{"last", "b5@0 b5@1", "b5@2", "trigger5", 5, 0},
		{"newer beside older", "b5@0", "b6@0", "", 6, 5},
		{"newer complete", "b5@0 b6@0 b6@1", "b6@2", "trigger6", 6, 0},
		{"older complete", "b5@0 b6@0 b5@1", "b5@2", "trigger5", 6, 6},
		{"older unknown", "b5@0 b5@1 b5@2", "b4@0", "", 5, 0},
		{"announcement", "", "a5@0", "", -1, 0},
		{"cancel, known", "b5@0", "x5@1", "abort5:cancelled", 5, 0},
		{"cancel again", "b5@0 x5@1", "x5@2", "", 5, 0},
		{"cancel, all swallowed", "b5@0 x5@1 b5@2", "b6@0", "", 6, 6},
		{"cancel, aborted and complete", "b5@0 x5@1", "b5@2", "", 5, 0},
		{"cancel, newer", "b4@0 b5@0", "x6@1", "abort4:cancelled abort5:cancelled "
						       "abort6:cancelled", 6, 0},
		{"cancel, older", "b5@0", "x4@1", "", 5, 5},
		{"end completes the newest", "b5@0 b5@1 b6@0 b6@1 b7@0", "e@2", "trigger6", 7, 7},
		{"end completes an aborted one", "b5@0 x5@1", "e@2", "", 5, 0},
		{"one channel left, barrier", "e@0 e@1", "b5@2", "trigger5", -1, 0},
		{"one channel left, cancel", "e@0 e@1", "x5@2", "abort5:cancelled", -1, 0},
		{"one channel left, known", "b5@0 b5@1 e@0", "e@1", "", 5, 5},
};

Test(barrier_tracker, at_least_once_counts_side_by_side_and_blocks_nothing)
{
	for (size_t i = 0; i < sizeof(COUNTING) / sizeof(COUNTING[0]); i++) {
		const struct barrier_row *row = &COUNTING[i];
		struct barrier_run r;

		barrier_run_open_counting(&r, 3, true);
		barrier_run_expect(&r, row);
	}
}

Test(barrier_tracker, many_channels_are_counted_one_by_one)
{
	char fact[16];
	struct barrier_run r;

	barrier_run_open_counting(&r, 130, true);
	for (int i = 0; i < 129; i++) {
		snprintf(fact, sizeof(fact), "b1@%d", i);
		cr_assert_str_eq(barrier_run_tell(&r, fact), "");
	}
	cr_assert_str_eq(barrier_run_tell(&r, "b1@129"), "trigger1");
	barrier_run_close(&r);
}

/* BT-6 with the feature off. */
Test(barrier_tracker, without_finished_tasks_an_end_aborts_all_that_is_counted)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, false);
	barrier_run_tell(&r, "b5@0 b6@1");
	cr_assert_str_eq(barrier_run_tell(&r, "e@2"), "abort5:end-of-stream abort6:end-of-stream");
	cr_assert_eq(barrier_run_pending(&r), 0);
	barrier_run_close(&r);
}
