#include "control/coordinator/checkpoint_storage.h"

#include "control/metadata/metadata.h"

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
	cr_assert_eq(checkpoint_storage_replace(&d, job, &(struct storage_successor){.id = 8},
				     &is_prepared), 0);
	cr_assert(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	checkpoint_storage_location(job, 8, next);
	cr_assert_eq(rmdir(next), 0, "it is there, and empty");
}

static void fill(const char *location, const char *name, size_t size)
{
	char path[STORAGE_PATH_BYTES + 64];

	touch(location, name);
	snprintf(path, sizeof(path), "%s/%s", location, name);
	cr_assert_eq(truncate(path, (off_t)size), 0);
}

/* Checkpoints 4 and 7, and what the directory of 4 becomes when it makes room for 8. */
static void succeed(uint64_t kept_bytes_max, char next[STORAGE_PATH_BYTES])
{
	struct storage_successor s = {.id = 8, .newest_id = 7, .kept_bytes_max = kept_bytes_max};
	char old[STORAGE_PATH_BYTES];
	bool is_prepared = false;

	checkpoint_storage_location(job, 4, old);
	struct deletion d = deletion_of(old, 4);
	cr_assert_eq(checkpoint_storage_replace(&d, job, &s, &is_prepared), 0);
	cr_assert(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	checkpoint_storage_location(job, 8, next);
}

Test(checkpoint_storage, keeps_files_to_be_written_over_that_the_newest_one_has_too)
{
	char old[STORAGE_PATH_BYTES], newest[STORAGE_PATH_BYTES], next[STORAGE_PATH_BYTES];

	prepare(4, true, old);
	prepare(7, true, newest);
	fill(old, "count-0-aa", 1000);
	fill(old, "count-1-old-attempt", 1000);
	fill(old, "channels-count-0-aa", 1000);
	fill(newest, "count-0-aa", 900);
	fill(newest, "channels-count-0-aa", 900);
	succeed(2000, next);
	cr_expect(is_there(next, "count-0-aa"));
	cr_expect_not(is_there(next, "_metadata"));
	cr_expect(is_there(next, METADATA_SPARE_FILE), "its room");
	cr_expect_not(is_there(next, "count-1-old-attempt"), "nobody will write that name");
	cr_expect(is_there(next, "channels-count-0-aa"), "what was in flight is no other");
	cr_expect(is_there(newest, "_metadata"));
	cr_expect(is_there(newest, "count-0-aa"));
}

Test(checkpoint_storage, keeps_no_more_bytes_than_it_is_told)
{
	char old[STORAGE_PATH_BYTES], newest[STORAGE_PATH_BYTES], next[STORAGE_PATH_BYTES];

	prepare(4, true, old);
	prepare(7, true, newest);
	fill(old, "a", 1000);
	fill(old, "b", 1000);
	touch(newest, "a");
	touch(newest, "b");
	succeed(1999, next);
	cr_expect_neq(is_there(next, "a"), is_there(next, "b"));
}

/* A backup by hard links shares the bytes. */
Test(checkpoint_storage, keeps_no_file_that_has_another_name_or_is_none)
{
	char old[STORAGE_PATH_BYTES], newest[STORAGE_PATH_BYTES], next[STORAGE_PATH_BYTES],
			from[STORAGE_PATH_BYTES + 64], to[STORAGE_PATH_BYTES + 64];

	prepare(4, true, old);
	prepare(7, true, newest);
	touch(old, "linked");
	touch(newest, "linked");
	snprintf(from, sizeof(from), "%s/linked", old);
	snprintf(to, sizeof(to), "%s/backup", directory);
	cr_assert_eq(link(from, to), 0);
	snprintf(from, sizeof(from), "%s/_metadata", old);
	snprintf(to, sizeof(to), "%s/metadata-backup", directory);
	cr_assert_eq(link(from, to), 0);
	touch(newest, "symbolic");
	snprintf(from, sizeof(from), "%s/symbolic", old);
	cr_assert_eq(symlink(to, from), 0);
	succeed(1000, next);
	cr_expect_not(is_there(next, "linked"));
	cr_expect_not(is_there(next, "symbolic"));
	cr_expect_not(is_there(next, "_metadata"));
	cr_expect_not(is_there(next, METADATA_SPARE_FILE));
	cr_expect(is_there(directory, "backup"));
	cr_expect(is_there(directory, "metadata-backup"));
}

Test(checkpoint_storage, removes_what_was_kept_and_not_written_over)
{
	const char *names[] = {"b", "a"};
	char location[STORAGE_PATH_BYTES];

	prepare(8, true, location);
	touch(location, "a");
	touch(location, "b");
	touch(location, "c");
	touch(location, "_metadata.0");
	touch(location, METADATA_SPARE_FILE);
	cr_assert_eq(checkpoint_storage_tidy(location, names, 2), 0);
	cr_expect(is_there(location, METADATA_SPARE_FILE), "its writer takes it");
	cr_expect(is_there(location, "a"));
	cr_expect(is_there(location, "b"));
	cr_expect(is_there(location, "_metadata"), "that is for its writer to refuse");
	cr_expect_not(is_there(location, "c"));
	cr_expect_not(is_there(location, "_metadata.0"));
	cr_assert_eq(checkpoint_storage_tidy(location, names, 0), 0);
	cr_expect_not(is_there(location, "a"));
	cr_assert_eq(checkpoint_storage_tidy("/tmp/weir-test-nowhere", names, 0), -ENOENT);
}

Test(checkpoint_storage, only_deletes_one_that_stands_elsewhere)
{
	char old[STORAGE_PATH_BYTES];
	bool is_prepared = true;

	prepare(4, true, old);
	struct deletion d = deletion_of(old, 5);
	cr_assert_eq(checkpoint_storage_replace(&d, job, &(struct storage_successor){.id = 8},
				     &is_prepared), 0);
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
	cr_assert_eq(checkpoint_storage_replace(&d, job, &(struct storage_successor){.id = 8},
				     &is_prepared), 0);
	cr_assert_not(is_prepared);
	cr_assert_not(is_there(job, "chk-4"));
	cr_assert(is_there(next, "state"));
}
