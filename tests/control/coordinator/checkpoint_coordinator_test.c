#include "control/coordinator/checkpoint_coordinator.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What scenario scripts cannot say: single decisions, answered one at a time.  The job is
 * src(2) -> sum(1).
 */

enum { LOG_MAX = 256 };

struct rig {
	struct execution_graph *graph;
	struct checkpoint_coordinator *c;
	struct moment now;
	int64_t id;
	bool is_auto[16]; /* decisions that are answered at once, by kind */
	struct {
		enum checkpoint_decision_kind kind;
		uint64_t token;
		int64_t id;
		enum deletion_kind deletion;
		bool is_all_ended, is_success;
		uint64_t request;
		enum checkpoint_failure_reason reason;
		char text[512];
	} log[LOG_MAX];
	uint32_t count;
};

static void rig_open(struct rig *r, const struct checkpoint_coordinator_config *config)
{
	static const struct execution_vertex vertices[] = {
		{ "src", 2, false },
		{ "sum", 1, false },
	};
	static const struct execution_edge edge = { 0, 1, EDGE_ALL_TO_ALL };
	struct checkpoint_coordinator_config normal = *config;

	memset(r, 0, sizeof(*r));
	cr_assert(eq(int, execution_graph_create(&r->graph, vertices, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 3; i++)
		execution_graph_set_state(r->graph, i, EXECUTION_RUNNING);
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&normal), NULL));
	checkpoint_coordinator_create(&r->c, &normal, r->graph);
	memset(r->is_auto, true, sizeof(r->is_auto));
	r->now = (struct moment){ 1000 * NS_PER_MS, 1000 };
}

static void rig_close(struct rig *r)
{
	checkpoint_coordinator_destroy(r->c);
	execution_graph_destroy(r->graph);
}

static void answer(struct rig *r, const struct checkpoint_decision *d)
{
	switch (d->kind) {
	case DECIDE_DRAW_ID:
		checkpoint_coordinator_on_id_drawn(r->c, d->token, 0, ++r->id, r->now);
		return;
	case DECIDE_PREPARE_LOCATION:
		checkpoint_coordinator_on_location_prepared(r->c, d->token, 0, "there", r->now);
		return;
	case DECIDE_WRITE_METADATA:
		checkpoint_coordinator_on_metadata_written(r->c, d->token, 0, r->now);
		return;
	case DECIDE_INDEX_ADD:
		checkpoint_coordinator_on_index_added(r->c, d->token, 0, r->now);
		return;
	case DECIDE_INDEX_REMOVE:
		checkpoint_coordinator_on_index_removed(r->c, d->token, 0, r->now);
		return;
	case DECIDE_DELETE:
		checkpoint_coordinator_on_deleted(r->c, d->token, 0, r->now);
		return;
	default:
		return;
	}
}

static void rig_drain(struct rig *r)
{
	struct checkpoint_decision d;

	while (checkpoint_coordinator_next_decision(r->c, &d)) {
		cr_assert(lt(u32, r->count, LOG_MAX));
		r->log[r->count].kind = d.kind;
		r->log[r->count].token = d.token;
		r->log[r->count].id = d.checkpoint_id;
		r->log[r->count].is_all_ended = d.is_all_ended;
		r->log[r->count].is_success = d.is_success;
		r->log[r->count].request = d.request;
		r->log[r->count].reason = d.reason;
		if (d.kind == DECIDE_DELETE)
			r->log[r->count].deletion = d.deletion->kind;
		if (d.text != NULL)
			snprintf(r->log[r->count].text, sizeof(r->log[r->count].text), "%s",
					d.text);
		r->count++;
		if (r->is_auto[d.kind])
			answer(r, &d);
	}
}

/* The newest decision of that kind, -1: none. */
static int rig_find(const struct rig *r, enum checkpoint_decision_kind kind)
{
	for (int i = (int)r->count - 1; i >= 0; i--) {
		if (r->log[i].kind == kind)
			return i;
	}
	return -1;
}

static uint32_t rig_count(const struct rig *r, enum checkpoint_decision_kind kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++)
		count += r->log[i].kind == kind;
	return count;
}

static uint64_t rig_request(struct rig *r, enum request_kind kind)
{
	uint64_t handle;

	cr_assert(eq(int,
			checkpoint_coordinator_request(r->c,
					&(struct trigger_request){
							.kind = kind, .directory = "/sp" },
					r->now, &handle),
			0));
	rig_drain(r);
	return handle;
}

static void rig_acknowledge(struct rig *r, int64_t id, uint32_t subtask, const char *shared)
{
	struct acknowledgement a = {
		.subtask = subtask,
		.attempt = execution_graph_attempt(r->graph, subtask),
		.checkpoint_id = id,
		.metrics = { .state_bytes = 100, .checkpointed_bytes = 10, .sync_ms = 3 },
	};

	a.state.bytes = strdup("state");
	a.state.byte_count = 5;
	if (shared != NULL)
		shared_list_add(&a.state.shared, shared, shared, false);
	checkpoint_coordinator_on_acknowledge(r->c, &a, r->now);
	rig_drain(r);
}

static void rig_acknowledge_all(struct rig *r, int64_t id, const char *shared)
{
	for (uint32_t i = 0; i < 3; i++)
		rig_acknowledge(r, id, i, shared);
}

static void rig_pass(struct rig *r, int64_t ms)
{
	r->now.now_ns += (uint64_t)ms * NS_PER_MS;
	r->now.wall_ms += ms;
	while (checkpoint_coordinator_on_timer(r->c, r->now))
		rig_drain(r);
	rig_drain(r);
}

static struct checkpoint_coordinator_config tolerant(void)
{
	struct checkpoint_coordinator_config config = checkpoint_coordinator_config_default();

	config.tolerable_failures = INT32_MAX;
	config.timeout_ms = 500;
	return config;
}

Test(checkpoint_coordinator, a_request_under_the_same_client_id_is_the_same_request)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct trigger_request request = {
		.kind = REQUEST_SAVEPOINT, .directory = "/sp", .client_id = { { 7 } }
	};
	uint64_t first, second, other;
	struct rig r;

	rig_open(&r, &config);
	checkpoint_coordinator_request(r.c, &request, r.now, &first);
	rig_drain(&r);
	rig_acknowledge_all(&r, 1, NULL);
	checkpoint_coordinator_request(r.c, &request, r.now, &second);
	rig_drain(&r);
	cr_assert(eq(u64, first, second));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DRAW_ID), 1));
	cr_assert(eq(u32, rig_count(&r, DECIDE_REQUEST_DONE), 1));
	request.client_id.bytes[0] = 8;
	checkpoint_coordinator_request(r.c, &request, r.now, &other);
	rig_drain(&r);
	cr_assert(ne(u64, first, other));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DRAW_ID), 2));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_savepoint_needs_a_directory_from_somewhere)
{
	struct checkpoint_coordinator_config config = tolerant();
	const struct trigger_request request = { .kind = REQUEST_STOP };
	uint64_t handle;
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(int, checkpoint_coordinator_request(r.c, &request, r.now, &handle), -EINVAL));
	rig_drain(&r);
	/* Nothing was started, nothing was stopped. */
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_pending(r.c, 0), NULL));
	rig_close(&r);

	config.savepoint_directory = "/default";
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_request(r.c, &request, r.now, &handle), 0));
	rig_close(&r);
}

Test(checkpoint_coordinator, blocking_outputs_refuse_savepoints_before_anything_is_stopped)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	config.has_blocking_outputs = true;
	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_STOP);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_REQUEST_DONE)].reason,
			REASON_BLOCKING_OUTPUT_EXIST));
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_pending(r.c, 0), NULL));
	rig_close(&r);
}

static bool end_input(struct rig *r, uint32_t subtask)
{
	bool is_current = checkpoint_coordinator_on_task_end_of_data(
			r->c, subtask, execution_graph_attempt(r->graph, subtask), r->now);

	rig_drain(r);
	return is_current;
}

Test(checkpoint_coordinator, when_all_tasks_reported_end_of_data_one_checkpoint_starts_at_once)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(not(r.log[rig_find(&r, DECIDE_TRIGGER_TASKS)].is_all_ended));
	cr_assert(end_input(&r, 0));
	cr_assert(end_input(&r, 1));
	cr_assert(end_input(&r, 1));
	cr_assert(eq(u32, checkpoint_coordinator_queued_count(r.c), 0));
	cr_assert(end_input(&r, 2));
	cr_assert(end_input(&r, 2));
	cr_assert(eq(u32, checkpoint_coordinator_queued_count(r.c), 1));
	/* The one that was triggered before releases nobody. */
	rig_acknowledge_all(&r, 1, NULL);
	for (uint32_t i = 0; i < r.count; i++) {
		if (r.log[i].kind == DECIDE_NOTIFY_COMPLETE)
			cr_assert(not(r.log[i].is_all_ended));
	}
	cr_assert(r.log[rig_find(&r, DECIDE_TRIGGER_TASKS)].is_all_ended);
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(r.log[rig_find(&r, DECIDE_NOTIFY_COMPLETE)].is_all_ended);
	rig_close(&r);
}

Test(checkpoint_coordinator, end_of_data_of_an_old_attempt_is_no_end)
{
	struct checkpoint_coordinator_config config = tolerant();
	const struct attempt_id second = { .id = { { 2 } } };
	struct rig r;

	rig_open(&r, &config);
	end_input(&r, 0);
	end_input(&r, 1);
	execution_graph_set_attempt(r.graph, 0, second);
	execution_graph_set_state(r.graph, 0, EXECUTION_RUNNING);
	end_input(&r, 2);
	cr_assert(not(checkpoint_coordinator_on_task_end_of_data(
			r.c, 0, (struct attempt_id){ 0 }, r.now)));
	cr_assert(not(checkpoint_coordinator_on_task_end_of_data(
			r.c, 99, (struct attempt_id){ 0 }, r.now)));
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_DRAW_ID), 0));
	cr_assert(end_input(&r, 0));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DRAW_ID), 1));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_failure_names_subtask_phase_and_elapsed_time)
{
	struct checkpoint_coordinator_config config = tolerant();
	const struct task_failure decline = {
		.subtask = 2,
		.checkpoint_id = 2,
		.reason = REASON_ASYNC_EXCEPTION,
		.text = "disk on fire",
	};
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge(&r, 1, 0, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(str, r.log[rig_find(&r, DECIDE_REQUEST_DONE)].text,
			"checkpoint 1 failed after 500 ms, waiting for tasks (1 of 3 subtasks "
			"acknowledged): src (2/2) has not acknowledged: CHECKPOINT_EXPIRED, the "
			"checkpoint took longer than its timeout"));
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 20);
	checkpoint_coordinator_on_decline(r.c, &decline, r.now);
	rig_drain(&r);
	cr_assert(eq(str, r.log[rig_find(&r, DECIDE_REQUEST_DONE)].text,
			"checkpoint 2 failed after 20 ms, waiting for tasks (0 of 3 subtasks "
			"acknowledged): sum (1/1) refused: CHECKPOINT_ASYNC_EXCEPTION, a task "
			"failed to write its state: disk on fire"));
	r.is_auto[DECIDE_WRITE_METADATA] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 3, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(str, r.log[rig_find(&r, DECIDE_REQUEST_DONE)].text,
			"checkpoint 3 failed after 500 ms, writing its metadata (3 of 3 subtasks "
			"acknowledged): CHECKPOINT_EXPIRED, the checkpoint took longer than its "
			"timeout"));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_task_cannot_subsume_a_savepoint)
{
	struct checkpoint_coordinator_config config = tolerant();
	const struct task_failure decline = {
		.subtask = 2, .checkpoint_id = 1, .reason = REASON_SUBSUMED
	};
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_SAVEPOINT);
	checkpoint_coordinator_on_decline(r.c, &decline, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_REQUEST_DONE)].reason,
			REASON_DECLINED_SUBSUMED));
	rig_close(&r);
}

Test(checkpoint_coordinator, what_comes_from_outside_and_is_nonsense_is_dropped)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct acknowledgement a = { .subtask = UINT32_MAX, .checkpoint_id = 1 };
	struct snapshot_state state = { 0 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	a.subtask = 3;
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	a.checkpoint_id = -5;
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	checkpoint_coordinator_on_metrics(r.c, &a, r.now);
	a.checkpoint_id = 1;
	checkpoint_coordinator_on_metrics(r.c, &a, r.now);
	checkpoint_coordinator_on_coordinator_snapshot(r.c, 9, 1, 0, &state, r.now);
	checkpoint_coordinator_on_hook_snapshot(r.c, 9, 1, 0, NULL, r.now);
	checkpoint_coordinator_on_id_drawn(r.c, 77, 0, 9, r.now);
	checkpoint_coordinator_on_location_prepared(r.c, 77, 0, "x", r.now);
	checkpoint_coordinator_on_metadata_written(r.c, 77, 0, r.now);
	checkpoint_coordinator_on_index_added(r.c, 0, 0, r.now);
	checkpoint_coordinator_on_index_removed(r.c, 77, 0, r.now);
	checkpoint_coordinator_on_deleted(r.c, 77, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32,
			pending_checkpoint_awaited_count(checkpoint_coordinator_pending(r.c, 0)),
			3));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_placeholder_for_an_unknown_file_fails_the_checkpoint)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct acknowledgement a = { .subtask = 0, .checkpoint_id = 1 };
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	shared_list_add(&a.state.shared, "key", NULL, false);
	checkpoint_coordinator_on_acknowledge(r.c, &a, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_REQUEST_DONE)].reason,
			REASON_FINALIZE_CHECKPOINT_FAILURE));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_directory_made_too_late_is_deleted)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_PREPARE_LOCATION] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_pass(&r, 500);
	checkpoint_coordinator_on_location_prepared(r.c,
			r.log[rig_find(&r, DECIDE_PREPARE_LOCATION)].token, 0, "late", r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_DELETE)].deletion, DELETION_LOCATION));
	cr_assert(not(checkpoint_coordinator_is_triggering(r.c)));
	rig_close(&r);
}

Test(checkpoint_coordinator, metadata_written_too_late_is_deleted_with_its_directory)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_WRITE_METADATA] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	rig_pass(&r, 500);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_DELETE)].deletion, DELETION_PENDING));
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_metadata_written(
			r.c, r.log[rig_find(&r, DECIDE_WRITE_METADATA)].token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(int, (int)r.log[rig_find(&r, DECIDE_DELETE)].deletion, DELETION_LOCATION));
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 0));
	rig_close(&r);
}

Test(checkpoint_coordinator, completions_enter_the_list_one_at_a_time_and_in_order)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;
	int first, second;

	config.concurrent_max = 2;
	config.retained_count = 5;
	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	first = rig_find(&r, DECIDE_INDEX_ADD);
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_ADD), 1));
	checkpoint_coordinator_on_index_added(r.c, r.log[first].token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_NOTIFY_COMPLETE), 1));
	second = rig_find(&r, DECIDE_INDEX_ADD);
	cr_assert(eq(i64, r.log[second].id, 2));
	checkpoint_coordinator_on_index_added(r.c, r.log[second].token, 0, r.now);
	rig_drain(&r);
	cr_assert(eq(i64, r.log[rig_find(&r, DECIDE_NOTIFY_COMPLETE)].id, 2));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_removal_that_fails_keeps_the_files_and_is_tried_again)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_REMOVE] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 2, "two");
	checkpoint_coordinator_on_index_removed(
			r.c, r.log[rig_find(&r, DECIDE_INDEX_REMOVE)].token, -EIO, r.now);
	rig_drain(&r);
	/* The list may still name 1, so its files are needed. */
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 0));
	r.is_auto[DECIDE_INDEX_REMOVE] = true;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 3, "two");
	/* 1, 2 and "one". */
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 3));
	cr_assert(eq(u32, rig_count(&r, DECIDE_DELETE), 3));
	rig_close(&r);
}

Test(checkpoint_coordinator, the_end_waits_for_what_is_being_written_and_deleted)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, "one");
	r.is_auto[DECIDE_INDEX_ADD] = false;
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 2, "two");
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(checkpoint_coordinator_is_busy(r.c));
	checkpoint_coordinator_on_index_added(
			r.c, r.log[rig_find(&r, DECIDE_INDEX_ADD)].token, 0, r.now);
	rig_drain(&r);
	/* It was stored, so it ends like what had been stored before. */
	cr_assert(not(checkpoint_coordinator_is_busy(r.c)));
	cr_assert(eq(u32, rig_count(&r, DECIDE_INDEX_REMOVE), 2));
	cr_assert(eq(u32, rig_count(&r, DECIDE_REMOVE_ID_COUNTER), 1));
	checkpoint_coordinator_end(r.c, JOB_FINISHED, r.now);
	rig_drain(&r);
	cr_assert(eq(u32, rig_count(&r, DECIDE_REMOVE_ID_COUNTER), 1));
	rig_close(&r);
}

Test(checkpoint_coordinator, the_16_latest_expired_are_remembered)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	for (int64_t id = 1; id <= 40; id++) {
		rig_request(&r, REQUEST_CHECKPOINT);
		rig_pass(&r, 500);
		r.count = 0;
	}
	for (int64_t id = 1; id <= 40; id++) {
		struct acknowledgement a = { .subtask = 0, .checkpoint_id = id };

		cr_expect(eq(int, checkpoint_coordinator_on_acknowledge(r.c, &a, r.now), id > 24),
				"%lld", (long long)id);
	}
	rig_close(&r);
}

Test(checkpoint_coordinator, the_first_delay_lies_between_pause_and_interval)
{
	struct checkpoint_coordinator_config config = tolerant();
	int64_t smallest = INT64_MAX;
	int64_t largest = 0;

	config.interval_ms = 13;
	config.min_pause_ms = 10;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct rig r;

		config.seed = seed;
		rig_open(&r, &config);
		cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), 0));

		uint64_t due_ns = checkpoint_coordinator_next_periodic(r.c);
		int64_t delay_ms = (int64_t)((due_ns - r.now.now_ns) / NS_PER_MS);

		smallest = delay_ms < smallest ? delay_ms : smallest;
		largest = delay_ms > largest ? delay_ms : largest;
		rig_close(&r);
	}
	cr_assert(eq(i64, smallest, 10));
	cr_assert(eq(i64, largest, 13));
}

static int64_t next_in(const struct rig *r)
{
	uint64_t due_ns = checkpoint_coordinator_next_periodic(r->c);

	return due_ns == UINT64_MAX ? -1 : (int64_t)((due_ns - r->now.now_ns) / NS_PER_MS);
}

Test(checkpoint_coordinator, backlog_has_an_interval_of_its_own_that_only_moves_triggers_earlier)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	config.interval_ms = 100;
	config.backlog_interval_ms = 1000;
	config.first_delay_ms = 100;
	config.concurrent_max = 10;
	config.timeout_ms = 100000;
	rig_open(&r, &config);
	checkpoint_coordinator_start(r.c, r.now);
	checkpoint_coordinator_on_backlog(r.c, 0, true, r.now);
	cr_assert(eq(i64, next_in(&r), 100)); /* never later */
	rig_pass(&r, 100);
	cr_assert(eq(i64, next_in(&r), 1000));
	checkpoint_coordinator_on_backlog(r.c, 1, true, r.now);
	checkpoint_coordinator_on_backlog(r.c, 0, false, r.now);
	cr_assert(eq(i64, next_in(&r), 1000)); /* the other has it still */
	checkpoint_coordinator_on_backlog(r.c, 1, false, r.now);
	cr_assert(eq(i64, next_in(&r), 100));
	rig_close(&r);
}

Test(checkpoint_coordinator, without_an_interval_during_backlog_one_firing_is_the_last)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	config.interval_ms = 100;
	config.backlog_interval_ms = 0;
	config.first_delay_ms = 100;
	rig_open(&r, &config);
	checkpoint_coordinator_start(r.c, r.now);
	checkpoint_coordinator_on_backlog(r.c, 0, true, r.now);
	cr_assert(eq(i64, next_in(&r), 100));
	rig_pass(&r, 100);
	cr_assert(eq(u32, rig_count(&r, DECIDE_TRIGGER_TASKS), 1));
	cr_assert(eq(i64, next_in(&r), -1));
	checkpoint_coordinator_on_backlog(r.c, 0, false, r.now);
	cr_assert(eq(i64, next_in(&r), 100));
	rig_close(&r);
}

Test(checkpoint_coordinator, starting_needs_an_interval_and_a_coordinator_that_is_up)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct rig r;

	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), -EINVAL));
	rig_close(&r);
	config.interval_ms = 100;
	rig_open(&r, &config);
	checkpoint_coordinator_shutdown(r.c, r.now);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), -ESHUTDOWN));
	rig_close(&r);
}

Test(checkpoint_coordinator, recovery_refuses_two_of_one_id)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct completed_checkpoint *entries[2];
	struct rig r;

	rig_open(&r, &config);
	completed_checkpoint_create(&entries[0], 4, "a");
	completed_checkpoint_create(&entries[1], 4, "b");
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 2), -EINVAL));
	entries[1]->id = 3;
	cr_assert(eq(int, checkpoint_coordinator_recover(r.c, entries, 2), 0));
	cr_assert(eq(i64, checkpoint_coordinator_retained(r.c, 0)->id, 3));
	cr_assert(eq(i64, checkpoint_coordinator_restore_latest(r.c, r.now)->id, 4));
	cr_assert(eq(i64, checkpoint_stats_restored(checkpoint_coordinator_stats(r.c))->id, 4));
	rig_close(&r);
}

Test(checkpoint_coordinator, a_restored_snapshot_that_cannot_be_listed_fails_the_job)
{
	struct checkpoint_coordinator_config config = tolerant();
	struct completed_checkpoint *snapshot;
	struct rig r;

	rig_open(&r, &config);
	r.is_auto[DECIDE_INDEX_ADD] = false;
	completed_checkpoint_create(&snapshot, 9, "there");
	cr_assert(eq(int,
			checkpoint_coordinator_restore_snapshot(
					r.c, snapshot, CLAIM_MODE_NO_CLAIM, r.now),
			0));
	rig_drain(&r);
	cr_assert(eq(i64, r.log[rig_find(&r, DECIDE_SET_NEXT_ID)].id, 10));
	checkpoint_coordinator_on_index_added(
			r.c, r.log[rig_find(&r, DECIDE_INDEX_ADD)].token, -EIO, r.now);
	rig_drain(&r);
	cr_assert(ge(int, rig_find(&r, DECIDE_FAIL_JOB), 0));
	rig_close(&r);
}

Test(checkpoint_coordinator, settings_are_normalised_or_refused)
{
	struct checkpoint_coordinator_config good = checkpoint_coordinator_config_default();
	struct checkpoint_coordinator_config bad;

	good.interval_ms = 100;
	good.min_pause_ms = INT64_C(1) << 50;
	good.alignment = (struct alignment_config){ false, true, 0 };
	good.concurrent_max = 3;
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&good), NULL));
	cr_assert(eq(i64, good.min_pause_ms, INT64_C(365) * 24 * 3600 * 1000));
	cr_assert(eq(i64, good.interval_ms, good.min_pause_ms));
	cr_assert(not(good.alignment.is_unaligned));

	bad = checkpoint_coordinator_config_default();
	bad.timeout_ms = 9;
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_config_normalise(&bad), NULL));
	bad = checkpoint_coordinator_config_default();
	bad.interval_ms = 9;
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_config_normalise(&bad), NULL));
	bad.smallest_ms = 1;
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&bad), NULL));
	bad.backlog_interval_ms = 8;
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_config_normalise(&bad), NULL));
	bad = checkpoint_coordinator_config_default();
	bad.alignment.is_unaligned = true;
	bad.concurrent_max = 2;
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_config_normalise(&bad), NULL));
}
