#include "control/coordinator/checkpoint_stats.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	struct execution_graph *graph;
	struct checkpoint_plan *plan;
	struct checkpoint_stats *s;
};

static const struct checkpoint_properties checkpoint = { .kind = KIND_CHECKPOINT };
static const struct checkpoint_properties savepoint = { .kind = KIND_SAVEPOINT };

/* src(3), of which src.0 has finished. */
static void rig_open(struct rig *r, uint32_t history_max)
{
	static const struct execution_vertex vertex = { "src", 3, false };
	uint32_t culprit;

	cr_assert(eq(int, execution_graph_create(&r->graph, &vertex, 1, NULL, 0), 0));
	for (uint32_t i = 0; i < 3; i++)
		execution_graph_set_attempt(
				r->graph, i, (struct attempt_id){ { .bytes = { 5, (uint8_t)i } } });
	execution_graph_set_state(r->graph, 0, EXECUTION_FINISHED);
	execution_graph_set_state(r->graph, 1, EXECUTION_RUNNING);
	execution_graph_set_state(r->graph, 2, EXECUTION_RUNNING);
	cr_assert(eq(int, checkpoint_plan_calculate(&r->plan, r->graph, true, &culprit), 0));
	checkpoint_stats_create(&r->s, r->graph, history_max);
}

static void rig_close(struct rig *r)
{
	checkpoint_stats_destroy(r->s);
	checkpoint_plan_destroy(r->plan);
	execution_graph_destroy(r->graph);
}

static struct acknowledgement ack(int64_t id, uint32_t subtask)
{
	return (struct acknowledgement){
		.subtask = subtask,
		.checkpoint_id = id,
		.metrics = { .checkpointed_bytes = 10, .state_bytes = 100, .processed_bytes = 3,
				.persisted_bytes = 1, .sync_ns = 4, .async_ns = 5,
				.alignment_ns = 6, .start_delay_ns = 7 },
	};
}

static void complete(struct rig *r, int64_t id, int64_t at_ms)
{
	struct acknowledgement first = ack(id, 1);
	struct acknowledgement second = ack(id, 2);

	checkpoint_stats_on_pending(r->s, id, &checkpoint, r->plan, at_ms);
	checkpoint_stats_on_tasks_triggered(r->s, id, 5);
	checkpoint_stats_on_acknowledge(r->s, &first, (struct moment){ 15, at_ms + 10 });
	checkpoint_stats_on_acknowledge(r->s, &second, (struct moment){ 35, at_ms + 30 });
	checkpoint_stats_on_completed(r->s, id, "there", at_ms + 35);
}

Test(checkpoint_stats, what_each_channel_had_in_flight_is_kept)
{
	struct channel_metrics channels[] = { { false, 1, 2, 3, 400 }, { true, 0, 7, 1, 50 } };
	struct acknowledgement first = ack(1, 1), second = ack(1, 2);
	struct rig r;

	first.kept_count = 2;
	first.kept = channels;
	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 1000);
	checkpoint_stats_on_acknowledge(r.s, &first, (struct moment){ 15, 1010 });
	second.kept_count = 1;
	second.kept = &channels[1];
	checkpoint_stats_on_acknowledge(r.s, &second, (struct moment){ 25, 1020 });
	channels[0].bytes = channels[1].bytes = 0; /* they were the caller's */

	const struct checkpoint_record *c = checkpoint_stats_find(r.s, 1);

	cr_assert(eq(u32, c->subtasks[1].kept_count, 2));
	cr_assert(eq(u64, c->subtasks[1].kept[0].bytes, 400));
	cr_assert(eq(u32, c->subtasks[1].kept[0].channel, 2));
	cr_assert(c->subtasks[1].kept[1].is_output);
	cr_assert(eq(u64, c->subtasks[1].kept[1].bytes, 50));
	cr_assert(eq(u32, c->subtasks[2].kept_count, 1));
	cr_assert(eq(u64, c->subtasks[2].kept[0].bytes, 50));
	cr_assert(eq(u32, c->subtasks[0].kept_count, 0));
	rig_close(&r);
}

Test(checkpoint_stats, a_completed_checkpoint_has_sums_times_and_its_subtasks)
{
	struct rig r;

	rig_open(&r, 10);
	complete(&r, 1, 1000);

	const struct checkpoint_record *c = checkpoint_stats_find(r.s, 1);

	cr_assert(eq(int, (int)c->status, CHECKPOINT_COMPLETED));
	cr_assert(eq(u32, c->planned_count, 3));
	cr_assert(eq(u32, c->acknowledged_count, 3)); /* the finished one at once */
	cr_assert(c->subtasks[0].is_finished);
	cr_assert(eq(i64, c->subtasks[0].ack_ms, 1000));
	cr_assert(eq(i64, c->subtasks[1].ack_ms, 1010));
	cr_assert(eq(u64, c->tasks_ns, 5));
	cr_assert(eq(u64, c->subtasks[1].ack_ns, 15));
	cr_assert(eq(u64, c->subtasks[2].ack_ns, 35));
	cr_assert(eq(i64, c->subtasks[2].metrics.sync_ns, 4));
	cr_assert(eq(u32, c->latest_subtask, 2));
	cr_assert(eq(i64, c->state_bytes, 200));
	cr_assert(eq(i64, c->checkpointed_bytes, 20));
	cr_assert(eq(i64, c->processed_bytes, 6));
	cr_assert(eq(i64, c->persisted_bytes, 2));
	cr_assert(eq(i64, checkpoint_record_duration_ms(c), 30));
	cr_assert(eq(i64, c->end_ms, 1035));
	cr_assert(eq(u32, checkpoint_record_slowest(c), 2));
	cr_assert(eq(int, c->subtasks[1].attempt.id.bytes[0], 5));
	cr_assert(eq(int, c->subtasks[1].attempt.id.bytes[1], 1));
	cr_assert(eq(str, c->location, "there"));
	cr_assert(eq(ptr, (void *)checkpoint_stats_latest_completed(r.s), (void *)c));
	rig_close(&r);
}

Test(checkpoint_stats, counts_and_summaries_are_of_all_that_ever_were)
{
	struct rig r;

	rig_open(&r, 2);
	for (int64_t id = 1; id <= 5; id++)
		complete(&r, id, 1000 * id);
	checkpoint_stats_on_pending(r.s, 6, &checkpoint, r.plan, 9000);
	checkpoint_stats_on_failed(r.s, 6,
			&(struct checkpoint_blame){ .reason = REASON_EXPIRED,
					.subtask = UINT32_MAX },
			9500);
	checkpoint_stats_on_failed_unborn(r.s);
	checkpoint_stats_on_pending(r.s, 7, &checkpoint, r.plan, 9600);

	struct checkpoint_counts n = checkpoint_stats_counts(r.s);

	cr_assert(eq(u64, n.total, 8));
	cr_assert(eq(u64, n.completed, 5));
	cr_assert(eq(u64, n.failed, 2));
	cr_assert(eq(u64, n.in_progress, 1));
	cr_assert(eq(u64, checkpoint_stats_summary(r.s, SUMMARY_DURATION_MS)->count, 5));
	cr_assert(eq(i64, checkpoint_stats_summary(r.s, SUMMARY_DURATION_MS)->max, 30));
	cr_assert(eq(i64, checkpoint_stats_summary(r.s, SUMMARY_CHECKPOINTED_BYTES)->max, 20));
	cr_assert(eq(i64, checkpoint_stats_summary(r.s, SUMMARY_STATE_BYTES)->max, 200));
	cr_assert(eq(i64, checkpoint_stats_summary(r.s, SUMMARY_PROCESSED_BYTES)->max, 6));
	cr_assert(eq(i64, checkpoint_stats_summary(r.s, SUMMARY_PERSISTED_BYTES)->max, 2));
	rig_close(&r);
}

Test(checkpoint_stats, the_history_is_newest_first_and_never_drops_what_is_in_progress)
{
	struct rig r;

	rig_open(&r, 2);
	checkpoint_stats_on_pending(r.s, 1, &savepoint, r.plan, 10);
	complete(&r, 2, 1000);
	complete(&r, 3, 2000);
	cr_assert(eq(i64, checkpoint_stats_history(r.s, 0)->id, 3));
	cr_assert(eq(i64, checkpoint_stats_history(r.s, 1)->id, 1));
	cr_assert(eq(ptr, (void *)checkpoint_stats_history(r.s, 2), NULL));
	checkpoint_stats_on_completed(r.s, 1, "sp", 3000);
	cr_assert(eq(i64, checkpoint_stats_latest_savepoint(r.s)->id, 1));
	cr_assert(eq(i64, checkpoint_stats_latest_completed(r.s)->id, 3));
	complete(&r, 4, 4000);
	complete(&r, 5, 5000);
	/* The latest of a kind outlives the history. */
	cr_assert(eq(ptr, (void *)checkpoint_stats_find(r.s, 1), NULL));
	cr_assert(eq(i64, checkpoint_stats_latest_savepoint(r.s)->id, 1));
	rig_close(&r);
}

Test(checkpoint_stats, metrics_of_a_subtask_that_did_not_finish_show_as_aborted)
{
	struct rig r;
	struct acknowledgement first = ack(1, 1);
	struct acknowledgement late = ack(1, 2);

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 100);
	checkpoint_stats_on_acknowledge(r.s, &first, (struct moment){ 0, 110 });
	checkpoint_stats_on_failed(r.s, 1,
			&(struct checkpoint_blame){ .reason = REASON_DECLINED,
					.subtask = UINT32_MAX },
			200);
	checkpoint_stats_on_incomplete(r.s, &late, 300);
	first.metrics.sync_ns = 99;
	checkpoint_stats_on_incomplete(r.s, &first, 310);

	const struct checkpoint_record *c = checkpoint_stats_latest_failed(r.s);

	cr_assert(not(c->subtasks[1].is_aborted));
	cr_assert(eq(i64, c->subtasks[1].metrics.sync_ns, 4));
	cr_assert(c->subtasks[2].is_aborted);
	cr_assert(eq(i64, c->subtasks[2].ack_ms, 300));
	cr_assert(eq(u32, c->acknowledged_count, 2));
	cr_assert(eq(i64, checkpoint_record_duration_ms(c), 100));
	rig_close(&r);
}

Test(checkpoint_stats, each_checkpoint_ends_once)
{
	struct rig r;

	rig_open(&r, 10);
	complete(&r, 1, 100);
	checkpoint_stats_on_failed(r.s, 1,
			&(struct checkpoint_blame){ .reason = REASON_DECLINED }, 200);
	checkpoint_stats_on_completed(r.s, 1, "there", 300);
	cr_assert(eq(u64, checkpoint_stats_counts(r.s).completed, 1));
	cr_assert(eq(u64, checkpoint_stats_counts(r.s).failed, 0));
	cr_assert(eq(u64, checkpoint_stats_counts(r.s).in_progress, 0));
	rig_close(&r);
}

static const char *failure_of(struct rig *r)
{
	checkpoint_stats_on_failed(r->s, 1,
			&(struct checkpoint_blame){ REASON_EXPIRED, UINT32_MAX, NULL }, 2000);
	return checkpoint_stats_find(r->s, 1)->failure_message;
}

static void pend_and_tell(struct rig *r, const struct subtask_progress *p)
{
	rig_open(r, 10);
	checkpoint_stats_on_pending(r->s, 1, &checkpoint, r->plan, 1000);
	checkpoint_stats_on_phase(r->s, 1, PHASE_TASKS);
	checkpoint_stats_on_progress(r->s, 1, p);
}

Test(checkpoint_stats, a_failure_tells_what_the_subtask_was_at_that_was_waited_for)
{
	struct rig r;

	pend_and_tell(&r, &(struct subtask_progress){
			SUBTASK_WRITING, .step_ms = 500, .heard_ms = 1950 });
	cr_assert_not_null(strstr(failure_of(&r),
			"src (2/3) has not acknowledged (writing its state for 550 ms): "));
	rig_close(&r);
	pend_and_tell(&r, &(struct subtask_progress){ SUBTASK_NOTHING, .heard_ms = 1950 });
	cr_assert_not_null(strstr(failure_of(&r),
			"src (2/3) has not acknowledged (no barrier has come): "));
	rig_close(&r);
}

Test(checkpoint_stats, a_failure_tells_that_a_subtask_has_fallen_silent)
{
	struct rig r;

	pend_and_tell(&r, &(struct subtask_progress){ SUBTASK_ALIGNING, .heard_ms = 900 });
	cr_assert_not_null(strstr(failure_of(&r), "(not heard for 1100 ms): "));
	rig_close(&r);
}

Test(checkpoint_stats, a_failure_names_the_subtask_that_does_not_come_back_from_a_call)
{
	struct rig r;

	pend_and_tell(&r, &(struct subtask_progress){ SUBTASK_NOTHING, .heard_ms = 1950 });
	checkpoint_stats_on_progress(r.s, 2,
			&(struct subtask_progress){
					SUBTASK_NOTHING, .stuck_ms = 700, .heard_ms = 1950 });
	cr_assert_not_null(strstr(failure_of(&r),
			"src (3/3) has not acknowledged (stuck in one call for 750 ms): "));
	rig_close(&r);
}

Test(checkpoint_stats, what_is_in_progress_is_told_in_the_same_words)
{
	struct rig r;

	pend_and_tell(&r, &(struct subtask_progress){
			SUBTASK_SNAPSHOT, .step_ms = 30, .heard_ms = 1040 });
	char *text = checkpoint_stats_explain_pending(r.s, 1050);
	cr_assert_str_eq(text, "checkpoint 1 is in progress for 50 ms, waiting for tasks (1 of 3 "
			       "subtasks acknowledged): src (2/3) has not acknowledged (taking its "
			       "snapshot for 40 ms)");
	free(text);
	failure_of(&r);
	cr_assert_null(checkpoint_stats_explain_pending(r.s, 1050));
	rig_close(&r);
}

static void fail(struct rig *r, int64_t id, uint32_t subtask)
{
	checkpoint_stats_on_failed(r->s, id,
			&(struct checkpoint_blame){ .reason = REASON_DECLINED, .subtask = subtask },
			2000);
}

Test(checkpoint_stats, before_anybody_has_acknowledged_there_is_no_time_and_nobody_to_name)
{
	struct rig r;

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 1000);

	const struct checkpoint_record *c = checkpoint_stats_find(r.s, 1);

	cr_assert(eq(i64, checkpoint_record_duration_ms(c), -1));
	cr_assert(eq(i64, c->latest_ack_ms, -1));
	cr_assert(eq(i64, c->end_ms, -1));
	cr_assert(eq(i64, c->subtasks[1].ack_ms, -1));
	cr_assert(eq(u32, checkpoint_record_slowest(c), UINT32_MAX));
	cr_assert(eq(u32, c->failure_subtask, UINT32_MAX));
	rig_close(&r);
}

/* Simulated time begins at 0. */
Test(checkpoint_stats, the_first_millisecond_is_a_time_like_any_other)
{
	struct rig r;
	struct acknowledgement first = ack(1, 1);

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 0);
	checkpoint_stats_on_phase(r.s, 1, PHASE_TASKS);
	checkpoint_stats_on_acknowledge(r.s, &first, (struct moment){ 0, 0 });

	const struct checkpoint_record *c = checkpoint_stats_find(r.s, 1);

	cr_assert(eq(i64, checkpoint_record_duration_ms(c), 0));
	checkpoint_stats_on_acknowledge(r.s, &first, (struct moment){ 0, 5 });
	checkpoint_stats_on_incomplete(r.s, &first, 5);
	cr_assert(eq(u32, c->acknowledged_count, 2));
	cr_assert(not(c->subtasks[1].is_aborted));
	char *text = checkpoint_stats_explain_pending(r.s, 10);
	cr_assert_not_null(strstr(text, ": src (3/3) has not acknowledged"), "%s", text);
	free(text);
	rig_close(&r);
}

Test(checkpoint_stats, one_unaligned_subtask_makes_it_unaligned)
{
	struct rig r;
	struct acknowledgement first = ack(1, 1), second = ack(1, 2);

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 100);
	first.metrics.is_unaligned = true;
	checkpoint_stats_on_acknowledge(r.s, &first, (struct moment){ 0, 110 });
	checkpoint_stats_on_acknowledge(r.s, &second, (struct moment){ 0, 120 });
	cr_assert(checkpoint_stats_find(r.s, 1)->is_unaligned);
	complete(&r, 2, 200);
	cr_assert(not(checkpoint_stats_find(r.s, 2)->is_unaligned));
	rig_close(&r);
}

Test(checkpoint_stats, what_comes_after_the_end_or_from_nobody_changes_nothing)
{
	struct rig r;
	struct acknowledgement late = ack(1, 1), stranger = ack(1, 3), lost = ack(9, 1);

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 100);
	checkpoint_stats_on_phase(r.s, 1, PHASE_METADATA);
	checkpoint_stats_on_acknowledge(r.s, &stranger, (struct moment){ 0, 110 });
	checkpoint_stats_on_incomplete(r.s, &stranger, 110);
	checkpoint_stats_on_acknowledge(r.s, &lost, (struct moment){ 0, 110 });
	checkpoint_stats_on_phase(r.s, 9, PHASE_INDEX);
	fail(&r, 1, 3);
	checkpoint_stats_on_acknowledge(r.s, &late, (struct moment){ 0, 2100 });
	checkpoint_stats_on_phase(r.s, 1, PHASE_INDEX);

	const struct checkpoint_record *c = checkpoint_stats_find(r.s, 1);

	cr_assert(eq(u32, c->acknowledged_count, 1));
	cr_assert(eq(i64, c->state_bytes, 0));
	cr_assert(eq(int, (int)c->phase, PHASE_METADATA));
	cr_assert(eq(int, (int)c->reason, REASON_DECLINED));
	cr_assert(eq(u32, c->failure_subtask, UINT32_MAX));
	rig_close(&r);
}

Test(checkpoint_stats, the_slowest_is_who_was_last_or_who_failed)
{
	struct rig r;
	struct acknowledgement second = ack(1, 2);

	rig_open(&r, 10);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 100);
	checkpoint_stats_on_acknowledge(r.s, &second, (struct moment){ 0, 110 });
	cr_assert(eq(u32, checkpoint_record_slowest(checkpoint_stats_find(r.s, 1)), 2));
	fail(&r, 1, 1);
	cr_assert(eq(u32, checkpoint_record_slowest(checkpoint_stats_find(r.s, 1)), 1));
	second.checkpoint_id = 2;
	checkpoint_stats_on_pending(r.s, 2, &checkpoint, r.plan, 200);
	checkpoint_stats_on_acknowledge(r.s, &second, (struct moment){ 0, 210 });
	checkpoint_stats_on_phase(r.s, 2, PHASE_METADATA); /* nobody is waited for */
	fail(&r, 2, UINT32_MAX);
	cr_assert(eq(u32, checkpoint_record_slowest(checkpoint_stats_find(r.s, 2)), 2));
	rig_close(&r);
}

Test(checkpoint_stats, the_history_is_cut_with_every_event)
{
	struct rig r;

	rig_open(&r, 1);
	checkpoint_stats_on_pending(r.s, 1, &checkpoint, r.plan, 100);
	checkpoint_stats_on_pending(r.s, 2, &checkpoint, r.plan, 100);
	complete(&r, 3, 100);
	cr_assert_null(checkpoint_stats_find(r.s, 3));
	cr_assert_not_null(checkpoint_stats_find(r.s, 1));
	cr_assert_not_null(checkpoint_stats_find(r.s, 2));
	fail(&r, 1, UINT32_MAX);
	cr_assert_null(checkpoint_stats_find(r.s, 1));
	checkpoint_stats_on_completed(r.s, 2, "there", 300);
	cr_assert_not_null(checkpoint_stats_find(r.s, 2));
	checkpoint_stats_on_pending(r.s, 4, &checkpoint, r.plan, 400);
	cr_assert_null(checkpoint_stats_find(r.s, 2));
	cr_assert_not_null(checkpoint_stats_find(r.s, 4));
	rig_close(&r);
}

Test(checkpoint_stats, whom_it_waits_for_may_be_the_first_of_all)
{
	struct rig r;

	rig_open(&r, 10);
	complete(&r, 1, 100);
	execution_graph_set_state(r.graph, 0, EXECUTION_RUNNING);
	checkpoint_plan_destroy(r.plan);
	cr_assert(eq(int, checkpoint_plan_calculate(&r.plan, r.graph, true, &(uint32_t){ 0 }), 0));
	checkpoint_stats_on_pending(r.s, 2, &checkpoint, r.plan, 1000);
	checkpoint_stats_on_phase(r.s, 2, PHASE_TASKS);
	char *text = checkpoint_stats_explain_pending(r.s, 1500);
	cr_assert_not_null(strstr(text, ": src (1/3) has not acknowledged"), "%s", text);
	free(text);
	checkpoint_stats_on_progress(r.s, 1,
			&(struct subtask_progress){ .stuck_ms = 200, .heard_ms = 1500 });
	text = checkpoint_stats_explain_pending(r.s, 1500);
	cr_assert_not_null(strstr(text, ": src (2/3) has not acknowledged (stuck in one call for "
					"200 ms)"),
			"%s", text);
	free(text);
	checkpoint_stats_on_progress(r.s, 0,
			&(struct subtask_progress){ .stuck_ms = 200, .heard_ms = 1500 });
	text = checkpoint_stats_explain_pending(r.s, 1500);
	cr_assert_not_null(strstr(text, ": src (1/3) has not acknowledged"), "%s", text);
	free(text);
	rig_close(&r);
}

Test(checkpoint_stats, a_call_is_long_after_200_ms_and_silence_after_a_second)
{
	char text[PROGRESS_TEXT_BYTES];
	struct rig r;

	rig_open(&r, 10);
	checkpoint_stats_on_progress(r.s, 1,
			&(struct subtask_progress){ .stuck_ms = 199, .heard_ms = 1500 });
	checkpoint_stats_print_progress(r.s, 1, 1500, text);
	cr_assert_str_eq(text, "no barrier has come");
	checkpoint_stats_print_progress(r.s, 1, 2499, text);
	cr_assert_str_eq(text, "no barrier has come");
	checkpoint_stats_print_progress(r.s, 1, 2500, text);
	cr_assert_str_eq(text, "not heard for 1000 ms");
	rig_close(&r);
}

Test(checkpoint_stats, restores_are_counted_and_the_last_is_kept)
{
	struct rig r;

	rig_open(&r, 10);
	checkpoint_stats_on_restored(r.s, 4, false, "a", 10);
	checkpoint_stats_on_restored(r.s, 6, true, "b", 20);
	cr_assert(eq(u64, checkpoint_stats_counts(r.s).restored, 2));
	cr_assert(eq(i64, checkpoint_stats_restored(r.s)->id, 6));
	cr_assert(eq(i64, checkpoint_stats_restored(r.s)->restore_ms, 20));
	cr_assert_str_eq(checkpoint_stats_restored(r.s)->location, "b");
	rig_close(&r);
}
