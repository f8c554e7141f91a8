/* job_master: the way of a job, its checkpoints, restores and coordinators. */

#include "control/coordinator/ha_store.h"
#include "control/coordinator/job_places.h"
#include "control/coordinator/resource_manager.h"
#include "control/net/loop.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"
#include "tests/support/job_world.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(job_master, .init = job_world_init, .fini = job_world_fini);

/* ---- the way of a job ---- */

Test(job_master, waits_for_a_task_manager_and_then_runs_on_it)
{
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_CREATED));
	tm = join("tm-1");
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING));
	WAIT_UNTIL(record()->deploy_count == 1);
	cr_assert_eq(record()->task_count, 3);
	cr_assert_eq(record()->restored_id, 0);
}

Test(job_master, takes_checkpoints_and_confirms_them)
{
	run_to(3);
	cr_assert_not(record()->was_release);
	cr_assert_geq(count_checkpoints(), 1);
	cr_assert_leq(count_checkpoints(), 4, "three are retained, one may be on its way out");
}

Test(job_master, takes_one_more_checkpoint_when_all_data_is_in_and_then_lets_the_tasks_go)
{
	run_to(1);
	fake_task_manager_end_of_data(tm);
	WAIT_UNTIL(record()->was_release);
	int64_t last;
	do { /* the interval is 5 ms */
		uint64_t until_ns = clock_monotonic_ns() + UINT64_C(60000000);

		last = record()->confirmed_id;
		while (clock_monotonic_ns() < until_ns)
			loop_turn(loop, 5000000);
	} while (record()->confirmed_id != last);
	cr_assert(is_in(JOB_STATUS_RUNNING), "not before the tasks have finished");
	fake_task_manager_status_all(tm, WEIR__ATTEMPT_STATE__TASK_FINISHED);
	WAIT_UNTIL(is_in(JOB_STATUS_FINISHED));
	cr_assert_eq(record()->confirmed_id, last, "no checkpoint after the last one");
	WAIT_UNTIL(!job_master_is_busy(job));
	cr_assert_eq(count_checkpoints(), 0, "a finished job needs none");
}

Test(job_master, tries_its_last_checkpoint_again_when_it_failed_and_nobody_else_would)
{
	set("execution.checkpointing.interval=%s", "10 min");
	tm = join("tm-1");
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING) && record()->deploy_count == 1);
	fake_task_manager_behaviour(tm)->must_decline = true;
	fake_task_manager_end_of_data(tm);
	WAIT_UNTIL(record()->abort_count == 1);
	fake_task_manager_behaviour(tm)->must_decline = false;
	WAIT_UNTIL(record()->was_release);
}

Test(job_master, with_a_declined_checkpoint_goes_on_and_tells_the_tasks)
{
	run_to(2);
	int64_t good = record()->confirmed_id;
	fake_task_manager_behaviour(tm)->must_decline = true;
	WAIT_UNTIL(record()->abort_count > 1);
	cr_assert_gt(record()->aborted_id, good);
	cr_assert_geq(record()->latest_id, good, "AB-3");
	cr_assert(is_in(JOB_STATUS_RUNNING));
	cr_assert_geq(job_master_counts(job).checkpoints_failed, 2);
}

Test(job_master, says_that_no_checkpoint_completes_although_nobody_fails_one)
{
	set("execution.checkpointing.timeout=%s", "10 min");
	run_to(1);
	cr_assert_null(job_master_watch(job).overdue);
	cr_assert_geq(job_master_watch(job).since_completed_ms, 0);
	fake_task_manager_behaviour(tm)->must_ignore = true;
	WAIT_UNTIL(job_master_watch(job).overdue != NULL);
	const char *text = job_master_watch(job).overdue;
	cr_assert_not_null(strstr(text, "waiting for tasks"), "%s", text);
	cr_assert_not_null(strstr(text, "make (1/1) has not acknowledged"), "%s", text);
	cr_assert_not_null(strstr(text, "is in progress for"), "%s", text);
	cr_assert_geq(job_master_watch(job).since_completed_ms, 1000);
}

/* The first id is written to a file beside the log; the open of a pipe waits for a reader. */
Test(job_master, says_that_a_checkpoint_waits_for_its_id_when_the_disk_does_not_answer)
{
	char path[256], id[ID128_TEXT_BYTES];

	set("execution.checkpointing.timeout=%s", "10 min");
	submit(counting, "none");
	id128_print(job_master_id(job).id, id);
	snprintf(path, sizeof(path), "%s/ha/%s/checkpoints.tmp", directory, id);
	cr_assert_eq(mkfifo(path, 0600), 0);
	tm = join("tm-1");
	WAIT_UNTIL(job_master_watch(job).overdue != NULL);
	const char *text = job_master_watch(job).overdue;
	cr_assert_not_null(strstr(text, "waits for its id to be written for "), "%s", text);
	cr_assert_not_null(strstr(text, " ms"), "%s", text);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	cr_assert_geq(reader, 0);
	cr_assert_eq(unlink(path), 0);
	close(reader);
	WAIT_UNTIL(record()->confirmed_id >= 1);
}

/* Ids are reserved 64 at a time; another coordinator begins behind all that are (FO-10). */
Test(job_master, reserves_the_next_ids_when_half_of_those_it_has_are_used)
{
	set("execution.checkpointing.interval=%s", "1 ms");
	run_to(20);
	restart_coordinator();
	WAIT_UNTIL(record()->confirmed_id > 64);
	int64_t first = 65;
	cr_assert_lt(record()->confirmed_id, first + 30, "half of the first block was not used");
	WAIT_UNTIL(record()->confirmed_id >= first + 40);
	restart_coordinator();
	WAIT_UNTIL(record()->confirmed_id >= first + 2 * 64);
	cr_assert_lt(record()->confirmed_id, first + 2 * 64 + 30);
}

/* No trigger waits for a block: what is durable is always ahead. */
Test(job_master, draws_every_id_of_many_blocks_once_and_in_order)
{
	set("execution.checkpointing.interval=%s", "1 ms");
	run_to(200);
	cr_assert_eq(job_master_counts(job).checkpoints_failed, 0);
	cr_assert_geq(job_master_counts(job).checkpoints_completed, 199);
}

/* The first id is written to a file beside the log, where a folder stands. */
Test(job_master, says_why_no_checkpoint_can_be_begun)
{
	char path[256], id[ID128_TEXT_BYTES];

	submit(counting, "none");
	id128_print(job_master_id(job).id, id);
	snprintf(path, sizeof(path), "%s/ha/%s/checkpoints.tmp", directory, id);
	cr_assert_eq(mkdir(path, 0700), 0);
	tm = join("tm-1");
	WAIT_UNTIL(job_master_watch(job).overdue != NULL &&
			strstr(job_master_watch(job).overdue, "a checkpoint could not be begun: ")
					!= NULL);
	const char *text = job_master_watch(job).overdue;
	cr_assert_not_null(strstr(text, strerror(EISDIR)), "%s", text);
	cr_assert_eq(rmdir(path), 0);
	WAIT_UNTIL(record()->confirmed_id >= 1);
}

Test(job_master, says_that_its_end_cannot_be_written_and_why)
{
	char path[256], id[ID128_TEXT_BYTES];

	tm = join("tm-1");
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING));
	id128_print(job_master_id(job).id, id);
	snprintf(path, sizeof(path), "%s/ha/%s/job.tmp", directory, id);
	cr_assert_eq(mkdir(path, 0700), 0);
	job_master_cancel(job);
	WAIT_UNTIL(job_master_watch(job).overdue != NULL);
	const char *text = job_master_watch(job).overdue;
	cr_assert_not_null(strstr(text, strerror(EISDIR)), "%s", text);
	cr_assert(!is_in(JOB_STATUS_CANCELED));
	cr_assert_eq(rmdir(path), 0);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	cr_assert_null(job_master_watch(job).overdue);
}

Test(job_master, says_of_a_failed_checkpoint_who_was_waited_for_in_which_phase_and_how_long)
{
	set("execution.checkpointing.timeout=%s", "50 ms");
	run_to(1);
	fake_task_manager_behaviour(tm)->must_ignore = true;
	WAIT_UNTIL(job_master_watch(job).failure != NULL);
	struct job_watch w = job_master_watch(job);
	cr_assert_gt(w.failed_id, 1);
	cr_assert_not_null(strstr(w.failure, "waiting for tasks"), "%s", w.failure);
	cr_assert_not_null(strstr(w.failure, "make (1/1)"), "%s", w.failure);
	cr_assert_not_null(strstr(w.failure, "failed after 5"), "%s", w.failure);
}

Test(job_master, expects_no_checkpoints_when_they_are_switched_off_or_the_job_is_over)
{
	run_to(1);
	job_master_set_periodic(job, false);
	cr_assert_eq(job_master_watch(job).since_completed_ms, -1);
	job_master_set_periodic(job, true);
	cr_assert_geq(job_master_watch(job).since_completed_ms, 0);
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	cr_assert_eq(job_master_watch(job).since_completed_ms, -1);
}

/* ---- waiting ---- */

Test(job_master, says_that_it_waits_for_a_task_manager_until_there_is_one)
{
	char text[JOB_WAITING_BYTES] = "";

	submit(counting, "none");
	cr_assert_not(job_is_waiting(job, text), "it is still looking what it begins from");
	WAIT_UNTIL(is_in(JOB_STATUS_CREATED));
	cr_assert(job_is_waiting(job, text));
	cr_assert_str_eq(text, "waits for a TaskManager: none has registered");
	tm = join("tm-1");
	WAIT_UNTIL(all_run());
	cr_assert_not(job_is_waiting(job, text));
}

Test(job_master, says_how_many_it_has_where_it_needs_several)
{
	char text[JOB_WAITING_BYTES] = "";

	set("weir.job.taskmanagers=%s", "2");
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_CREATED));
	cr_assert(job_is_waiting(job, text));
	cr_assert_str_eq(text, "waits for 2 TaskManagers that have a link: 0 of them here");
	tm = join("tm-1");
	WAIT_UNTIL(job_is_waiting(job, text) && strchr(text, '1') != NULL);
	cr_assert_str_eq(text, "waits for 2 TaskManagers that have a link: 1 of them here");
}

/* ---- failures ---- */

Test(job_master, that_does_not_fit_fails_at_once_with_the_reason)
{
	tm = join("tm-1");
	fake_task_manager_behaviour(tm)->deploy_status = -ENOMEM;
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_FAILED));
	cr_assert_eq(record()->deploy_count, 1);
	const char *text = job_master_failure(job, 0)->text;
	cr_assert_eq(strncmp(text, "it does not fit (TaskManager tm-1 on ", 37), 0, "%s", text);
	cr_assert_not(job_master_is_restore_refused(job));
}

Test(job_master, refuses_the_same_job_twice_and_a_job_file_that_is_wrong)
{
	submit(counting, "none");
	cr_assert_eq(try_submit(counting, "none", false), -EEXIST);
	cr_assert_eq(try_submit("name: x\n", "none", false), -EINVAL);
}

/* ---- users ---- */

Test(job_master, cancels_its_tasks_and_keeps_its_checkpoints_when_it_is_cancelled)
{
	run_to(1);
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	cr_assert_eq(record()->cancel_count, 1);
	WAIT_UNTIL(!job_master_is_busy(job));
	cr_assert_gt(count_checkpoints(), 0);
}

Test(job_master, takes_a_last_checkpoint_before_it_stops)
{
	set("execution.checkpointing.interval=%s", "10 min");
	tm = join("tm-1");
	submit(counting, "none");
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING));
	job_master_stop(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	cr_assert_eq(record()->confirmed_id, 1);
	cr_assert_eq(count_checkpoints(), 1);
}

Test(job_master, answers_a_checkpoint_request_once_however_often_it_is_repeated)
{
	struct checkpoint_answer answer = {0};
	struct id128 id = {{7}};

	set("execution.checkpointing.interval=%s", "10 min");
	tm = join("tm-1");
	submit(counting, "none");
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), -EAGAIN);
	WAIT_UNTIL(is_in(JOB_STATUS_RUNNING) &&
			job_master_execution(job, 1, 1)->state == EXECUTION_RUNNING);
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), 0);
	cr_assert_eq(job_master_checkpoint(job, CHECKPOINT_CONFIGURED, &id), 0);
	WAIT_UNTIL(job_master_checkpoint_answer(job, id, &answer) && answer.is_done);
	cr_assert(answer.is_success);
	cr_assert_eq(answer.checkpoint_id, 1);
	cr_assert_eq(record()->trigger_count, 1);
	cr_assert_not(job_master_checkpoint_answer(job, (struct id128){{8}}, &answer));
}

/* ---- another coordinator ---- */

Test(job_master, goes_on_under_another_coordinator_with_its_newest_checkpoint_and_higher_ids)
{
	run_to(3);
	int64_t last = record()->confirmed_id;
	end_coordinator();
	start_coordinator();
	coordinator_recover(coordinator, "all");
	job = coordinator_job_at(coordinator, 0);
	cr_assert_not_null(job);
	cr_assert_str_eq(job_master_name(job), "counting");
	tm = join("tm-1");
	WAIT_UNTIL(record()->deploy_count == 1);
	cr_assert_geq(record()->restored_id, last);
	int64_t restored = record()->restored_id;
	WAIT_UNTIL(record()->confirmed_id > restored);
	struct job_counts c = job_master_counts(job);
	cr_assert_eq(c.restarts, 1);
	cr_assert_gt(c.checkpoints_completed, (uint64_t)last, "those of the first one count");
}

Test(job_master, that_has_ended_is_not_taken_up_by_another_coordinator)
{
	run_to(1);
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED));
	end_coordinator();
	start_coordinator();
	coordinator_recover(coordinator, "all");
	cr_assert_null(coordinator_job_at(coordinator, 0));
}

/* ---- restores ---- */

static void run_and_cancel(int64_t id)
{
	run_to(id);
	job_master_cancel(job);
	WAIT_UNTIL(is_in(JOB_STATUS_CANCELED) && !job_master_is_busy(job));
}

Test(job_master, begins_from_the_latest_checkpoint_of_its_name)
{
	run_and_cancel(2);
	int64_t last = record()->confirmed_id;
	submit(counting, "latest");
	WAIT_UNTIL(record()->deploy_count == 2);
	cr_assert_geq(record()->restored_id, last);
	int64_t restored = record()->restored_id;
	WAIT_UNTIL(record()->confirmed_id > restored);
}

static bool is_on_disk(int64_t id)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/checkpoints/*/chk-%lld/_metadata", directory,
			(long long)id);
	bool is_there = glob(pattern, 0, NULL, &found) == 0;
	globfree(&found);
	return is_there;
}

/* Restores the newest of an earlier life, which is above all retained ones; its id. */
static int64_t restore_as(const char *mode)
{
	run_and_cancel(2);
	set("execution.state-recovery.claim-mode=%s", mode);
	submit(counting, "latest");
	WAIT_UNTIL(record()->deploy_count == 2);
	int64_t restored = record()->restored_id;
	WAIT_UNTIL(record()->confirmed_id > restored + 8);
	return restored;
}

Test(job_master, deletes_the_snapshot_it_claimed_when_it_is_subsumed)
{
	int64_t restored = restore_as("CLAIM");

	WAIT_UNTIL(!is_on_disk(restored));
}

Test(job_master, leaves_a_snapshot_alone_that_it_does_not_claim)
{
	int64_t restored = restore_as("NO_CLAIM");

	cr_expect(is_on_disk(restored));
}

Test(job_master, leaves_a_snapshot_alone_that_nobody_claims_in_the_old_way)
{
	int64_t restored = restore_as("LEGACY");

	cr_expect(is_on_disk(restored));
}

Test(job_master, begins_from_the_configured_path_when_it_is_told_none)
{
	char path[256];

	run_and_cancel(2);
	newest_metadata(path);
	*strrchr(path, '/') = '\0';
	set("execution.state-recovery.path=%s", path);
	submit(counting, "none");
	WAIT_UNTIL(record()->deploy_count == 2);
	cr_expect_eq(record()->restored_id, atol(strstr(path, "chk-") + 4));
}

Test(job_master, refuses_to_pass_over_an_unreadable_checkpoint_unless_it_may_rewind)
{
	char path[256];

	run_and_cancel(3);
	newest_metadata(path);
	int64_t torn = atol(strstr(path, "chk-") + 4);
	tear(path);
	submit(counting, "latest");
	WAIT_UNTIL(is_in(JOB_STATUS_FAILED));
	cr_assert(job_master_is_restore_refused(job));
	cr_assert_not_null(strstr(job_master_failure(job, 0)->text, path));
	cr_assert_eq(record()->deploy_count, 1);
	WAIT_UNTIL(!job_master_is_busy(job));
	cr_assert_eq(try_submit(counting, "latest", true), 0);
	WAIT_UNTIL(record()->deploy_count == 2);
	cr_assert_lt(record()->restored_id, torn);
	cr_assert_gt(record()->restored_id, 0);
	WAIT_UNTIL(record()->confirmed_id > torn);
}

/* What a power cut may leave where directories get new names. */
Test(job_master, refuses_a_checkpoint_that_stands_under_anothers_number)
{
	char path[256], moved[512];

	run_and_cancel(3);
	newest_metadata(path);
	*strrchr(path, '/') = '\0';
	snprintf(moved, sizeof(moved), "%s0", path);
	cr_assert_eq(rename(path, moved), 0);
	submit(counting, "latest");
	WAIT_UNTIL(is_in(JOB_STATUS_FAILED));
	cr_assert(job_master_is_restore_refused(job));
	cr_assert_not_null(strstr(job_master_failure(job, 0)->text, "is checkpoint"));
	cr_assert_eq(record()->deploy_count, 1);
}

Test(job_master, hands_every_old_state_to_tasks_of_a_vertex_with_another_parallelism)
{
	char *other = strdup(counting);

	run_and_cancel(2);
	memcpy(strstr(other, "parallelism: 2"), "parallelism: 4", 14);
	submit(other, "latest");
	WAIT_UNTIL(record()->deploy_count == 2);
	/* Two of `count`, and that of `make`, for what was in flight between them. */
	cr_assert_eq(record()->rescaled_count, 3);
	cr_assert_eq(record()->task_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		cr_assert_eq(record()->tasks[i].state_bytes > 0, record()->tasks[i].vertex == 0);
	free(other);
}

Test(job_master, never_uses_an_id_again_that_stands_in_its_directory)
{
	run_and_cancel(3);
	int64_t last = record()->confirmed_id;
	submit(counting, "none");
	WAIT_UNTIL(record()->deploy_count == 2 && record()->confirmed_id > last);
	cr_assert_eq(record()->restored_id, 0);
}

/* ---- files ---- */

Test(job_master, hands_the_files_of_a_source_out_and_keeps_the_rest_in_the_checkpoint)
{
	char text[1024], path[128];

	for (char c = 'a'; c <= 'b'; c++) {
		snprintf(path, sizeof(path), "%s/%c.pcap", directory, c);
		close(open(path, O_CREAT | O_WRONLY, 0644));
	}
	snprintf(text, sizeof(text),
			"name: files\n"
			"vertices:\n"
			"  - uid: v\n"
			"    operators: [{uid: s, type: pcap-source, path: '%s/*.pcap'},"
			" {uid: p, type: flow-parse}, {uid: w, type: flow-window},"
			" {uid: d, type: file-sink, path: '%s/out', format: flow-csv}]\n"
			"config: {execution.checkpointing.interval: 5 ms}\n"
			"edges: []\n",
			directory, directory);
	tm = join("tm-1");
	fake_task_manager_behaviour(tm)->vertex_uids[0] = "v";
	submit(text, "none");
	WAIT_UNTIL(record()->deploy_count == 1);
	fake_task_manager_request_file(tm, 0);
	WAIT_UNTIL(strstr(record()->event, "/a.pcap") != NULL);
	int64_t id = record()->confirmed_id;
	WAIT_UNTIL(record()->confirmed_id > id + 1);
	/* A failure: the second file is still to be had, the first is the task's. */
	fake_task_manager_status(tm, record()->tasks[0].attempt,
			WEIR__ATTEMPT_STATE__TASK_FAILED, "out of luck");
	WAIT_UNTIL(record()->deploy_count == 2);
	fake_task_manager_request_file(tm, 0);
	WAIT_UNTIL(strstr(record()->event, "/b.pcap") != NULL);
	fake_task_manager_request_file(tm, 0);
	WAIT_UNTIL(strcmp(record()->event, "NO-MORE") == 0);
}

/* ---- a disk that takes nothing more ---- */

static uint32_t count_lines(int fd, const char *word)
{
	static char text[1 << 16];
	ssize_t size = read(fd, text, sizeof(text) - 1);
	uint32_t count = 0;

	text[size > 0 ? size : 0] = '\0';
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		count++;
	return count;
}

Test(job_master, says_once_that_ids_cannot_be_reserved_for_as_long_as_that_lasts)
{
	struct rlimit room, none;
	int lines[2];

	run_to(1);
	cr_assert_eq(pipe2(lines, O_NONBLOCK), 0);
	log_to_fd(lines[1]);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &room);
	none = (struct rlimit){1, room.rlim_max};
	for (uint32_t spell = 0; spell < 2; spell++) {
		uint32_t failed = job_master_counts(job).checkpoints_failed;

		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
		/* As many as may be reserved by then, and a few more. */
		WAIT_UNTIL(job_master_counts(job).checkpoints_failed >
				failed + 2 * HA_ID_BLOCK_COUNT);
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &room), 0);
		cr_expect_eq(count_lines(lines[0], "ids cannot be reserved ahead"), 1);
		int64_t id = record()->confirmed_id;
		WAIT_UNTIL(record()->confirmed_id > id + 1);
	}
	log_to_fd(STDERR_FILENO);
}

/* ---- registration ---- */

Test(job_master, has_no_use_for_a_task_manager_of_another_protocol)
{
	fake_task_manager_create(&tm, loop, coordinator_port(coordinator), "tm-1",
			MESSAGE_PROTOCOL_VERSION + 1);
	WAIT_UNTIL(record()->refusal[0] != 0);
	cr_assert_not_null(strstr(record()->refusal, "another version of the protocol"));
	cr_assert_eq(resource_manager_count(coordinator_resources(coordinator)), 0);
}

Test(job_master, takes_a_task_manager_that_registers_again_in_place_of_the_old)
{
	tm = join("tm-1");
	WAIT_UNTIL(record()->is_registered);
	struct fake_task_manager *again = join("tm-1");
	WAIT_UNTIL(fake_task_manager_record(again)->is_registered && !record()->is_registered);
	cr_assert_eq(resource_manager_count(coordinator_resources(coordinator)), 1);
	fake_task_manager_destroy(tm);
	tm = again;
}
