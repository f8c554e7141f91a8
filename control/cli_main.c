/* weir: the command line.  Links no DPDK and no hwloc. */

#include "control/cli/config_command.h"
#include "control/cli/doctor.h"
#include "control/cli/exit_codes.h"
#include "control/cli/inspect.h"
#include "control/cli/job_commands.h"
#include "control/cli/plan_command.h"
#include "control/cli/restore_command.h"
#include "control/cli/run_command.h"
#include "control/cli/submit_command.h"
#include "control/cli/topology_command.h"
#include "control/cli/verify_command.h"
#include "dataplane/base/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
	{"run", run_command, "run a job on this host, with everything it needs"},
	{"submit", submit_command, "hand a job to a coordinator that runs already"},
	{"plan", plan_command, "check a job file and show what it says"},
	{"list", list_command, "show the jobs of a coordinator"},
	{"checkpoints", checkpoints_command, "show the checkpoints of a job"},
	{"checkpoint", checkpoint_command, "take a checkpoint of a job now"},
	{"savepoint", savepoint_command, "take a savepoint of a job, or delete one"},
	{"stop", stop_command, "end a job with a savepoint, or a last checkpoint"},
	{"cancel", cancel_command, "end a job at once"},
	{"inspect", inspect_command, "read a checkpoint and verify every byte of it"},
	{"verify", verify_command, "read every byte of checkpoints; say whether they are whole"},
	{"restore", restore_command, "say what a restore would find and refuse (--dry-run)"},
	{"doctor", doctor_command, "show what this host lacks, and what mends it"},
	{"topology", topology_command, "show this host as weir would use it; draw it"},
	{"config", config_command, "show every config key and its value"},
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static int print_help(FILE *out)
{
	fprintf(out, "Usage: weir COMMAND [ARGUMENT]...\n"
		     "A stateful streaming data plane with consistent checkpoints.\n\n");
	for (int i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\nweir COMMAND --help says more, with examples.  Begin with:\n"
		     "  weir doctor\n"
		     "  weir run control/jobs/flow-metering.yaml\n");
	return out == stdout ? WEIR_EXIT_DONE : WEIR_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return print_help(stdout);
	if (strcmp(name, "--version") == 0) {
		printf("weir %s\n", WEIR_VERSION);
		return WEIR_EXIT_DONE;
	}
	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	if (name[0] != '\0')
		fprintf(stderr, "weir: no command %s\n\n", name);
	return print_help(stderr);
}

int main(int argc, char **argv)
{
	process_prepare();
	int code = run(argc, argv);
	if (process_output_is_whole())
		return code;
	fprintf(stderr, "weir: cannot write to standard output: %s\n", strerror(errno));
	return code == WEIR_EXIT_DONE ? WEIR_EXIT_FAILURE : code;
}
