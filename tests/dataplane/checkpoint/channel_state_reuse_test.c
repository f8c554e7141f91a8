/* channel_state_file where the directory of a checkpoint is that of one that is no more (SL-2): its
 * file is written over. */

#include "tests/sim/spy_store.h"
#include "tests/support/channel_state_world.h"

#include "dataplane/checkpoint/channel_state_format.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

enum { BLOCK = STORE_ALIGN_BYTES, PATH_BYTES = 64 };

static const struct channel_state_subtask SUBTASKS[1] = {{"map", 3, 1, 1, {3}, {1}}};

static struct spy_store spy;
static struct channel_world w;

static void begin(void)
{
	spy_store_init(&spy, mem_store_create());
	channel_world_prepare(&w, &spy.store, "/c", 16 * BLOCK);
	channel_world_add(&w, SUBTASKS, 1);
}

static void end(void)
{
	channel_world_free(&w);
}

TestSuite(channel_state_reuse, .init = begin, .fini = end, .timeout = 20);

static const char *path_of(int64_t id, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "/c/chk-%lld/channels-map-3-abcd0000", (long long)id);
	return path;
}

/* One checkpoint with so many buffers of so many bytes in flight; how it ended. */
static int take(int64_t id, uint32_t count, uint32_t size, uint8_t seed)
{
	enum decline_reason reason;
	const char *text;

	spy.count = 0;
	channel_world_start_all(&w, id);
	for (uint32_t i = 0; i < count; i++) {
		struct buf *b = channel_world_buf(&w, size, seed);

		channel_state_writer_add_input_data(w.writers[0], id,
				(struct channel_info){0, i % 3}, &b, 1, 0);
		buf_release(b);
	}
	channel_world_finish_all(&w, id);
	channel_world_finish(&w, 0, id);
	int status = channel_state_writer_outcome(w.writers[0], id, &reason, &text);
	channel_state_writer_remove(w.writers[0], id);
	channel_world_step(&w, 5);
	return status;
}

/* A checkpoint with one buffer in flight, whose input and output are not finished. */
static void begin_one(int64_t id)
{
	struct buf *b = channel_world_buf(&w, 100, 1);

	channel_world_start_all(&w, id);
	channel_state_writer_add_input_data(
			w.writers[0], id, (struct channel_info){0, 0}, &b, 1, 0);
	buf_release(b);
}

/* The directory of `old` becomes that of `next`. */
static void replace(int64_t old, int64_t next)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	struct store_request r = {.op = STORE_RENAME, .path = path_of(old, from),
		.path_to = path_of(next, to)};
	struct store_done done;

	cr_assert_eq(store_submit(&spy.store, &r), 0);
	cr_assert_eq(store_reap(&spy.store, &done, 1), 1);
	cr_assert_eq(done.result, 0);
}

static uint32_t open_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < spy.count; i++)
		count += spy.log[i].op == STORE_OPEN;
	return count;
}

Test(channel_state_reuse, leaves_nothing_that_counts_of_a_longer_file)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES], path[PATH_BYTES];
	struct channel_state_header h;
	struct channel_state_section s;
	uint32_t crc;
	size_t size;

	cr_assert_eq(take(1, 6, 8192, 1), 0);
	replace(1, 5);
	cr_assert_eq(take(5, 1, 100, 77), 0);
	const uint8_t *file = mem_store_file(spy.inner, path_of(5, path), &size);
	cr_assert_not_null(file);
	cr_assert_eq(channel_state_decode_header(&h, file, size, why), 0, "%s", why);
	cr_assert_eq(h.checkpoint_id, 5);
	cr_assert_eq(h.section_count, 1);
	cr_assert_eq(h.table_bytes, channel_state_section_bytes(1));
	cr_assert_eq(channel_state_check_section(
				     file + h.table_offset, h.table_bytes, &crc, why), 0);
	cr_assert_eq(channel_state_decode_section(
				     &s, file + h.table_offset, h.table_bytes, why), 0);
	cr_assert_eq(s.checkpoint_id, 5);
	cr_assert_eq(s.bytes, 100);
	cr_assert_eq(file[BLOCK], 77);
	cr_assert_gt(size, 6 * 8192, "its room is kept");
	cr_assert_eq(mem_store_file_count(spy.inner), 1);
}

Test(channel_state_reuse, opens_by_one_request_as_long_as_directories_are_alike)
{
	cr_assert_eq(take(1, 1, 100, 1), 0);
	cr_assert_eq(open_count(), 1);
	cr_assert_eq(take(2, 1, 100, 1), 0);
	replace(1, 3);
	cr_assert_eq(take(3, 1, 100, 1), 0);
	cr_assert_eq(open_count(), 2, "it was not expected there");
	replace(2, 4);
	cr_assert_eq(take(4, 1, 100, 1), 0);
	cr_assert_eq(open_count(), 1);
	cr_assert_eq(take(5, 1, 100, 1), 0);
	cr_assert_eq(open_count(), 2, "it was expected there");
	cr_assert_eq(take(6, 1, 100, 1), 0);
	cr_assert_eq(open_count(), 1);
}

/* The second answer stands, whatever it is. */
static void expect_second_stands(int status)
{
	cr_assert_eq(take(1, 1, 100, 1), 0);
	replace(1, 2);
	w.disk.op_count = 0;
	w.disk.fail_ops = 1u << STORE_OPEN;
	w.disk.fail_nth = 2;
	w.disk.fail_status = status;
	cr_assert_eq(take(2, 1, 100, 1), status);
	cr_assert_eq(open_count(), 1);
	cr_assert_eq(w.disk.failed_count, 1);
	cr_assert_eq(channel_world_used(&w), 0);
}

Test(channel_state_reuse, fails_where_a_file_can_be_opened_neither_way)
{
	expect_second_stands(-EEXIST);
}

Test(channel_state_reuse, fails_where_a_file_is_there_and_is_not)
{
	expect_second_stands(-ENOENT);
}

/* The first of them is complete, so the second does not end it (CS-8): both were opened before
 * either learned that its file is there. */
Test(channel_state_reuse, opens_two_files_at_once_that_are_both_there)
{
	enum decline_reason reason;
	const char *text;

	cr_assert_eq(take(1, 1, 100, 1), 0);
	cr_assert_eq(take(2, 1, 100, 1), 0);
	replace(1, 3);
	replace(2, 4);
	w.disk.is_hung = true;
	w.disk.hang_ops = 1u << STORE_OPEN;
	spy.count = 0;
	for (int64_t id = 3; id <= 4; id++) {
		begin_one(id);
		channel_world_finish_all(&w, id);
		channel_world_step(&w, 5);
	}
	cr_assert_eq(w.disk.held_count, 2);
	fault_store_settle(&w.disk);
	for (int64_t id = 3; id <= 4; id++) {
		channel_world_finish(&w, 0, id);
		cr_assert_eq(channel_state_writer_outcome(w.writers[0], id, &reason, &text), 0,
				"checkpoint %lld: %s", (long long)id, text);
		channel_state_writer_remove(w.writers[0], id);
	}
	channel_world_step(&w, 5);
	cr_assert_eq(open_count(), 4);
	cr_assert_eq(channel_world_used(&w), 0);
}

Test(channel_state_reuse, tries_only_once_when_it_was_given_up_meanwhile)
{
	cr_assert_eq(take(1, 1, 100, 1), 0);
	replace(1, 2);
	spy.count = 0;
	begin_one(2);
	(void)channel_state_writer_step(w.writers[0], ++w.now_ns);
	channel_state_writer_abort(w.writers[0], 2, DECLINE_OTHER, "over", true);
	channel_world_step(&w, 5);
	cr_assert_eq(open_count(), 1);
	cr_assert_eq(channel_world_used(&w), 0);
}
