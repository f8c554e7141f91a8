#include "dataplane/wire/record.h"

#include <errno.h>
#include <stdlib.h>

struct record_reader {
	struct record_reader_config config;

	/* The buffer that was fed, and how far it has been read. */
	const uint8_t *data;
	uint32_t size_bytes, offset;

	/* What peek answered and advance has not left behind. */
	bool has_peeked;
	bool is_whole; /* the scratch holds a whole record, which comes first */
	struct weir_batch peeked;

	/* A record that spans, prefix included. */
	uint32_t scratch_bytes;
	uint8_t *scratch;
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

bool record_write(struct buf *b, const uint8_t *record, uint32_t record_bytes, uint32_t *done)
{
	uint32_t take = smaller(record_bytes - *done, b->capacity_bytes - b->size_bytes);

	if (*done == 0 && take > 0 && b->first_record == BUF_NO_RECORD)
		b->first_record = b->size_bytes;
	memcpy(b->data + b->size_bytes, record + *done, take);
	b->size_bytes += take;
	*done += take;
	return *done == record_bytes;
}

int record_reader_create(struct record_reader **out, const struct record_reader_config *config)
{
	bool is_variable = config->record_bytes == 0;

	if (is_variable && (config->record_bytes_max == 0 || config->record_bytes_max > INT32_MAX))
		return -EINVAL;

	struct record_reader *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->config = *config;
	if (is_variable) {
		r->scratch = malloc(RECORD_PREFIX_BYTES + (size_t)config->record_bytes_max);
		if (r->scratch == NULL) {
			free(r);
			return -ENOMEM;
		}
	}
	*out = r;
	return 0;
}

/* Adds to the scratch until it holds `wanted` bytes or the buffer ends. */
static bool fill_scratch(struct record_reader *r, uint32_t wanted)
{
	uint32_t missing = wanted > r->scratch_bytes ? wanted - r->scratch_bytes : 0;
	uint32_t take = smaller(missing, r->size_bytes - r->offset);

	memcpy(r->scratch + r->scratch_bytes, r->data + r->offset, take);
	r->scratch_bytes += take;
	r->offset += take;
	return take == missing;
}

/* Goes on with the record that the last buffer ended in. */
static int continue_record(struct record_reader *r)
{
	uint32_t bytes;

	if (!fill_scratch(r, RECORD_PREFIX_BYTES))
		return 0;
	memcpy(&bytes, r->scratch, sizeof(bytes));
	if (bytes > r->config.record_bytes_max)
		return -EPROTO;
	r->is_whole = fill_scratch(r, RECORD_PREFIX_BYTES + bytes);
	return 0;
}

int record_reader_feed(struct record_reader *r, const struct buf *b)
{
	CHECK(r->offset == r->size_bytes && !r->is_whole);
	if (b->size_bytes > b->capacity_bytes)
		return -EPROTO;
	if (r->config.record_bytes != 0 && b->size_bytes % r->config.record_bytes != 0)
		return -EPROTO;

	r->data = b->data;
	r->size_bytes = b->size_bytes;
	r->offset = 0;
	r->has_peeked = false;
	if (r->scratch_bytes > 0) {
		int rc = continue_record(r);
		if (rc != 0)
			return rc;
	}

	uint32_t first = r->offset < r->size_bytes ? r->offset : BUF_NO_RECORD;
	return b->first_record == first ? 0 : -EPROTO;
}

/* Counts whole variable records from the offset on. */
static int walk(struct record_reader *r, uint32_t records_max)
{
	const uint8_t *from = r->data + r->offset;
	uint32_t left = r->size_bytes - r->offset;
	uint32_t count = 0, at = 0;

	while (count < records_max && left - at >= RECORD_PREFIX_BYTES) {
		uint32_t bytes;

		memcpy(&bytes, from + at, sizeof(bytes));
		if (bytes > r->config.record_bytes_max)
			return -EPROTO;
		if (bytes > left - at - RECORD_PREFIX_BYTES)
			break;
		at += RECORD_PREFIX_BYTES + bytes;
		count++;
	}
	if (count == 0) {
		(void)fill_scratch(r, left);
		return 0;
	}
	r->peeked = (struct weir_batch){.data = from, .count = count, .data_bytes = at};
	return 1;
}

int record_reader_peek(struct record_reader *r, uint32_t records_max, struct weir_batch *out)
{
	uint32_t record_bytes = r->config.record_bytes;

	CHECK(records_max > 0);
	if (!r->has_peeked) {
		if (r->is_whole) {
			r->peeked = (struct weir_batch){.data = r->scratch,
					.count = 1,
					.data_bytes = r->scratch_bytes};
		} else if (r->offset == r->size_bytes) {
			return 0;
		} else if (record_bytes != 0) {
			uint32_t left = (r->size_bytes - r->offset) / record_bytes;
			uint32_t count = smaller(left, records_max);

			r->peeked = (struct weir_batch){r->data + r->offset, count, record_bytes,
					count * record_bytes};
		} else {
			int rc = walk(r, records_max);
			if (rc <= 0)
				return rc;
		}
		r->has_peeked = true;
	}
	*out = r->peeked;
	return 1;
}

/* Bytes of the first `count` records of the last peek. */
static uint32_t bytes_of(const struct weir_batch *batch, uint32_t count)
{
	uint32_t at = 0;

	if (batch->record_bytes != 0)
		return count * batch->record_bytes;
	if (count == batch->count)
		return batch->data_bytes;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes;

		memcpy(&bytes, batch->data + at, sizeof(bytes));
		at += RECORD_PREFIX_BYTES + bytes;
	}
	return at;
}

void record_reader_advance(struct record_reader *r, uint32_t count)
{
	CHECK(r->has_peeked && count <= r->peeked.count);
	if (count == 0)
		return;
	if (r->is_whole) {
		r->is_whole = false;
		r->scratch_bytes = 0;
		r->has_peeked = false;
		return;
	}

	uint32_t bytes = bytes_of(&r->peeked, count);
	r->offset += bytes;
	r->peeked.data += bytes;
	r->peeked.data_bytes -= bytes;
	r->peeked.count -= count;
	r->has_peeked = r->peeked.count > 0;
}

uint32_t record_reader_offset(const struct record_reader *r)
{
	return r->offset;
}

const uint8_t *record_reader_partial(const struct record_reader *r, uint32_t *bytes)
{
	*bytes = r->scratch_bytes;
	return r->scratch;
}

void record_reader_destroy(struct record_reader *r)
{
	if (r == NULL)
		return;
	free(r->scratch);
	free(r);
}
