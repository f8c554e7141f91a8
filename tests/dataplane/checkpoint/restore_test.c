/* restore: what is not as it should be is refused by name. */

#include "dataplane/checkpoint/restore.h"

#include "tests/support/state_world.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];

static void begin(void)
{
	make_test_directory(directory);
}

static void end(void)
{
	remove_test_directory(directory);
}

TestSuite(restore, .init = begin, .fini = end, .timeout = 60);

static struct writer_bench bench;

static struct task_state *write_one(void)
{
	const char *text;
	struct task_state *t;

	writer_bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &text), 0, "%s", text);
	t = carry_state(state_writer_result(bench.writer));
	state_writer_end(bench.writer);
	return t;
}

static struct world fresh;

static void refused(const struct task_state *t, int status, const char *word)
{
	char text[RESTORE_TEXT_BYTES] = "";

	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, false, text), status,
			"%s", text);
	cr_assert_not_null(strstr(text, word), "%s", text);
	world_free(&fresh);
	world_init(&fresh);
}

Test(restore, refuses_another_declaration_and_names_both_numbers)
{
	struct task_state *t = write_one();

	world_init(&fresh);
	fresh.states[2].version = 5;
	refused(t, -EINVAL, "operator count, state large: the checkpoint has version 4, the "
			"operator declares 5");
	fresh.states[0].value_bytes = 48;
	refused(t, -EINVAL, "values of bytes 40, the operator declares 48");
	fresh.states[2].key_bytes = 16;
	refused(t, -EINVAL, "keys of bytes 8, the operator declares 16");
	fresh.states[0].kind = WEIR_STATE_LIST;
	refused(t, -EINVAL, "a value in the checkpoint, a list as");
	fresh.states[3].name = "renamed";
	refused(t, -EINVAL, "operator count, state few: in the checkpoint, but vertex count");
	fresh.states[1].capacity = 299;
	refused(t, -ENOSPC, "300 items do not fit its capacity of 299");
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}

Test(restore, refuses_more_entries_than_fit)
{
	struct task_state *t = write_one();

	world_init(&fresh);
	free(fresh.large_memory);
	fresh.large = world_create_keyed(8, 100, &fresh.large_memory);
	fresh.states[2].keyed = fresh.large;
	fresh.states[2].capacity = 100;
	refused(t, -ENOSPC, "state count.large: more entries than its capacity of 100");
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}

Test(restore, refuses_a_damaged_file_with_its_name_and_offset)
{
	struct task_state *t = write_one();
	char path[128];
	uint8_t byte = 0x7e;
	int fd;

	world_init(&fresh);
	snprintf(path, sizeof(path), "%s/count-0-00c0ffee", directory);
	fd = open(path, O_RDWR);
	cr_assert_eq(pwrite(fd, &byte, 1, 40000), 1);
	refused(t, -EBADMSG, "count-0-00c0ffee: offset 32768: the checksum of");
	cr_assert_eq(ftruncate(fd, 40000), 0);
	refused(t, -EBADMSG, "count-0-00c0ffee: ends at 40000, but state count.large is");
	close(fd);
	unlink(path);
	refused(t, -ENOENT, "count-0-00c0ffee: No such file or directory (state parse.items)");
	cr_assert_eq(mkdir(path, 0755), 0);
	refused(t, -EBADMSG, "is not a file");
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}

/* With a right checksum of wrong bytes: who writes files can write checksums too. */
Test(restore, refuses_bytes_that_are_no_entries)
{
	struct task_state *t = write_one();
	struct state_handle handles[STATES];
	uint8_t *bytes = calloc(1, t->handles[4].size);

	world_init(&fresh);
	memcpy(handles, t->handles, sizeof(handles));
	handles[4].bytes = bytes;
	t->handles = handles;
	refused(t, -EBADMSG,
			"inline bytes: offset 0: not a sequence of entries (state count.small)");
	free(bytes);
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}

Test(restore, leaves_states_empty_that_the_snapshot_lacks)
{
	struct task_state *t = write_one();
	char text[RESTORE_TEXT_BYTES];

	world_init(&fresh);
	t->handle_count = 2;
	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, false, text), 0);
	cr_assert_eq(fresh.item_count, 300);
	cr_assert_eq(keyed_state_count(fresh.large), 0);
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}

/* RE-3, "ignore unclaimed state": the others are there all the same. */
Test(restore, leaves_a_state_that_nobody_declares_when_told_to)
{
	struct task_state *t = write_one();
	char text[RESTORE_TEXT_BYTES] = "";

	world_init(&fresh);
	fresh.states[3].name = "renamed";
	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, true, text), 0, "%s", text);
	cr_assert_eq(fresh.item_count, 300);
	cr_assert_gt(keyed_state_count(fresh.large), 0);
	world_free(&fresh);
	task_state_free(t);
	writer_bench_free(&bench);
}
