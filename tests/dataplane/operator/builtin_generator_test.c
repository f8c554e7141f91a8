#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct harness *open_generator(const struct param_text *params, uint32_t subtask,
		uint32_t parallelism, const struct harness_snapshot *snapshot)
{
	struct harness *h = harness_create(&(struct harness_config){.op = &builtin_generator,
			.params = params,
			.subtask_index = subtask,
			.parallelism = parallelism});

	if (snapshot != NULL)
		harness_restore(h, snapshot);
	cr_assert_eq(harness_open(h), 0, "%s", harness_error(h));
	return h;
}

static void run(struct harness *h, uint32_t batch)
{
	do
		harness_set_room(h, 512);
	while (harness_poll(h, batch) == WEIR_POLL_MORE);
}

static const struct counted_record *records_of(const struct harness *h, uint32_t *count)
{
	return (const struct counted_record *)(const void *)harness_output(h, count, NULL);
}

Test(generator, the_subtasks_make_exactly_the_records_asked_for)
{
	const struct param_text params[] = {{"records", "1003"}, {"keys", "10"}, {NULL, NULL}};
	uint32_t total = 0, count;

	for (uint32_t i = 0; i < 4; i++) {
		struct harness *h = open_generator(params, i, 4, NULL);

		run(h, 100);
		const struct counted_record *r = records_of(h, &count);
		for (uint32_t j = 0; j < count; j++) {
			cr_assert_lt(r[j].key, 10);
			cr_assert_eq(r[j].value, 1);
		}
		total += count;
		harness_destroy(h);
	}
	cr_expect_eq(total, 1003);
}

Test(generator, each_subtask_and_each_seed_makes_other_records)
{
	const struct param_text one[] = {{"records", "0"}, {"keys", "1048576"}, {NULL, NULL}};
	const struct param_text two[] = {{"seed", "2"}, {"keys", "1048576"}, {NULL, NULL}};
	struct harness *a = open_generator(one, 0, 2, NULL), *b = open_generator(one, 1, 2, NULL),
		       *c = open_generator(two, 0, 2, NULL);
	uint32_t count;

	harness_poll(a, 64);
	harness_poll(b, 64);
	harness_poll(c, 64);
	cr_expect_neq(memcmp(records_of(a, &count), records_of(b, &count), 1024), 0);
	cr_expect_neq(memcmp(records_of(a, &count), records_of(c, &count), 1024), 0);
	harness_destroy(a);
	harness_destroy(b);
	harness_destroy(c);
}

static void expect_replay(const struct param_text *params)
{
	struct harness *whole = open_generator(params, 0, 1, NULL);
	struct harness *first = open_generator(params, 0, 1, NULL);
	uint32_t count, before, after;

	run(whole, 512);
	for (int i = 0; i < 5; i++)
		harness_poll(first, 77);
	struct harness_snapshot *s = harness_save(first, 1);
	harness_poll(first, 512); /* lost in the crash */
	struct harness *second = open_generator(params, 0, 1, s);
	run(second, 13);

	const struct counted_record *r = records_of(whole, &count);
	before = 5 * 77;
	const struct counted_record *rest = records_of(second, &after);
	cr_assert_eq(before + after, count);
	cr_expect_eq(memcmp(records_of(first, &before), r, 5 * 77 * sizeof(*r)), 0);
	cr_expect_eq(memcmp(rest, r + 5 * 77, after * sizeof(*r)), 0);
	harness_snapshot_free(s);
	harness_destroy(whole);
	harness_destroy(first);
	harness_destroy(second);
}

Test(generator, a_replay_from_a_checkpoint_makes_the_same_records)
{
	const struct param_text masked[] = {{"records", "5000"}, {"keys", "1024"}, {NULL, NULL}};
	const struct param_text scaled[] = {{"records", "5000"}, {"keys", "1000"}, {NULL, NULL}};
	const struct param_text zipf[] = {{"records", "5000"}, {"keys", "1000"},
			{"distribution", "zipf"}, {NULL, NULL}};

	expect_replay(masked);
	expect_replay(scaled);
	expect_replay(zipf);
}

Test(generator, uniform_keys_come_equally_often)
{
	const struct param_text params[] = {{"records", "160000"}, {"keys", "12"}, {NULL, NULL}};
	struct harness *h = open_generator(params, 0, 1, NULL);
	uint32_t seen[12] = {0}, count;

	run(h, 512);
	const struct counted_record *r = records_of(h, &count);
	for (uint32_t i = 0; i < count; i++)
		seen[r[i].key]++;
	for (int k = 0; k < 12; k++)
		cr_expect(seen[k] > 12800 && seen[k] < 13900, "key %d came %u times", k, seen[k]);
	harness_destroy(h);
}

static void expect_zipf(const char *exponent, const double *shares, uint32_t share_count)
{
	const struct param_text params[] = {{"records", "400000"}, {"keys", "100"},
			{"distribution", "zipf"}, {"exponent", exponent}, {NULL, NULL}};
	struct harness *h = open_generator(params, 0, 1, NULL);
	uint32_t seen[100] = {0}, count;

	run(h, 512);
	const struct counted_record *r = records_of(h, &count);
	for (uint32_t i = 0; i < count; i++) {
		cr_assert_lt(r[i].key, 100);
		seen[r[i].key]++;
	}
	for (uint32_t k = 0; k < share_count; k++) {
		double share = seen[k] / (double)count;

		cr_expect(share > shares[k] * 0.97 && share < shares[k] * 1.03,
				"exponent %s, key %u: %f, expected %f", exponent, k, share,
				shares[k]);
	}
	harness_destroy(h);
}

Test(generator, zipf_keys_follow_the_law)
{
	/* 1 / (k^s x sum of i^-s over 1..100) */
	const double one[] = {0.192776, 0.096388, 0.064259, 0.048194};
	const double two[] = {0.611628, 0.152907, 0.067959};
	const double half[] = {0.053789, 0.038035, 0.031055};

	expect_zipf("1.0", one, 4);
	expect_zipf("2", two, 3);
	expect_zipf("0.5", half, 3);
}

Test(generator, a_rate_is_kept_without_sleeping)
{
	const struct param_text params[] = {{"rate", "1000"}, {NULL, NULL}};
	struct harness *h = open_generator(params, 0, 1, NULL);
	uint32_t count;

	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_MORE);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_IDLE);
	cr_expect_eq(harness_not_before(h), 1000000000 + 1000000);
	harness_set_now(h, 1000000000 + 50000000);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_MORE);
	records_of(h, &count);
	cr_expect_eq(count, 51);
	harness_destroy(h);
}

Test(generator, one_key_is_possible)
{
	const struct param_text params[] = {{"keys", "1"}, {NULL, NULL}};
	struct harness *h = open_generator(params, 0, 1, NULL);
	uint32_t count;

	harness_poll(h, 10);
	for (uint32_t i = 0; i < 10; i++)
		cr_expect_eq(records_of(h, &count)[i].key, 0);
	harness_destroy(h);
}

Test(generator, a_skew_that_makes_no_sense_is_refused)
{
	const struct param_text params[] = {
			{"distribution", "zipf"}, {"exponent", "-1"}, {NULL, NULL}};
	struct harness *h = harness_create(
			&(struct harness_config){.op = &builtin_generator, .params = params});

	cr_expect_not_null(strstr(harness_error(h), "exponent"));
	harness_destroy(h);
}
