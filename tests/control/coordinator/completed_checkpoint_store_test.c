#include "control/coordinator/completed_checkpoint_store.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

/* "c" checkpoint, "s" savepoint, "y" synchronous savepoint, "u" unclaimed. */
static struct completed_checkpoint *make(int64_t id, char kind)
{
	struct completed_checkpoint *c;

	completed_checkpoint_create(&c, id, "there");
	if (kind == 'c')
		c->properties = checkpoint_properties_checkpoint(KIND_CHECKPOINT, RETAIN_NEVER);
	else if (kind == 'u')
		c->properties = checkpoint_properties_restored(CLAIM_MODE_NO_CLAIM, RETAIN_NEVER);
	else
		c->properties = checkpoint_properties_savepoint(
				kind == 's' ? KIND_SAVEPOINT : KIND_SAVEPOINT_SUSPEND,
				FORMAT_NATIVE, false);
	return c;
}

/* Adds checkpoints 1, 2, 3 ... of these kinds, as if all had been recovered. */
static struct completed_checkpoint_store *fill(uint32_t retained_count, const char *kinds)
{
	struct completed_checkpoint_store *s;

	completed_checkpoint_store_create(&s, retained_count);
	for (int64_t i = 0; kinds[i] != '\0'; i++)
		cr_assert(completed_checkpoint_store_add(s, make(i + 1, kinds[i])));
	return s;
}

/* The ids that leave, and those that stay. */
static void expect_walk(uint32_t retained_count, const char *kinds, const char *expected)
{
	struct completed_checkpoint_store *s = fill(retained_count, kinds);
	struct completed_checkpoint *out;
	char text[64] = "";

	while ((out = completed_checkpoint_store_subsume(s)) != NULL) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld ",
				(long long)out->id);
		completed_checkpoint_destroy(out);
	}
	strcat(text, "| ");
	for (uint32_t i = 0; completed_checkpoint_store_at(s, i) != NULL; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld ",
				(long long)completed_checkpoint_store_at(s, i)->id);
	cr_expect(eq(str, text, (char *)expected), "%s with %u retained", kinds, retained_count);
	completed_checkpoint_store_destroy(s);
}

Test(completed_checkpoint_store, the_oldest_leave_until_as_many_as_wanted_are_left)
{
	expect_walk(1, "c", "| 1 ");
	expect_walk(1, "ccc", "1 2 | 3 ");
	expect_walk(2, "ccc", "1 | 2 3 ");
	expect_walk(3, "ccc", "| 1 2 3 ");
	expect_walk(0, "cc", "1 | 2 ");
}

Test(completed_checkpoint_store, the_newest_checkpoint_stays_behind_a_savepoint)
{
	expect_walk(1, "cs", "| 1 2 ");
	expect_walk(1, "ccs", "1 | 2 3 ");
	expect_walk(1, "us", "1 | 2 ");
	expect_walk(1, "uc", "1 | 2 ");
}

Test(completed_checkpoint_store, the_walk_goes_past_what_must_stay)
{
	/* 1 is the newest checkpoint: it stays, the savepoints behind it go. */
	expect_walk(1, "csss", "2 3 | 1 4 ");
	expect_walk(2, "csss", "2 3 | 1 4 ");
	expect_walk(3, "csss", "2 | 1 3 4 ");
}

Test(completed_checkpoint_store, behind_a_synchronous_savepoint_nothing_must_stay)
{
	expect_walk(1, "cy", "1 | 2 ");
	expect_walk(1, "ccy", "1 2 | 3 ");
}

Test(completed_checkpoint_store, keeps_the_order_of_ids_and_refuses_one_twice)
{
	struct completed_checkpoint_store *s = fill(9, "");
	struct completed_checkpoint *twin = make(5, 'c');

	cr_assert(completed_checkpoint_store_add(s, make(7, 'c')));
	cr_assert(completed_checkpoint_store_add(s, make(5, 'c')));
	cr_assert(completed_checkpoint_store_add(s, make(6, 's')));
	cr_assert(not(completed_checkpoint_store_add(s, twin)));
	cr_assert(eq(i64, completed_checkpoint_store_at(s, 0)->id, 5));
	cr_assert(eq(i64, completed_checkpoint_store_at(s, 1)->id, 6));
	cr_assert(eq(i64, completed_checkpoint_store_latest_id(s), 7));
	cr_assert(eq(i64, completed_checkpoint_store_find(s, 6)->id, 6));
	cr_assert(eq(ptr, (void *)completed_checkpoint_store_find(s, 8), NULL));
	completed_checkpoint_destroy(twin);
	completed_checkpoint_store_destroy(s);
}

Test(completed_checkpoint_store, latest_is_0_when_empty_and_lowest_counts_no_savepoint)
{
	struct completed_checkpoint_store *s = fill(9, "");

	cr_assert(eq(i64, completed_checkpoint_store_latest_id(s), 0));
	cr_assert(eq(i64, completed_checkpoint_store_lowest_id(s), 0));
	completed_checkpoint_store_destroy(s);
	s = fill(9, "suyc");
	cr_assert(eq(i64, completed_checkpoint_store_lowest_id(s), 4));
	cr_assert(eq(i64, completed_checkpoint_store_latest_id(s), 4));
	completed_checkpoint_store_destroy(s);
}
