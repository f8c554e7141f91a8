#include "dataplane/operator/file_sink_lock.h"
#include "tests/support/capture_writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char directory[256];
static struct part_owner owner;

static void setup(void)
{
	make_test_directory(directory);
	owner = (struct part_owner){directory, "sink", 0, 2};
}

static void teardown(void)
{
	remove_test_directory(directory);
}

TestSuite(file_sink_lock, .init = setup, .fini = teardown, .timeout = 20);

Test(file_sink_lock, two_tasks_of_one_name_do_not_hold_it_at_once)
{
	struct sink_lock first = {0}, second = {0};
	char text[PARTS_TEXT_BYTES] = "", process[40];

	cr_assert_eq(sink_lock_take(&first, &owner, text), 0, "%s", text);
	cr_expect_eq(sink_lock_take(&second, &owner, text), -EBUSY);
	snprintf(process, sizeof(process), "(process %d)", (int)getpid());
	cr_expect_not_null(strstr(text, process), "who has it: %s", text);
	cr_expect_not_null(strstr(text, directory), "where: %s", text);
	sink_lock_release(&second);
	cr_expect_eq(sink_lock_take(&second, &owner, text), -EBUSY, "it is still the first's");
	sink_lock_release(&first);
	cr_expect_eq(sink_lock_take(&second, &owner, text), 0, "%s", text);
	sink_lock_release(&second);
}

Test(file_sink_lock, subtasks_and_other_sinks_do_not_hinder_one_another)
{
	struct sink_lock locks[3] = {0};
	struct part_owner other = {directory, "other", 0, 2}, next = {directory, "sink", 1, 2};
	char text[PARTS_TEXT_BYTES] = "";

	cr_expect_eq(sink_lock_take(&locks[0], &owner, text), 0, "%s", text);
	cr_expect_eq(sink_lock_take(&locks[1], &other, text), 0, "%s", text);
	cr_expect_eq(sink_lock_take(&locks[2], &next, text), 0, "%s", text);
	for (size_t i = 0; i < 3; i++)
		sink_lock_release(&locks[i]);
}

Test(file_sink_lock, a_file_left_by_a_process_that_is_gone_locks_nothing)
{
	struct sink_lock lock = {0};
	char path[400], text[PARTS_TEXT_BYTES] = "";

	snprintf(path, sizeof(path), "%s/.sink-0.lock", directory);
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs("4194000\n", f);
	fclose(f);
	cr_expect_eq(sink_lock_take(&lock, &owner, text), 0, "%s", text);
	sink_lock_release(&lock);
	cr_expect_neq(access(path, F_OK), 0, "its file is gone");
}

Test(file_sink_lock, a_directory_that_is_gone_is_named)
{
	struct part_owner nowhere = {"/nowhere/at/all", "sink", 0, 1};
	struct sink_lock lock = {0};
	char text[PARTS_TEXT_BYTES] = "";

	cr_expect_eq(sink_lock_take(&lock, &nowhere, text), -ENOENT);
	cr_expect_not_null(strstr(text, "/nowhere/at/all: No such file"), "%s", text);
	cr_expect_eq(lock.handle, 0);
	sink_lock_release(&lock);
}
