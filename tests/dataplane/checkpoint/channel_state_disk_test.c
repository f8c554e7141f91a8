/* channel_state_file: a disk that does not answer keeps few buffers, for a bounded time, and
 * nothing is lost when it answers again; as much is in flight as was promised. */

#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_5 "/c/chk-5/channels-map-3-abcd0000"

enum { BLOCK = STORE_ALIGN_BYTES };

static const struct channel_state_subtask SUBTASKS[1] = {{"map", 3, 1, 1, {3}, {1}}};

static struct channel_world w;
static enum decline_reason reason;
static const char *text;

static void prepare(uint32_t pages)
{
	channel_world_prepare(&w, mem_store_create(), "/c", (uint64_t)pages * BLOCK);
}

static void begin(void)
{
	prepare(16);
	channel_world_add(&w, SUBTASKS, 1);
}

static void end(void)
{
	channel_world_free(&w);
}

TestSuite(channel_state_disk, .init = begin, .fini = end, .timeout = 20);

static void start(int64_t id)
{
	channel_world_start_all(&w, id);
}

static void add_buf(int64_t id, uint32_t channel, struct buf *b, uint32_t offset)
{
	channel_state_writer_add_input_data(w.writers[0], id, (struct channel_info){0, channel}, &b,
			1, offset);
	buf_release(b);
}

static void add_input(int64_t id, uint32_t channel, uint32_t size, uint8_t seed)
{
	add_buf(id, channel, channel_world_buf(&w, size, seed), 0);
}

/* `count` references to one small buffer. */
static void add_many(int64_t id, uint32_t channel, uint32_t count)
{
	struct buf *b = channel_world_buf(&w, 10, 1);

	for (uint32_t i = 0; i < count; i++)
		channel_state_writer_add_input_data(w.writers[0], id,
				(struct channel_info){0, channel}, &b, 1, 0);
	buf_release(b);
}

static uint32_t step(void)
{
	w.now_ns += 1000000;
	return channel_state_writer_step(w.writers[0], w.now_ns);
}

static int outcome(int64_t id)
{
	channel_world_finish(&w, 0, id);
	return channel_state_writer_outcome(w.writers[0], id, &reason, &text);
}

static const struct channel_state_result *complete(int64_t id)
{
	channel_world_finish_all(&w, id);
	cr_assert_eq(outcome(id), 0, "%s", text);
	return channel_state_writer_result(w.writers[0], id);
}

/* ---- a disk that does not answer ------------------------------------------------------------- */

/* The file is open and has room for what is added next; then the disk hangs. */
static void hang(uint32_t count)
{
	start(5);
	add_many(5, 0, 1);
	for (uint32_t i = 0; i < 6; i++)
		(void)step();
	add_many(5, 0, 1);
	for (uint32_t i = 0; i < 6; i++)
		(void)step();
	w.disk.is_hung = true;
	for (uint32_t i = 0; i < count; i++)
		add_input(5, 0, 10, (uint8_t)i);
}

static uint32_t step_at(uint64_t now_ns)
{
	return channel_state_writer_step(w.writers[0], now_ns);
}

Test(channel_state_disk, copies_what_waits_when_patience_is_over_and_not_before)
{
	hang(10);
	(void)step();
	uint64_t since = w.now_ns;
	cr_assert_eq(w.disk.held_count, 4);
	cr_assert_eq(step_at(since + w.config.patience_ns), 0);
	cr_assert_eq(channel_world_used(&w), 10);
	cr_assert_gt(step_at(since + w.config.patience_ns + 1), 0);
	cr_assert_eq(channel_world_used(&w), 4);
	cr_assert_eq(w.disk.held_count, 4, "what is copied waits, too, for the disk to answer");
	fault_store_settle(&w.disk);
	(void)complete(5);
}

Test(channel_state_disk, copies_a_bounded_number_in_each_step)
{
	channel_world_free(&w);
	prepare(64);
	channel_world_add(&w, SUBTASKS, 1);
	hang(40);
	(void)step();
	uint64_t late = w.now_ns;
	for (uint32_t left = 36; left > 0; left -= left < 16 ? left : 16) {
		cr_assert_eq(channel_world_used(&w), 4 + left);
		(void)step_at(late += w.config.patience_ns + 1);
		(void)step_at(++late); /* what was copied goes to the disk: it is waited for anew */
	}
	cr_assert_eq(channel_world_used(&w), 4);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	fault_store_settle(&w.disk);
	w.now_ns = late;
	(void)complete(5);
}

Test(channel_state_disk, fails_when_what_waits_is_more_than_can_be_copied)
{
	hang(4 + 17);
	(void)step();
	uint64_t late = w.now_ns + w.config.patience_ns + 1;
	(void)step_at(late);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	(void)step_at(late + 1);
	cr_assert_eq(outcome(5), -ETIMEDOUT);
	cr_assert_str_eq(text, "write " FILE_5 ": the disk has not answered; in-flight data does "
			"not wait for it");
	cr_assert_eq(channel_world_used(&w), 4);
	w.now_ns = late + 1;
	fault_store_settle(&w.disk);
	for (uint32_t i = 0; i < 5; i++)
		(void)step();
	cr_assert_eq(channel_world_used(&w), 0);
	cr_assert_eq(mem_store_file_count(w.inner), 0);
}

/* An answer, or something new to write, is a sign of life. */
Test(channel_state_disk, waits_anew_after_each_answer)
{
	hang(10);
	(void)step();
	fault_store_settle(&w.disk);
	w.now_ns += w.config.patience_ns - 1000001;
	(void)step(); /* four come back and four go */
	w.disk.is_hung = true;
	cr_assert_eq(channel_world_used(&w), 6);
	w.now_ns += w.config.patience_ns - 1000001;
	(void)step();
	cr_assert_eq(channel_world_used(&w), 6);
	fault_store_settle(&w.disk);
	(void)complete(5);
}

Test(channel_state_disk, copies_nothing_when_it_may_leave_nothing_with_the_disk)
{
	channel_world_free(&w);
	prepare(16);
	w.config.issued_in_max = 0;
	channel_world_add(&w, SUBTASKS, 1);
	start(5);
	for (uint32_t i = 0; i < 10; i++)
		add_input(5, 0, 10, (uint8_t)i);
	for (uint32_t i = 0; i < 3; i++)
		(void)step();
	cr_assert_eq(channel_world_used(&w), 0, "all were copied at once");
	(void)complete(5);
}

/* Two files die with writes that the disk does not give back; the third still takes all. */
Test(channel_state_disk, has_room_for_all_in_flight_beside_files_that_die)
{
	static const struct channel_state_subtask wide[1] = {{"map", 0, 1, 0, {16}, {0}}};

	channel_world_free(&w);
	prepare(64);
	channel_world_add(&w, wide, 1);
	w.disk.is_hung = true;
	w.disk.hang_ops = 1 << STORE_WRITE;
	for (int64_t id = 5; id <= 7; id++) {
		start(id);
		for (uint32_t i = 0; i < 16; i++)
			add_many(id, i, CHANNEL_WORLD_CHUNKS / 16);
		for (uint32_t i = 0; i < 16; i++)
			channel_state_writer_add_input_partial(w.writers[0], id,
					(struct channel_info){0, i}, (uint8_t[]){1, 2}, 2);
		if (id < 7) /* each is given up with writes under way */
			channel_world_step(&w, 8);
	}
	cr_assert(!channel_state_writer_is_done(w.writers[0], 7));
	fault_store_settle(&w.disk);
}

Test(channel_state_disk, fails_the_checkpoint_when_more_is_in_flight_than_can_be)
{
	uint32_t room = 3 * (CHANNEL_WORLD_CHUNKS + 2 * 4);

	for (int64_t id = 5; id <= 6; id++) { /* and all of it is there again */
		start(id);
		add_many(id, 0, room);
		cr_assert(!channel_state_writer_is_done(w.writers[0], id));
		add_many(id, 0, 3);
		cr_assert_eq(outcome(id), -ENOBUFS);
		cr_assert_eq(reason, DECLINE_ASYNC_EXCEPTION);
		cr_assert_not_null(strstr(text, "keep the buffers in flight for /c/chk-"), "%s",
				text);
		cr_assert_eq(channel_world_used(&w), 0);
		channel_world_step(&w, 10);
	}
}

/* ---- CS-8: a file that has all it waits for when the next one begins ------------------------- */

/* Checkpoint 5 has all, but the disk does not answer; 6 has begun. */
static void begin_two(void)
{
	start(5);
	add_input(5, 0, 100, 1);
	channel_world_finish_all(&w, 5);
	for (uint32_t i = 0; i < 3; i++)
		(void)step();
	w.disk.is_hung = true;
	w.disk.hang_ops = 1 << STORE_WRITE | 1 << STORE_SYNC;
	start(6);
	add_input(6, 0, 100, 2);
	for (uint32_t i = 0; i < 5; i++)
		(void)step();
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	cr_assert(channel_state_writer_is_writing(w.writers[0]));
}

Test(channel_state_disk, writes_a_file_to_its_end_beside_the_next_one)
{
	begin_two();
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(6)->bytes, 100);
	cr_assert_eq(complete(5)->bytes, 100);
	cr_assert_eq(mem_store_file_count(w.inner), 2);
}

Test(channel_state_disk, gives_an_older_file_up_that_is_aborted_beside_the_next_one)
{
	begin_two();
	channel_state_writer_abort(w.writers[0], 5, DECLINE_OTHER, "five", false);
	cr_assert(channel_state_writer_is_writing(w.writers[0]), "the next one");
	cr_assert_eq(outcome(5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_OTHER);
	cr_assert_str_eq(text, "five");
	fault_store_settle(&w.disk);
	(void)complete(6);
	for (uint32_t i = 0; i < 5; i++)
		(void)step();
	cr_assert_eq(mem_store_file_count(w.inner), 1);
}

Test(channel_state_disk, leaves_an_older_file_alone_when_the_next_one_is_aborted)
{
	begin_two();
	channel_state_writer_abort(w.writers[0], 6, DECLINE_OTHER, "six", true);
	channel_state_writer_abort(w.writers[0], 8, DECLINE_OTHER, "eight", true);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	fault_store_settle(&w.disk);
	(void)complete(5);
	/* And it can still be aborted, with a cause of its own, while it is written. */
	start(9);
	add_input(9, 0, 100, 1);
	channel_world_finish_all(&w, 9);
	start(10);
	channel_state_writer_abort(w.writers[0], 11, DECLINE_SUBSUMED, "eleven", true);
	channel_state_writer_abort(w.writers[0], 9, DECLINE_OTHER, "nine", false);
	cr_assert_eq(outcome(9), -ECANCELED);
	cr_assert_str_eq(text, "nine");
	cr_assert_eq(outcome(10), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SUBSUMED);
}

Test(channel_state_disk, blames_the_next_one_for_no_failure_of_an_older_file)
{
	begin_two();
	w.disk.op_count = 0;
	w.disk.fail_ops = 1 << STORE_WRITE;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EIO;
	fault_store_settle(&w.disk);
	cr_assert_eq(outcome(5), -EIO);
	(void)complete(6);
	channel_state_writer_remove(w.writers[0], 6);
	start(6);
	cr_assert_eq(outcome(6), -EALREADY);
}

Test(channel_state_disk, leaves_nothing_behind_when_the_task_ends_between_two_files)
{
	begin_two();
	channel_state_writer_close(w.writers[0]);
	fault_store_settle(&w.disk);
	for (uint32_t i = 0; i < 20; i++)
		(void)step();
	cr_assert(channel_state_writer_is_idle(w.writers[0]));
	cr_assert_eq(mem_store_file_count(w.inner), 1, "the one that had all");
}

/* ---- from where it lies ---------------------------------------------------------------------- */

Test(channel_state_disk, writes_a_full_buffer_from_where_it_lies)
{
	hang(0);
	add_input(5, 0, CHANNEL_WORLD_BUF_BYTES, 1);
	(void)step();
	(void)step();
	cr_assert_eq(channel_world_used(&w), 1, "it is not copied");
	fault_store_settle(&w.disk);
	(void)complete(5);
}

Test(channel_state_disk, writes_once_and_later_what_the_queue_of_the_store_has_no_room_for)
{
	start(5);
	add_input(5, 0, 10, 1);
	(void)step();
	(void)step();
	w.disk.is_full = true;
	(void)step();
	w.disk.is_full = false;
	w.disk.fail_ops = 1 << STORE_WRITE; /* they are counted, none fails */
	w.disk.op_count = 0;
	(void)complete(5);
	cr_assert_eq(w.disk.op_count, 3, "the buffer, the table, the header");
}

/* ---- what a disk that fails or hangs leaves -------------------------------------------------- */

/* A queue that takes nothing is no better than a disk that does not answer. */
Test(channel_state_disk, copies_what_waits_when_the_queue_of_the_store_stays_full)
{
	start(5);
	for (uint32_t i = 0; i < 6; i++)
		add_input(5, 0, 10, (uint8_t)i);
	w.disk.is_full = true;
	(void)step();
	cr_assert_eq(step_at(w.now_ns + w.config.patience_ns), 0, "there is nothing to do");
	cr_assert_eq(channel_world_used(&w), 6);
	cr_assert_gt(step_at(w.now_ns + w.config.patience_ns + 1), 0);
	cr_assert_eq(channel_world_used(&w), 0);
	w.disk.is_full = false;
	(void)complete(5);
}

Test(channel_state_disk, has_nothing_to_do_while_the_queue_of_the_store_is_full)
{
	start(5);
	add_input(5, 0, 10, 1);
	channel_world_finish_all(&w, 5);
	while (!channel_state_writer_is_done(w.writers[0], 5)) {
		w.disk.is_full = true;
		(void)step(); /* what was asked before may have ended */
		cr_assert_eq(step(), 0);
		w.disk.is_full = false;
		cr_assert(step() > 0 || channel_state_writer_is_done(w.writers[0], 5));
	}
}

/* The file that is there may be somebody else's. */
Test(channel_state_disk, removes_no_file_that_it_could_not_open)
{
	w.disk.fail_ops = 1 << STORE_OPEN | 1 << STORE_CLOSE | 1 << STORE_UNLINK;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EACCES;
	start(5);
	add_input(5, 0, 10, 1);
	cr_assert_eq(outcome(5), -EACCES);
	for (uint32_t i = 0; i < 5; i++)
		(void)step();
	cr_assert_eq(w.disk.op_count, 1, "nothing is asked for but to open it");
}

/* Those that the disk had when a checkpoint was given up, too. */
Test(channel_state_disk, has_all_its_room_again_when_the_disk_answers)
{
	uint32_t room = 3 * (CHANNEL_WORLD_CHUNKS + 2 * 4);

	hang(10);
	(void)step();
	cr_assert_eq(w.disk.held_count, 4);
	channel_state_writer_abort(w.writers[0], 5, DECLINE_OTHER, "over", true);
	fault_store_settle(&w.disk);
	for (uint32_t i = 0; i < 5; i++)
		(void)step();
	start(6);
	add_many(6, 0, room);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 6));
}

/* There are three files: two are given up, the third has all, or not, and is written. */
Test(channel_state_disk, refuses_a_checkpoint_beside_three_files_that_are_not_written)
{
	for (uint32_t has_all = 0; has_all < 2; has_all++) {
		channel_world_free(&w);
		begin();
		w.disk.is_hung = true;
		w.disk.hang_ops = 1 << STORE_WRITE;
		for (int64_t id = 5; id < 8; id++) {
			start(id);
			add_input(id, 0, 10, 1);
			channel_world_step(&w, 5);
		}
		if (has_all > 0)
			channel_world_finish_all(&w, 7);
		start(8);
		cr_assert(channel_state_writer_is_done(w.writers[0], 8));
		cr_assert_eq(outcome(8), -EBUSY);
		cr_assert_eq(reason, DECLINE_TASK_NOT_READY);
		fault_store_settle(&w.disk);
		cr_assert_eq(outcome(7), has_all > 0 ? 0 : -ECANCELED);
	}
}

static const uint8_t *file_of(int64_t id, size_t *size)
{
	char path[64];

	snprintf(path, sizeof(path), "/c/chk-%d/channels-map-3-abcd0000", (int)id);
	const uint8_t *file = mem_store_file(w.inner, path, size);
	cr_assert_not_null(file);
	return file;
}

/* CS-8: each file has a table of its own, though both are ready for it at the same time. */
Test(channel_state_disk, writes_the_tables_of_two_files_one_after_the_other)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_section s;
	size_t size;

	for (int64_t id = 5; id <= 6; id++) {
		w.disk.hang_ops = 1 << STORE_WRITE;
		w.disk.is_hung = false;
		start(id);
		add_input(id, 0, 100, (uint8_t)id);
		channel_world_finish_all(&w, id);
		channel_world_step(&w, 3); /* open, room, the buffer */
		w.disk.is_hung = true;
		channel_world_step(&w, 3);
		cr_assert_eq(w.disk.held_count, 2, "the table and the header of the older one");
	}
	fault_store_settle(&w.disk);
	for (int64_t id = 5; id <= 6; id++) {
		const struct channel_state_handle *h = &complete(id)->handles[0];
		const uint8_t *file = file_of(id, &size);

		cr_assert_eq(channel_state_decode_section(&s, file + h->offset, size - h->offset,
				why), 0, "%s", why);
		cr_assert_eq(s.checkpoint_id, id);
	}
}

Test(channel_state_disk, leaves_nothing_of_an_older_table_behind_its_own)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_header h;
	size_t size;

	start(5);
	add_many(5, 0, 100);
	(void)complete(5);
	start(6);
	add_many(6, 0, 1);
	(void)complete(6);
	const uint8_t *file = file_of(6, &size);
	cr_assert_eq(channel_state_decode_header(&h, file, size, why), 0, "%s", why);
	for (uint64_t at = h.table_offset + h.table_bytes; at < size; at++)
		cr_assert_eq(file[at], 0);
}

/* The table is the next file's once it is written. */
Test(channel_state_disk, a_sync_that_hangs_keeps_no_later_checkpoint_from_its_table)
{
	w.disk.is_hung = true;
	w.disk.hang_ops = 1u << STORE_SYNC;
	start(5);
	add_input(5, 0, 100, 1);
	channel_world_finish_all(&w, 5);
	channel_world_step(&w, 50);
	cr_assert_eq(w.disk.held_count, 1);
	channel_state_writer_abort(w.writers[0], 5, DECLINE_SUBSUMED, "expired", true);
	w.disk.is_hung = false;
	start(6);
	add_input(6, 0, 100, 1);
	channel_world_finish_all(&w, 6);
	channel_world_finish(&w, 0, 6);
	cr_assert_eq(channel_state_writer_outcome(w.writers[0], 6, &reason, &text), 0, "%s", text);
	cr_assert_eq(w.disk.held_count, 1, "the sync still hangs");
	fault_store_settle(&w.disk);
	channel_world_step(&w, 20);
	cr_assert_eq(channel_world_used(&w), 0);
}
