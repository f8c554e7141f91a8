#include "control/cli/topology_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/host_probe.h"
#include "control/cli/job_options.h"
#include "control/cli/topology_picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 0x2000, OPTION_SVG, OPTION_HELP };

static const char help[] =
		"weir topology [JOB.yaml] [options]: this host as weir would use it: cores and "
		"their\n"
		"workers, memory, ports, and the tasks of a job on them\n"
		"\n" JOB_OPTIONS_HELP
		"  --svg FILE              draw it into that file; - is standard output\n"
		"  --json                  one JSON object\n"
		"\n"
		"Examples:\n"
		"  weir topology\n"
		"  weir topology control/jobs/flow-metering.yaml --svg host.svg\n"
		"  weir topology job.yaml --config host.yaml -D weir.cores=2-9\n"
		"\n"
		"Ends with 0, or 3 when config, job file or the chosen cores are not fit.\n";

struct topology_options {
	struct job_options job;
	const char *svg_path, *job_path;
	bool is_json;
};

static int draw(const struct topology_options *o, const struct host_picture *picture)
{
	bool is_out = strcmp(o->svg_path, "-") == 0;
	char why[600];
	FILE *out = is_out ? stdout : fopen(o->svg_path, "w");
	bool is_good = out != NULL && picture_print_svg(picture, out);

	if (out != NULL && !is_out)
		is_good = fclose(out) == 0 && is_good;
	if (is_good)
		return WEIR_EXIT_DONE;
	snprintf(why, sizeof(why), "%.500s: %s", o->svg_path, strerror(errno));
	fprintf(stderr, "weir topology: %s\n", why);
	return cli_fail(o->is_json, WEIR_EXIT_FAILURE, why);
}

static int show(const struct topology_options *o, const struct host_picture *picture)
{
	int rc = WEIR_EXIT_DONE;

	if (o->svg_path != NULL)
		rc = draw(o, picture);
	else if (!(o->is_json ? picture_print_json : picture_print_table)(picture, stdout))
		rc = WEIR_EXIT_FAILURE;
	return rc == WEIR_EXIT_DONE && picture->error != NULL ? WEIR_EXIT_CONFIG : rc;
}

static int run(struct topology_options *o)
{
	struct host_picture *picture = calloc(1, sizeof(*picture));
	struct config *config = NULL;
	struct job_spec *job = NULL;
	json_t *facts = NULL;
	int rc = o->job_path != NULL ? job_options_job(&o->job, o->job_path, &config, &job)
				     : job_options_config(&o->job, &config);

	if (rc != WEIR_EXIT_DONE) {
		rc = cli_fail(o->is_json, rc, o->job.error);
	} else if (picture == NULL || (facts = host_probe(config)) == NULL) {
		rc = cli_fail(o->is_json, WEIR_EXIT_FAILURE, "weir-taskmanager --probe failed");
	} else {
		picture_take(picture, facts, config, job);
		rc = show(o, picture);
	}
	json_decref(facts);
	job_spec_destroy(job);
	config_destroy(config);
	free(picture);
	return rc;
}

int topology_command(int argc, char **argv)
{
	static const struct option options[] = {JOB_OPTIONS_LONG,
			{"svg", required_argument, NULL, OPTION_SVG},
			{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, OPTION_HELP}, {NULL, 0, NULL, 0}};
	struct topology_options o = {.is_json = cli_wants_json(argc, argv)};
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(o.is_json, "topology", option, argv);
		if (option == OPTION_JSON)
			continue;
		if (option == OPTION_SVG) {
			o.svg_path = optarg;
		} else if (option == OPTION_HELP || option == 'h') {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		} else if (!job_options_take(&o.job, option, optarg)) {
			return cli_usage(o.is_json, "topology", "too many options");
		}
	}
	if (argc - optind > 1)
		return cli_usage(o.is_json, "topology", "expected at most one job file");
	o.job_path = argv[optind]; /* NULL behind the last */
	return run(&o);
}
