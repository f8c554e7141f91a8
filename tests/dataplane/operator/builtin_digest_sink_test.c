#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

static struct harness *open_sink(uint32_t record_bytes)
{
	struct harness *h = harness_create(&(struct harness_config){
			.op = &builtin_digest_sink, .in_record_bytes = record_bytes});

	cr_assert_eq(harness_open(h), 0);
	return h;
}

Test(digest_sink, the_digest_does_not_depend_on_the_order)
{
	const struct counted_record there[3] = {{1, 10}, {2, 20}, {3, 30}};
	const struct counted_record back[3] = {{3, 30}, {2, 20}, {1, 10}};
	struct harness *a = open_sink(16), *b = open_sink(16);

	harness_process_all(a, there, 3);
	harness_process_all(b, back, 3);
	cr_expect_eq(harness_counter(a, "records"), 3);
	cr_expect_eq(harness_counter(a, "sum_of_values"), 60);
	cr_expect_eq(harness_counter(a, "digest_sum"), harness_counter(b, "digest_sum"));
	cr_expect_eq(harness_counter(a, "digest_xor"), harness_counter(b, "digest_xor"));
	harness_destroy(a);
	harness_destroy(b);
}

Test(digest_sink, another_value_and_a_record_twice_change_the_digest)
{
	const struct counted_record one[2] = {{1, 10}, {2, 20}};
	const struct counted_record other[2] = {{1, 10}, {2, 21}};
	struct harness *a = open_sink(16), *b = open_sink(16), *c = open_sink(16);

	harness_process_all(a, one, 2);
	harness_process_all(b, other, 2);
	harness_process_all(c, one, 2);
	harness_process_all(c, one, 2);
	cr_expect_neq(harness_counter(a, "digest_sum"), harness_counter(b, "digest_sum"));
	cr_expect_neq(harness_counter(a, "digest_sum"), harness_counter(c, "digest_sum"));
	harness_destroy(a);
	harness_destroy(b);
	harness_destroy(c);
}

Test(digest_sink, records_of_any_length_are_told_apart)
{
	const uint8_t ab_c[] = {2, 0, 0, 0, 'a', 'b', 1, 0, 0, 0, 'c'};
	const uint8_t a_bc[] = {1, 0, 0, 0, 'a', 2, 0, 0, 0, 'b', 'c'};
	struct harness *a = open_sink(0), *b = open_sink(0);

	cr_expect_eq(harness_process_bytes(a, ab_c, 2, sizeof(ab_c)), 2);
	cr_expect_eq(harness_process_bytes(b, a_bc, 2, sizeof(a_bc)), 2);
	cr_expect_neq(harness_counter(a, "digest_sum"), harness_counter(b, "digest_sum"));
	harness_destroy(a);
	harness_destroy(b);
}

Test(digest_sink, the_digest_goes_on_from_a_checkpoint)
{
	const struct counted_record all[2] = {{1, 10}, {2, 20}};
	struct harness *whole = open_sink(16), *first = open_sink(16);

	harness_process_all(whole, all, 2);
	harness_process_all(first, all, 1);
	struct harness_snapshot *s = harness_save(first, 1);
	struct harness *second = harness_create(&(struct harness_config){
			.op = &builtin_digest_sink, .in_record_bytes = 16});
	harness_restore(second, s);
	cr_assert_eq(harness_open(second), 0);
	harness_process_all(second, all + 1, 1);
	cr_expect_eq(harness_counter(whole, "digest_sum"), harness_counter(second, "digest_sum"));
	cr_expect_eq(harness_counter(whole, "digest_xor"), harness_counter(second, "digest_xor"));
	cr_expect_eq(harness_counter(second, "records"), 2);
	harness_snapshot_free(s);
	harness_destroy(whole);
	harness_destroy(first);
	harness_destroy(second);
}
