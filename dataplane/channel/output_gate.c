#include "dataplane/channel/output_gate.h"

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/channel/output_gate_internal.h"
#include "dataplane/wire/buf.h"
#include "dataplane/wire/record.h"

#include <errno.h>

/* ---- life ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint64_t output_gate_memory_bytes(const struct output_gate_config *config)
{
	return sizeof(struct output_gate) +
			(uint64_t)config->partitioner.channel_count *
			(sizeof(struct open) + sizeof(struct outlet) +
					sizeof(struct output_queue));
}

/* True when the largest record fits a channel beside one open buffer, so that it never waits for
 * a flush. */
static bool is_fitting(const struct output_gate *g)
{
	if (g->record_bytes != 0)
		return g->usable_bytes > 0;
	return g->record_bytes_max > RECORD_PREFIX_BYTES &&
			g->record_bytes_max <= (uint64_t)g->usable_bytes * (g->queue_count - 1);
}

static int configure(struct output_gate *g, const struct output_gate_config *config)
{
	uint32_t capacity = config->pool->capacity_bytes;
	int rc = partitioner_init(&g->partitioner, &config->partitioner);

	if (rc != 0)
		return rc;
	if (config->record_bytes_max > INT32_MAX)
		return -EINVAL;
	g->pool = config->pool;
	g->channel_count = config->partitioner.channel_count;
	g->queue_count = ring_channel_config(config->channels[0])->queue_count;
	g->record_bytes = config->record_bytes;
	g->flush_ns = config->flush_ns;
	g->is_aligned_only = config->is_aligned_only;
	g->watermark = WEIR_WATERMARK_NONE;
	if (g->record_bytes != 0) {
		g->record_bytes_max = g->record_bytes;
		g->usable_bytes = record_count_per_buf(capacity, g->record_bytes) * g->record_bytes;
		if ((uint64_t)g->partitioner.key_offset + g->partitioner.key_bytes >
				g->record_bytes)
			return -EINVAL; /* only hash has a key */
	} else {
		g->record_bytes_max = config->record_bytes_max + RECORD_PREFIX_BYTES;
		g->usable_bytes = capacity;
	}
	return is_fitting(g) ? 0 : -EINVAL;
}

int output_gate_create(struct output_gate **out, const struct output_gate_config *config)
{
	struct output_gate *g = lines_alloc(sizeof(*g));
	if (g == NULL)
		return -ENOMEM;

	int rc = configure(g, config);
	if (rc != 0) {
		free(g);
		return rc;
	}
	g->open = lines_alloc(g->channel_count * sizeof(*g->open));
	g->outlets = lines_alloc(g->channel_count * sizeof(*g->outlets));
	g->queues = lines_alloc(g->channel_count * sizeof(*g->queues));
	if (g->open == NULL || g->outlets == NULL || g->queues == NULL) {
		free(g->open);
		free(g->outlets);
		free(g->queues);
		free(g);
		return -ENOMEM;
	}
	for (uint32_t c = 0; c < g->channel_count; c++) {
		CHECK(ring_channel_config(config->channels[c])->queue_count == g->queue_count);
		output_queue_init(&g->queues[c], config->channels[c]);
		g->outlets[c].sent_watermark = WEIR_WATERMARK_NONE;
	}
	*out = g;
	return 0;
}

void output_gate_destroy(struct output_gate *g)
{
	if (g == NULL)
		return;
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->outlets[c].buf != NULL)
			buf_release(g->outlets[c].buf);
		output_queue_clear(&g->queues[c]);
	}
	free(g->open);
	free(g->outlets);
	free(g->queues);
	free(g);
}

/* ---- buffers of a channel ---- */

/* Ends the open buffer and puts it in the queue. */
static void finish(struct output_gate *g, uint32_t c)
{
	struct buf *b = g->outlets[c].buf;

	b->size_bytes = (uint32_t)(g->open[c].at - b->data);
	b->watermark = g->watermark;
	if (g->record_bytes != 0 && b->size_bytes > 0)
		b->first_record = 0;
	output_queue_add(&g->queues[c], b);
	g->open[c] = (struct open){0};
	g->outlets[c] = (struct outlet){.sent_watermark = g->watermark};
	g->busy[c / 64] |= 1ull << (c % 64);
	g->counters.bufs++;
	g->counters.bytes += b->size_bytes;
}

/* The room was checked, and the pool holds what all channels may hold. */
static void open_next(struct output_gate *g, uint32_t c)
{
	if (g->outlets[c].buf != NULL)
		finish(g, c);
	DCHECK(output_gate_held_count(g, c) < g->queue_count);

	struct buf *b = buf_alloc(g->pool);
	CHECK(b != NULL);
	g->outlets[c].buf = b;
	g->open[c] = (struct open){b->data, b->data + g->usable_bytes};
}

/* ---- room ---- */

static uint32_t measure(const struct output_gate *g)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t c = 0; c < g->channel_count; c++) {
		uint32_t bytes = (uint32_t)(g->open[c].end - g->open[c].at) +
				(g->queue_count - output_gate_held_count(g, c)) * g->usable_bytes;

		least = smaller(least, bytes);
	}
	return least;
}

/* Makes sure that free_bytes is at least `wanted`, if it can be. */
static bool has_free(struct output_gate *g, uint64_t wanted)
{
	if (g->free_bytes < wanted)
		g->free_bytes = measure(g);
	return g->free_bytes >= wanted;
}

uint32_t output_gate_room(struct output_gate *g)
{
	if (has_free(g, (uint64_t)RECORDS_COUNT_MAX * g->record_bytes_max))
		return RECORDS_COUNT_MAX;

	uint32_t room = g->free_bytes / g->record_bytes_max;
	if (room == 0)
		g->is_starved = true;
	return room;
}

/* ---- scatter ---- */

/* Called with a constant size where it is a common one, so that the copy is a few moves. */
__attribute__((always_inline)) static inline void scatter(struct output_gate *g,
		const uint8_t *data, uint32_t count, uint32_t record_bytes)
{
	const uint16_t *targets = g->targets;
	struct open *opens = g->open;

	for (uint32_t i = 0; i < count; i++) {
		struct open *open = &opens[targets[i]];

		if (__builtin_expect(open->at == open->end, 0))
			open_next(g, targets[i]);

		/* Loaded once: the copy might change it, for all the compiler knows. */
		uint8_t *at = open->at;
		memcpy(at, data + (size_t)i * record_bytes, record_bytes);
		open->at = at + record_bytes;
	}
}

static void scatter_fixed(struct output_gate *g, const struct weir_batch *batch)
{
	switch (g->record_bytes) {
	case 8:
		scatter(g, batch->data, batch->count, 8);
		break;
	case 16:
		scatter(g, batch->data, batch->count, 16);
		break;
	case 24:
		scatter(g, batch->data, batch->count, 24);
		break;
	case 32:
		scatter(g, batch->data, batch->count, 32);
		break;
	case 48:
		scatter(g, batch->data, batch->count, 48);
		break;
	case 64:
		scatter(g, batch->data, batch->count, 64);
		break;
	default:
		scatter(g, batch->data, batch->count, g->record_bytes);
	}
}

/* All to one channel: fixed records are copied a buffer at a time. */
static void append_fixed(struct output_gate *g, uint32_t c, const uint8_t *data, uint32_t bytes)
{
	while (bytes > 0) {
		struct open *open = &g->open[c];

		if (open->at == open->end)
			open_next(g, c);

		uint32_t take = smaller(bytes, (uint32_t)(open->end - open->at));
		memcpy(open->at, data, take);
		open->at += take;
		data += take;
		bytes -= take;
	}
}

/* A record that the open buffer may not have room for. */
static void write_spanning(
		struct output_gate *g, uint32_t c, const uint8_t *record, uint32_t record_bytes)
{
	struct open *open = &g->open[c];
	uint32_t done = 0;
	bool is_done;

	do {
		if (open->at == open->end)
			open_next(g, c);

		struct buf *b = g->outlets[c].buf;
		is_done = record_write(b, record, record_bytes, &done);
		open->at = b->data + b->size_bytes;
	} while (!is_done);
}

static void scatter_variable(struct output_gate *g, const struct weir_batch *batch)
{
	const uint8_t *at = batch->data;

	for (uint32_t i = 0; i < batch->count; i++) {
		uint32_t c = g->targets[i];
		uint32_t bytes;

		(void)weir_record_at(at, &bytes);
		bytes += RECORD_PREFIX_BYTES;
		write_spanning(g, c, at, bytes);
		at += bytes;
	}
}

/* All to one channel: variable records. */
static void append_variable(
		struct output_gate *g, uint32_t c, const uint8_t *data, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes;

		(void)weir_record_at(data, &bytes);
		write_spanning(g, c, data, bytes + RECORD_PREFIX_BYTES);
		data += bytes + RECORD_PREFIX_BYTES;
	}
}

/* ---- collect ---- */

/* Shortens the batch to what fits now. */
static void clip_fixed(struct output_gate *g, struct weir_batch *batch)
{
	uint32_t bytes = g->record_bytes;

	if (!has_free(g, (uint64_t)batch->count * bytes))
		batch->count = smaller(batch->count, g->free_bytes / bytes);
	batch->data_bytes = batch->count * bytes;
}

/* The same for variable records, whose sizes are checked here, once. */
static void clip_variable(struct output_gate *g, struct weir_batch *batch)
{
	uint32_t count = 0, at = 0;

	while (count < batch->count) {
		uint32_t bytes, left = batch->data_bytes - at;

		if (left < RECORD_PREFIX_BYTES) {
			g->oversized_bytes = UINT32_MAX;
			break;
		}
		(void)weir_record_at(batch->data + at, &bytes);
		if (bytes > g->record_bytes_max - RECORD_PREFIX_BYTES ||
				bytes > left - RECORD_PREFIX_BYTES) {
			g->oversized_bytes = bytes;
			break;
		}
		if (!has_free(g, (uint64_t)at + bytes + RECORD_PREFIX_BYTES))
			break;
		at += bytes + RECORD_PREFIX_BYTES;
		count++;
	}
	batch->count = count;
	batch->data_bytes = at;
}

/* Channel by channel, so that a channel's buffer stays in the cache meanwhile. */
static void append_to_all(struct output_gate *g, const struct weir_batch *batch)
{
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->record_bytes != 0)
			append_fixed(g, c, batch->data, batch->data_bytes);
		else
			append_variable(g, c, batch->data, batch->count);
	}
}

static void take(struct output_gate *g, const struct weir_batch *batch)
{
	if (partitioner_is_single(&g->partitioner) ||
			partitioner_is_broadcast(&g->partitioner)) {
		append_to_all(g, batch);
	} else {
		partitioner_targets(&g->partitioner, batch, g->targets);
		if (g->record_bytes != 0)
			scatter_fixed(g, batch);
		else
			scatter_variable(g, batch);
	}
	g->free_bytes -= batch->data_bytes;
	g->counters.records += batch->count;
}

uint32_t output_gate_collect(struct output_gate *g, const struct weir_batch *batch)
{
	uint32_t taken = 0, at = 0;

	CHECK(batch->record_bytes == g->record_bytes);
	while (taken < batch->count) {
		struct weir_batch part = *batch;

		part.data += at;
		part.data_bytes -= at;
		part.count = smaller(batch->count - taken, RECORDS_COUNT_MAX);

		uint32_t wanted = part.count;
		if (g->record_bytes != 0)
			clip_fixed(g, &part);
		else
			clip_variable(g, &part);
		take(g, &part);
		taken += part.count;
		at += part.data_bytes;
		if (part.count < wanted)
			break;
	}
	return taken;
}

uint32_t output_gate_oversized_bytes(const struct output_gate *g)
{
	return g->oversized_bytes;
}

/* ---- in line with the records ---- */

void output_gate_watermark(struct output_gate *g, int64_t watermark)
{
	if (watermark > g->watermark)
		g->watermark = watermark;
}

int output_gate_broadcast(struct output_gate *g, const struct event *e)
{
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (!output_queue_has_room(&g->queues[c], (enum event_kind)e->kind))
			return -EAGAIN;
	}

	struct event copy = *e;
	copy.watermark = g->watermark;
	if (g->is_aligned_only && e->kind == EVENT_BARRIER)
		copy.options = checkpoint_options_without_unaligned(&e->options);
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->outlets[c].buf != NULL)
			finish(g, c);
		output_queue_announce(&g->queues[c], &copy);
		g->outlets[c].sent_watermark = g->watermark;
		g->busy[c / 64] |= 1ull << (c % 64);
	}
	g->counters.events++;
	g->free_bytes = 0; /* what was left of the open buffers is gone */
	return 0;
}

/* A watermark with no record to carry it goes in an empty buffer. */
static bool flush_channel(struct output_gate *g, uint32_t c)
{
	if (g->outlets[c].buf == NULL) {
		if (g->outlets[c].sent_watermark == g->watermark ||
				output_gate_held_count(g, c) == g->queue_count)
			return false;
		open_next(g, c);
	}
	finish(g, c);
	return true;
}

uint32_t output_gate_flush(struct output_gate *g)
{
	uint32_t made = 0;

	for (uint32_t c = 0; c < g->channel_count; c++)
		made += flush_channel(g, c);
	if (made > 0)
		g->free_bytes = 0;
	return made;
}

uint32_t output_gate_flush_aged(struct output_gate *g, uint64_t now_ns)
{
	if (g->flush_ns == OUTPUT_GATE_FLUSH_NEVER || now_ns < g->next_flush_ns)
		return 0;
	g->next_flush_ns = now_ns + g->flush_ns;
	return output_gate_flush(g);
}

/* ---- towards the channels ---- */

/* Adds the time since the last poll while there was no room all along. */
static void account_starving(struct output_gate *g, uint64_t now_ns)
{
	if (!g->is_starved)
		return;
	if (g->starved_since_ns != 0)
		g->counters.backpressured_ns += now_ns - g->starved_since_ns;
	g->starved_since_ns = now_ns;
	if (has_free(g, g->record_bytes_max)) {
		g->is_starved = false;
		g->starved_since_ns = 0;
	}
}

uint32_t output_gate_poll(struct output_gate *g, uint64_t now_ns)
{
	uint32_t moved = 0;

	for (uint32_t word = 0; word * 64 < g->channel_count; word++) {
		for (uint64_t left = g->busy[word]; left != 0; left &= left - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(left);
			struct output_queue *q = &g->queues[word * 64 + bit];

			moved += output_queue_push(q);
			if (output_queue_is_empty(q))
				g->busy[word] &= ~(1ull << bit);
		}
	}
	account_starving(g, now_ns);
	return moved;
}
