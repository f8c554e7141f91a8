/* channel_state_executor: subtasks that share a file come and go, fail and end together or alone;
 * the memory is as much as was promised. */

#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define FILE_NAME "channels-map-3-abcd0000"

enum { MAP, SUM, SINK };

static const struct channel_state_subtask SUBTASKS[3] = {
	{"map", 3, 2, 2, {2, 1}, {1, 2}},
	{"sum", 1, 1, 0, {1}, {0}},
	{"sink", 0, 1, 0, {2}, {0}},
};

static struct channel_world w;
static enum decline_reason reason;
static const char *text;

static void begin_with(const struct channel_state_subtask *subtasks, uint32_t count)
{
	channel_world_prepare(&w, mem_store_create(), "/c", 16 * STORE_ALIGN_BYTES);
	channel_world_add(&w, subtasks, count);
}

static void begin(void)
{
	begin_with(SUBTASKS, 3);
}

static void end(void)
{
	channel_world_free(&w);
}

TestSuite(channel_state_executor, .init = begin, .fini = end, .timeout = 20);

static void start(uint32_t writer, int64_t id)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	cr_assert_eq(channel_state_writer_start(w.writers[writer], id, &options), 0);
}

static void add(uint32_t writer, int64_t id, enum channel_state_side side, struct channel_info at,
		uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, 100, seed);

	if (side == CHANNEL_STATE_INPUT)
		channel_state_writer_add_input_data(w.writers[writer], id, at, &b, 1, 0);
	else
		channel_state_writer_add_output_data(w.writers[writer], id, at, &b, 1);
	buf_release(b);
}

static void add_input(uint32_t writer, int64_t id, uint32_t channel, uint8_t seed)
{
	add(writer, id, CHANNEL_STATE_INPUT, (struct channel_info){0, channel}, seed);
}

static void finish(uint32_t writer, int64_t id)
{
	channel_state_writer_finish_input(w.writers[writer], id);
	channel_state_writer_finish_output(w.writers[writer], id);
}

static int outcome(uint32_t writer, int64_t id)
{
	channel_world_finish(&w, writer, id);
	return channel_state_writer_outcome(w.writers[writer], id, &reason, &text);
}

static const struct channel_state_result *result(uint32_t writer, int64_t id)
{
	cr_assert_eq(outcome(writer, id), 0, "%s", text);
	return channel_state_writer_result(w.writers[writer], id);
}

/* A whole checkpoint with one buffer of each subtask; nothing is removed. */
static void complete(int64_t id)
{
	channel_world_start_all(&w, id);
	for (uint32_t i = 0; i < 3; i++)
		add_input(i, id, 0, (uint8_t)(16 * id + i));
	channel_world_finish_all(&w, id);
	for (uint32_t i = 0; i < 3; i++)
		(void)result(i, id);
	channel_world_step(&w, 5);
}

/* The first byte that a handle's only chunk has in the file. */
static uint8_t first_byte(int64_t id, const struct channel_state_handle *h)
{
	char path[64], why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_section s;
	struct channel_state_chunk c;
	size_t size;

	snprintf(path, sizeof(path), "/c/chk-%d/" FILE_NAME, (int)id);
	const uint8_t *file = mem_store_file(w.inner, path, &size);
	cr_assert_not_null(file);
	const uint8_t *section = file + h->offset;
	cr_assert_eq(channel_state_decode_section(&s, section, size - h->offset, why), 0);
	cr_assert(s.side == h->side && s.gate == h->gate && s.channel == h->channel);
	cr_assert_eq(s.chunk_count, 1);
	cr_assert_eq(channel_state_decode_chunk(&c, section + CHANNEL_STATE_SECTION_BYTES, why), 0);
	return file[c.offset];
}

/* ---- whose channel it is --------------------------------------------------------------------- */

Test(channel_state_executor, tells_the_channels_of_all_gates_and_partitions_apart)
{
	static const struct channel_state_handle expected[] = {
		{.side = CHANNEL_STATE_INPUT, .gate = 0, .channel = 0},
		{.side = CHANNEL_STATE_INPUT, .gate = 0, .channel = 1},
		{.side = CHANNEL_STATE_INPUT, .gate = 1, .channel = 0},
		{.side = CHANNEL_STATE_OUTPUT, .gate = 0, .channel = 0},
		{.side = CHANNEL_STATE_OUTPUT, .gate = 1, .channel = 0},
		{.side = CHANNEL_STATE_OUTPUT, .gate = 1, .channel = 1},
	};

	channel_world_start_all(&w, 5);
	for (uint8_t i = 6; i-- > 0;)
		add(MAP, 5, expected[i].side,
				(struct channel_info){expected[i].gate, expected[i].channel}, i);
	add_input(SINK, 5, 1, 8);
	add_input(SINK, 5, 0, 7);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(MAP, 5);
	cr_assert_eq(r->handle_count, 6);
	for (uint8_t i = 0; i < 6; i++) {
		cr_assert(r->handles[i].side == expected[i].side);
		cr_assert_eq(r->handles[i].gate, expected[i].gate);
		cr_assert_eq(r->handles[i].channel, expected[i].channel);
		cr_assert_eq(first_byte(5, &r->handles[i]), i);
	}
	r = result(SINK, 5);
	cr_assert_eq(first_byte(5, &r->handles[0]), 7);
	cr_assert_eq(first_byte(5, &r->handles[1]), 8);
	cr_assert(r->handles[1].side == CHANNEL_STATE_INPUT && r->handles[1].channel == 1);
	cr_assert_null(result(SUM, 5)->file);
}

Test(channel_state_executor, serves_a_subtask_with_as_many_gates_as_there_may_be)
{
	static const struct channel_state_subtask wide[2] = {
		{"map", 3, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}},
		{"sink", 0, 1, 0, {2}, {0}},
	};

	static_assert(GATES_PER_TASK_MAX == 8 && OUTPUTS_PER_TASK_MAX == 8, "");
	channel_world_free(&w);
	begin_with(wide, 2);
	channel_world_start_all(&w, 5);
	for (uint32_t g = 0; g < 8; g++) {
		add(MAP, 5, CHANNEL_STATE_INPUT, (struct channel_info){g, 0}, (uint8_t)g);
		for (uint32_t c = 0; c < 2; c++)
			add(MAP, 5, CHANNEL_STATE_OUTPUT, (struct channel_info){g, c},
					(uint8_t)(8 + 2 * g + c));
	}
	add_input(1, 5, 0, 24);
	add_input(1, 5, 1, 25);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(MAP, 5);
	cr_assert_eq(r->handle_count, 24);
	for (uint8_t i = 0; i < 24; i++)
		cr_assert_eq(first_byte(5, &r->handles[i]), i);
	cr_assert_eq(result(1, 5)->handle_count, 2);
}

Test(channel_state_executor, keeps_the_results_of_several_checkpoints_apart)
{
	for (int64_t id = 1; id <= CHANNEL_STATE_RESULTS_MAX; id++)
		complete(id);
	for (int64_t id = 1; id <= CHANNEL_STATE_RESULTS_MAX; id++) {
		for (uint32_t i = 0; i < 3; i++) {
			const struct channel_state_result *r = result(i, id);

			cr_assert_eq(r->handle_count, 1);
			cr_assert_str_eq(r->file, FILE_NAME);
			cr_assert_eq(r->handles[0].file, r->file);
			cr_assert_eq(first_byte(id, &r->handles[0]), 16 * id + i);
		}
	}
}

/* One result ends while that of the slot behind it has ended before. */
Test(channel_state_executor, leaves_an_earlier_result_alone_when_a_full_one_is_complete)
{
	complete(1);
	complete(2);
	channel_state_writer_remove(w.writers[SUM], 1);
	channel_world_start_all(&w, 3);
	add_input(SUM, 3, 0, 9);
	channel_world_finish_all(&w, 3);
	cr_assert_eq(result(SUM, 3)->handle_count, 1);
	const struct channel_state_result *r = result(SUM, 2);
	cr_assert_eq(r->handles[0].file, r->file);
}

/* CS-1, CS-2. */
Test(channel_state_executor, has_room_for_a_few_results_and_says_when_there_is_none)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	for (int64_t id = 1; id <= CHANNEL_STATE_RESULTS_MAX; id++)
		complete(id);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(channel_state_writer_start(w.writers[i], 9, &options), -EBUSY);
	for (uint32_t i = 0; i < 3; i++) {
		channel_state_writer_remove(w.writers[i], 1);
		cr_assert(!channel_state_writer_has(w.writers[i], 1));
	}
	complete(9);
}

Test(channel_state_executor, knows_nothing_of_a_checkpoint_that_has_not_begun)
{
	cr_assert(!channel_state_writer_has(w.writers[MAP], 0));
	cr_assert(!channel_state_writer_has(w.writers[MAP], 1));
	start(MAP, 1);
	add_input(MAP, 1, 0, 1);
	cr_assert(channel_state_writer_has(w.writers[MAP], 1));
	cr_assert(!channel_state_writer_has(w.writers[MAP], 2));
	cr_assert(!channel_state_writer_has(w.writers[SUM], 1));
	cr_assert_eq(channel_state_writer_bytes(w.writers[MAP], 1), 100);
	cr_assert_eq(channel_state_writer_bytes(w.writers[MAP], 0), 0);
	cr_assert_eq(channel_state_writer_bytes(w.writers[MAP], 2), 0);
	cr_assert_eq(channel_state_writer_bytes(w.writers[SUM], 1), 0);
}

/* ---- CS-12: what comes too late -------------------------------------------------------------- */

Test(channel_state_executor, refuses_a_checkpoint_older_than_the_one_under_way)
{
	start(MAP, 5);
	add_input(MAP, 5, 0, 1);
	start(SUM, 4);
	cr_assert_eq(outcome(SUM, 4), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SUBSUMED);
	cr_assert_str_eq(text, "a newer checkpoint has begun");
	add_input(SUM, 4, 0, 1);
	start(SUM, 5);
	start(SINK, 5);
	channel_world_finish_all(&w, 5);
	cr_assert_eq(result(MAP, 5)->handle_count, 1);
	cr_assert_eq(result(SUM, 5)->handle_count, 0);
}

Test(channel_state_executor, refuses_a_checkpoint_older_than_an_aborted_one)
{
	channel_state_writer_abort(w.writers[MAP], 7, DECLINE_OTHER, "seven", true);
	start(SUM, 6);
	cr_assert_eq(outcome(SUM, 6), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SUBSUMED);
	/* An abort of an older one changes nothing. */
	channel_state_writer_abort(w.writers[SUM], 5, DECLINE_ON_CANCELLATION_BARRIER, "five",
			true);
	start(MAP, 6);
	cr_assert_eq(outcome(MAP, 6), -ECANCELED);
	start(MAP, 7);
	cr_assert_eq(outcome(MAP, 7), -ECANCELED);
	cr_assert_eq(reason, DECLINE_OTHER);
	cr_assert_str_eq(text, "seven");
}

Test(channel_state_executor, keeps_the_cause_of_the_first_who_aborted)
{
	channel_state_writer_abort(w.writers[SUM], 5, DECLINE_OTHER, "first", true);
	channel_state_writer_abort(w.writers[MAP], 5, DECLINE_ON_CANCELLATION_BARRIER, "second",
			true);
	start(SUM, 5);
	start(MAP, 5);
	cr_assert_eq(outcome(SUM, 5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_OTHER);
	cr_assert_str_eq(text, "first");
	cr_assert_eq(outcome(MAP, 5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SHARED_STREAM);
	cr_assert_str_eq(text, "sum subtask 1 shares its channel-state file and gave up: first");
}

Test(channel_state_executor, keeps_the_cause_for_the_one_who_aborted_though_a_newer_has_begun)
{
	channel_state_writer_abort(w.writers[MAP], 5, DECLINE_OTHER, "five", true);
	start(SUM, 6);
	start(MAP, 5);
	cr_assert_eq(outcome(MAP, 5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_OTHER);
}

/* CS-15. */
Test(channel_state_executor, gives_all_up_at_once_for_the_abort_of_a_newer_checkpoint)
{
	start(MAP, 5);
	start(SUM, 5);
	add_input(MAP, 5, 0, 1);
	add_input(SUM, 5, 0, 2);
	channel_state_writer_abort(w.writers[SUM], 6, DECLINE_OTHER, "six", false);
	for (uint32_t i = MAP; i <= SUM; i++) {
		cr_assert(channel_state_writer_is_done(w.writers[i], 5));
		cr_assert_eq(outcome(i, 5), -ECANCELED);
		cr_assert_eq(reason, DECLINE_SUBSUMED);
	}
	cr_assert_eq(channel_world_used(&w), 0);
	complete(7);
	cr_assert_eq(mem_store_file_count(w.inner), 1);
}

/* CS-13. */
Test(channel_state_executor, gives_the_older_one_of_each_subtask_up)
{
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 3; i++)
		add_input(i, 5, 0, 1);
	start(SINK, 6);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert(channel_state_writer_is_done(w.writers[i], 5));
		cr_assert_eq(outcome(i, 5), -ECANCELED);
		cr_assert_eq(reason, DECLINE_SUBSUMED);
	}
	cr_assert_eq(channel_world_used(&w), 0);
}

Test(channel_state_executor, does_not_begin_a_checkpoint_again_that_is_over)
{
	complete(4);
	w.disk.op_count = 0;
	w.disk.fail_ops = 1 << STORE_WRITE;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EIO;
	channel_world_start_all(&w, 5);
	add_input(MAP, 5, 0, 1);
	cr_assert_eq(outcome(MAP, 5), -EIO);
	channel_world_step(&w, 10);
	complete(6);
	channel_state_writer_remove(w.writers[SUM], 6);
	start(SUM, 6);
	cr_assert_eq(outcome(SUM, 6), -EALREADY);
	cr_assert_eq(reason, DECLINE_ASYNC_EXCEPTION);
	cr_assert_str_eq(text, "its channel-state file is closed");
	add_input(SUM, 6, 0, 1);
	cr_assert_eq(channel_world_used(&w), 0);
}

/* CS-18: whatever comes, from whom it comes. */
Test(channel_state_executor, drops_all_that_comes_for_a_checkpoint_that_was_aborted)
{
	struct buf *b = channel_world_buf(&w, 100, 1);
	static const uint8_t partial[] = {1, 2, 3};
	struct channel_info at = {0, 0};

	channel_world_start_all(&w, 5);
	channel_state_writer_abort(w.writers[SUM], 5, DECLINE_OTHER, "over", true);
	for (uint32_t i = MAP; i <= SUM; i++) {
		channel_state_writer_add_input_data(w.writers[i], 5, at, &b, 1, 0);
		channel_state_writer_add_input_partial(w.writers[i], 5, at, partial, 3);
	}
	channel_state_writer_add_output_data(w.writers[MAP], 5, at, &b, 1);
	finish(SUM, 5);
	finish(MAP, 5);
	buf_release(b);
	cr_assert_eq(channel_world_used(&w), 0);
	cr_assert_eq(channel_state_writer_bytes(w.writers[MAP], 5), 0);
	cr_assert_eq(outcome(MAP, 5), -ECANCELED);
	channel_world_step(&w, 10);
	cr_assert_eq(mem_store_file_count(w.inner), 0);
}

/* ---- failures of the disk -------------------------------------------------------------------- */

/* CS-20. */
Test(channel_state_executor, fails_all_that_share_a_file_with_what_the_disk_said)
{
	w.disk.fail_ops = 1 << STORE_OPEN;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -ENOSPC;
	start(MAP, 5);
	start(SUM, 5);
	add_input(MAP, 5, 0, 1);
	add_input(SUM, 5, 0, 1);
	channel_world_step(&w, 3);
	start(SINK, 5); /* too late: it fails like the others */
	add_input(SINK, 5, 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert(channel_state_writer_is_done(w.writers[i], 5));
		cr_assert_eq(outcome(i, 5), -ENOSPC);
		cr_assert_eq(reason, DECLINE_ASYNC_EXCEPTION);
		cr_assert_str_eq(text, "open /c/chk-5/" FILE_NAME ": No space left on device");
	}
	cr_assert_eq(channel_world_used(&w), 0);
	complete(6);
}

Test(channel_state_executor, blames_no_later_checkpoint_for_a_file_that_cannot_be_closed)
{
	w.disk.fail_ops = 1 << STORE_CLOSE;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EIO;
	start(MAP, 5);
	add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 3);
	channel_state_writer_abort(w.writers[MAP], 5, DECLINE_OTHER, "over", true);
	channel_world_start_all(&w, 6);
	add_input(MAP, 6, 0, 1);
	channel_world_step(&w, 3);
	channel_world_finish_all(&w, 6);
	cr_assert_eq(w.disk.failed_count, 1);
	cr_assert_eq(result(MAP, 6)->handle_count, 1);
	channel_state_writer_remove(w.writers[MAP], 6);
	start(MAP, 6);
	cr_assert_eq(outcome(MAP, 6), -EALREADY);
}

/* Who ends afterwards changes nothing about it. */
Test(channel_state_executor, fails_a_late_one_with_what_the_disk_said)
{
	w.disk.fail_ops = 1 << STORE_OPEN;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -ENOSPC;
	start(MAP, 5);
	add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 3);
	channel_state_writer_close(w.writers[MAP]);
	start(SUM, 5);
	cr_assert_eq(outcome(SUM, 5), -ENOSPC);
}

Test(channel_state_executor, copies_at_once_while_the_disk_owes_an_answer)
{
	channel_world_start_all(&w, 5);
	add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 3);
	w.disk.is_hung = true;
	add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 101);
	cr_assert(!channel_state_writer_is_done(w.writers[MAP], 5), "it is with the disk");
	start(SUM, 6);
	cr_assert_eq(outcome(MAP, 5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SUBSUMED);
	cr_assert(!channel_state_writer_is_done(w.writers[SUM], 6));
	start(MAP, 6);
	start(SINK, 6);
	add_input(MAP, 6, 0, 1);
	add_input(SUM, 6, 0, 1);
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 1, "what the disk has");
	fault_store_settle(&w.disk);
	w.disk.is_hung = false;
	channel_world_finish_all(&w, 6);
	cr_assert_eq(outcome(MAP, 6), 0);
	cr_assert_eq(outcome(SUM, 6), 0);
	cr_assert_eq(channel_world_used(&w), 0);
	complete(7);
}

/* An aborted one leaves nothing that the disk would owe an answer for. */
Test(channel_state_executor, takes_a_pause_after_an_abort_for_no_hanging_disk)
{
	start(MAP, 4);
	add_input(MAP, 4, 0, 1);
	channel_world_step(&w, 3);
	channel_state_writer_abort(w.writers[MAP], 4, DECLINE_OTHER, "over", true);
	channel_world_step(&w, 10);
	w.now_ns += UINT64_C(60000000000);
	start(MAP, 5);
	for (uint32_t i = 0; i < 30; i++)
		add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 30, "none is copied");
}

/* ---- CS-6, CS-16: subtasks that end ---------------------------------------------------------- */

Test(channel_state_executor, does_not_wait_for_a_subtask_that_ended_before)
{
	channel_state_writer_close(w.writers[SUM]);
	start(MAP, 5);
	start(SINK, 5);
	add_input(MAP, 5, 0, 1);
	finish(MAP, 5);
	finish(SINK, 5);
	cr_assert_eq(result(MAP, 5)->handle_count, 1);
}

Test(channel_state_executor, goes_on_with_the_data_of_a_subtask_that_had_finished)
{
	start(MAP, 5);
	start(SUM, 5);
	add_input(SUM, 5, 0, 1);
	finish(SUM, 5);
	channel_state_writer_close(w.writers[SUM]);
	channel_state_writer_close(w.writers[SINK]);
	cr_assert(!channel_state_writer_is_done(w.writers[MAP], 5));
	add_input(MAP, 5, 0, 2);
	finish(MAP, 5);
	const struct channel_state_result *r = result(MAP, 5);
	cr_assert_eq(first_byte(5, &r->handles[0]), 2);
}

static void end_amid(bool has_input, bool has_output)
{
	channel_world_start_all(&w, 5);
	if (has_input)
		channel_state_writer_finish_input(w.writers[SUM], 5);
	if (has_output)
		channel_state_writer_finish_output(w.writers[SUM], 5);
	channel_state_writer_close(w.writers[SUM]);
	cr_assert(channel_state_writer_is_done(w.writers[MAP], 5));
	cr_assert_eq(outcome(MAP, 5), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SHARED_STREAM);
	cr_assert_str_eq(text, "sum subtask 1 shares its channel-state file and gave up: the task "
			"has ended");
}

Test(channel_state_executor, fails_a_file_whose_subtask_ends_before_it_has_finished)
{
	for (uint32_t known = 0; known < 3; known++, begin()) {
		end_amid(known == 1, known == 2);
		end();
	}
}

Test(channel_state_executor, forgets_all_results_of_a_subtask_that_has_ended)
{
	for (int64_t id = 1; id <= CHANNEL_STATE_RESULTS_MAX; id++)
		complete(id);
	channel_state_writer_close(w.writers[SUM]);
	channel_state_writer_close(w.writers[SUM]);
	for (int64_t id = 1; id <= CHANNEL_STATE_RESULTS_MAX; id++) {
		cr_assert(!channel_state_writer_has(w.writers[SUM], id));
		cr_assert(channel_state_writer_has(w.writers[MAP], id));
	}
}

Test(channel_state_executor, is_idle_when_its_own_buffers_are_back)
{
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 2; i++) { /* then the file has room */
		add_input(MAP, 5, 0, 1);
		channel_world_step(&w, 6);
	}
	finish(SINK, 5);
	w.disk.is_hung = true;
	add_input(SUM, 5, 0, 1);
	channel_world_step(&w, 3);
	finish(SUM, 5);
	channel_state_writer_close(w.writers[SUM]);
	channel_state_writer_close(w.writers[SINK]);
	cr_assert(!channel_state_writer_is_idle(w.writers[SUM]));
	cr_assert(channel_state_writer_is_idle(w.writers[SINK]));
	fault_store_settle(&w.disk);
	channel_world_step(&w, 3);
	cr_assert(channel_state_writer_is_idle(w.writers[SUM]), "the file is the others' business");
	cr_assert(channel_state_writer_is_writing(w.writers[SUM]));
}

Test(channel_state_executor, is_idle_as_the_last_one_when_the_file_is_gone)
{
	start(MAP, 5);
	add_input(MAP, 5, 0, 1);
	channel_world_step(&w, 6);
	w.disk.is_hung = true;
	for (uint32_t i = 3; i-- > 0;)
		channel_state_writer_close(w.writers[i]);
	channel_world_step(&w, 3);
	cr_assert_eq(channel_world_used(&w), 0);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(!channel_state_writer_is_idle(w.writers[i]));
	fault_store_settle(&w.disk);
	channel_world_step(&w, 10);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(channel_state_writer_is_idle(w.writers[i]));
	cr_assert_eq(mem_store_file_count(w.inner), 0);
}

Test(channel_state_executor, is_idle_while_others_go_on_whoever_they_are)
{
	for (uint32_t open = 0; open < 3; open++) {
		channel_world_free(&w);
		begin();
		channel_world_start_all(&w, 5);
		add_input(open, 5, 0, 1);
		channel_world_finish_all(&w, 5);
		w.disk.is_hung = true;
		channel_world_step(&w, 3);
		for (uint32_t i = 0; i < 3; i++)
			if (i != open)
				channel_state_writer_close(w.writers[i]);
		for (uint32_t i = 0; i < 3; i++)
			if (i != open)
				cr_assert(channel_state_writer_is_idle(w.writers[i]));
		fault_store_settle(&w.disk);
	}
}
