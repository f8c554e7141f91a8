#include "control/coordinator/restart_strategy.h"

#include <criterion/criterion.h>

static const uint64_t second = 1000000000;
static const uint64_t middle = UINT64_MAX / 2; /* no jitter */

static struct restart_config exponential(void)
{
	return (struct restart_config){.kind = RESTART_EXPONENTIAL, .initial_ns = second,
			.max_ns = 60 * second, .reset_ns = 3600 * second, .multiplier = 1.5,
			.jitter = 0.1};
}

static bool is_near(uint64_t a, uint64_t b)
{
	return a > b ? a - b < 1000 : b - a < 1000;
}

Test(restart_strategy, none_never_restarts)
{
	struct restart_strategy s;
	uint64_t delay;

	restart_strategy_init(&s, &(struct restart_config){.kind = RESTART_NONE});
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay, second));
}

Test(restart_strategy, fixed_delay_restarts_as_often_as_it_may)
{
	struct restart_strategy s;
	uint64_t delay;

	restart_strategy_init(&s, &(struct restart_config){.kind = RESTART_FIXED_DELAY,
						   .attempts_max = 2, .delay_ns = second});
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 10 * second));
	cr_assert_eq(delay, second);
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 20 * second));
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay, 30 * second));
}

Test(restart_strategy, failure_rate_forgets_old_failures)
{
	struct restart_strategy s;
	uint64_t delay;

	restart_strategy_init(&s, &(struct restart_config){.kind = RESTART_FAILURE_RATE,
						   .failures_max = 1, .delay_ns = second,
						   .rate_interval_ns = 60 * second});
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 100 * second));
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 161 * second));
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay, 200 * second));
}

Test(restart_strategy, exponential_delay_grows_by_half_up_to_its_maximum)
{
	struct restart_strategy s;
	struct restart_config c = exponential();
	uint64_t delay, now = 0;

	restart_strategy_init(&s, &c);
	double expected = 1e9;
	for (int i = 0; i < 20; i++) {
		cr_assert(restart_strategy_on_failure(&s, middle, &delay, now));
		cr_assert(is_near(delay, (uint64_t)expected), "%d: %lu", i, delay);
		now += delay + second;
		expected = expected * 1.5 > 60e9 ? 60e9 : expected * 1.5;
	}
	cr_assert(is_near(delay, 60 * second));
}

Test(restart_strategy, exponential_delay_jitters_by_a_tenth_each_way)
{
	struct restart_strategy s;
	struct restart_config c = exponential();
	uint64_t delay;

	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, 0, &delay, 0);
	cr_assert(is_near(delay, 900000000), "%lu", delay);
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, UINT64_MAX, &delay, 0);
	cr_assert(is_near(delay, 1100000000), "%lu", delay);
}

Test(restart_strategy, exponential_delay_begins_again_after_a_long_quiet)
{
	struct restart_strategy s;
	struct restart_config c = exponential();
	uint64_t delay;

	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, middle, &delay, 0);
	restart_strategy_on_failure(&s, middle, &delay, 10 * second);
	cr_assert(is_near(delay, 3 * second / 2));
	restart_strategy_on_failure(&s, middle, &delay, 3600 * second);
	cr_assert(is_near(delay, 9 * second / 4),
			"an hour since the failure, not since the restart");
	restart_strategy_on_failure(&s, middle, &delay, 7210 * second);
	cr_assert(is_near(delay, second));
}

Test(restart_strategy, may_restart_the_first_time_at_once)
{
	struct restart_strategy s;
	struct restart_config c = exponential();
	uint64_t delay;

	c.is_first_at_once = true;
	restart_strategy_init(&s, &c);
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 5 * second));
	cr_assert_eq(delay, 0);
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 6 * second));
	cr_assert(is_near(delay, second));
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 8000 * second));
	cr_assert_eq(delay, 0, "after a long quiet it is the first again");
}

Test(restart_strategy, failures_while_a_restart_waits_belong_to_it)
{
	struct restart_strategy s;
	uint64_t delay;

	restart_strategy_init(&s, &(struct restart_config){.kind = RESTART_FIXED_DELAY,
						   .attempts_max = 1, .delay_ns = 10 * second});
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 0));
	cr_assert(restart_strategy_on_failure(&s, middle, &delay, 4 * second));
	cr_assert_eq(delay, 6 * second);
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay, 11 * second));
}
