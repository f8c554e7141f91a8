#include "control/cli/plan_command.h"

#include "control/cli/config_command.h"
#include "control/cli/exit_codes.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char job[] = "name: numbers\n"
			  "vertices:\n"
			  "  - uid: ingest\n"
			  "    operators:\n"
			  "      - {uid: source, plugin: plugin_job.so, type: numbers}\n"
			  "  - uid: counting\n"
			  "    operators:\n"
			  "      - {uid: count, plugin: plugin_job.so, type: count}\n"
			  "      - {uid: sink, plugin: plugin_job.so, type: store, path: out}\n"
			  "edges:\n"
			  "  - {from: ingest, to: counting, partition: hash}\n";

static char path[] = PLUGIN_DIR "/plan_test_XXXXXX";

static void begin(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, job, sizeof(job) - 1), (ssize_t)sizeof(job) - 1);
	close(fd);
	cr_redirect_stdout();
	cr_redirect_stderr();
}

static void end(void)
{
	unlink(path);
}

TestSuite(plan_command, .init = begin, .fini = end);

static int run(int (*command)(int argc, char **argv), char *first, char *second, char *third)
{
	char *argv[] = {(char *)"command", first, second, third, NULL};
	int argc = 1;

	while (argv[argc] != NULL)
		argc++;
	int rc = command(argc, argv);
	fflush(stdout);
	fflush(stderr);
	return rc;
}

static char *print_plan(bool json)
{
	struct config *config;
	struct config_error error;
	struct job_spec *spec;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(config_create(&config), 0);
	cr_assert_eq(job_spec_load(&spec, path, NULL, 0, config, &error), 0, "%s", error.text);
	cr_assert(plan_print(spec, out, json));
	fclose(out);
	job_spec_destroy(spec);
	config_destroy(config);
	return text;
}

Test(plan_command, a_good_job_is_shown_as_a_table)
{
	char *text = print_plan(false);

	cr_expect_str_eq(text,
			"job numbers\n"
			"  id d1ec94d19d1e150d3e3a0e2d72c7d719, 128 key groups\n"
			"\n"
			"vertices\n"
			"  ingest, parallelism 1\n"
			"    uid                  type                 makes      parameters\n"
			"    source               numbers              16 bytes   records=10 "
			"skew=uniform\n"
			"      plug-in " PLUGIN_DIR "/plugin_job.so\n"
			"  counting, parallelism 1\n"
			"    uid                  type                 makes      parameters\n"
			"    count                count                24 bytes   entries=100\n"
			"      plug-in " PLUGIN_DIR "/plugin_job.so\n"
			"      state counts: keyed, 8 + 8 bytes, up to 100, version 1\n"
			"    sink                 store                -          path=out\n"
			"      plug-in " PLUGIN_DIR "/plugin_job.so\n"
			"\n"
			"edges\n"
			"  ingest -> counting  hash by 8 bytes at 0\n");
	free(text);
}

Test(plan_command, json_holds_vertices_operators_params_and_edges)
{
	char *text = print_plan(true);
	json_t *plan = json_loads(text, 0, NULL);
	json_t *vertex = json_array_get(json_object_get(plan, "vertices"), 1);
	json_t *op = json_array_get(json_object_get(vertex, "operators"), 1);
	json_t *edge = json_array_get(json_object_get(plan, "edges"), 0);
	json_t *params = json_object_get(op, "params");

	cr_expect_str_eq(json_string_value(json_object_get(vertex, "uid")), "counting");
	cr_expect_str_eq(json_string_value(json_object_get(op, "type")), "store");
	cr_expect_str_eq(json_string_value(json_object_get(params, "path")), "out");
	cr_expect_str_eq(json_string_value(json_object_get(edge, "partition")), "hash");
	json_decref(plan);
	free(text);
}

Test(plan_command, a_bad_job_file_ends_with_code_3_and_one_line)
{
	cr_expect_eq(run(plan_command, path, (char *)"--set", (char *)"sink.pth=x"),
			WEIR_EXIT_CONFIG);
	cr_expect_stderr_eq_str("--set option: sink.pth: store has no such parameter; did you mean "
				"path?\n");
}

Test(plan_command, a_wrong_command_line_ends_with_code_2)
{
	cr_expect_eq(run(plan_command, NULL, NULL, NULL), WEIR_EXIT_USAGE);
	cr_expect_eq(run(plan_command, path, (char *)"--jsno", NULL), WEIR_EXIT_USAGE);
	cr_expect_eq(run(config_command, path, NULL, NULL), WEIR_EXIT_USAGE);
	cr_expect_eq(run(plan_command, (char *)"--help", NULL, NULL), WEIR_EXIT_DONE);
}

Test(plan_command, a_bad_config_ends_with_code_3)
{
	cr_expect_eq(run(config_command, (char *)"-Drest.prt=1", NULL, NULL), WEIR_EXIT_CONFIG);
	cr_expect_eq(run(config_command, (char *)"-Drest.port=1", (char *)"--json", NULL),
			WEIR_EXIT_DONE);
	cr_expect_eq(run(config_command, (char *)"--keys", NULL, NULL), WEIR_EXIT_DONE);
}
