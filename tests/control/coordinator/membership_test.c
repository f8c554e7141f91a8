#include "control/coordinator/membership.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct membership m;

static void init(void)
{
	membership_init(&m, 500);
}

TestSuite(membership, .init = init);

Test(membership, finds_the_one_that_went_silent_and_only_after_the_timeout)
{
	uint32_t a = membership_add(&m, "a", 1000), b = membership_add(&m, "b", 1000);

	membership_heard(&m, b, 1400);
	cr_assert_eq(membership_silent(&m, 1500), MEMBER_NONE);
	cr_assert_eq(membership_silent(&m, 1501), a);
	membership_remove(&m, a);
	cr_assert_eq(membership_silent(&m, 1900), MEMBER_NONE);
	cr_assert_eq(membership_silent(&m, 1901), b);
}

Test(membership, gives_the_next_job_to_the_least_loaded)
{
	cr_assert_eq(membership_choose(&m), MEMBER_NONE);
	uint32_t a = membership_add(&m, "a", 0), b = membership_add(&m, "b", 0);

	m.members[a].job_count = 1;
	cr_assert_eq(membership_choose(&m), b);
	m.members[b].job_count = 1;
	cr_assert_eq(membership_choose(&m), a);
}

Test(membership, takes_a_returned_one_as_new)
{
	uint32_t a = membership_add(&m, "a", 0);

	m.members[a].job_count = 3;
	membership_remove(&m, a);
	cr_assert_eq(membership_find(&m, "a"), MEMBER_NONE);
	a = membership_add(&m, "a", 5);
	cr_assert_eq(membership_find(&m, "a"), a);
	cr_assert_eq(m.members[a].job_count, 0);
	cr_assert_eq(membership_count(&m), 1);
}

Test(membership, refuses_more_than_it_has_room_for)
{
	char id[16];

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		snprintf(id, sizeof(id), "%u", i);
		cr_assert_neq(membership_add(&m, id, 0), MEMBER_NONE);
	}
	cr_assert_eq(membership_add(&m, "one more", 0), MEMBER_NONE);
	cr_assert_eq(membership_count(&m), MEMBERS_COUNT_MAX);
}

Test(membership, does_not_count_the_silence_of_one_that_builds_tasks)
{
	uint32_t a = membership_add(&m, "a", 0);

	membership_set_busy(&m, a, true, 0);
	cr_assert_eq(membership_silent(&m, 100000), MEMBER_NONE);
	membership_set_busy(&m, a, false, 100000);
	cr_assert_eq(membership_silent(&m, 100500), MEMBER_NONE);
	cr_assert_eq(membership_silent(&m, 100501), a);
}

Test(membership, does_not_blame_others_for_its_own_pause)
{
	membership_add(&m, "a", 0);
	membership_forgive(&m, 100000);
	cr_assert_eq(membership_silent(&m, 100500), MEMBER_NONE);
}
