#include "control/coordinator/execution.h"

#include <criterion/criterion.h>
#include <string.h>

static struct execution e;

static void init(void)
{
	execution_reset(&e, 3, 7, UINT64_C(0x0102030405060708), 1000);
}

TestSuite(execution, .init = init);

Test(execution, id_tells_subtask_and_attempt_and_differs_for_each_attempt_and_run)
{
	struct execution next, other;

	cr_assert_eq(execution_subtask_of(e.attempt), 3);
	cr_assert_eq(execution_number_of(e.attempt), 7);
	cr_assert_eq(e.attempt_number, 7);
	execution_reset(&next, 0x11223344, 0x55667788, UINT64_C(0x99aabbccddeeff00), 1000);
	cr_assert_eq(execution_subtask_of(next.attempt), 0x11223344);
	cr_assert_eq(execution_number_of(next.attempt), 0x55667788);
	cr_assert_eq(execution_run_of(next.attempt), UINT64_C(0x99aabbccddeeff00));
	cr_assert_eq(next.state, EXECUTION_CREATED, "the id keeps to its place");
	execution_reset(&next, 3, 8, UINT64_C(0x0102030405060708), 1000);
	execution_reset(&other, 3, 7, UINT64_C(0x0102030405060709), 1000);
	cr_assert_not(id128_is_equal(e.attempt.id, next.attempt.id));
	cr_assert_not(id128_is_equal(e.attempt.id, other.attempt.id));
}

Test(execution, goes_its_way_and_remembers_when)
{
	cr_assert(execution_enter(&e, EXECUTION_DEPLOYING, 1001));
	cr_assert(execution_enter(&e, EXECUTION_RUNNING, 1002));
	cr_assert(execution_enter(&e, EXECUTION_FINISHED, 1003));
	cr_assert(execution_is_terminal(&e));
	cr_assert_eq(e.entered_ms[EXECUTION_CREATED], 1000);
	cr_assert_eq(e.entered_ms[EXECUTION_RUNNING], 1002);
	cr_assert_eq(e.entered_ms[EXECUTION_CANCELED], 0);
}

Test(execution, has_ended_when_it_finished_was_cancelled_or_failed)
{
	cr_assert_eq(e.subtask, 3);
	for (int state = 0; state < EXECUTION_STATES_COUNT; state++) {
		e.state = (enum execution_state)state;
		cr_assert_eq(execution_is_terminal(&e), state == EXECUTION_FINISHED ||
				state == EXECUTION_CANCELED || state == EXECUTION_FAILED);
	}
}

Test(execution, that_has_ended_stays_as_it_ended)
{
	execution_enter(&e, EXECUTION_DEPLOYING, 1001);
	execution_enter(&e, EXECUTION_FAILED, 1002);
	for (int state = 0; state < EXECUTION_STATES_COUNT; state++)
		cr_assert_not(execution_enter(&e, (enum execution_state)state, 1003));
	cr_assert_eq(e.state, EXECUTION_FAILED);
}

Test(execution, being_cancelled_does_not_run_again)
{
	execution_enter(&e, EXECUTION_DEPLOYING, 1001);
	execution_enter(&e, EXECUTION_CANCELING, 1002);
	cr_assert_not(execution_enter(&e, EXECUTION_RUNNING, 1003));
	cr_assert(execution_enter(&e, EXECUTION_FINISHED, 1004), "it may have been faster");
}

/* EX-1 */
Test(execution, without_a_slot_takes_calls_and_sends_nothing)
{
	cr_assert_null(e.gateway);
	execution_notify_complete(&e, 1, 0);
	execution_notify_aborted(&e, 1, 0);
	execution_cancel(&e);
	execution_send_event(&e, 0, "FILE /a");
}

Test(execution, begins_anew_with_nothing_of_what_was_before)
{
	struct execution dirty;
	int gateway;

	memset(&dirty, 0xff, sizeof(dirty));
	execution_reset(&dirty, 1, 2, 3, 1000);
	cr_assert_null(dirty.gateway);
	cr_assert_eq(dirty.member, MEMBER_NONE);
	cr_assert_eq(dirty.numbers.watermark, INT64_MIN);
	cr_assert_eq(dirty.numbers.records_in, 0);
	cr_assert_eq(dirty.entered_ms[EXECUTION_RUNNING], 0);
	execution_take_slot(&dirty, 5, (struct task_manager_gateway *)&gateway);
	cr_assert_eq(dirty.member, 5);
	execution_drop_slot(&dirty);
	cr_assert_null(dirty.gateway);
}

/* ---- rates ---- */

static void take(uint64_t at_ns, uint64_t records)
{
	const struct execution_numbers n = { .read_at_ns = at_ns, .records_in = records };

	execution_take_numbers(&e, &n);
}

Test(execution, rates_are_of_the_last_one_to_two_seconds)
{
	const uint64_t second = UINT64_C(1000000000);

	take(1, 0);
	take(1, 5);
	cr_assert(execution_rates(&e).records_in == 0, "no time has passed");
	take(1 + second, 10);
	cr_assert_float_eq(execution_rates(&e).records_in, 10, 1e-9);
	take(2 * second, 10);
	take(1 + 2 * second, 40);
	cr_assert_float_eq(execution_rates(&e).records_in, 30, 1e-9, "not of the first second");
}

Test(execution, what_does_not_grow_has_no_rate)
{
	take(1, 10);
	take(UINT64_C(1000000001), 10);
	cr_assert(execution_rates(&e).records_in == 0);
	take(UINT64_C(1000000002), 9);
	cr_assert(execution_rates(&e).records_in == 0, "nor has what shrinks");
}

Test(execution, that_has_ended_has_no_rates)
{
	execution_enter(&e, EXECUTION_DEPLOYING, 1001);
	take(1, 0);
	take(UINT64_C(1000000001), 10);
	cr_assert_float_eq(execution_rates(&e).records_in, 10, 1e-9);
	execution_enter(&e, EXECUTION_FAILED, 1002);
	cr_assert_float_eq(execution_rates(&e).records_in, 0, 1e-9);
}
