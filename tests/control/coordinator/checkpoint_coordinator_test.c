#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

/* What scenario scripts cannot say about requests, the scheduler and settings. */

Test(checkpoint_coordinator, a_request_under_the_same_client_id_is_the_same_request)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
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
	struct checkpoint_coordinator_config config = rig_tolerant();
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
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.has_blocking_outputs = true;
	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(eq(u64, rig_request(&r, REQUEST_STOP), 2)); /* accepted, and failed later */
	cr_assert(eq(int, (int)rig_find(&r, DECIDE_REQUEST_DONE)->reason,
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
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	cr_assert(not(rig_find(&r, DECIDE_TRIGGER_TASKS)->is_all_ended));
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
	cr_assert(rig_find(&r, DECIDE_TRIGGER_TASKS)->is_all_ended);
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(rig_find(&r, DECIDE_NOTIFY_COMPLETE)->is_all_ended);
	rig_close(&r);
}

Test(checkpoint_coordinator, end_of_data_of_an_old_attempt_is_no_end)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
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

Test(checkpoint_coordinator, the_first_delay_lies_between_pause_and_interval)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
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
	struct checkpoint_coordinator_config config = rig_tolerant();
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
	struct checkpoint_coordinator_config config = rig_tolerant();
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
	struct checkpoint_coordinator_config config = rig_tolerant();
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
