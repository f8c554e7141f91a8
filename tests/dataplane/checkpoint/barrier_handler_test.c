#include "dataplane/checkpoint/barrier_handler.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Facts and decisions are written as words.  Facts: "b5@0" an aligned barrier of checkpoint 5 on
 * channel 0, "r" the same asked for by the coordinator, "t" a timeoutable one in line, "a" its
 * announcement, "c" itself ahead of the line; "u" an unaligned one; "n" a barrier has come, "x" a
 * cancel marker, "e@0" the end of channel 0, "+20@0" time passes, "*@0" the timer runs.  Decisions:
 * "block0" ("block0-behind"), "resume0", "convert0", "prepare5", "start5", "trigger5" ("trigger5u"
 * unaligned), "stop5", "all5", "abort5:subsumed". */

enum { TEXT_BYTES = 256, TIMEOUT_MS = 100 };

struct run {
	struct barrier_handler *handler;
	uint64_t now_ns;
	int64_t wall_ms;
	int64_t timestamp_ms;
	bool is_alternating; /* barriers may be announced; "all5" is of interest */
	char text[TEXT_BYTES]; /* decisions of the last facts */
};

static void open_run(struct run *r, uint32_t channels, bool has_finished_tasks)
{
	struct barrier_handler_config config = {
			.channel_count = channels, .has_finished_tasks = has_finished_tasks};

	*r = (struct run){0};
	cr_assert_eq(barrier_handler_create(&r->handler, &config), 0);
}

static int64_t pending_of(const struct run *r)
{
	return barrier_handler_pending_count(r->handler) == 0
			? 0
			: barrier_handler_pending_at(r->handler, 0);
}

static void close_run(struct run *r)
{
	barrier_handler_destroy(r->handler);
}

static const char *reason_word(enum decline_reason reason)
{
	switch (reason) {
	case DECLINE_SUBSUMED:
		return "subsumed";
	case DECLINE_ON_CANCELLATION_BARRIER:
		return "cancelled";
	case DECLINE_INPUT_END_OF_STREAM:
		return "end-of-stream";
	case DECLINE_CHECKPOINT_SUBSUMED:
		return "seen-newer";
	default:
		return "other";
	}
}

static const char *form_word(const struct event *barrier)
{
	return checkpoint_options_is_unaligned(&barrier->options) ? "u" : "";
}

static void write_decision(const struct barrier_decision *d, char word[64])
{
	switch (d->kind) {
	case BARRIER_BLOCK:
		snprintf(word, 64, "block%u%s", d->channel, d->is_ahead ? "-behind" : "");
		return;
	case BARRIER_RESUME:
		snprintf(word, 64, "resume%u", d->channel);
		return;
	case BARRIER_CONVERT:
		snprintf(word, 64, "convert%u", d->channel);
		return;
	case BARRIER_PREPARE:
		snprintf(word, 64, "prepare%" PRId64 "%s", d->barrier.checkpoint_id,
				form_word(&d->barrier));
		return;
	case BARRIER_START:
		snprintf(word, 64, "start%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_TRIGGER:
		snprintf(word, 64, "trigger%" PRId64 "%s", d->barrier.checkpoint_id,
				form_word(&d->barrier));
		return;
	case BARRIER_STOP:
		snprintf(word, 64, "stop%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_ALL_RECEIVED:
		snprintf(word, 64, "all%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_ABORT:
		snprintf(word, 64, "abort%" PRId64 ":%s", d->checkpoint_id,
				reason_word(d->reason));
		return;
	}
}

static void write_decisions(struct run *r)
{
	struct barrier_decision d;

	while (barrier_handler_next(r->handler, &d)) {
		char word[64] = "";

		if (d.kind == BARRIER_ALL_RECEIVED && !r->is_alternating)
			continue;
		write_decision(&d, word);
		if (r->text[0] != '\0')
			strncat(r->text, " ", TEXT_BYTES - strlen(r->text) - 1);
		strncat(r->text, word, TEXT_BYTES - strlen(r->text) - 1);
	}
}

static void tell(struct run *r, const char *fact)
{
	int64_t id = fact[1] == '@' ? 0 : strtoll(fact + 1, NULL, 10);
	uint32_t channel = (uint32_t)strtoul(strchr(fact, '@') + 1, NULL, 10);
	struct event barrier = {
			.kind = EVENT_BARRIER,
			.checkpoint_id = id,
			.timestamp_ms = r->timestamp_ms,
			.options = {.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
					.alignment = ALIGNMENT_ALIGNED},
	};

	if (strchr("tac", fact[0]) != NULL)
		barrier.options.aligned_timeout_ms = TIMEOUT_MS;
	if (fact[0] == 'u')
		barrier.options.alignment = ALIGNMENT_UNALIGNED;
	switch (fact[0]) {
	case 'b':
	case 't':
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_IN_LINE,
				r->now_ns, r->wall_ms);
		break;
	case 'r':
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_BY_RPC, r->now_ns,
				r->wall_ms);
		break;
	case 'u':
	case 'c':
		barrier_handler_on_arrival(r->handler, channel, id);
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_AHEAD, r->now_ns,
				r->wall_ms);
		break;
	case 'a':
		barrier_handler_on_arrival(r->handler, channel, id);
		barrier_handler_on_announcement(
				r->handler, channel, &barrier, r->now_ns, r->wall_ms);
		break;
	case 'n':
		barrier_handler_on_arrival(r->handler, channel, id);
		break;
	case '+':
		r->now_ns += (uint64_t)id * 1000000;
		r->wall_ms += id;
		break;
	case '*':
		barrier_handler_on_time(r->handler, r->now_ns);
		break;
	case 'x':
		barrier_handler_on_cancel(r->handler, channel, id);
		break;
	case 'e':
		barrier_handler_on_end_of_partition(r->handler, channel, r->now_ns, r->wall_ms);
		break;
	default:
		cr_assert_fail("no such fact: %s", fact);
	}
	write_decisions(r);
}

/* What a row of facts led to. */
static const char *tell_all(struct run *r, const char *facts)
{
	char copy[TEXT_BYTES], *rest = copy;

	r->text[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", facts);
	for (char *fact = strsep(&rest, " "); fact != NULL; fact = strsep(&rest, " ")) {
		if (fact[0] != '\0')
			tell(r, fact);
	}
	return r->text;
}

/* ---- 16.5: states x events x older, equal, newer id ---- */

struct row {
	const char *name;
	const char *before; /* leads to the state */
	const char *fact;
	const char *decisions;
	int64_t current, pending;
};

/* Three channels. */
static const struct row ROWS[] = {
		/* nothing known yet */
		{"fresh, barrier", "", "b5@1", "block1", 5, 5},
		{"fresh, cancel", "", "x5@1", "abort5:cancelled", 5, 0},
		{"fresh, end", "", "e@1", "", -1, 0},
		/* waiting: 5 is complete */
		{"done, older barrier", "b5@0 b5@1 b5@2", "b4@1", "", 5, 0},
		{"done, same barrier", "b5@0 b5@1 b5@2", "b5@1", "", 5, 0},
		{"done, newer barrier", "b5@0 b5@1 b5@2", "b6@1", "block1", 6, 6},
		{"done, older cancel", "b5@0 b5@1 b5@2", "x4@1", "", 5, 0},
		{"done, same cancel", "b5@0 b5@1 b5@2", "x5@1", "", 5, 0},
		{"done, newer cancel", "b5@0 b5@1 b5@2", "x6@1", "abort6:cancelled", 6, 0},
		{"done, end", "b5@0 b5@1 b5@2", "e@1", "", 5, 0},
		/* waiting: 5 was cancelled */
		{"cancelled, older barrier", "b5@0 x5@1", "b4@2", "", 5, 0},
		{"cancelled, same barrier", "b5@0 x5@1", "b5@2", "", 5, 0},
		{"cancelled, newer barrier", "b5@0 x5@1", "b6@0", "block0", 6, 6},
		{"cancelled, older cancel", "b5@0 x5@1", "x4@2", "", 5, 0},
		{"cancelled, same cancel", "b5@0 x5@1", "x5@2", "", 5, 0},
		{"cancelled, newer cancel", "b5@0 x5@1", "x6@2", "abort6:cancelled", 6, 0},
		{"cancelled, end", "b5@0 x5@1", "e@2", "", 5, 0},
		/* collecting: one of three */
		{"one, older barrier", "b5@0", "b4@1", "", 5, 5},
		{"one, same barrier", "b5@0", "b5@1", "block1", 5, 5},
		{"one, newer barrier", "b5@0", "b6@1", "resume0 abort5:subsumed block1", 6, 6},
		{"one, older cancel", "b5@0", "x4@1", "", 5, 5},
		{"one, same cancel", "b5@0", "x5@1", "resume0 abort5:cancelled", 5, 0},
		{"one, newer cancel", "b5@0", "x6@1", "resume0 abort6:cancelled", 6, 0},
		{"one, end", "b5@0", "e@1", "", 5, 5},
		/* collecting: two of three */
		{"two, older barrier", "b5@0 b5@1", "b4@2", "", 5, 5},
		{"two, last barrier", "b5@0 b5@1", "b5@2",
				"block2 trigger5 resume0 resume1 resume2", 5, 0},
		{"two, newer barrier", "b5@0 b5@1", "b6@2",
				"resume0 resume1 abort5:subsumed block2", 6, 6},
		{"two, same cancel", "b5@0 b5@1", "x5@2", "resume0 resume1 abort5:cancelled", 5, 0},
		{"two, newer cancel", "b5@0 b5@1", "x7@2", "resume0 resume1 abort7:cancelled", 7,
				0},
		{"two, last end", "b5@0 b5@1", "e@2", "trigger5 resume0 resume1", 5, 0},
		/* collecting, begun by the end of a channel */
		{"ended, barrier", "e@0 b5@1", "b5@2", "block2 trigger5 resume1 resume2", 5, 0},
		{"ended while collecting, barrier", "b5@1 e@0", "b5@2",
				"block2 trigger5 resume1 resume2", 5, 0},
		{"ended while collecting, cancel", "b5@1 e@0", "x5@2", "resume1 abort5:cancelled",
				5, 0},
		/* one channel is left */
		{"last channel, barrier", "e@0 e@1", "b5@2", "block2 trigger5 resume2", 5, 0},
		{"last channel, cancel", "e@0 e@1", "x5@2", "abort5:cancelled", 5, 0},
		{"last channel, end", "e@0 e@1", "e@2", "", -1, 0},
		/* asked for by the coordinator (TK-4) */
		{"rpc, first", "", "r5@0", "", 5, 5},
		{"rpc, last", "r5@0 r5@1", "r5@2", "trigger5", 5, 0},
		{"rpc, all but a blocked one", "b5@0", "r5@0 r5@1 r5@2", "trigger5 resume0", 5, 0},
		{"rpc, newer", "b5@0", "r6@1", "resume0 abort5:subsumed", 6, 6},
		{"rpc, stale", "b5@0 x5@1", "r5@2", "", 5, 0},
};

Test(barrier_handler, every_fact_in_every_state_leads_to_the_decisions_of_its_rule)
{
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		const struct row *row = &ROWS[i];
		struct run r;

		open_run(&r, 3, true);
		tell_all(&r, row->before);
		cr_expect_str_eq(tell_all(&r, row->fact), row->decisions, "%s: %s", row->name,
				r.text);
		cr_expect_eq(barrier_handler_current(r.handler), row->current, "%s", row->name);
		cr_expect_eq(pending_of(&r), row->pending, "%s", row->name);
		close_run(&r);
	}
}

/* ---- single rules ---- */

Test(barrier_handler, the_checkpoint_is_triggered_before_any_channel_goes_on)
{
	struct run r;

	open_run(&r, 2, true);
	cr_assert_str_eq(tell_all(&r, "b1@1 b1@0"), "block1 block0 trigger1 resume0 resume1");
	close_run(&r);
}

/* BH-1: its channel is not blocked, so there is nothing to resume. */
Test(barrier_handler, a_late_barrier_of_an_aborted_checkpoint_changes_nothing)
{
	struct run r;

	open_run(&r, 3, true);
	tell_all(&r, "b1@1 x1@0 b2@1");
	cr_assert_str_eq(tell_all(&r, "b1@2"), "");
	cr_assert_eq(pending_of(&r), 2);
	cr_assert_str_eq(tell_all(&r, "b2@0 b2@2"),
			"block0 block2 trigger2 resume0 resume1 resume2");
	close_run(&r);
}

/* BH-7. */
Test(barrier_handler, a_newer_cancel_marker_ends_an_older_checkpoint_with_one_notification)
{
	struct run r;

	open_run(&r, 3, true);
	cr_assert_str_eq(tell_all(&r, "b1@0 b1@1 x3@2"),
			"block0 block1 resume0 resume1 abort3:cancelled");
	cr_assert_str_eq(tell_all(&r, "b1@2 b2@0 b3@0"), "");
	cr_assert_str_eq(tell_all(&r, "b4@0"), "block0");
	close_run(&r);
}

/* BH-8. */
Test(barrier_handler, an_end_counts_for_the_pending_checkpoint_and_for_no_later_one)
{
	struct run r;

	open_run(&r, 3, true);
	cr_assert_str_eq(tell_all(&r, "b1@0 e@1 b1@2"),
			"block0 block2 trigger1 resume0 resume2");
	cr_assert_eq(barrier_handler_open_count(r.handler), 2);
	cr_assert_not(barrier_handler_is_channel_open(r.handler, 1));
	cr_assert_str_eq(tell_all(&r, "b2@0 b2@2"), "block0 block2 trigger2 resume0 resume2");
	close_run(&r);
}

/* BH-8: the target is fixed when the checkpoint starts. */
Test(barrier_handler, a_channel_that_ended_before_the_first_barrier_is_not_waited_for)
{
	struct run r;

	open_run(&r, 3, true);
	cr_assert_str_eq(tell_all(&r, "e@2 b1@0"), "block0");
	cr_assert_str_eq(tell_all(&r, "e@1"), "trigger1 resume0");
	close_run(&r);
}

/* BH-4, BH-8. */
Test(barrier_handler, a_channel_that_the_coordinator_stood_in_for_and_that_ends_counts_once)
{
	struct run r;

	open_run(&r, 3, true);
	cr_assert_str_eq(tell_all(&r, "r1@0 e@0 b1@1"), "block1");
	cr_assert_str_eq(tell_all(&r, "b1@2"), "block2 trigger1 resume1 resume2");
	close_run(&r);
}

/* BH-8. */
Test(barrier_handler, without_finished_tasks_an_end_aborts_what_is_pending)
{
	struct run r;

	open_run(&r, 3, false);
	cr_assert_str_eq(tell_all(&r, "e@2"), "");
	cr_assert_str_eq(tell_all(&r, "b1@0 e@1"), "block0 resume0 abort1:end-of-stream");
	cr_assert_eq(pending_of(&r), 0);
	cr_assert_str_eq(tell_all(&r, "b2@0"), "block0 trigger2 resume0");
	close_run(&r);
}

Test(barrier_handler, ids_may_be_as_large_as_they_come)
{
	struct run r;

	open_run(&r, 2, true);
	cr_assert_str_eq(tell_all(&r, "b9223372036854775806@0 b9223372036854775807@1"),
			"block0 resume0 abort9223372036854775806:subsumed block1");
	close_run(&r);
}

/* ---- 16.4 ---- */

static void expect_metrics(struct run *r, int64_t id, int64_t duration_ns, int64_t delay_ns,
		int64_t bytes)
{
	struct alignment_metrics m = barrier_handler_metrics(r->handler, id, r->now_ns);

	cr_expect_eq(m.alignment_duration_ns, duration_ns, "duration %" PRId64,
			m.alignment_duration_ns);
	cr_expect_eq(m.start_delay_ns, delay_ns, "delay %" PRId64, m.start_delay_ns);
	cr_expect_eq(m.bytes_processed, bytes, "bytes %" PRId64, m.bytes_processed);
}

Test(barrier_handler, alignment_is_measured_from_the_first_channel_to_the_last)
{
	struct run r;

	open_run(&r, 2, true);
	r.timestamp_ms = 100;
	r.wall_ms = 130;
	r.now_ns = 1000;
	barrier_handler_add_bytes(r.handler, 7); /* before the alignment */
	tell_all(&r, "b1@0");
	r.now_ns = 1400;
	barrier_handler_add_bytes(r.handler, 50);
	expect_metrics(&r, 1, 400, 30000000, 50);
	r.now_ns = 2500;
	tell_all(&r, "b1@1");
	barrier_handler_add_bytes(r.handler, 9);
	r.now_ns = 9000;
	expect_metrics(&r, 1, 1500, 30000000, 50);
	close_run(&r);
}

Test(barrier_handler, alignment_that_an_end_began_or_ended_is_measured_too)
{
	struct run r;

	open_run(&r, 3, true);
	r.now_ns = 100;
	tell_all(&r, "b1@0");
	r.now_ns = 300;
	tell_all(&r, "b1@1");
	r.now_ns = 600;
	tell_all(&r, "e@2");
	expect_metrics(&r, 1, 500, 0, 0);
	close_run(&r);
}

Test(barrier_handler, alignment_of_a_single_channel_takes_no_time)
{
	struct run r;

	open_run(&r, 1, true);
	r.now_ns = 50;
	r.wall_ms = 4;
	r.timestamp_ms = 1;
	tell_all(&r, "b1@0");
	r.now_ns = 90;
	barrier_handler_add_bytes(r.handler, 5);
	expect_metrics(&r, 1, 0, 3000000, 0);
	close_run(&r);
}

Test(barrier_handler, a_barrier_from_a_clock_ahead_of_ours_has_no_start_delay)
{
	struct run r;

	open_run(&r, 2, true);
	r.timestamp_ms = 500;
	r.wall_ms = 499;
	tell_all(&r, "b1@0");
	expect_metrics(&r, 1, 0, 0, 0);
	close_run(&r);
}

Test(barrier_handler, metrics_are_those_of_the_newest_checkpoint_and_zero_for_others)
{
	struct run r;

	open_run(&r, 2, true);
	r.now_ns = 10;
	r.wall_ms = 2;
	tell_all(&r, "b1@0");
	barrier_handler_add_bytes(r.handler, 5);
	r.now_ns = 30;
	tell_all(&r, "b2@1");
	r.now_ns = 35;
	expect_metrics(&r, 1, 0, 0, 0);
	expect_metrics(&r, 2, 5, 2000000, 0);
	tell_all(&r, "x2@0");
	r.now_ns = 50;
	expect_metrics(&r, 2, 0, 0, 0); /* BH-7 */
	close_run(&r);
}
