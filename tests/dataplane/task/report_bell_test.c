#include "dataplane/task/report_bell.h"

#include <criterion/criterion.h>

Test(report_bell, has_nothing_to_ring_for_at_first)
{
	struct report_bell b = {0};

	cr_expect_not(report_bell_is_due(&b, false, UINT64_MAX));
}

Test(report_bell, waits_half_a_millisecond_for_tasks_that_no_barrier_has_reached)
{
	struct report_bell b = {0};

	report_bell_hold(&b, 1000);
	cr_expect_not(report_bell_is_due(&b, false, 1000 + REPORT_BELL_DELAY_NS - 1));
	cr_expect(report_bell_is_due(&b, false, 1000 + REPORT_BELL_DELAY_NS));
}

Test(report_bell, waits_longer_for_tasks_that_are_about_to_answer)
{
	struct report_bell b = {0};

	report_bell_hold(&b, 1000);
	cr_expect_not(report_bell_is_due(&b, true, 1000 + REPORT_BELL_WAIT_NS - 1));
	cr_expect(report_bell_is_due(&b, true, 1000 + REPORT_BELL_WAIT_NS));
	/* That one has no word to say any more: its checkpoint was aborted. */
	cr_expect(report_bell_is_due(&b, false, 1000 + REPORT_BELL_DELAY_NS));
}

Test(report_bell, counts_from_the_first_that_it_holds)
{
	struct report_bell b = {0};

	report_bell_hold(&b, 1000);
	report_bell_hold(&b, 400000);
	cr_expect(report_bell_is_due(&b, false, 1000 + REPORT_BELL_DELAY_NS));
	report_bell_rung(&b);
	cr_expect_not(report_bell_is_due(&b, false, UINT64_MAX));
	report_bell_hold(&b, 600000);
	cr_expect_not(report_bell_is_due(&b, false, 1000 + REPORT_BELL_DELAY_NS));
	cr_expect(report_bell_is_due(&b, false, 600000 + REPORT_BELL_DELAY_NS));
}
