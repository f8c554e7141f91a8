/* state_writer: what was written is what comes back, whatever the disk does. */

#include "dataplane/checkpoint/state_writer.h"

#include "tests/support/state_world.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

TestSuite(state_writer, .init = begin, .fini = end, .timeout = 60);

static void check_restored(const struct task_state *t, const struct world *expected)
{
	static struct world fresh;
	char text[RESTORE_TEXT_BYTES] = "";

	world_init(&fresh);
	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, false, text), 0, "%s",
			text);
	world_compare(&fresh, expected);
	world_free(&fresh);
}

/* Snapshots while everything goes on changing, with several thresholds. */
static void write_and_restore(enum store_kind kind, uint32_t inline_bytes_max)
{
	static struct world now, frozen;
	char why[STORE_WHY_BYTES];
	const char *text;
	struct store *store;
	struct state_writer *w;
	void *memory;
	struct prng p;

	if (store_open(&store, kind, why) != 0)
		return;
	prng_seed(&p, 3);
	world_init(&now);
	w = world_create_writer(&now, store, inline_bytes_max, &memory);
	for (int64_t id = 1; id < 6; id++) {
		struct task_state *t;

		world_change(&now, &p);
		world_copy(&frozen, &now);
		cr_assert_eq(state_writer_begin(w, id, directory), 0);
		while (!state_writer_is_done(w)) {
			world_change(&now, &p);
			state_writer_step(w, 8);
		}
		cr_assert_eq(state_writer_outcome(w, &text), 0, "%s", text);
		t = carry_state(state_writer_result(w));
		state_writer_end(w);
		cr_assert(state_writer_is_idle(w));
		cr_assert_eq(count_files(directory), task_state_file_bytes(t) > 0);
		check_restored(t, &frozen);
		task_state_free(t);
		world_free(&frozen);
		remove_test_directory(directory);
		make_test_directory(directory);
	}
	free(memory);
	world_free(&now);
	store_destroy(store);
}

Test(state_writer, writes_what_the_states_were_at_the_barrier_by_io_uring)
{
	write_and_restore(STORE_URING, 20480);
	write_and_restore(STORE_URING, 0);
}

Test(state_writer, writes_what_the_states_were_at_the_barrier_by_threads)
{
	write_and_restore(STORE_THREADS, 20480);
	write_and_restore(STORE_THREADS, 0);
	write_and_restore(STORE_THREADS, 1 << 20);
}

/* ---- one file, small states in the description ---- */

static struct writer_bench bench;

Test(state_writer, keeps_small_states_inline_and_the_rest_in_one_named_file)
{
	const char *text;
	const struct task_state *t;

	writer_bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &text), 0);
	t = state_writer_result(bench.writer);
	cr_assert_eq(t->handle_count, STATES);
	cr_assert_null(t->handles[0].file);
	cr_assert_str_eq(t->handles[1].file, "count-0-00c0ffee");
	cr_assert_eq(t->handles[1].offset, 0);
	cr_assert_eq(t->handles[1].size, 300 * ITEM_BYTES);
	cr_assert_str_eq(t->handles[2].file, "count-0-00c0ffee");
	cr_assert_eq(t->handles[2].offset, 32768, "the next multiple of 4096");
	cr_assert_gt(t->handles[2].size, 2 * t->handles[2].item_count);
	cr_assert_null(t->handles[3].file);
	cr_assert_null(t->handles[4].file);
	cr_assert_eq(t->handles[4].item_count, keyed_state_count(bench.world.small));
	cr_assert_eq(count_files(directory), 1);
	state_writer_end(bench.writer);
	writer_bench_free(&bench);
}

Test(state_writer, restores_a_keyed_state_that_takes_two_reads)
{
	const char *text;

	writer_bench_init(&bench, STORE_AUTO);
	for (uint64_t key = 0; key < KEYS; key++)
		world_add(bench.world.large, key, UINT64_MAX / 2 + key);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &text), 0);
	cr_assert_gt(state_writer_result(bench.writer)->handles[2].size, 1 << 20);
	check_restored(state_writer_result(bench.writer), &bench.world);
	state_writer_end(bench.writer);
	writer_bench_free(&bench);
}

/* ---- a state of more bytes than one write takes ---- */

enum { BIG_VALUE_BYTES = 32768, BIG_COUNT = KEYED_STATE_PIECE_BYTES / BIG_VALUE_BYTES + 40 };

static void create_big(struct declared_state *state, void **memory)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = BIG_VALUE_BYTES,
		.entry_count_max = BIG_COUNT, .group_count = 128, .groups = {0, 127},
		.snapshots_max = 1};

	*memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, keyed_state_memory_bytes(&config));
	*state = (struct declared_state){.uid = "count", .name = "big", .kind = WEIR_STATE_KEYED,
		.key_bytes = 8, .value_bytes = BIG_VALUE_BYTES, .version = 1,
		.capacity = BIG_COUNT, .keyed = keyed_state_create_at(*memory, &config)};
}

static void *big_value(const struct declared_state *state, uint64_t key)
{
	void *value;

	cr_assert(keyed_state_put_batch(state->keyed, &key, 8, 1, &value));
	return value;
}

Test(state_writer, writes_a_large_state_piece_by_piece)
{
	static struct fault_store counting;
	struct declared_state big, back;
	struct store *store;
	char why[STORE_WHY_BYTES], reason[RESTORE_TEXT_BYTES] = "";
	const char *text;
	void *memory, *back_memory, *writer_memory;

	create_big(&big, &memory);
	create_big(&back, &back_memory);
	for (uint64_t key = 0; key < BIG_COUNT; key++)
		memset(big_value(&big, key), (int)key + 1, BIG_VALUE_BYTES);
	cr_assert_eq(store_open(&store, STORE_AUTO, why), 0);
	fault_store_init(&counting, store);
	counting.fail_ops = 1u << STORE_WRITE; /* only those are counted; none fails */

	struct state_writer_config config = {.store = &counting.store, .vertex_uid = "count",
		.parallelism = 1, .group_count = 128, .state_count = 1, .states = &big};
	writer_memory = aligned_alloc(STORE_ALIGN_BYTES, state_writer_memory_bytes(&config));
	struct state_writer *w = state_writer_create_at(writer_memory, &config);
	cr_assert_eq(state_writer_begin(w, 1, directory), 0);
	cr_assert_eq(writer_run(w, &text), 0, "%s", text);
	cr_assert_eq(counting.op_count, 2);
	cr_assert_eq(restore_states(directory, state_writer_result(w), &back, 1, false, reason), 0,
			"%s", reason);
	cr_assert_eq(keyed_state_count(back.keyed), BIG_COUNT);
	for (uint64_t key = 0; key < BIG_COUNT; key++)
		cr_assert_arr_eq(big_value(&back, key), big_value(&big, key), BIG_VALUE_BYTES);
	state_writer_end(w);
	store_destroy(store);
	free(writer_memory);
	free(back_memory);
	free(memory);
}

Test(state_writer, with_small_states_only_touches_no_file)
{
	const char *text;

	writer_bench_init(&bench, STORE_AUTO);
	bench.world.item_count = 1;
	free(bench.world.large_memory);
	bench.world.large = world_create_keyed(8, KEYS, &bench.world.large_memory);
	bench.world.states[2].keyed = bench.world.large;
	bench.disk.is_hung = true;
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &text), 0);
	state_writer_end(bench.writer);
	cr_assert_eq(bench.disk.op_count, 0);
	writer_bench_free(&bench);
}

/* ---- a file of an earlier checkpoint in its place ---- */

static const char *path_of_file(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/count-0-00c0ffee", directory);
	return path;
}

/* Longer than what will be written, and full of something else. */
static void leave_a_file(void)
{
	static uint8_t bytes[8 << 20];
	FILE *file = fopen(path_of_file(), "w");

	cr_assert_not_null(file);
	memset(bytes, 0xa5, sizeof(bytes));
	cr_assert_eq(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	cr_assert_eq(fclose(file), 0);
}

static ino_t inode_of_file(void)
{
	struct stat st;

	cr_assert_eq(stat(path_of_file(), &st), 0);
	return st.st_ino;
}

static void write_over_a_file(enum store_kind kind)
{
	const char *text;

	writer_bench_init(&bench, kind);
	for (int64_t id = 1; id < 4; id++) {
		leave_a_file();
		ino_t before = inode_of_file();
		cr_assert_eq(state_writer_begin(bench.writer, id, directory), 0);
		cr_assert_eq(writer_run(bench.writer, &text), 0, "%s", text);
		cr_assert_eq(inode_of_file(), before, "its room is used again");
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
		/* And one without. */
		cr_assert_eq(unlink(path_of_file()), 0);
		cr_assert_eq(state_writer_begin(bench.writer, 10 + id, directory), 0);
		cr_assert_eq(writer_run(bench.writer, &text), 0, "%s", text);
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
	}
	writer_bench_free(&bench);
}

Test(state_writer, writes_over_the_file_of_a_checkpoint_that_is_no_more)
{
	write_over_a_file(STORE_AUTO);
	end();
	begin();
	write_over_a_file(STORE_THREADS);
}

/* Bytes of the old life that the new one lacks have the wrong sum. */
Test(state_writer, never_passes_old_bytes_for_new_ones)
{
	char text[RESTORE_TEXT_BYTES] = "";
	const char *why;
	static struct world fresh;
	int fd;

	writer_bench_init(&bench, STORE_AUTO);
	leave_a_file();
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &why), 0, "%s", why);
	fd = open(path_of_file(), O_WRONLY);
	cr_assert_eq(pwrite(fd, "\xa5", 1, 40000), 1);
	close(fd);
	world_init(&fresh);
	cr_assert_eq(restore_states(directory, state_writer_result(bench.writer), fresh.states,
				     STATES, false, text), -EBADMSG);
	cr_assert_not_null(strstr(text, "checksum"), "%s", text);
	world_free(&fresh);
	state_writer_end(bench.writer);
	writer_bench_free(&bench);
}

Test(state_writer, writes_through_no_link_that_stands_in_its_place)
{
	const char *text;
	char other[128];

	snprintf(other, sizeof(other), "%s/other", directory);
	writer_bench_init(&bench, STORE_AUTO);
	cr_assert_eq(symlink(other, path_of_file()), 0);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(writer_run(bench.writer, &text), -ELOOP);
	state_writer_end(bench.writer);
	writer_settle(bench.writer);
	cr_assert_neq(access(other, F_OK), 0);
	writer_bench_free(&bench);
}

/* ---- the disk fails ---- */

static void fail_each_request_once(
		enum store_kind kind, int status, uint32_t torn_bytes, bool has_file)
{
	const char *text = "";
	bool failed = true;

	writer_bench_init(&bench, kind);
	for (uint32_t nth = 1; failed; nth++) {
		if (has_file)
			leave_a_file();
		bench.disk.fail_nth = nth;
		bench.disk.op_count = 0;
		bench.disk.fail_status = status;
		bench.disk.torn_bytes = torn_bytes;
		cr_assert_eq(state_writer_begin(bench.writer, nth, directory), 0);
		failed = writer_run(bench.writer, &text) != 0;
		if (failed) {
			cr_assert_eq(state_writer_outcome(bench.writer, &text), status);
			cr_assert_not_null(strstr(text, directory), "%s", text);
			state_writer_end(bench.writer);
			writer_settle(bench.writer);
			/* One that could not be opened is the coordinator's to remove. */
			bool is_left = has_file && strncmp(text, "open", 4) == 0;
			cr_assert_eq(count_files(directory), is_left, "after request %u", nth);
			unlink(path_of_file());
		}
		cr_assert_lt(nth, 100);
	}
	cr_assert_gt(bench.disk.op_count, 4, "open, writes, sync, close");
	check_restored(state_writer_result(bench.writer), &bench.world);
	state_writer_end(bench.writer);
	writer_bench_free(&bench);
}

Test(state_writer, reports_every_failing_request_and_the_next_snapshot_is_whole)
{
	fail_each_request_once(STORE_THREADS, -ENOSPC, 0, false);
	end();
	begin();
	fail_each_request_once(STORE_THREADS, -EIO, 4096, false);
	end();
	begin();
	fail_each_request_once(STORE_AUTO, -EIO, 0, false);
}

Test(state_writer, reports_every_failing_request_when_it_writes_over_a_file)
{
	fail_each_request_once(STORE_THREADS, -EIO, 4096, true);
	end();
	begin();
	fail_each_request_once(STORE_AUTO, -ENOSPC, 0, true);
}

Test(state_writer, says_which_phase_failed)
{
	static const struct { enum store_op op; const char *word; } phases[] = {
		{STORE_OPEN, "open /"}, {STORE_WRITE, "write /"}, {STORE_SYNC, "sync /"},
		{STORE_CLOSE, "close /"}};
	const char *text;

	writer_bench_init(&bench, STORE_THREADS);
	for (int i = 0; i < 4; i++) {
		bench.disk.fail_nth = 1;
		bench.disk.op_count = 0;
		bench.disk.fail_ops = 1u << phases[i].op;
		bench.disk.fail_status = -ENOSPC;
		cr_assert_eq(state_writer_begin(bench.writer, 1 + i, directory), 0);
		cr_assert_eq(writer_run(bench.writer, &text), -ENOSPC);
		cr_assert_eq(strncmp(text, phases[i].word, strlen(phases[i].word)), 0, "%s", text);
		cr_assert_not_null(strstr(text, "No space left on device"), "%s", text);
		state_writer_end(bench.writer);
		writer_settle(bench.writer);
	}
	writer_bench_free(&bench);
}

Test(state_writer, fails_when_the_directory_of_the_checkpoint_is_missing)
{
	const char *text;

	writer_bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, "/tmp/weir-test-nowhere/chk-1"), 0);
	cr_assert_eq(writer_run(bench.writer, &text), -ENOENT);
	state_writer_end(bench.writer);
	writer_settle(bench.writer);
	writer_bench_free(&bench);
}

Test(state_writer, leaves_nothing_behind_when_given_up_at_any_moment)
{
	writer_bench_init(&bench, STORE_THREADS);
	for (uint32_t steps = 0; steps < 200; steps++) {
		cr_assert_eq(state_writer_begin(bench.writer, 1 + steps, directory), 0);
		for (uint32_t i = 0; i < steps && !state_writer_is_done(bench.writer); i++)
			state_writer_step(bench.writer, 16);
		state_writer_abort(bench.writer);
		writer_settle(bench.writer);
		cr_assert_eq(count_files(directory), 0, "after %u steps", steps);
	}
	writer_bench_free(&bench);
}

Test(state_writer, refuses_the_next_snapshot_while_the_disk_hangs_and_no_longer)
{
	const char *text;
	struct prng p;

	prng_seed(&p, 9);
	writer_bench_init(&bench, STORE_THREADS);
	for (uint32_t hang_after = 0; hang_after < 12; hang_after++) {
		cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
		for (uint32_t i = 0; i < hang_after; i++)
			state_writer_step(bench.writer, 64);
		bench.disk.is_hung = true;
		for (uint32_t i = 0; i < 300; i++)
			state_writer_step(bench.writer, 64);
		cr_assert(!state_writer_is_done(bench.writer));
		state_writer_abort(bench.writer);
		cr_assert_eq(state_writer_begin(bench.writer, 2, directory), -EBUSY);
		for (uint32_t i = 0; i < 100; i++)
			state_writer_step(bench.writer, 64);
		cr_assert_eq(state_writer_begin(bench.writer, 2, directory), -EBUSY);
		fault_store_settle(&bench.disk);
		writer_settle(bench.writer);
		cr_assert_eq(count_files(directory), 0);
		world_change(&bench.world, &p);
		cr_assert_eq(state_writer_begin(bench.writer, 3, directory), 0);
		cr_assert_eq(writer_run(bench.writer, &text), 0, "%s", text);
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
		remove_test_directory(directory);
		make_test_directory(directory);
	}
	writer_bench_free(&bench);
}

/* The copies of keyed states are given back with the writes, not with the file. */
static void give_up_while_it_hangs(enum store_op op, int status_of_next)
{
	struct state_writer *next;
	struct store *store;
	char why[STORE_WHY_BYTES];
	const char *text;
	void *memory;

	writer_bench_init(&bench, STORE_THREADS);
	cr_assert_eq(store_open(&store, STORE_THREADS, why), 0);
	next = world_create_writer(&bench.world, store, 20480, &memory);
	bench.disk.is_hung = true;
	bench.disk.hang_ops = 1u << op;
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	for (uint32_t i = 0; i < 3000 || bench.disk.held_count == 0; i++) {
		if (state_writer_step(bench.writer, 64) == 0)
			wait_a_little();
	}
	state_writer_abort(bench.writer);
	cr_assert(!state_writer_is_idle(bench.writer));
	cr_assert_eq(state_writer_begin(next, 2, directory), status_of_next);
	if (status_of_next == 0) {
		cr_assert_eq(writer_run(next, &text), 0, "%s", text);
		check_restored(state_writer_result(next), &bench.world);
		state_writer_end(next);
	}
	fault_store_settle(&bench.disk);
	writer_settle(bench.writer);
	store_destroy(store);
	free(memory);
	writer_bench_free(&bench);
}

Test(state_writer, leaves_the_next_one_its_copies_when_only_a_sync_hangs)
{
	give_up_while_it_hangs(STORE_SYNC, 0);
}

Test(state_writer, keeps_its_copies_while_a_write_hangs)
{
	give_up_while_it_hangs(STORE_WRITE, -ENOBUFS);
}

Test(state_writer, waits_for_a_queue_that_is_full_and_can_be_given_up_meanwhile)
{
	const char *text;
	struct prng p;

	prng_seed(&p, 11);
	writer_bench_init(&bench, STORE_THREADS);
	for (int64_t id = 1; id < 60; id++) {
		uint64_t steps = prng_below(&p, 200);

		cr_assert_eq(state_writer_begin(bench.writer, id, directory), 0);
		for (uint64_t i = 0; i < steps && !state_writer_is_done(bench.writer); i++) {
			bench.disk.is_full ^= prng_below(&p, 30) == 0;
			state_writer_step(bench.writer, 32);
			if (!bench.disk.is_full)
				wait_a_little();
		}
		if (bench.disk.is_full) {
			state_writer_abort(bench.writer);
			bench.disk.is_full = false;
			writer_settle(bench.writer);
			continue;
		}
		cr_assert_eq(writer_run(bench.writer, &text), 0, "%s", text);
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
		remove_test_directory(directory);
		make_test_directory(directory);
	}
	writer_bench_free(&bench);
}
