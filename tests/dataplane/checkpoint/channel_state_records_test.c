/* Records that begin in one buffer and end in another, cut by an unaligned checkpoint at every
 * place: what is processed before, and what comes back from the file, are all of them, in order. */

#include "dataplane/checkpoint/channel_state_reader.h"
#include "dataplane/channel/output_queue.h"
#include "dataplane/checkpoint/store_select.h"
#include "tests/support/channel_state_world.h"
#include "tests/support/edge.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { RECORDS = 60, LARGEST_BYTES = 9000, RECOVERED_MAX = 64 };

static const struct edge_config SPANNING = {
		.producers = 1,
		.consumers = 1,
		.capacity_bytes = 4096,
		.channel = {.queue_count = 6, .credit_count = 5},
		.record_bytes_max = LARGEST_BYTES,
		.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
};

static struct channel_world w;
static char directory[64], chk[80];

/* From a byte to more than two buffers. */
static uint32_t size_of(uint32_t number)
{
	static const uint32_t sizes[] = {1, 4000, 8, 4092, 9000, 100, 4096, 2047, 5};

	return sizes[number % 9];
}

static bool send(struct edge *e, uint32_t number)
{
	static uint8_t record[4 + LARGEST_BYTES];
	uint32_t bytes = size_of(number);
	struct weir_batch batch = {record, 1, 0, 4 + bytes};

	memcpy(record, &bytes, sizeof(bytes));
	memset(record + 4, (int)number, bytes);
	return output_gate_collect(e->out[0], &batch) == 1;
}

/* Takes whole records, at most `max`; they must be those from `next` on. */
static uint32_t take(struct edge *e, uint32_t next, uint32_t max)
{
	struct input_item item;
	uint32_t taken = 0;

	while (taken < max && edge_next(e, 0, &item)) {
		const uint8_t *at = item.batch.data;
		uint32_t count = item.batch.count < max - taken ? item.batch.count : max - taken;

		cr_assert_eq(item.kind, INPUT_RECORDS);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t bytes;

			memcpy(&bytes, at, sizeof(bytes));
			cr_assert_eq(bytes, size_of(next + taken), "record %u", next + taken);
			for (uint32_t k = 0; k < bytes; k++)
				cr_assert_eq(at[4 + k], (uint8_t)(next + taken));
			at += 4 + bytes;
			taken++;
		}
		input_gate_consume(e->in[0], count);
		edge_push(e, 0);
	}
	return taken;
}

static void keep_input(struct edge *e, int64_t id)
{
	struct channel_info at = {0, 0};
	uint32_t bytes, offset = 0;
	const uint8_t *partial = input_gate_partial(e->in[0], 0, &bytes);

	channel_state_writer_add_input_partial(w.writers[0], id, at, partial, bytes);
	for (uint32_t i = 0; i < input_gate_inflight_count(e->in[0], 0); i++) {
		struct buf *b = input_gate_inflight_at(e->in[0], 0, i, &offset);

		channel_state_writer_add_input_data(w.writers[0], id, at, &b, 1, offset);
	}
}

static void keep_output(struct edge *e, int64_t id)
{
	const struct output_queue *q = output_gate_queue(e->out[0], 0);

	for (uint32_t i = 0; i < output_queue_count(q); i++) {
		struct buf *b = output_queue_at(q, i);

		channel_state_writer_add_output_data(
				w.writers[0], id, (struct channel_info){0, 0}, &b, 1);
	}
}

/* Reads what was kept: the consumer's first, then the producer's. */
static uint32_t read_back(int64_t id, struct buf_pool *pool, struct buf **bufs)
{
	const struct channel_state_result *r = channel_state_writer_result(w.writers[0], id);
	struct channel_state_owner owner = {id, "map", 3};
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->handle_count; i++) {
		struct channel_state_reader *reader;

		cr_assert_eq(channel_state_open(&reader, chk, &r->handles[i], &owner, text), 0,
				"%s", text);
		for (uint32_t k = 0; k < channel_state_chunk_count(reader); k++) {
			const struct channel_state_chunk *c = channel_state_chunk(reader, k);
			struct buf *b = bufs[count++] = buf_alloc(pool);

			b->size_bytes = c->size;
			b->first_record = c->first_record;
			cr_assert_eq(channel_state_read_chunk(reader, k, b->data, text), 0);
		}
		channel_state_close(reader);
	}
	return count;
}

static void cut_at(int64_t id, uint32_t processed, bool output_first)
{
	struct buf *bufs[RECOVERED_MAX];
	struct buf_pool *pool;
	struct edge before, after;
	uint32_t sent = 0, next = 0;

	snprintf(chk, sizeof(chk), "%s/chk-%lld", directory, (long long)id);
	cr_assert_eq(mkdir(chk, 0755), 0);
	edge_open(&before, &SPANNING);
	while (next < processed) {
		while (sent < RECORDS && send(&before, sent))
			sent++;
		edge_push(&before, 0);
		next += take(&before, next, processed - next);
	}
	while (sent < RECORDS && send(&before, sent))
		sent++;
	output_gate_flush(before.out[0]);
	input_gate_poll(before.in[0]);
	channel_world_start_all(&w, id);
	if (output_first)
		keep_output(&before, id);
	keep_input(&before, id);
	if (!output_first)
		keep_output(&before, id);
	channel_world_finish_all(&w, id);
	channel_world_finish(&w, 0, id);
	edge_close(&before);

	cr_assert_eq(buf_pool_from_heap(&pool, 3 * 4096, RECOVERED_MAX), 0);
	edge_open(&after, &SPANNING);
	uint32_t count = read_back(id, pool, bufs);
	cr_assert_eq(input_gate_restore(after.in[0], 0, bufs, count), 0);
	next += take(&after, next, RECORDS);
	cr_assert_eq(next, sent, "%u records came, %u were sent", next, sent);
	cr_assert(send(&after, sent));
	output_gate_flush(after.out[0]);
	edge_push(&after, 0);
	cr_assert_eq(take(&after, next, RECORDS), 1);
	edge_close(&after);
	buf_pool_destroy(pool);
	for (uint32_t i = 0; i < 2; i++) {
		channel_world_finish(&w, i, id);
		channel_state_writer_remove(w.writers[i], id);
	}
}

/* 14.1, RE-25, in either order of the sides. */
Test(channel_state_records, come_back_wherever_the_cut_is, .timeout = 60)
{
	struct store *store;
	char why[STORE_WHY_BYTES];
	int64_t id = 0;

	make_test_directory(directory);
	cr_assert_eq(store_open(&store, STORE_AUTO, why), 0);
	channel_world_init(&w, store, directory);
	w.is_real = true;
	for (uint32_t processed = 0; processed < 40; processed++) {
		cut_at(++id, processed, false);
		cut_at(++id, processed, true);
	}
	channel_world_free(&w);
	remove_test_directory(directory);
}
