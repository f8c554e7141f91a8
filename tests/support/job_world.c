#include "tests/support/job_world.h"

#include "control/config/config.h"
#include "control/config/job_file.h"
#include "control/net/loop.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char counting[] =
		"name: counting\n"
		"config: {execution.checkpointing.interval: 5 ms}\n"
		"vertices:\n"
		"  - uid: make\n"
		"    operators: [{uid: g, type: generator, records: 0}]\n"
		"  - uid: count\n"
		"    parallelism: 2\n"
		"    operators: [{uid: c, type: keyed-count}, {uid: d, type: digest-sink}]\n"
		"edges: [{from: make, to: count, partition: hash}]\n";

char directory[] = "/tmp/weir-job-XXXXXX";
struct config *config;
struct loop *loop;
struct coordinator *coordinator;
struct fake_task_manager *tm;
struct job_master *job;

void set(const char *format, const char *value)
{
	struct config_error error;
	char text[256];

	snprintf(text, sizeof(text), format, value);
	cr_assert_eq(config_set_option(config, text, &error), 0, "%s", error.text);
}

void start_coordinator(void)
{
	char text[COORDINATOR_TEXT_BYTES];

	cr_assert_eq(loop_create(&loop), 0);
	cr_assert_eq(coordinator_create(&coordinator, loop, config, text), 0, "%s", text);
}

void end_coordinator(void)
{
	fake_task_manager_destroy(tm);
	tm = NULL;
	coordinator_destroy(coordinator);
	loop_destroy(loop);
}

void restart_coordinator(void)
{
	end_coordinator();
	start_coordinator();
	tm = join("tm-1");
	coordinator_recover(coordinator, "all");
	job = coordinator_job_at(coordinator, 0);
}

void job_world_init(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(config_create(&config), 0);
	set("high-availability.storageDir=%s/ha", directory);
	set("execution.checkpointing.dir=%s/checkpoints", directory);
	set("jobmanager.rpc.port=%s", "0");
	set("heartbeat.timeout=%s", "300 ms");
	set("restart-strategy.exponential-delay.initial-backoff=%s", "1 ms");
	set("restart-strategy.exponential-delay.max-backoff=%s", "1 ms");
	start_coordinator();
}

void job_world_fini(void)
{
	char command[128];

	end_coordinator();
	config_destroy(config);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

struct fake_task_manager *join(const char *id)
{
	struct fake_task_manager *f;

	fake_task_manager_create(
			&f, loop, coordinator_port(coordinator), id, MESSAGE_PROTOCOL_VERSION);
	fake_task_manager_behaviour(f)->vertex_uids[0] = "make";
	fake_task_manager_behaviour(f)->vertex_uids[1] = "count";
	return f;
}

const struct fake_record *record(void)
{
	return fake_task_manager_record(tm);
}

int try_submit(const char *text, const char *restore, bool allow_rewind)
{
	struct config_error error;
	struct job_id id;
	int rc = coordinator_submit(coordinator,
			&(struct job_submission){.file_name = "job.yaml",
					.file_text = text,
					.plugin_dir = "/",
					.restore = restore,
					.allow_rewind = allow_rewind},
			&id, &error);

	job = rc == 0 ? coordinator_find_job(coordinator, id) : NULL;
	return rc;
}

void submit(const char *text, const char *restore)
{
	cr_assert_eq(try_submit(text, restore, false), 0);
}

bool is_in(enum job_status status)
{
	return job_master_status(job) == status;
}

bool all_run(void)
{
	uint32_t count = job_master_spec(job)->vertex_count;
	bool all = is_in(JOB_STATUS_RUNNING);

	for (uint32_t place = 0; all && place < count; place++) {
		uint32_t v = job_master_vertex(job, place);

		for (uint32_t i = 0; i < job_master_spec(job)->vertices[v].parallelism; i++)
			all = all &&
			      job_master_execution(job, place, i)->state == EXECUTION_RUNNING;
	}
	return all;
}

void run_to(int64_t id)
{
	tm = join("tm-1");
	submit(counting, "none");
	WAIT_UNTIL(record()->confirmed_id >= id);
}

uint32_t count_metadata(const char *below)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%s/_metadata", directory, below);
	uint32_t count = glob(pattern, 0, NULL, &found) == 0 ? (uint32_t)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

uint32_t count_checkpoints(void)
{
	return count_metadata("checkpoints/*/chk-*");
}

void newest_metadata(char path[256])
{
	char pattern[128];
	glob_t found;
	long best = 0;

	snprintf(pattern, sizeof(pattern), "%s/checkpoints/*/chk-*/_metadata", directory);
	cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		long id = atol(strstr(found.gl_pathv[i], "chk-") + 4);

		if (id > best)
			snprintf(path, 256, "%s", found.gl_pathv[i]);
		best = id > best ? id : best;
	}
	globfree(&found);
}

void tear(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(truncate(path, st.st_size - 1), 0);
}
