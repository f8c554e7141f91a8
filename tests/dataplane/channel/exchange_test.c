/* Both gates together: what goes in comes out, in order, and events stay where they were put. */

#include "dataplane/base/key_group.h"
#include "dataplane/base/prng.h"
#include "tests/support/edge.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

enum {
	RECORD_MAX = 5000,
	RECORDS_FROM_EACH = 400,
	BATCH_MAX = 20,
	LOG_MAX = 2 * RECORDS_FROM_EACH,
};

/* What a channel must deliver: a record by its number, or an event by its id (negative). */
struct log {
	int64_t entries[LOG_MAX];
	uint32_t made, seen;
};

struct world {
	struct edge edge;
	struct prng prng;
	uint64_t seed;
	struct log logs[EDGE_SUBTASKS_MAX][EDGE_SUBTASKS_MAX];
	uint32_t sent[EDGE_SUBTASKS_MAX];
	int64_t event_id[EDGE_SUBTASKS_MAX];
	int64_t watermark[EDGE_SUBTASKS_MAX];
	bool is_ended[EDGE_SUBTASKS_MAX];
};

/* The record of that number: size and bytes follow from the number alone. */
static uint32_t make_record(const struct world *w, uint32_t from, uint32_t number, uint8_t *record)
{
	uint32_t bytes = w->edge.config.record_bytes;
	uint8_t *at = record;
	struct prng p;

	prng_seed(&p, w->seed << 32 | from << 24 | number);
	if (bytes == 0) {
		bytes = 1 + (uint32_t)prng_below(&p, prng_below(&p, 4) == 0 ? RECORD_MAX : 60);
		memcpy(at, &bytes, 4);
		at += 4;
	}
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)prng_next(&p);
	return (uint32_t)(at - record) + bytes;
}

/* The consumer of a record: the rule of key_group.h, on 8 bytes padded with zeros. */
static uint32_t consumer_of(const struct world *w, const uint8_t *record, uint32_t bytes)
{
	uint32_t prefix = w->edge.config.record_bytes == 0 ? 4 : 0;
	uint8_t key[8] = {0};

	if (w->edge.config.consumers == 1)
		return 0;
	memcpy(key, record + prefix, bytes - prefix < 8 ? bytes - prefix : 8);
	return key_group_subtask(key_group_of(key_hash(key, 8), EDGE_KEY_GROUPS), EDGE_KEY_GROUPS,
			w->edge.config.consumers);
}

static void note(struct world *w, uint32_t from, uint32_t to, int64_t entry)
{
	struct log *log = &w->logs[from][to];

	cr_assert_lt(log->made, LOG_MAX);
	log->entries[log->made++] = entry;
}

static void send_some(struct world *w, uint32_t from)
{
	static uint8_t data[BATCH_MAX * (4 + RECORD_MAX)];
	uint32_t offsets[BATCH_MAX + 1] = {0};
	uint32_t room = output_gate_room(w->edge.out[from]);
	uint32_t count = 1 + (uint32_t)prng_below(&w->prng, BATCH_MAX);

	if (count > RECORDS_FROM_EACH - w->sent[from])
		count = RECORDS_FROM_EACH - w->sent[from];
	for (uint32_t i = 0; i < count; i++)
		offsets[i + 1] = offsets[i] +
				make_record(w, from, w->sent[from] + i, data + offsets[i]);

	struct weir_batch batch = {data, count, w->edge.config.record_bytes, offsets[count]};
	uint32_t taken = output_gate_collect(w->edge.out[from], &batch);

	cr_assert(taken == count || taken >= room, "seed %lu", w->seed);
	for (uint32_t i = 0; i < taken; i++) {
		const uint8_t *record = data + offsets[i];
		uint32_t bytes = offsets[i + 1] - offsets[i];

		note(w, from, consumer_of(w, record, bytes), w->sent[from] + i);
	}
	w->sent[from] += taken;
}

static void announce(struct world *w, uint32_t from, enum event_kind kind)
{
	struct event e = edge_event(kind);

	e.checkpoint_id = w->event_id[from] + 1;
	if (output_gate_broadcast(w->edge.out[from], &e) != 0)
		return;
	w->event_id[from]++;
	for (uint32_t to = 0; to < w->edge.config.consumers; to++)
		note(w, from, to, -w->event_id[from]);
	w->is_ended[from] = kind == EVENT_END_OF_PARTITION;
}

static void produce(struct world *w, uint32_t from)
{
	struct output_gate *g = w->edge.out[from];

	if (w->is_ended[from])
		(void)output_gate_poll(g, 0);
	else if (w->sent[from] == RECORDS_FROM_EACH)
		announce(w, from, EVENT_END_OF_PARTITION);
	else
		switch (prng_below(&w->prng, 8)) {
		case 0:
			if (w->event_id[from] < 100)
				announce(w, from, EVENT_BARRIER);
			break;
		case 1:
			output_gate_watermark(g, w->watermark[from]++);
			break;
		case 2:
			output_gate_flush(g);
			break;
		case 3:
		case 4:
			output_gate_poll(g, 0);
			break;
		default:
			send_some(w, from);
		}
}

static int64_t seen_next(struct world *w, uint32_t from, uint32_t to)
{
	struct log *log = &w->logs[from][to];

	cr_assert_lt(log->seen, log->made, "seed %lu", w->seed);
	return log->entries[log->seen++];
}

static void check_records(struct world *w, uint32_t to, const struct input_item *item,
		uint32_t count)
{
	static uint8_t expected[4 + RECORD_MAX];
	const uint8_t *at = item->batch.data;

	for (uint32_t i = 0; i < count; i++) {
		int64_t number = seen_next(w, item->channel, to);
		cr_assert_geq(number, 0, "seed %lu: a record beyond an event", w->seed);

		uint32_t bytes = make_record(w, item->channel, (uint32_t)number, expected);
		cr_assert_arr_eq(at, expected, bytes, "seed %lu", w->seed);
		at += bytes;
	}
	cr_assert_leq(at, item->batch.data + item->batch.data_bytes);
}

static void consume(struct world *w, uint32_t to)
{
	struct input_gate *g = w->edge.in[to];
	struct input_item item;
	uint32_t count = 1;

	if (prng_below(&w->prng, 3) == 0)
		input_gate_poll(g);
	for (uint32_t c = 0; c < w->edge.config.producers; c++) {
		if (input_gate_is_blocked(g, c) && prng_below(&w->prng, 8) == 0)
			input_gate_resume(g, c);
	}
	if (input_gate_next(g, &item) != 1)
		return;
	cr_assert(item.kind == INPUT_WATERMARK || !input_gate_is_blocked(g, item.channel));
	switch (item.kind) {
	case INPUT_RECORDS:
		count = (uint32_t)prng_below(&w->prng, item.batch.count + 1);
		check_records(w, to, &item, count);
		break;
	case INPUT_WATERMARK:
		cr_assert_gt(item.watermark, input_gate_watermark(g));
		break;
	case INPUT_EVENT:
		cr_assert_eq(seen_next(w, item.channel, to), -item.event->checkpoint_id);
		if (item.event->kind == EVENT_BARRIER && prng_below(&w->prng, 2) == 0)
			input_gate_block(g, item.channel);
		break;
	}
	input_gate_consume(g, count);
}

static void run(uint64_t seed, uint32_t record_bytes, uint32_t capacity)
{
	struct world *w = calloc(1, sizeof(*w));
	struct edge_config config = {
			.capacity_bytes = capacity,
			.record_bytes = record_bytes,
			.record_bytes_max = record_bytes == 0 ? RECORD_MAX : 0,
	};
	uint32_t open;

	w->seed = seed;
	prng_seed(&w->prng, seed);
	config.producers = 1 + (uint32_t)prng_below(&w->prng, 3);
	config.consumers = 1 + (uint32_t)prng_below(&w->prng, 3);
	config.channel.credit_count = 1 + (uint32_t)prng_below(&w->prng, 4);
	config.channel.queue_count = record_bytes == 0 ? RECORD_MAX / capacity + 3
						       : 2 + (uint32_t)prng_below(&w->prng, 4);
	edge_open(&w->edge, &config);
	do {
		open = 0;
		for (uint32_t from = 0; from < config.producers; from++)
			produce(w, from);
		for (uint32_t to = 0; to < config.consumers; to++) {
			consume(w, to);
			open += input_gate_open_count(w->edge.in[to]);
		}
	} while (open > 0);
	for (uint32_t from = 0; from < config.producers; from++) {
		for (uint32_t to = 0; to < config.consumers; to++)
			cr_assert_eq(w->logs[from][to].seen, w->logs[from][to].made);
	}
	edge_close(&w->edge);
	free(w);
}

Test(exchange, sixteen_byte_records_stay_in_order_between_events)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		run(seed, 16, 64);
}

Test(exchange, records_that_leave_a_rest_in_each_buffer_stay_in_order)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		run(seed, 24 + 8 * (seed % 6), 256);
}

Test(exchange, records_of_odd_size_stay_in_order)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		run(seed, 9 + 4 * (seed % 5), 256);
}

Test(exchange, records_of_1_to_5000_bytes_span_buffers_of_256)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		run(seed, 0, 256);
}

/* ---- two threads ---- */

#ifdef __SANITIZE_ADDRESS__
enum { MILLIONS = 1000 * 1000 }; /* each buffer is a malloc */
#else
enum { MILLIONS = 8 * 1000 * 1000 };
#endif

/* Values 0, 1, 2 ...; each barrier carries how many were sent before it. */
static void *produce_millions(void *arg)
{
	struct edge *e = arg;
	struct output_gate *g = e->out[0];
	uint64_t records[RECORDS_COUNT_MAX][2] = {0}, sent = 0;
	struct event end = edge_event(EVENT_END_OF_PARTITION);
	struct prng p;

	prng_seed(&p, 5);
	while (sent < MILLIONS) {
		uint32_t room = output_gate_room(g);
		uint32_t count = room > 0 ? 1 + (uint32_t)prng_below(&p, room) : 0;

		if (count > MILLIONS - sent)
			count = (uint32_t)(MILLIONS - sent);
		struct weir_batch batch = {(const uint8_t *)records, count, 16, 16 * count};
		for (uint32_t i = 0; i < count; i++)
			records[i][1] = sent + i;
		sent += output_gate_collect(g, &batch);
		if (prng_below(&p, 4) == 0) {
			struct event barrier = edge_barrier((int64_t)sent);

			(void)output_gate_broadcast(g, &barrier);
		}
		if (prng_below(&p, 16) == 0)
			output_gate_flush(g);
		if (output_gate_poll(g, 0) == 0)
			sched_yield();
	}
	while (output_gate_broadcast(g, &end) != 0)
		output_gate_poll(g, 0);
	while (output_gate_has_queued(g)) {
		if (output_gate_poll(g, 0) == 0)
			sched_yield();
	}
	return NULL;
}

/* Takes one item; values and events must be where they belong. */
static void check_item(struct edge *e, const struct input_item *item, uint64_t *seen,
		uint64_t *events)
{
	if (item->kind == INPUT_EVENT) {
		if (item->event->kind == EVENT_BARRIER)
			cr_assert_eq(item->event->checkpoint_id, (int64_t)*seen);
		(*events)++;
		input_gate_consume(e->in[0], 1);
		return;
	}
	cr_assert_eq(item->kind, INPUT_RECORDS);
	for (uint32_t i = 0; i < item->batch.count; i++) {
		uint64_t record[2];

		memcpy(record, item->batch.data + 16 * i, 16);
		if (record[1] != *seen)
			cr_assert_fail("%lu instead of %lu", record[1], *seen);
		(*seen)++;
	}
	input_gate_consume(e->in[0], item->batch.count);
}

Test(exchange, two_threads_keep_the_order_of_millions_of_small_buffers)
{
	struct edge_config config = {
			.producers = 1,
			.consumers = 1,
			.capacity_bytes = 64,
			.channel = {.queue_count = 8, .credit_count = 8},
			.record_bytes = 16,
	};
	struct edge e;
	pthread_t thread;
	uint64_t seen = 0, events = 0;

	edge_open(&e, &config);
	cr_assert_eq(pthread_create(&thread, NULL, produce_millions, &e), 0);
	while (input_gate_open_count(e.in[0]) > 0) {
		struct input_item item;

		if (edge_next(&e, 0, &item))
			check_item(&e, &item, &seen, &events);
		else
			sched_yield();
	}
	pthread_join(thread, NULL);
	cr_assert_eq(seen, MILLIONS);
	cr_assert_gt(events, 1000);
	cr_assert_geq(input_gate_counters(e.in[0])->bufs, MILLIONS / 4);
	edge_close(&e);
}
