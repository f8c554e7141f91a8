#include "control/cli/plan_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_options.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { OPTION_JSON = 0x2000, OPTION_HELP };

static const char help[] =
		"weir plan JOB.yaml [options]: check a job file and show what it says\n"
		"\n" JOB_OPTIONS_HELP "  --json                  one JSON object\n"
		"\n"
		"Examples:\n"
		"  weir plan control/jobs/flow-metering.yaml\n"
		"  weir plan job.yaml --set source.path=a.pcap -D parallelism.default=2 --json\n"
		"\n"
		"Ends with 0 when the job file is good, 3 when it is not.\n";

static const char *const state_kinds[] = {"value", "list", "keyed"};

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *states_json(const struct weir_declaration *d)
{
	json_t *states = json_array();

	for (uint32_t i = 0; i < d->state_count; i++) {
		const struct weir_state *s = &d->states[i];

		json_array_append_new(states,
				json_pack("{s:s, s:s, s:i, s:i, s:i, s:I}", "name", s->name, "kind",
						state_kinds[s->kind], "key_bytes",
						(int)s->key_bytes, "value_bytes",
						(int)s->value_bytes, "version", (int)s->version,
						"capacity", (json_int_t)s->capacity));
	}
	return states;
}

static json_t *operator_json(const struct job_operator *op)
{
	json_t *params = json_object();

	for (uint32_t i = 0; i < op->table->param_count; i++)
		json_object_set_new(
				params, op->table->params[i].name, json_string(op->values[i].text));
	return json_pack("{s:s, s:s, s:s?, s:o, s:i, s:i, s:o}", "uid", op->uid, "type",
			op->table->name, "plugin", op->plugin, "params", params, "in_record_bytes",
			(int)op->in_record_bytes, "out_record_bytes",
			(int)op->declared.out_record_bytes, "states", states_json(&op->declared));
}

static json_t *vertex_json(const struct job_vertex *vertex)
{
	json_t *operators = json_array();

	for (uint32_t i = 0; i < vertex->operator_count; i++)
		json_array_append_new(operators, operator_json(&vertex->operators[i]));
	return json_pack("{s:s, s:i, s:o}", "uid", vertex->uid, "parallelism",
			(int)vertex->parallelism, "operators", operators);
}

static bool print_json(const struct job_spec *spec, FILE *out)
{
	json_t *vertices = json_array(), *edges = json_array();
	char id[ID128_TEXT_BYTES];

	id128_print(spec->id.id, id);
	for (uint32_t v = 0; v < spec->vertex_count; v++)
		json_array_append_new(vertices, vertex_json(&spec->vertices[v]));
	for (uint32_t e = 0; e < spec->edge_count; e++) {
		const struct job_edge *edge = &spec->edges[e];

		json_array_append_new(edges,
				json_pack("{s:s, s:s, s:s}", "from", spec->vertices[edge->from].uid,
						"to", spec->vertices[edge->to].uid, "partition",
						job_partition_name(edge->partition)));
	}
	json_t *plan = json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", spec->name, "job_id", id,
			"key_groups", (int)spec->key_groups_count, "vertices", vertices, "edges",
			edges);
	bool is_good = plan != NULL && json_dumpf(plan, out, JSON_INDENT(2)) == 0;
	fputc('\n', out);
	json_decref(plan);
	return is_good;
}

/* ---- table --------------------------------------------------------------------------------- */

static void print_records(uint32_t record_bytes, char text[32])
{
	if (record_bytes == 0)
		snprintf(text, 32, "variable");
	else
		snprintf(text, 32, "%u bytes", record_bytes);
}

static void print_operator(const struct job_operator *op, FILE *out)
{
	char records[32];

	print_records(op->declared.out_record_bytes, records);
	fprintf(out, op->table->param_count == 0 ? "    %-20s %-20s %s" : "    %-20s %-20s %-10s",
			op->uid, op->table->name, op->table->role == WEIR_SINK ? "-" : records);
	for (uint32_t i = 0; i < op->table->param_count; i++)
		fprintf(out, " %s=%s", op->table->params[i].name, op->values[i].text);
	fprintf(out, "\n");
	if (op->plugin != NULL)
		fprintf(out, "      plug-in %s\n", op->plugin);
	for (uint32_t i = 0; i < op->declared.state_count; i++) {
		const struct weir_state *s = &op->declared.states[i];

		fprintf(out, "      state %s: %s, %u + %u bytes, up to %" PRIu64 ", version %u\n",
				s->name, state_kinds[s->kind], s->key_bytes, s->value_bytes,
				s->kind == WEIR_STATE_VALUE ? 1 : s->capacity, s->version);
	}
}

static void print_edge(const struct job_spec *spec, const struct job_edge *edge, FILE *out)
{
	const struct weir_declaration *d = &job_vertex_last(&spec->vertices[edge->from])->declared;

	fprintf(out, "  %s -> %s  %s", spec->vertices[edge->from].uid, spec->vertices[edge->to].uid,
			job_partition_name(edge->partition));
	if (edge->partition == JOB_HASH)
		fprintf(out, " by %u bytes at %u", d->out_key_bytes, d->out_key_offset);
	fprintf(out, "\n");
}

bool plan_print(const struct job_spec *spec, FILE *out, bool json)
{
	char id[ID128_TEXT_BYTES];

	if (json)
		return print_json(spec, out);
	id128_print(spec->id.id, id);
	fprintf(out, "job %s\n  id %s, %u key groups\n\nvertices\n", spec->name, id,
			spec->key_groups_count);
	for (uint32_t v = 0; v < spec->vertex_count; v++) {
		const struct job_vertex *vertex = &spec->vertices[v];

		fprintf(out, "  %s, parallelism %u\n", vertex->uid, vertex->parallelism);
		fprintf(out, "    %-20s %-20s %-10s %s\n", "uid", "type", "makes", "parameters");
		for (uint32_t i = 0; i < vertex->operator_count; i++)
			print_operator(&vertex->operators[i], out);
	}
	fprintf(out, "\nedges%s\n", spec->edge_count == 0 ? ": none" : "");
	for (uint32_t e = 0; e < spec->edge_count; e++)
		print_edge(spec, &spec->edges[e], out);
	return true;
}

/* ---- command ------------------------------------------------------------------------------- */

int plan_command(int argc, char **argv)
{
	static const struct option options[] = {JOB_OPTIONS_LONG,
			{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, OPTION_HELP}, {NULL, 0, NULL, 0}};
	struct job_options o = {0};
	struct config *config;
	struct job_spec *spec;
	bool json = cli_wants_json(argc, argv);
	int option;

	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(json, "plan", option, argv);
		if (option == OPTION_JSON)
			continue;
		if (option == OPTION_HELP || option == 'h') {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		} else if (!job_options_take(&o, option, optarg)) {
			return cli_usage(json, "plan", "too many options");
		}
	}
	if (argc - optind != 1)
		return cli_usage(json, "plan", "expected one job file");
	int rc = job_options_job(&o, argv[optind], &config, &spec);
	if (rc != WEIR_EXIT_DONE)
		return cli_fail(json, rc, o.error);
	if (!plan_print(spec, stdout, json))
		rc = WEIR_EXIT_FAILURE;
	job_spec_destroy(spec);
	config_destroy(config);
	return rc;
}
