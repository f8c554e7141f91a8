#include "control/cli/restore_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_options.h"
#include "control/metadata/checkpoint_verify.h"
#include "control/metadata/metadata.h"
#include "control/restore/newer_output.h"
#include "control/restore/restore_fit.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_JSON = 0x2000, OPTION_HELP, OPTION_DRY_RUN, PARALLELISM_BYTES = 32 };

static const char help[] =
		"Usage: weir restore --dry-run JOB.yaml PATH [OPTION]...\n"
		"Says what a job would find again of a checkpoint: operators by uid, with the\n"
		"size of their state, and everything that a restore would refuse.  Reads every\n"
		"byte of the checkpoint; starts and changes nothing.  What does it is\n"
		"weir run JOB.yaml --restore PATH.\n"
		"\n" JOB_OPTION_NON_RESTORED_HELP JOB_OPTIONS_HELP
		"  --json                  one JSON object\n"
		"  --help\n"
		"\n"
		"An operator is matched (its state is found again), new (it begins empty) or\n"
		"unmatched (its state has no operator in the job: refused without -n).  Ends\n"
		"with 0 when the restore would go through, 5 when it would be refused.\n"
		"\n"
		"Examples:\n"
		"  weir restore --dry-run job.yaml weir-state/checkpoints/ID/chk-17\n"
		"  weir restore --dry-run job.yaml chk-17 --set source.path=b.pcap --json\n";

static const char *const fits[] = {"matched", "new", "unmatched"};

/* What is known in the end; refusals of all kinds. */
struct dry_run {
	const struct job_spec *spec;
	struct metadata *metadata;
	struct restore_fit *fit;
	json_t *refusals;
};

/* ---- what would be refused ---- */

static void add_refusal(void *context, const char *text)
{
	struct dry_run *d = context;
	json_t *json = json_string(text);

	json_array_append_new(d->refusals, json != NULL ? json : json_string("not UTF-8"));
}

static void look_for_newer(struct dry_run *d, const char *directory, const char *uid)
{
	char name[NEWER_OUTPUT_NAME_BYTES], text[2048];

	if (!newer_output_find(directory, uid, d->metadata->checkpoint_id, name))
		return;
	snprintf(text, sizeof(text),
			"%s/%s was committed after checkpoint %" PRId64 ": its records would be "
			"written again; --allow-rewind takes it back first",
			directory, name, d->metadata->checkpoint_id);
	add_refusal(d, text);
}

static const char *path_of(const struct job_operator *op)
{
	for (uint32_t i = 0; i < op->table->param_count; i++)
		if (strcmp(op->table->params[i].name, "path") == 0)
			return op->values[i].text;
	return NULL;
}

/* Where the job's sinks write now, and where they did then. */
static void look_at_sinks(struct dry_run *d)
{
	const struct metadata *m = d->metadata;

	for (uint32_t v = 0; v < d->spec->vertex_count; v++) {
		for (uint32_t i = 0; i < d->spec->vertices[v].operator_count; i++) {
			const struct job_operator *op = &d->spec->vertices[v].operators[i];
			const char *now = path_of(op);

			if (strcmp(op->table->name, "file-sink") != 0 || now == NULL)
				continue;
			look_for_newer(d, now, op->uid);
			for (uint32_t k = 0; k < m->sink_directory_count; k++)
				if (strcmp(m->sink_directories[k], now) != 0)
					look_for_newer(d, m->sink_directories[k], op->uid);
		}
	}
}

/* ---- for people and for programs ---- */

static void print_parallelism(const struct restore_fit_operator *o, char text[PARALLELISM_BYTES])
{
	if (o->parallelism_then == 0 || o->parallelism_then == o->parallelism_now)
		snprintf(text, PARALLELISM_BYTES, "%u", o->parallelism_now);
	else if (o->parallelism_now == 0)
		snprintf(text, PARALLELISM_BYTES, "%u -> none", o->parallelism_then);
	else
		snprintf(text, PARALLELISM_BYTES, "%u -> %u", o->parallelism_then,
				o->parallelism_now);
}

static void print_table(const struct dry_run *d)
{
	const json_t *refusal;
	size_t i;

	printf("checkpoint %" PRId64 " of job %s, %" PRIu64 " bytes of state\n\n",
			d->metadata->checkpoint_id, d->metadata->job_name, d->fit->bytes);
	printf("%-20s  %-20s  %-11s  %-9s  %7s  %12s  %14s\n", "vertex", "operator", "parallelism",
			"state", "states", "items", "bytes");
	for (uint32_t k = 0; k < d->fit->operator_count; k++) {
		const struct restore_fit_operator *o = &d->fit->operators[k];
		char parallelism[PARALLELISM_BYTES];

		print_parallelism(o, parallelism);
		printf("%-20s  %-20s  %-11s  %-9s  %7" PRIu64 "  %12" PRIu64 "  %14" PRIu64 "\n",
				o->vertex_uid, o->operator_uid, parallelism, fits[o->kind],
				o->state_count, o->item_count, o->bytes);
	}
	printf("\n");
	json_array_foreach(d->refusals, i, refusal)
		printf("REFUSED: %s\n", json_string_value(refusal));
	if (json_array_size(d->refusals) == 0)
		printf("the job can go on from it\n");
}

static void print_json(const struct dry_run *d)
{
	json_t *operators = json_array();

	for (uint32_t k = 0; k < d->fit->operator_count; k++) {
		const struct restore_fit_operator *o = &d->fit->operators[k];

		json_array_append_new(operators,
				json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I}", "vertex",
						o->vertex_uid, "uid", o->operator_uid, "state",
						fits[o->kind], "parallelism_then",
						(int)o->parallelism_then, "parallelism_now",
						(int)o->parallelism_now, "states",
						(json_int_t)o->state_count, "items",
						(json_int_t)o->item_count, "bytes",
						(json_int_t)o->bytes));
	}
	json_t *json = json_pack("{s:I, s:s, s:I, s:b, s:o, s:O}", "checkpoint_id",
			(json_int_t)d->metadata->checkpoint_id, "job_name", d->metadata->job_name,
			"bytes", (json_int_t)d->fit->bytes, "fits",
			json_array_size(d->refusals) == 0, "operators", operators, "refusals",
			d->refusals);
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
}

/* ---- the command ---- */

/* The metadata cannot be read: there is nothing to compare. */
static int refuse(const struct dry_run *d, const char *text, bool is_json)
{
	fprintf(stderr, "weir restore: %s\n", text);
	if (is_json) {
		json_t *json = json_pack("{s:b, s:s, s:O}", "fits", 0, "error", text, "refusals",
				d->refusals);

		json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(json);
	}
	return WEIR_EXIT_RESTORE_REFUSED;
}

static int compare(struct dry_run *d, const char *path, bool ignores_unclaimed, bool is_json)
{
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];

	if (metadata_read(&d->metadata, path, directory, text) != 0) {
		add_refusal(d, text);
		return refuse(d, text, is_json);
	}
	if (restore_fit_create(&d->fit, d->spec, d->metadata, ignores_unclaimed) != 0)
		return WEIR_EXIT_FAILURE;
	for (uint32_t i = 0; i < d->fit->refusal_count; i++)
		add_refusal(d, d->fit->refusals[i]);
	(void)checkpoint_verify(path, add_refusal, d);
	look_at_sinks(d);
	if (is_json)
		print_json(d);
	else
		print_table(d);
	return json_array_size(d->refusals) == 0 ? WEIR_EXIT_DONE : WEIR_EXIT_RESTORE_REFUSED;
}

static int run(struct job_options *o, const char *job, const char *path, bool is_json)
{
	struct dry_run d = {.refusals = json_array()};
	struct config *config;
	struct job_spec *spec;
	int rc = job_options_job(o, job, &config, &spec);

	if (rc == WEIR_EXIT_DONE) {
		d.spec = spec;
		rc = compare(&d, path,
				config_bool(config,
						"execution.state-recovery.ignore-unclaimed-state"),
				is_json);
		restore_fit_destroy(d.fit);
		metadata_free(d.metadata);
		job_spec_destroy(spec);
		config_destroy(config);
	} else {
		(void)cli_fail(is_json, rc, o->error);
	}
	json_decref(d.refusals);
	return rc;
}

int restore_command(int argc, char **argv)
{
	static const struct option options[] = {JOB_OPTIONS_LONG, JOB_OPTION_NON_RESTORED_LONG,
			{"dry-run", no_argument, NULL, OPTION_DRY_RUN},
			{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, OPTION_HELP}, {NULL, 0, NULL, 0}};
	struct job_options o = {0};
	bool is_json = cli_wants_json(argc, argv), is_dry = false;
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:hn", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(is_json, "restore", option, argv);
		if (option == OPTION_JSON)
			continue;
		if (option == OPTION_DRY_RUN) {
			is_dry = true;
		} else if (option == OPTION_HELP || option == 'h') {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		} else if (!job_options_take(&o, option, optarg)) {
			return cli_usage(is_json, "restore", "too many options");
		}
	}
	if (!is_dry)
		return cli_usage(is_json, "restore",
				"expected --dry-run; weir run or submit JOB.yaml --restore PATH "
				"restores");
	if (argc - optind != 2)
		return cli_usage(is_json, "restore",
				"expected one job file and the PATH of a checkpoint");
	return run(&o, argv[optind], argv[optind + 1], is_json);
}
