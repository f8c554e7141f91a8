#include "control/cli/config_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_options.h"

enum { OPTION_JSON = 0x2000, OPTION_HELP, OPTION_KEYS };

static const char help[] = "weir config [options]: show every config key, its value and where that "
			   "comes from\n"
			   "\n"
			   "  --config FILE   read this config file\n"
			   "  -D KEY=VALUE    set a key\n"
			   "  --keys          explain all keys instead\n"
			   "  --json          one JSON object\n"
			   "\n"
			   "Examples:\n"
			   "  weir config --config host.yaml\n"
			   "  weir config -D weir.cores=2,3 --json\n"
			   "  weir config --keys\n"
			   "  weir config --keys --json | jq 'map_values(select(.of == \"job\"))'\n"
			   "\n"
			   "Ends with 0 when the config is good, 3 when it is not.\n";

int config_command(int argc, char **argv)
{
	static const struct option options[] = {
			{"config", required_argument, NULL, JOB_OPTION_CONFIG},
			{"keys", no_argument, NULL, OPTION_KEYS},
			{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, OPTION_HELP}, {NULL, 0, NULL, 0}};
	struct job_options o = {0};
	struct config *config;
	bool json = cli_wants_json(argc, argv);
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(json, "config", option, argv);
		if (option == OPTION_JSON)
			continue;
		if (option == OPTION_KEYS) {
			return config_print_keys(stdout, json) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILURE;
		} else if (option == OPTION_HELP || option == 'h') {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		} else if (!job_options_take(&o, option, optarg)) {
			return cli_usage(json, "config", "too many options");
		}
	}
	if (argc != optind)
		return cli_usage(json, "config", "expected no argument");
	int rc = job_options_config(&o, &config);
	if (rc != WEIR_EXIT_DONE)
		return cli_fail(json, rc, o.error);
	if (!config_print(config, stdout, json))
		rc = WEIR_EXIT_FAILURE;
	config_destroy(config);
	return rc;
}
