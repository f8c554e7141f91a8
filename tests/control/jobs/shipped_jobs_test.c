/* The job files in control/jobs, and the plug-in that one of them is an example of. */

#include "control/config/job_file.h"
#include "dataplane/operator/packet/flow_record.h"
#include "dataplane/operator/registry.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>

static struct config *config;
static struct config_error error;
static struct job_spec *spec;

static void begin(void)
{
	cr_assert_eq(config_create(&config), 0);
}

static void end(void)
{
	job_spec_destroy(spec);
	config_destroy(config);
}

TestSuite(shipped_jobs, .init = begin, .fini = end);

Test(shipped_jobs, each_job_file_is_accepted)
{
	glob_t found;

	cr_assert_eq(glob(JOBS_DIR "/*.yaml", 0, NULL, &found), 0);
	cr_expect_geq(found.gl_pathc, 2);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int rc = job_spec_load(&spec, found.gl_pathv[i], NULL, 0, config, &error);

		cr_assert_eq(rc, 0, "%s", error.text);
		job_spec_destroy(spec);
		spec = NULL;
	}
	globfree(&found);
}

Test(shipped_jobs, the_parameters_that_users_are_told_to_set_exist)
{
	static const char *const sets[] = {"source.path=a.pcap", "sink.path=out"};
	int rc = job_spec_load(
			&spec, JOBS_DIR "/flow-metering.yaml", sets, 2, config, &error);

	cr_assert_eq(rc, 0, "%s", error.text);
	cr_expect_str_eq(job_spec_find(spec, "source", NULL)->values[0].text, "a.pcap");
	cr_expect_str_eq(job_spec_find(spec, "sink", NULL)->values[0].text, "out");
}

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	cr_assert_not_null(f, "%s", path);
	cr_assert_gt(fread(text, 1, 65535, f), 0);
	fclose(f);
	return text;
}

Test(shipped_jobs, the_job_with_a_plugin_is_accepted_once_that_is_built)
{
	char *text = read_text(JOBS_DIR "/plugin-example/tcp-flows.yaml");
	struct job_source source = {.name = "tcp-flows.yaml",
			.text = text,
			.text_bytes = strlen(text),
			.plugin_dir = PLUGIN_DIR};
	int rc = job_spec_parse(&spec, &source, config, &error);

	cr_assert_eq(rc, 0, "%s", error.text);
	const struct job_operator *op = job_spec_find(spec, "tcp-only", NULL);
	cr_expect_str_eq(op->table->name, "byte-filter");
	/* The byte it looks at is the protocol, as the file says. */
	cr_expect_eq(op->values[0].integer, offsetof(struct flow_key, protocol));
	free(text);
}

static struct harness *open_filter(const struct param_text *params, uint32_t record_bytes)
{
	const struct weir_operator *op;
	char text[WEIR_ERROR_BYTES];

	cr_assert_eq(registry_load(PLUGIN_DIR "/byte_filter.so", "byte-filter", &op, text), 0, "%s",
			text);
	struct harness *h = harness_create(&(struct harness_config){
			.op = op, .params = params, .in_record_bytes = record_bytes});
	harness_open(h);
	return h;
}

Test(shipped_jobs, the_byte_filter_passes_what_is_in_its_range)
{
	const struct param_text params[] = {
			{"offset", "1"}, {"min", "10"}, {"max", "20"}, {NULL, NULL}};
	struct harness *h = open_filter(params, 2);
	const uint8_t records[] = {1, 9, 2, 10, 3, 20, 4, 21, 5, 15};
	uint32_t count;

	cr_expect_eq(harness_process(h, records, 5), 5);
	const uint8_t *out = harness_output(h, &count, NULL);
	cr_assert_eq(count, 3);
	cr_expect_eq(memcmp(out, ((const uint8_t[]){2, 10, 3, 20, 5, 15}), 6), 0);
	cr_expect_eq(harness_counter(h, "passed"), 3);
	cr_expect_eq(harness_counter(h, "refused"), 2);
	harness_destroy(h);
}

Test(shipped_jobs, the_byte_filter_refuses_an_offset_behind_the_record)
{
	const struct param_text params[] = {{"offset", "16"}, {NULL, NULL}};
	struct harness *h = open_filter(params, 16);

	cr_assert_not_null(harness_error(h));
	cr_expect_not_null(strstr(harness_error(h), "offset: 16; expected less than 16"));
	harness_destroy(h);
}
