#include "dataplane/checkpoint/channel_state_persister.h"

#include <criterion/criterion.h>

static struct channel_state_persister p;

static void init(void)
{
	channel_state_persister_init(&p);
}

TestSuite(channel_state_persister, .init = init);

/* "from+count" of what is to be persisted of so many buffers. */
static void expect_take(uint64_t known, uint64_t from, uint32_t count)
{
	uint32_t got;
	uint64_t at = channel_state_persister_take(&p, known, &got);

	cr_assert_eq(got, count);
	if (count > 0)
		cr_assert_eq(at, from);
}

Test(channel_state_persister, persists_nothing_before_a_checkpoint_has_started)
{
	expect_take(100, 0, 0);
	channel_state_persister_check(&p, 1, 10);
	expect_take(100, 0, 0);
}

/* PS-1, PS-3. */
Test(channel_state_persister, persists_from_the_position_on_until_the_barrier_has_come)
{
	cr_assert(channel_state_persister_start(&p, 1, 5));
	expect_take(8, 5, 3);
	expect_take(8, 0, 0);
	expect_take(9, 8, 1);
	channel_state_persister_check(&p, 1, 11);
	expect_take(20, 9, 2);
	cr_assert_not(channel_state_persister_is_waiting(&p, 1));
	expect_take(30, 0, 0);
}

Test(channel_state_persister, a_barrier_seen_before_ends_what_is_known_at_the_start)
{
	channel_state_persister_check(&p, 1, 7);
	cr_assert(channel_state_persister_start(&p, 1, 5));
	expect_take(20, 5, 2);
	cr_assert_not(channel_state_persister_is_waiting(&p, 1));
}

/* A channel that has delivered its barrier has gone on behind it. */
Test(channel_state_persister, nothing_is_kept_of_a_channel_that_is_past_its_barrier)
{
	channel_state_persister_check(&p, 1, 3);
	cr_assert(channel_state_persister_start(&p, 1, 5));
	cr_assert_not(channel_state_persister_is_waiting(&p, 1));
	expect_take(20, 0, 0);
}

/* Control is ahead of data. */
Test(channel_state_persister, buffers_before_the_barrier_are_kept_when_they_come_after_the_stop)
{
	cr_assert(channel_state_persister_start(&p, 1, 0));
	channel_state_persister_check(&p, 1, 4);
	channel_state_persister_stop(&p, 1, 2);
	cr_assert(channel_state_persister_is_waiting(&p, 1));
	expect_take(3, 0, 3);
	expect_take(9, 3, 1);
	cr_assert_not(channel_state_persister_is_waiting(&p, 1));
}

Test(channel_state_persister, without_a_barrier_the_stop_is_the_end)
{
	cr_assert(channel_state_persister_start(&p, 1, 2));
	channel_state_persister_stop(&p, 1, 6);
	expect_take(20, 2, 4);
}

/* PS-1. */
Test(channel_state_persister, cannot_start_behind_a_newer_barrier)
{
	channel_state_persister_check(&p, 2, 4);
	cr_assert_not(channel_state_persister_start(&p, 1, 0));
	cr_assert(channel_state_persister_start(&p, 2, 0));
	expect_take(9, 0, 4);
}

/* PS-2. */
Test(channel_state_persister, an_older_stop_ends_nothing)
{
	cr_assert(channel_state_persister_start(&p, 2, 0));
	channel_state_persister_stop(&p, 1, 3);
	expect_take(5, 0, 5);
	cr_assert(channel_state_persister_is_waiting(&p, 2));
	cr_assert_eq(p.state, PERSISTER_BARRIER_PENDING);
	cr_assert_eq(p.last_seen, 2);
}

/* PS-4. */
Test(channel_state_persister, an_older_barrier_is_no_end_and_a_newer_one_is)
{
	cr_assert(channel_state_persister_start(&p, 5, 0));
	channel_state_persister_check(&p, 4, 1);
	expect_take(3, 0, 3);
	channel_state_persister_check(&p, 6, 4);
	expect_take(9, 3, 1);
	cr_assert_eq(p.last_seen, 6);
}

Test(channel_state_persister, after_the_stop_the_same_barrier_is_not_seen_again)
{
	cr_assert(channel_state_persister_start(&p, 1, 0));
	channel_state_persister_check(&p, 1, 2);
	channel_state_persister_stop(&p, 1, 9);
	channel_state_persister_check(&p, 1, 7);
	cr_assert_eq(p.state, PERSISTER_COMPLETED);
	expect_take(9, 0, 2);
}

Test(channel_state_persister, what_is_cancelled_takes_nothing_more_and_a_younger_one_goes_on)
{
	cr_assert(channel_state_persister_start(&p, 2, 0));
	channel_state_persister_cancel(&p, 1);
	expect_take(1, 0, 1);
	channel_state_persister_cancel(&p, 2);
	cr_assert_not(channel_state_persister_is_waiting(&p, 2));
	expect_take(9, 0, 0);
}

/* PS-2, PS-4: what was stopped is over, also where it never started. */
Test(channel_state_persister, a_newer_stop_counts_as_its_barrier)
{
	cr_assert(channel_state_persister_start(&p, 1, 5));
	channel_state_persister_stop(&p, 2, 5);
	channel_state_persister_check(&p, 2, 7);
	cr_assert(channel_state_persister_start(&p, 2, 5));
	expect_take(20, 5, 15); /* the barrier is behind us: it ends nothing */
}

Test(channel_state_persister, a_newer_barrier_brings_nothing_back_of_what_was_cancelled)
{
	cr_assert(channel_state_persister_start(&p, 1, 5));
	channel_state_persister_cancel(&p, 1);
	channel_state_persister_check(&p, 2, 11);
	expect_take(20, 0, 0);
	cr_assert_not(channel_state_persister_is_waiting(&p, 1));
}
