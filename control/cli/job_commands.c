#include "control/cli/job_commands.h"

#include "control/cli/exit_codes.h"
#include "control/cli/rest_call.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPTION_REST = 0x100, OPTION_JSON, OPTION_ID, TARGET_BYTES = 256, TIME_BYTES = 32 };

#define REST_HELP                                                                                  \
	"  --rest HOST:PORT  where the coordinator answers (default 127.0.0.1:8081)\n"             \
	"  --json            one JSON object instead of a table\n"                                 \
	"  --help\n"

/* What these commands have in common. */
struct question {
	const char *command, *help;
	bool needs_job, is_json;
	int64_t checkpoint_id; /* --id; 0: none */
	struct rest_server server;
	char job[64];          /* its id, found by id or name */
};

static int usage(const struct question *q, const char *what)
{
	fprintf(stderr, "weir %s: %s\nTry: weir %s --help\n", q->command, what, q->command);
	return WEIR_EXIT_USAGE;
}

static int complain(const struct question *q, const char *error)
{
	fprintf(stderr, "weir %s: %s\n", q->command, error);
	return WEIR_EXIT_FAILURE;
}

/* People may write the name of a job for its id. */
static int find_job(struct question *q, const char *wanted)
{
	char error[REST_ERROR_BYTES];
	json_t *overview, *job;
	size_t i;

	if (rest_call(&q->server, "GET", "/jobs/overview", NULL, &overview, error) != 0)
		return complain(q, error);
	json_array_foreach(json_object_get(overview, "jobs"), i, job) {
		const char *id = json_string_value(json_object_get(job, "jid"));
		const char *name = json_string_value(json_object_get(job, "name"));

		if (id != NULL && name != NULL &&
				(strcmp(id, wanted) == 0 || strcmp(name, wanted) == 0))
			snprintf(q->job, sizeof(q->job), "%s", id);
	}
	json_decref(overview);
	if (q->job[0] != '\0')
		return WEIR_EXIT_DONE;
	fprintf(stderr, "weir %s: no job %s here; weir list shows those there are\n", q->command,
			wanted);
	return WEIR_EXIT_FAILURE;
}

/* -1: go on; else the exit code. */
static int read_options(struct question *q, int argc, char **argv)
{
	static const struct option options[] = {{"rest", required_argument, NULL, OPTION_REST},
			{"json", no_argument, NULL, OPTION_JSON},
			{"id", required_argument, NULL, OPTION_ID},
			{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option;

	(void)rest_server_parse("127.0.0.1:8081", &q->server);
	optind = 0;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(q->help, stdout);
			return WEIR_EXIT_DONE;
		}
		if (option == OPTION_JSON)
			q->is_json = true;
		else if (option == OPTION_ID)
			q->checkpoint_id = strtoll(optarg, NULL, 10);
		else if (option != OPTION_REST)
			return usage(q, "unknown option");
		else if (rest_server_parse(optarg, &q->server) != 0)
			return usage(q, "--rest: expected HOST:PORT, such as 127.0.0.1:8081");
	}
	if (argc - optind != (q->needs_job ? 1 : 0))
		return usage(q, q->needs_job ? "expected one job, by name or id"
					     : "expected no argument");
	if (!q->needs_job)
		return -1;
	int code = find_job(q, argv[optind]);
	return code == WEIR_EXIT_DONE ? -1 : code;
}

static void print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
}

static int64_t number(const json_t *object, const char *key)
{
	return (int64_t)json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "-";
}

/* Wall-clock milliseconds as people read them; "-" for none. */
static const char *time_text(int64_t ms, char text[TIME_BYTES])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	snprintf(text, TIME_BYTES, "-");
	if (ms > 0 && localtime_r(&seconds, &tm) != NULL)
		strftime(text, TIME_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
	return text;
}

/* ---- list ---- */

static void print_jobs(const json_t *overview)
{
	char when[TIME_BYTES];
	const json_t *job;
	size_t i;

	printf("%-32s  %-20s  %-11s  %-19s  %10s  %s\n", "job id", "name", "state", "since",
			"runs for", "tasks");
	json_array_foreach(json_object_get(overview, "jobs"), i, job) {
		const json_t *tasks = json_object_get(job, "tasks");

		printf("%-32s  %-20s  %-11s  %-19s  %8.1f s  %" PRId64 "/%" PRId64 " running\n",
				text_of(job, "jid"), text_of(job, "name"), text_of(job, "state"),
				time_text(number(job, "start-time"), when),
				(double)number(job, "duration") / 1000.0, number(tasks, "running"),
				number(tasks, "total"));
	}
}

int list_command(int argc, char **argv)
{
	struct question q = {.command = "list",
		.help = "Usage: weir list [OPTION]...\n"
			"Shows the jobs of a coordinator.\n\n" REST_HELP
			"\nExamples:\n  weir list\n  weir list --rest 127.0.0.1:8082 --json\n"};
	char error[REST_ERROR_BYTES];
	json_t *overview;

	int code = read_options(&q, argc, argv);
	if (code >= 0)
		return code;
	if (rest_call(&q.server, "GET", "/jobs/overview", NULL, &overview, error) != 0)
		return complain(&q, error);
	if (q.is_json)
		print_json(overview);
	else
		print_jobs(overview);
	json_decref(overview);
	return WEIR_EXIT_DONE;
}

/* ---- checkpoints ---- */

static void print_history(const json_t *answer)
{
	const json_t *counts = json_object_get(answer, "counts");
	char when[TIME_BYTES];
	const json_t *c;
	size_t i;

	printf("completed %" PRId64 ", failed %" PRId64 ", in progress %" PRId64
	       ", restored %" PRId64 "\n\n",
			number(counts, "completed"), number(counts, "failed"),
			number(counts, "in_progress"), number(counts, "restored"));
	printf("%8s  %-11s  %-19s  %10s  %12s  %9s  %s\n", "id", "state", "triggered", "took",
			"bytes", "tasks", "why it failed, or where it is");
	json_array_foreach(json_object_get(answer, "history"), i, c) {
		const char *why = json_string_value(json_object_get(c, "failure_message"));

		printf("%8" PRId64 "  %-11s  %-19s  %7" PRId64 " ms  %12" PRId64 "  %4" PRId64
		       "/%-4" PRId64 "  %s\n",
				number(c, "id"), text_of(c, "status"),
				time_text(number(c, "trigger_timestamp"), when),
				number(c, "end_to_end_duration"), number(c, "state_size"),
				number(c, "num_acknowledged_subtasks"), number(c, "num_subtasks"),
				why != NULL ? why : text_of(c, "external_path"));
	}
}

static void print_checkpoint(const json_t *c)
{
	const char *vertex;
	const json_t *task;

	printf("checkpoint %" PRId64 ": %s, %" PRId64 " ms, %" PRId64 " bytes\n%s\n\n",
			number(c, "id"), text_of(c, "status"), number(c, "end_to_end_duration"),
			number(c, "state_size"), text_of(c, "external_path"));
	printf("%-32s  %-11s  %10s  %12s  %s\n", "vertex", "state", "took", "bytes", "tasks");
	json_object_foreach((json_t *)(uintptr_t)json_object_get(c, "tasks"), vertex, task)
	{
		printf("%-32s  %-11s  %7" PRId64 " ms  %12" PRId64 "  %" PRId64 "/%" PRId64 "\n",
				vertex, text_of(task, "status"),
				number(task, "end_to_end_duration"), number(task, "state_size"),
				number(task, "num_acknowledged_subtasks"),
				number(task, "num_subtasks"));
	}
}

int checkpoints_command(int argc, char **argv)
{
	struct question q = {.command = "checkpoints", .needs_job = true,
		.help = "Usage: weir checkpoints JOB [OPTION]...\n"
			"Shows the checkpoints of a job: the newest ones, failed ones with the\n"
			"reason.\n\n"
			"  --id N            one checkpoint, by vertex\n" REST_HELP
			"\nExamples:\n  weir checkpoints flow-metering\n"
			"  weir checkpoints flow-metering --id 7 --json\n"};
	char error[REST_ERROR_BYTES], target[TARGET_BYTES];
	json_t *answer;

	int code = read_options(&q, argc, argv);
	if (code >= 0)
		return code;
	if (q.checkpoint_id > 0)
		snprintf(target, sizeof(target), "/jobs/%s/checkpoints/details/%" PRId64, q.job,
				q.checkpoint_id);
	else
		snprintf(target, sizeof(target), "/jobs/%s/checkpoints", q.job);
	if (rest_call(&q.server, "GET", target, NULL, &answer, error) != 0)
		return complain(&q, error);
	if (q.is_json)
		print_json(answer);
	else if (q.checkpoint_id > 0)
		print_checkpoint(answer);
	else
		print_history(answer);
	json_decref(answer);
	return WEIR_EXIT_DONE;
}

/* ---- checkpoint ---- */

/* Asks until the operation is over.  The answer is the caller's; NULL after complaint. */
static json_t *await_operation(const struct question *q, const char *request_id)
{
	struct timespec pause = {.tv_nsec = 20000000};
	char error[REST_ERROR_BYTES], target[TARGET_BYTES];
	json_t *answer;

	snprintf(target, sizeof(target), "/jobs/%s/checkpoints/%s", q->job, request_id);
	for (;;) {
		if (rest_call(&q->server, "GET", target, NULL, &answer, error) != 0) {
			(void)complain(q, error);
			return NULL;
		}
		const char *state = text_of(json_object_get(answer, "status"), "id");
		if (strcmp(state, "IN_PROGRESS") != 0)
			return answer;
		json_decref(answer);
		nanosleep(&pause, NULL);
	}
}

int checkpoint_command(int argc, char **argv)
{
	struct question q = {.command = "checkpoint", .needs_job = true,
		.help = "Usage: weir checkpoint JOB [OPTION]...\n"
			"Takes a checkpoint of a job now, and waits until it is durable.\n\n"
			REST_HELP
			"\nExamples:\n  weir checkpoint flow-metering\n"};
	char error[REST_ERROR_BYTES], target[TARGET_BYTES];
	json_t *accepted;

	int code = read_options(&q, argc, argv);
	if (code >= 0)
		return code;
	snprintf(target, sizeof(target), "/jobs/%s/checkpoints", q.job);
	json_t *body = json_pack("{s:s}", "checkpointType", "CONFIGURED");
	int rc = rest_call(&q.server, "POST", target, body, &accepted, error);
	json_decref(body);
	if (rc != 0)
		return complain(&q, error);
	json_t *answer = await_operation(&q, text_of(accepted, "request-id"));
	json_decref(accepted);
	if (answer == NULL)
		return WEIR_EXIT_FAILURE;
	const json_t *operation = json_object_get(answer, "operation");
	const json_t *cause = json_object_get(operation, "failureCause");
	bool has_failed = cause != NULL && !json_is_null(cause);
	if (q.is_json)
		print_json(answer);
	else if (has_failed)
		fprintf(stderr, "weir checkpoint: %s\n",
				json_is_string(cause) ? json_string_value(cause)
						      : text_of(cause, "stack-trace"));
	else
		printf("checkpoint %" PRId64 " completed\n", number(operation, "checkpointId"));
	json_decref(answer);
	return has_failed ? WEIR_EXIT_FAILURE : WEIR_EXIT_DONE;
}

/* ---- cancel, stop ---- */

static int tell_job(struct question *q, int argc, char **argv, const char *method,
		const char *suffix, const char *done)
{
	char error[REST_ERROR_BYTES], target[TARGET_BYTES];

	int code = read_options(q, argc, argv);
	if (code >= 0)
		return code;
	snprintf(target, sizeof(target), "/jobs/%s%s", q->job, suffix);
	json_t *answer = NULL;
	int rc = rest_call(&q->server, method, target, NULL, &answer, error);
	if (rc != 0)
		code = complain(q, error);
	else if (q->is_json)
		print_json(answer);
	else
		printf("%s %s\n", q->job, done);
	json_decref(answer);
	return rc != 0 ? code : WEIR_EXIT_DONE;
}

int cancel_command(int argc, char **argv)
{
	struct question q = {.command = "cancel", .needs_job = true,
		.help = "Usage: weir cancel JOB [OPTION]...\n"
			"Ends a job at once, without a last checkpoint.\n\n" REST_HELP
			"\nExamples:\n  weir cancel flow-metering\n"};

	return tell_job(&q, argc, argv, "PATCH", "?mode=cancel", "is being cancelled");
}

int stop_command(int argc, char **argv)
{
	struct question q = {.command = "stop", .needs_job = true,
		.help = "Usage: weir stop JOB [OPTION]...\n"
			"Takes a last checkpoint of a job and ends it; weir run --restore latest\n"
			"goes on from there.\n\n" REST_HELP
			"\nExamples:\n  weir stop flow-metering\n"};

	return tell_job(&q, argc, argv, "POST", "/stop", "is being stopped");
}
