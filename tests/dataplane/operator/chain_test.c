#include "dataplane/operator/chain.h"

#include "tests/support/chain_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* The output of the edge that these chains stand in front of holds eight records. */

static void start(struct chain_fixture *f, const struct edge_config *edge)
{
	char text[JOURNAL_BYTES];

	chain_fixture_open(f, edge);
	cr_assert_eq(chain_fixture_open_chain(f), 0);
	(void)chain_fixture_journal(f, text);
}

#define EXPECT_JOURNAL(f, expected)                                                                \
	do {                                                                                       \
		char text_[JOURNAL_BYTES];                                                         \
		cr_expect_str_eq(chain_fixture_journal(f, text_), expected, "%s", text_);          \
	} while (0)

/* ---- records ---- */

Test(chain, what_its_first_operator_leaves_of_a_batch_is_the_callers_to_bring_again)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 1);
	f.probes[0].take_max = 3;
	start(&f, NULL);
	cr_assert_eq(chain_fixture_process(&f, 0, 10), 3);
	cr_assert_eq(f.probes[0].calls, 1); /* each may take its time */
	cr_assert_eq(chain_fixture_process(&f, 3, 7), 3);
	cr_assert_eq(f.probes[0].taken, 6);
	cr_assert_eq(chain_fixture_counter(&f, "a", "records_in"), 6);
	chain_fixture_close(&f);
}

Test(chain, what_an_operator_leaves_is_not_taken_and_not_counted)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[1].take_total = 4;
	start(&f, NULL);
	/* a hands on one record at a time, so it stops where b does */
	f.probes[0].take_total = 4;
	cr_assert_eq(chain_fixture_process(&f, 0, 10), 4);
	cr_assert_eq(chain_fixture_counter(&f, "a", "records_in"), 4);
	cr_assert_eq(chain_fixture_counter(&f, "a", "records_out"), 4);
	cr_assert_eq(chain_fixture_counter(&f, "b", "records_in"), 4);
	cr_assert_eq(chain_fixture_process(&f, 4, 6), 0);
	chain_fixture_close(&f);
}

Test(chain, an_operator_that_makes_more_than_it_takes_stops_where_the_output_is_full)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 1);
	f.probes[0].copies = 3;
	start(&f, &CHAIN_EDGE);
	cr_assert_eq(chain_room(f.chain), 8);
	cr_assert_eq(chain_fixture_process(&f, 0, 8), 2); /* six of eight; three more do not fit */
	cr_assert_eq(chain_fixture_process(&f, 2, 6), 0);
	cr_assert_eq(chain_fixture_drain(&f), 6);
	cr_assert_eq(chain_fixture_process(&f, 2, 6), 2);
	cr_assert_eq(chain_fixture_counter(&f, "a", "records_in"), 4);
	cr_assert_eq(chain_fixture_counter(&f, "a", "records_out"), 12);
	chain_fixture_close(&f);
}

Test(chain, two_outputs_get_the_same_records_and_the_fuller_one_counts)
{
	struct chain_fixture f;
	struct edge second;
	struct edge_config wide = CHAIN_EDGE;

	wide.channel.queue_count = 8;
	edge_open(&second, &wide);
	chain_fixture_init(&f, 1);
	f.outputs[f.output_count++] = second.out[0];
	start(&f, &CHAIN_EDGE);
	cr_assert_eq(chain_room(f.chain), 8);
	cr_assert_eq(chain_fixture_process(&f, 0, 20), 8);
	cr_assert_eq(chain_fixture_drain(&f), 8);
	edge_push(&second, 0);
	edge_expect_values(&second, 0, 0, 4); /* the credit of one buffer */
	edge_push(&second, 0);
	edge_expect_values(&second, 0, 4, 4);
	chain_fixture_close(&f);
	edge_close(&second);
}

Test(chain, the_earliest_time_asked_for_is_kept_until_it_is_read)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 1);
	f.probes[0].take_total = 1;
	f.probes[0].ask_not_before = 500;
	start(&f, NULL);
	cr_assert_eq(chain_fixture_process(&f, 0, 2), 1);
	cr_assert_eq(chain_fixture_process(&f, 1, 1), 0);
	f.probes[0].ask_not_before = 900;
	cr_assert_eq(chain_fixture_process(&f, 1, 1), 0);
	cr_assert_eq(chain_take_not_before(f.chain), 500);
	cr_assert_eq(chain_take_not_before(f.chain), 0);
	chain_fixture_close(&f);
}

/* ---- watermarks ---- */

Test(chain, a_watermark_passes_from_head_to_tail_and_never_goes_back)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	start(&f, &CHAIN_EDGE);
	cr_assert_eq(chain_current_watermark(f.chain), WEIR_WATERMARK_NONE);
	chain_watermark(f.chain, 70);
	chain_watermark(f.chain, 60);
	cr_assert(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "a.watermark:70 b.watermark:70");
	cr_assert_eq(chain_current_watermark(f.chain), 70);
	chain_watermark(f.chain, 70);
	cr_assert(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "");
	chain_fixture_drain(&f);
	cr_assert_eq(input_gate_watermark(f.edge.in[0]), 70);
	chain_fixture_close(&f);
}

/* Twenty records close a window, eight fit the output. */
Test(chain, a_watermark_that_lacks_room_pauses_and_goes_on_where_it_was)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[0].window_count = 20;
	start(&f, &CHAIN_EDGE);
	chain_watermark(f.chain, 7);
	cr_assert_not(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "a.watermark:7");
	cr_assert_eq(chain_room(f.chain), 0, "nothing may come in between");
	cr_assert_eq(chain_fixture_process(&f, 0, 1), 0);
	cr_assert_not(chain_advance(f.chain));

	edge_push(&f.edge, 0);
	edge_expect_values(&f.edge, 0, 1000, 4);
	cr_assert_eq(input_gate_watermark(f.edge.in[0]), WEIR_WATERMARK_NONE);
	edge_push(&f.edge, 0);
	cr_assert_not(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "a.watermark:7 a.watermark:7");

	uint32_t drained = 4;
	for (uint32_t i = 0; i < 10 && !chain_advance(f.chain); i++)
		drained += chain_fixture_drain(&f);
	drained += chain_fixture_drain(&f);
	cr_assert_eq(drained, 20);
	cr_assert_eq(input_gate_watermark(f.edge.in[0]), 7);
	cr_assert_eq(chain_room(f.chain), 8);
	chain_fixture_close(&f);
}

Test(chain, nobody_makes_what_an_operator_behind_has_no_room_for)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[0].window_count = 5;
	f.probes[1].take_total = 3;
	start(&f, NULL);
	cr_assert_eq(chain_room(f.chain), 3);
	chain_watermark(f.chain, 7);
	cr_assert_not(chain_advance(f.chain));
	cr_assert_eq(f.probes[1].taken, 3);

	f.probes[1].take_total = 9;
	cr_assert(chain_advance(f.chain));
	cr_assert_eq(f.probes[1].taken, 5);
	cr_assert_eq(chain_room(f.chain), 4);
	chain_fixture_close(&f);
}

Test(chain, a_watermark_under_way_at_the_tail_ends_before_the_head_hears_of_the_next)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[1].window_count = 12;
	start(&f, &CHAIN_EDGE);
	chain_watermark(f.chain, 1);
	cr_assert_not(chain_advance(f.chain));
	chain_watermark(f.chain, 2);
	cr_assert_not(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "a.watermark:1 b.watermark:1 b.watermark:1");
	cr_assert_eq(chain_current_watermark(f.chain), 1);
	chain_fixture_drain(&f);
	cr_assert_eq(chain_room(f.chain), 0, "records stay behind the watermarks");
	cr_assert_eq(chain_fixture_process(&f, 0, 1), 0);
	cr_assert_not(chain_advance(f.chain)); /* 1 is done with, 2 lacks room */
	EXPECT_JOURNAL(&f, "b.watermark:1 a.watermark:2 b.watermark:2");
	chain_fixture_close(&f);
}

/* ---- the end of input ---- */

Test(chain, finish_goes_head_to_tail_and_to_each_operator_until_it_says_true_once)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 3);
	f.probes[1].finish_refusals = 2;
	start(&f, NULL);
	cr_assert_not(chain_finish(f.chain));
	EXPECT_JOURNAL(&f, "a.finish b.finish");
	cr_assert_not(chain_finish(f.chain));
	cr_assert(chain_finish(f.chain));
	EXPECT_JOURNAL(&f, "b.finish b.finish c.finish");
	cr_assert(chain_finish(f.chain));
	EXPECT_JOURNAL(&f, "");
	chain_fixture_close(&f);
}

Test(chain, what_finish_makes_reaches_the_output_though_it_does_not_fit_at_once)
{
	struct chain_fixture f;
	uint32_t drained = 0;

	chain_fixture_init(&f, 2);
	f.probes[0].finish_count = 11;
	start(&f, &CHAIN_EDGE);
	while (!chain_finish(f.chain))
		drained += chain_fixture_drain(&f);
	drained += chain_fixture_drain(&f);
	cr_assert_eq(drained, 11);
	cr_assert_eq(chain_fixture_counter(&f, "b", "records_in"), 11);
	chain_fixture_close(&f);
}

/* Copies all values and lists, as a snapshot and a restore would. */
static void carry_states(struct chain *from, struct chain *to)
{
	cr_assert_eq(chain_state_count(from), chain_state_count(to));
	for (uint32_t i = 0; i < chain_state_count(from); i++) {
		struct chain_state a = chain_state_at(from, i), b = chain_state_at(to, i);

		memcpy(b.memory, a.memory, a.value_bytes * a.capacity);
		if (a.list_count != NULL)
			*b.list_count = *a.list_count;
	}
}

Test(chain, an_operator_that_finished_before_the_snapshot_does_not_finish_again)
{
	struct chain_fixture before, after;

	chain_fixture_init(&before, 3);
	before.probes[1].finish_refusals = 5;
	start(&before, NULL);
	cr_assert_eq(chain_fixture_process(&before, 0, 3), 3);
	cr_assert_not(chain_finish(before.chain));

	chain_fixture_init(&after, 3);
	chain_fixture_open(&after, NULL);
	carry_states(before.chain, after.chain);
	cr_assert_eq(chain_fixture_open_chain(&after), 0);
	cr_assert_eq(chain_fixture_counter(&after, "a", "records_in"), 3);
	cr_assert_eq(chain_fixture_counter(&after, "a", "odd"), 1);
	EXPECT_JOURNAL(&after, "c.open b.open a.open");
	cr_assert(chain_finish(after.chain));
	EXPECT_JOURNAL(&after, "b.finish c.finish");
	chain_fixture_close(&before);
	chain_fixture_close(&after);
}

/* ---- order of hooks (OU-1) ---- */

Test(chain, barriers_go_head_to_tail_and_notifications_tail_to_head)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 3);
	chain_fixture_open(&f, NULL);
	cr_assert_eq(chain_fixture_open_chain(&f), 0);
	EXPECT_JOURNAL(&f, "c.open b.open a.open");
	chain_before_barrier(f.chain, 4);
	EXPECT_JOURNAL(&f, "a.barrier:4 b.barrier:4 c.barrier:4");
	chain_notify_complete(f.chain, 4);
	EXPECT_JOURNAL(&f, "c.complete:4 b.complete:4 a.complete:4");
	chain_notify_aborted(f.chain, 5);
	EXPECT_JOURNAL(&f, "c.aborted:5 b.aborted:5 a.aborted:5");
	chain_event(f.chain, 1, "xyz", 3);
	chain_file_done(f.chain, 2, 9, 0);
	EXPECT_JOURNAL(&f, "b.event:3 c.file:9");
	chain_close(f.chain);
	EXPECT_JOURNAL(&f, "c.close b.close a.close");
	chain_close(f.chain);
	EXPECT_JOURNAL(&f, "");
	chain_fixture_close(&f);
}

Test(chain, it_is_busy_while_one_of_its_operators_is)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	start(&f, NULL);
	cr_assert_not(chain_is_busy(f.chain));
	f.probes[1].is_busy = true;
	cr_assert(chain_is_busy(f.chain));
	chain_fixture_close(&f);
}

/* ---- failures ---- */

Test(chain, after_a_failure_nothing_is_called_but_close)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[0].fail_in = "barrier";
	start(&f, &CHAIN_EDGE);
	chain_before_barrier(f.chain, 1);
	cr_assert_str_eq(chain_failure(f.chain), "operator a: failed in barrier");
	EXPECT_JOURNAL(&f, "a.barrier:1");
	chain_notify_complete(f.chain, 1);
	chain_notify_aborted(f.chain, 2);
	chain_before_barrier(f.chain, 3);
	chain_event(f.chain, 0, "x", 1);
	chain_file_done(f.chain, 0, 1, 0);
	chain_watermark(f.chain, 5);
	cr_assert_not(chain_advance(f.chain));
	cr_assert_not(chain_finish(f.chain));
	cr_assert_eq(chain_room(f.chain), 0);
	cr_assert_eq(chain_fixture_process(&f, 0, 4), 0);
	EXPECT_JOURNAL(&f, "");
	chain_fail(f.chain, "another");
	cr_assert_str_eq(chain_failure(f.chain), "operator a: failed in barrier");
	chain_close(f.chain);
	EXPECT_JOURNAL(&f, "b.close a.close");
	chain_fixture_close(&f);
}

Test(chain, an_operator_that_failed_in_finish_has_not_finished)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[0].fail_in = "finish";
	start(&f, NULL);
	cr_assert_not(chain_finish(f.chain));
	EXPECT_JOURNAL(&f, "a.finish");
	const uint64_t *counters = chain_state_at(f.chain, 0).memory;
	for (uint32_t i = 0; i < 8; i++)
		cr_assert_eq(counters[i], 0);
	chain_fixture_close(&f);
}

Test(chain, a_watermark_that_fails_goes_no_further)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	f.probes[0].fail_in = "watermark";
	start(&f, NULL);
	chain_watermark(f.chain, 3);
	cr_assert_not(chain_advance(f.chain));
	cr_assert_not(chain_advance(f.chain));
	EXPECT_JOURNAL(&f, "a.watermark:3");
	chain_fixture_close(&f);
}

Test(chain, when_one_does_not_open_those_behind_it_are_closed)
{
	struct chain_fixture f;

	chain_fixture_init(&f, 3);
	f.probes[1].open_status = -ENOENT;
	chain_fixture_open(&f, NULL);
	cr_assert_eq(chain_fixture_open_chain(&f), -ENOENT);
	EXPECT_JOURNAL(&f, "c.open b.open c.close");
	cr_assert_not_null(strstr(chain_failure(f.chain), "operator b did not open"));
	chain_fixture_close(&f);
	cr_assert_str_eq(f.journal, "");
}

/* ---- states ---- */

Test(chain, each_operator_shows_its_counters_and_then_what_it_declared)
{
	static const char *const names[] = {"counters", "sum", "seen", "counters", "sum", "seen"};
	struct chain_fixture f;

	chain_fixture_init(&f, 2);
	start(&f, NULL);
	cr_assert_eq(chain_state_count(f.chain), 6);
	for (uint32_t i = 0; i < 6; i++) {
		struct chain_state s = chain_state_at(f.chain, i);

		cr_expect_str_eq(s.name, names[i]);
		cr_expect_str_eq(s.uid, i < 3 ? "a" : "b");
		cr_expect_eq(s.list_count != NULL, i % 3 == 2);
	}
	cr_assert_eq(chain_fixture_process(&f, 5, 3), 3);
	cr_assert_eq(*(uint64_t *)chain_state_at(f.chain, 1).memory, 5 + 6 + 7);
	cr_assert_eq(*(uint64_t *)chain_state_at(f.chain, 4).memory, 5 + 6 + 7);
	cr_assert_eq(chain_state_at(f.chain, 1).version, 3);
	chain_fixture_close(&f);
}

static int declare_endless(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->state_count = 1;
	d->states[0] = (struct weir_state){.name = "all",
			.kind = WEIR_STATE_LIST,
			.value_bytes = 1 << 20,
			.capacity = UINT64_MAX / 2};
	return 0;
}

Test(chain, a_state_that_cannot_be_had_at_any_size_is_refused_by_name)
{
	static const struct weir_operator endless = {.declare = declare_endless};
	struct chain_operator_config o = {.op = &endless, .uid = "hoarder"};
	struct chain_config config = {.operators = &o, .operator_count = 1, .group_count = 1,
		.snapshots_max = 1};
	char error[WEIR_ERROR_BYTES] = "";

	cr_assert_eq(chain_declare(&o, 1, 0, 1, 0, error), 0);
	cr_assert_eq(chain_memory_bytes(&config, error), UINT64_MAX);
	cr_assert_not_null(strstr(error, "operator hoarder: state all"));
}
