/* channel_state_writer: what was in flight is in the file, whatever the disk does, and every buffer
 * comes back. */

#include "dataplane/checkpoint/channel_state_writer.h"

#include "dataplane/base/crc.h"
#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define FILE_5 "/c/chk-5/channels-map-3-abcd0000"

static struct channel_world w;

static void begin(void)
{
	channel_world_init(&w, mem_store_create(), "/c");
}

static void end(void)
{
	channel_world_free(&w);
}

TestSuite(channel_state_writer, .init = begin, .fini = end, .timeout = 20);

/* Hands one buffer in and lets it go, as a channel does that has processed it. */
static void add_input(uint32_t writer, int64_t id, uint32_t channel, uint32_t size, uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, size, seed);
	struct channel_info at = {0, channel};

	channel_state_writer_add_input_data(w.writers[writer], id, at, &b, 1, 0);
	buf_release(b);
}

static void add_output(int64_t id, uint32_t channel, uint32_t size, uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, size, seed);
	struct channel_info at = {0, channel};

	channel_state_writer_add_output_data(w.writers[0], id, at, &b, 1);
	buf_release(b);
}

static int outcome(uint32_t writer, int64_t id, enum decline_reason *reason, const char **text)
{
	channel_world_finish(&w, writer, id);
	return channel_state_writer_outcome(w.writers[writer], id, reason, text);
}

static const struct channel_state_result *result(uint32_t writer, int64_t id)
{
	enum decline_reason reason;
	const char *text;

	cr_assert_eq(outcome(writer, id, &reason, &text), 0, "%s", text);
	return channel_state_writer_result(w.writers[writer], id);
}

/* The chunk `index` of a handle, its sums checked, as bytes of the file. */
static const uint8_t *chunk_of(const struct channel_state_handle *h, uint32_t index,
		struct channel_state_chunk *c)
{
	char text[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	size_t size;
	uint32_t crc;
	const uint8_t *file = mem_store_file(w.inner, FILE_5, &size);

	cr_assert_not_null(file);
	cr_assert_eq(channel_state_check_section(file + h->offset, size - h->offset, &crc, text), 0,
			"%s", text);
	cr_assert_eq(crc, h->crc);
	cr_assert_eq(channel_state_decode_chunk(c,
			file + h->offset + channel_state_section_bytes(index), text), 0);
	cr_assert_leq(c->offset + c->size, size);
	cr_assert_eq(crc32c(0, file + c->offset, c->size), c->crc);
	return file + c->offset;
}

Test(channel_state_writer, keeps_what_was_handed_in_for_each_channel_in_order)
{
	struct channel_state_chunk c;

	channel_world_start_all(&w, 5);
	add_input(0, 5, 1, 100, 1);
	add_input(0, 5, 1, 8192, 2);
	add_output(5, 0, 5000, 3);
	add_input(1, 5, 0, 1, 4);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_str_eq(r->file, "channels-map-3-abcd0000");
	cr_assert_eq(r->handle_count, 2);
	cr_assert_eq(r->bytes, 100 + 8192 + 5000);
	cr_assert_eq(r->buf_count, 3);
	cr_assert_eq(r->handles[0].side, CHANNEL_STATE_INPUT);
	cr_assert_eq(r->handles[0].channel, 1);
	cr_assert_eq(r->handles[0].buf_count, 2);
	cr_assert_eq(chunk_of(&r->handles[0], 0, &c)[99], 100);
	cr_assert_eq(c.watermark, 1);
	cr_assert_eq(c.first_record, 0);
	cr_assert_eq(chunk_of(&r->handles[0], 1, &c)[0], 2);
	cr_assert_eq(c.size, 8192);
	cr_assert_eq(r->handles[1].side, CHANNEL_STATE_OUTPUT);
	cr_assert_eq(chunk_of(&r->handles[1], 0, &c)[1], 4);
	r = result(1, 5);
	cr_assert_eq(r->handle_count, 1);
	cr_assert_eq(chunk_of(&r->handles[0], 0, &c)[0], 4);
	cr_assert_eq(channel_world_used(&w), 0);
}

Test(channel_state_writer, keeps_all_buffers_that_are_handed_in_at_once)
{
	struct channel_state_chunk c;
	struct buf *bufs[4];

	for (uint8_t i = 0; i < 4; i++)
		bufs[i] = channel_world_buf(&w, 100, (uint8_t)(10 * i));
	channel_world_start_all(&w, 5);
	channel_state_writer_add_input_data(w.writers[0], 5, (struct channel_info){0, 0}, bufs, 3,
			1);
	channel_state_writer_add_output_data(w.writers[0], 5, (struct channel_info){0, 0}, bufs, 4);
	for (uint32_t i = 0; i < 4; i++)
		buf_release(bufs[i]);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_eq(r->handles[0].buf_count, 3);
	cr_assert_eq(chunk_of(&r->handles[0], 0, &c)[0], 1, "the first byte was processed");
	for (uint8_t i = 1; i < 3; i++)
		cr_assert_eq(chunk_of(&r->handles[0], i, &c)[0], 10 * i);
	cr_assert_eq(r->handles[1].buf_count, 4);
	for (uint8_t i = 0; i < 4; i++)
		cr_assert_eq(chunk_of(&r->handles[1], i, &c)[0], 10 * i);
}

Test(channel_state_writer, keeps_only_what_was_not_processed_of_the_first_buffer)
{
	struct buf *b = channel_world_buf(&w, 6000, 0);
	struct channel_state_chunk c;
	static const uint8_t partial[] = {9, 8, 7};

	channel_world_start_all(&w, 5);
	channel_state_writer_add_input_partial(w.writers[0], 5, (struct channel_info){0, 0},
			partial, 3);
	channel_state_writer_add_input_data(w.writers[0], 5, (struct channel_info){0, 0}, &b, 1,
			5000);
	buf_release(b);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_eq(r->handle_count, 1);
	cr_assert_eq(r->handles[0].bytes, 1003);
	cr_assert_eq(memcmp(chunk_of(&r->handles[0], 0, &c), partial, 3), 0);
	cr_assert_eq(c.first_record, 0);
	cr_assert_eq(chunk_of(&r->handles[0], 1, &c)[0], (uint8_t)5000);
	cr_assert_eq(c.size, 1000);
	cr_assert_eq(c.first_record, 0);
}

/* CS-19. */
Test(channel_state_writer, makes_no_file_when_nothing_was_in_flight)
{
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 0, 1);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_null(r->file);
	cr_assert_eq(r->handle_count, 0);
	cr_assert_eq(mem_store_file_count(w.inner), 0);
}

/* CS-19: input and output of every subtask of the file. */
Test(channel_state_writer, waits_for_all_that_share_the_file)
{
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 10, 1);
	channel_state_writer_finish_input(w.writers[0], 5);
	channel_state_writer_finish_output(w.writers[0], 5);
	channel_state_writer_finish_output(w.writers[1], 5);
	channel_world_step(&w, 50);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	channel_state_writer_finish_input(w.writers[1], 5);
	cr_assert_eq(result(0, 5)->handle_count, 1);
	cr_assert_eq(result(1, 5)->handle_count, 0);
}

/* CS-16. */
Test(channel_state_writer, does_not_wait_for_a_subtask_that_has_ended)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	cr_assert_eq(channel_state_writer_start(w.writers[0], 5, &options), 0);
	add_input(0, 5, 0, 10, 1);
	channel_state_writer_finish_input(w.writers[0], 5);
	channel_state_writer_finish_output(w.writers[0], 5);
	channel_world_step(&w, 5);
	channel_state_writer_close(w.writers[1]);
	cr_assert_eq(result(0, 5)->handle_count, 1);
}

/* CS-2. */
Test(channel_state_writer, begins_a_checkpoint_once)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	channel_world_start_all(&w, 5);
	cr_assert_eq(channel_state_writer_start(w.writers[0], 5, &options), -EEXIST);
}

/* CS-15. */
Test(channel_state_writer, fails_those_that_share_the_file_when_one_gives_up)
{
	enum decline_reason reason;
	const char *text;

	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 10, 1);
	add_input(1, 5, 0, 10, 1);
	channel_state_writer_abort(w.writers[1], 5, DECLINE_ON_CANCELLATION_BARRIER, "a marker",
			false);
	cr_assert_eq(outcome(1, 5, &reason, &text), -ECANCELED);
	cr_assert_eq(reason, DECLINE_ON_CANCELLATION_BARRIER);
	cr_assert_eq(outcome(0, 5, &reason, &text), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SHARED_STREAM);
	cr_assert_not_null(strstr(text, "sink subtask 0"), "%s", text);
	channel_world_step(&w, 20);
	cr_assert_eq(channel_world_used(&w), 0);
	cr_assert_eq(mem_store_file_count(w.inner), 0);
}

/* CS-4, CS-12. */
Test(channel_state_writer, fails_a_checkpoint_that_was_aborted_before_it_began)
{
	enum decline_reason reason;
	const char *text;

	channel_state_writer_abort(w.writers[0], 5, DECLINE_OTHER, "early", true);
	channel_world_start_all(&w, 5);
	cr_assert_eq(outcome(0, 5, &reason, &text), -ECANCELED);
	cr_assert_eq(reason, DECLINE_OTHER);
	cr_assert_eq(outcome(1, 5, &reason, &text), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SHARED_STREAM);
}

/* CS-13. */
Test(channel_state_writer, gives_an_older_checkpoint_up_when_a_newer_one_begins)
{
	enum decline_reason reason;
	const char *text;

	channel_world_start_all(&w, 4);
	add_input(0, 4, 0, 10, 1);
	channel_world_step(&w, 1);
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 10, 2);
	channel_world_finish_all(&w, 5);
	cr_assert_eq(outcome(0, 4, &reason, &text), -ECANCELED);
	cr_assert_eq(reason, DECLINE_SUBSUMED);
	cr_assert_eq(result(0, 5)->handle_count, 1);
	channel_world_step(&w, 20);
	cr_assert_eq(mem_store_file_count(w.inner), 1);
}

/* CS-18. */
Test(channel_state_writer, drops_what_comes_for_a_checkpoint_that_has_failed)
{
	channel_world_start_all(&w, 5);
	channel_state_writer_abort(w.writers[0], 5, DECLINE_OTHER, "over", false);
	add_input(0, 5, 0, 10, 1);
	cr_assert_eq(channel_world_used(&w), 0);
}

Test(channel_state_writer, holds_a_buffer_until_it_is_written)
{
	w.disk.is_hung = true;
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 100, 1);
	channel_world_step(&w, 10);
	cr_assert_eq(channel_world_used(&w), 1);
	fault_store_settle(&w.disk);
	channel_world_step(&w, 10);
	cr_assert_eq(channel_world_used(&w), 0);
	channel_world_finish_all(&w, 5);
}

/* Each request fails once; then none does. */
Test(channel_state_writer, gives_all_buffers_back_whichever_request_fails)
{
	bool has_failed = true;
	int64_t id = 5;

	w.disk.fail_status = -ENOSPC;
	for (uint64_t nth = 1; has_failed; nth++, id++) {
		enum decline_reason reason;
		const char *text;

		w.disk.op_count = 0;
		w.disk.failed_count = 0;
		w.disk.fail_nth = nth;
		w.disk.torn_bytes = 512;
		channel_world_start_all(&w, id);
		for (uint32_t i = 0; i < 6; i++)
			add_input(0, id, i % 2, 5000, (uint8_t)i);
		channel_world_finish_all(&w, id);
		int status = outcome(0, id, &reason, &text);
		/* A file that cannot be removed or closed any more has failed before. */
		has_failed = w.disk.failed_count > 0;
		cr_assert_eq(status, has_failed ? -ENOSPC : 0, "%s", text);
		if (has_failed) {
			cr_assert_eq(reason, DECLINE_ASYNC_EXCEPTION);
			cr_assert_not_null(strstr(text, "No space left on device"), "%s", text);
			cr_assert_not_null(strstr(text, "channels-map-3-abcd"), "%s", text);
		}
		for (uint32_t i = 0; i < 2; i++) {
			channel_world_finish(&w, i, id);
			channel_state_writer_remove(w.writers[i], id);
		}
		channel_world_step(&w, 20);
		cr_assert_eq(channel_world_used(&w), 0);
		cr_assert_eq(mem_store_file_count(w.inner), has_failed ? 0 : 1);
	}
	cr_assert_gt(id, 10);
}

Test(channel_state_writer, leaves_a_hanging_disk_a_share_of_each_channel_and_copies_the_rest)
{
	struct channel_state_chunk c;

	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 2; i++) { /* then the file is open and has room */
		add_input(0, 5, 0, 4096, 100);
		channel_world_step(&w, 5);
	}
	cr_assert_eq(channel_world_used(&w), 0);
	w.disk.is_hung = true;
	for (uint32_t i = 0; i < 8; i++)
		add_input(0, 5, 0, 4096, (uint8_t)i);
	for (uint32_t i = 0; i < 3; i++)
		add_output(5, 1, 4096, 50);
	channel_world_step(&w, 50);
	cr_assert_eq(w.disk.held_count, 4 + 2, "with the disk");
	cr_assert_eq(channel_world_used(&w), 11, "nothing is copied while it is waited for");
	channel_world_step(&w, 60);
	cr_assert_eq(channel_world_used(&w), 4 + 2);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	fault_store_settle(&w.disk);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_eq(r->buf_count, 13);
	for (uint32_t i = 0; i < 8; i++)
		cr_assert_eq(chunk_of(&r->handles[0], i + 2, &c)[0], i);
}

Test(channel_state_writer, fails_the_checkpoint_when_a_hanging_disk_leaves_no_room_to_copy)
{
	enum decline_reason reason;
	const char *text;

	w.disk.is_hung = true;
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 20; i++)
		add_input(0, 5, 0, 4096, (uint8_t)i);
	channel_world_step(&w, 120);
	cr_assert_eq(outcome(0, 5, &reason, &text), -ETIMEDOUT);
	cr_assert_eq(channel_world_used(&w), 0);
	/* The next one is taken, but leaves nothing with the disk: it copies at once. */
	channel_world_start_all(&w, 6);
	for (uint32_t i = 0; i < 6; i++)
		add_input(0, 6, 0, 4096, (uint8_t)i);
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 0);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 6));
	/* And when the disk answers again it completes. */
	fault_store_settle(&w.disk);
	w.disk.is_hung = false;
	channel_world_finish_all(&w, 6);
	cr_assert_eq(result(0, 6)->buf_count, 6);
	cr_assert_eq(mem_store_file_count(w.inner), 1);
}

/* One more file than may be dying. */
Test(channel_state_writer, refuses_a_checkpoint_when_too_many_before_it_hang)
{
	enum decline_reason reason;
	const char *text;

	w.disk.is_hung = true;
	for (int64_t id = 5; id < 8; id++) {
		channel_world_start_all(&w, id);
		add_input(0, id, 0, 4096, 1);
		channel_world_step(&w, 120);
		cr_assert(!channel_state_writer_is_done(w.writers[0], id));
		channel_state_writer_abort(w.writers[0], id, DECLINE_OTHER, "over", true);
		channel_state_writer_remove(w.writers[1], id);
	}
	channel_world_start_all(&w, 8);
	add_input(0, 8, 0, 4096, 1);
	cr_assert_eq(outcome(0, 8, &reason, &text), -EBUSY);
	cr_assert_eq(reason, DECLINE_TASK_NOT_READY);
	cr_assert_str_eq(text, "channel state cannot be written: the disk has not answered writes "
			"of earlier checkpoints");
	cr_assert_eq(channel_world_used(&w), 0);
	fault_store_settle(&w.disk);
	w.disk.is_hung = false;
	channel_world_step(&w, 20);
	for (uint32_t i = 0; i < 2; i++)
		channel_state_writer_remove(w.writers[i], 8);
	channel_world_start_all(&w, 9);
	add_input(0, 9, 0, 4096, 1);
	channel_world_finish_all(&w, 9);
	cr_assert_eq(result(0, 9)->handle_count, 1);
	cr_assert_eq(mem_store_file_count(w.inner), 1);
}

Test(channel_state_writer, goes_on_later_when_the_queue_of_the_store_is_full)
{
	w.disk.is_full = true;
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 4096, 1);
	channel_world_finish_all(&w, 5);
	channel_world_step(&w, 10);
	w.disk.is_full = false;
	cr_assert_eq(result(0, 5)->handle_count, 1);
}

Test(channel_state_writer, goes_on_where_the_file_system_cannot_allocate_ahead)
{
	w.disk.fail_ops = 1 << STORE_ALLOCATE;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EOPNOTSUPP;
	channel_world_start_all(&w, 5);
	add_input(0, 5, 0, 4096, 1);
	channel_world_finish_all(&w, 5);
	cr_assert_eq(result(0, 5)->handle_count, 1);
	cr_assert_eq(w.disk.failed_count, 1);
}

Test(channel_state_writer, takes_a_long_pause_between_checkpoints_for_no_hanging_disk)
{
	channel_world_start_all(&w, 4);
	add_input(0, 4, 0, 4096, 1);
	channel_world_finish_all(&w, 4);
	cr_assert_eq(result(0, 4)->handle_count, 1);
	w.now_ns += UINT64_C(60000000000); /* nobody steps meanwhile */
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < 30; i++)
		add_input(0, 5, 0, 8192, 1);
	channel_world_step(&w, 1);
	cr_assert_eq(channel_world_used(&w), 30, "none is copied");
	channel_world_finish_all(&w, 5);
	cr_assert_eq(result(0, 5)->buf_count, 30);
}

/* What is left of a buffer begins where the next record does. */
Test(channel_state_writer, keeps_the_rest_of_a_buffer_from_its_first_byte_on)
{
	struct channel_state_chunk c;
	struct buf *b = channel_world_buf(&w, 100, 1);

	channel_world_start_all(&w, 5);
	b->first_record = 7;
	channel_state_writer_add_input_data(w.writers[0], 5, (struct channel_info){0, 0}, &b, 1, 1);
	channel_state_writer_add_input_data(w.writers[0], 5, (struct channel_info){0, 1}, &b, 1, 0);
	buf_release(b);
	channel_world_finish_all(&w, 5);
	const struct channel_state_result *r = result(0, 5);
	cr_assert_eq(chunk_of(&r->handles[0], 0, &c)[0], 2);
	cr_assert_eq(c.size, 99);
	cr_assert_eq(c.first_record, 0);
	cr_assert_eq(chunk_of(&r->handles[1], 0, &c)[0], 1);
	cr_assert_eq(c.first_record, 7);
}

/* CS-5, for the first checkpoint as for any other. */
Test(channel_state_writer, forgets_a_result_that_was_fetched)
{
	for (int64_t id = 1; id <= 3 * CHANNEL_STATE_RESULTS_MAX; id++) {
		channel_world_start_all(&w, id);
		add_input(0, id, 0, 10, 1);
		channel_world_finish_all(&w, id);
		(void)result(0, id);
		for (uint32_t i = 0; i < 2; i++) {
			channel_world_finish(&w, i, id);
			channel_state_writer_remove(w.writers[i], id);
			cr_assert_eq(channel_state_writer_bytes(w.writers[i], 0), 0);
		}
	}
}
