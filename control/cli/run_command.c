#include "control/cli/run_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_options.h"
#include "control/cli/run_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_TASKMANAGERS = 0x100,
	OPTION_LINK,
	OPTION_JSON,
	OPTION_QUIET,
	TASKMANAGERS_MAX = 64,
};

static const char help[] =
		"Usage: weir run JOB.yaml [OPTION]...\n"
		"Runs a job to its end on this host: one coordinator and some TaskManagers,\n"
		"started again when they die.  Ctrl-C takes a last checkpoint and stops; once\n"
		"more ends at once.\n"
		"\n"
		"  --taskmanagers N        how many processes; one runs the job, others stand by\n"
		"                          unless a link joins them (1)\n"
		"  --link memif|vhost      the job runs on both of two TaskManagers, joined by\n"
		"                          shared memory\n"
		"  --link af_packet:IF,IF...|af_xdp:IF,IF...\n"
		"                          it runs on all, each with a network interface of its\n"
		"                          own (as root)\n"
		"  --link pci:ADDRESS,ADDRESS...\n"
		"                          the same, each with a NIC of its own that vfio-pci has\n"
		JOB_START_HELP JOB_OPTIONS_HELP
		"  --json                  one JSON object on standard output at the end\n"
		"  --quiet                 no progress\n"
		"  --help\n"
		"\n"
		"Exit codes: 0 finished, 1 failed, 2 usage, 3 config or job file, 4 in use,\n"
		"5 restore refused, 130 stopped by a signal.\n"
		"\n"
		"Examples:\n"
		"  weir run control/jobs/flow-metering.yaml --set source.path=a.pcap\n"
		"  weir run job.yaml --taskmanagers 2 -D execution.checkpointing.interval=100ms\n"
		"  weir run job.yaml --taskmanagers 2 --link memif\n"
		"  weir run job.yaml --taskmanagers 3 --link af_packet:veth0,veth1,veth2\n"
		"  weir run job.yaml --taskmanagers 2 --link pci:0000:03:00.0,0000:03:00.1\n"
		"  weir run job.yaml --restore latest --json\n";

/* -1: go on; else the exit code. */
static int take_option(int option, struct run_options *run, struct job_options *job,
		const char **link)
{
	char *end;

	switch (option) {
	case OPTION_TASKMANAGERS:
		run->taskmanager_count = (uint32_t)strtoul(optarg, &end, 10);
		if (*end != '\0' || run->taskmanager_count < 1 ||
				run->taskmanager_count > TASKMANAGERS_MAX)
			return cli_usage(run->is_json, "run",
					"--taskmanagers: expected a number from 1 to 64");
		return -1;
	case OPTION_LINK:
		*link = optarg;
		return -1;
	case OPTION_JSON:
		return -1;
	case OPTION_QUIET:
		run->is_quiet = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return WEIR_EXIT_DONE;
	default:
		if (job_options_take(job, option, optarg))
			return -1;
		return cli_usage(run->is_json, "run", "too many options");
	}
}

int run_command(int argc, char **argv)
{
	static const struct option options[] = {JOB_OPTIONS_LONG, JOB_START_LONG,
			{"taskmanagers", required_argument, NULL, OPTION_TASKMANAGERS},
			{"link", required_argument, NULL, OPTION_LINK},
			{"json", no_argument, NULL, OPTION_JSON},
			{"quiet", no_argument, NULL, OPTION_QUIET},
			{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct run_options run = {.taskmanager_count = 1, .is_json = cli_wants_json(argc, argv)};
	struct job_options job = {0};
	struct config *config;
	struct job_spec *spec;
	const char *link = NULL;
	char error[RUN_LINK_TEXT_BYTES];
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:hn", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(run.is_json, "run", option, argv);
		int code = take_option(option, &run, &job, &link);

		if (code >= 0)
			return code;
	}
	if (argc - optind != 1)
		return cli_usage(run.is_json, "run", "expected one job file");
	if (!job_options_has_good_restore(&job))
		return cli_usage(run.is_json, "run", JOB_RESTORE_EXPECTED);
	if (link != NULL && !run_link_parse(&run.link, link, run.taskmanager_count, error))
		return cli_usage(run.is_json, "run", error);
	run.job_path = argv[optind];
	run.config_path = job.config_path;
	run.defines = job.defines;
	run.define_count = job.define_count;
	run.sets = job.sets;
	run.set_count = job.set_count;
	run.restore = job.restore != NULL ? job.restore : "none";
	run.must_allow_rewind = job.must_allow_rewind;
	int code = job_options_job(&job, run.job_path, &config, &spec);
	if (code != WEIR_EXIT_DONE)
		return cli_fail(run.is_json, code, job.error);
	code = run_job(&run, config, spec);
	job_spec_destroy(spec);
	config_destroy(config);
	return code;
}
