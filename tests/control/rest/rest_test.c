#include "control/rest/rest.h"

#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/resource_manager.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "dataplane/operator/operator.h"
#include "tests/support/rest_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TM "tm-of-the-test"

static struct connection *taskmanager;

TestSuite(rest, .init = rest_world_init, .fini = rest_world_fini);

/* ---- a TaskManager that says who it is and nothing else ---- */

static void ignore_message(void *owner, struct connection *c, const Weir__Envelope *envelope)
{
	(void)owner;
	(void)c;
	(void)envelope;
}

static void forget_connection(void *owner, struct connection *c, const char *reason)
{
	(void)owner;
	(void)c;
	(void)reason;
}

static void join(void)
{
	static const struct connection_events events = {ignore_message, forget_connection};
	Weir__RegisterTaskManager m = WEIR__REGISTER_TASK_MANAGER__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	char id[] = TM, host[] = "here", version[] = "1", pages[] = "no hugepages";
	char address[] = "02:00:00:00:00:01 10.0.0.1 6125 1514 512 2", port[] = "net_memif0 ...";
	char packets[] = "net_tap0 ...";
	uint32_t cores[] = {3, 5};

	m.id = id;
	m.host = host;
	m.version = version;
	m.pages = pages;
	m.link_address = address;
	m.link_port = port;
	m.packet_ports = packets;
	m.slot_count = 2;
	m.n_cores = 2;
	m.cores = cores;
	m.abi_version = WEIR_ABI_VERSION;
	m.protocol_version = MESSAGE_PROTOCOL_VERSION;
	m.pool_bytes = UINT64_C(64) << 20;
	m.state_bytes = UINT64_C(128) << 20;
	e.body_case = WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER;
	e.register_task_manager = &m;
	cr_assert_eq(tcp_connection_open(&taskmanager, rest_world.loop, "127.0.0.1",
				     coordinator_port(rest_world.coordinator), &events, NULL),
			0);
	cr_assert_eq(connection_send(taskmanager, &e), 0);
	const struct resource_manager *r = coordinator_resources(rest_world.coordinator);
	for (int i = 0; i < 500 && resource_manager_count(r) == 0; i++)
		loop_turn(rest_world.loop, 10000000);
	cr_assert_eq(resource_manager_count(r), 1);
}

/* ---- checkpoints, as the coordinator notes them ---- */

enum { SUBTASKS = 4 };

static void pend(struct checkpoint_stats *s, int64_t id, int64_t wall_ms)
{
	uint32_t subtasks[SUBTASKS] = {0, 1, 2, 3};
	struct attempt_id attempts[SUBTASKS] = {0};
	bool all[SUBTASKS] = {true, true, true, true}, none[SUBTASKS] = {false};
	struct checkpoint_plan plan = {
			.subtask_count = SUBTASKS,
			.vertex_count = 2,
			.trigger_count = 2,
			.wait_count = SUBTASKS,
			.triggers = subtasks,
			.waits = subtasks,
			.attempts = attempts,
			.is_waited = all,
			.is_finished = none,
			.is_vertex_finished = none,
	};
	struct checkpoint_properties p =
			checkpoint_properties_checkpoint(KIND_CHECKPOINT, RETAIN_ON_CANCELLATION);

	checkpoint_stats_on_pending(s, id, &p, &plan, wall_ms);
}

static void acknowledge(
		struct checkpoint_stats *s, int64_t id, uint32_t subtask, int64_t wall_ms)
{
	struct acknowledgement a = {
			.subtask = subtask,
			.checkpoint_id = id,
			.metrics = {.state_bytes = 100 + subtask,
					.checkpointed_bytes = 10 + subtask,
					.sync_ns = 1000001,
					.async_ns = 2000000,
					.start_delay_ns = 3000000,
					.alignment_ns = 4000000,
					.heard_ns = 71,
					.began_ns = 72,
					.ended_ns = 73,
					.sent_ns = 74,
					.processed_bytes = 5,
					.persisted_bytes = 6},
	};

	checkpoint_stats_on_acknowledge(s, &a, (struct moment){77, wall_ms});
}

/* 1 completed, 2 failed after one of four acknowledged, 3 is in progress. */
static void note_checkpoints(struct job_master *jm)
{
	struct checkpoint_stats *s = job_master_checkpoints(jm);

	checkpoint_stats_on_restored(s, 7, false, "/somewhere/chk-7", 500);
	pend(s, 1, 1000);
	for (uint32_t i = 0; i < SUBTASKS; i++)
		acknowledge(s, 1, i, 1010 + i);
	checkpoint_stats_on_completed(s, 1, "/somewhere/chk-1", 1020);
	pend(s, 2, 2000);
	checkpoint_stats_on_phase(s, 2, PHASE_TASKS);
	acknowledge(s, 2, 3, 2010);
	checkpoint_stats_on_failed(s, 2,
			&(struct checkpoint_blame){REASON_EXPIRED, UINT32_MAX, NULL}, 2500);
	pend(s, 3, 3000);
	checkpoint_stats_on_phase(s, 3, PHASE_TASKS);
	acknowledge(s, 3, 0, 3005);
}

/* ---- the shape of answers ---- */

Test(rest, answers_about_a_cluster_without_jobs_in_the_shape_of_flink)
{
	rest_as_flink("GET_config", "/config");
	rest_as_flink("GET_overview", "/v1/overview");
	json_decref(rest_ask("HEAD", "/overview", NULL, 200));
	rest_as_flink("GET_jobs", "/jobs");
	rest_as_flink("GET_jobs_overview", "/jobs/overview");
	rest_as_flink("GET_taskmanagers", "/taskmanagers");
	rest_as_flink("GET_nothing_404", "/nothing");
}

Test(rest, answers_about_a_job_in_the_shape_of_flink)
{
	rest_submit();
	rest_as_flink("GET_jobs", "/jobs");
	rest_as_flink("GET_jobs_overview", "/jobs/overview");
	rest_as_flink("GET_jobs_JOB", "/jobs/paced");
	rest_as_flink("GET_jobs_JOB_status", "/jobs/paced/status");
	rest_as_flink("GET_jobs_JOB_plan", "/jobs/paced/plan");
	rest_as_flink("GET_jobs_JOB_config", "/jobs/paced/config");
	rest_as_flink("GET_jobs_JOB_exceptions", "/jobs/paced/exceptions?maxExceptions=10");
	rest_as_flink("GET_jobs_JOB_checkpoints_config", "/jobs/paced/checkpoints/config");
}

Test(rest, answers_about_checkpoints_in_the_shape_of_flink)
{
	note_checkpoints(rest_submit());
	rest_as_flink("GET_jobs_JOB_checkpoints", "/jobs/paced/checkpoints");
	rest_as_flink("GET_jobs_JOB_checkpoints_details_N", "/jobs/paced/checkpoints/details/1");
	rest_as_flink("GET_jobs_JOB_checkpoints_details_N_subtasks_VERTEX",
			"/jobs/paced/checkpoints/details/1/subtasks/counting");
}

Test(rest, answers_about_taskmanagers_in_the_shape_of_flink)
{
	rest_submit();
	join();
	rest_as_flink("GET_taskmanagers", "/taskmanagers");
	rest_as_flink("GET_taskmanagers_TM", "/taskmanagers/" TM);
	rest_refused("GET", "/taskmanagers/other", NULL, 404, "other");
	json_t *json = rest_ask("GET", "/taskmanagers/" TM, NULL, 200);
	const json_t *own = json_object_get(json, "weir");
	cr_assert_str_eq(rest_text_at(json, "id"), TM);
	cr_assert_eq(json_integer_value(json_object_get(json, "slotsNumber")), 2);
	cr_assert_eq(json_integer_value(json_array_get(json_object_get(own, "cores"), 1)), 5);
	cr_assert_str_eq(rest_text_at(own, "pages"), "no hugepages");
	cr_assert_str_eq(rest_text_at(own, "link"), "02:00:00:00:00:01 10.0.0.1 6125 1514 512 2");
	cr_assert_str_eq(rest_text_at(own, "linkPort"), "net_memif0 ...");
	cr_assert_str_eq(rest_text_at(own, "packetPorts"), "net_tap0 ...");
	json_decref(json);
	connection_close(taskmanager);
}

static json_t *ask_link_metrics(void)
{
	return rest_ask("GET", "/taskmanagers/" TM "/metrics?get=link.framesSent,link.duplicates,"
			"link.handedOver,link.handOverFull,link.creditWaits,"
			"link.roundTripNanoseconds", NULL, 200);
}

Test(rest, shows_what_a_taskmanager_counts_of_its_links)
{
	Weir__TaskHeartbeat m = WEIR__TASK_HEARTBEAT__INIT;
	Weir__LinkNumbers link = WEIR__LINK_NUMBERS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	const char *wanted[] = {"71", "72", "73", "74", "75", "76"};

	join();
	link.frames_in = 70;
	link.frames_out = 71;
	link.duplicates = 72;
	link.handed_over = 73;
	link.hand_over_full = 74;
	link.credit_waits = 75;
	link.rtt_ns = 76;
	m.link = &link;
	e.body_case = WEIR__ENVELOPE__BODY_TASK_HEARTBEAT;
	e.task_heartbeat = &m;
	json_t *json = ask_link_metrics();
	cr_assert_str_eq(rest_text_at(json_array_get(json, 0), "value"), "0");
	json_decref(json);
	cr_assert_eq(connection_send(taskmanager, &e), 0);
	for (int i = 0; i < 50; i++)
		loop_turn(rest_world.loop, 1000000);
	json = ask_link_metrics();
	for (size_t i = 0; i < 6; i++)
		cr_assert_str_eq(rest_text_at(json_array_get(json, i), "value"), wanted[i]);
	json_decref(json);
	rest_submit();
	json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
	const json_t *totals = json_object_get(json, "link");
	cr_assert_eq(json_integer_value(json_object_get(totals, "frames")), 70);
	cr_assert_eq(json_integer_value(json_object_get(totals, "handed_over")), 73);
	json_decref(json);
	connection_close(taskmanager);
}

Test(rest, answers_people_with_one_page_that_needs_nothing_from_elsewhere)
{
	struct http_response response = {0};

	rest_handle(rest_world.coordinator, &(struct http_request){"GET", "/", "", "", 0},
			&response);
	cr_assert_eq(response.status, 200);
	cr_assert_not_null(strstr(response.content_type, "text/html"));
	cr_assert_eq(strncmp(response.body, "<!DOCTYPE html>", 15), 0);
	cr_assert_not_null(strstr(response.body, "</html>"));
	/* The name of SVG is the one address in it. */
	const char *address = strstr(response.body, "http");
	cr_assert_eq(strncmp(address, "http://www.w3.org/2000/svg", 26), 0);
	cr_assert_null(strstr(address + 1, "http"));
	cr_assert_null(strstr(response.body, " src="));
	cr_assert_null(strstr(response.body, "innerHTML"), "what is foreign stays text");
	free(response.body);
}

/* ---- checkpoints ---- */

Test(rest, shows_a_checkpoint_by_vertex_and_subtask)
{
	note_checkpoints(rest_submit());
	json_t *json = rest_ask("GET", "/jobs/paced/checkpoints/details/1/subtasks/counting", NULL,
			200);
	const json_t *second = json_array_get(json_object_get(json, "subtasks"), 1);
	const json_t *size = json_object_get(json_object_get(json, "summary"), "state_size");

	/* Of all four the last two are of this vertex. */
	cr_assert_eq(json_integer_value(json_object_get(json, "state_size")), 102 + 103);
	cr_assert_eq(json_integer_value(json_object_get(json, "end_to_end_duration")), 13);
	cr_assert_eq(json_integer_value(json_object_get(size, "min")), 102);
	cr_assert_eq(json_integer_value(json_object_get(second, "state_size")), 103);
	cr_assert_eq(json_integer_value(json_object_get(second, "start_delay")), 3);
	/* Ours: an attempt, and more than milliseconds. */
	const json_t *times = json_object_get(second, "nanoseconds");
	cr_assert_eq(json_integer_value(json_object_get(times, "sync")), 1000001);
	cr_assert_eq(json_integer_value(json_object_get(times, "alignment")), 4000000);
	const json_t *at = json_object_get(times, "at");
	cr_assert_eq(json_integer_value(json_object_get(at, "heard")), 71);
	cr_assert_eq(json_integer_value(json_object_get(at, "sent")), 74);
	cr_assert_eq(json_integer_value(json_object_get(at, "received")), 77);
	cr_assert_eq(json_integer_value(json_object_get(second, "attempt")), 0);
	json_decref(json);
}

Test(rest, names_the_slowest_subtask_and_the_phase)
{
	note_checkpoints(rest_submit());
	json_t *json = rest_ask("GET", "/jobs/paced/checkpoints", NULL, 200);
	const json_t *history = json_object_get(json, "history");
	const json_t *pending = json_array_get(history, 0), *failed = json_array_get(history, 1);
	const json_t *completed = json_array_get(history, 2);

	/* Who acknowledged last; of one that failed, who was waited for. */
	cr_assert_str_eq(rest_text_at(completed, "slowest_subtask"), "counting (2/2)");
	cr_assert_str_eq(rest_text_at(failed, "slowest_subtask"), "make (1/2)");
	cr_assert_str_eq(rest_text_at(failed, "phase"), "waiting for tasks");
	cr_assert_str_eq(rest_text_at(pending, "phase"), "waiting for tasks");
	cr_assert_null(json_object_get(completed, "phase"));
	json_decref(json);
}

Test(rest, takes_the_id_of_a_vertex_for_its_uid)
{
	char target[256];

	note_checkpoints(rest_submit());
	json_t *by_uid = rest_ask(
			"GET", "/jobs/paced/checkpoints/details/1/subtasks/make", NULL, 200);
	json_t *job = rest_ask("GET", "/jobs/paced", NULL, 200);
	snprintf(target, sizeof(target), "/jobs/%s/checkpoints/details/1/subtasks/%s",
			rest_text_at(job, "jid"),
			rest_text_at(json_array_get(json_object_get(job, "vertices"), 0), "id"));
	json_t *by_id = rest_ask("GET", target, NULL, 200);
	cr_assert(json_equal(by_uid, by_id));
	json_decref(by_uid);
	json_decref(by_id);
	json_decref(job);
	rest_refused("GET", "/jobs/paced/checkpoints/details/1/subtasks/abc", NULL, 400,
			"(vertexid) from value \"abc\"");
}

Test(rest, says_why_a_checkpoint_failed_and_who_had_not_acknowledged)
{
	note_checkpoints(rest_submit());
	json_t *json = rest_ask("GET", "/jobs/paced/checkpoints", NULL, 200);
	const json_t *failed = json_object_get(json_object_get(json, "latest"), "failed");
	const json_t *newest = json_array_get(json_object_get(json, "history"), 0);

	cr_assert_str_eq(rest_text_at(failed, "status"), "FAILED");
	cr_assert_not_null(strstr(rest_text_at(failed, "failure_message"), "CHECKPOINT_EXPIRED"));
	cr_assert_eq(json_integer_value(json_object_get(failed, "num_acknowledged_subtasks")), 1);
	cr_assert_eq(json_integer_value(json_object_get(failed, "failure_timestamp")), 2500);
	cr_assert_str_eq(rest_text_at(newest, "className"), "in_progress");
	cr_assert_null(json_object_get(newest, "external_path"));
	json_decref(json);
	json = rest_ask("GET", "/jobs/paced/checkpoints/details/2/subtasks/make", NULL, 200);
	const json_t *subtask = json_array_get(json_object_get(json, "subtasks"), 0);
	cr_assert_str_eq(rest_text_at(subtask, "status"), "pending_or_failed");
	json_decref(json);
	rest_refused("GET", "/jobs/paced/checkpoints/details/9", NULL, 404, "checkpoint 9");
	rest_refused("GET", "/jobs/paced/checkpoints/details/x", NULL, 400, "checkpointid");
}

Test(rest, tells_that_the_files_of_a_checkpoint_are_gone)
{
	/* Known to the statistics, and to nobody who keeps files. */
	note_checkpoints(rest_submit());
	json_t *json = rest_ask("GET", "/jobs/paced/checkpoints/details/1", NULL, 200);
	cr_assert(json_is_true(json_object_get(json, "discarded")));
	json_decref(json);
}

Test(rest, begins_no_checkpoint_of_a_job_that_does_not_run)
{
	rest_submit();
	rest_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": \"CONFIGURED\"}",
			409, "RUNNING");
	rest_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": \"INCREMENTAL\"}",
			400, "CONFIGURED or FULL");
	rest_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": 1}", 400,
			"expected a string");
	rest_refused("POST", "/jobs/paced/checkpoints", "{\"triggerId\": \"12\"}", 400, "32 hex");
	rest_refused("GET", "/jobs/paced/checkpoints/00000000000000000000000000000001", NULL, 404,
			"no such request");
	rest_refused("GET", "/jobs/paced/checkpoints/1", NULL, 400, "triggerid");
}

Test(rest, stops_and_starts_periodic_checkpoints)
{
	rest_submit();
	json_decref(rest_ask("PATCH", "/jobs/paced/checkpoints?periodic=off", NULL, 202));
	json_decref(rest_ask("PATCH", "/jobs/paced/checkpoints?periodic=on", NULL, 202));
	rest_refused("PATCH", "/jobs/paced/checkpoints?periodic=maybe", NULL, 400, "on or off");
	rest_refused("PATCH", "/jobs/paced/checkpoints", NULL, 400, "on or off");
}
