/* restart_strategy: semantics FO-5 at its bounds.  Rows of (failure at, delay) are a whole life. */

#include "control/coordinator/restart_strategy.h"

#include <criterion/criterion.h>

#define S UINT64_C(1000000000)

static const uint64_t middle = UINT64_C(1) << 63; /* of all random numbers: no jitter */

enum { NO_MORE = -1 };

struct row {
	uint64_t at_ns;
	int64_t delay_ns; /* or NO_MORE */
};

static void play(const struct restart_config *config, const struct row *rows, int count)
{
	struct restart_strategy s;
	uint64_t delay_ns;

	restart_strategy_init(&s, config);
	for (int i = 0; i < count; i++) {
		bool may = restart_strategy_on_failure(&s, middle, &delay_ns, rows[i].at_ns);

		cr_expect_eq(may, rows[i].delay_ns != NO_MORE, "failure %d", i + 1);
		if (may && rows[i].delay_ns != NO_MORE)
			cr_expect_eq(delay_ns, (uint64_t)rows[i].delay_ns, "failure %d: %lu ns",
					i + 1, delay_ns);
	}
}

#define PLAY(config, ...)                                                                          \
	do {                                                                                       \
		const struct row rows_[] = {__VA_ARGS__};                                          \
		play(config, rows_, sizeof(rows_) / sizeof(rows_[0]));                             \
	} while (0)

static struct restart_config exponential(void)
{
	return (struct restart_config){.kind = RESTART_EXPONENTIAL,
			.initial_ns = S,
			.max_ns = 60 * S,
			.reset_ns = 3600 * S,
			.multiplier = 1.5,
			.jitter = 0.1};
}

static struct restart_config fixed(uint32_t attempts, uint64_t delay_ns)
{
	return (struct restart_config){.kind = RESTART_FIXED_DELAY,
			.attempts_max = attempts,
			.delay_ns = delay_ns};
}

static struct restart_config rate(uint32_t failures, uint64_t interval_ns)
{
	return (struct restart_config){.kind = RESTART_FAILURE_RATE,
			.failures_max = failures,
			.rate_interval_ns = interval_ns,
			.delay_ns = S};
}

/* ---- none, fixed-delay ---- */

Test(restart_strategy, none_has_no_delay_whatever_is_configured_for_other_kinds)
{
	struct restart_config c = fixed(2, S);
	struct restart_strategy s;
	uint64_t delay_ns = 5 * S;

	c.kind = RESTART_NONE;
	restart_strategy_init(&s, &c);
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay_ns, S));
	cr_assert_eq(delay_ns, 0);
}

Test(restart_strategy, none_never_restarts)
{
	PLAY((&(struct restart_config){.kind = RESTART_NONE}), {S, NO_MORE}, {2 * S, NO_MORE});
}

Test(restart_strategy, fixed_delay_restarts_as_often_as_it_may_and_never_again)
{
	struct restart_config c = fixed(2, S);

	PLAY(&c, {10 * S, S}, {20 * S, S}, {30 * S, NO_MORE}, {90000 * S, NO_MORE});
}

Test(restart_strategy, fixed_delay_of_no_attempts_is_none)
{
	struct restart_config c = fixed(0, S);

	PLAY(&c, {10 * S, NO_MORE});
}

Test(restart_strategy, fixed_delay_of_nothing_restarts_at_once)
{
	struct restart_config c = fixed(2, 0);

	PLAY(&c, {10 * S, 0}, {10 * S + 1, 0}, {10 * S + 2, NO_MORE});
}

/* ---- failure-rate ---- */

/* Flink: one more than max-failures-per-interval, and the oldest of them not older than it. */
Test(restart_strategy, failure_rate_ends_when_the_oldest_of_too_many_is_just_as_old_as_the_interval)
{
	struct restart_config c = rate(1, 60 * S);

	PLAY(&c, {100 * S, S}, {160 * S + 1, S}, {220 * S + 1, NO_MORE});
	PLAY(&c, {100 * S, S}, {160 * S, NO_MORE});
}

Test(restart_strategy, failure_rate_slides)
{
	struct restart_config c = rate(3, 60 * S);

	PLAY(&c, {S, S}, {20 * S, S}, {40 * S, S}, {62 * S, S}, {81 * S, S}, {100 * S, NO_MORE});
}

Test(restart_strategy, failure_rate_counts_as_many_as_can_be_asked_for)
{
	struct restart_config c = rate(RESTART_FAILURES_MAX, 1000000 * S);
	struct restart_strategy s;
	uint64_t delay_ns, now_ns = S;

	restart_strategy_init(&s, &c);
	for (int i = 0; i < RESTART_FAILURES_MAX; i++, now_ns += 2 * S)
		cr_assert(restart_strategy_on_failure(&s, middle, &delay_ns, now_ns), "%d", i);
	cr_assert_not(restart_strategy_on_failure(&s, middle, &delay_ns, now_ns));
	/* All of those but the last are forgotten behind the interval, however often it went round.
	 */
	cr_assert(restart_strategy_on_failure(&s, middle, &delay_ns, now_ns + 1000000 * S));
}

/* However often the ring went round: after so many far apart, one that comes too early ends it. */
Test(restart_strategy, failure_rate_compares_with_the_right_one_however_many_there_were)
{
	struct restart_config c = rate(1, 60 * S);
	struct restart_strategy s;
	uint64_t delay_ns;

	for (uint64_t far_apart = 1; far_apart <= 2 * RESTART_FAILURES_MAX + 5; far_apart++) {
		restart_strategy_init(&s, &c);
		for (uint64_t i = 1; i <= far_apart; i++)
			cr_assert(restart_strategy_on_failure(&s, middle, &delay_ns, i * 100 * S));
		cr_assert_not(restart_strategy_on_failure(
				&s, middle, &delay_ns, far_apart * 100 * S + 50 * S));
	}
}

/* ---- exponential-delay ---- */

Test(restart_strategy, exponential_delay_grows_by_half_up_to_its_maximum)
{
	struct restart_config c = exponential();

	c.max_ns = 4 * S;
	PLAY(&c, {0, S}, {2 * S, 3 * S / 2}, {4 * S, 9 * S / 4}, {8 * S, 27 * S / 8},
			{12 * S, 4 * S}, {17 * S, 4 * S});
}

Test(restart_strategy, exponential_delay_jitters_by_a_tenth_each_way)
{
	struct restart_config c = exponential();
	struct restart_strategy s;
	uint64_t delay_ns;

	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, 0, &delay_ns, 0);
	cr_expect_eq(delay_ns, 9 * S / 10);
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, UINT64_MAX, &delay_ns, 0);
	cr_expect_geq(delay_ns, 11 * S / 10 - 1);
	cr_expect_leq(delay_ns, 11 * S / 10);
}

Test(restart_strategy, jitter_does_not_build_up_from_restart_to_restart)
{
	struct restart_config c = exponential();
	struct restart_strategy s;
	uint64_t delay_ns;

	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, 0, &delay_ns, S);
	restart_strategy_on_failure(&s, 0, &delay_ns, 4 * S);
	cr_expect_eq(delay_ns, 135 * S / 100);
	restart_strategy_on_failure(&s, middle, &delay_ns, 8 * S);
	cr_expect_eq(delay_ns, 9 * S / 4);
}

Test(restart_strategy, jitter_never_waits_longer_than_the_maximum)
{
	struct restart_config c = exponential();
	struct restart_strategy s;
	uint64_t delay_ns;

	c.initial_ns = c.max_ns;
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, UINT64_MAX, &delay_ns, S);
	cr_expect_eq(delay_ns, 60 * S);
}

Test(restart_strategy, delays_of_centuries_do_not_overflow)
{
	struct restart_config c = exponential();
	struct restart_strategy s;
	uint64_t delay_ns;

	c.initial_ns = INT64_MAX;
	c.max_ns = INT64_MAX;
	c.multiplier = 1e300;
	c.jitter = 1;
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, UINT64_MAX, &delay_ns, S);
	cr_expect_eq(delay_ns, INT64_MAX);
	cr_expect_eq(s.backoff_ns, INT64_MAX);
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, middle, &delay_ns, S);
	cr_expect_eq(delay_ns, INT64_MAX, "just the maximum");
	restart_strategy_init(&s, &c);
	restart_strategy_on_failure(&s, 0, &delay_ns, S);
	cr_expect_eq(delay_ns, 0, "jitter 1 may take all of it");
}

/* The quiet is counted from the restart, not from the failure. */
Test(restart_strategy, exponential_delay_begins_again_after_a_quiet_of_just_its_threshold)
{
	struct restart_config c = exponential();

	PLAY(&c, {0, S}, {10 * S, 3 * S / 2}, {3600 * S, 9 * S / 4}, {7202 * S + S / 4, S});
	PLAY(&c, {0, S}, {3601 * S - 1, 3 * S / 2});
	PLAY(&c, {0, S}, {3601 * S, S}, {3603 * S, 3 * S / 2});
}

Test(restart_strategy, exponential_delay_counts_attempts_anew_after_a_quiet)
{
	struct restart_config c = exponential();

	c.attempts_max = 2;
	PLAY(&c, {0, S}, {10 * S, 3 * S / 2}, {20 * S, NO_MORE});
	PLAY(&c, {0, S}, {10 * S, 3 * S / 2}, {4000 * S, S}, {4010 * S, 3 * S / 2},
			{4020 * S, NO_MORE});
}

Test(restart_strategy, may_restart_the_first_time_at_once)
{
	struct restart_config c = exponential();

	c.is_first_at_once = true;
	PLAY(&c, {5 * S, 0}, {6 * S, S}, {8 * S, 3 * S / 2}, {8000 * S, 0}, {8001 * S, S});
}

/* ---- failures that come together ---- */

Test(restart_strategy, failures_up_to_the_moment_of_a_restart_belong_to_it)
{
	struct restart_config c = fixed(1, 10 * S), e = exponential();

	PLAY(&c, {0, 10 * S}, {4 * S, 6 * S}, {10 * S, 0}, {10 * S + 1, NO_MORE});
	PLAY(&e, {0, S}, {S / 2, S / 2}, {S, 0}, {S + 1, 3 * S / 2});
	c = rate(1, 60 * S);
	PLAY(&c, {0, S}, {S / 2, S / 2}, {2 * S, NO_MORE});
}

Test(restart_strategy, a_failure_before_any_restart_is_judged_even_at_time_zero)
{
	struct restart_config c = fixed(0, S);

	PLAY(&c, {0, NO_MORE});
}

Test(restart_strategy, kinds_have_the_names_of_the_key)
{
	cr_expect_str_eq(restart_kind_name(RESTART_NONE), "none");
	cr_expect_str_eq(restart_kind_name(RESTART_FIXED_DELAY), "fixed-delay");
	cr_expect_str_eq(restart_kind_name(RESTART_FAILURE_RATE), "failure-rate");
	cr_expect_str_eq(restart_kind_name(RESTART_EXPONENTIAL), "exponential-delay");
}
