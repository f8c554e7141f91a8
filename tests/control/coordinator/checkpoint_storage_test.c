#include "control/coordinator/checkpoint_storage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/weir-storage-XXXXXX";
static char job[STORAGE_PATH_BYTES];

static void init(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(checkpoint_storage_job_path(
				     directory, (struct job_id){{{0xab, 0xcd}}}, job),
			0);
}

static void fini(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(checkpoint_storage, .init = init, .fini = fini);

static void touch(const char *location, const char *name)
{
	char path[STORAGE_PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", location, name);
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	cr_assert_geq(fd, 0);
	close(fd);
}

static bool is_there(const char *location, const char *name)
{
	char path[STORAGE_PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", location, name);
	return access(path, F_OK) == 0;
}

static void prepare(int64_t id, bool has_metadata, char location[STORAGE_PATH_BYTES])
{
	cr_assert_eq(checkpoint_storage_prepare(job, id, location), 0);
	if (has_metadata)
		touch(location, "_metadata");
}

Test(checkpoint_storage, keeps_a_job_under_its_id_and_a_checkpoint_under_its_number)
{
	char location[STORAGE_PATH_BYTES], expected[STORAGE_PATH_BYTES];

	prepare(7, false, location);
	snprintf(expected, sizeof(expected), "%s/abcd0000000000000000000000000000/chk-7",
			directory);
	cr_assert_str_eq(location, expected);
	cr_assert_eq(checkpoint_storage_prepare(job, 7, location), 0, "SL-2: once more is fine");
}

Test(checkpoint_storage, makes_a_relative_directory_absolute)
{
	char path[STORAGE_PATH_BYTES];

	cr_assert_eq(checkpoint_storage_job_path("some/where", (struct job_id){0}, path), 0);
	cr_assert_eq(path[0], '/');
	cr_assert_not_null(strstr(path, "/some/where/0000"));
}

Test(checkpoint_storage, lists_checkpoints_newest_first_and_tells_which_are_whole)
{
	char location[STORAGE_PATH_BYTES];
	struct storage_entry *entries;
	uint32_t count;

	cr_assert_eq(checkpoint_storage_list(job, &entries, &count), 0);
	cr_assert_eq(count, 0);
	prepare(9, true, location);
	prepare(10, false, location);
	prepare(2, true, location);
	touch(job, "chk-x");
	touch(job, "chk-");
	touch(job, "chk-007");
	cr_assert_eq(checkpoint_storage_list(job, &entries, &count), 0);
	cr_assert_eq(count, 3);
	cr_assert_eq(entries[0].id, 10);
	cr_assert_not(entries[0].has_metadata);
	cr_assert_eq(entries[1].id, 9);
	cr_assert(entries[1].has_metadata);
	cr_assert_eq(entries[2].id, 2);
	free(entries);
}

Test(checkpoint_storage, sweeps_what_never_became_a_checkpoint)
{
	char whole[STORAGE_PATH_BYTES], half[STORAGE_PATH_BYTES];

	prepare(1, true, whole);
	prepare(2, false, half);
	touch(half, "state");
	cr_assert_eq(checkpoint_storage_sweep(job, 0, NULL, 0), 1);
	cr_assert(is_there(whole, "_metadata"));
	cr_assert_neq(access(half, F_OK), 0);
}

Test(checkpoint_storage, sweeps_what_is_whole_but_not_listed_and_not_of_an_earlier_life)
{
	char earlier[STORAGE_PATH_BYTES], dropped[STORAGE_PATH_BYTES], kept[STORAGE_PATH_BYTES],
			late[STORAGE_PATH_BYTES];
	int64_t listed[] = {6};

	prepare(4, true, earlier);
	prepare(5, true, dropped);
	prepare(6, true, kept);
	prepare(7, true, late);
	cr_assert_eq(checkpoint_storage_sweep(job, 5, listed, 1), 2);
	cr_expect(is_there(earlier, "_metadata"));
	cr_expect(is_there(kept, "_metadata"));
	cr_expect_neq(access(dropped, F_OK), 0);
	cr_expect_neq(access(late, F_OK), 0);
}

Test(checkpoint_storage, deletes_a_checkpoint_with_all_its_files)
{
	char location[STORAGE_PATH_BYTES];

	prepare(1, true, location);
	touch(location, "listed");
	touch(location, "late");
	cr_assert_eq(checkpoint_storage_delete(&(struct deletion){
				     .kind = DELETION_STORED, .location = location}),
			0);
	cr_assert_neq(access(location, F_OK), 0);
	cr_assert_eq(checkpoint_storage_delete(&(struct deletion){
				     .kind = DELETION_STORED, .location = location}),
			0, "once more is fine");
}

Test(checkpoint_storage, deletes_late_files_alone_and_none_outside_of_the_directory)
{
	char location[STORAGE_PATH_BYTES];
	char *names[] = {(char *)"late", (char *)"../chk-1/_metadata", (char *)"..", (char *)""};

	prepare(1, true, location);
	touch(location, "late");
	touch(location, "other");
	cr_assert_eq(checkpoint_storage_delete(&(struct deletion){.kind = DELETION_LATE,
				     .location = location, .files = {names, 4}}),
			0);
	cr_assert_not(is_there(location, "late"));
	cr_assert(is_there(location, "other"));
	cr_assert(is_there(location, "_metadata"));
}

/* SL-3. */
Test(checkpoint_storage, makes_a_new_directory_for_each_savepoint)
{
	const struct job_id id = {{{0xab, 0xcd, 0xef, 0x12}}};
	uint64_t numbers[SAVEPOINT_NAMES_COUNT] = {0x1234567890abcdef, 7};
	char location[STORAGE_PATH_BYTES], expected[STORAGE_PATH_BYTES], below[64];

	snprintf(below, sizeof(below), "%s/a/b", directory);
	cr_assert_eq(checkpoint_storage_prepare_savepoint(below, id, numbers, location), 0);
	snprintf(expected, sizeof(expected), "%s/savepoint-abcdef-567890abcdef", below);
	cr_expect_str_eq(location, expected);
	cr_expect(is_there(location, "."));
	cr_assert_eq(checkpoint_storage_prepare_savepoint(below, id, numbers, location), 0);
	snprintf(expected, sizeof(expected), "%s/savepoint-abcdef-000000000007", below);
	cr_expect_str_eq(location, expected);
	for (uint32_t i = 0; i < SAVEPOINT_NAMES_COUNT; i++)
		numbers[i] = 7;
	cr_assert_eq(checkpoint_storage_prepare_savepoint(below, id, numbers, location), -EEXIST);
	touch(below, "file");
	snprintf(below, sizeof(below), "%s/a/b/file", directory);
	cr_assert_eq(checkpoint_storage_prepare_savepoint(below, id, numbers, location),
			-ENOTDIR);
}

static struct deletion deletion_of(char *location, int64_t id)
{
	return (struct deletion){
			.kind = DELETION_STORED, .checkpoint_id = id, .location = location};
}

Test(checkpoint_storage, makes_the_directory_of_the_next_one_of_one_that_goes)
{
	char old[STORAGE_PATH_BYTES], next[STORAGE_PATH_BYTES];
	bool is_prepared = false;

	prepare(4, true, old);
	touch(old, "state");
	touch(old, "not-named-anywhere");
	struct deletion d = deletion_of(old, 4);
	cr_assert_eq(checkpoint_storage_replace(&d, job, 8, &is_prepared), 0);
	cr_assert(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	checkpoint_storage_location(job, 8, next);
	cr_assert_eq(rmdir(next), 0, "it is there, and empty");
}

Test(checkpoint_storage, only_deletes_one_that_stands_elsewhere)
{
	char old[STORAGE_PATH_BYTES];
	bool is_prepared = true;

	prepare(4, true, old);
	struct deletion d = deletion_of(old, 5);
	cr_assert_eq(checkpoint_storage_replace(&d, job, 8, &is_prepared), 0);
	cr_assert_not(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	cr_assert_not(is_there(job, "chk-8"));
}

Test(checkpoint_storage, leaves_nothing_where_the_next_one_cannot_be_made)
{
	char old[STORAGE_PATH_BYTES], next[STORAGE_PATH_BYTES];
	bool is_prepared = true;

	prepare(4, true, old);
	prepare(8, false, next);
	touch(next, "state");
	struct deletion d = deletion_of(old, 4);
	cr_assert_eq(checkpoint_storage_replace(&d, job, 8, &is_prepared), 0);
	cr_assert_not(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	cr_assert(is_there(next, "state"));
}
