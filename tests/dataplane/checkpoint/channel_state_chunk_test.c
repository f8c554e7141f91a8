/* channel_state_chunk: memory for copies is never given twice nor lost, channels do not slow each
 * other, and only a disk that owes an answer is taken for one that hangs. */

#include "tests/sim/spy_store.h"
#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

enum { MAP, SUM, BLOCK = STORE_ALIGN_BYTES };

static const struct channel_state_subtask SUBTASKS[2] = {
	{"map", 3, 1, 0, {2}, {0}},
	{"sum", 1, 1, 1, {2}, {1}},
};

static struct spy_store spy;
static struct channel_world w;
static enum decline_reason reason;
static const char *text;

static void begin_with(uint32_t pages, uint32_t issued_in_max)
{
	spy_store_init(&spy, mem_store_create());
	channel_world_prepare(&w, &spy.store, "/c", (uint64_t)pages * BLOCK);
	w.config.issued_in_max = issued_in_max;
	channel_world_add(&w, SUBTASKS, 2);
}

static void begin(void)
{
	begin_with(16, 4);
}

static void end(void)
{
	channel_world_free(&w);
}

static void begin_again(uint32_t pages, uint32_t issued_in_max)
{
	end();
	begin_with(pages, issued_in_max);
}

TestSuite(channel_state_chunk, .init = begin, .fini = end, .timeout = 20);

static void add(uint32_t writer, int64_t id, uint32_t channel, uint32_t size, uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, size, seed);

	channel_state_writer_add_input_data(w.writers[writer], id,
			(struct channel_info){0, channel}, &b, 1, 0);
	buf_release(b);
}

static void add_many(uint32_t writer, int64_t id, uint32_t channel, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add(writer, id, channel, 10, (uint8_t)i);
}

static void add_output(int64_t id, uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, 10, seed);

	channel_state_writer_add_output_data(w.writers[SUM], id, (struct channel_info){0, 0}, &b,
			1);
	buf_release(b);
}

static void add_partial(int64_t id, uint32_t channel, uint32_t size, uint8_t byte)
{
	static uint8_t bytes[17 * BLOCK];

	memset(bytes, byte, size);
	channel_state_writer_add_input_partial(w.writers[MAP], id,
			(struct channel_info){0, channel}, bytes, size);
}

static uint32_t step_at(uint64_t now_ns)
{
	w.now_ns = now_ns;
	return channel_state_writer_step(w.writers[MAP], now_ns);
}

static int outcome(uint32_t writer, int64_t id)
{
	channel_world_finish(&w, writer, id);
	return channel_state_writer_outcome(w.writers[writer], id, &reason, &text);
}

static const struct channel_state_result *complete(uint32_t writer, int64_t id)
{
	channel_world_finish_all(&w, id);
	cr_assert_eq(outcome(writer, id), 0, "%s", text);
	return channel_state_writer_result(w.writers[writer], id);
}

static uint32_t writes(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < spy.count; i++)
		count += spy.log[i].op == STORE_WRITE;
	return count;
}

/* The file has room for what comes next, and all before is written. */
static void make_room(int64_t id)
{
	channel_world_start_all(&w, id);
	for (uint32_t i = 0; i < 2; i++) {
		add(MAP, id, 0, 10, 1);
		channel_world_step(&w, 6);
	}
	cr_assert_eq(channel_world_used(&w), 0);
}

/* Whether the file has, of the first chunk of a handle, only that byte. */
static void check_bytes(int64_t id, const struct channel_state_handle *h, uint8_t byte)
{
	char path[64], why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_chunk c;
	size_t size;

	snprintf(path, sizeof(path), "/c/chk-%d/%s", (int)id, h->file);
	const uint8_t *file = mem_store_file(spy.inner, path, &size);
	cr_assert_not_null(file);
	cr_assert_eq(channel_state_decode_chunk(&c,
			file + h->offset + channel_state_section_bytes(0), why), 0, "%s", why);
	for (uint32_t i = 0; i < c.size; i++)
		cr_assert_eq(file[c.offset + i], byte, "byte %u of %u", i, c.size);
}

/* ---- memory for copies ----------------------------------------------------------------------- */

/* One page is free, two are wanted: the buffer waits, is written later, and no page is lost. */
Test(channel_state_chunk, loses_no_page_to_a_buffer_that_had_to_wait_for_two)
{
	begin_again(3, 0);
	channel_world_start_all(&w, 5);
	w.disk.hang_ops = 1 << STORE_WRITE;
	w.disk.is_hung = true;
	for (uint8_t i = 0; i < 2; i++)
		add(MAP, 5, 0, 2 * BLOCK, i);
	channel_world_step(&w, 5);
	cr_assert_eq(channel_world_used(&w), 1, "one is copied, the other waits");
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->buf_count, 2);
	cr_assert_eq(writes(), 2 + 2, "two buffers, the table, the header");
	channel_world_start_all(&w, 6);
	add_partial(6, 0, 3 * BLOCK, 6);
	cr_assert_eq(complete(MAP, 6)->buf_count, 1);
}

/* What is free lies apart: sixteen pages, and three behind one that the disk has. */
Test(channel_state_chunk, takes_no_more_pages_for_the_rest_of_a_record_than_it_needs)
{
	begin_again(20, 4);
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 17; i++)
		add_partial(5, 0, 1, 1);
	channel_world_step(&w, 3); /* open, room, sixteen of them */
	w.disk.is_hung = true;
	w.disk.hang_ops = 1 << STORE_WRITE;
	channel_world_step(&w, 1);
	cr_assert_eq(w.disk.held_count, 1);
	add_partial(5, 1, 16 * BLOCK + 1, 2);
	add_partial(5, 1, 2 * BLOCK, 3);
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->handles[1].buf_count, 2 + 1);
}

/* The pages that a file had while it was written belong to another when it ends. */
Test(channel_state_chunk, gives_its_pages_back_once)
{
	begin_again(3, 4);
	channel_world_start_all(&w, 5);
	add_partial(5, 0, 2 * BLOCK, 5);
	channel_world_finish_all(&w, 5);
	w.disk.hang_ops = 1 << STORE_SYNC;
	w.disk.is_hung = true;
	channel_world_step(&w, 10);
	cr_assert_eq(w.disk.held_count, 1);
	channel_world_start_all(&w, 6);
	add_partial(6, 0, 2 * BLOCK, 6);
	fault_store_settle(&w.disk);
	while (!channel_state_writer_is_done(w.writers[MAP], 5))
		channel_world_step(&w, 1);
	cr_assert_eq(writes(), 1 + 2, "the newer file waits for room");
	add_partial(6, 1, BLOCK, 7);
	const struct channel_state_result *r = complete(MAP, 6);
	check_bytes(6, &r->handles[0], 6);
	check_bytes(6, &r->handles[1], 7);
}

/* What finds no room belongs to whose channel it is: that one, and nobody else, is free to end. */
Test(channel_state_chunk, lets_all_end_after_a_buffer_that_found_no_room)
{
	uint32_t room = 3 * (CHANNEL_WORLD_CHUNKS + 2 * 5);
	struct buf *b = channel_world_buf(&w, 10, 1);

	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < room + 1; i++)
		channel_state_writer_add_input_data(w.writers[SUM], 5, (struct channel_info){0, 1},
				&b, 1, 0);
	buf_release(b);
	cr_assert_eq(outcome(SUM, 5), -ENOBUFS);
	for (uint32_t i = 0; i < 2; i++)
		channel_state_writer_close(w.writers[i]);
	channel_world_step(&w, 10);
	for (uint32_t i = 0; i < 2; i++)
		cr_assert(channel_state_writer_is_idle(w.writers[i]));
}

/* ---- shares of the disk ---------------------------------------------------------------------- */

Test(channel_state_chunk, tells_the_shares_of_inputs_and_outputs_apart_for_each_subtask)
{
	make_room(5);
	w.disk.is_hung = true;
	for (uint32_t channel = 0; channel < 2; channel++)
		add_many(SUM, 5, channel, 6);
	for (uint8_t i = 0; i < 6; i++)
		add_output(5, i);
	channel_world_step(&w, 3);
	cr_assert_eq(w.disk.held_count, 4 + 4 + 2);
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(SUM, 5)->buf_count, 18);
}

/* One channel has its share with the disk already; the other gets all of its own in one step. */
Test(channel_state_chunk, does_not_slow_a_channel_for_another_that_has_its_share)
{
	make_room(5);
	w.disk.is_hung = true;
	add_many(MAP, 5, 0, 6);
	channel_world_step(&w, 1);
	cr_assert_eq(w.disk.held_count, 4);
	add_many(MAP, 5, 1, 4);
	channel_world_step(&w, 1);
	cr_assert_eq(w.disk.held_count, 4 + 4);
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->buf_count, 2 + 10);
}

Test(channel_state_chunk, writes_the_buffers_of_many_channels)
{
	static const struct channel_state_subtask wide[1] = {{"map", 3, 1, 0, {100}, {0}}};

	end();
	channel_world_prepare(&w, mem_store_create(), "/c", 16 * BLOCK);
	channel_world_add(&w, wide, 1);
	channel_world_start_all(&w, 5);
	for (uint32_t channel = 0; channel < 100; channel++) {
		struct buf *b = channel_world_buf(&w, 10, 1);

		channel_state_writer_add_input_data(w.writers[0], 5,
				(struct channel_info){0, channel}, &b, 1, 0);
		buf_release(b);
		if (channel % 50 == 49)
			channel_world_step(&w, 20);
		cr_assert_eq(channel_world_used(&w), channel % 50 == 49 ? 0 : channel % 50 + 1);
	}
	cr_assert_eq(complete(MAP, 5)->handle_count, 100);
}

/* However much each channel may leave with it. */
Test(channel_state_chunk, leaves_a_bounded_number_with_the_disk)
{
	begin_again(16, 40);
	make_room(5);
	w.disk.is_hung = true;
	add_many(MAP, 5, 0, 40);
	channel_world_step(&w, 5);
	cr_assert_eq(w.disk.held_count, 32);
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->buf_count, 2 + 40);
}

/* ---- which disk hangs ------------------------------------------------------------------------ */

Test(channel_state_chunk, counts_its_patience_from_the_last_buffer_it_wrote)
{
	make_room(5);
	w.disk.is_hung = true;
	add_many(MAP, 5, 0, 6);
	channel_world_step(&w, 1);
	add(MAP, 5, 1, 10, 1);
	uint64_t last = w.now_ns + w.config.patience_ns;
	(void)step_at(last);
	cr_assert_eq(w.disk.held_count, 4 + 1);
	(void)step_at(last + w.config.patience_ns);
	cr_assert_eq(channel_world_used(&w), 7);
	(void)step_at(last + w.config.patience_ns + 1);
	cr_assert_eq(channel_world_used(&w), 5, "two are copied");
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->buf_count, 2 + 7);
}

Test(channel_state_chunk, counts_its_patience_from_the_last_answer)
{
	channel_world_start_all(&w, 5);
	add_many(MAP, 5, 0, 3);
	w.disk.is_hung = true;
	channel_world_step(&w, 1);
	uint64_t late = w.now_ns + w.config.patience_ns;
	(void)step_at(late);
	fault_store_settle(&w.disk); /* the file is open */
	w.disk.is_hung = true;
	w.disk.hang_ops = 1 << STORE_ALLOCATE;
	(void)step_at(late + 1);
	(void)step_at(late + 1 + w.config.patience_ns);
	cr_assert_eq(channel_world_used(&w), 3);
	(void)step_at(late + 2 + w.config.patience_ns);
	cr_assert_eq(channel_world_used(&w), 0, "all are copied");
	fault_store_settle(&w.disk);
	cr_assert_eq(complete(MAP, 5)->buf_count, 3);
}

/* All is written and nothing comes for longer than any disk may take. */
Test(channel_state_chunk, takes_a_pause_within_a_checkpoint_for_no_hanging_disk)
{
	channel_world_start_all(&w, 5);
	add(MAP, 5, 0, 10, 1);
	channel_world_step(&w, 300);
	add(MAP, 5, 0, 10, 1); /* the file has no room for it yet */
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 1, "it is not copied");
	cr_assert_eq(complete(MAP, 5)->buf_count, 2);
}

/* However many wait beside however many the disk has. */
Test(channel_state_chunk, loses_patience_with_any_number_of_buffers)
{
	for (uint32_t more = 1; more <= 12; more++) {
		begin_again(16, 4);
		make_room(5);
		w.disk.is_hung = true;
		add_many(MAP, 5, 0, 4 + more);
		channel_world_step(&w, 2);
		(void)step_at(w.now_ns + w.config.patience_ns);
		cr_assert_eq(channel_world_used(&w), 4);
		fault_store_settle(&w.disk);
	}
}

/* What a file that was given up had waiting is waited for by nobody. */
Test(channel_state_chunk, takes_a_pause_for_no_hanging_disk_after_another_was_given_up)
{
	make_room(4);
	w.disk.is_hung = true;
	add_many(MAP, 4, 0, 4 + 6);
	channel_world_step(&w, 1);
	channel_world_start_all(&w, 5);
	fault_store_settle(&w.disk);
	add(MAP, 5, 0, 10, 1);
	channel_world_step(&w, 300);
	add(MAP, 5, 0, 10, 1);
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 1, "it is not copied");
	cr_assert_eq(complete(MAP, 5)->buf_count, 2);
}

Test(channel_state_chunk, says_that_it_made_the_table)
{
	make_room(5);
	channel_world_finish_all(&w, 5);
	cr_assert_gt(step_at(w.now_ns), 0);
}

/* As it asks for room: the step is no idle one. */
Test(channel_state_chunk, says_that_it_copied)
{
	channel_world_start_all(&w, 5);
	add(MAP, 5, 0, 10, 1);
	channel_world_step(&w, 8);
	add(MAP, 5, 0, 10, 1);
	cr_assert_gt(step_at(w.now_ns + w.config.patience_ns + 1), 0);
	cr_assert_eq(channel_world_used(&w), 0);
	cr_assert_eq(complete(MAP, 5)->buf_count, 2);
}

/* ---- what can be looked at ------------------------------------------------------------------- */

static void remember(void *context, const uint8_t *bytes, uint64_t offset, uint32_t size)
{
	(void)offset;
	(void)size;
	*(const uint8_t **)context = bytes;
}

Test(channel_state_chunk, shows_bytes_only_while_it_has_them)
{
	struct channel_info at = {0, 0};
	const uint8_t *bytes = NULL;

	channel_world_start_all(&w, 5);
	add(MAP, 5, 0, 10, 77);
	channel_state_writer_visit(w.writers[MAP], 5, CHANNEL_STATE_INPUT, at, remember, &bytes);
	cr_assert_eq(bytes[0], 77);
	channel_world_step(&w, 6);
	channel_state_writer_visit(w.writers[MAP], 5, CHANNEL_STATE_INPUT, at, remember, &bytes);
	cr_assert_null(bytes);
}
