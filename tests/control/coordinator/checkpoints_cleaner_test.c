#include "control/coordinator/checkpoints_cleaner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void add_subsumed(struct checkpoints_cleaner *c, int64_t id)
{
	struct completed_checkpoint *checkpoint;

	completed_checkpoint_create(&checkpoint, id, "somewhere");
	checkpoints_cleaner_add_subsumed(c, checkpoint);
}

/* The id of what may be deleted; 0: nothing. */
static int64_t take(struct checkpoints_cleaner *c, int64_t lowest_id, const struct id_list *in_use)
{
	struct completed_checkpoint *s = checkpoints_cleaner_take_subsumed(c, lowest_id, in_use);
	int64_t id = s != NULL ? s->id : 0;

	completed_checkpoint_destroy(s);
	return id;
}

/* ST-4: below the lowest that is retained, and not in use. */
Test(checkpoints_cleaner, what_is_needed_stays_wherever_it_stands_in_the_list)
{
	int64_t ids[] = {2, 4};
	const struct id_list in_use = {.count = 2, .ids = ids}, nothing = {0};
	struct checkpoints_cleaner *c;

	checkpoints_cleaner_create(&c);
	for (int64_t id = 1; id <= 6; id++)
		add_subsumed(c, id);
	cr_assert(eq(i64, take(c, 6, &in_use), 1));
	cr_assert(eq(i64, take(c, 6, &in_use), 3));
	cr_assert(eq(i64, take(c, 6, &in_use), 5));
	cr_assert(eq(i64, take(c, 6, &in_use), 0));
	cr_assert(eq(i64, take(c, 6, &nothing), 2));
	cr_assert(eq(i64, take(c, 6, &nothing), 4));
	cr_assert(eq(i64, take(c, 6, &nothing), 0));
	cr_assert(eq(i64, take(c, 7, &nothing), 6));
	checkpoints_cleaner_destroy(c);
}

/* CL-1, RD-3: only deletions of whole checkpoints feed the limit. */
Test(checkpoints_cleaner, deletions_end_in_any_order_and_each_once)
{
	struct checkpoints_cleaner *c;
	const struct deletion stored = {.kind = DELETION_STORED}, late = {.kind = DELETION_LATE};

	checkpoints_cleaner_create(&c);
	checkpoints_cleaner_begin(c, 1, &stored);
	checkpoints_cleaner_begin(c, 2, &late);
	checkpoints_cleaner_begin(c, 3, &stored);
	cr_assert(eq(u32, checkpoints_cleaner_running_count(c), 2));
	cr_assert(eq(u32, checkpoints_cleaner_open_count(c), 3));
	cr_assert(checkpoints_cleaner_end(c, 2));
	cr_assert(eq(u32, checkpoints_cleaner_running_count(c), 2));
	cr_assert(not(checkpoints_cleaner_end(c, 2)));
	cr_assert(checkpoints_cleaner_end(c, 3));
	cr_assert(eq(u32, checkpoints_cleaner_running_count(c), 1));
	cr_assert(checkpoints_cleaner_end(c, 1));
	cr_assert(eq(u32, checkpoints_cleaner_open_count(c), 0));
	checkpoints_cleaner_destroy(c);
}
