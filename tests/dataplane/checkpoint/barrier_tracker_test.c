#include "tests/support/barrier_run.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- 16.7: counting ---- */

static const struct barrier_row COUNTING[] = {
		{"first", "", "b5@1", "", 5, 5},
		{"same channel again", "b5@1", "b5@1", "", 5, 5},
		{"last", "b5@0 b5@1", "b5@2", "trigger5", 5, 0},
		{"newer beside older", "b5@0", "b6@0", "", 6, 5},
		{"newer complete", "b5@0 b6@0 b6@1", "b6@2", "trigger6", 6, 0},
		{"older complete", "b5@0 b6@0 b5@1", "b5@2", "trigger5", 6, 6},
		{"older unknown", "b5@0 b5@1 b5@2", "b4@0", "", 5, 0},
		{"announcement", "", "a5@0", "", -1, 0},
		{"cancel, known", "b5@0", "x5@1", "abort5:cancelled", 5, 0},
		{"cancel again", "b5@0 x5@1", "x5@2", "", 5, 0},
		{"cancel, all swallowed", "b5@0 x5@1 b5@2", "b6@0", "", 6, 6},
		{"cancel, aborted and complete", "b5@0 x5@1", "b5@2", "", 5, 0},
		{"cancel, newer", "b4@0 b5@0", "x6@1", "abort4:cancelled abort5:cancelled "
						       "abort6:cancelled", 6, 0},
		{"cancel, older", "b5@0", "x4@1", "", 5, 5},
		{"cancel counts for its own", "b5@0 b6@0 x5@1", "b6@2", "", 6, 6},
		{"end completes the oldest", "b5@0 b5@1", "e@2", "trigger5", 5, 0},
		{"end completes the newest", "b5@0 b5@1 b6@0 b6@1 b7@0", "e@2", "trigger6", 7, 7},
		{"end completes an aborted one", "b5@0 x5@1", "e@2", "", 5, 0},
		{"one channel left, barrier", "e@0 e@1", "b5@2", "trigger5", -1, 0},
		{"one channel left, cancel", "e@0 e@1", "x5@2", "abort5:cancelled", -1, 0},
		{"one channel left, cancel, known", "b5@0 e@0 e@1", "x5@2", "abort5:cancelled", 5,
				0},
		{"one channel left, late cancel", "b5@0 b5@1 b5@2 e@0 e@1", "x5@2", "", 5, 0},
		{"one channel left, known", "b5@0 b5@1 e@0", "e@1", "", 5, 5},
};

Test(barrier_tracker, at_least_once_counts_side_by_side_and_blocks_nothing)
{
	for (size_t i = 0; i < sizeof(COUNTING) / sizeof(COUNTING[0]); i++) {
		const struct barrier_row *row = &COUNTING[i];
		struct barrier_run r;

		barrier_run_open_counting(&r, 3, true);
		barrier_run_expect(&r, row);
	}
}

Test(barrier_tracker, many_channels_are_counted_one_by_one)
{
	char fact[16];
	struct barrier_run r;

	barrier_run_open_counting(&r, 130, true);
	for (int i = 0; i < 129; i++) {
		snprintf(fact, sizeof(fact), "b1@%d", i);
		cr_assert_str_eq(barrier_run_tell(&r, fact), "");
		cr_assert_str_eq(barrier_run_tell(&r, fact), "", "it counts once");
	}
	cr_assert_str_eq(barrier_run_tell(&r, "b1@129"), "trigger1");
	barrier_run_close(&r);
}

static void tell_number(struct barrier_run *r, const char *form, int64_t id, uint32_t channel,
		const char *decisions)
{
	char fact[32];

	snprintf(fact, sizeof(fact), form, id, channel);
	cr_expect_str_eq(barrier_run_tell(r, fact), decisions, "%s: %s", fact, r->text);
}

/* Each completes but every third, which a marker ends. */
static void count_through(struct barrier_run *r, uint32_t channels, int64_t first, int64_t last)
{
	char word[32];

	for (int64_t id = first; id <= last; id++) {
		tell_number(r, "b%" PRId64 "@%u", id, 0, "");
		if (id % 3 == 0) {
			snprintf(word, sizeof(word), "abort%" PRId64 ":cancelled", id);
			tell_number(r, "x%" PRId64 "@%u", id, 1, word);
		}
		for (uint32_t c = 1 + (id % 3 == 0); c + 1 < channels; c++)
			tell_number(r, "b%" PRId64 "@%u", id, c, "");
		snprintf(word, sizeof(word), "trigger%" PRId64, id);
		tell_number(r, "b%" PRId64 "@%u", id, channels - 1, id % 3 == 0 ? "" : word);
	}
}

/* BT-1, BT-3: more than are kept side by side. */
Test(barrier_tracker, checkpoint_after_checkpoint_is_counted_anew)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, true);
	count_through(&r, 3, 1, 120);
	for (int64_t id = 1; id <= 120; id++) { /* over, or never heard of */
		tell_number(&r, "b%" PRId64 "@%u", id, (uint32_t)id % 3, "");
		tell_number(&r, "x%" PRId64 "@%u", id, (uint32_t)id % 3, "");
	}
	cr_expect_str_eq(barrier_run_tell(&r, "b121@0 b122@1 b121@1 b121@1 b122@0"), "");
	cr_expect_str_eq(barrier_run_tell(&r, "b121@2"), "trigger121");
	cr_expect_str_eq(barrier_run_tell(&r, "b123@0 b123@1 e@2"), "trigger123");
	cr_expect_eq(barrier_run_pending(&r), 0);
	barrier_run_close(&r);
}

Test(barrier_tracker, many_channels_are_counted_anew_by_each_checkpoint)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 130, true);
	count_through(&r, 130, 1, 60);
	for (uint32_t c = 0; c < 129; c++) { /* side by side */
		tell_number(&r, "b%" PRId64 "@%u", 61, c, "");
		tell_number(&r, "b%" PRId64 "@%u", 62, 129 - c, "");
	}
	tell_number(&r, "b%" PRId64 "@%u", 61, 129, "trigger61");
	tell_number(&r, "b%" PRId64 "@%u", 62, 0, "trigger62");
	barrier_run_close(&r);
}

/* BT-1: the oldest is dropped for one too many, and nothing else. */
Test(barrier_tracker, what_was_dropped_takes_nothing_from_the_others)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 64, true);
	for (int64_t id = 1; id <= 51; id++)
		tell_number(&r, "b%" PRId64 "@%u", id, 0, "");
	cr_expect_eq(barrier_run_pending(&r), 2);
	for (uint32_t c = 0; c < 63; c++)
		tell_number(&r, "b%" PRId64 "@%u", 2, c, "");
	tell_number(&r, "b%" PRId64 "@%u", 2, 63, "trigger2");
	cr_expect_eq(barrier_handler_pending_count(r.handler), 49);
	barrier_run_close(&r);
}

static struct alignment_metrics metrics_of(const struct barrier_run *r, int64_t id)
{
	return barrier_handler_metrics(r->handler, id, r->now_ns);
}

/* 16.4. */
Test(barrier_tracker, what_is_measured_is_the_newest_whatever_older_ones_come_to)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, true);
	r.wall_ms = 3;
	barrier_run_tell(&r, "b5@0");
	r.now_ns = 10;
	barrier_run_tell(&r, "b6@0 b5@1 b5@2");
	r.now_ns = 30;
	barrier_handler_add_bytes(r.handler, 7);
	cr_expect_eq(metrics_of(&r, 6).alignment_duration_ns, 20);
	cr_expect_eq(metrics_of(&r, 6).bytes_processed, 7);
	barrier_run_tell(&r, "x7@0");
	cr_expect_eq(metrics_of(&r, 6).start_delay_ns, 0, "it is the newest no more");
	barrier_run_tell(&r, "e@0 e@1");
	barrier_run_tell(&r, "b8@2"); /* BT-2 */
	cr_expect_eq(metrics_of(&r, 8).start_delay_ns, 3000000);
	barrier_run_tell(&r, "x9@2");
	cr_expect_eq(metrics_of(&r, 8).start_delay_ns, 0);
	barrier_run_close(&r);
}

Test(barrier_tracker, a_marker_for_what_was_not_heard_of_is_the_newest)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, true);
	r.wall_ms = 3;
	barrier_run_tell(&r, "b5@0 b5@1 b5@2");
	cr_expect_eq(metrics_of(&r, 5).start_delay_ns, 3000000);
	barrier_run_tell(&r, "x6@0");
	cr_expect_eq(metrics_of(&r, 5).start_delay_ns, 0);
	barrier_run_close(&r);
}

Test(barrier_tracker, what_is_aborted_is_not_measured_and_others_are)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, true);
	r.wall_ms = 3;
	barrier_run_tell(&r, "b5@0 b6@0 x5@1");
	cr_expect_eq(metrics_of(&r, 6).start_delay_ns, 3000000);
	barrier_run_tell(&r, "x6@1");
	cr_expect_eq(metrics_of(&r, 6).start_delay_ns, 0);
	barrier_run_close(&r);
}

/* BT-6 with the feature off: as many as are counted. */
Test(barrier_tracker, without_finished_tasks_an_end_aborts_fifty)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 2, false);
	for (int64_t id = 1; id <= 50; id++)
		tell_number(&r, "b%" PRId64 "@%u", id, 0, "");
	cr_expect_eq(barrier_handler_pending_count(r.handler), 50);
	barrier_run_tell(&r, "e@1");
	cr_expect_eq(barrier_handler_pending_count(r.handler), 0);
	barrier_run_close(&r);
}

/* BT-6 with the feature off. */
Test(barrier_tracker, without_finished_tasks_an_end_aborts_all_that_is_counted)
{
	struct barrier_run r;

	barrier_run_open_counting(&r, 3, false);
	barrier_run_tell(&r, "b5@0 b6@1");
	cr_assert_str_eq(barrier_run_tell(&r, "e@2"), "abort5:end-of-stream abort6:end-of-stream");
	cr_assert_eq(barrier_run_pending(&r), 0);
	barrier_run_close(&r);
}
