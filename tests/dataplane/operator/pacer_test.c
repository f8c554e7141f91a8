#include "dataplane/operator/pacer.h"

#include <criterion/criterion.h>

static const uint64_t start_ns = 5000000000;

static uint64_t made_in(struct pacer *p, uint64_t from_ns, uint64_t to_ns, uint64_t step_ns)
{
	uint64_t total = 0, next_ns;

	for (uint64_t t = from_ns; t < to_ns; t += step_ns) {
		uint32_t count;

		while ((count = pacer_allow(p, 32, t, &next_ns)) > 0) {
			pacer_made(p, count);
			total += count;
		}
		cr_assert_gt(next_ns, t, "a source must not be called again before that time");
	}
	return total;
}

Test(pacer, without_a_rate_everything_is_allowed)
{
	struct pacer p = {0};
	uint64_t next_ns;

	cr_expect_eq(pacer_allow(&p, 512, start_ns, &next_ns), 512);
}

Test(pacer, a_second_holds_as_many_records_as_the_rate_says)
{
	struct pacer p = {.rate = 12345};

	cr_expect_eq(made_in(&p, start_ns, start_ns + 1000000000, 1000), 12345);
}

Test(pacer, a_rate_that_does_not_divide_a_second_does_not_drift)
{
	struct pacer p = {.rate = 7};

	cr_expect_eq(made_in(&p, start_ns, start_ns + UINT64_C(10000000000), 1000000), 70);
}

Test(pacer, the_next_record_is_named_to_the_nanosecond)
{
	struct pacer p = {.rate = 1000};
	uint64_t next_ns = 0;

	cr_assert_eq(pacer_allow(&p, 512, start_ns, &next_ns), 1);
	pacer_made(&p, 1);
	cr_expect_eq(pacer_allow(&p, 512, start_ns + 999999, &next_ns), 0);
	cr_expect_eq(next_ns, start_ns + 1000000);
	cr_expect_eq(pacer_allow(&p, 512, next_ns, &next_ns), 1);
}

Test(pacer, after_a_stall_only_a_tenth_of_a_second_is_made_up_for)
{
	struct pacer p = {.rate = 1000};
	uint64_t next_ns;

	pacer_made(&p, pacer_allow(&p, 1, start_ns, &next_ns));
	cr_expect_eq(pacer_allow(&p, 100000, start_ns + UINT64_C(30000000000), &next_ns), 101);
}
