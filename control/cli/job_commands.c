#include "control/cli/job_commands.h"

#include "control/cli/exit_codes.h"
#include "control/cli/job_question.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- list ---- */

static void print_jobs(const json_t *overview)
{
	char when[JOB_TIME_BYTES];
	const json_t *job;
	size_t i;

	printf("%-32s  %-20s  %-11s  %-19s  %10s  %s\n", "job id", "name", "state", "since",
			"runs for", "tasks");
	json_array_foreach(json_object_get(overview, "jobs"), i, job) {
		const json_t *tasks = json_object_get(job, "tasks");

		printf("%-32s  %-20s  %-11s  %-19s  %8.1f s  %" PRId64 "/%" PRId64 " running\n",
				job_text(job, "jid"), job_text(job, "name"), job_text(job, "state"),
				job_time(job_number(job, "start-time"), when),
				(double)job_number(job, "duration") / 1000.0,
				job_number(tasks, "running"), job_number(tasks, "total"));
	}
}

int list_command(int argc, char **argv)
{
	struct job_question q = {.command = "list",
		.help = "Usage: weir list [OPTION]...\n"
			"Shows the jobs of a coordinator.\n\n" JOB_QUESTION_HELP
			"\nExamples:\n  weir list\n  weir list --rest 127.0.0.1:8082 --json\n"};
	json_t *overview;

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	code = job_question_get(&q, "/jobs/overview", &overview);
	if (code != WEIR_EXIT_DONE)
		return code;
	if (q.is_json)
		job_print_json(overview);
	else
		print_jobs(overview);
	json_decref(overview);
	return WEIR_EXIT_DONE;
}

/* ---- checkpoint ---- */

/* Asks until the operation is over.  The answer is the caller's; NULL after complaint. */
static json_t *await_operation(const struct job_question *q, const char *request_id)
{
	struct timespec pause = {.tv_nsec = 20000000};
	char target[JOB_TARGET_BYTES];
	json_t *answer;

	snprintf(target, sizeof(target), "/jobs/%s/checkpoints/%s", q->job, request_id);
	for (;;) {
		if (job_question_get(q, target, &answer) != WEIR_EXIT_DONE)
			return NULL;
		const char *state = job_text(json_object_get(answer, "status"), "id");
		if (strcmp(state, "IN_PROGRESS") != 0)
			return answer;
		json_decref(answer);
		nanosleep(&pause, NULL);
	}
}

int checkpoint_command(int argc, char **argv)
{
	struct job_question q = {.command = "checkpoint", .needs_job = true,
		.takes_full = true,
		.help = "Usage: weir checkpoint JOB [OPTION]...\n"
			"Takes a checkpoint of a job now, and waits until it is durable.\n\n"
			"  --full            one that refers to no files of earlier ones\n"
			JOB_QUESTION_HELP
			"\nExamples:\n  weir checkpoint flow-metering\n"};
	char error[REST_ERROR_BYTES], target[JOB_TARGET_BYTES];
	json_t *accepted;

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	snprintf(target, sizeof(target), "/jobs/%s/checkpoints", q.job);
	json_t *body = json_pack(
			"{s:s}", "checkpointType", q.is_full ? "FULL" : "CONFIGURED");
	int rc = rest_call(&q.server, "POST", target, body, &accepted, error);
	json_decref(body);
	if (rc != 0) {
		json_decref(accepted);
		return job_question_complain(&q, error);
	}
	json_t *answer = await_operation(&q, job_text(accepted, "request-id"));
	json_decref(accepted);
	if (answer == NULL)
		return WEIR_EXIT_FAILURE;
	const json_t *operation = json_object_get(answer, "operation");
	const json_t *cause = json_object_get(operation, "failureCause");
	bool has_failed = cause != NULL && !json_is_null(cause);
	if (q.is_json)
		job_print_json(answer);
	else if (has_failed)
		fprintf(stderr, "weir checkpoint: %s\n",
				json_is_string(cause) ? json_string_value(cause)
						      : job_text(cause, "stack-trace"));
	else
		printf("checkpoint %" PRId64 " completed\n", job_number(operation, "checkpointId"));
	json_decref(answer);
	return has_failed ? WEIR_EXIT_FAILURE : WEIR_EXIT_DONE;
}

/* ---- cancel ---- */

int cancel_command(int argc, char **argv)
{
	struct job_question q = {.command = "cancel", .needs_job = true,
		.help = "Usage: weir cancel JOB [OPTION]...\n"
			"Ends a job at once, without a last checkpoint.\n\n" JOB_QUESTION_HELP
			"\nExamples:\n  weir cancel flow-metering\n"};
	char error[REST_ERROR_BYTES], target[JOB_TARGET_BYTES];

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	snprintf(target, sizeof(target), "/jobs/%s?mode=cancel", q.job);
	json_t *answer = NULL;
	int rc = rest_call(&q.server, "PATCH", target, NULL, &answer, error);
	if (rc != 0)
		code = job_question_complain(&q, error);
	else if (q.is_json)
		job_print_json(answer);
	else
		printf("%s is being cancelled\n", q.job);
	json_decref(answer);
	return rc != 0 ? code : WEIR_EXIT_DONE;
}
