#include "control/coordinator/files_list.h"
#include "control/coordinator/split_enumerator.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct split_enumerator *e;
static char text[SPLIT_TEXT_BYTES];
static uint32_t subtask;
static char *const three[] = {(char *)"/a", (char *)"/b", (char *)"/c"};

static void init(void)
{
	cr_assert_eq(split_enumerator_create(&e, 2), 0);
	cr_assert_eq(split_enumerator_set_files(e, three, 3), 0);
}

static void fini(void)
{
	split_enumerator_destroy(e);
}

TestSuite(split_enumerator, .init = init, .fini = fini);

static void ask(uint32_t who)
{
	cr_assert_eq(split_enumerator_on_event(e, who, (const uint8_t *)"REQUEST", 7), 0);
}

static void expect(uint32_t who, const char *what)
{
	cr_assert(split_enumerator_next(e, &subtask, text), "expected %s", what);
	cr_assert_eq(subtask, who);
	cr_assert_str_eq(text, what);
}

static void expect_nothing(void)
{
	cr_assert_not(split_enumerator_next(e, &subtask, text), "got %s", text);
}

Test(split_enumerator, hands_each_file_out_once_and_then_says_that_there_are_no_more)
{
	expect_nothing();
	ask(1);
	expect(1, "FILE /a");
	expect_nothing();
	ask(0);
	ask(1);
	expect(0, "FILE /b");
	expect(1, "FILE /c");
	ask(0);
	expect(0, "NO-MORE");
	ask(1);
	expect(1, "NO-MORE");
}

Test(split_enumerator, answers_nobody_between_snapshot_and_acknowledgement)
{
	uint8_t *state;
	size_t bytes;

	cr_assert_eq(split_enumerator_snapshot(e, 5, &state, &bytes), 0);
	free(state);
	ask(0);
	ask(1);
	expect_nothing();
	split_enumerator_on_acknowledge(e, 0, 4);
	expect_nothing();
	split_enumerator_on_acknowledge(e, 0, 5);
	expect(0, "FILE /a");
	expect_nothing();
	split_enumerator_on_ended(e, 5);
	expect(1, "FILE /b");
}

/* The wrong order - the file handed out after the snapshot, before the barrier - would have it
 * both in this state and in the subtask's. */
Test(split_enumerator, keeps_a_file_asked_for_after_the_snapshot_in_that_snapshot)
{
	uint8_t *state;
	size_t bytes;

	ask(0);
	expect(0, "FILE /a");
	cr_assert_eq(split_enumerator_snapshot(e, 1, &state, &bytes), 0);
	ask(0);
	expect_nothing();
	cr_assert_eq(split_enumerator_reset(e, state, bytes), 0);
	free(state);
	cr_assert(split_enumerator_is_listed(e));
	expect_nothing();
	ask(1);
	expect(1, "FILE /b");
	ask(1);
	expect(1, "FILE /c");
	ask(1);
	expect(1, "NO-MORE");
}

/* Two checkpoints under way: a file asked for while the first holds the gateway must be in the
 * state of the second, which it has not left for the subtask before. */
Test(split_enumerator, holds_until_the_last_of_several_checkpoints_is_acknowledged)
{
	uint8_t *state;
	size_t bytes;

	cr_assert_eq(split_enumerator_snapshot(e, 1, &state, &bytes), 0);
	free(state);
	ask(0);
	cr_assert_eq(split_enumerator_snapshot(e, 2, &state, &bytes), 0);
	split_enumerator_on_acknowledge(e, 0, 1);
	expect_nothing();
	split_enumerator_on_acknowledge(e, 0, 2);
	expect(0, "FILE /a");
	cr_assert_eq(split_enumerator_reset(e, state, bytes), 0);
	free(state);
	ask(0);
	expect(0, "FILE /a");
}

Test(split_enumerator, is_not_closed_by_a_checkpoint_that_has_ended)
{
	uint8_t *state;
	size_t bytes;

	split_enumerator_on_ended(e, 7);
	cr_assert_eq(split_enumerator_snapshot(e, 7, &state, &bytes), 0);
	free(state);
	ask(0);
	expect(0, "FILE /a");
}

Test(split_enumerator, goes_back_to_nothing_without_a_checkpoint)
{
	ask(0);
	cr_assert_eq(split_enumerator_reset(e, NULL, 0), 0);
	cr_assert_not(split_enumerator_is_listed(e));
	cr_assert_eq(split_enumerator_set_files(e, three, 3), 0);
	expect_nothing();
	ask(1);
	expect(1, "FILE /a");
}

Test(split_enumerator, refuses_events_and_states_that_are_none)
{
	cr_assert_eq(split_enumerator_on_event(e, 2, (const uint8_t *)"REQUEST", 7), -EBADMSG);
	cr_assert_eq(split_enumerator_on_event(e, 0, (const uint8_t *)"REQUESTS", 8), -EBADMSG);
	cr_assert_eq(split_enumerator_on_event(e, 0, NULL, 0), -EBADMSG);
	cr_assert_eq(split_enumerator_reset(e, (const uint8_t *)"\xff\xff", 2), -EBADMSG);
}

/* ---- files_list ---- */

static char directory[] = "/tmp/weir-files-XXXXXX";
static char reason[FILES_TEXT_BYTES];

static void touch(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	close(open(path, O_CREAT | O_WRONLY, 0644));
}

static void make_files(void)
{
	char path[256];

	cr_assert_not_null(mkdtemp(directory));
	touch("b.pcap");
	touch("a.pcap");
	touch("c.txt");
	touch(".hidden");
	snprintf(path, sizeof(path), "%s/sub", directory);
	mkdir(path, 0755);
}

static void remove_files(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(files_list, .init = make_files, .fini = remove_files);

static uint32_t list(const char *below, char ***files)
{
	char path[256];
	uint32_t count = 0;

	snprintf(path, sizeof(path), "%s%s", directory, below);
	return files_list(path, files, &count, reason) == 0 ? count : 0;
}

Test(files_list, takes_the_visible_files_of_a_directory_by_name)
{
	char **files;

	cr_assert_eq(list("", &files), 3);
	cr_assert_not_null(strstr(files[0], "/a.pcap"));
	cr_assert_not_null(strstr(files[1], "/b.pcap"));
	cr_assert_not_null(strstr(files[2], "/c.txt"));
	files_list_free(files, 3);
}

Test(files_list, takes_what_fits_a_pattern)
{
	char **files;

	cr_assert_eq(list("/*.pcap", &files), 2);
	files_list_free(files, 2);
	cr_assert_eq(list("/a.pcap", &files), 1);
	files_list_free(files, 1);
}

Test(files_list, says_what_is_not_there)
{
	char **files;

	cr_assert_eq(list("/*.gz", &files), 0);
	cr_assert_not_null(strstr(reason, "no file fits the pattern"));
	cr_assert_eq(list("/nothing", &files), 0);
	cr_assert_not_null(strstr(reason, "No such file"));
	cr_assert_eq(list("/sub", &files), 0);
	cr_assert_not_null(strstr(reason, "no files in that directory"));
}
