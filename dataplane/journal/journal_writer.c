#include "dataplane/journal/journal_writer.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/journal/journal_reader.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)WEIR_JOURNAL_BLOCK_BYTES == (int)JOURNAL_BLOCK_BYTES_MAX,
		"as operators know it");

enum { WRITES_MAX = 16 }; /* under way at a time */

int journal_writer_init(struct journal_writer *w, struct journal_io *io, struct journal_segment *s,
		void *memory, uint64_t memory_bytes)
{
	*w = (struct journal_writer){
			.io = io,
			.segment = s,
			.memory = memory,
			.block_count = (uint32_t)(memory_bytes / JOURNAL_BLOCK_BYTES_MAX),
	};
	w->blocks = calloc(w->block_count, sizeof(w->blocks[0]));
	return w->blocks == NULL ? -ENOMEM : 0;
}

void journal_writer_free(struct journal_writer *w)
{
	free(w->blocks);
	w->blocks = NULL;
}

void journal_writer_begin(
		struct journal_writer *w, uint64_t id, uint64_t sequence, uint32_t record_bytes_max)
{
	w->id = id;
	w->record_bytes_max = record_bytes_max;
	w->appended_sequence = sequence;
	w->durable_sequence = sequence;
	w->taken_sequence = sequence;
}

static struct journal_block *block_at(const struct journal_writer *w, uint64_t number)
{
	return &w->blocks[number % w->block_count];
}

static uint8_t *bytes_at(const struct journal_writer *w, uint64_t number)
{
	return w->memory + number % w->block_count * JOURNAL_BLOCK_BYTES_MAX;
}

/* ---- taking records -------------------------------------------------------------------------- */

static void close_block(struct journal_writer *w)
{
	w->has_open = false;
	w->closed++;
}

static bool open_block(struct journal_writer *w)
{
	if (w->closed - w->given == w->block_count)
		return false;
	*block_at(w, w->closed) = (struct journal_block){.sequence = w->appended_sequence};
	w->has_open = true;
	return true;
}

uint32_t journal_writer_place(struct journal_writer *w, uint32_t bytes, uint8_t **at)
{
	CHECK(bytes <= JOURNAL_PAYLOAD_BYTES_MAX);
	if (w->is_stopped || w->io->failure != 0)
		return 0;
	if (w->has_open && JOURNAL_PAYLOAD_BYTES_MAX - block_at(w, w->closed)->bytes < bytes)
		close_block(w);
	if (!w->has_open && !open_block(w))
		return 0;
	uint32_t used = block_at(w, w->closed)->bytes;
	*at = bytes_at(w, w->closed) + JOURNAL_BLOCK_HEAD_BYTES + used;
	return JOURNAL_PAYLOAD_BYTES_MAX - used;
}

void journal_writer_append(struct journal_writer *w, uint32_t count, uint32_t bytes)
{
	struct journal_block *b = block_at(w, w->closed);

	CHECK(w->has_open);
	CHECK(bytes <= JOURNAL_PAYLOAD_BYTES_MAX - b->bytes);
	b->count += count;
	b->bytes += bytes;
	w->appended_sequence += count;
	w->appended_bytes += bytes;
}

/* ---- giving them out ------------------------------------------------------------------------- */

bool journal_writer_next(struct journal_writer *w, uint32_t count_max, struct weir_batch *batch)
{
	if (w->given == w->durable || count_max == 0)
		return false;
	const struct journal_block *b = block_at(w, w->given);
	journal_records(bytes_at(w, w->given) + JOURNAL_BLOCK_HEAD_BYTES + b->taken_bytes,
			b->count - b->taken_count, count_max, batch);
	return true;
}

void journal_writer_take(struct journal_writer *w, const struct weir_batch *batch)
{
	struct journal_block *b = block_at(w, w->given);

	CHECK(w->given < w->durable);
	b->taken_count += batch->count;
	b->taken_bytes += batch->data_bytes;
	w->taken_sequence += batch->count;
	CHECK(b->taken_count <= b->count);
	if (b->taken_count == b->count)
		w->given++;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void send_block(struct journal_writer *w, uint64_t number)
{
	struct journal_block *b = block_at(w, number);
	const struct store_request r = {
			.op = STORE_WRITE,
			.flags = STORE_DIRECT,
			.file = w->segment->file,
			.bytes = bytes_at(w, number),
			.size = journal_block_bytes(b->bytes),
			.offset = b->offset,
	};

	b->is_busy = journal_ask(w->io, JOURNAL_BLOCKS, (uint32_t)(number % w->block_count), &r);
}

static void seal(struct journal_writer *w, uint64_t number)
{
	struct journal_block *b = block_at(w, number);
	const struct journal_block_head head = {
			.ordinal = w->segment->header.ordinal,
			.sequence = b->sequence,
			.durable = w->durable_sequence,
			.count = b->count,
			.bytes = b->bytes,
	};

	b->offset = w->segment->used;
	w->segment->used += journal_seal_block(bytes_at(w, number), &head);
}

/* Also those that found no room at first. */
static void send_blocks(struct journal_writer *w)
{
	if (w->is_full && w->io->now_ns < w->retry_ns)
		return;
	w->is_full = false;
	for (uint64_t n = w->written; n < w->sent; n++) {
		if (!block_at(w, n)->is_busy && !block_at(w, n)->is_written)
			send_block(w, n);
	}
	while (w->sent < w->closed && w->sent - w->written < WRITES_MAX &&
			journal_segment_has_room(w->segment,
					journal_block_bytes(block_at(w, w->sent)->bytes))) {
		seal(w, w->sent);
		send_block(w, w->sent++);
	}
}

static void sync_blocks(struct journal_writer *w)
{
	const struct store_request r = {.op = STORE_SYNC, .file = w->segment->file};

	if (w->is_syncing || w->written == w->durable)
		return;
	w->syncing = w->written;
	w->is_syncing = journal_ask(w->io, JOURNAL_BLOCKS, 0, &r);
}

/* Nothing is under way, so what there is may go. */
static void close_if_due(struct journal_writer *w)
{
	if (w->has_open && w->durable == w->closed && block_at(w, w->closed)->count > 0)
		close_block(w);
}

static bool needs_segment(const struct journal_writer *w)
{
	return !w->is_stopped || w->sent < w->closed;
}

static void serve_segment(struct journal_writer *w)
{
	struct journal_segment *s = w->segment;

	if (s->phase == JOURNAL_SEGMENT_NONE && needs_segment(w))
		journal_segment_begin(s, w->id, w->durable_sequence, w->record_bytes_max);
	bool is_used_up = w->sent < w->closed && journal_segment_is_ready(s) &&
			  !journal_segment_has_room(
					  s, journal_block_bytes(block_at(w, w->sent)->bytes));
	if (is_used_up && w->durable == w->sent)
		journal_segment_end(s);
}

/* What it cannot write any more is given up. */
static bool is_hopeless(const struct journal_writer *w)
{
	return w->io->failure != 0 || (w->is_stopped && (w->is_full || w->segment->is_full));
}

static bool is_all_durable(const struct journal_writer *w)
{
	return w->durable == w->closed && (!w->has_open || block_at(w, w->closed)->count == 0);
}

static bool is_anything_under_way(const struct journal_writer *w)
{
	for (uint64_t n = w->written; n < w->sent; n++) {
		if (block_at(w, n)->is_busy)
			return true;
	}
	return w->is_syncing;
}

uint32_t journal_writer_step(struct journal_writer *w)
{
	uint32_t before = w->io->inflight_count;

	if (is_hopeless(w) || (w->is_stopped && is_all_durable(w))) {
		if (!is_anything_under_way(w) && w->segment->phase != JOURNAL_SEGMENT_CLOSE)
			journal_segment_end(w->segment);
	} else {
		close_if_due(w);
		serve_segment(w);
		if (journal_segment_is_ready(w->segment)) {
			send_blocks(w);
			sync_blocks(w);
		}
	}
	journal_segment_step(w->segment);
	return w->io->inflight_count - before;
}

/* ---- completions ----------------------------------------------------------------------------- */

static void finish_write(struct journal_writer *w, uint32_t index, int64_t result)
{
	struct journal_block *b = &w->blocks[index];

	b->is_busy = false;
	if (journal_is_full_error(result)) {
		w->is_full = true;
		w->retry_ns = w->io->now_ns + JOURNAL_RETRY_NS;
	} else if (result < 0) {
		journal_fail(w->io, (int)result, "journal: write %.300s: %s", w->segment->path,
				strerrordesc_np((int)-result));
	} else {
		b->is_written = true;
	}
	while (w->written < w->sent && block_at(w, w->written)->is_written)
		w->written++;
	crash_point("journal-written");
}

static void finish_sync(struct journal_writer *w, int64_t result)
{
	w->is_syncing = false;
	if (result < 0) {
		journal_fail(w->io, (int)result, "journal: sync %.300s: %s", w->segment->path,
				strerrordesc_np((int)-result));
		return;
	}
	for (; w->durable < w->syncing; w->durable++) {
		const struct journal_block *b = block_at(w, w->durable);

		w->durable_sequence = b->sequence + b->count;
		w->durable_bytes += b->bytes;
	}
	crash_point("journal-durable");
}

void journal_writer_finish(
		struct journal_writer *w, enum store_op op, uint32_t index, int64_t result)
{
	if (op == STORE_WRITE)
		finish_write(w, index, result);
	else
		finish_sync(w, result);
}

/* ---- the end --------------------------------------------------------------------------------- */

void journal_writer_stop(struct journal_writer *w)
{
	w->is_stopped = true;
}

bool journal_writer_is_idle(const struct journal_writer *w)
{
	return w->is_stopped && !is_anything_under_way(w) && journal_segment_is_idle(w->segment) &&
	       (is_all_durable(w) || is_hopeless(w));
}
