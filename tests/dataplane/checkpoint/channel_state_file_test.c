/* channel_state_file: what the disk is asked for, in which order and how much of it at a time; and
 * every byte of the file means something. */

#include "dataplane/base/crc.h"
#include "tests/sim/spy_store.h"
#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_5 "/c/chk-5/channels-map-3-abcd0000"

enum { BLOCK = STORE_ALIGN_BYTES };

static const struct channel_state_subtask SUBTASKS[1] = {{"map", 3, 1, 1, {3}, {1}}};

static struct spy_store spy;
static struct channel_world w;
static enum decline_reason reason;
static const char *text;

/* Pool, disk and config of a world that asks the spy. */
static void prepare(const char *directory, uint32_t pages)
{
	spy_store_init(&spy, mem_store_create());
	channel_world_prepare(&w, &spy.store, directory, (uint64_t)pages * BLOCK);
}

static void begin(void)
{
	prepare("/c", 16);
	channel_world_add(&w, SUBTASKS, 1);
}

/* Past the page cache everything is in blocks. */
static void check_requests(void)
{
	uint32_t direct = w.config.has_direct ? STORE_DIRECT : 0;

	for (uint32_t i = 0; i < spy.count && i < SPY_STORE_LOG_MAX; i++) {
		const struct store_request *r = &spy.log[i];

		if (r->op == STORE_OPEN)
			cr_assert_eq(r->flags, STORE_CREATE | direct);
		if (r->op != STORE_WRITE && r->op != STORE_ALLOCATE)
			continue;
		cr_assert(r->size > 0 && r->size % BLOCK == 0 && r->offset % BLOCK == 0);
		if (r->op == STORE_WRITE)
			cr_assert(r->flags == direct && (uintptr_t)r->bytes % BUF_ALIGN_BYTES == 0);
	}
}

static void end(void)
{
	channel_world_free(&w);
}

TestSuite(channel_state_file, .init = begin, .fini = end, .timeout = 20);

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

static void add_output(int64_t id, uint32_t size, uint8_t seed)
{
	struct buf *b = channel_world_buf(&w, size, seed);

	channel_state_writer_add_output_data(w.writers[0], id, (struct channel_info){0, 0}, &b, 1);
	buf_release(b);
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

static void steps(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		(void)step();
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
	check_requests();
	return channel_state_writer_result(w.writers[0], id);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const uint8_t *file_5(size_t *size)
{
	const uint8_t *file = mem_store_file(spy.inner, FILE_5, size);

	cr_assert_not_null(file);
	return file;
}

/* A section whose chunks lie in whole blocks of their own; returns its length. */
static uint64_t check_section(const uint8_t *file, uint64_t at, uint64_t room, uint8_t *is_taken)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_section s;
	struct channel_state_chunk c;
	uint64_t bytes = 0;
	uint32_t crc;

	cr_assert_eq(channel_state_check_section(file + at, room, &crc, why), 0, "%s", why);
	cr_assert_eq(channel_state_decode_section(&s, file + at, room, why), 0);
	cr_assert_eq(s.checkpoint_id, 5);
	cr_assert_str_eq(s.vertex_uid, "map");
	cr_assert_eq(s.subtask_index, 3);
	for (uint32_t i = 0; i < s.chunk_count; i++) {
		cr_assert_eq(channel_state_decode_chunk(&c, file + at +
				channel_state_section_bytes(i), why), 0, "%s", why);
		cr_assert_eq(crc32c(0, file + c.offset, c.size), c.crc);
		uint64_t last = (c.offset + c.size - 1) / BLOCK;
		for (uint64_t k = c.offset / BLOCK; k <= last; k++)
			cr_assert_eq(is_taken[k]++, 0);
		for (uint64_t k = c.offset + c.size; k < (last + 1) * BLOCK; k++)
			cr_assert_eq(file[k], 0, "behind the bytes there is nothing");
		bytes += c.size;
	}
	cr_assert_eq(s.bytes, bytes);
	return channel_state_section_bytes(s.chunk_count);
}

/* The whole file: header, chunks without a hole, table, zeros. */
static void check_file(uint32_t sections)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	static uint8_t is_taken[16384];
	struct channel_state_header h;
	size_t size;
	const uint8_t *file = file_5(&size);

	memset(is_taken, 0, sizeof(is_taken));
	cr_assert_eq(channel_state_decode_header(&h, file, size, why), 0, "%s", why);
	for (uint32_t i = CHANNEL_STATE_HEADER_BYTES; i < BLOCK; i++)
		cr_assert_eq(file[i], 0);
	cr_assert_eq(h.checkpoint_id, 5);
	cr_assert_eq(h.section_count, sections);
	uint64_t at = h.table_offset, table_end = at + h.table_bytes;
	for (uint32_t i = 0; i < sections; i++)
		at += check_section(file, at, table_end - at, is_taken);
	cr_assert_eq(at, table_end);
	cr_assert_eq(size, (table_end + BLOCK - 1) / BLOCK * BLOCK);
	for (; at < size; at++)
		cr_assert_eq(file[at], 0);
	for (uint64_t k = 1; k < h.table_offset / BLOCK; k++)
		cr_assert_eq(is_taken[k], 1);
}

Test(channel_state_file, lays_buffers_of_any_size_side_by_side)
{
	static const uint32_t sizes[] = {1, 4095, 4096, 4097, 8191, 8192, 2, 5000};

	start(5);
	for (uint32_t i = 0; i < 24; i++) {
		if (i % 4 == 3)
			add_output(5, sizes[i % 8], (uint8_t)i);
		else
			add_input(5, i % 3, sizes[i % 8], (uint8_t)i);
		if (i % 5 == 4)
			(void)step();
	}
	for (uint32_t offset = 0; offset < 8000; offset += 907)
		add_buf(5, 1, channel_world_buf(&w, 8000, (uint8_t)offset), offset);
	(void)complete(5);
	check_file(4);
	cr_assert_leq(spy.most_inflight, 32);
}

/* One pool's buffers do not end where a block of the disk does: their bytes are copied. */
Test(channel_state_file, copies_a_buffer_whose_last_block_is_not_all_its_own)
{
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, 5000, 4), 0);
	start(5);
	for (uint32_t i = 0; i < 4; i++) {
		struct buf *b = buf_alloc(pool);

		memset(b->data, 'a' + (int)i, 5000);
		b->size_bytes = i < 2 ? 5000 : 4096;
		b->first_record = 0;
		add_buf(5, 0, b, 0);
	}
	steps(3);
	cr_assert_eq(buf_pool_used_count(pool), 2, "the others are written from where they lie");
	const struct channel_state_result *r = complete(5);
	cr_assert_eq(r->bytes, 2 * 5000 + 2 * 4096);
	cr_assert_eq(buf_pool_used_count(pool), 0);
	check_file(1);
	buf_pool_destroy(pool);
}

/* ---- partial records ------------------------------------------------------------------------- */

static uint8_t partial[80 * BLOCK];

static void add_partial(int64_t id, uint32_t channel, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		partial[i] = (uint8_t)(i * 7 + i / 251 + channel);
	channel_state_writer_add_input_partial(w.writers[0], id, (struct channel_info){0, channel},
			partial, size);
	memset(partial, 0xee, size);
}

/* What the file has of a channel is the partial record of that size, in as many pieces. */
static void check_partial(const struct channel_state_handle *h, uint32_t size, uint32_t pieces)
{
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	struct channel_state_chunk c;
	uint32_t at = 0;
	size_t file_size;
	const uint8_t *file = file_5(&file_size);

	cr_assert_eq(h->buf_count, pieces);
	cr_assert_eq(h->bytes, size);
	for (uint32_t i = 0; i < pieces; i++) {
		cr_assert_eq(channel_state_decode_chunk(&c, file + h->offset +
				channel_state_section_bytes(i), why), 0);
		cr_assert_eq(c.first_record, i == 0 ? 0 : BUF_NO_RECORD);
		cr_assert_eq(c.watermark, INT64_MIN);
		for (uint32_t k = 0; k < c.size; k++, at++)
			cr_assert_eq(file[c.offset + k], (uint8_t)(at * 7 + at / 251 + h->channel));
	}
	cr_assert_eq(at, size);
}

Test(channel_state_file, keeps_partial_records_in_all_the_room_there_is)
{
	for (int64_t id = 4; id <= 5; id++) { /* and all of it is there again */
		start(id);
		add_partial(id, 0, 7 * BLOCK);
		add_partial(id, 1, 8 * BLOCK - 1);
		add_partial(id, 2, 1);
		const struct channel_state_result *r = complete(id);
		cr_assert_eq(r->bytes, 15 * BLOCK);
		cr_assert_eq(r->buf_count, 3);
		if (id == 5) {
			check_partial(&r->handles[0], 7 * BLOCK, 1);
			check_partial(&r->handles[1], 8 * BLOCK - 1, 1);
			check_partial(&r->handles[2], 1, 1);
		}
	}
	check_file(3);
}

Test(channel_state_file, fails_when_a_partial_record_has_no_room)
{
	for (int64_t id = 4; id <= 6; id++) {
		start(id);
		add_partial(id, 0, 15 * BLOCK);
		cr_assert_eq(channel_state_writer_bytes(w.writers[0], id), 15 * BLOCK);
		cr_assert(!channel_state_writer_is_done(w.writers[0], id));
		add_partial(id, 1, BLOCK + 1);
		cr_assert_eq(outcome(id), -ENOBUFS);
		cr_assert_not_null(strstr(text, "keep a partial record for /c/chk-"), "%s", text);
		add_partial(id, 2, 1);
		(void)step();
		(void)step();
	}
}

/* What comes free first lies apart: fourteen pages, then two behind some that the disk has. */
Test(channel_state_file, cuts_a_partial_record_up_when_free_pages_lie_apart)
{
	channel_world_free(&w);
	prepare("/c", 20);
	channel_world_add(&w, SUBTASKS, 1);
	start(5);
	for (uint32_t i = 0; i < 18; i++)
		add_partial(5, 0, 1);
	add_partial(5, 1, 1);
	add_partial(5, 1, 1);
	for (uint32_t i = 0; i < 4; i++) /* open, allocate, sixteen in turn, the other four */
		(void)step();
	add_partial(5, 2, 15 * BLOCK + 5);
	cr_assert(!channel_state_writer_is_done(w.writers[0], 5));
	const struct channel_state_result *r = complete(5);
	check_partial(&r->handles[2], 15 * BLOCK + 5, 2);
	check_file(3);
}

/* ---- what the disk is asked for -------------------------------------------------------------- */

static void expect(uint32_t i, enum store_op op, uint64_t offset, uint64_t size)
{
	cr_assert_lt(i, spy.count);
	cr_assert_eq(spy.log[i].op, op, "request %u is %s", i, store_op_name(spy.log[i].op));
	cr_assert_eq(spy.log[i].offset, offset);
	cr_assert_eq(spy.log[i].size, size);
}

Test(channel_state_file, asks_for_room_then_writes_then_makes_it_durable)
{
	start(5);
	cr_assert_eq(step(), 0);
	add_input(5, 0, 100, 1);
	(void)complete(5);
	cr_assert_eq(spy.count, 7);
	expect(0, STORE_OPEN, 0, 0);
	expect(1, STORE_ALLOCATE, 0, 3 * BLOCK); /* header, buffer, table */
	expect(2, STORE_WRITE, BLOCK, BLOCK);
	expect(3, STORE_WRITE, 2 * BLOCK, BLOCK);
	expect(4, STORE_WRITE, 0, BLOCK); /* the header comes last */
	expect(5, STORE_SYNC, 0, 0);
	expect(6, STORE_CLOSE, 0, 0);
	cr_assert_eq(step(), 0, "there is nothing left to do");
	cr_assert_eq(spy.count, 7);
}

Test(channel_state_file, asks_for_no_room_where_writes_go_through_the_page_cache)
{
	channel_world_free(&w);
	prepare("/c", 16);
	w.config.has_direct = false;
	channel_world_add(&w, SUBTASKS, 1);
	start(5);
	add_input(5, 0, 100, 1);
	(void)complete(5);
	cr_assert_eq(spy.count, 6);
	expect(0, STORE_OPEN, 0, 0);
	expect(1, STORE_WRITE, BLOCK, BLOCK);
	check_file(1);
}

/* The `nth` ALLOCATE. */
static const struct store_request *allocation(uint32_t nth)
{
	for (uint32_t i = 0; i < spy.count; i++)
		if (spy.log[i].op == STORE_ALLOCATE && nth-- == 0)
			return &spy.log[i];
	return NULL;
}

Test(channel_state_file, grows_by_what_is_needed_but_in_no_small_steps)
{
	start(5);
	add_many(5, 0, 1);
	steps(8);
	cr_assert_eq(allocation(0)->size, 3 * BLOCK);
	add_many(5, 0, 1);
	cr_assert_gt(step(), 0);
	steps(7);
	cr_assert_eq(allocation(1)->offset, 3 * BLOCK);
	cr_assert_eq(allocation(1)->size, 64 * BLOCK);
	add_many(5, 1, 61); /* with header, table and the two before: one more than there is */
	steps(8);
	cr_assert_null(allocation(2), "63 buffers, a header, 3 blocks for the table: all fits");
	add_many(5, 1, 1);
	steps(8);
	cr_assert_eq(allocation(2)->offset, 67 * BLOCK);
	cr_assert_eq(allocation(2)->size, 64 * BLOCK);
	(void)complete(5);
	check_file(2);
}

Test(channel_state_file, asks_for_all_at_once_when_much_is_needed)
{
	start(5);
	add_many(5, 0, 1);
	steps(8);
	add_many(5, 0, 120);
	steps(30);
	cr_assert_eq(allocation(1)->size, (1 + 121 + 5 - 3) * BLOCK);
	(void)complete(5);
}

Test(channel_state_file, does_not_ask_again_a_file_system_that_cannot_allocate)
{
	w.disk.fail_ops = 1 << STORE_ALLOCATE;
	w.disk.fail_nth = 1;
	w.disk.fail_count = 100;
	w.disk.fail_status = -EOPNOTSUPP;
	start(5);
	add_many(5, 0, 3);
	for (uint32_t i = 0; i < 10; i++)
		(void)step();
	add_many(5, 0, 100);
	(void)complete(5);
	cr_assert_eq(w.disk.failed_count, 1);
	check_file(1);
}

Test(channel_state_file, fails_when_the_disk_has_no_room_for_what_is_needed)
{
	w.disk.fail_ops = 1 << STORE_ALLOCATE;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -ENOSPC;
	start(5);
	add_many(5, 0, 3);
	cr_assert_eq(outcome(5), -ENOSPC);
	cr_assert_str_eq(text, "allocate " FILE_5 ": No space left on device");
	steps(3);
	cr_assert_eq(mem_store_file_count(spy.inner), 0);
}

/* A table that is larger than one write; then one of more pieces than may be under way. */
Test(channel_state_file, writes_a_large_table_in_pieces, .timeout = 60)
{
	for (uint32_t round = 0; round < 2; round++) {
		uint32_t count = round == 0 ? 9000 : 300000;
		uint64_t bytes = CHANNEL_STATE_SECTION_BYTES + count * CHANNEL_STATE_CHUNK_BYTES;
		uint64_t blocks = (bytes + BLOCK - 1) / BLOCK;

		channel_world_free(&w);
		prepare("/c", 16);
		spy.keeps_nothing = round > 0;
		w.config.buf_count = count;
		w.config.issued_in_max = 100;
		channel_world_add(&w, SUBTASKS, 1);
		start(5);
		add_many(5, 0, count);
		channel_world_finish_all(&w, 5);
		uint32_t before = 0;
		while (!channel_state_writer_is_done(w.writers[0], 5)) {
			before = spy.count;
			cr_assert_gt(step(), 0);
		}
		cr_assert_leq(spy.most_inflight, 32);
		/* open, allocate, buffers, pieces, header, sync, close */
		cr_assert_eq(before, 2 + count + (blocks + 63) / 64 + 1 + 2);
		if (round == 0)
			check_file(1);
	}
}

Test(channel_state_file, lets_channels_take_turns_a_bounded_number_in_each_step)
{
	w.config.issued_in_max = 0;
	start(5);
	for (uint32_t channel = 0; channel < 3; channel++)
		add_many(5, channel, 1);
	steps(5);
	uint32_t before = spy.count;
	for (uint32_t i = 0; i < 4; i++)
		add_input(5, 0, 1, (uint8_t)(10 + i));
	for (uint32_t i = 0; i < 4; i++)
		add_input(5, 2, 1, (uint8_t)(20 + i));
	steps(2);
	cr_assert_eq(spy.log[before].op, STORE_ALLOCATE);
	for (uint32_t i = 0; i < 8; i++) {
		const uint8_t *bytes = spy.log[before + 1 + i].bytes;

		cr_assert_eq(spy.log[before + 1 + i].op, STORE_WRITE);
		cr_assert_eq(bytes[0], (i % 2 == 0 ? 10 : 20) + i / 2);
	}
}

Test(channel_state_file, writes_no_more_than_its_share_in_a_step)
{
	start(5);
	add_partial(5, 0, 1);
	steps(2);
	for (uint32_t i = 0; i < 15; i++)
		add_partial(5, i % 3, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_output(5, 1, 1);
	(void)step(); /* more room is asked for, nothing else */
	uint32_t before = spy.count;
	(void)step();
	cr_assert_eq(spy.count - before, 16);
	(void)complete(5);
	check_file(4);
}

/* ---- giving up at any moment ----------------------------------------------------------------- */

static uint32_t count_of(enum store_op op)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < spy.count; i++)
		count += spy.log[i].op == op;
	return count;
}

Test(channel_state_file, leaves_nothing_behind_whenever_it_is_given_up)
{
	for (int64_t id = 10; id < 30; id++) {
		uint32_t taken = (uint32_t)id - 10;

		spy.count = 0;
		start(id);
		add_input(id, 0, 100, 1);
		channel_world_finish_all(&w, id);
		steps(taken);
		bool is_done = channel_state_writer_is_done(w.writers[0], id);
		cr_assert_eq(channel_state_writer_is_writing(w.writers[0]), !is_done);
		channel_state_writer_abort(w.writers[0], id, DECLINE_OTHER, "over", true);
		cr_assert(!channel_state_writer_is_writing(w.writers[0]));
		for (uint32_t i = 0; i < 5; i++)
			(void)step();
		cr_assert_eq(step(), 0);
		cr_assert_eq(count_of(STORE_OPEN), taken > 0);
		cr_assert_eq(count_of(STORE_CLOSE), taken > 0);
		cr_assert_eq(count_of(STORE_UNLINK), taken > 0 && !is_done);
		cr_assert_eq(channel_world_used(&w), 0);
		cr_assert_eq(store_inflight(&spy.store), 0);
		if (is_done)
			break;
	}
	cr_assert_eq(mem_store_file_count(spy.inner), 1);
}

Test(channel_state_file, says_whether_it_writes)
{
	cr_assert(!channel_state_writer_is_writing(w.writers[0]));
	start(5);
	(void)step();
	cr_assert(!channel_state_writer_is_writing(w.writers[0]), "nothing was handed in");
	add_input(5, 0, 100, 1);
	cr_assert(channel_state_writer_is_writing(w.writers[0]));
	(void)complete(5);
	cr_assert(!channel_state_writer_is_writing(w.writers[0]));
}

/* Each step that does something says so, and one that only waits does not. */
Test(channel_state_file, says_how_much_it_did)
{
	start(5);
	cr_assert_eq(step(), 0);
	add_input(5, 0, 100, 1);
	channel_world_finish_all(&w, 5);
	while (!channel_state_writer_is_done(w.writers[0], 5)) {
		cr_assert_gt(step(), 0);
		w.disk.is_hung = store_inflight(&spy.store) > 0;
		if (w.disk.is_hung)
			cr_assert_eq(step(), 0);
		w.disk.is_hung = false;
	}
	cr_assert_eq(step(), 0);
	start(6);
	channel_world_finish_all(&w, 6);
	cr_assert_gt(step(), 0);
	cr_assert_eq(outcome(6), 0);
}

Test(channel_state_file, takes_paths_of_any_length_that_fits)
{
	static char directory[1200];

	for (uint32_t fits = 0; fits < 2; fits++) {
		uint32_t room = 1024 - sizeof("/chk-5/channels-map-3-abcd0000") + fits;

		memset(directory, 'd', room);
		directory[room] = '\0';
		channel_world_free(&w);
		prepare(directory, 16);
		channel_world_add(&w, SUBTASKS, 1);
		start(5);
		add_input(5, 0, 1, 1);
		channel_world_finish_all(&w, 5);
		cr_assert_eq(outcome(5), fits == 0 ? 0 : -ENAMETOOLONG);
	}
}

/* ---- as much as was promised ----------------------------------------------------------------- */
