#include "control/cli/job_question.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	OPTION_JSON = 0x100,
	OPTION_ID,
	OPTION_FAILED,
	OPTION_SAVEPOINT,
	OPTION_DRAIN,
	OPTION_FULL,
	OPTION_DISPOSE,
};

int job_question_usage(const struct job_question *q, const char *what)
{
	return cli_usage(q->is_json, q->command, what);
}

int job_question_complain(const struct job_question *q, const char *error)
{
	fprintf(stderr, "weir %s: %s\n", q->command, error);
	return cli_fail(q->is_json, WEIR_EXIT_FAILURE, error);
}

int job_question_get(const struct job_question *q, const char *target, json_t **answer)
{
	char error[REST_ERROR_BYTES];

	*answer = NULL;
	if (rest_call(&q->server, "GET", target, NULL, answer, error) == 0)
		return WEIR_EXIT_DONE;
	json_decref(*answer);
	*answer = NULL;
	return job_question_complain(q, error);
}

/* People may write the name of a job for its id. */
static int find_job(struct job_question *q, const char *wanted)
{
	char error[REST_ERROR_BYTES];
	json_t *overview, *job;
	size_t i;

	int code = job_question_get(q, "/jobs/overview", &overview);
	if (code != WEIR_EXIT_DONE)
		return code;
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
	snprintf(error, sizeof(error), "no job %s here; weir list shows those there are", wanted);
	return job_question_complain(q, error);
}

/* -1: go on. */
static int take_option(struct job_question *q, int option)
{
	char *end;

	switch (option) {
	case 'h':
		fputs(q->help, stdout);
		return WEIR_EXIT_DONE;
	case OPTION_JSON:
		return -1;
	case OPTION_ID:
		q->checkpoint_id = strtoll(optarg, &end, 10);
		if (!q->takes_checkpoints || *end != '\0' || q->checkpoint_id < 1)
			return job_question_usage(q, q->takes_checkpoints
							? "--id: expected a checkpoint's number"
							: "unknown option");
		return -1;
	case OPTION_FAILED:
		q->is_failed_only = true;
		return q->takes_checkpoints ? -1 : job_question_usage(q, "unknown option");
	case OPTION_SAVEPOINT:
		q->directory = optarg;
		return q->takes_stop ? -1 : job_question_usage(q, "unknown option");
	case OPTION_DRAIN:
		q->must_drain = true;
		return q->takes_stop ? -1 : job_question_usage(q, "unknown option");
	case OPTION_FULL:
		q->is_full = true;
		return q->takes_full ? -1 : job_question_usage(q, "unknown option");
	case OPTION_DISPOSE:
		q->dispose = optarg;
		q->needs_job = false;
		q->takes_directory = false;
		return q->takes_dispose ? -1 : job_question_usage(q, "unknown option");
	default:
		if (rest_option_take(&q->rest, option, optarg))
			return -1;
		return job_question_usage(q, "unknown option");
	}
}

int job_question_read(struct job_question *q, int argc, char **argv)
{
	static const struct option options[] = {REST_OPTIONS_LONG,
			{"json", no_argument, NULL, OPTION_JSON},
			{"id", required_argument, NULL, OPTION_ID},
			{"failed", no_argument, NULL, OPTION_FAILED},
			{"savepoint", required_argument, NULL, OPTION_SAVEPOINT},
			{"drain", no_argument, NULL, OPTION_DRAIN},
			{"full", no_argument, NULL, OPTION_FULL},
			{"dispose", required_argument, NULL, OPTION_DISPOSE},
			{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option, code;

	q->is_json = cli_wants_json(argc, argv);
	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(q->is_json, q->command, option, argv);
		code = take_option(q, option);
		if (code >= 0)
			return code;
	}
	code = rest_option_find(&q->rest, q->command, q->is_json, &q->server);
	if (code >= 0)
		return code;
	if (q->takes_directory && argc - optind == 2)
		q->directory = argv[--argc];
	if (argc - optind != (q->needs_job ? 1 : 0))
		return job_question_usage(q, q->needs_job ? "expected one job, by name or id"
							  : "expected no argument");
	if (!q->needs_job)
		return -1;
	code = find_job(q, argv[optind]);
	return code == WEIR_EXIT_DONE ? -1 : code;
}

/* ---- reading answers ---- */

void job_print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
}

int64_t job_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value)
				      : (int64_t)json_number_value(value);
}

const char *job_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "-";
}

const char *job_time(int64_t ms, char text[JOB_TIME_BYTES])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	snprintf(text, JOB_TIME_BYTES, "-");
	if (ms > 0 && localtime_r(&seconds, &tm) != NULL)
		strftime(text, JOB_TIME_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
	return text;
}

const char *job_duration(int64_t ns, char text[JOB_TIME_BYTES])
{
	double us = (double)ns / 1e3;

	if (ns < 0)
		snprintf(text, JOB_TIME_BYTES, "-");
	else if (us < 1e3)
		snprintf(text, JOB_TIME_BYTES, "%.0f us", us);
	else if (us < 1e5)
		snprintf(text, JOB_TIME_BYTES, "%.1f ms", us / 1e3);
	else if (us < 1e7)
		snprintf(text, JOB_TIME_BYTES, "%.0f ms", us / 1e3);
	else
		snprintf(text, JOB_TIME_BYTES, "%.1f s", us / 1e6);
	return text;
}
