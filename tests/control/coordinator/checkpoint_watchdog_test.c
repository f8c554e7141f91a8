#include "control/coordinator/checkpoint_watchdog.h"

#include <criterion/criterion.h>

static const uint64_t second = 1000000000;

static struct checkpoint_watchdog watching(uint32_t intervals, uint64_t interval_ns)
{
	struct checkpoint_watchdog w;

	checkpoint_watchdog_init(&w, intervals, interval_ns, second);
	checkpoint_watchdog_start(&w, 100 * second);
	return w;
}

Test(checkpoint_watchdog, complains_after_so_many_intervals_without_a_completion)
{
	struct checkpoint_watchdog w = watching(10, second);

	cr_assert_not(checkpoint_watchdog_is_due(&w, 110 * second - 1));
	cr_assert_not(w.is_overdue);
	cr_assert(checkpoint_watchdog_is_due(&w, 110 * second));
	cr_assert(w.is_overdue);
	cr_assert_eq(checkpoint_watchdog_age(&w, 110 * second), 10 * second);
}

Test(checkpoint_watchdog, complains_again_each_time_that_the_silence_has_doubled)
{
	struct checkpoint_watchdog w = watching(10, second);
	uint32_t count = 0;

	/* At 10, 20, 40 and 80 seconds. */
	for (uint64_t s = 0; s <= 100; s++)
		count += checkpoint_watchdog_is_due(&w, (100 + s) * second);
	cr_assert_eq(count, 4);
	/* One that did not look for long complains once. */
	cr_assert(checkpoint_watchdog_is_due(&w, 10000 * second));
	cr_assert_not(checkpoint_watchdog_is_due(&w, 10000 * second));
}

Test(checkpoint_watchdog, begins_anew_with_each_completed_checkpoint)
{
	struct checkpoint_watchdog w = watching(10, second);

	cr_assert(checkpoint_watchdog_is_due(&w, 111 * second));
	cr_assert(checkpoint_watchdog_see(&w, 7, 112 * second));
	cr_assert_not(w.is_overdue);
	cr_assert_not(checkpoint_watchdog_see(&w, 7, 115 * second));
	cr_assert_eq(checkpoint_watchdog_age(&w, 115 * second), 3 * second);
	cr_assert_not(checkpoint_watchdog_is_due(&w, 121 * second));
	cr_assert(checkpoint_watchdog_is_due(&w, 122 * second));
}

Test(checkpoint_watchdog, has_patience_with_intervals_that_are_short)
{
	struct checkpoint_watchdog w = watching(10, second / 1000);

	cr_assert_not(checkpoint_watchdog_is_due(&w, 101 * second - 1));
	cr_assert(checkpoint_watchdog_is_due(&w, 101 * second));
}

Test(checkpoint_watchdog, never_complains_when_nobody_expects_checkpoints)
{
	struct checkpoint_watchdog off = watching(0, second), manual = watching(10, 0);
	struct checkpoint_watchdog stopped = watching(10, second);

	cr_assert_not(checkpoint_watchdog_is_due(&off, 1000000 * second));
	cr_assert_not(checkpoint_watchdog_is_due(&manual, 1000000 * second));
	checkpoint_watchdog_stop(&stopped);
	cr_assert_not(checkpoint_watchdog_is_due(&stopped, 1000000 * second));
	cr_assert_eq(checkpoint_watchdog_age(&stopped, 1000000 * second), 0);
	/* Its age is told all the same. */
	cr_assert_eq(checkpoint_watchdog_age(&manual, 105 * second), 5 * second);
}

Test(checkpoint_watchdog, is_not_put_off_by_a_second_start)
{
	struct checkpoint_watchdog w = watching(10, second);

	checkpoint_watchdog_start(&w, 109 * second);
	cr_assert(checkpoint_watchdog_is_due(&w, 110 * second));
}

Test(checkpoint_watchdog, takes_the_longest_interval_there_is)
{
	struct checkpoint_watchdog w = watching(UINT32_MAX, UINT64_MAX);

	cr_assert_not(checkpoint_watchdog_is_due(&w, UINT64_MAX / 8));
}
