#include "control/coordinator/coordinator.h"
#include "control/net/http_client.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"
#include "control/rest/rest.h"
#include "tests/support/rest_world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rest_jobs, .init = rest_world_init, .fini = rest_world_fini);

/* ---- submitting ---- */

/* A body with a trigger id and one setting. */
static char *tagged(const char *id, const char *setting)
{
	char *plain = rest_submission(rest_world_job, "generator.keys=512");
	json_t *body = json_loads(plain, 0, NULL);

	free(plain);
	json_object_set_new(body, "triggerId", json_string(id));
	json_object_set_new(body, "settings", json_pack("[s]", setting));
	char *text = json_dumps(body, 0);
	json_decref(body);
	cr_assert_not_null(text);
	return text;
}

static const char first_id[] = "00112233445566778899aabbccddeeff";
static const char interval[] = "execution.checkpointing.interval=7 s";

static size_t count_jobs(void)
{
	json_t *json = rest_ask("GET", "/jobs", NULL, 200);
	size_t count = json_array_size(json_object_get(json, "jobs"));

	json_decref(json);
	return count;
}

static void submit_tagged(const char *id, const char *setting)
{
	char *body = tagged(id, setting);
	json_t *json = rest_ask("POST", "/jobs", body, 202);

	cr_assert_str_eq(rest_text_at(json, "name"), "paced");
	json_decref(json);
	free(body);
}

Test(rest_jobs, takes_a_submission_that_is_repeated_for_the_one_it_was)
{
	submit_tagged(first_id, interval);
	submit_tagged(first_id, interval);
	cr_assert_eq(count_jobs(), 1);
	rest_world_close();
	rest_world_open();
	coordinator_recover(rest_world.coordinator, "all");
	submit_tagged(first_id, interval);
	cr_assert_eq(count_jobs(), 1);
}

Test(rest_jobs, refuses_another_job_of_the_name_of_one_that_runs_be_it_the_same_file)
{
	char *again = tagged("00112233445566778899aabbccddee00", interval);
	char *bare = rest_submission(rest_world_job, "generator.keys=512");

	submit_tagged(first_id, interval);
	rest_refused("POST", "/jobs", again, 409, "paced is here already");
	rest_refused("POST", "/jobs", bare, 409, "paced is here already");
	free(again);
	free(bare);
}

Test(rest_jobs, does_not_start_a_job_again_that_ended_before_its_submission_was_repeated)
{
	submit_tagged(first_id, interval);
	json_decref(rest_ask("PATCH", "/jobs/paced?mode=cancel", NULL, 202));
	for (int i = 0; i < 500; i++)
		loop_turn(rest_world.loop, 1000000);
	for (int life = 0; life < 2; life++) {
		submit_tagged(first_id, interval);
		json_t *json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
		cr_assert_str_eq(rest_text_at(json, "state"), "CANCELED");
		json_decref(json);
		rest_world_close();
		rest_world_open();
		coordinator_recover(rest_world.coordinator, "all");
	}
}

Test(rest_jobs, keeps_the_settings_of_a_submission_and_refuses_those_of_a_process)
{
	char *body = tagged(first_id, "weir.cores=auto:1");

	rest_refused("POST", "/jobs", body, 400, "weir.cores: no key of a job");
	free(body);
	submit_tagged(first_id, interval);
	for (int life = 0; life < 2; life++) {
		json_t *json = rest_ask("GET", "/jobs/paced/checkpoints/config", NULL, 200);
		cr_assert_eq(json_integer_value(json_object_get(json, "interval")), 7000);
		json_decref(json);
		rest_world_close();
		rest_world_open();
		coordinator_recover(rest_world.coordinator, "all");
	}
}

Test(rest_jobs, says_that_a_job_waits_for_a_task_manager)
{
	json_t *json = NULL;

	rest_submit();
	for (int i = 0; i < 2000; i++) {
		loop_turn(rest_world.loop, 1000000);
		json_decref(json);
		json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
		if (strcmp(rest_text_at(json, "state"), "CREATED") == 0)
			break;
	}
	cr_assert_str_eq(rest_text_at(json, "waiting"),
			"waits for a TaskManager: none has registered");
	json_decref(json);
}

Test(rest_jobs, says_what_is_wrong_with_a_job_file)
{
	char *body = rest_submission("name: paced\nvertices: 3\n", "a.b=1");

	rest_refused("POST", "/jobs", body, 400, "paced.yaml:2:");
	free(body);
	body = rest_submission(rest_world_job, "nobody.keys=1");
	rest_refused("POST", "/jobs", body, 400, "nobody");
	free(body);
}

Test(rest_jobs, refuses_a_body_that_is_not_what_it_expects)
{
	static const struct {
		const char *body, *part;
	} rows[] = {
			{"", "text of a job file"},
			{"[1]", "must be a JSON object"},
			{"{\"job\": 1}", "\"job\": expected a string"},
			{"{\"job\": \"a\", \"job\": \"b\"}", "no JSON"},
			{"{\"job\": \"a\\u0000b\"}", "no JSON"},
			{"{\"job\": \"\xff\"}", "no JSON"},
			{"{\"job\": \"a\"", "line 1"},
			{"{\"job\": \"a\", \"jobs\": 1}", "\"jobs\" is unknown"},
			{"{\"job\": \"a\", \"sets\": \"b\"}", "\"sets\": expected an array"},
			{"{\"job\": \"a\", \"sets\": [1]}", "\"sets\": expected a string"},
			{"{\"job\": \"a\", \"settings\": 1}", "\"settings\": expected an array"},
			{"{\"job\": \"a\", \"settings\": [1]}", "\"settings\": expected a string"},
			{"{\"job\": \"a\", \"triggerId\": \"1\"}", "32 hex"},
			{"{\"job\": \"a\", \"restore\": \"\"}", "\"restore\""},
			{"{\"job\": \"a\", \"plugin_dir\": \"lib\"}", "absolute path"},
			{"{\"job\": \"a\", \"allow_rewind\": 1}", "true or false"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		rest_refused("POST", "/jobs", rows[i].body, 400, rows[i].part);
	char *deep = malloc(100001);
	cr_assert_not_null(deep);
	memset(deep, '[', 100000);
	deep[100000] = 0;
	rest_refused("POST", "/jobs", deep, 400, "no JSON");
	free(deep);
}

/* ---- paths ---- */

Test(rest_jobs, refuses_a_path_it_does_not_know)
{
	char path[2048] = "/jobs/";

	rest_refused("GET", "/nothing", NULL, 404, "Unable to load");
	rest_refused("HEAD", "/v1/nothing", NULL, 404, "Unable to load");
	rest_refused("GET", "/jobs/a/b/c/d/e/f/g/h/i", NULL, 404, "Unable to load");
	rest_refused("GET", "/jobs/zzz", NULL, 400, "(jobid) from value \"zzz\"");
	rest_refused("GET", "/jobs/0123456789abcdef0123456789abcdef", NULL, 404, "not found");
	rest_refused("PATCH", "/jobs", NULL, 405, "PATCH");
	memset(path + 6, 'x', 240);
	rest_refused("GET", path, NULL, 400, "jobid");
}

Test(rest_jobs, finds_nothing_under_a_part_that_is_too_long)
{
	struct http_response response = {0};
	char path[2048] = "/jobs/";

	memset(path + 6, 'x', 2000);
	rest_handle(rest_world.coordinator, &(struct http_request){"GET", path, "", "", 0},
			&response);
	cr_assert_eq(response.status, 404);
	free(response.body);
}

Test(rest_jobs, shows_bytes_that_are_no_text)
{
	rest_refused("GET", "/jobs/\xff\xfe", NULL, 400, "value \"\?\?\"");
}

/* ---- a job's end, and what a run is judged by ---- */

Test(rest_jobs, sums_up_a_job)
{
	rest_submit();
	json_t *json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
	const json_t *checkpoints = json_object_get(json, "checkpoints");
	const json_t *counters = json_object_get(json, "counters");

	cr_assert_str_eq(rest_text_at(json, "name"), "paced");
	cr_assert_eq(json_integer_value(json_object_get(json, "records_in")), 0);
	cr_assert(json_is_integer(json_object_get(json_object_get(counters, "digest"),
			"records_in")));
	cr_assert(json_is_object(json_object_get(json, "unparsed")));
	cr_assert(json_is_object(json_object_get(json, "ledger")));
	cr_assert(json_is_null(json_object_get(checkpoints, "p50_ms")));
	cr_assert(json_is_null(json_object_get(json, "failure")));
	cr_assert(json_is_false(json_object_get(json, "refused")));
	cr_assert(json_is_null(json_object_get(json, "link")), "no TaskManager has one");
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(json, "tasks"), "total")),
			4);
	json_decref(json);
}

Test(rest_jobs, has_the_numbers_of_each_subtask)
{
	rest_submit();
	json_t *rows = rest_ask("GET", "/jobs/paced/numbers", NULL, 200);
	const json_t *last = json_array_get(rows, 3);

	cr_assert_eq(json_array_size(rows), 4);
	cr_assert_str_eq(rest_text_at(last, "vertex"), "counting");
	cr_assert_eq(json_integer_value(json_object_get(last, "subtask")), 1);
	cr_assert_eq(json_integer_value(json_object_get(last, "read_at_ns")), 0);
	json_decref(rows);
}

static void cancel(void)
{
	json_decref(rest_ask("PATCH", "/jobs/paced?mode=cancel", NULL, 202));
	for (int i = 0; i < 500; i++) {
		json_t *json = rest_ask("GET", "/jobs/paced/status", NULL, 200);
		bool is_over = strcmp(rest_text_at(json, "status"), "CANCELED") == 0;

		json_decref(json);
		if (is_over)
			return;
		loop_turn(rest_world.loop, 10000000);
	}
	cr_assert_fail("the job is not cancelled");
}

Test(rest_jobs, cancels_a_job_that_has_not_begun_and_keeps_it_to_be_seen)
{
	rest_submit();
	rest_refused("PATCH", "/jobs/paced?mode=stop", NULL, 400, "expected cancel");
	cancel();
	json_t *json = rest_ask("GET", "/overview", NULL, 200);
	cr_assert_eq(json_integer_value(json_object_get(json, "jobs-cancelled")), 1);
	json_decref(json);
	json_decref(rest_ask("PATCH", "/jobs/paced", NULL, 202));
	rest_refused("PATCH", "/jobs/paced/checkpoints?periodic=off", NULL, 409, "CANCELED");
}

/* ---- savepoints ---- */

#define TRIGGER_ID "0123456789abcdef0123456789abcdef"

Test(rest_jobs, refuses_a_savepoint_that_says_what_it_cannot)
{
	static const struct {
		const char *target, *body, *part;
	} rows[] = {
			{"savepoints", "{}", "execution.checkpointing.savepoint-dir"},
			{"savepoints", "{\"target-directory\": 1}", "expected a string"},
			{"savepoints", "{\"target-directory\": \"x\"}", "absolute path"},
			{"savepoints", "{\"target-directory\": \"/x\", \"formatType\": \"X\"}",
					"CANONICAL or NATIVE"},
			{"savepoints", "{\"target-directory\": \"/x\", \"triggerId\": \"7\"}",
					"32 hex digits"},
			{"savepoints", "{\"target-directory\": \"/x\", \"cancel-job\": 1}",
					"true or false"},
			{"stop", "{\"targetDirectory\": null}", "savepoint-dir"},
			{"stop", "{\"targetDirectory\": \"file:x\"}", "absolute path"},
			{"stop", "{\"targetDirectory\": \"/x\", \"drain\": 1}", "true or false"},
	};
	char target[64];

	rest_submit();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(target, sizeof(target), "/jobs/paced/%s", rows[i].target);
		rest_refused("POST", target, rows[i].body, 400, rows[i].part);
	}
	rest_refused("POST", "/jobs/paced/savepoints", "{\"target-directory\": \"/x\"}", 409,
			"needs it RUNNING");
	rest_refused("GET", "/jobs/paced/savepoints/" TRIGGER_ID, NULL, 404, "no savepoint");
	rest_refused("GET", "/jobs/paced/savepoints/7", NULL, 400, "triggerid");
}

Test(rest_jobs, answers_a_stop_that_is_asked_for_twice_once)
{
	static const char body[] =
			"{\"targetDirectory\": \"file:///x\", \"triggerId\": \"" TRIGGER_ID "\"}";

	rest_submit();
	for (int i = 0; i < 2; i++) {
		json_t *json = rest_ask("POST", "/jobs/paced/stop", body, 202);

		cr_assert_str_eq(rest_text_at(json, "request-id"), TRIGGER_ID);
		json_decref(json);
	}
	rest_refused("POST", "/jobs/paced/stop", "{\"targetDirectory\": \"/x\"}", 409,
			"being stopped already");
	rest_refused("GET", "/jobs/paced/checkpoints/" TRIGGER_ID, NULL, 404, "no such request");
	json_t *json = rest_ask("GET", "/jobs/paced/savepoints/" TRIGGER_ID, NULL, 200);
	cr_assert_str_eq(rest_text_at(json_object_get(json, "status"), "id"), "IN_PROGRESS");
	cr_assert(json_is_null(json_object_get(json, "operation")));
	json_decref(json);
	rest_as_flink("GET_jobs_JOB_savepoints_REQUEST_in_progress",
			"/jobs/paced/savepoints/" TRIGGER_ID);
	cr_assert_not(coordinator_has_news(rest_world.coordinator));
	cancel();
	cr_assert(coordinator_has_news(rest_world.coordinator));
	json = rest_ask("GET", "/jobs/paced/savepoints/" TRIGGER_ID, NULL, 200);
	cr_assert_str_eq(rest_text_at(json_object_get(json, "status"), "id"), "COMPLETED");
	const json_t *cause = json_object_get(
			json_object_get(json, "operation"), "failure-cause");
	cr_assert(strstr(rest_text_at(cause, "stack-trace"), "is CANCELED") != NULL);
	json_decref(json);
	cr_assert_not(coordinator_has_news(rest_world.coordinator));
	json_decref(rest_ask("POST", "/jobs/paced/stop", body, 202));
	rest_refused("POST", "/jobs/paced/stop", "{\"targetDirectory\": \"/x\"}", 409,
			"has ended");
}

/* ---- disposal ---- */

Test(rest_jobs, refuses_a_disposal_that_names_no_absolute_path)
{
	rest_refused("POST", "/savepoint-disposal", "{}", 400, "absolute path");
	rest_refused("POST", "/savepoint-disposal", "{\"savepoint-path\": 1}", 400, "a string");
	rest_refused("POST", "/savepoint-disposal", "{\"savepoint-path\": \"file:x\"}", 400,
			"absolute path");
	rest_refused("POST", "/savepoint-disposal",
			"{\"savepoint-path\": \"/x\", \"triggerId\": \"7\"}", 400, "32 hex");
	rest_refused("GET", "/savepoint-disposal/" TRIGGER_ID, NULL, 404, "no savepoint disposal");
	rest_refused("GET", "/savepoint-disposal/7", NULL, 400, "triggerid");
}

Test(rest_jobs, answers_a_disposal_as_flink_does)
{
	static const char target[] = "/savepoint-disposal/" TRIGGER_ID;
	static const char body[] = "{\"savepoint-path\": \"file:/savepoints/nothing\", "
				   "\"triggerId\": \"" TRIGGER_ID "\"}";
	bool is_over = false;

	for (int i = 0; i < 2; i++) {
		json_t *json = rest_ask("POST", "/savepoint-disposal", body, 200);

		cr_assert_str_eq(rest_text_at(json, "request-id"), TRIGGER_ID);
		json_decref(json);
	}
	for (int i = 0; i < 1000 && !is_over; i++) {
		json_t *json = rest_ask("GET", target, NULL, 200);

		is_over = strcmp(rest_text_at(json_object_get(json, "status"), "id"),
					  "COMPLETED") == 0;
		json_decref(json);
		loop_turn(rest_world.loop, 1000000);
	}
	rest_as_flink("GET_savepoint-disposal_REQUEST", target);
	json_t *json = rest_ask("GET", target, NULL, 200);
	const json_t *cause = json_object_get(
			json_object_get(json, "operation"), "failure-cause");
	cr_expect_not_null(strstr(rest_text_at(cause, "stack-trace"),
					   "Could not dispose savepoint /savepoints/nothing: "),
			"%s", rest_text_at(cause, "stack-trace"));
	json_decref(json);
}

static void restart_coordinator(void)
{
	rest_world_close();
	rest_world_open();
	coordinator_recover(rest_world.coordinator, "all");
}

Test(rest_jobs, knows_a_job_that_ended_under_an_earlier_coordinator)
{
	rest_submit();
	cancel();
	restart_coordinator();
	json_t *json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
	const json_t *counters = json_object_get(json, "counters");
	cr_assert_str_eq(rest_text_at(json, "state"), "CANCELED");
	cr_assert_str_eq(rest_text_at(json, "name"), "paced");
	cr_assert(json_is_integer(json_object_get(json_object_get(counters, "digest"),
			"records_in")));
	/* Of 64 bits, which JSON's integers are not. */
	cr_assert_str_eq(rest_text_at(json_object_get(counters, "digest"), "digest_sum"),
			"0x0000000000000000");
	json_decref(json);
	rest_as_flink("GET_jobs_overview", "/jobs/overview");
	rest_as_flink("GET_jobs_JOB_status", "/jobs/paced/status");
	rest_refused("GET", "/jobs/paced/checkpoints", NULL, 404, "earlier coordinator");
	rest_submit();
	json = rest_ask("GET", "/jobs", NULL, 200);
	cr_assert_eq(json_array_size(json_object_get(json, "jobs")), 1);
	json_decref(json);
}

Test(rest_jobs, accepts_no_job_that_it_could_forget)
{
	rest_submit();
	restart_coordinator();
	json_t *json = rest_ask("GET", "/jobs/paced/summary", NULL, 200);
	cr_assert_str_eq(rest_text_at(json, "state"), "INITIALIZING");
	cr_assert_eq(json_integer_value(json_object_get(json, "restarts")), 0);
	json_decref(json);
}

/* ---- over a socket ---- */

static void *run_loop(void *context)
{
	loop_run(context);
	return NULL;
}

Test(rest_jobs, answers_over_http)
{
	const uint16_t any[2] = {0, 0};
	struct http_server *server;
	struct http_answer answer;
	pthread_t thread;

	rest_submit();
	cr_assert_eq(http_server_create(&server, rest_world.loop, "127.0.0.1", any, rest_handle,
				     rest_world.coordinator),
			0);
	cr_assert_eq(pthread_create(&thread, NULL, run_loop, rest_world.loop), 0);
	cr_assert_eq(http_client_call(&(struct http_call){"127.0.0.1", http_server_port(server),
						"GET", "/v1/jobs/paced/summary", NULL, 2000000000},
				     &answer),
			0);
	cr_assert_eq(answer.status, 200);
	cr_assert_not_null(strstr(answer.body, "\"name\":\"paced\""));
	free(answer.body);
	loop_stop_mt(rest_world.loop);
	pthread_join(thread, NULL);
	http_server_destroy(server);
}
