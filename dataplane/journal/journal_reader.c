#include "dataplane/journal/journal_reader.h"

#include "dataplane/base/check.h"

#include <string.h>

static const struct journal_segment_entry *segment_of(const struct journal_reader *r)
{
	return &r->directory->segments[r->segment];
}

static bool is_last(const struct journal_reader *r)
{
	return r->segment + 1 == r->directory->count;
}

/* The last one that begins at or before it. */
static uint32_t segment_with(const struct journal_directory *d, uint64_t sequence)
{
	uint32_t i = d->count - 1;

	while (i > 0 && d->segments[i].first > sequence)
		i--;
	return i;
}

void journal_reader_begin(struct journal_reader *r, struct journal_io *io,
		const struct journal_directory *d, void *buffer, uint32_t buffer_bytes,
		uint64_t from)
{
	CHECK(buffer_bytes >= JOURNAL_BLOCK_BYTES_MAX);
	*r = (struct journal_reader){
			.io = io,
			.directory = d,
			.buffer = buffer,
			.buffer_bytes = buffer_bytes,
			.phase = d->count == 0 ? JOURNAL_READ_OVER : JOURNAL_READ_OPEN,
			.file = -1,
			.from = from,
			.sequence = from,
	};
	if (d->count == 0)
		return;
	r->segment = segment_with(d, from);
	r->sequence = segment_of(r)->first;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void more_from(struct journal_reader *r, uint64_t offset)
{
	r->offset = offset;
	r->phase = JOURNAL_READ_MORE;
}

/* What is at `at` is no block that belongs there. */
static void end_segment(struct journal_reader *r, const char *text)
{
	if (!is_last(r)) {
		journal_fail(r->io, -EBADMSG,
				"journal %.300s is damaged at %llu: %s; the records from %llu to "
				"%llu are lost",
				r->path, (unsigned long long)(r->offset + r->at), text,
				(unsigned long long)r->sequence,
				(unsigned long long)segment_of(r)[1].first - 1);
		return;
	}
	r->is_tail = true;
	r->phase = JOURNAL_READ_TAIL;
}

static void begin_block(struct journal_reader *r, const struct journal_block_head *head)
{
	r->block = *head;
	r->taken_count = 0;
	r->taken_bytes = 0;
	r->phase = JOURNAL_READ_RECORDS;
	if (r->sequence < r->from) {
		struct weir_batch before;
		uint64_t skipped = r->from - r->sequence;

		journal_records(r->buffer + r->at + JOURNAL_BLOCK_HEAD_BYTES, head->count,
				skipped < head->count ? (uint32_t)skipped : head->count, &before);
		journal_reader_take(r, &before);
	}
}

static void look_at_block(struct journal_reader *r)
{
	const uint8_t *bytes = r->buffer + r->at;
	uint32_t left = r->filled - r->at;
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;

	if (!is_last(r) && r->sequence == segment_of(r)[1].first) {
		r->phase = JOURNAL_READ_CLOSE;
		return;
	}
	bool is_partly_here = left < JOURNAL_BLOCK_HEAD_BYTES ||
			      (journal_decode_head(&head, bytes, left, text) == 0 &&
					      journal_block_bytes(head.bytes) > left);
	if (is_partly_here && !r->is_end_of_file) {
		more_from(r, r->offset + r->at);
		return;
	}
	if (journal_check_block(&head, bytes, left, r->directory->record_bytes_max, text) != 0) {
		end_segment(r, text);
	} else if (head.ordinal != segment_of(r)->ordinal || head.sequence != r->sequence) {
		end_segment(r, "a block of another place");
	} else {
		begin_block(r, &head);
	}
}

static void look_at_tail(struct journal_reader *r)
{
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;

	for (; r->at < r->filled; r->at += JOURNAL_ALIGN_BYTES) {
		if (journal_decode_head(&head, r->buffer + r->at, r->filled - r->at, text) != 0 ||
				head.ordinal != segment_of(r)->ordinal ||
				head.durable <= r->sequence)
			continue;
		journal_fail(r->io, -EBADMSG,
				"journal %.300s is damaged: record %llu is not there, and a block "
				"at %llu says that it was",
				r->path, (unsigned long long)r->sequence,
				(unsigned long long)(r->offset + r->at));
		return;
	}
	if (r->is_end_of_file)
		r->phase = JOURNAL_READ_CLOSE;
	else
		more_from(r, r->offset + r->filled);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void ask(struct journal_reader *r, enum store_op op)
{
	struct store_request request = {.op = op, .file = r->file};

	if (op == STORE_OPEN) {
		journal_segment_path(
				r->directory, segment_of(r)->ordinal, r->path, sizeof(r->path));
		request.flags = STORE_DIRECT;
		request.path = r->path;
	} else if (op == STORE_READ) {
		request.flags = STORE_DIRECT;
		request.room = r->buffer;
		request.size = r->buffer_bytes;
		request.offset = r->offset;
	}
	r->is_busy = journal_ask(r->io, JOURNAL_READER, 0, &request);
}

static void end_file(struct journal_reader *r)
{
	r->file = -1;
	if (r->is_tail || is_last(r) || r->is_stopped) {
		r->phase = JOURNAL_READ_OVER;
		return;
	}
	r->segment++;
	r->phase = JOURNAL_READ_OPEN;
}

void journal_reader_finish(struct journal_reader *r, enum store_op op, int64_t result)
{
	r->is_busy = false;
	if (op == STORE_CLOSE) {
		end_file(r);
	} else if (result < 0) {
		journal_fail(r->io, (int)result, "journal: %s %.300s: %s", store_op_name(op),
				r->path, strerrordesc_np((int)-result));
	} else if (op == STORE_OPEN) {
		r->file = (int32_t)result;
		more_from(r, JOURNAL_ALIGN_BYTES);
	} else {
		CHECK(op == STORE_READ);
		r->filled = (uint32_t)result;
		r->at = 0;
		r->is_end_of_file = r->filled < r->buffer_bytes;
		r->phase = r->is_tail ? JOURNAL_READ_TAIL : JOURNAL_READ_BLOCK;
	}
}

static void go_on(struct journal_reader *r)
{
	switch (r->phase) {
	case JOURNAL_READ_OPEN:
		ask(r, STORE_OPEN);
		break;
	case JOURNAL_READ_MORE:
		ask(r, STORE_READ);
		break;
	case JOURNAL_READ_BLOCK:
		look_at_block(r);
		break;
	case JOURNAL_READ_TAIL:
		look_at_tail(r);
		break;
	case JOURNAL_READ_CLOSE:
		ask(r, STORE_CLOSE);
		break;
	case JOURNAL_READ_RECORDS:
	case JOURNAL_READ_OVER:
		break;
	}
}

uint32_t journal_reader_step(struct journal_reader *r)
{
	enum journal_reader_phase before = r->phase;

	if (r->is_busy)
		return 0;
	if (r->is_stopped || r->io->failure != 0) {
		if (r->file >= 0)
			ask(r, STORE_CLOSE);
		return 0;
	}
	go_on(r);
	return r->phase != before || r->is_busy;
}

/* ---- records --------------------------------------------------------------------------------- */

void journal_records(
		const uint8_t *at, uint32_t count, uint32_t count_max, struct weir_batch *batch)
{
	const uint8_t *end = at;

	*batch = (struct weir_batch){.data = at, .count = count < count_max ? count : count_max};
	for (uint32_t i = 0; i < batch->count; i++) {
		uint32_t size;

		end = weir_record_at(end, &size);
		end += size;
	}
	batch->data_bytes = (uint32_t)(end - at);
}

bool journal_reader_next(struct journal_reader *r, uint32_t count_max, struct weir_batch *batch)
{
	if (r->phase == JOURNAL_READ_BLOCK)
		look_at_block(r);
	if (r->phase != JOURNAL_READ_RECORDS || r->is_stopped || count_max == 0)
		return false;
	journal_records(r->buffer + r->at + JOURNAL_BLOCK_HEAD_BYTES + r->taken_bytes,
			r->block.count - r->taken_count, count_max, batch);
	return true;
}

void journal_reader_take(struct journal_reader *r, const struct weir_batch *batch)
{
	r->taken_count += batch->count;
	r->taken_bytes += batch->data_bytes;
	r->sequence += batch->count;
	CHECK(r->taken_count <= r->block.count && r->phase == JOURNAL_READ_RECORDS);
	if (r->taken_count < r->block.count)
		return;
	CHECK(r->taken_bytes == r->block.bytes);
	r->at += journal_block_bytes(r->block.bytes);
	if (r->at > r->filled)
		r->at = r->filled;
	r->phase = JOURNAL_READ_BLOCK;
}

/* ---- the end --------------------------------------------------------------------------------- */

void journal_reader_stop(struct journal_reader *r)
{
	r->is_stopped = true;
}

bool journal_reader_is_idle(const struct journal_reader *r)
{
	return !r->is_busy && r->file < 0;
}
