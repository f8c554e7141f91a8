#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "tests/support/capture_writer.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT, PARTS };

static char directory[256];
static uint64_t attempt;

static void setup(void)
{
	make_test_directory(directory);
}

static void teardown(void)
{
	remove_test_directory(directory);
}

TestSuite(file_sink, .init = setup, .fini = teardown, .timeout = 60);

static struct harness *create_sink(uint32_t subtask, bool without_checkpoints, const char *path)
{
	const struct param_text params[] = {
			{"path", path}, {"format", "count-csv"}, {NULL, NULL}};

	return harness_create(&(struct harness_config){.op = &builtin_file_sink,
			.uid = "sink",
			.params = params,
			.subtask_index = subtask,
			.parallelism = 2,
			.in_record_bytes = sizeof(struct counted_record),
			.attempt = ++attempt,
			.without_checkpoints = without_checkpoints});
}

static struct harness *open_sink(uint32_t subtask, const struct harness_snapshot *s)
{
	struct harness *h = create_sink(subtask, false, directory);

	if (s != NULL)
		harness_restore(h, s);
	cr_assert_eq(harness_open(h), 0, "%s", harness_error(h));
	return h;
}

static void feed(struct harness *h, uint64_t first, uint64_t last)
{
	for (uint64_t key = first; key <= last; key++) {
		struct counted_record r = {key, key * 10};

		harness_process_all(h, &r, 1);
	}
}

static struct harness_snapshot *barrier(struct harness *h, int64_t id)
{
	harness_before_barrier(h, id);
	return harness_save(h, id);
}

/* ---- what is in the directory ------------------------------------------------------------------
 */

static uint32_t count_files(const char *path, const char *start)
{
	DIR *d = opendir(path);
	uint32_t count = 0;
	struct dirent *e;

	cr_assert_not_null(d);
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			count += strncmp(e->d_name, start, strlen(start)) == 0;
	}
	closedir(d);
	return count;
}

/* Parts that are not committed; locks are hidden too. */
static uint32_t count_hidden(void)
{
	return count_files(directory, ".") - count_files(directory, ".sink-0.lock") -
			count_files(directory, ".sink-1.lock");
}

/* How often each key is in the visible parts; headers count at 0. */
static void read_visible(uint32_t *seen, uint32_t count)
{
	DIR *d = opendir(directory);
	struct dirent *e;

	cr_assert_not_null(d);
	memset(seen, 0, count * sizeof(*seen));
	while ((e = readdir(d)) != NULL) {
		char path[600], line[100];

		if (strncmp(e->d_name, "part-", 5) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		FILE *f = fopen(path, "r");
		cr_assert_not_null(f);
		while (fgets(line, sizeof(line), f) != NULL) {
			uint64_t key = strtoull(line, NULL, 10);

			cr_assert_not_null(strchr(line, '\n'), "a torn line: %s", line);
			cr_assert_lt(key, count);
			seen[strcmp(line, "key,count\n") == 0 ? 0 : key]++;
		}
		fclose(f);
	}
	closedir(d);
}

static void expect_visible(uint32_t headers, uint32_t last)
{
	uint32_t seen[3001];

	read_visible(seen, 3001);
	cr_expect_eq(seen[0], headers, "%u headers", seen[0]);
	for (uint32_t key = 1; key <= 3000; key++)
		cr_expect_eq(seen[key], key <= last, "key %u is there %u times", key, seen[key]);
}

/* ---- life of a part -----------------------------------------------------------------------------
 */

Test(file_sink, a_part_becomes_visible_when_its_checkpoint_completes)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	expect_visible(0, 0);
	harness_snapshot_free(barrier(h, 7));
	expect_visible(0, 0);
	harness_notify_complete(h, 7);
	cr_expect(harness_is_busy(h));
	harness_run_publishes(h, 10);
	cr_expect_not(harness_is_busy(h));
	expect_visible(1, 10);
	cr_expect_eq(count_files(directory, "part-sink-0-0000000007.csv"), 1);
	cr_expect_eq(count_hidden(), 0);
	cr_expect_eq(harness_list_count(h, PARTS), 0);
	harness_destroy(h);
}

Test(file_sink, a_checkpoint_without_rows_makes_no_part)
{
	struct harness *h = open_sink(1, NULL);

	harness_snapshot_free(barrier(h, 1));
	feed(h, 1, 1);
	harness_snapshot_free(barrier(h, 2));
	harness_snapshot_free(barrier(h, 3));
	harness_notify_complete(h, 3);
	harness_run_publishes(h, 10);
	cr_expect_eq(count_files(directory, "part-"), 1);
	harness_destroy(h);
}

Test(file_sink, what_an_aborted_checkpoint_closed_is_committed_by_the_next_that_completes)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	harness_snapshot_free(barrier(h, 1));
	feed(h, 11, 20);
	harness_snapshot_free(barrier(h, 2));
	feed(h, 21, 30);
	harness_notify_complete(h, 2);
	harness_run_publishes(h, 10);
	expect_visible(1, 20);
	harness_destroy(h);
}

Test(file_sink, a_later_part_stays_hidden_when_an_earlier_checkpoint_completes)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	harness_snapshot_free(barrier(h, 1));
	feed(h, 11, 20);
	harness_snapshot_free(barrier(h, 2));
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	expect_visible(1, 10);
	cr_expect_not(harness_is_busy(h));
	harness_destroy(h);
}

Test(file_sink, only_subtask_0_writes_the_header_and_only_once)
{
	struct harness *h0 = open_sink(0, NULL), *h1 = open_sink(1, NULL);

	for (int64_t id = 1; id <= 3; id++) {
		feed(h0, (uint64_t)id * 2 - 1, (uint64_t)id * 2 - 1);
		feed(h1, (uint64_t)id * 2, (uint64_t)id * 2);
		harness_snapshot_free(barrier(h0, id));
		harness_snapshot_free(barrier(h1, id));
		harness_notify_complete(h0, id);
		harness_notify_complete(h1, id);
		harness_run_publishes(h0, 10);
		harness_run_publishes(h1, 10);
	}
	expect_visible(1, 6);
	harness_destroy(h0);
	harness_destroy(h1);
}

Test(file_sink, an_input_without_rows_still_has_its_header)
{
	struct harness *h = open_sink(0, NULL);

	harness_finish_all(h);
	harness_snapshot_free(barrier(h, 1));
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	expect_visible(1, 0);
	harness_destroy(h);
}

Test(file_sink, without_checkpoints_all_rows_are_one_part_at_the_end)
{
	struct harness *h = create_sink(0, true, directory);

	cr_assert_eq(harness_open(h), 0);
	feed(h, 1, 100);
	harness_finish_all(h);
	cr_expect(harness_is_busy(h));
	harness_run_publishes(h, 10);
	cr_expect_not(harness_is_busy(h));
	expect_visible(1, 100);
	cr_expect_eq(count_files(directory, "part-sink-0-final.csv"), 1);
	harness_destroy(h);
}

/* ---- a slow or full disk -----------------------------------------------------------------------
 */

Test(file_sink, rows_a_slow_disk_does_not_take_wait_and_no_line_is_torn)
{
	struct harness *h = open_sink(0, NULL);
	struct counted_record batch[512];
	uint32_t done = 0, refused = 0;

	for (uint32_t i = 0; i < 512; i++)
		batch[i] = (struct counted_record){i + 1, UINT64_MAX};
	harness_set_disk(h, 15); /* the header and little more */
	cr_expect_eq(harness_process(h, batch, 100), 100);
	cr_expect_eq(harness_process(h, batch + 100, 1), 0, "there is no room");
	cr_expect_gt(harness_not_before(h), 0);
	harness_snapshot_free(barrier(h, 1)); /* in the middle of being stuck */
	for (done = 100; done < 512;) {
		harness_set_disk(h, 30 * (refused % 40));
		uint32_t taken =
				harness_process(h, batch + done, 512 - done < 40 ? 512 - done : 40);

		done += taken;
		refused += 1 + (taken == 0);
	}
	harness_set_disk(h, UINT64_MAX);
	feed(h, 513, 513);
	harness_snapshot_free(barrier(h, 2));
	harness_notify_complete(h, 2);
	harness_run_publishes(h, 10);
	expect_visible(1, 513);
	harness_destroy(h);
}

Test(file_sink, rows_that_wait_for_the_disk_are_in_the_checkpoint)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 2);
	harness_set_disk(h, 0);
	feed(h, 3, 3);
	struct harness_snapshot *s = barrier(h, 1);
	harness_destroy(h);

	h = open_sink(0, s);
	feed(h, 4, 4);
	harness_snapshot_free(barrier(h, 2));
	harness_notify_complete(h, 2);
	harness_run_publishes(h, 10);
	expect_visible(1, 4);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(file_sink, the_end_waits_until_the_disk_has_taken_all_rows)
{
	struct harness *h = open_sink(0, NULL);

	harness_set_disk(h, 0);
	feed(h, 1, 1);
	cr_expect_not(harness_finish(h));
	harness_set_disk(h, UINT64_MAX);
	cr_expect(harness_finish(h));
	harness_snapshot_free(barrier(h, 1));
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	expect_visible(1, 1);
	harness_destroy(h);
}

Test(file_sink, publishes_that_cannot_be_asked_for_now_are_asked_for_later)
{
	struct harness *h = open_sink(0, NULL);

	for (int64_t id = 1; id <= 5; id++) {
		feed(h, (uint64_t)id, (uint64_t)id);
		harness_snapshot_free(barrier(h, id));
	}
	harness_set_publishes(h, 2);
	harness_notify_complete(h, 5);
	cr_expect_eq(harness_run_publishes(h, 10), 2);
	cr_expect(harness_is_busy(h));
	harness_set_publishes(h, 100);
	cr_expect(harness_is_busy(h));
	harness_run_publishes(h, 10);
	cr_expect_not(harness_is_busy(h));
	expect_visible(1, 5);
	harness_destroy(h);
}

Test(file_sink, a_failed_publish_fails_the_task_with_the_name_of_the_part)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 1);
	harness_snapshot_free(barrier(h, 1));
	harness_fail_publishes(h, -EACCES);
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	cr_assert_not_null(harness_error(h));
	cr_expect_not_null(strstr(harness_error(h), "part-sink-0-0000000001.csv"));
	harness_destroy(h);
}

Test(file_sink, when_no_checkpoint_completes_the_stream_waits_and_the_task_does_not_fail)
{
	struct harness *h = open_sink(1, NULL);
	struct counted_record r = {1, 1};
	int64_t id = 0;

	while (harness_process(h, &r, 1) == 1) {
		harness_before_barrier(h, ++id);
		r.key = (uint64_t)id % 3000 + 1;
		cr_assert_lt(id, 10000);
	}
	cr_expect_gt(id, 1000);
	cr_expect_gt(harness_not_before(h), 0);
	harness_before_barrier(h, ++id);
	cr_expect_null(harness_error(h));
	harness_notify_complete(h, id);
	while (harness_is_busy(h))
		harness_run_publishes(h, 4096);
	cr_expect_eq(harness_process(h, &r, 1), 1);
	harness_destroy(h);
}

/* ---- crashes ------------------------------------------------------------------------------------
 */

/* The rows of checkpoint 1 are 1..10, then 11..20 follow.  After the crash the task is restored
 * from `s`, which holds the first ten, gets the rest again, and all is there once. */
static void expect_exact_after(struct harness *h, struct harness_snapshot *s)
{
	harness_destroy(h);
	h = open_sink(0, s);
	expect_visible(1, 10);
	cr_expect_eq(count_hidden(), 0, "hidden files are left");
	feed(h, 11, 20);
	harness_snapshot_free(barrier(h, 3));
	harness_notify_complete(h, 3);
	harness_run_publishes(h, 10);
	expect_visible(1, 20);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(file_sink, a_crash_before_the_completion_is_heard_of_commits_at_the_restore)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	feed(h, 11, 15);
	expect_exact_after(h, s);
}

Test(file_sink, a_crash_between_completion_and_publish_commits_at_the_restore)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	feed(h, 11, 15);
	harness_notify_complete(h, 1);
	expect_exact_after(h, s);
}

Test(file_sink, a_crash_after_the_publish_commits_nothing_twice)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	feed(h, 11, 15);
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	expect_exact_after(h, s);
}

Test(file_sink, a_crash_after_a_later_barrier_that_did_not_complete_forgets_its_part)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	harness_notify_complete(h, 1);
	feed(h, 11, 15);
	harness_snapshot_free(barrier(h, 2));
	feed(h, 16, 18);
	expect_exact_after(h, s);
}

Test(file_sink, a_crash_in_the_restore_itself_is_restored_from)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	harness_destroy(h);
	h = open_sink(0, s);
	feed(h, 11, 13);
	expect_exact_after(h, s);
}

Test(file_sink, a_crash_before_the_first_checkpoint_writes_the_header_again)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	harness_destroy(h);
	h = open_sink(0, NULL);
	cr_expect_eq(count_hidden(), 0);
	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	expect_exact_after(h, s);
}

Test(file_sink, a_part_that_is_gone_refuses_the_restore_by_name)
{
	struct harness *h = open_sink(0, NULL);
	char command[400];

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	harness_destroy(h);
	snprintf(command, sizeof(command), "rm %s/.sink-0-*", directory);
	cr_assert_eq(system(command), 0);
	h = create_sink(0, false, directory);
	harness_restore(h, s);
	cr_expect_eq(harness_open(h), -ENOENT);
	cr_expect_not_null(strstr(harness_error(h), "part-sink-0-0000000001.csv"));
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(file_sink, a_part_of_another_size_refuses_the_restore_by_name)
{
	struct harness *h = open_sink(0, NULL);
	char command[400];

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	harness_destroy(h);
	snprintf(command, sizeof(command), "truncate -s 5 %s/.sink-0-*", directory);
	cr_assert_eq(system(command), 0);
	h = create_sink(0, false, directory);
	harness_restore(h, s);
	cr_expect_eq(harness_open(h), -EBADMSG);
	cr_expect_not_null(strstr(harness_error(h), "5 bytes"), "%s", harness_error(h));
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(file_sink, a_restore_into_another_directory_commits_where_the_parts_were_written)
{
	struct harness *h = open_sink(0, NULL);
	char other[300];

	feed(h, 1, 10);
	struct harness_snapshot *s = barrier(h, 1);
	harness_destroy(h);
	snprintf(other, sizeof(other), "%s/below/it", directory);
	h = create_sink(0, false, other);
	harness_restore(h, s);
	cr_assert_eq(harness_open(h), 0, "%s", harness_error(h));
	expect_visible(1, 10);
	feed(h, 11, 12);
	harness_snapshot_free(barrier(h, 2));
	harness_notify_complete(h, 2);
	harness_run_publishes(h, 10);
	cr_expect_eq(count_files(other, "part-sink-0-0000000002.csv"), 1);
	harness_snapshot_free(s);
	harness_destroy(h);
}

/* ---- other runs ---------------------------------------------------------------------------------
 */

Test(file_sink, a_new_run_does_not_mix_with_the_output_of_an_older_one)
{
	struct harness *h = open_sink(0, NULL);

	feed(h, 1, 10);
	harness_snapshot_free(barrier(h, 1));
	harness_notify_complete(h, 1);
	harness_run_publishes(h, 10);
	harness_destroy(h);
	h = create_sink(1, false, directory);
	cr_expect_eq(harness_open(h), -EEXIST);
	cr_expect_not_null(strstr(harness_error(h), "earlier run"));
	harness_destroy(h);
	expect_visible(1, 10);
}

Test(file_sink, only_a_restored_task_goes_on_beside_one_that_writes_there)
{
	struct harness *hangs = open_sink(0, NULL);

	feed(hangs, 1, 10);
	struct harness_snapshot *s = barrier(hangs, 1);
	struct harness *fresh = create_sink(0, false, directory);
	cr_expect_eq(harness_open(fresh), -EBUSY);
	cr_expect_not_null(strstr(harness_error(fresh), "another task writes there now"));
	harness_destroy(fresh);
	struct harness *h = open_sink(0, s);
	expect_visible(1, 10);
	harness_snapshot_free(s);
	harness_destroy(h);
	harness_destroy(hangs);
}

Test(file_sink, files_of_other_sinks_and_people_are_left_alone)
{
	static const char *const names[] = {".sink-1-00000000000000000000000000000001-1.inprogress",
			".sink-0-1-00000000000000000000000000000001-1.inprogress",
			".sink-0-notes", ".other", "part-sink-1-0-0000000001.csv", "readme"};
	char path[400];

	for (size_t i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		fclose(fopen(path, "w"));
	}
	struct harness *h = open_sink(0, NULL);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(count_files(directory, names[i]), 1, "%s is gone", names[i]);
	harness_destroy(h);
}

Test(file_sink, a_directory_that_cannot_be_written_fails_when_opened)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/file", directory);
	fclose(fopen(path, "w"));
	struct harness *h = create_sink(0, false, path);
	cr_expect_neq(harness_open(h), 0);
	cr_expect_not_null(strstr(harness_error(h), path));
	harness_destroy(h);
}
