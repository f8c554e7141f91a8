#include "dataplane/taskmanager_options.h"

#include "control/cli/exit_codes.h"
#include "dataplane/base/parent.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
		"Usage: weir-taskmanager [OPTION]...\n"
		"Runs the tasks that a weir-coordinator gives it.\n"
		"\n"
		"  --coordinator HOST:PORT  where the coordinator listens (default: "
		"jobmanager.rpc.address\n"
		"                           and jobmanager.rpc.port)\n"
		"  --config FILE            read this config file\n"
		"  -D KEY=VALUE             set a config key (weir config lists them)\n"
		"  --parent PID             end when that process, which started this one, ends\n"
		"  --probe                  print what this host offers, and end\n"
		"  --json                   with --probe: as one JSON object\n"
		"  --help, --version\n"
		"\n"
		"Examples:\n"
		"  weir-taskmanager --coordinator 10.0.0.1:6123 --config /etc/weir/host.yaml\n"
		"  weir-taskmanager -D weir.cores=2,3 -D weir.idle=spin\n"
		"  weir-taskmanager -D weir.link.port=net_af_packet0 \\\n"
		"      -D weir.eal.args=--vdev=net_af_packet0,iface=eth1\n"
		"  weir-taskmanager --probe --json\n";

/* ---- the command line ---- */

enum { OPTION_COORDINATOR = 1, OPTION_PARENT, OPTION_PROBE, OPTION_JSON, OPTION_HELP,
	OPTION_VERSION };

static const struct option long_options[] = {
		{"coordinator", required_argument, NULL, OPTION_COORDINATOR},
		{"parent", required_argument, NULL, OPTION_PARENT},
		{"probe", no_argument, NULL, OPTION_PROBE},
		{"json", no_argument, NULL, OPTION_JSON},
		{"help", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"config", required_argument, NULL, JOB_OPTION_CONFIG},
		{NULL, 0, NULL, 0},
};

bool taskmanager_options_take(
		struct taskmanager_options *o, int argc, char **argv, int *exit_code)
{
	int c;

	*exit_code = WEIR_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "D:", long_options, NULL)) != -1) {
		switch (c) {
		case OPTION_COORDINATOR:
			o->coordinator = optarg;
			break;
		case OPTION_PARENT:
			if (parent_parse(optarg, &o->parent))
				break;
			fputs("weir-taskmanager: --parent: expected the number of a process\n",
					stderr);
			return false;
		case OPTION_PROBE:
			o->must_probe = true;
			break;
		case OPTION_JSON:
			o->is_json = true;
			break;
		case OPTION_HELP:
			fputs(usage, stdout);
			*exit_code = WEIR_EXIT_DONE;
			return false;
		case OPTION_VERSION:
			puts("weir-taskmanager " WEIR_VERSION);
			*exit_code = WEIR_EXIT_DONE;
			return false;
		default:
			if (!job_options_take(&o->job, c, optarg))
				return false;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "weir-taskmanager: %s: no such argument; see --help\n",
				argv[optind]);
		return false;
	}
	return true;
}
