/* state_writer and restore: what was written is what comes back, whatever the disk does. */

#include "dataplane/checkpoint/state_writer.h"

#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/operator/keyed_state.h"
#include "tests/sim/fault_store.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES = 40, ITEM_BYTES = 100, ITEMS_MAX = 1000, KEYS = 100000, STATES = 5 };

/* The states of a task with two operators, and their sizes large and small. */
struct world {
	uint8_t value[VALUE_BYTES];
	uint32_t item_count, few_count;
	uint8_t items[ITEMS_MAX][ITEM_BYTES];
	uint8_t few[10][8];
	struct keyed_state *large, *small;
	void *large_memory, *small_memory;
	struct declared_state states[STATES];
};

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

static struct keyed_state *create_keyed(uint32_t key_bytes, uint64_t count, void **memory)
{
	struct keyed_state_config config = {.key_bytes = key_bytes, .value_bytes = 8,
		.entry_count_max = count, .group_count = 128, .groups = {0, 127}};
	uint64_t bytes = keyed_state_memory_bytes(&config);

	*memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	return keyed_state_create_at(*memory, &config);
}

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->large = create_keyed(8, KEYS, &w->large_memory);
	w->small = create_keyed(12, 20, &w->small_memory);
	w->states[0] = (struct declared_state){.uid = "parse", .name = "value",
		.kind = WEIR_STATE_VALUE, .value_bytes = VALUE_BYTES, .version = 1,
		.memory = w->value};
	w->states[1] = (struct declared_state){.uid = "parse", .name = "items",
		.kind = WEIR_STATE_LIST, .value_bytes = ITEM_BYTES, .version = 1,
		.capacity = ITEMS_MAX, .memory = w->items, .list_count = &w->item_count};
	w->states[2] = (struct declared_state){.uid = "count", .name = "large",
		.kind = WEIR_STATE_KEYED, .key_bytes = 8, .value_bytes = 8, .version = 4,
		.capacity = KEYS, .keyed = w->large};
	w->states[3] = (struct declared_state){.uid = "count", .name = "few",
		.kind = WEIR_STATE_LIST, .value_bytes = 8, .version = 1, .capacity = 10,
		.memory = w->few, .list_count = &w->few_count};
	w->states[4] = (struct declared_state){.uid = "count", .name = "small",
		.kind = WEIR_STATE_KEYED, .key_bytes = 12, .value_bytes = 8, .version = 1,
		.capacity = 20, .keyed = w->small};
}

static void world_free(struct world *w)
{
	free(w->large_memory);
	free(w->small_memory);
}

static void add(struct keyed_state *s, uint64_t number, uint64_t amount)
{
	uint8_t key[16] = {0};
	void *value;

	memcpy(key, &number, 8);
	cr_assert(keyed_state_put_batch(s, key, 16, 1, &value));
	*(uint64_t *)value += amount;
}

static void change(struct world *w, struct prng *p)
{
	w->item_count = (uint32_t)prng_below(p, ITEMS_MAX + 1);
	w->few_count = (uint32_t)prng_below(p, 11);
	for (uint32_t i = 0; i < VALUE_BYTES; i++)
		w->value[i] = (uint8_t)prng_next(p);
	for (uint32_t i = 0; i < w->item_count; i++)
		memset(w->items[i], (int)prng_below(p, 256), ITEM_BYTES);
	for (uint32_t i = 0; i < w->few_count; i++)
		memset(w->few[i], (int)prng_below(p, 256), 8);
	for (int i = 0; i < 3000; i++)
		add(w->large, prng_below(p, KEYS), 1);
	add(w->small, prng_below(p, 20), 1);
}

static uint64_t value_of(const struct keyed_state *s, const void *key)
{
	const void *value;

	keyed_state_get_batch(s, key, 8, 1, &value);
	return value != NULL ? *(const uint64_t *)value : UINT64_MAX;
}

static void compare_keyed(const struct keyed_state *a, const struct keyed_state *b)
{
	uint64_t cursor = 0;
	const void *key, *value;

	cr_assert_eq(keyed_state_count(a), keyed_state_count(b));
	while (keyed_state_next(a, &cursor, &key, &value))
		cr_assert_eq(*(const uint64_t *)value, value_of(b, key));
}

static void compare(const struct world *a, const struct world *b)
{
	cr_assert_eq(memcmp(a->value, b->value, VALUE_BYTES), 0);
	cr_assert_eq(a->item_count, b->item_count);
	cr_assert_eq(memcmp(a->items, b->items, a->item_count * ITEM_BYTES), 0);
	cr_assert_eq(a->few_count, b->few_count);
	cr_assert_eq(memcmp(a->few, b->few, a->few_count * 8), 0);
	compare_keyed(a->large, b->large);
	compare_keyed(a->small, b->small);
}

/* Entry by entry, since two tables with one content may differ in their empty places. */
static void world_copy(struct world *to, const struct world *from)
{
	uint64_t cursor = 0;
	const void *key, *value;

	world_init(to);
	memcpy(to->value, from->value, VALUE_BYTES);
	to->item_count = from->item_count;
	to->few_count = from->few_count;
	memcpy(to->items, from->items, sizeof(to->items));
	memcpy(to->few, from->few, sizeof(to->few));
	while (keyed_state_next(from->large, &cursor, &key, &value))
		add(to->large, *(const uint64_t *)key, *(const uint64_t *)value);
	cursor = 0;
	while (keyed_state_next(from->small, &cursor, &key, &value))
		add(to->small, *(const uint64_t *)key, *(const uint64_t *)value);
}

static struct state_writer *create_writer(struct world *w, struct store *store,
		uint32_t inline_bytes_max, void **memory)
{
	struct state_writer_config config = {.store = store, .vertex_uid = "count",
		.subtask_index = 0, .parallelism = 1, .group_count = 128,
		.attempt.id.bytes = {0x00, 0xc0, 0xff, 0xee, 1, 2},
		.inline_bytes_max = inline_bytes_max, .state_count = STATES, .states = w->states};
	uint64_t bytes = state_writer_memory_bytes(&config);

	*memory = aligned_alloc(STORE_ALIGN_BYTES, bytes);
	memset(*memory, 0xa5, bytes);
	return state_writer_create_at(*memory, &config);
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){0, 20000}, NULL);
}

static int run(struct state_writer *w, const char **text)
{
	while (!state_writer_is_done(w)) {
		if (state_writer_step(w, 16) == 0)
			wait_a_little();
	}
	return state_writer_outcome(w, text);
}

static void settle(struct state_writer *w)
{
	while (!state_writer_is_idle(w)) {
		if (state_writer_step(w, 16) == 0)
			wait_a_little();
	}
}

static uint32_t file_count(void)
{
	char command[128], line[256];
	uint32_t count = 0;

	snprintf(command, sizeof(command), "ls %s", directory);
	FILE *list = popen(command, "r");

	while (fgets(line, sizeof(line), list) != NULL)
		count++;
	pclose(list);
	return count;
}

/* Through bytes, as an acknowledgement would carry it. */
static struct task_state *carry(const struct task_state *t)
{
	char text[TASK_STATE_TEXT_BYTES];
	size_t size = task_state_encoded_bytes(t);
	uint8_t *bytes = malloc(size);
	struct task_state *back;

	task_state_encode(t, bytes);
	cr_assert_eq(task_state_decode(&back, bytes, size, text), 0, "%s", text);
	free(bytes);
	return back;
}

static void check_restored(const struct task_state *t, const struct world *expected)
{
	static struct world fresh;
	char text[RESTORE_TEXT_BYTES] = "";

	world_init(&fresh);
	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, text), 0, "%s", text);
	compare(&fresh, expected);
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
	w = create_writer(&now, store, inline_bytes_max, &memory);
	for (int64_t id = 1; id < 6; id++) {
		struct task_state *t;

		change(&now, &p);
		world_copy(&frozen, &now);
		cr_assert_eq(state_writer_begin(w, id, directory), 0);
		while (!state_writer_is_done(w)) {
			change(&now, &p);
			state_writer_step(w, 8);
		}
		cr_assert_eq(state_writer_outcome(w, &text), 0, "%s", text);
		t = carry(state_writer_result(w));
		state_writer_end(w);
		cr_assert(state_writer_is_idle(w));
		cr_assert_eq(file_count(), task_state_file_bytes(t) > 0);
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

struct bench {
	struct world world;
	struct store *store;
	struct fault_store disk;
	struct state_writer *writer;
	void *memory;
};

static void bench_init(struct bench *b, enum store_kind kind)
{
	char why[STORE_WHY_BYTES];
	struct prng p;

	prng_seed(&p, 5);
	world_init(&b->world);
	for (int i = 0; i < 20; i++)
		change(&b->world, &p);
	b->world.item_count = 300;
	b->world.few_count = 3;
	cr_assert_eq(store_open(&b->store, kind, why), 0);
	fault_store_init(&b->disk, b->store);
	b->writer = create_writer(&b->world, &b->disk.store, 20480, &b->memory);
}

static void bench_free(struct bench *b)
{
	cr_assert(state_writer_is_idle(b->writer));
	cr_assert_eq(store_inflight(b->store), 0);
	store_destroy(b->store);
	free(b->memory);
	world_free(&b->world);
}

static struct bench bench;

Test(state_writer, keeps_small_states_inline_and_the_rest_in_one_named_file)
{
	const char *text;
	const struct task_state *t;

	bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(run(bench.writer, &text), 0);
	t = state_writer_result(bench.writer);
	cr_assert_eq(t->handle_count, STATES);
	cr_assert_null(t->handles[0].file);
	cr_assert_str_eq(t->handles[1].file, "count-0-00c0ffee");
	cr_assert_eq(t->handles[1].offset, 0);
	cr_assert_eq(t->handles[1].size, 300 * ITEM_BYTES);
	cr_assert_str_eq(t->handles[2].file, "count-0-00c0ffee");
	cr_assert_eq(t->handles[2].offset, 32768, "the next multiple of 4096");
	cr_assert_gt(t->handles[2].size, KEYS * 16 / 4);
	cr_assert_null(t->handles[3].file);
	cr_assert_null(t->handles[4].file);
	cr_assert_eq(t->handles[4].item_count, keyed_state_count(bench.world.small));
	cr_assert_eq(file_count(), 1);
	state_writer_end(bench.writer);
	bench_free(&bench);
}

Test(state_writer, restores_a_keyed_state_that_takes_many_reads)
{
	const char *text;

	bench_init(&bench, STORE_AUTO);
	for (uint64_t key = 0; key < KEYS; key++)
		add(bench.world.large, key, key);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(run(bench.writer, &text), 0);
	cr_assert_gt(state_writer_result(bench.writer)->handles[2].size, 3 << 19);
	check_restored(state_writer_result(bench.writer), &bench.world);
	state_writer_end(bench.writer);
	bench_free(&bench);
}

Test(state_writer, with_small_states_only_touches_no_file)
{
	const char *text;

	bench_init(&bench, STORE_AUTO);
	bench.world.item_count = 1;
	free(bench.world.large_memory);
	bench.world.large = create_keyed(8, KEYS, &bench.world.large_memory);
	bench.world.states[2].keyed = bench.world.large;
	bench.disk.is_hung = true;
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(run(bench.writer, &text), 0);
	state_writer_end(bench.writer);
	cr_assert_eq(bench.disk.op_count, 0);
	bench_free(&bench);
}

/* ---- the disk fails ---- */

static void fail_each_request_once(enum store_kind kind, int status, uint32_t torn_bytes)
{
	const char *text = "";
	bool failed = true;

	bench_init(&bench, kind);
	for (uint32_t nth = 1; failed; nth++) {
		bench.disk.fail_nth = nth;
		bench.disk.op_count = 0;
		bench.disk.fail_status = status;
		bench.disk.torn_bytes = torn_bytes;
		cr_assert_eq(state_writer_begin(bench.writer, nth, directory), 0);
		failed = run(bench.writer, &text) != 0;
		if (failed) {
			cr_assert_eq(state_writer_outcome(bench.writer, &text), status);
			cr_assert_not_null(strstr(text, directory), "%s", text);
			state_writer_end(bench.writer);
			settle(bench.writer);
			cr_assert_eq(file_count(), 0, "after request %u", nth);
		}
		cr_assert_lt(nth, 100);
	}
	cr_assert_gt(bench.disk.op_count, 4, "open, writes, sync, close");
	check_restored(state_writer_result(bench.writer), &bench.world);
	state_writer_end(bench.writer);
	bench_free(&bench);
}

Test(state_writer, reports_every_failing_request_and_the_next_snapshot_is_whole)
{
	fail_each_request_once(STORE_THREADS, -ENOSPC, 0);
	end();
	begin();
	fail_each_request_once(STORE_THREADS, -EIO, 4096);
	end();
	begin();
	fail_each_request_once(STORE_AUTO, -EIO, 0);
}

Test(state_writer, says_which_phase_failed)
{
	static const struct { enum store_op op; const char *word; } phases[] = {
		{STORE_OPEN, "open /"}, {STORE_WRITE, "write /"}, {STORE_SYNC, "sync /"},
		{STORE_CLOSE, "close /"}};
	const char *text;

	bench_init(&bench, STORE_THREADS);
	for (int i = 0; i < 4; i++) {
		bench.disk.fail_nth = 1;
		bench.disk.op_count = 0;
		bench.disk.fail_ops = 1u << phases[i].op;
		bench.disk.fail_status = -ENOSPC;
		cr_assert_eq(state_writer_begin(bench.writer, 1 + i, directory), 0);
		cr_assert_eq(run(bench.writer, &text), -ENOSPC);
		cr_assert_eq(strncmp(text, phases[i].word, strlen(phases[i].word)), 0, "%s", text);
		cr_assert_not_null(strstr(text, "No space left on device"), "%s", text);
		state_writer_end(bench.writer);
		settle(bench.writer);
	}
	bench_free(&bench);
}

Test(state_writer, fails_when_the_directory_of_the_checkpoint_is_missing)
{
	const char *text;

	bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, "/tmp/weir-test-nowhere/chk-1"), 0);
	cr_assert_eq(run(bench.writer, &text), -ENOENT);
	state_writer_end(bench.writer);
	settle(bench.writer);
	bench_free(&bench);
}

Test(state_writer, leaves_nothing_behind_when_given_up_at_any_moment)
{
	bench_init(&bench, STORE_THREADS);
	for (uint32_t steps = 0; steps < 200; steps++) {
		cr_assert_eq(state_writer_begin(bench.writer, 1 + steps, directory), 0);
		for (uint32_t i = 0; i < steps && !state_writer_is_done(bench.writer); i++)
			state_writer_step(bench.writer, 16);
		state_writer_abort(bench.writer);
		settle(bench.writer);
		cr_assert_eq(file_count(), 0, "after %u steps", steps);
	}
	bench_free(&bench);
}

Test(state_writer, refuses_the_next_snapshot_while_the_disk_hangs_and_no_longer)
{
	const char *text;
	struct prng p;

	prng_seed(&p, 9);
	bench_init(&bench, STORE_THREADS);
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
		settle(bench.writer);
		cr_assert_eq(file_count(), 0);
		change(&bench.world, &p);
		cr_assert_eq(state_writer_begin(bench.writer, 3, directory), 0);
		cr_assert_eq(run(bench.writer, &text), 0, "%s", text);
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
		remove_test_directory(directory);
		make_test_directory(directory);
	}
	bench_free(&bench);
}

Test(state_writer, waits_for_a_queue_that_is_full_and_can_be_given_up_meanwhile)
{
	const char *text;
	struct prng p;

	prng_seed(&p, 11);
	bench_init(&bench, STORE_THREADS);
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
			settle(bench.writer);
			continue;
		}
		cr_assert_eq(run(bench.writer, &text), 0, "%s", text);
		check_restored(state_writer_result(bench.writer), &bench.world);
		state_writer_end(bench.writer);
		remove_test_directory(directory);
		make_test_directory(directory);
	}
	bench_free(&bench);
}

/* ---- restoring what is not as it should be ---- */

static struct task_state *write_one(void)
{
	const char *text;
	struct task_state *t;

	bench_init(&bench, STORE_AUTO);
	cr_assert_eq(state_writer_begin(bench.writer, 1, directory), 0);
	cr_assert_eq(run(bench.writer, &text), 0, "%s", text);
	t = carry(state_writer_result(bench.writer));
	state_writer_end(bench.writer);
	return t;
}

static struct world fresh;

static void refused(const struct task_state *t, int status, const char *word)
{
	char text[RESTORE_TEXT_BYTES] = "";

	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, text), status, "%s", text);
	cr_assert_not_null(strstr(text, word), "%s", text);
	world_free(&fresh);
	world_init(&fresh);
}

Test(state_writer, restore_refuses_another_declaration_and_names_both_numbers)
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
	bench_free(&bench);
}

Test(state_writer, restore_refuses_more_entries_than_fit)
{
	struct task_state *t = write_one();

	world_init(&fresh);
	free(fresh.large_memory);
	fresh.large = create_keyed(8, 100, &fresh.large_memory);
	fresh.states[2].keyed = fresh.large;
	fresh.states[2].capacity = 100;
	refused(t, -ENOSPC, "state count.large: more entries than its capacity of 100");
	world_free(&fresh);
	task_state_free(t);
	bench_free(&bench);
}

Test(state_writer, restore_refuses_a_damaged_file_with_its_name_and_offset)
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
	bench_free(&bench);
}

/* With a right checksum of wrong bytes: who writes files can write checksums too. */
Test(state_writer, restore_refuses_bytes_that_are_no_entries)
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
	bench_free(&bench);
}

Test(state_writer, restore_leaves_states_empty_that_the_snapshot_lacks)
{
	struct task_state *t = write_one();
	char text[RESTORE_TEXT_BYTES];

	world_init(&fresh);
	t->handle_count = 2;
	cr_assert_eq(restore_states(directory, t, fresh.states, STATES, text), 0);
	cr_assert_eq(fresh.item_count, 300);
	cr_assert_eq(keyed_state_count(fresh.large), 0);
	world_free(&fresh);
	task_state_free(t);
	bench_free(&bench);
}
