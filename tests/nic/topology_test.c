#include "nic/topology.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct topology *t;
static struct topology_choice choice;
static char error[TOPOLOGY_ERROR_BYTES];

static void end(void)
{
	topology_close(t);
}

TestSuite(topology, .fini = end);

/* Two sockets of two cores of two threads; the operating system counts first threads first. */
static const char machine[] = "pack:2 [numa] core:2 pu:2(indexes=0,4,1,5,2,6,3,7)";

static void open_machine(const char *cgroup, const char *affinity)
{
	cr_assert_eq(topology_open_synthetic(&t, machine, cgroup, affinity, error), 0, "%s", error);
}

static int choose(const char *text)
{
	struct core_list list;

	cr_assert_eq(core_list_parse(text, &list), 0);
	return topology_choose(t, &list, &choice, error);
}

static const char *chosen(void)
{
	static char text[256];

	topology_print_choice(&choice, text, sizeof(text));
	return text;
}

Test(topology, allowed_is_online_and_cgroup_and_affinity)
{
	char text[64];

	open_machine("0-5,9", "2-99");
	topology_print_set(t, TOPOLOGY_ONLINE, text, sizeof(text));
	cr_expect_str_eq(text, "0-7");
	topology_print_set(t, TOPOLOGY_CGROUP, text, sizeof(text));
	cr_expect_str_eq(text, "0-5");
	topology_print_set(t, TOPOLOGY_AFFINITY, text, sizeof(text));
	cr_expect_str_eq(text, "2-7");
	topology_print_set(t, TOPOLOGY_ALLOWED, text, sizeof(text));
	cr_expect_str_eq(text, "2-5");
	cr_expect_eq(topology_count(t, TOPOLOGY_ALLOWED), 4);
}

Test(topology, auto_takes_distinct_physical_cores_before_second_threads)
{
	open_machine("0-7", "0-7");
	cr_assert_eq(choose("auto:4"), 0, "%s", error);
	cr_expect_str_eq(chosen(),
			"0 (L#0, node 0), 1 (L#2, node 0), 2 (L#4, node 1), 3 (L#6, node 1)");
	cr_expect_str_eq(choice.control_cpus, "4-7");
	cr_assert_eq(choose("auto:5"), 0, "%s", error);
	cr_expect_eq(choice.count, 5);
	cr_expect_eq(choice.cores[4].os_index, 4);
}

Test(topology, auto_takes_at_most_what_is_allowed)
{
	open_machine("0-7", "1,5");
	cr_assert_eq(choose("auto:8"), 0, "%s", error);
	cr_expect_str_eq(chosen(), "1 (L#2, node 0), 5 (L#3, node 0)");
	cr_expect_str_eq(choice.control_cpus, "1,5");
	cr_assert_eq(choose("auto"), 0, "%s", error);
	cr_expect_eq(choice.count, 2);
}

Test(topology, a_list_is_taken_in_its_order)
{
	open_machine("0-7", "0-7");
	cr_assert_eq(choose("6,2-3"), 0, "%s", error);
	cr_expect_str_eq(chosen(), "6 (L#5, node 1), 2 (L#4, node 1), 3 (L#6, node 1)");
	cr_expect_str_eq(choice.control_cpus, "0-1,4-5,7");
}

Test(topology, logical_numbers_follow_the_machine)
{
	open_machine("0-7", "0-7");
	cr_assert_eq(choose("L#1,L#4"), 0, "%s", error);
	cr_expect_str_eq(chosen(), "4 (L#1, node 0), 2 (L#4, node 1)");
}

Test(topology, a_core_that_cannot_be_had_is_refused_by_name)
{
	open_machine("0-3", "0-7");
	cr_expect_eq(choose("0,8"), -ENODEV);
	cr_expect_str_eq(error, "weir.cores: core 8 is not online; expected some of 0-7");
	cr_expect_eq(choose("3-4"), -EPERM);
	cr_expect_str_eq(error,
			"weir.cores: core 4 is not allowed for this process; the cgroup leaves "
			"0-3, the affinity mask 0-7");
	cr_expect_eq(choose("L#1"), -EPERM);
	cr_expect_eq(choose("L#8"), -ENODEV);
}

Test(topology, masks_without_a_common_core_are_refused)
{
	open_machine("0-3", "4-7");
	cr_expect_eq(choose("auto:1"), -EPERM);
	cr_expect_str_eq(error, "weir.cores: cgroup and affinity mask leave no core in common");
}

Test(topology, a_machine_nobody_can_build_is_refused)
{
	cr_expect_lt(topology_open_synthetic(&t, "no machine", "0", "0", error), 0);
	t = NULL;
}

Test(topology, the_real_machine_has_an_allowed_core)
{
	cr_assert_eq(topology_open(&t, error), 0, "%s", error);
	cr_expect_gt(topology_count(t, TOPOLOGY_ALLOWED), 0);
	cr_expect_eq(choose("auto:1"), 0, "%s", error);
	cr_expect(topology_is_in(t, TOPOLOGY_ALLOWED, choice.cores[0].os_index));
}
