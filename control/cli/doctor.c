#include "control/cli/doctor.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/host_probe.h"
#include "control/cli/job_options.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x2000, OPTION_HELP };

static const char help[] =
		"weir doctor [options]: what this host gives weir, what is needed, what mends it\n"
		"\n"
		"  --config FILE   judge by this config file\n"
		"  -D KEY=VALUE    set a key\n"
		"  --json          one JSON object\n"
		"\n"
		"Examples:\n"
		"  weir doctor\n"
		"  weir doctor --config host.yaml\n"
		"  weir doctor -D weir.cores=2,3 -D weir.hugepages=on --json\n"
		"\n"
		"Ends with 0 when all that is needed is there, 3 when something fails.\n";

static bool print_json(const struct doctor_report *report, FILE *out)
{
	json_t *checks = json_array();

	for (uint32_t i = 0; i < report->count; i++) {
		const struct doctor_row *row = &report->rows[i];

		json_array_append_new(checks,
				json_pack("{s:s, s:s, s:s, s:s, s:s}", "item", row->item, "state",
						doctor_state_name(row->state), "is", row->is,
						"needed", row->needed, "fix", row->fix));
	}
	json_t *all = json_pack("{s:s, s:o}", "state", doctor_state_name(doctor_worst(report)),
			"checks", checks);
	bool is_good = all != NULL && json_dumpf(all, out, JSON_INDENT(2)) == 0;
	fputc('\n', out);
	json_decref(all);
	return is_good;
}

bool doctor_print(const struct doctor_report *report, FILE *out, bool json)
{
	if (json)
		return print_json(report, out);
	for (uint32_t i = 0; i < report->count; i++) {
		const struct doctor_row *row = &report->rows[i];

		fprintf(out, "%-4s  %-18s %s\n", doctor_state_name(row->state), row->item, row->is);
		fprintf(out, "%-4s  %-18s needed: %s\n", "", "", row->needed);
		if (row->fix[0] != '\0')
			fprintf(out, "%-4s  %-18s %s: %s\n", "", "",
					row->state == DOCTOR_OK ? "if wanted" : "to fix", row->fix);
	}
	return true;
}

static int run(struct job_options *o, bool json)
{
	struct config *config;
	struct doctor_report *report = calloc(1, sizeof(*report));
	int rc = job_options_config(o, &config);

	if (rc != WEIR_EXIT_DONE || report == NULL) {
		free(report);
		return cli_fail(json, rc != WEIR_EXIT_DONE ? rc : WEIR_EXIT_FAILURE,
				rc != WEIR_EXIT_DONE ? o->error : "out of memory");
	}
	json_t *facts = host_probe(config);
	if (facts == NULL) {
		rc = cli_fail(json, WEIR_EXIT_FAILURE, "weir-taskmanager --probe failed");
	} else {
		doctor_judge(facts, config, report);
		doctor_judge_directory(config, report);
		if (!doctor_print(report, stdout, json))
			rc = WEIR_EXIT_FAILURE;
		else if (doctor_worst(report) == DOCTOR_FAIL)
			rc = WEIR_EXIT_CONFIG;
	}
	json_decref(facts);
	config_destroy(config);
	free(report);
	return rc;
}

int doctor_command(int argc, char **argv)
{
	static const struct option options[] = {
			{"config", required_argument, NULL, JOB_OPTION_CONFIG},
			{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, OPTION_HELP}, {NULL, 0, NULL, 0}};
	struct job_options o = {0};
	bool json = cli_wants_json(argc, argv);
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(json, "doctor", option, argv);
		if (option == OPTION_JSON)
			continue;
		if (option == OPTION_HELP || option == 'h') {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		} else if (!job_options_take(&o, option, optarg)) {
			return cli_usage(json, "doctor", "too many options");
		}
	}
	if (argc != optind)
		return cli_usage(json, "doctor", "expected no argument");
	return run(&o, json);
}
