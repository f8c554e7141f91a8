/* restart_config: the keys of restart strategies, their presets and their errors (FO-5, 23.3). */

#include "control/coordinator/restart_config.h"

#include <criterion/criterion.h>
#include <errno.h>

#define S UINT64_C(1000000000)
#define EXPONENTIAL "restart-strategy.exponential-delay."

static struct config *c;
static struct config_error error;
static struct restart_config r;

static void begin(void)
{
	cr_assert_eq(config_create(&c), 0);
}

static void end(void)
{
	config_destroy(c);
}

TestSuite(restart_config, .init = begin, .fini = end);

static void set(const char *option)
{
	cr_assert_eq(config_set_option(c, option, &error), 0, "%s", error.text);
}

static void expect_refused(const char *option, const char *message)
{
	cr_expect_eq(config_set_option(c, option, &error), -EINVAL, "%s", option);
	cr_expect_str_eq(error.text, message);
}

Test(restart_config, with_checkpoints_and_nothing_said_it_is_exponential_delay)
{
	set("execution.checkpointing.interval=1 s");
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_EXPONENTIAL);
	cr_expect_eq(r.initial_ns, S);
	cr_expect_eq(r.max_ns, 60 * S);
	cr_expect_eq(r.reset_ns, 3600 * S);
	cr_expect_eq(r.multiplier, 1.5);
	cr_expect_eq(r.jitter, 0.1);
	cr_expect_eq(r.attempts_max, 0, "without limit");
	cr_expect(r.is_first_at_once);
}

Test(restart_config, without_checkpoints_and_nothing_said_there_is_no_restart)
{
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_NONE);
	set("execution.checkpointing.interval=0");
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_NONE);
}

Test(restart_config, without_checkpoints_a_strategy_that_is_asked_for_holds)
{
	set("restart-strategy.type=exponential-delay");
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_EXPONENTIAL);
}

Test(restart_config, none_has_three_names)
{
	static const char *const names[] = {"none", "off", "disable"};

	set("execution.checkpointing.interval=1 s");
	for (int i = 0; i < 3; i++) {
		char option[64];

		snprintf(option, sizeof(option), "restart-strategy.type=%s", names[i]);
		set(option);
		restart_config_read(&r, c);
		cr_expect_eq(r.kind, RESTART_NONE, "%s", names[i]);
	}
}

Test(restart_config, fixed_delay_is_once_after_a_second_unless_told)
{
	set("restart-strategy.type=fixed-delay");
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_FIXED_DELAY);
	cr_expect_eq(r.attempts_max, 1);
	cr_expect_eq(r.delay_ns, S);
	set("restart-strategy.fixed-delay.attempts=2147483647");
	set("restart-strategy.fixed-delay.delay=0 ms");
	restart_config_read(&r, c);
	cr_expect_eq(r.attempts_max, INT32_MAX);
	cr_expect_eq(r.delay_ns, 0);
}

Test(restart_config, failure_rate_is_one_a_minute_after_a_second_unless_told)
{
	set("restart-strategy.type=failure-rate");
	restart_config_read(&r, c);
	cr_expect_eq(r.kind, RESTART_FAILURE_RATE);
	cr_expect_eq(r.failures_max, 1);
	cr_expect_eq(r.rate_interval_ns, 60 * S);
	cr_expect_eq(r.delay_ns, S);
	set("restart-strategy.failure-rate.max-failures-per-interval=1000");
	set("restart-strategy.failure-rate.failure-rate-interval=5 min");
	set("restart-strategy.failure-rate.delay=2 s");
	restart_config_read(&r, c);
	cr_expect_eq(r.failures_max, RESTART_FAILURES_MAX, "no less than was asked for");
	cr_expect_eq(r.rate_interval_ns, 300 * S);
	cr_expect_eq(r.delay_ns, 2 * S);
}

Test(restart_config, exponential_delay_takes_all_of_its_keys)
{
	set("restart-strategy.type=exponential-delay");
	set(EXPONENTIAL "initial-backoff=2 s");
	set(EXPONENTIAL "max-backoff=20 s");
	set(EXPONENTIAL "backoff-multiplier=2.5");
	set(EXPONENTIAL "reset-backoff-threshold=10 min");
	set(EXPONENTIAL "jitter-factor=0");
	set(EXPONENTIAL "attempts-before-reset-backoff=7");
	set("weir.restart.first-at-once=false");
	restart_config_read(&r, c);
	cr_expect_eq(r.initial_ns, 2 * S);
	cr_expect_eq(r.max_ns, 20 * S);
	cr_expect_eq(r.multiplier, 2.5);
	cr_expect_eq(r.reset_ns, 600 * S);
	cr_expect_eq(r.jitter, 0);
	cr_expect_eq(r.attempts_max, 7);
	cr_expect_not(r.is_first_at_once);
}

Test(restart_config, values_that_make_no_sense_are_refused_by_name)
{
	expect_refused("restart-strategy.type=sometimes",
			"-D option: restart-strategy.type: \"sometimes\" is not known; expected "
			"one of "
			"exponential-delay|fixed-delay|failure-rate|disable|none|off");
	expect_refused(EXPONENTIAL "backoff-multiplier=1",
			"-D option: " EXPONENTIAL
			"backoff-multiplier: \"1\" does not fit; expected a "
			"number greater than 1");
	expect_refused(EXPONENTIAL "backoff-multiplier=-3",
			"-D option: " EXPONENTIAL
			"backoff-multiplier: \"-3\" does not fit; expected a "
			"number greater than 1");
	expect_refused(EXPONENTIAL "jitter-factor=1.01",
			"-D option: " EXPONENTIAL
			"jitter-factor: \"1.01\" does not fit; expected a number "
			"from 0 to 1");
	expect_refused(EXPONENTIAL "jitter-factor=-0.1",
			"-D option: " EXPONENTIAL
			"jitter-factor: \"-0.1\" does not fit; expected a number "
			"from 0 to 1");
	expect_refused(EXPONENTIAL "attempts-before-reset-backoff=0",
			"-D option: " EXPONENTIAL
			"attempts-before-reset-backoff: \"0\" is too small; "
			"expected 1 to 2147483647");
	expect_refused("restart-strategy.failure-rate.max-failures-per-interval=1001",
			"-D option: restart-strategy.failure-rate.max-failures-per-interval: "
			"\"1001\" is too "
			"large; expected 1 to 1000");
	expect_refused("restart-strategy.fixed-delay.attempts=-1",
			"-D option: restart-strategy.fixed-delay.attempts: \"-1\" is too small; "
			"expected 0 to "
			"2147483647");
	expect_refused("restart-strategy.fixed-delay.delay=-1 s",
			"-D option: restart-strategy.fixed-delay.delay: \"-1 s\" is not a "
			"duration; expected a "
			"whole number and ns, us, ms, s, min, h or d, such as \"10 s\"");
}

Test(restart_config, a_longest_delay_below_the_first_is_refused)
{
	set(EXPONENTIAL "initial-backoff=2 min");
	cr_assert_eq(config_check(c, &error), -EINVAL);
	cr_expect(strstr(error.text, "initial-backoff") != NULL &&
					strstr(error.text, "max-backoff") != NULL,
			"%s", error.text);
	set(EXPONENTIAL "max-backoff=2 min");
	cr_expect_eq(config_check(c, &error), 0, "%s", error.text);
}
