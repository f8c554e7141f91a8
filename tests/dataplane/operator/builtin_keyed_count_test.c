#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

enum { KEYS = 700 };

static const struct param_text params[] = {{"keys-max", "1000"}, {NULL, NULL}};

static struct harness *open_count(const struct harness_snapshot *snapshot)
{
	struct harness *h = harness_create(&(struct harness_config){.op = &builtin_keyed_count,
			.params = params,
			.in_record_bytes = sizeof(struct counted_record)});

	if (snapshot != NULL)
		harness_restore(h, snapshot);
	cr_assert_eq(harness_open(h), 0);
	return h;
}

/* Key k comes k + 1 times. */
static void feed(struct harness *h, uint32_t keys)
{
	struct counted_record r;

	for (uint32_t k = 0; k < keys; k++) {
		for (uint32_t i = 0; i <= k; i++) {
			r = (struct counted_record){k, 1};
			harness_process_all(h, &r, 1);
		}
	}
}

static void expect_counts(const struct harness *h, uint64_t *seen)
{
	uint32_t count;
	const struct counted_record *r =
			(const struct counted_record *)(const void *)harness_output(
					h, &count, NULL);

	for (uint32_t i = 0; i < count; i++) {
		cr_assert_lt(r[i].key, KEYS);
		cr_expect_eq(r[i].value, r[i].key + 1);
		seen[r[i].key]++;
	}
}

static void expect_each_once(const uint64_t *seen)
{
	for (uint32_t k = 0; k < KEYS; k++)
		cr_expect_eq(seen[k], 1, "key %u came %llu times", k, (unsigned long long)seen[k]);
}

Test(keyed_count, each_key_comes_once_with_its_count)
{
	struct harness *h = open_count(NULL);
	uint64_t seen[KEYS] = {0};

	feed(h, KEYS);
	harness_finish_all(h);
	expect_counts(h, seen);
	expect_each_once(seen);
	harness_destroy(h);
}

Test(keyed_count, a_batch_larger_than_one_lookup_is_counted_whole)
{
	struct counted_record batch[512];
	struct harness *h = open_count(NULL);
	uint32_t count;

	for (uint32_t i = 0; i < 512; i++)
		batch[i] = (struct counted_record){i % 3, 1};
	cr_expect_eq(harness_process(h, batch, 512), 512);
	harness_finish_all(h);
	const struct counted_record *r =
			(const struct counted_record *)(const void *)harness_output(
					h, &count, NULL);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += r[i].value;
	cr_expect_eq(count, 3);
	cr_expect_eq(sum, 512);
	harness_destroy(h);
}

Test(keyed_count, a_checkpoint_amid_the_rows_of_the_end_repeats_and_loses_none)
{
	for (uint32_t room = 1; room < 512; room += 101) {
		struct harness *first = open_count(NULL);
		uint64_t seen[KEYS] = {0};

		feed(first, KEYS);
		harness_set_room(first, room);
		cr_expect_eq(harness_finish(first), false);
		struct harness_snapshot *s = harness_save(first, 1);
		expect_counts(first, seen); /* before the barrier, so downstream has them */

		struct harness *second = open_count(s);
		harness_finish_all(second);
		expect_counts(second, seen);
		expect_each_once(seen);
		harness_snapshot_free(s);
		harness_destroy(first);
		harness_destroy(second);
	}
}

Test(keyed_count, more_keys_than_there_is_room_for_fail_the_task)
{
	struct harness *h = open_count(NULL);
	struct counted_record r;

	for (uint32_t k = 0; k < 1000; k++) {
		r = (struct counted_record){k, 1};
		cr_assert_eq(harness_process(h, &r, 1), 1);
	}
	r.key = 1000;
	cr_expect_eq(harness_process(h, &r, 1), 0);
	cr_expect_not_null(harness_error(h));
	harness_destroy(h);
}
