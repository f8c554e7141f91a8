#include "dataplane/base/core_list.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct core_list list;

Test(core_list, auto_takes_as_many_as_it_says_or_as_there_can_be)
{
	cr_expect_eq(core_list_parse("auto:4", &list), 0);
	cr_expect(list.is_auto);
	cr_expect_eq(list.count, 4);
	cr_expect_eq(core_list_parse("auto", &list), 0);
	cr_expect_eq(list.count, WORKERS_COUNT_MAX);
}

Test(core_list, numbers_and_ranges_keep_their_order)
{
	cr_assert_eq(core_list_parse("7, 2-4", &list), 0);
	cr_expect(!list.is_auto);
	cr_expect(!list.is_logical);
	cr_assert_eq(list.count, 4);
	cr_expect_eq(list.cores[0], 7);
	cr_expect_eq(list.cores[1], 2);
	cr_expect_eq(list.cores[3], 4);
}

Test(core_list, logical_numbers_are_marked_and_do_not_mix_with_others)
{
	cr_assert_eq(core_list_parse("L#0,l#2-3", &list), 0);
	cr_expect(list.is_logical);
	cr_expect_eq(list.count, 3);
	cr_expect_eq(core_list_parse("L#0,2", &list), -EINVAL);
	cr_expect_eq(core_list_parse("2,L#0", &list), -EINVAL);
}

Test(core_list, other_forms_are_refused)
{
	static const char *const bad[] = {"", " ", ",", "1,", ",1", "1,,2", "a", "3-", "-3", "5-3",
			"1 2", "auto:", "auto:0", "auto:x", "automatic", "1-2-3", "L#", "0x1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(core_list_parse(bad[i], &list), -EINVAL, "\"%s\"", bad[i]);
}

Test(core_list, too_many_too_large_and_twice_are_told_apart)
{
	cr_expect_eq(core_list_parse("0-63", &list), 0);
	cr_expect_eq(core_list_parse("0-64", &list), -ERANGE);
	cr_expect_eq(core_list_parse("4096", &list), -ERANGE);
	cr_expect_eq(core_list_parse("99999999999999999999", &list), -ERANGE);
	cr_expect_eq(core_list_parse("auto:65", &list), -ERANGE);
	cr_expect_eq(core_list_parse("1-3,2", &list), -EEXIST);
}
