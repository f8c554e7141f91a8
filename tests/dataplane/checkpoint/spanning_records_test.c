/* Records that begin in one buffer and end in another, through gates, cut, file and restore: what
 * was processed at the snapshot and what is restored are together all that was sent before the
 * barrier, each record once and whole (18.5, RE-25). */

#include "dataplane/base/prng.h"
#include "dataplane/channel/output_queue.h"
#include "dataplane/checkpoint/input_persister.h"
#include "tests/support/channel_state_world.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

enum { PRODUCERS = 2, CHANNEL_BUFS_MAX = 256 };

struct cut_world {
	uint64_t seed;
	struct prng prng;
	uint32_t capacity, record_max; /* without the prefix */
	struct channel_world files;
	struct edge edge;
	struct input_persister *persister;
	struct buf_pool *recovered_pool;
	uint32_t barriers; /* taken from the channels for this checkpoint */
	int64_t id;
	uint64_t made[PRODUCERS], cut[PRODUCERS]; /* records sent; at the barrier */
	uint64_t seen[PRODUCERS], snapshot[PRODUCERS]; /* records processed; at the snapshot */
	uint32_t in_flight_spanning; /* parts of records that a cut fell into */
	uint8_t *record;
};

static struct cut_world *w;

/* ---- records: number, and bytes that follow from it ------------------------------------------ */

static uint32_t size_of(uint32_t from, uint64_t number)
{
	struct prng p;

	prng_seed(&p, w->seed * 1000003 + number * PRODUCERS + from);
	uint32_t kind = (uint32_t)prng_below(&p, 4);
	uint32_t limit = kind == 0 ? 8 : kind == 1 ? 2 * w->capacity : w->record_max;

	limit = limit < w->record_max ? limit : w->record_max;
	return 1 + (uint32_t)prng_below(&p, kind == 3 && limit > 64 ? 64 : limit);
}

static uint8_t byte_of(uint32_t from, uint64_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + from * 17 + at * (1 + number % 5));
}

static bool send(uint32_t from)
{
	uint32_t size = size_of(from, w->made[from]);
	struct weir_batch batch = {w->record, 1, 0, size + 4};

	memcpy(w->record, &size, 4);
	for (uint32_t i = 0; i < size; i++)
		w->record[4 + i] = byte_of(from, w->made[from], i);
	if (output_gate_collect(w->edge.out[from], &batch) == 0)
		return false;
	w->made[from]++;
	return true;
}

static void check_record(uint32_t from, const uint8_t *bytes, uint32_t size)
{
	uint64_t number = w->seen[from]++;

	cr_assert_eq(size, size_of(from, number), "seed %" PRIu64 ": record %" PRIu64
			" of %u has %u bytes", w->seed, number, from, size);
	for (uint32_t i = 0; i < size; i++)
		if (bytes[i] != byte_of(from, number, i))
			cr_assert_fail("seed %" PRIu64 ": record %" PRIu64 ", byte %u", w->seed,
					number, i);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void hear(void)
{
	struct input_gate *gate = w->edge.in[0];
	const struct event *barrier;
	struct input_early early;
	uint32_t channel;

	input_gate_poll(gate);
	while (input_gate_next_arrival(gate, &channel, &barrier))
		input_persister_arrived(w->persister, channel, barrier);
	while (input_gate_next_early(gate, &early)) {
		cr_assert(early.is_barrier);
		if (w->barriers++ == 0) {
			input_persister_start(w->persister, w->id);
			memcpy(w->snapshot, w->seen, sizeof(w->seen));
		}
		if (w->barriers == PRODUCERS)
			input_persister_stop(w->persister, w->id);
	}
	(void)input_persister_take(w->persister);
}

static bool process(void)
{
	struct input_item item;
	int rc;

	hear();
	rc = input_gate_next(w->edge.in[0], &item);
	cr_assert_geq(rc, 0, "seed %" PRIu64, w->seed);
	if (rc == 0)
		return false;
	if (item.kind != INPUT_RECORDS) {
		input_gate_consume(w->edge.in[0], 1);
		return true;
	}
	uint32_t count = (uint32_t)prng_below(&w->prng, item.batch.count) + 1;
	const uint8_t *at = item.batch.data;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size;
		const uint8_t *record = weir_record_at(at, &size);

		check_record(item.channel, record, size);
		at = record + size;
	}
	input_gate_consume(w->edge.in[0], count);
	return true;
}

/* ---- the sender ------------------------------------------------------------------------------ */

static void send_barrier(uint32_t from)
{
	struct output_gate *gate = w->edge.out[from];
	struct event barrier = edge_barrier(w->id);
	struct channel_info at = {0, from};

	barrier.options.alignment = ALIGNMENT_UNALIGNED;
	w->cut[from] = w->made[from];
	cr_assert_eq(output_gate_broadcast(gate, &barrier), 0);
	for (uint32_t i = 0; i < output_gate_overtaken_count(gate, 0); i++) {
		struct buf *b = output_queue_at(output_gate_queue(gate, 0), i);

		channel_state_writer_add_output_data(w->files.writers[0], w->id, at, &b, 1);
	}
}

/* ---- restore --------------------------------------------------------------------------------- */

static void read_handle(const struct channel_state_handle *h, struct buf **bufs, uint32_t *count)
{
	char path[128], text[CHANNEL_STATE_FORMAT_TEXT_BYTES];
	size_t size;

	snprintf(path, sizeof(path), "/c/chk-%" PRId64 "/%s", w->id, h->file);
	const uint8_t *file = mem_store_file(w->files.inner, path, &size);
	cr_assert_not_null(file);
	for (uint32_t i = 0; i < h->buf_count; i++) {
		struct channel_state_chunk c;

		cr_assert_eq(channel_state_decode_chunk(&c,
				file + h->offset + channel_state_section_bytes(i), text), 0);
		struct buf *b = buf_alloc(w->recovered_pool);
		cr_assert_not_null(b);
		cr_assert_leq(c.size, b->capacity_bytes);
		memcpy(b->data, file + c.offset, c.size);
		b->size_bytes = c.size;
		b->first_record = c.first_record;
		w->in_flight_spanning += c.first_record != 0;
		cr_assert_lt(*count, CHANNEL_BUFS_MAX);
		bufs[(*count)++] = b;
	}
}

static void open_edge(void)
{
	struct edge_config config = {
			.producers = PRODUCERS,
			.consumers = 1,
			.capacity_bytes = w->capacity,
			.record_bytes_max = w->record_max,
			.channel = {.credit_count = 1 + (uint32_t)prng_below(&w->prng, 4),
					.queue_count = (w->record_max + 4) / w->capacity + 3},
	};
	struct input_persister_config persister = {w->edge.in, 1, w->files.writers[0]};

	edge_open(&w->edge, &config);
	cr_assert_eq(input_persister_create(&w->persister, &persister), 0);
	w->barriers = 0;
}

/* The next attempt, from what the checkpoint says. */
static void restart(const struct channel_state_result *r)
{
	struct buf *bufs[PRODUCERS][CHANNEL_BUFS_MAX];
	uint32_t count[PRODUCERS] = {0};

	input_persister_destroy(w->persister);
	edge_close(&w->edge);
	/* Inputs stand first, so what the consumer had comes before what the producer had. */
	for (uint32_t i = 0; i < r->handle_count; i++)
		read_handle(&r->handles[i], bufs[r->handles[i].channel],
				&count[r->handles[i].channel]);
	open_edge();
	for (uint32_t from = 0; from < PRODUCERS; from++)
		cr_assert_eq(input_gate_restore(
				w->edge.in[0], from, bufs[from], count[from]), 0);
	memcpy(w->made, w->cut, sizeof(w->made));
	memcpy(w->seen, w->snapshot, sizeof(w->seen));
}

/* ---- one life -------------------------------------------------------------------------------- */

static void act(void)
{
	uint32_t from = (uint32_t)prng_below(&w->prng, PRODUCERS);

	switch (prng_below(&w->prng, 8)) {
	case 0:
	case 1:
	case 2:
		(void)send(from);
		break;
	case 3:
		(void)output_gate_flush(w->edge.out[from]);
		break;
	case 4:
	case 5:
		(void)output_gate_poll(w->edge.out[from], 0);
		break;
	default:
		(void)process();
	}
}

/* Barriers of the producers at different moments, work going on between them. */
static void take_checkpoint(void)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};
	uint32_t first = (uint32_t)prng_below(&w->prng, PRODUCERS);

	cr_assert_eq(channel_state_writer_start(w->files.writers[0], w->id, &options), 0);
	cr_assert_eq(channel_state_writer_start(w->files.writers[1], w->id, &options), 0);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		send_barrier((first + i) % PRODUCERS);
		for (uint64_t n = prng_below(&w->prng, 20); n > 0; n--)
			act();
	}
	while (w->barriers < PRODUCERS || input_persister_is_waiting(w->persister, w->id)) {
		for (uint32_t from = 0; from < PRODUCERS; from++)
			(void)output_gate_poll(w->edge.out[from], 0);
		hear();
		if (prng_below(&w->prng, 2) == 0)
			(void)process();
		channel_world_step(&w->files, 1);
	}
	channel_world_finish_all(&w->files, w->id);
	channel_world_finish(&w->files, 0, w->id);
}

static void run(uint64_t seed, uint32_t capacity, uint32_t record_max, uint32_t lives)
{
	enum decline_reason reason;
	const char *text;

	w->seed = seed;
	w->capacity = capacity;
	w->record_max = record_max;
	w->id = 1;
	prng_seed(&w->prng, seed);
	memset(w->made, 0, sizeof(w->made));
	memset(w->seen, 0, sizeof(w->seen));
	/* A record in pieces of each channel, in pages. */
	channel_world_init_sized(&w->files, mem_store_create(), "/c",
			PRODUCERS * ((uint64_t)record_max / 4096 + 8) * 4096);
	open_edge();
	for (; w->id <= lives; w->id++) {
		for (uint64_t n = prng_below(&w->prng, 60); n > 0; n--)
			act();
		take_checkpoint();
		cr_assert_eq(channel_state_writer_outcome(
				w->files.writers[0], w->id, &reason, &text), 0, "%s", text);
		restart(channel_state_writer_result(w->files.writers[0], w->id));
		channel_state_writer_remove(w->files.writers[0], w->id);
		channel_state_writer_remove(w->files.writers[1], w->id);
	}
	do {
		for (uint32_t from = 0; from < PRODUCERS; from++) {
			(void)output_gate_flush(w->edge.out[from]);
			(void)output_gate_poll(w->edge.out[from], 0);
		}
	} while (process());
	for (uint32_t from = 0; from < PRODUCERS; from++)
		cr_assert_eq(w->seen[from], w->made[from], "seed %" PRIu64 ": %" PRIu64
				" of %" PRIu64 " records of %u", seed, w->seen[from],
				w->made[from], from);
	input_persister_destroy(w->persister);
	edge_close(&w->edge);
	channel_world_free(&w->files);
}

static void begin(void)
{
	w = calloc(1, sizeof(*w));
	w->record = malloc(RECORD_BYTES_MAX + 4);
	cr_assert_eq(buf_pool_from_heap(&w->recovered_pool, RECORD_BYTES_MAX + 4, 4096), 0);
}

static void end(void)
{
	/* Proof that cuts did fall into records. */
	cr_assert_gt(w->in_flight_spanning, 0);
	buf_pool_destroy(w->recovered_pool);
	free(w->record);
	free(w);
}

TestSuite(spanning_records, .init = begin, .fini = end, .timeout = 120);

Test(spanning_records, of_1_to_3000_bytes_survive_ten_restores_in_a_row)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		run(seed, 256, 3000, 10);
}

Test(spanning_records, of_up_to_two_buffers_survive_restores)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		run(seed, 512, 1000, 6);
}

Test(spanning_records, of_1_byte_to_1_mib_survive_restores)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		run(seed, 32768, RECORD_BYTES_MAX, 4);
}
