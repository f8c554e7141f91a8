#include "control/cli/verify_command.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/word_options.h"
#include "control/metadata/checkpoint_verify.h"
#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/task_state.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

static const char help[] =
		"Usage: weir verify PATH... [OPTION]...\n"
		"Reads every file of checkpoints and compares every checksum, as a restore does\n"
		"before it begins.  PATH is the directory of a checkpoint, or its _metadata.\n"
		"\n"
		"  --json            one JSON object\n"
		"  --help\n"
		"\n"
		"Ends with 0 when all are whole, 5 when one is damaged or none.\n"
		"\n"
		"Examples:\n"
		"  weir verify weir-state/checkpoints/6fbe0c1d2d4f4a0b8c5e3f2a1b0c9d8e/chk-17\n"
		"  weir verify weir-state/checkpoints/*/chk-* --json\n";

/* What was read of one checkpoint. */
struct verified {
	const char *path;
	json_t *problems;
	int64_t checkpoint_id; /* 0: its metadata cannot be read */
	uint64_t subtasks, states, bytes;
};

static void add_problem(void *context, const char *problem)
{
	struct verified *v = context;
	json_t *text = json_string(problem);

	fprintf(stderr, "weir verify: %s: %s\n", v->path, problem);
	json_array_append_new(v->problems, text != NULL ? text : json_string("not UTF-8"));
}

/* How much there is; what cannot be read has been told already. */
static void count(struct verified *v)
{
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];
	struct metadata *m;
	struct task_state *t;

	if (metadata_read(&m, v->path, directory, text) != 0)
		return;
	v->checkpoint_id = m->checkpoint_id;
	for (uint32_t i = 0; i < m->vertex_count; i++) {
		for (uint32_t k = 0; k < m->vertices[i].subtask_count; k++) {
			struct metadata_bytes state = m->vertices[i].subtasks[k].state;

			v->subtasks++;
			if (state.size == 0 ||
					task_state_decode(&t, state.data, state.size, text) != 0)
				continue;
			v->states += t->handle_count;
			v->bytes += task_state_total_bytes(t);
			task_state_free(t);
		}
	}
	metadata_free(m);
}

static bool verify(struct verified *v)
{
	bool is_whole = checkpoint_verify(v->path, add_problem, v) == 0;

	count(v);
	return is_whole;
}

static json_t *to_json(const struct verified *v, bool is_whole)
{
	json_t *path = json_string(v->path);

	return json_pack("{s:o, s:I, s:b, s:I, s:I, s:I, s:O}", "path",
			path != NULL ? path : json_string("not UTF-8"), "checkpoint_id",
			(json_int_t)v->checkpoint_id, "whole", is_whole, "subtasks",
			(json_int_t)v->subtasks, "states", (json_int_t)v->states, "bytes",
			(json_int_t)v->bytes, "problems", v->problems);
}

static int verify_all(char **paths, int path_count, bool is_json)
{
	json_t *all = json_array();
	bool are_whole = true;

	for (int i = 0; i < path_count; i++) {
		struct verified v = {.path = paths[i], .problems = json_array()};
		bool is_whole = verify(&v);

		are_whole = are_whole && is_whole;
		json_array_append_new(all, to_json(&v, is_whole));
		if (!is_json)
			printf("%s: %s: %" PRIu64 " states of %" PRIu64 " subtasks, %" PRIu64
			       " bytes\n",
					v.path, is_whole ? "whole" : "DAMAGED", v.states,
					v.subtasks, v.bytes);
		json_decref(v.problems);
	}
	json_t *json = json_pack("{s:b, s:o}", "whole", are_whole, "checkpoints", all);
	bool is_printed = !is_json || json_dumpf(json, stdout, JSON_INDENT(2)) == 0;

	if (is_json)
		putchar('\n');
	json_decref(json);
	if (!is_printed)
		return WEIR_EXIT_FAILURE;
	return are_whole ? WEIR_EXIT_DONE : WEIR_EXIT_RESTORE_REFUSED;
}

int verify_command(int argc, char **argv)
{
	bool is_json;
	int code = word_options_read(argc, argv, "verify", help, &is_json);

	if (code >= 0)
		return code;
	if (optind >= argc)
		return cli_usage(is_json, "verify", "expected at least one PATH");
	return verify_all(argv + optind, argc - optind, is_json);
}
