/* operator_files: every byte once and in order, durable before a barrier, published in order. */

#include "dataplane/checkpoint/operator_files.h"

#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/store_select.h"
#include "tests/sim/fault_store.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

static char directory[64];
static struct store *inner;
static struct fault_store disk;
static struct operator_files *files;
static void *memory;
static uint64_t now_ns;

static void begin_on(enum store_kind kind)
{
	char why[STORE_WHY_BYTES];

	make_test_directory(directory);
	cr_assert_eq(store_open(&inner, kind, why), 0);
	fault_store_init(&disk, inner);
	memory = aligned_alloc(STORE_ALIGN_BYTES, operator_files_memory_bytes());
	files = operator_files_create_at(memory, &disk.store);
}

static void begin(void)
{
	begin_on(STORE_THREADS);
}

static void step(void)
{
	if (operator_files_step(files, now_ns) == 0)
		nanosleep(&(struct timespec){0, 20000}, NULL);
	now_ns += 1000000;
}

static void end(void)
{
	operator_files_stop(files);
	for (int i = 0; i < 1000 && !operator_files_is_idle(files); i++)
		step();
	cr_assert(operator_files_is_idle(files));
	cr_assert_eq(store_inflight(&disk.store), 0);
	store_destroy(inner);
	free(memory);
	remove_test_directory(directory);
}

TestSuite(operator_files, .init = begin, .fini = end, .timeout = 60);

static const char *in_directory(const char *name)
{
	static char paths[8][128];
	static uint32_t next;
	char *path = paths[next++ % 8];

	snprintf(path, 128, "%s/%s", directory, name);
	return path;
}

static uint32_t open_file(const char *name)
{
	uint32_t file;

	cr_assert(operator_files_open(files, in_directory(name), &file));
	return file;
}

static void write_all(uint32_t file, const char *text, size_t size)
{
	while (!operator_files_write(files, file, text, size))
		step();
}

/* Waits for the barrier's answer. */
static int barrier(const char **text)
{
	int status;

	operator_files_barrier(files, 1);
	while (!operator_files_barrier_is_done(files, &status, text))
		step();
	return status;
}

static void check_content(const char *name, const char *text, size_t size)
{
	size_t got;
	char *bytes = (char *)read_whole_file(in_directory(name), &got);

	cr_assert_not_null(bytes, "%s", name);
	cr_assert_eq(got, size);
	cr_assert_eq(memcmp(bytes, text, size), 0);
	free(bytes);
}

static struct operator_files_done await_publish(void)
{
	struct operator_files_done done;

	while (!operator_files_next_done(files, &done))
		step();
	return done;
}

/* ---- the good way ---- */

static char *make_text(struct prng *p)
{
	char *text = malloc(TEXT_MAX);

	for (uint32_t i = 0; i < TEXT_MAX; i++)
		text[i] = (char)prng_next(p);
	return text;
}

static void write_in_random_sizes(void)
{
	struct prng p;
	const char *why;
	uint32_t file[3];
	size_t at[3] = {0};

	prng_seed(&p, 1);
	char *text = make_text(&p);

	for (uint32_t i = 0; i < 3; i++)
		file[i] = open_file((const char *[]){"a", "b", "c"}[i]);
	for (uint32_t left = 3; left > 0;) {
		uint32_t i = (uint32_t)prng_below(&p, 3);
		size_t size = prng_below(&p, prng_below(&p, 2) == 0 ? 100 :
				OPERATOR_FILES_BUFFER_BYTES + 1);

		if (at[i] == TEXT_MAX)
			continue;
		if (size > TEXT_MAX - at[i])
			size = TEXT_MAX - at[i];
		if (operator_files_write(files, file[i], text + at[i], size))
			at[i] += size;
		else
			step();
		if (at[i] == TEXT_MAX) {
			operator_files_close(files, file[i]);
			left--;
		}
	}
	cr_assert_eq(barrier(&why), 0, "%s", why);
	check_content("a", text, TEXT_MAX);
	check_content("b", text, TEXT_MAX);
	check_content("c", text, TEXT_MAX);
	free(text);
}

Test(operator_files, writes_every_byte_once_and_in_order)
{
	write_in_random_sizes();
}

Test(operator_files, writes_every_byte_once_and_in_order_by_io_uring)
{
	char why[STORE_WHY_BYTES];

	if (store_probe_uring(why) != 0)
		cr_skip_test("%s", why);
	end();
	begin_on(STORE_URING);
	write_in_random_sizes();
}

Test(operator_files, makes_an_empty_file_too)
{
	const char *why;

	operator_files_close(files, open_file("empty"));
	cr_assert_eq(barrier(&why), 0);
	check_content("empty", "", 0);
}

Test(operator_files, is_durable_at_a_barrier_only_after_the_syncs_of_file_and_directory)
{
	const char *why;
	int status;
	uint32_t file = open_file("a");

	write_all(file, "abc", 3);
	operator_files_close(files, file);
	while (!operator_files_is_idle(files))
		step();
	/* Another file, and its last request hangs. */
	file = open_file("b");
	operator_files_close(files, file);
	disk.op_count = 0;
	for (uint32_t ops = 1; ops <= 4; ops++) { /* open, sync, close, sync directory */
		operator_files_barrier(files, ops);
		cr_assert(!operator_files_barrier_is_done(files, &status, &why));
		while (disk.op_count < ops)
			step();
	}
	while (!operator_files_barrier_is_done(files, &status, &why))
		step();
	cr_assert_eq(status, 0);
	cr_assert_eq(disk.op_count, 4);
}

Test(operator_files, does_not_wait_at_a_barrier_for_files_that_are_still_open)
{
	const char *why;
	uint32_t file = open_file("a");

	write_all(file, "abc", 3);
	cr_assert_eq(barrier(&why), 0);
	operator_files_close(files, file);
	cr_assert_eq(barrier(&why), 0);
	check_content("a", "abc", 3);
}

Test(operator_files, has_a_bound_on_open_files_and_frees_places_when_they_are_durable)
{
	const char *why;
	uint32_t file;

	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file%u", i);
		file = open_file(name);
	}
	cr_assert(!operator_files_open(files, in_directory("more"), &file));
	operator_files_close(files, 3);
	cr_assert_eq(barrier(&why), 0);
	cr_assert(operator_files_open(files, in_directory("more"), &file));
	cr_assert_eq(file, 3);
}

Test(operator_files, takes_no_more_than_its_buffers_while_the_disk_hangs)
{
	static char block[OPERATOR_FILES_BUFFER_BYTES];
	const char *why;
	uint32_t file = open_file("a"), taken = 0;

	disk.is_hung = true;
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 100; i++) {
		taken += operator_files_write(files, file, block, 60000);
		operator_files_step(files, 0);
	}
	cr_assert_eq(taken, 2);
	fault_store_settle(&disk);
	operator_files_close(files, file);
	cr_assert_eq(barrier(&why), 0);
	cr_assert_eq(truncate(in_directory("a"), 120000), 0);
}

/* ---- publishing ---- */

Test(operator_files, publishes_in_order_and_only_what_is_durable)
{
	uint32_t file = open_file("tmp-1");
	struct operator_files_done done;

	write_all(file, "one", 3);
	operator_files_close(files, file);
	cr_assert(operator_files_publish(
			files, 7, in_directory("tmp-1"), in_directory("part-1"), 41));
	cr_assert(operator_files_publish(
			files, 8, in_directory("none"), in_directory("part-2"), 42));
	cr_assert(operator_files_publish(
			files, 7, in_directory("part-1"), in_directory("part-3"), 43));
	cr_assert(operator_files_is_publishing(files));
	done = await_publish();
	cr_assert_eq(done.tag, 41);
	cr_assert_eq(done.operator_index, 7);
	cr_assert_eq(done.status, 0);
	done = await_publish();
	cr_assert_eq(done.tag, 42);
	cr_assert_eq(done.operator_index, 8);
	cr_assert_eq(done.status, -ENOENT);
	done = await_publish();
	cr_assert_eq(done.tag, 43);
	cr_assert_eq(done.status, 0);
	cr_assert(!operator_files_is_publishing(files));
	check_content("part-3", "one", 3);
	cr_assert_eq(access(in_directory("part-1"), F_OK), -1);
}

Test(operator_files, has_a_bound_on_publishes)
{
	uint32_t count = 0;

	while (operator_files_publish(files, 0, in_directory("a"), in_directory("b"), count))
		count++;
	cr_assert_eq(count, OPERATOR_FILES_PUBLISH_MAX);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(await_publish().tag, i);
	cr_assert(operator_files_publish(files, 0, in_directory("a"), in_directory("b"), 0));
}

Test(operator_files, tells_of_a_publish_whose_directory_could_not_be_synced)
{
	const char *why;

	operator_files_close(files, open_file("a"));
	cr_assert_eq(barrier(&why), 0);
	disk.fail_nth = 1;
	disk.fail_ops = 1u << STORE_SYNC_DIRECTORY;
	disk.fail_status = -EIO;
	disk.op_count = 0;
	cr_assert(operator_files_publish(files, 0, in_directory("a"), in_directory("b"), 1));
	cr_assert_eq(await_publish().status, -EIO);
	cr_assert_eq(operator_files_failure(files, &why), 0, "the operator's to judge");
}

/* ---- the disk fails ---- */

/* A full disk fails checkpoints for as long as it is full; not a byte is missing afterwards. */
static void fill_the_disk_at(uint32_t nth, int status)
{
	const char *why;
	uint32_t file;

	disk.op_count = 0;
	disk.fail_nth = nth;
	disk.fail_count = 3;
	disk.fail_ops = 1u << STORE_OPEN | 1u << STORE_WRITE;
	disk.fail_status = status;
	disk.torn_bytes = 1000;
	file = open_file("a");

	struct prng p;

	prng_seed(&p, nth);
	char *text = make_text(&p);

	for (size_t at = 0; at < TEXT_MAX; at += 65536)
		write_all(file, text + at, 65536);
	operator_files_close(files, file);
	while (barrier(&why) != 0) {
		cr_assert_not_null(strstr(why, strerrordesc_np(-status)), "%s", why);
		step();
	}
	cr_assert_eq(operator_files_failure(files, &why), 0, "%s", why);
	cr_assert_eq(disk.failed_count, 3);
	check_content("a", text, TEXT_MAX);
	free(text);
}

Test(operator_files, keeps_its_bytes_while_the_disk_is_full_when_a_file_is_made)
{
	fill_the_disk_at(1, -ENOSPC);
}

Test(operator_files, keeps_its_bytes_while_the_disk_is_full_in_the_middle)
{
	fill_the_disk_at(7, -ENOSPC);
}

Test(operator_files, keeps_its_bytes_through_errors_of_the_last_write)
{
	fill_the_disk_at(17, -EIO);
}

Test(operator_files, fails_a_barrier_at_once_while_a_covered_file_cannot_be_written)
{
	const char *why;
	int status;
	uint32_t file = open_file("a");

	disk.fail_nth = 1;
	disk.fail_count = 1000000;
	disk.fail_ops = 1u << STORE_WRITE;
	disk.fail_status = -ENOSPC;
	write_all(file, "abc", 3);
	operator_files_close(files, file);
	cr_assert_eq(barrier(&why), -ENOSPC);
	cr_assert_not_null(strstr(why, "write /tmp/weir-test-"), "%s", why);
	operator_files_barrier(files, 2);
	cr_assert(operator_files_barrier_is_done(files, &status, &why), "without another try");
	cr_assert_eq(status, -ENOSPC);
	cr_assert_eq(disk.failed_count, 1);
	disk.fail_nth = 0;
	while (barrier(&why) != 0)
		step();
	check_content("a", "abc", 3);
}

/* After a failed sync nobody knows which bytes are there: trying again would lie. */
static void fail_for_good(enum store_op op, int status)
{
	const char *why;
	uint32_t file = open_file("a");

	write_all(file, "abc", 3);
	operator_files_close(files, file);
	cr_assert(operator_files_publish(files, 0, in_directory("a"), in_directory("b"), 5));
	disk.op_count = 0;
	disk.fail_nth = 1;
	disk.fail_ops = 1u << op;
	disk.fail_status = status;
	cr_assert_eq(barrier(&why), status);
	cr_assert_eq(operator_files_failure(files, &why), status);
	cr_assert_eq(strncmp(why, store_op_name(op), strlen(store_op_name(op))), 0, "%s", why);
	cr_assert_eq(await_publish().status, -ECANCELED, "what may have lost bytes stays hidden");
	cr_assert_eq(access(in_directory("b"), F_OK), -1);
	cr_assert(!operator_files_open(files, in_directory("c"), &file));
}

Test(operator_files, fails_the_task_when_a_sync_fails)
{
	fail_for_good(STORE_SYNC, -EIO);
}

Test(operator_files, fails_the_task_when_the_sync_of_a_directory_fails)
{
	fail_for_good(STORE_SYNC_DIRECTORY, -EIO);
}

Test(operator_files, fails_the_task_when_a_file_cannot_be_made)
{
	fail_for_good(STORE_OPEN, -EACCES);
}

Test(operator_files, fails_the_task_when_a_file_is_there_already)
{
	const char *why;

	operator_files_close(files, open_file("a"));
	cr_assert_eq(barrier(&why), 0);
	operator_files_close(files, open_file("a"));
	cr_assert_eq(barrier(&why), -EEXIST);
	cr_assert_eq(operator_files_failure(files, &why), -EEXIST);
}

/* ---- the end ---- */

Test(operator_files, stops_without_waiting_for_open_files_and_with_what_was_closed)
{
	uint32_t open = open_file("open"), closed = open_file("closed");

	write_all(open, "abc", 3);
	write_all(closed, "def", 3);
	operator_files_close(files, closed);
	cr_assert(operator_files_publish(files, 0, in_directory("closed"), in_directory("out"), 1));
	cr_assert(operator_files_publish(files, 0, in_directory("open"), in_directory("bad"), 2));
	operator_files_stop(files);
	cr_assert_eq(await_publish().status, 0);
	cr_assert_eq(await_publish().status, -ECANCELED);
	while (!operator_files_is_idle(files))
		step();
	check_content("out", "def", 3);
	cr_assert_eq(access(in_directory("bad"), F_OK), -1);
	cr_assert(!operator_files_write(files, open, "x", 1));
	operator_files_close(files, open);
}

Test(operator_files, stops_while_the_disk_is_full)
{
	uint32_t file = open_file("a");

	disk.fail_nth = 1;
	disk.fail_count = 1000000;
	disk.fail_ops = 1u << STORE_WRITE;
	disk.fail_status = -ENOSPC;
	write_all(file, "abc", 3);
	operator_files_close(files, file);
	while (disk.failed_count == 0)
		step();
	operator_files_stop(files);
	for (int i = 0; i < 100 && !operator_files_is_idle(files); i++)
		step();
	cr_assert(operator_files_is_idle(files));
}

Test(operator_files, is_not_idle_while_a_hung_disk_holds_its_memory)
{
	uint32_t file = open_file("a");

	write_all(file, "abc", 3);
	operator_files_close(files, file);
	step();
	disk.is_hung = true;
	for (int i = 0; i < 200; i++)
		step();
	operator_files_stop(files);
	for (int i = 0; i < 200; i++)
		step();
	cr_assert(!operator_files_is_idle(files));
	fault_store_settle(&disk);
}
