#include "dataplane/operator/file_sink_withdraw.h"
#include "tests/support/capture_writer.h"

#include <criterion/criterion.h>
#include <unistd.h>

static char directory[256], text[512];
static uint32_t told;

static void setup(void)
{
	make_test_directory(directory);
}

static void teardown(void)
{
	remove_test_directory(directory);
}

TestSuite(file_sink_withdraw, .init = setup, .fini = teardown, .timeout = 20);

static const char *in_directory(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void make(const char *name)
{
	FILE *f = fopen(in_directory(name), "w");

	cr_assert_not_null(f);
	fputs(name, f);
	fclose(f);
}

static bool is_there(const char *name)
{
	return access(in_directory(name), F_OK) == 0;
}

static void tell(void *user, const char *from, const char *to)
{
	(void)user;
	cr_expect_neq(access(from, F_OK), 0);
	cr_expect_eq(access(to, F_OK), 0);
	told++;
}

static int withdraw(int64_t above)
{
	told = 0;
	return file_sink_withdraw(directory, "sink", above, tell, NULL, text);
}

Test(file_sink_withdraw, parts_committed_above_the_checkpoint_move_away_and_are_told)
{
	make("part-sink-0-0000000001.csv");
	make("part-sink-1-0000000002.csv");
	make("part-sink-0-0000000003.csv");
	make("part-sink-1-0000000003.csv");
	make("part-sink-0-12345678901.csv");
	cr_assert_eq(withdraw(2), 0, "%s", text);
	cr_expect_eq(told, 3);
	cr_expect(is_there("part-sink-0-0000000001.csv"));
	cr_expect(is_there("part-sink-1-0000000002.csv"));
	cr_expect_not(is_there("part-sink-0-0000000003.csv"));
	cr_expect(is_there("withdrawn/part-sink-0-0000000003.csv"));
	cr_expect(is_there("withdrawn/part-sink-1-0000000003.csv"));
	cr_expect(is_there("withdrawn/part-sink-0-12345678901.csv"));
}

Test(file_sink_withdraw, what_belongs_to_others_stays)
{
	static const char *const names[] = {"part-sink-0-0000000009.csv.tmp",
			"part-sink-0-final.csv", "part-other-0-0000000009.csv",
			"part-sink-1-0-0000000009.csv", "part-sink-x-0000000009.csv", "readme"};

	for (size_t i = 0; i < 6; i++)
		make(names[i]);
	cr_assert_eq(withdraw(0), 0, "%s", text);
	cr_expect_eq(told, 0);
	for (size_t i = 0; i < 6; i++)
		cr_expect(is_there(names[i]), "%s is gone", names[i]);
}

Test(file_sink_withdraw, a_part_withdrawn_twice_is_kept_twice)
{
	make("part-sink-0-0000000003.csv");
	cr_assert_eq(withdraw(2), 0, "%s", text);
	make("part-sink-0-0000000003.csv");
	cr_assert_eq(withdraw(2), 0, "%s", text);
	cr_expect_eq(told, 1);
	cr_expect(is_there("withdrawn/part-sink-0-0000000003.csv"));
	cr_expect(is_there("withdrawn/part-sink-0-0000000003.csv.1"));
}

Test(file_sink_withdraw, a_directory_that_is_not_there_has_nothing_to_withdraw)
{
	cr_expect_eq(file_sink_withdraw("/nonexistent/out", "sink", 0, tell, NULL, text), 0);
	cr_expect_eq(told, 0);
}

Test(file_sink_withdraw, a_part_that_cannot_be_moved_is_named)
{
	make("part-sink-0-0000000003.csv");
	make("withdrawn"); /* a file where the directory must be */
	cr_expect_neq(withdraw(2), 0);
	cr_expect_not_null(strstr(text, "part-sink-0-0000000003.csv"), "%s", text);
	cr_expect(is_there("part-sink-0-0000000003.csv"));
}
