#include "control/coordinator/checkpoint_coordinator.h"

#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* Requests, their order and outcomes, and the settings. */

/* Each request has one outcome, its own. */
Test(checkpoint_requests, outcomes_name_their_request)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;
	uint64_t first, second;

	rig_open(&r, &config);
	first = rig_request(&r, REQUEST_CHECKPOINT);
	second = rig_request(&r, REQUEST_SAVEPOINT);
	checkpoint_coordinator_on_decline(r.c,
			&(struct task_failure){ .subtask = 1, .checkpoint_id = 1,
					.reason = REASON_DECLINED },
			r.now);
	rig_drain(&r);
	cr_assert(eq(u64, rig_find(&r, DECIDE_REQUEST_DONE)->request, first));
	cr_assert(not(rig_find(&r, DECIDE_REQUEST_DONE)->is_success));
	cr_assert(not(rig_find(&r, DECIDE_REQUEST_DONE)->is_periodic));
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(eq(u64, rig_find(&r, DECIDE_REQUEST_DONE)->request, second));
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_success);
	cr_assert(eq(str, rig_find(&r, DECIDE_REQUEST_DONE)->path, "there"));
	cr_assert(eq(i64, rig_find(&r, DECIDE_TRIGGER_TASKS)->timestamp_ms, 1000));
	cr_assert(eq(u32, rig_count(&r, DECIDE_REQUEST_DONE), 2));
	rig_close(&r);
}

Test(checkpoint_requests, outcomes_tell_what_nobody_asked_for)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.interval_ms = 100;
	config.first_delay_ms = 0;
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), 0));
	rig_pass(&r, 0);
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_success);
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_periodic);
	rig_pass(&r, 100);
	checkpoint_coordinator_stop(r.c, r.now);
	rig_drain(&r);
	cr_assert(not(rig_find(&r, DECIDE_REQUEST_DONE)->is_success));
	cr_assert(rig_find(&r, DECIDE_REQUEST_DONE)->is_periodic);
	rig_close(&r);
}

Test(checkpoint_requests, the_last_completion_is_none_before_the_first)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	rig_open(&r, &config);
	cr_assert(eq(u64, checkpoint_coordinator_last_completion(r.c), UINT64_MAX));
	rig_request(&r, REQUEST_SAVEPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(eq(u64, checkpoint_coordinator_last_completion(r.c), r.now.now_ns));
	rig_close(&r);
}

/* PL-5: which vertex an operator coordinator belongs to reaches the pending checkpoint. */
Test(checkpoint_requests, the_state_of_a_coordinator_goes_with_its_vertex)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct snapshot_state state = { .bytes = NULL };
	const struct pending_checkpoint *p;
	struct rig r;

	rig_open(&r, &config);
	checkpoint_coordinator_add_coordinator(r.c, 0);
	checkpoint_coordinator_add_coordinator(r.c, 1);
	execution_graph_set_state(r.graph, 0, EXECUTION_FINISHED);
	execution_graph_set_state(r.graph, 1, EXECUTION_FINISHED);
	rig_request(&r, REQUEST_CHECKPOINT);
	p = checkpoint_coordinator_pending(r.c, 0);
	for (uint32_t i = 0; i < 2; i++) {
		file_list_add(&state.files, "splits");
		checkpoint_coordinator_on_coordinator_snapshot(r.c, i, 1, 0, &state, r.now);
	}
	cr_assert(eq(ptr, (void *)pending_checkpoint_coordinator(p, 0), NULL));
	cr_assert(ne(ptr, (void *)pending_checkpoint_coordinator(p, 1), NULL));
	rig_close(&r);
}

static uint64_t request_as(struct rig *r, uint32_t client)
{
	struct trigger_request request = { .kind = REQUEST_CHECKPOINT };
	uint64_t handle;

	memcpy(request.client_id.bytes, &client, sizeof(client));
	cr_assert(eq(int, checkpoint_coordinator_request(r->c, &request, r->now, &handle), 0));
	return handle;
}

Test(checkpoint_requests, a_client_is_remembered_until_a_thousand_others_have_come)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.queue_max = 1;
	rig_open(&r, &config);
	for (uint32_t i = 1; i <= 1000; i++)
		cr_assert(eq(u64, request_as(&r, i), i));
	cr_assert(eq(u64, request_as(&r, 1), 1));
	rig_close(&r);
}

/* Only the newest thousand client ids are remembered. */
Test(checkpoint_requests, very_many_clients_are_forgotten_in_their_order)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	enum { CLIENTS = 2500, REMEMBERED = 1000 };
	struct rig r;

	config.queue_max = 1;
	rig_open(&r, &config);
	for (uint32_t i = 1; i <= CLIENTS; i++)
		cr_assert(eq(u64, request_as(&r, i), i));
	for (uint32_t i = CLIENTS - REMEMBERED + 1; i <= CLIENTS; i++)
		cr_assert(eq(u64, request_as(&r, i), i));
	cr_assert(eq(u64, request_as(&r, CLIENTS - REMEMBERED), CLIENTS + 1));
	rig_close(&r);
}

Test(checkpoint_requests, a_savepoint_goes_where_it_was_asked_for)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct trigger_request request = { .kind = REQUEST_SAVEPOINT, .directory = "/asked" };
	struct rig r;
	uint64_t handle;

	config.savepoint_directory = "/configured";
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_request(r.c, &request, r.now, &handle), 0));
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_PREPARE_LOCATION)->path, "/asked"));
	request.directory = NULL;
	cr_assert(eq(int, checkpoint_coordinator_request(r.c, &request, r.now, &handle), 0));
	rig_drain(&r);
	cr_assert(eq(str, rig_find(&r, DECIDE_PREPARE_LOCATION)->path, "/configured"));
	rig_close(&r);
}

/* RD-1: by the time stamp, which is the wall clock's. */
Test(checkpoint_requests, when_the_wall_clock_steps_back_the_smaller_time_goes_first)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;
	uint64_t second;

	rig_open(&r, &config);
	rig_request(&r, REQUEST_CHECKPOINT);
	rig_request(&r, REQUEST_CHECKPOINT);
	r.now.wall_ms -= 500;
	second = rig_request(&r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(&r, 1, NULL);
	rig_acknowledge_all(&r, 2, NULL);
	cr_assert(eq(u64, rig_find(&r, DECIDE_REQUEST_DONE)->request, second));
	rig_close(&r);
}

/* What channels and mailboxes have room for, forced or not. */
Test(checkpoint_requests, no_more_are_in_flight_than_there_is_room_for)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.in_flight_max = 2;
	rig_open(&r, &config);
	for (int i = 0; i < 3; i++)
		rig_request(&r, REQUEST_SAVEPOINT);
	cr_assert(ne(ptr, (void *)checkpoint_coordinator_pending(r.c, 1), NULL));
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_pending(r.c, 2), NULL));
	cr_assert(eq(u32, checkpoint_coordinator_queued_count(r.c), 1));
	rig_acknowledge_all(&r, 1, NULL);
	cr_assert(eq(u32, checkpoint_coordinator_queued_count(r.c), 0));
	rig_close(&r);
}

Test(checkpoint_requests, a_task_that_is_none_of_the_job_ends_nothing)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	const struct attempt_id none = { 0 };
	struct rig r;

	rig_open(&r, &config);
	cr_assert(not(checkpoint_coordinator_on_task_end_of_data(r.c, 3, none, r.now)));
	cr_assert(not(checkpoint_coordinator_on_task_end_of_data(r.c, UINT32_MAX, none, r.now)));
	rig_close(&r);
}

/* Section 23. */
Test(checkpoint_settings, defaults_are_those_of_flink)
{
	struct checkpoint_coordinator_config c = checkpoint_coordinator_config_default();

	cr_assert(eq(i64, c.interval_ms, 0));
	cr_assert(eq(i64, c.backlog_interval_ms, -1));
	cr_assert(eq(i64, c.min_pause_ms, 0));
	cr_assert(eq(i64, c.first_delay_ms, -1));
	cr_assert(eq(i64, c.timeout_ms, 600000));
	cr_assert(eq(i64, c.smallest_ms, 10));
	cr_assert(eq(u32, c.concurrent_max, 1));
	cr_assert(eq(u32, c.in_flight_max, UINT32_MAX));
	cr_assert(eq(i32, c.tolerable_failures, 0));
	cr_assert(c.alignment.is_exactly_once);
	cr_assert(not(c.alignment.is_unaligned));
	cr_assert(c.is_finished_enabled);
	cr_assert(eq(u32, c.retained_count, 1));
	cr_assert(eq(int, (int)c.retention, RETAIN_NEVER));
	cr_assert(eq(u32, c.queue_max, 1000));
	cr_assert(eq(u32, c.history_max, 10));
}

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

struct settings_case {
	int64_t interval, pause, backlog, first, timeout, aligned;
	uint32_t concurrent, queue;
	int32_t tolerable;
	bool is_good;
};

/* CO-1, OP-6: at the bounds and one beyond. */
Test(checkpoint_settings, each_is_refused_by_itself_and_only_beyond_its_bound)
{
	static const struct settings_case cases[] = {
		{ 0, 0, -1, -1, 10, 0, 1, 1, 0, true },
		{ 0, 0, -1, -1, 9, 0, 1, 1, 0, false },
		{ 10, 0, -1, -1, 10, 0, 1, 1, 0, true },
		{ 9, 0, -1, -1, 10, 0, 1, 1, 0, false },
		{ YEAR_MS, YEAR_MS, -1, -1, YEAR_MS, 0, 1, 1, 0, true },
		{ YEAR_MS + 1, 0, -1, -1, 10, 0, 1, 1, 0, false },
		{ 0, 0, -1, -1, YEAR_MS + 1, 0, 1, 1, 0, false },
		{ -1, 0, -1, -1, 10, 0, 1, 1, 0, false },
		{ 0, -1, -1, -1, 10, 0, 1, 1, 0, false },
		{ 0, 0, -1, -1, 10, -1, 1, 1, 0, false },
		{ 0, 0, -1, -1, 10, 0, 0, 1, 0, false },
		{ 0, 0, -1, -1, 10, 0, 1, 0, 0, false },
		{ 0, 0, -1, -1, 10, 0, 1, 1, -1, false },
		{ 20, 10, 0, -1, 10, 0, 1, 1, 0, true },
		{ 20, 10, 20, -1, 10, 0, 1, 1, 0, true },
		{ 20, 10, 19, -1, 10, 0, 1, 1, 0, false },
		{ 20, 10, 1, -1, 10, 0, 1, 1, 0, false },
		{ 20, 10, -1, 10, 10, 0, 1, 1, 0, true },
		{ 20, 10, -1, 20, 10, 0, 1, 1, 0, true },
		{ 20, 10, -1, 9, 10, 0, 1, 1, 0, false },
		{ 20, 10, -1, 21, 10, 0, 1, 1, 0, false },
		{ 20, 10, -1, 0, 10, 0, 1, 1, 0, false },
		{ 20, 0, -1, 0, 10, 0, 1, 1, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct settings_case *s = &cases[i];
		struct checkpoint_coordinator_config c = checkpoint_coordinator_config_default();

		c.interval_ms = s->interval;
		c.min_pause_ms = s->pause;
		c.backlog_interval_ms = s->backlog;
		c.first_delay_ms = s->first;
		c.timeout_ms = s->timeout;
		c.alignment.aligned_timeout_ms = s->aligned;
		c.concurrent_max = s->concurrent;
		c.queue_max = s->queue;
		c.tolerable_failures = s->tolerable;
		cr_expect(eq(int, checkpoint_coordinator_config_normalise(&c) == NULL, s->is_good),
				"case %zu", i);
	}
}

Test(checkpoint_settings, the_smallest_interval_is_raised_to_the_pause_too)
{
	struct checkpoint_coordinator_config c = checkpoint_coordinator_config_default();

	c.smallest_ms = 1;
	c.interval_ms = 1;
	c.min_pause_ms = 5;
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&c), NULL));
	cr_assert(eq(i64, c.interval_ms, 5));
	c.interval_ms = 0;
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&c), NULL));
	cr_assert(eq(i64, c.interval_ms, 0));
}

/* ---- the scheduler ---- */

Test(checkpoint_requests, an_interval_of_one_millisecond_is_one)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.smallest_ms = config.interval_ms = 1;
	config.backlog_interval_ms = 1000;
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), 0));
	rig_pass(&r, 1);
	cr_assert(eq(u64, checkpoint_coordinator_next_periodic(r.c), r.now.now_ns + NS_PER_MS));
	checkpoint_coordinator_on_backlog(r.c, 0, true, r.now);
	rig_pass(&r, 1);
	cr_assert(eq(u64, checkpoint_coordinator_next_periodic(r.c),
			r.now.now_ns + 1000 * NS_PER_MS));
	checkpoint_coordinator_on_backlog(r.c, 0, false, r.now);
	cr_assert(eq(u64, checkpoint_coordinator_next_periodic(r.c), r.now.now_ns + NS_PER_MS));
	rig_close(&r);
}

Test(checkpoint_requests, a_source_that_says_twice_that_it_has_backlog_says_once_that_it_has_none)
{
	struct checkpoint_coordinator_config config = rig_tolerant();
	struct rig r;

	config.interval_ms = 100;
	config.backlog_interval_ms = 1000;
	rig_open(&r, &config);
	cr_assert(eq(int, checkpoint_coordinator_start(r.c, r.now), 0));
	checkpoint_coordinator_on_backlog(r.c, 0, true, r.now);
	checkpoint_coordinator_on_backlog(r.c, 0, true, r.now);
	checkpoint_coordinator_on_backlog(r.c, 0, false, r.now);
	for (int i = 0; i < 3; i++)
		rig_pass(&r, 100);
	cr_assert(le(u64, checkpoint_coordinator_next_periodic(r.c),
			r.now.now_ns + 100 * NS_PER_MS));
	rig_close(&r);
}
