/* checkpoints_command: what became of the checkpoints of a job, down to one subtask of one of
 * them: where its time went, from the trigger to the acknowledgement. */

#include "control/cli/exit_codes.h"
#include "control/cli/job_commands.h"
#include "control/cli/job_question.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

static json_t *unconst(const json_t *json)
{
	return (json_t *)(uintptr_t)json;
}

static int64_t ms_in_ns(const json_t *object, const char *key)
{
	int64_t ms = job_number(object, key);

	return ms < 0 ? -1 : ms * 1000000;
}

static bool is_failed(const json_t *checkpoint)
{
	return strcmp(job_text(checkpoint, "status"), "FAILED") == 0;
}

/* ---- the history ---- */

static void print_row(const json_t *c)
{
	const char *why = json_string_value(json_object_get(c, "failure_message"));
	char when[JOB_TIME_BYTES], took[JOB_TIME_BYTES];

	printf("%8" PRId64 "  %-11s  %-19s  %9s  %12" PRId64 "  %4" PRId64 "/%-4" PRId64
	       "  %-20s  %s\n",
			job_number(c, "id"), job_text(c, "status"),
			job_time(job_number(c, "trigger_timestamp"), when),
			job_duration(ms_in_ns(c, "end_to_end_duration"), took),
			job_number(c, "state_size"), job_number(c, "num_acknowledged_subtasks"),
			job_number(c, "num_subtasks"), job_text(c, "slowest_subtask"),
			why != NULL ? why : job_text(c, "external_path"));
}

static void print_watchdog(const json_t *watchdog)
{
	const json_t *since = json_object_get(watchdog, "since_completed_ms");
	const json_t *overdue = json_object_get(watchdog, "overdue");
	char age[JOB_TIME_BYTES];

	if (json_is_integer(since))
		printf("; last completed %s ago",
				job_duration(ms_in_ns(watchdog, "since_completed_ms"), age));
	printf("\n");
	if (json_is_string(overdue))
		printf("OVERDUE: %s\n", json_string_value(overdue));
	printf("\n");
}

static void print_history(const json_t *answer)
{
	const json_t *counts = json_object_get(answer, "counts"), *history, *c;
	size_t i;

	printf("completed %" PRId64 ", failed %" PRId64 ", in progress %" PRId64
	       ", restored %" PRId64,
			job_number(counts, "completed"), job_number(counts, "failed"),
			job_number(counts, "in_progress"), job_number(counts, "restored"));
	print_watchdog(json_object_get(answer, "watchdog"));
	printf("%8s  %-11s  %-19s  %9s  %12s  %9s  %-20s  %s\n", "id", "state", "triggered",
			"took", "bytes", "tasks", "slowest", "why it failed, or where it is");
	history = json_object_get(answer, "history");
	json_array_foreach(unconst(history), i, c)
		print_row(c);
}

/* --failed: what did not fail goes; the newest failure comes back when the history has forgotten
 * it. */
static void keep_failed(json_t *answer)
{
	json_t *history = json_object_get(answer, "history");
	json_t *latest = json_object_get(json_object_get(answer, "latest"), "failed");

	for (size_t i = json_array_size(history); i > 0; i--)
		if (!is_failed(json_array_get(history, i - 1)))
			json_array_remove(history, i - 1);
	if (json_array_size(history) == 0 && json_is_object(latest))
		json_array_append(history, latest);
}

/* ---- one checkpoint ---- */

static void print_head(const json_t *c)
{
	char when[JOB_TIME_BYTES], took[JOB_TIME_BYTES];
	const char *slowest = json_string_value(json_object_get(c, "slowest_subtask"));

	printf("checkpoint %" PRId64 ": %s %s, triggered %s, took %s, %" PRId64
	       " bytes, %" PRId64 "/%" PRId64 " subtasks acknowledged\n",
			job_number(c, "id"), job_text(c, "checkpoint_type"), job_text(c, "status"),
			job_time(job_number(c, "trigger_timestamp"), when),
			job_duration(ms_in_ns(c, "end_to_end_duration"), took),
			job_number(c, "state_size"), job_number(c, "num_acknowledged_subtasks"),
			job_number(c, "num_subtasks"));
	if (is_failed(c))
		printf("%s\n", job_text(c, "failure_message"));
	else
		printf("%s\n", json_object_get(c, "external_path") != NULL
						? job_text(c, "external_path")
						: job_text(c, "phase"));
	if (slowest != NULL)
		printf("slowest subtask: %s\n", slowest);
}

static void print_subtask(const char *vertex, int64_t parallelism, const json_t *s)
{
	const json_t *times = json_object_get(s, "nanoseconds");
	const json_t *alignment = json_object_get(s, "alignment");
	const json_t *in_flight = json_object_get(s, "channel_state");
	char index[NAME_BYTES], delay[JOB_TIME_BYTES], align[JOB_TIME_BYTES];
	char sync[JOB_TIME_BYTES], async[JOB_TIME_BYTES], all[JOB_TIME_BYTES];
	const char *state = "acknowledged";

	snprintf(index, sizeof(index), "%" PRId64 "/%" PRId64, job_number(s, "index") + 1,
			parallelism);
	if (times == NULL) {
		printf("%-20s  %-7s  %7" PRId64 "  %-12s  %s\n", vertex, index,
				job_number(s, "attempt"), "awaited", job_text(s, "phase"));
		return;
	}
	const char *mode = job_text(s, "mode");
	if (json_is_true(json_object_get(s, "aborted")))
		state = "incomplete";
	else if (json_is_true(json_object_get(s, "finished")))
		state = mode = "finished";
	printf("%-20s  %-7s  %7" PRId64 "  %-12s  %-9s  %9s  %9s  %9s  %9s  %9s  %12" PRId64
	       "  %12" PRId64 "  %12" PRId64 "  %8" PRId64 "  %7" PRId64 "  %5" PRId64 "\n",
			vertex, index, job_number(s, "attempt"), state, mode,
			job_duration(job_number(times, "start_delay"), delay),
			job_duration(job_number(times, "alignment"), align),
			job_duration(job_number(times, "sync"), sync),
			job_duration(job_number(times, "async"), async),
			job_duration(ms_in_ns(s, "end_to_end_duration"), all),
			job_number(s, "state_size"), job_number(alignment, "processed"),
			job_number(alignment, "persisted"), job_number(in_flight, "channels"),
			job_number(in_flight, "buffers"), job_number(in_flight, "files"));
}

/* Data in flight under the name of its channel, as `weir inspect` has it: the gate's number, then
 * the channel's.  True when the heading has been printed. */
static bool print_channels(const json_t *vertex, const json_t *s, bool has_heading)
{
	const json_t *state = json_object_get(s, "channel_state"), *c;
	char index[NAME_BYTES], name[NAME_BYTES];
	size_t i;

	json_array_foreach(json_object_get(state, "per_channel"), i, c) {
		if (!has_heading)
			printf("\n%-20s  %-7s  %-14s  %7s  %12s\n", "vertex", "subtask",
					"in flight", "buffers", "persisted");
		has_heading = true;
		snprintf(index, sizeof(index), "%" PRId64 "/%" PRId64, job_number(s, "index") + 1,
				job_number(vertex, "num_subtasks"));
		snprintf(name, sizeof(name), "%s %" PRId64 ".%" PRId64, job_text(c, "side"),
				job_number(c, "gate"), job_number(c, "channel"));
		printf("%-20s  %-7s  %-14s  %7" PRId64 "  %12" PRId64 "\n",
				job_text(vertex, "name"), index, name, job_number(c, "buffers"),
				job_number(c, "bytes"));
	}
	return has_heading;
}

static void print_checkpoint(const json_t *c)
{
	bool has_heading = false;
	const json_t *vertex, *s;
	size_t i, k;

	print_head(c);
	printf("\n%-20s  %-7s  %7s  %-12s  %-9s  %9s  %9s  %9s  %9s  %9s  %12s  %12s  %12s  %8s  "
	       "%7s  %5s\n",
			"vertex", "subtask", "attempt", "state", "mode", "delay", "alignment",
			"sync", "async", "all", "bytes", "processed", "persisted",
			"channels", "buffers", "files");
	json_array_foreach(json_object_get(c, "vertices"), i, vertex) {
		json_array_foreach(json_object_get(vertex, "subtasks"), k, s)
			print_subtask(job_text(vertex, "name"),
					job_number(vertex, "num_subtasks"), s);
	}
	json_array_foreach(json_object_get(c, "vertices"), i, vertex)
		json_array_foreach(json_object_get(vertex, "subtasks"), k, s)
			has_heading = print_channels(vertex, s, has_heading);
}

/* Adds the subtasks of each vertex, in the order of the job.  An exit code. */
static int add_subtasks(const struct job_question *q, json_t *checkpoint)
{
	char target[JOB_TARGET_BYTES];
	json_t *job, *vertex, *answer, *all = json_array();
	size_t i;

	json_object_set_new(checkpoint, "vertices", all);
	snprintf(target, sizeof(target), "/jobs/%s", q->job);
	int code = job_question_get(q, target, &job);
	json_array_foreach(json_object_get(job, "vertices"), i, vertex) {
		if (code != WEIR_EXIT_DONE)
			break;
		snprintf(target, sizeof(target),
				"/jobs/%s/checkpoints/details/%" PRId64 "/subtasks/%s", q->job,
				q->checkpoint_id, job_text(vertex, "id"));
		code = job_question_get(q, target, &answer);
		if (code == WEIR_EXIT_DONE) {
			json_object_set(answer, "name", json_object_get(vertex, "name"));
			json_array_append_new(all, answer);
		}
	}
	json_decref(job);
	return code;
}

static int ask_checkpoint(const struct job_question *q, json_t **answer)
{
	char target[JOB_TARGET_BYTES];

	snprintf(target, sizeof(target), "/jobs/%s/checkpoints/details/%" PRId64, q->job,
			q->checkpoint_id);
	int code = job_question_get(q, target, answer);

	return code == WEIR_EXIT_DONE ? add_subtasks(q, *answer) : code;
}

static int ask_history(const struct job_question *q, json_t **answer)
{
	char target[JOB_TARGET_BYTES];

	snprintf(target, sizeof(target), "/jobs/%s/checkpoints", q->job);
	int code = job_question_get(q, target, answer);

	if (code == WEIR_EXIT_DONE && q->is_failed_only)
		keep_failed(*answer);
	return code;
}

static void print(const struct job_question *q, const json_t *answer)
{
	if (q->is_json)
		job_print_json(answer);
	else if (q->checkpoint_id > 0)
		print_checkpoint(answer);
	else
		print_history(answer);
}

int checkpoints_command(int argc, char **argv)
{
	struct job_question q = {.command = "checkpoints", .needs_job = true,
		.takes_checkpoints = true,
		.help = "Usage: weir checkpoints JOB [OPTION]...\n"
			"Shows the checkpoints of a job: the newest ones, failed ones with the\n"
			"reason, the phase they failed in and the subtask they waited for.\n\n"
			"  --failed          only those that failed\n"
			"  --id N            one checkpoint, by subtask: from the trigger to the\n"
			"                    first barrier (delay), to the last one (alignment),\n"
			"                    taking the snapshot (sync), writing it (async), and\n"
			"                    the mode it ended in (aligned, unaligned, timed\n"
			"                    out), the bytes processed and persisted (in-flight\n"
			"                    data) during alignment, and the channels, buffers\n"
			"                    and files of those; then each channel by itself\n"
			JOB_QUESTION_HELP
			"\nExamples:\n  weir checkpoints flow-metering\n"
			"  weir checkpoints flow-metering --failed\n"
			"  weir checkpoints flow-metering --id 7 --json\n"};
	json_t *answer = NULL;

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	code = q.checkpoint_id > 0 ? ask_checkpoint(&q, &answer) : ask_history(&q, &answer);
	if (code == WEIR_EXIT_DONE)
		print(&q, answer);
	json_decref(answer);
	return code;
}
