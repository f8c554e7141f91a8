#include "dataplane/wire/event.h"

#include <criterion/criterion.h>

Test(event, alignment_kinds_have_the_ordinals_of_flink)
{
	cr_assert_eq(ALIGNMENT_AT_LEAST_ONCE, 0);
	cr_assert_eq(ALIGNMENT_ALIGNED, 1);
	cr_assert_eq(ALIGNMENT_UNALIGNED, 2);
	cr_assert_eq(ALIGNMENT_FORCED_ALIGNED, 3);
}

static struct event barrier(enum alignment alignment, int64_t timeout_ms)
{
	return (struct event){.kind = EVENT_BARRIER,
			.options = {.alignment = (uint8_t)alignment,
					.aligned_timeout_ms = timeout_ms}};
}

/* 10.3 and IC-3. */
Test(event, the_age_of_a_barrier_is_bounded_whatever_it_says)
{
	struct event e = {.kind = EVENT_BARRIER, .timestamp_ms = 5};

	cr_expect_eq(event_age_ms(&e, 7), 2);
	cr_expect_eq(event_age_ms(&e, 5), 0);
	cr_expect_eq(event_age_ms(&e, 4), 0, "a clock ahead of ours");
	e.timestamp_ms = INT64_MAX;
	cr_expect_eq(event_age_ms(&e, -7), 0);
	e.timestamp_ms = INT64_MIN;
	cr_expect_eq(event_age_ms(&e, 7), INT64_MAX / 1000000);
	e.timestamp_ms = -INT64_MAX / 2;
	cr_expect_eq(event_age_ms(&e, 7), INT64_MAX / 1000000);
}

Test(event, only_unaligned_and_timeoutable_barriers_are_early)
{
	struct event e = barrier(ALIGNMENT_ALIGNED, ALIGNED_TIMEOUT_NONE);

	cr_assert_not(event_is_early(&e));
	e = barrier(ALIGNMENT_ALIGNED, 100);
	cr_assert(event_is_early(&e));
	cr_assert(checkpoint_options_is_timeoutable(&e.options));
	e = barrier(ALIGNMENT_ALIGNED, 0);
	cr_assert_not(event_is_early(&e));
	e = barrier(ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);
	cr_assert(event_is_early(&e));
	cr_assert_not(checkpoint_options_is_timeoutable(&e.options));
	e = barrier(ALIGNMENT_FORCED_ALIGNED, 100);
	cr_assert_not(event_is_early(&e));
	e = barrier(ALIGNMENT_AT_LEAST_ONCE, 100);
	cr_assert_not(event_is_early(&e));
	e = barrier(ALIGNMENT_UNALIGNED, ALIGNED_TIMEOUT_NONE);
	e.kind = EVENT_CANCEL;
	cr_assert_not(event_is_early(&e));
}
