#include "control/cli/submit_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/interrupts.h"
#include "control/cli/job_follow.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_JSON = 0x100, OPTION_QUIET };

/* A coordinator that was there and is not may be one that is started again. */
#define PATIENCE_NS UINT64_C(20000000000)

static const char help[] =
		"Usage: weir submit JOB.yaml [OPTION]...\n"
		"Hands a job to a coordinator that runs already, and follows it to its end.\n"
		"A coordinator that dies meanwhile is waited for: the job goes on with the next\n"
		"one.  Ctrl-C leaves the job to itself; weir stop and weir cancel end it.\n"
		"\n"
		REST_OPTIONS_HELP("      ")
		"  -d, --detached          do not follow it: the job id, and done\n"
		JOB_START_HELP
		"  -D KEY=VALUE            set a config key of this job, before its file; those\n"
		"                          of processes are refused\n"
		JOB_OPTION_SET_HELP
		"  --json                  one JSON object on standard output at the end\n"
		"  --quiet                 no progress\n"
		"  --help\n"
		"\n"
		"Plug-ins must lie under the same path on the hosts of coordinator and\n"
		"TaskManagers; a relative one begins in the folder of the job file, as this host\n"
		"knows it.  Other relative paths begin where the TaskManagers were started.\n"
		"\n"
		"Exit codes: 0 finished (--detached: accepted), 1 failed or no coordinator,\n"
		"2 usage, 3 job file or key, 4 a job of that name runs, 5 restore refused,\n"
		"130 left by Ctrl-C (the job goes on), or ended by weir cancel or weir stop.\n"
		"\n"
		"Examples:\n"
		"  weir submit flow-metering.yaml --set source.path=/data/a.pcap\n"
		"  weir submit job.yaml --rest 10.0.0.1:8081 --detached\n"
		"  weir submit job.yaml --restore /srv/weir/savepoint-1a2b3c-0123456789ab\n"
		"  weir submit job.yaml --restore latest -D execution.checkpointing.interval=1s\n"
		"  weir submit job.yaml --detached --json | jq -r .job_id\n";

/* ---- options ---- */

/* -1: go on. */
static int take_option(struct submit_options *o, int option)
{
	switch (option) {
	case OPTION_JSON:
		return -1;
	case OPTION_QUIET:
		o->is_quiet = true;
		return -1;
	case 'd':
		o->is_detached = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return WEIR_EXIT_DONE;
	default:
		if (rest_option_take(&o->rest, option, optarg) ||
				job_options_take(&o->job, option, optarg))
			return -1;
		return cli_usage(o->is_json, "submit", "too many options");
	}
}

/* The coordinator runs elsewhere. */
static int read_restore(struct submit_options *o)
{
	const char *restore = o->job.restore != NULL ? o->job.restore : "none";

	if (!job_options_has_good_restore(&o->job))
		return cli_usage(o->is_json, "submit", JOB_RESTORE_EXPECTED);
	if (strcmp(restore, "none") == 0 || strcmp(restore, "latest") == 0)
		snprintf(o->restore, sizeof(o->restore), "%s", restore);
	else if (local_path_absolute(restore, o->restore) != 0)
		return cli_usage(o->is_json, "submit",
				"--restore: the path is too long, or this directory is gone");
	return -1;
}

int submit_options_read(struct submit_options *o, int argc, char **argv)
{
	static const struct option options[] = {JOB_OPTION_SET_LONG, JOB_START_LONG,
			REST_OPTIONS_LONG,
			{"detached", no_argument, NULL, 'd'},
			{"json", no_argument, NULL, OPTION_JSON},
			{"quiet", no_argument, NULL, OPTION_QUIET},
			{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option;

	memset(o, 0, sizeof(*o));
	o->is_json = cli_wants_json(argc, argv);
	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:dhn", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(o->is_json, "submit", option, argv);
		int code = take_option(o, option);

		if (code >= 0)
			return code;
	}
	if (argc - optind != 1)
		return cli_usage(o->is_json, "submit", "expected one job file");
	o->job_path = argv[optind];
	int code = rest_option_find(&o->rest, "submit", o->is_json, &o->server);
	return code >= 0 ? code : read_restore(o);
}

/* ---- handing over ---- */

static int find_coordinator(struct job_follow *f)
{
	char error[REST_ERROR_BYTES];

	if (rest_call(&f->server, "GET", "/overview", NULL, NULL, error) == 0)
		return -1;
	job_follow_complain(f, "%.1400s", error);
	return WEIR_EXIT_FAILURE;
}

/* -1: the job is in. */
static int hand_over(struct job_follow *f, const struct job_handover *h)
{
	uint64_t until_ns = clock_monotonic_ns() + PATIENCE_NS;
	int silence, code = find_coordinator(f);

	if (code >= 0)
		return code;
	for (;;) {
		code = job_follow_submit(f, h, &silence);
		if (silence == 0)
			return code;
		if (clock_monotonic_ns() > until_ns || interrupts_count() > 0)
			break;
		job_follow_pause(f);
	}
	job_follow_complain(f,
			"the coordinator at %s:%u does not answer any more: %s; it may have "
			"taken the job up: weir list",
			f->server.host, f->server.port, strerror(-silence));
	return interrupts_count() > 0 ? WEIR_EXIT_INTERRUPTED : WEIR_EXIT_FAILURE;
}

static int read_and_hand_over(struct job_follow *f, const struct submit_options *o)
{
	struct job_source source = {.sets = o->job.sets, .set_count = o->job.set_count};
	struct job_handover handover = {
			.source = &source,
			.settings = o->job.defines,
			.setting_count = o->job.define_count,
			.restore = o->restore,
			.must_allow_rewind = o->job.must_allow_rewind,
	};
	struct config_error error;

	if (job_source_load(&source, o->job_path, &error) != 0) {
		job_follow_complain(f, "%.1400s", error.text);
		return WEIR_EXIT_CONFIG;
	}
	rest_make_id(handover.id);
	int code = hand_over(f, &handover);
	job_source_free(&source);
	return code;
}

/* ---- following ---- */

static void print_handed_over(struct job_follow *f)
{
	f->has_reported = true;
	if (f->is_json)
		printf("{\"job_id\": \"%s\"}\n", f->job_id);
	else
		printf("job %s is %s\n", f->job_name, f->job_id);
}

static int leave(struct job_follow *f, const struct submit_options *o)
{
	char rest[300] = "";

	if (rest_option_is_given(&o->rest))
		snprintf(rest, sizeof(rest), " --rest %s:%u", f->server.host, f->server.port);
	run_print_break(&f->progress, stderr);
	fprintf(stderr,
			"the job goes on; weir stop %s%s ends it with a last checkpoint, weir "
			"cancel %s%s at once\n",
			f->job_name, rest, f->job_name, rest);
	if (f->is_json)
		(void)job_follow_report(f);
	return WEIR_EXIT_INTERRUPTED;
}

static int follow(struct job_follow *f, const struct submit_options *o)
{
	job_follow_say(f, "job %s is %s", f->job_name, f->job_id);
	while (!job_follow_has_ended(f)) {
		job_follow_look(f);
		if (f->is_unknown) {
			job_follow_complain(f,
					"the coordinator at %s:%u has the job no more, as one does "
					"that was started on another "
					"high-availability.storageDir",
					f->server.host, f->server.port);
			return WEIR_EXIT_FAILURE;
		}
		if (interrupts_count() > 0)
			return leave(f, o);
		job_follow_pause(f);
	}
	return job_follow_report(f);
}

int submit_command(int argc, char **argv)
{
	struct submit_options o;
	struct job_follow f;
	int code = submit_options_read(&o, argc, argv);

	if (code >= 0)
		return code;
	job_follow_init(&f, "submit", o.is_json, o.is_quiet);
	f.server = o.server;
	interrupts_catch();
	code = read_and_hand_over(&f, &o);
	if (code < 0 && o.is_detached) {
		print_handed_over(&f);
		code = WEIR_EXIT_DONE;
	} else if (code < 0) {
		code = follow(&f, &o);
	}
	job_follow_release(&f);
	if (f.has_reported)
		return code;
	return cli_fail(o.is_json, code,
			f.error[0] != '\0' ? f.error : "left before there was anything to tell");
}
