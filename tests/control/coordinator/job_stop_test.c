#include "control/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/net/loop.h"
#include "tests/support/fake_task_manager.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One coordinator on a directory of its own, with one TaskManager that only pretends. */

static const char counting[] =
		"name: counting\n"
		"vertices:\n"
		"  - uid: make\n"
		"    operators: [{uid: g, type: generator, records: 0}]\n"
		"  - uid: count\n"
		"    parallelism: 2\n"
		"    operators: [{uid: c, type: keyed-count}, {uid: d, type: digest-sink}]\n"
		"edges: [{from: make, to: count, partition: hash}]\n";

static const struct id128 request_id = {{7}};
static char directory[] = "/tmp/weir-stop-XXXXXX";
static struct config *config;
static struct loop *loop;
static struct coordinator *coordinator;
static struct fake_task_manager *tm;
static struct job_master *job;

static void set(const char *format, const char *value)
{
	struct config_error error;
	char text[256];

	snprintf(text, sizeof(text), format, value);
	cr_assert_eq(config_set_option(config, text, &error), 0, "%s", error.text);
}

static void join(void)
{
	fake_task_manager_create(&tm, loop, coordinator_port(coordinator), "tm-1",
			MESSAGE_PROTOCOL_VERSION);
	fake_task_manager_behaviour(tm)->vertex_uids[0] = "make";
	fake_task_manager_behaviour(tm)->vertex_uids[1] = "count";
}

static void start(void)
{
	char text[COORDINATOR_TEXT_BYTES];

	cr_assert_eq(loop_create(&loop), 0);
	cr_assert_eq(coordinator_create(&coordinator, loop, config, text), 0, "%s", text);
	join();
}

static void end(void)
{
	fake_task_manager_destroy(tm);
	coordinator_destroy(coordinator);
	loop_destroy(loop);
}

static void init(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(config_create(&config), 0);
	set("high-availability.storageDir=%s/ha", directory);
	set("execution.checkpointing.dir=%s/checkpoints", directory);
	set("jobmanager.rpc.port=%s", "0");
	set("execution.checkpointing.interval=%s", "10 min");
	set("restart-strategy.exponential-delay.initial-backoff=%s", "1 ms");
	set("restart-strategy.exponential-delay.max-backoff=%s", "1 ms");
	start();
}

static void fini(void)
{
	char command[128];

	end();
	config_destroy(config);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(job_stop, .init = init, .fini = fini);

#define WAIT_UNTIL(condition)                                                                      \
	do {                                                                                       \
		for (int round_ = 0; round_ < 3000 && !(condition); round_++)                      \
			loop_turn(loop, 2000000);                                                  \
		cr_assert(condition, "waited in vain");                                            \
	} while (0)

static const struct fake_record *record(void)
{
	return fake_task_manager_record(tm);
}

static bool is_in(enum job_status status)
{
	return job_master_status(job) == status;
}

static uint32_t count_savepoints(void)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/savepoint-*/_metadata", directory);
	uint32_t count = glob(pattern, 0, NULL, &found) == 0 ? (uint32_t)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

static struct checkpoint_answer answer(void)
{
	struct checkpoint_answer a = {0};

	cr_assert(job_master_checkpoint_answer(job, request_id, &a));
	return a;
}

static void submit(void)
{
	struct config_error error;
	struct job_id id;

	cr_assert_eq(coordinator_submit(coordinator,
				     &(struct job_submission){.file_name = "job.yaml",
						     .file_text = counting, .plugin_dir = "/",
						     .restore = "none"},
				     &id, &error),
			0);
	job = coordinator_find_job(coordinator, id);
}

/* A job that is being stopped with a savepoint before it runs. */
static void stop(void)
{
	struct savepoint_order order = {.end = SAVEPOINT_SUSPEND, .directory = directory};
	struct id128 id = request_id;
	char text[JOB_TEXT_BYTES];

	submit();
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0);
}

Test(job_stop, takes_the_savepoint_as_soon_as_all_tasks_run)
{
	stop();
	WAIT_UNTIL(record()->confirmed_id == 1);
	cr_assert_not(answer().is_done, "tasks have still to end");
	cr_assert(is_in(JOB_STATUS_RUNNING));
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert(answer().is_success);
	cr_assert_eq(strncmp(answer().location, directory, strlen(directory)), 0);
	cr_assert_eq(count_savepoints(), 1);
}

/* FM-6. */
Test(job_stop, restarts_the_job_when_a_task_declines)
{
	fake_task_manager_behaviour(tm)->must_decline = true;
	stop();
	WAIT_UNTIL(job_master_counts(job).restarts == 1);
	cr_assert(answer().is_done);
	cr_assert_not(answer().is_success);
	cr_assert_eq(record()->trigger_count, 1, "nobody tries again by himself");
	cr_assert_eq(count_savepoints(), 0);
}

Test(job_stop, tells_of_a_job_that_failed_before_its_savepoint_was_complete)
{
	fake_task_manager_behaviour(tm)->must_ignore = true;
	stop();
	WAIT_UNTIL(record()->trigger_count == 1);
	fake_task_manager_status(tm, record()->tasks[0].attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(answer().is_done);
	cr_assert_not_null(strstr(answer().text, "out of luck"), "%s", answer().text);
}

/* CO-7 holds until the rules resume it; a stop that fails leaves no trace. */
Test(job_stop, goes_on_when_the_savepoint_has_no_place)
{
	char blocked[64];
	struct savepoint_order order = {.end = SAVEPOINT_DRAIN, .directory = blocked};
	struct id128 id = request_id;
	char text[JOB_TEXT_BYTES];

	snprintf(blocked, sizeof(blocked), "%s/file", directory);
	FILE *file = fopen(blocked, "w");
	cr_assert_not_null(file);
	fclose(file);
	submit();
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0);
	WAIT_UNTIL(answer().is_done);
	cr_assert_not_null(strstr(answer().text, "Not a directory"), "%s", answer().text);
	cr_assert(is_in(JOB_STATUS_RUNNING));
	cr_assert_eq(record()->trigger_count, 0);
	id = (struct id128){{8}};
	order.directory = directory;
	cr_assert_eq(job_master_savepoint(job, &order, &id, text), 0, "%s", text);
}
