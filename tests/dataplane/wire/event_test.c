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
