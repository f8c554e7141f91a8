#include "dataplane/wire/record.h"

#include "dataplane/base/prng.h"

#include <criterion/criterion.h>
#include <errno.h>

enum { CAPACITY = 256, RECORD_MAX = 5000 };

static struct buf_pool *pool_of(uint32_t count)
{
	struct buf_pool *pool;

	cr_assert_eq(buf_pool_from_heap(&pool, CAPACITY, count), 0);
	return pool;
}

static struct record_reader *reader_of(uint32_t record_bytes, uint32_t record_bytes_max)
{
	struct record_reader_config config = {record_bytes, record_bytes_max};
	struct record_reader *r;

	cr_assert_eq(record_reader_create(&r, &config), 0);
	return r;
}

static struct buf *buf_with(struct buf_pool *pool, const void *data, uint32_t bytes, uint32_t first)
{
	struct buf *b = buf_alloc(pool);

	memcpy(b->data, data, bytes);
	b->size_bytes = bytes;
	b->first_record = first;
	return b;
}

/* A record of `bytes` bytes, prefix included, that says which one it is in every byte. */
static uint32_t make_record(uint8_t *record, uint32_t number, uint32_t bytes)
{
	memcpy(record, &bytes, sizeof(bytes));
	for (uint32_t i = 0; i < bytes; i++)
		record[4 + i] = (uint8_t)(number * 31 + i);
	return 4 + bytes;
}

static uint32_t size_for(struct prng *p)
{
	switch (prng_below(p, 4)) {
	case 0:
		return (uint32_t)prng_below(p, RECORD_MAX + 1);
	case 1:
		return CAPACITY - 12 + (uint32_t)prng_below(p, 16);
	default:
		return (uint32_t)prng_below(p, 40);
	}
}

/* Reads all that is whole in `b`; checks it against the sizes. */
static uint32_t read_buf(struct record_reader *r, struct buf *b, struct prng *p,
		const uint32_t *sizes, uint32_t next)
{
	uint8_t expected[4 + RECORD_MAX];
	struct weir_batch batch;

	cr_assert_eq(record_reader_feed(r, b), 0);
	while (record_reader_peek(r, 1 + (uint32_t)prng_below(p, 8), &batch) == 1) {
		uint32_t count = (uint32_t)prng_below(p, batch.count + 1);
		const uint8_t *at = batch.data;

		for (uint32_t i = 0; i < count; i++) {
			uint32_t bytes = make_record(expected, next, sizes[next]);

			cr_assert_arr_eq(at, expected, bytes, "record %u", next);
			at += bytes;
			next++;
		}
		cr_assert_leq(at, batch.data + batch.data_bytes);
		record_reader_advance(r, count);
	}
	cr_assert_eq(record_reader_offset(r), b->size_bytes);
	return next;
}

static void round_trip(uint64_t seed)
{
	enum { RECORDS = 300 };
	static uint32_t sizes[RECORDS];
	uint8_t record[4 + RECORD_MAX];
	struct buf_pool *pool = pool_of(2);
	struct record_reader *r = reader_of(0, RECORD_MAX);
	struct prng p;
	uint32_t next = 0, partial;

	prng_seed(&p, seed);
	struct buf *b = buf_alloc(pool);
	for (uint32_t i = 0; i < RECORDS; i++) {
		sizes[i] = size_for(&p);

		uint32_t done = 0, bytes = make_record(record, i, sizes[i]);
		bool is_flushed = prng_below(&p, 5) == 0;
		while (!record_write(b, record, bytes, &done) || is_flushed) {
			next = read_buf(r, b, &p, sizes, next);
			buf_release(b);
			b = buf_alloc(pool);
			if (done == bytes)
				break;
		}
	}
	next = read_buf(r, b, &p, sizes, next);
	buf_release(b);
	cr_assert_eq(next, RECORDS, "seed %lu", seed);
	(void)record_reader_partial(r, &partial);
	cr_assert_eq(partial, 0);
	record_reader_destroy(r);
	buf_pool_destroy(pool);
}

Test(record, variable_records_of_any_size_come_out_as_they_went_in)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		round_trip(seed);
}

Test(record, fixed_records_are_handed_out_in_place_and_at_most_as_many_as_asked)
{
	struct buf_pool *pool = pool_of(1);
	struct record_reader *r = reader_of(8, 0);
	uint64_t data[5] = {10, 11, 12, 13, 14};
	struct buf *b = buf_with(pool, data, sizeof(data), 0);
	struct weir_batch batch;

	cr_assert_eq(record_reader_feed(r, b), 0);
	cr_assert_eq(record_reader_peek(r, 3, &batch), 1);
	cr_assert_eq(batch.data, b->data);
	cr_assert_eq(batch.count, 3);
	cr_assert_eq(batch.record_bytes, 8);
	cr_assert_eq(batch.data_bytes, 24);
	record_reader_advance(r, 1);
	cr_assert_eq(record_reader_peek(r, 3, &batch), 1);
	cr_assert_eq(batch.data, b->data + 8);
	cr_assert_eq(batch.count, 2);
	record_reader_advance(r, 2);
	cr_assert_eq(record_reader_peek(r, 3, &batch), 1);
	cr_assert_eq(batch.data, b->data + 24);
	cr_assert_eq(batch.count, 2);
	record_reader_advance(r, 2);
	cr_assert_eq(record_reader_peek(r, 3, &batch), 0);
	buf_release(b);
	record_reader_destroy(r);
	buf_pool_destroy(pool);
}

Test(record, the_start_of_a_record_that_goes_on_later_is_kept_for_channel_state)
{
	struct buf_pool *pool = pool_of(2);
	struct record_reader *r = reader_of(0, 100);
	uint8_t record[104];
	uint32_t bytes = make_record(record, 7, 20), partial;
	struct buf *head = buf_with(pool, record, 15, 0);
	struct buf *tail = buf_with(pool, record + 15, bytes - 15, BUF_NO_RECORD);
	struct weir_batch batch;

	cr_assert_eq(record_reader_feed(r, head), 0);
	cr_assert_eq(record_reader_peek(r, 1, &batch), 0);
	cr_assert_arr_eq(record_reader_partial(r, &partial), record, 15);
	cr_assert_eq(partial, 15);
	cr_assert_eq(record_reader_feed(r, tail), 0);
	cr_assert_eq(record_reader_peek(r, 1, &batch), 1);
	cr_assert_eq(batch.data_bytes, bytes);
	cr_assert_arr_eq(batch.data, record, bytes);
	record_reader_advance(r, 1);
	(void)record_reader_partial(r, &partial);
	cr_assert_eq(partial, 0);
	buf_release(head);
	buf_release(tail);
	record_reader_destroy(r);
	buf_pool_destroy(pool);
}

/* What feed and the peeks behind it answer for one buffer: 0 or the error. */
static int outcome(struct record_reader *r, struct buf_pool *pool, const void *data, uint32_t bytes,
		uint32_t first)
{
	struct buf *b = buf_with(pool, data, bytes, first);
	struct weir_batch batch;
	int rc = record_reader_feed(r, b);

	while (rc == 0 && (rc = record_reader_peek(r, 512, &batch)) == 1) {
		record_reader_advance(r, batch.count);
		rc = 0;
	}
	buf_release(b);
	return rc;
}

Test(record, half_a_fixed_record_is_refused)
{
	struct buf_pool *pool = pool_of(1);
	struct record_reader *r = reader_of(16, 0);
	uint8_t data[24] = {0};

	cr_assert_eq(outcome(r, pool, data, 24, 0), -EPROTO);
	cr_assert_eq(outcome(r, pool, data, 16, 0), 0);
	record_reader_destroy(r);
	buf_pool_destroy(pool);
}

Test(record, a_record_larger_than_agreed_is_refused_whole_or_spanning)
{
	struct buf_pool *pool = pool_of(1);
	uint32_t sizes[] = {101, 0x7fffffff, 0x80000000, 0xfffffffb, 0xffffffff};
	uint8_t data[64] = {0};

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct record_reader *r = reader_of(0, 100);

		memcpy(data, &sizes[i], 4);
		cr_assert_eq(outcome(r, pool, data, 64, 0), -EPROTO, "size %u", sizes[i]);
		record_reader_destroy(r);

		r = reader_of(0, 100);
		cr_assert_eq(outcome(r, pool, data, 3, 0), 0);
		cr_assert_eq(outcome(r, pool, data + 3, 61, BUF_NO_RECORD), -EPROTO);
		record_reader_destroy(r);
	}
	buf_pool_destroy(pool);
}

Test(record, a_first_record_offset_that_does_not_match_is_refused)
{
	struct buf_pool *pool = pool_of(1);
	uint8_t data[64] = {10};
	struct record_reader *r = reader_of(0, 100);

	cr_assert_eq(outcome(r, pool, data, 12, 0), 0);
	cr_assert_eq(outcome(r, pool, data, 10, 0), -EPROTO);
	record_reader_destroy(r);

	r = reader_of(0, 100);
	cr_assert_eq(outcome(r, pool, data, 14, 4), -EPROTO);
	record_reader_destroy(r);

	r = reader_of(8, 0);
	cr_assert_eq(outcome(r, pool, data, 16, BUF_NO_RECORD), -EPROTO);
	record_reader_destroy(r);
	buf_pool_destroy(pool);
}

Test(record, random_bytes_never_lead_outside_a_buffer)
{
	struct buf_pool *pool = pool_of(1);
	struct prng p;

	prng_seed(&p, 99);
	for (uint32_t i = 0; i < 20000; i++) {
		struct record_reader *r = reader_of(0, 300);
		uint8_t data[CAPACITY];
		int rc = 0;

		for (uint32_t n = 0; n < 4 && rc == 0; n++) {
			uint32_t bytes = (uint32_t)prng_below(&p, CAPACITY + 1);

			for (uint32_t b = 0; b < bytes; b++)
				data[b] = (uint8_t)(prng_below(&p, 3) ? 0 : prng_next(&p));
			rc = outcome(r, pool, data, bytes,
					n == 0 && bytes > 0 ? 0 : BUF_NO_RECORD);
		}
		record_reader_destroy(r);
	}
	buf_pool_destroy(pool);
}
