#include "control/coordinator/checkpoint_request_decider.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct queued_request *make(
		uint64_t handle, int64_t timestamp_ms, enum checkpoint_kind kind)
{
	struct queued_request *r = calloc(1, sizeof(*r));

	r->handle = handle;
	r->timestamp_ms = timestamp_ms;
	r->properties.kind = kind;
	return r;
}

static struct queued_request *make_periodic(uint64_t handle, int64_t timestamp_ms)
{
	struct queued_request *r = make(handle, timestamp_ms, KIND_CHECKPOINT);

	r->is_periodic = true;
	return r;
}

static struct queued_request *make_forced(uint64_t handle, int64_t timestamp_ms)
{
	struct queued_request *r = make(handle, timestamp_ms, KIND_SAVEPOINT);

	r->properties.is_forced = true;
	return r;
}

/* Takes the head and says whose it is; 0 when the queue is empty. */
static uint64_t take(struct checkpoint_request_decider *d)
{
	struct queued_request *r = checkpoint_request_decider_take(d);
	uint64_t handle = r != NULL ? r->handle : 0;

	queued_request_destroy(r);
	return handle;
}

static void expect_dropped(struct queued_request *r, uint64_t handle)
{
	cr_assert(ne(ptr, r, NULL));
	cr_assert(eq(u64, r->handle, handle));
	queued_request_destroy(r);
}

/* What the decider says; the request, if it let one go, is checked and freed. */
static enum decider_answer choose(struct checkpoint_request_decider *d,
		const struct decider_facts *facts, uint64_t handle)
{
	struct queued_request *r = NULL;
	enum decider_answer answer = checkpoint_request_decider_choose(d, facts, &r);

	cr_assert(eq(int, r != NULL, answer != DECIDER_WAIT));
	if (r != NULL)
		cr_assert(eq(u64, r->handle, handle));
	queued_request_destroy(r);
	return answer;
}

Test(checkpoint_request_decider, savepoints_go_first_then_forced_then_manual_then_older)
{
	struct checkpoint_request_decider *d;
	static const uint64_t expected[] = { 6, 4, 5, 3, 7, 8, 2, 9, 1 };
	struct queued_request *forced = make(5, 9, KIND_CHECKPOINT);

	forced->properties.is_forced = true;
	checkpoint_request_decider_create(&d, 1, 100);
	checkpoint_request_decider_queue(d, make_periodic(1, 0));
	checkpoint_request_decider_queue(d, make(2, 5, KIND_CHECKPOINT));
	checkpoint_request_decider_queue(d, make(3, 4, KIND_FULL_CHECKPOINT));
	checkpoint_request_decider_queue(d, make(4, 9, KIND_SAVEPOINT));
	checkpoint_request_decider_queue(d, forced);
	checkpoint_request_decider_queue(d, make_forced(6, 20));
	checkpoint_request_decider_queue(d, make(8, 4, KIND_CHECKPOINT));
	checkpoint_request_decider_queue(d, make(7, 4, KIND_CHECKPOINT));
	checkpoint_request_decider_queue(d, make_periodic(9, -1));
	for (size_t i = 0; i < 9; i++)
		cr_assert(eq(u64, take(d), expected[i]));
	cr_assert(eq(u64, take(d), 0));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, a_full_queue_drops_its_worst_only_if_that_is_periodic)
{
	struct checkpoint_request_decider *d;

	checkpoint_request_decider_create(&d, 1, 2);
	cr_assert(eq(ptr, checkpoint_request_decider_queue(d, make_periodic(1, 1)), NULL));
	cr_assert(eq(ptr, checkpoint_request_decider_queue(d, make(2, 2, KIND_CHECKPOINT)), NULL));
	/* The new one may itself be the worst. */
	expect_dropped(checkpoint_request_decider_queue(d, make_periodic(3, 3)), 3);
	expect_dropped(checkpoint_request_decider_queue(d, make(4, 4, KIND_CHECKPOINT)), 1);
	expect_dropped(checkpoint_request_decider_queue(d, make_forced(5, 5)), 5);
	cr_assert(eq(u32, checkpoint_request_decider_count(d), 2));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, nothing_starts_while_one_triggers_or_too_much_is_cleaned)
{
	struct checkpoint_request_decider *d;
	struct decider_facts facts = { .is_triggering = true };

	checkpoint_request_decider_create(&d, 2, 10);
	cr_assert(eq(int, (int)choose(d, &(struct decider_facts){ 0 }, 0), DECIDER_WAIT));
	checkpoint_request_decider_queue(d, make_forced(1, 1));
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	facts = (struct decider_facts){ .cleaning_count = 3 };
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	facts.cleaning_count = 2; /* not more than the limit */
	cr_assert(eq(int, (int)choose(d, &facts, 1), DECIDER_ADMIT));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, at_the_limit_only_a_forced_head_starts)
{
	struct checkpoint_request_decider *d;
	struct decider_facts facts = { .pending_count = 2 };

	checkpoint_request_decider_create(&d, 2, 10);
	checkpoint_request_decider_queue(d, make(1, 1, KIND_SAVEPOINT));
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	checkpoint_request_decider_queue(d, make_forced(2, 2));
	cr_assert(eq(int, (int)choose(d, &facts, 2), DECIDER_ADMIT));
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	facts.pending_count = 1;
	cr_assert(eq(int, (int)choose(d, &facts, 1), DECIDER_ADMIT));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, nothing_starts_that_channels_have_no_room_for)
{
	struct checkpoint_request_decider *d;
	struct decider_facts facts = { .is_full = true };

	checkpoint_request_decider_create(&d, 1, 10);
	checkpoint_request_decider_queue(d, make_forced(1, 1));
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	facts.is_full = false;
	cr_assert(eq(int, (int)choose(d, &facts, 1), DECIDER_ADMIT));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, a_periodic_head_inside_the_pause_is_let_go_too_early)
{
	struct checkpoint_request_decider *d;
	struct decider_facts facts = { .now_ns = 99, .pause_end_ns = 100 };

	checkpoint_request_decider_create(&d, 1, 10);
	checkpoint_request_decider_queue(d, make_periodic(1, 1));
	checkpoint_request_decider_queue(d, make_periodic(2, 2));
	cr_assert(eq(int, (int)choose(d, &facts, 1), DECIDER_TOO_EARLY));
	facts.now_ns = 100;
	cr_assert(eq(int, (int)choose(d, &facts, 2), DECIDER_ADMIT));
	/* No pause for those that somebody asked for. */
	facts.now_ns = 0;
	checkpoint_request_decider_queue(d, make(3, 3, KIND_CHECKPOINT));
	cr_assert(eq(int, (int)choose(d, &facts, 3), DECIDER_ADMIT));
	checkpoint_request_decider_destroy(d);
}

Test(checkpoint_request_decider, at_the_limit_a_periodic_head_waits_whatever_the_pause)
{
	struct checkpoint_request_decider *d;
	struct decider_facts facts = { .pending_count = 1, .now_ns = 0, .pause_end_ns = 100 };

	checkpoint_request_decider_create(&d, 1, 10);
	checkpoint_request_decider_queue(d, make_periodic(1, 1));
	cr_assert(eq(int, (int)choose(d, &facts, 0), DECIDER_WAIT));
	cr_assert(eq(u32, checkpoint_request_decider_count(d), 1));
	checkpoint_request_decider_destroy(d);
}
