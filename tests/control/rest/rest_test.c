#include "control/rest/rest.h"

#include "control/config/config.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/resource_manager.h"
#include "control/net/http_client.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "dataplane/operator/operator.h"
#include "tests/support/flink_sample.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TM "tm-of-the-test"

static const char job_text[] = "name: paced\n"
			       "vertices:\n"
			       "  - uid: make\n"
			       "    parallelism: 2\n"
			       "    operators: [{uid: generator, type: generator}]\n"
			       "  - uid: counting\n"
			       "    parallelism: 2\n"
			       "    operators:\n"
			       "      - {uid: count, type: keyed-count, keys-max: 1024}\n"
			       "      - {uid: digest, type: digest-sink}\n"
			       "edges:\n"
			       "  - {from: make, to: counting, partition: hash}\n";

static char directory[] = "/tmp/weir-rest-XXXXXX";
static struct config *config;
static struct loop *loop;
static struct coordinator *coordinator;
static struct connection *taskmanager;

static void set(const char *format, ...)
{
	char assignment[256];
	struct config_error error;
	va_list args;

	va_start(args, format);
	vsnprintf(assignment, sizeof(assignment), format, args);
	va_end(args);
	cr_assert_eq(config_set_option(config, assignment, &error), 0, "%s", error.text);
}

static void open_coordinator(void)
{
	char text[COORDINATOR_TEXT_BYTES];

	cr_assert_eq(loop_create(&loop), 0);
	cr_assert_eq(coordinator_create(&coordinator, loop, config, text), 0, "%s", text);
}

static void close_coordinator(void)
{
	coordinator_destroy(coordinator);
	loop_destroy(loop);
}

static void init(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(config_create(&config), 0);
	set("high-availability.storageDir=%s/ha", directory);
	set("execution.checkpointing.dir=%s/checkpoints", directory);
	set("jobmanager.rpc.port=0");
	open_coordinator();
}

static void fini(void)
{
	char command[128];

	if (taskmanager != NULL)
		connection_close(taskmanager);
	close_coordinator();
	config_destroy(config);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(rest, .init = init, .fini = fini);

/* ---- asking ---- */

/* The answer, which must be JSON. */
static json_t *ask(const char *method, const char *target, const char *body, int status)
{
	char path[256];
	const char *query = strchr(target, '?');
	struct http_response response = {0};
	json_error_t at;

	snprintf(path, sizeof(path), "%s", target);
	path[strcspn(path, "?")] = 0;
	rest_handle(coordinator,
			&(struct http_request){method, path, query == NULL ? "" : query + 1,
					body == NULL ? "" : body, body == NULL ? 0 : strlen(body)},
			&response);
	cr_assert_eq(response.status, status, "%s %s: %d %s", method, target, response.status,
			response.body);
	json_t *json = json_loads(response.body, 0, &at);
	cr_assert_not_null(json, "%s %s: %s", method, target, response.body);
	free(response.body);
	return json;
}

static const char *text_at(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text == NULL ? "(none)" : text;
}

static void assert_refused(const char *method, const char *target, const char *body, int status,
		const char *part)
{
	json_t *json = ask(method, target, body, status);
	const char *text = json_string_value(json_array_get(json_object_get(json, "errors"), 0));

	cr_assert_not_null(text);
	cr_assert_not_null(strstr(text, part), "%s: %s", part, text);
	json_decref(json);
}

static char *submission(const char *text, const char *set_text)
{
	json_t *body = json_pack("{s:s, s:s, s:s, s:[s], s:s, s:b}", "file", "paced.yaml", "job",
			text, "plugin_dir", "/", "sets", set_text, "restore", "none",
			"allow_rewind", 0);
	char *dumped = json_dumps(body, 0);

	cr_assert_not_null(dumped);
	json_decref(body);
	return dumped;
}

static struct job_master *submit(void)
{
	char *body = submission(job_text, "generator.keys=512");
	json_t *json = ask("POST", "/v1/jobs", body, 202);
	struct job_id id;

	free(body);
	cr_assert(id128_parse(text_at(json, "jobid"), &id.id));
	json_decref(json);
	struct job_master *jm = coordinator_find_job(coordinator, id);
	cr_assert_not_null(jm);
	return jm;
}

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
	uint32_t cores[] = {3, 5};

	m.id = id;
	m.host = host;
	m.version = version;
	m.pages = pages;
	m.slot_count = 2;
	m.n_cores = 2;
	m.cores = cores;
	m.abi_version = WEIR_ABI_VERSION;
	m.protocol_version = MESSAGE_PROTOCOL_VERSION;
	m.pool_bytes = UINT64_C(64) << 20;
	m.state_bytes = UINT64_C(128) << 20;
	e.body_case = WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER;
	e.register_task_manager = &m;
	cr_assert_eq(tcp_connection_open(&taskmanager, loop, "127.0.0.1",
				     coordinator_port(coordinator), &events, NULL),
			0);
	cr_assert_eq(connection_send(taskmanager, &e), 0);
	for (int i = 0; i < 500 && resource_manager_count(coordinator_resources(coordinator)) == 0;
			i++)
		loop_turn(loop, 10000000);
	cr_assert_eq(resource_manager_count(coordinator_resources(coordinator)), 1);
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
					.sync_ms = 1,
					.async_ms = 2,
					.start_delay_ns = 3000000,
					.alignment_ns = 4000000,
					.processed_bytes = 5,
					.persisted_bytes = 6},
	};

	checkpoint_stats_on_acknowledge(s, &a, wall_ms);
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
	acknowledge(s, 2, 3, 2010);
	checkpoint_stats_on_failed(s, 2,
			&(struct checkpoint_blame){REASON_EXPIRED, UINT32_MAX, NULL}, 2500);
	pend(s, 3, 3000);
	acknowledge(s, 3, 0, 3005);
}

/* ---- the shape of answers ---- */

static void assert_as_flink(const char *sample, const char *target)
{
	json_t *recorded = flink_sample_load(TEST_DATA "/flink-rest", sample);
	json_t *got = ask("GET", target, NULL,
			(int)json_integer_value(json_object_get(recorded, "status")));

	flink_sample_compare(json_object_get(recorded, "response"), got, target);
	json_decref(got);
	json_decref(recorded);
}

Test(rest, answers_about_a_cluster_without_jobs_in_the_shape_of_flink)
{
	assert_as_flink("GET_config", "/config");
	assert_as_flink("GET_overview", "/v1/overview");
	json_decref(ask("HEAD", "/overview", NULL, 200));
	assert_as_flink("GET_jobs", "/jobs");
	assert_as_flink("GET_jobs_overview", "/jobs/overview");
	assert_as_flink("GET_taskmanagers", "/taskmanagers");
	assert_as_flink("GET_nothing_404", "/nothing");
}

Test(rest, answers_about_a_job_in_the_shape_of_flink)
{
	submit();
	assert_as_flink("GET_jobs", "/jobs");
	assert_as_flink("GET_jobs_overview", "/jobs/overview");
	assert_as_flink("GET_jobs_JOB", "/jobs/paced");
	assert_as_flink("GET_jobs_JOB_status", "/jobs/paced/status");
	assert_as_flink("GET_jobs_JOB_plan", "/jobs/paced/plan");
	assert_as_flink("GET_jobs_JOB_config", "/jobs/paced/config");
	assert_as_flink("GET_jobs_JOB_exceptions", "/jobs/paced/exceptions?maxExceptions=10");
	assert_as_flink("GET_jobs_JOB_checkpoints_config", "/jobs/paced/checkpoints/config");
}

Test(rest, answers_about_checkpoints_in_the_shape_of_flink)
{
	note_checkpoints(submit());
	assert_as_flink("GET_jobs_JOB_checkpoints", "/jobs/paced/checkpoints");
	assert_as_flink("GET_jobs_JOB_checkpoints_details_N", "/jobs/paced/checkpoints/details/1");
	assert_as_flink("GET_jobs_JOB_checkpoints_details_N_subtasks_VERTEX",
			"/jobs/paced/checkpoints/details/1/subtasks/counting");
}

Test(rest, answers_about_taskmanagers_in_the_shape_of_flink)
{
	submit();
	join();
	assert_as_flink("GET_taskmanagers", "/taskmanagers");
	assert_as_flink("GET_taskmanagers_TM", "/taskmanagers/" TM);
	assert_refused("GET", "/taskmanagers/other", NULL, 404, "other");
	json_t *json = ask("GET", "/taskmanagers/" TM, NULL, 200);
	const json_t *own = json_object_get(json, "weir");
	cr_assert_str_eq(text_at(json, "id"), TM);
	cr_assert_eq(json_integer_value(json_object_get(json, "slotsNumber")), 2);
	cr_assert_eq(json_integer_value(json_array_get(json_object_get(own, "cores"), 1)), 5);
	cr_assert_str_eq(text_at(own, "pages"), "no hugepages");
	json_decref(json);
}

/* ---- checkpoints ---- */

Test(rest, shows_a_checkpoint_by_vertex_and_subtask)
{
	note_checkpoints(submit());
	json_t *json = ask("GET", "/jobs/paced/checkpoints/details/1/subtasks/counting", NULL, 200);
	const json_t *second = json_array_get(json_object_get(json, "subtasks"), 1);
	const json_t *size = json_object_get(json_object_get(json, "summary"), "state_size");

	/* Of all four the last two are of this vertex. */
	cr_assert_eq(json_integer_value(json_object_get(json, "state_size")), 102 + 103);
	cr_assert_eq(json_integer_value(json_object_get(json, "end_to_end_duration")), 13);
	cr_assert_eq(json_integer_value(json_object_get(size, "min")), 102);
	cr_assert_eq(json_integer_value(json_object_get(second, "state_size")), 103);
	cr_assert_eq(json_integer_value(json_object_get(second, "start_delay")), 3);
	json_decref(json);
}

Test(rest, takes_the_id_of_a_vertex_for_its_uid)
{
	char target[256];

	note_checkpoints(submit());
	json_t *by_uid = ask("GET", "/jobs/paced/checkpoints/details/1/subtasks/make", NULL, 200);
	json_t *job = ask("GET", "/jobs/paced", NULL, 200);
	snprintf(target, sizeof(target), "/jobs/%s/checkpoints/details/1/subtasks/%s",
			text_at(job, "jid"),
			text_at(json_array_get(json_object_get(job, "vertices"), 0), "id"));
	json_t *by_id = ask("GET", target, NULL, 200);
	cr_assert(json_equal(by_uid, by_id));
	json_decref(by_uid);
	json_decref(by_id);
	json_decref(job);
	assert_refused("GET", "/jobs/paced/checkpoints/details/1/subtasks/abc", NULL, 400,
			"(vertexid) from value \"abc\"");
}

Test(rest, says_why_a_checkpoint_failed_and_who_had_not_acknowledged)
{
	note_checkpoints(submit());
	json_t *json = ask("GET", "/jobs/paced/checkpoints", NULL, 200);
	const json_t *failed = json_object_get(json_object_get(json, "latest"), "failed");
	const json_t *newest = json_array_get(json_object_get(json, "history"), 0);

	cr_assert_str_eq(text_at(failed, "status"), "FAILED");
	cr_assert_not_null(strstr(text_at(failed, "failure_message"), "CHECKPOINT_EXPIRED"));
	cr_assert_eq(json_integer_value(json_object_get(failed, "num_acknowledged_subtasks")), 1);
	cr_assert_eq(json_integer_value(json_object_get(failed, "failure_timestamp")), 2500);
	cr_assert_str_eq(text_at(newest, "className"), "in_progress");
	cr_assert_null(json_object_get(newest, "external_path"));
	json_decref(json);
	json = ask("GET", "/jobs/paced/checkpoints/details/2/subtasks/make", NULL, 200);
	const json_t *subtask = json_array_get(json_object_get(json, "subtasks"), 0);
	cr_assert_str_eq(text_at(subtask, "status"), "pending_or_failed");
	json_decref(json);
	assert_refused("GET", "/jobs/paced/checkpoints/details/9", NULL, 404, "checkpoint 9");
	assert_refused("GET", "/jobs/paced/checkpoints/details/x", NULL, 400, "checkpointid");
}

Test(rest, tells_that_the_files_of_a_checkpoint_are_gone)
{
	/* Known to the statistics, and to nobody who keeps files. */
	note_checkpoints(submit());
	json_t *json = ask("GET", "/jobs/paced/checkpoints/details/1", NULL, 200);
	cr_assert(json_is_true(json_object_get(json, "discarded")));
	json_decref(json);
}

Test(rest, begins_no_checkpoint_of_a_job_that_does_not_run)
{
	submit();
	assert_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": \"CONFIGURED\"}",
			409, "RUNNING");
	assert_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": \"INCREMENTAL\"}",
			400, "CONFIGURED or FULL");
	assert_refused("POST", "/jobs/paced/checkpoints", "{\"checkpointType\": 1}", 400,
			"expected a string");
	assert_refused("POST", "/jobs/paced/checkpoints", "{\"triggerId\": \"12\"}", 400, "32 hex");
	assert_refused("GET", "/jobs/paced/checkpoints/00000000000000000000000000000001", NULL, 404,
			"no such request");
	assert_refused("GET", "/jobs/paced/checkpoints/1", NULL, 400, "triggerid");
}

Test(rest, stops_and_starts_periodic_checkpoints)
{
	submit();
	json_decref(ask("PATCH", "/jobs/paced/checkpoints?periodic=off", NULL, 202));
	json_decref(ask("PATCH", "/jobs/paced/checkpoints?periodic=on", NULL, 202));
	assert_refused("PATCH", "/jobs/paced/checkpoints?periodic=maybe", NULL, 400, "on or off");
	assert_refused("PATCH", "/jobs/paced/checkpoints", NULL, 400, "on or off");
}

/* ---- submitting ---- */

Test(rest, accepts_the_same_job_twice_and_another_of_its_name_once)
{
	submit();
	submit();
	json_t *json = ask("GET", "/jobs", NULL, 200);
	cr_assert_eq(json_array_size(json_object_get(json, "jobs")), 1);
	json_decref(json);
	char *other = submission(job_text, "generator.keys=513");
	assert_refused("POST", "/jobs", other, 409, "paced is here already");
	free(other);
}

Test(rest, says_what_is_wrong_with_a_job_file)
{
	char *body = submission("name: paced\nvertices: 3\n", "a.b=1");

	assert_refused("POST", "/jobs", body, 400, "paced.yaml:2:");
	free(body);
	body = submission(job_text, "nobody.keys=1");
	assert_refused("POST", "/jobs", body, 400, "nobody");
	free(body);
}

Test(rest, refuses_a_body_that_is_not_what_it_expects)
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
			{"{\"job\": \"a\", \"restore\": \"\"}", "\"restore\""},
			{"{\"job\": \"a\", \"plugin_dir\": \"lib\"}", "absolute path"},
			{"{\"job\": \"a\", \"allow_rewind\": 1}", "true or false"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_refused("POST", "/jobs", rows[i].body, 400, rows[i].part);
	char *deep = malloc(100001);
	cr_assert_not_null(deep);
	memset(deep, '[', 100000);
	deep[100000] = 0;
	assert_refused("POST", "/jobs", deep, 400, "no JSON");
	free(deep);
}

/* ---- paths ---- */

Test(rest, refuses_a_path_it_does_not_know)
{
	char path[2048] = "/jobs/";

	assert_refused("GET", "/", NULL, 404, "Unable to load");
	assert_refused("HEAD", "/v1", NULL, 404, "Unable to load");
	assert_refused("GET", "/jobs/a/b/c/d/e/f/g/h/i", NULL, 404, "Unable to load");
	assert_refused("GET", "/jobs/zzz", NULL, 400, "(jobid) from value \"zzz\"");
	assert_refused("GET", "/jobs/0123456789abcdef0123456789abcdef", NULL, 404, "not found");
	assert_refused("PATCH", "/jobs", NULL, 405, "PATCH");
	memset(path + 6, 'x', 240);
	assert_refused("GET", path, NULL, 400, "jobid");
}

Test(rest, finds_nothing_under_a_part_that_is_too_long)
{
	struct http_response response = {0};
	char path[2048] = "/jobs/";

	memset(path + 6, 'x', 2000);
	rest_handle(coordinator, &(struct http_request){"GET", path, "", "", 0}, &response);
	cr_assert_eq(response.status, 404);
	free(response.body);
}

Test(rest, shows_bytes_that_are_no_text)
{
	assert_refused("GET", "/jobs/\xff\xfe", NULL, 400, "value \"\?\?\"");
}

/* ---- a job's end, and what a run is judged by ---- */

Test(rest, sums_up_a_job)
{
	submit();
	json_t *json = ask("GET", "/jobs/paced/summary", NULL, 200);
	const json_t *checkpoints = json_object_get(json, "checkpoints");
	const json_t *counters = json_object_get(json, "counters");

	cr_assert_str_eq(text_at(json, "name"), "paced");
	cr_assert_eq(json_integer_value(json_object_get(json, "records_in")), 0);
	cr_assert(json_is_integer(json_object_get(json_object_get(counters, "digest"),
			"records_in")));
	cr_assert(json_is_object(json_object_get(json, "unparsed")));
	cr_assert(json_is_null(json_object_get(checkpoints, "p50_ms")));
	cr_assert(json_is_null(json_object_get(json, "failure")));
	cr_assert(json_is_false(json_object_get(json, "refused")));
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(json, "tasks"), "total")),
			4);
	json_decref(json);
}

Test(rest, has_the_numbers_of_each_subtask)
{
	submit();
	json_t *rows = ask("GET", "/jobs/paced/numbers", NULL, 200);
	const json_t *last = json_array_get(rows, 3);

	cr_assert_eq(json_array_size(rows), 4);
	cr_assert_str_eq(text_at(last, "vertex"), "counting");
	cr_assert_eq(json_integer_value(json_object_get(last, "subtask")), 1);
	cr_assert_eq(json_integer_value(json_object_get(last, "read_at_ns")), 0);
	json_decref(rows);
}

Test(rest, cancels_a_job_that_has_not_begun_and_keeps_it_to_be_seen)
{
	submit();
	assert_refused("PATCH", "/jobs/paced?mode=stop", NULL, 400, "expected cancel");
	assert_refused("POST", "/jobs/paced/stop", "{\"targetDirectory\": \"/x\"}", 400,
			"savepoints");
	json_decref(ask("PATCH", "/jobs/paced?mode=cancel", NULL, 202));
	for (int i = 0; i < 500; i++) {
		json_t *json = ask("GET", "/jobs/paced/status", NULL, 200);
		bool is_over = strcmp(text_at(json, "status"), "CANCELED") == 0;

		json_decref(json);
		if (is_over)
			break;
		loop_turn(loop, 10000000);
	}
	json_t *json = ask("GET", "/overview", NULL, 200);
	cr_assert_eq(json_integer_value(json_object_get(json, "jobs-cancelled")), 1);
	json_decref(json);
	json_decref(ask("PATCH", "/jobs/paced", NULL, 202));
	assert_refused("PATCH", "/jobs/paced/checkpoints?periodic=off", NULL, 409, "CANCELED");
}

/* ---- over a socket ---- */

static void *run_loop(void *context)
{
	loop_run(context);
	return NULL;
}

Test(rest, answers_over_http)
{
	const uint16_t any[2] = {0, 0};
	struct http_server *server;
	struct http_answer answer;
	pthread_t thread;

	submit();
	cr_assert_eq(http_server_create(&server, loop, "127.0.0.1", any, rest_handle, coordinator),
			0);
	cr_assert_eq(pthread_create(&thread, NULL, run_loop, loop), 0);
	cr_assert_eq(http_client_call(&(struct http_call){"127.0.0.1", http_server_port(server),
						"GET", "/v1/jobs/paced/summary", NULL, 2000000000},
				     &answer),
			0);
	cr_assert_eq(answer.status, 200);
	cr_assert_not_null(strstr(answer.body, "\"name\":\"paced\""));
	free(answer.body);
	loop_stop_mt(loop);
	pthread_join(thread, NULL);
	http_server_destroy(server);
}
