#include "control/config/job_file.h"

#include "dataplane/operator/registry.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PLUGIN_DIR holds plugin_job.so, built from job_file_plugin.c.  Each test changes one line of
 * this job. */
static const char *const lines[] = {
		"name: numbers",							   /* 1 */
		"config: {execution.checkpointing.interval: 1 s}",			   /* 2 */
		"vertices:",								   /* 3 */
		"  - uid: ingest",							   /* 4 */
		"    operators:",							   /* 5 */
		"      - {uid: source, plugin: plugin_job.so, type: numbers, records: 5}", /* 6 */
		"  - uid: counting",							   /* 7 */
		"    parallelism: 2",							   /* 8 */
		"    operators:",							   /* 9 */
		"      - {uid: count, plugin: plugin_job.so, type: count}",		   /* 10 */
		"      - {uid: print, plugin: plugin_job.so, type: print}",		   /* 11 */
		"      - {uid: sink, plugin: plugin_job.so, type: store, path: out}",	   /* 12 */
		"edges:",								   /* 13 */
		"  - {from: ingest, to: counting, partition: hash}",			   /* 14 */
};

enum { LINES_COUNT = sizeof(lines) / sizeof(lines[0]) };

static struct config *config;
static struct config_error error;
static struct job_spec *spec;
static char text[8192];

static void begin(void)
{
	cr_assert_eq(config_create(&config), 0);
}

static void end(void)
{
	job_spec_destroy(spec);
	config_destroy(config);
}

TestSuite(job_file, .init = begin, .fini = end);

/* The job with line `number` (from 1; 0: none) replaced. */
static const char *job_with(uint32_t number, const char *line)
{
	text[0] = '\0';
	for (uint32_t i = 0; i < LINES_COUNT; i++) {
		strcat(text, i + 1 == number ? line : lines[i]);
		strcat(text, "\n");
	}
	return text;
}

static int parse(const char *job, const char *const *sets, uint32_t set_count)
{
	struct job_source source = {.name = "job.yaml",
			.text = job,
			.text_bytes = strlen(job),
			.plugin_dir = PLUGIN_DIR,
			.sets = sets,
			.set_count = set_count};

	job_spec_destroy(spec);
	spec = NULL;
	error.text[0] = '\0';
	return job_spec_parse(&spec, &source, config, &error);
}

static void expect_refused(uint32_t number, const char *line, const char *message)
{
	cr_expect_eq(parse(job_with(number, line), NULL, 0), -EINVAL, "%s", line);
	cr_expect_str_eq(error.text, message);
}

static void expect_set_refused(const char *set, const char *message)
{
	cr_expect_eq(parse(job_with(0, ""), &set, 1), -EINVAL, "%s", set);
	cr_expect_str_eq(error.text, message);
}

Test(job_file, a_good_job_becomes_vertices_operators_and_edges)
{
	cr_assert_eq(parse(job_with(0, ""), NULL, 0), 0, "%s", error.text);
	cr_expect_str_eq(spec->name, "numbers");
	cr_assert_eq(spec->vertex_count, 2);
	cr_assert_eq(spec->edge_count, 1);
	cr_expect_eq(spec->key_groups_count, 128);
	cr_expect_eq(spec->vertices[0].parallelism, 1);
	cr_expect_eq(spec->vertices[1].parallelism, 2);
	cr_expect_eq(spec->vertices[1].operator_count, 3);
	cr_expect_eq(spec->edges[0].from, 0);
	cr_expect_eq(spec->edges[0].to, 1);
	cr_expect_eq(spec->edges[0].partition, JOB_HASH);

	const struct job_vertex *vertex;
	const struct job_operator *count = job_spec_find(spec, "count", &vertex);
	cr_expect_eq(vertex, &spec->vertices[1]);
	cr_expect_str_eq(count->table->name, "count");
	cr_expect_str_eq(count->plugin, PLUGIN_DIR "/plugin_job.so");
	cr_expect_eq(count->in_record_bytes, 16);
	cr_expect_eq(count->values[0].integer, 100);
	cr_expect_eq(count->declared.states[0].capacity, 100);
	cr_expect_eq(job_spec_find(spec, "source", NULL)->values[0].integer, 5);
	cr_expect_eq(config_duration_ns(config, "execution.checkpointing.interval"), 1000000000);
	cr_expect_eq(config_origin_of(config, "execution.checkpointing.interval"), CONFIG_JOB_FILE);
}

Test(job_file, the_job_id_is_that_of_the_name_unless_given)
{
	struct job_id a = job_id_of_name("numbers"), b = job_id_of_name("number");
	char hex[ID128_TEXT_BYTES];

	cr_assert_eq(parse(job_with(0, ""), NULL, 0), 0, "%s", error.text);
	cr_expect(id128_is_equal(spec->id.id, a.id));
	cr_expect(!id128_is_equal(a.id, b.id));
	cr_assert_eq(parse(job_with(1, "name: x\nid: 00112233445566778899aabbccddeeff"), NULL, 0),
			0, "%s", error.text);
	id128_print(spec->id.id, hex);
	cr_expect_str_eq(hex, "00112233445566778899aabbccddeeff");
}

Test(job_file, a_spec_can_be_built_again_from_what_it_keeps)
{
	const char *const sets[] = {"sink.path=elsewhere", "counting.parallelism=4"};
	struct job_spec *again = NULL;

	cr_assert_eq(parse(job_with(0, ""), sets, 2), 0, "%s", error.text);
	memset(text, 'x', sizeof(text)); /* the spec has its own copy */
	cr_assert_eq(job_spec_parse(&again, &spec->source, config, &error), 0, "%s", error.text);
	cr_expect(id128_is_equal(again->id.id, spec->id.id));
	cr_expect_str_eq(job_spec_find(again, "sink", NULL)->values[0].text, "elsewhere");
	cr_expect_eq(again->vertices[1].parallelism, 4);
	job_spec_destroy(again);
}

Test(job_file, of_two_sets_for_one_parameter_the_last_holds)
{
	const char *const sets[] = {"source.records=7", "source.skew=zipf", "source.records=8"};

	cr_assert_eq(parse(job_with(0, ""), sets, 3), 0, "%s", error.text);
	cr_expect_eq(job_spec_find(spec, "source", NULL)->values[0].integer, 8);
	cr_expect_eq(job_spec_find(spec, "source", NULL)->values[1].integer, 1);
}

Test(job_file, sets_are_refused_with_their_own_place)
{
	expect_set_refused("sink", "--set option: \"sink\"; expected UID.PARAM=VALUE");
	expect_set_refused("sink=out", "--set option: \"sink=out\"; expected UID.PARAM=VALUE");
	expect_set_refused("sikn.path=x",
			"--set option: sikn.path: no operator has this uid; did you mean sink?");
	expect_set_refused("sink.pth=x",
			"--set option: sink.pth: store has no such parameter; did you mean path?");
	expect_set_refused("source.records=0",
			"--set option: source.records: \"0\" is too small; expected 1 or more");
	expect_set_refused("counting.parallelism=0", "--set option: counting.parallelism: \"0\" is "
						     "too small; expected 1 to 1024");
}

Test(job_file, unknown_and_duplicate_keys_are_refused)
{
	expect_refused(1, "nmae: numbers", "job.yaml:1:1: nmae: unknown key; did you mean name?");
	expect_refused(1, "name: a\nname: b",
			"job.yaml:2:1: name: given twice, first at line 1; expected once");
	expect_refused(8, "    paralelism: 2",
			"job.yaml:8:5: paralelism: unknown key; did you mean parallelism?");
	expect_refused(14, "  - {from: ingest, into: counting}",
			"job.yaml:14:20: into: unknown key; expected one of from|to|partition");
	expect_refused(12, "      - {uid: sink, uid: b}",
			"job.yaml:12:21: uid: given twice, first at line 12; expected once");
	expect_refused(2, "config: {rest.prt: 1}",
			"job.yaml:2:10: rest.prt: unknown key; did you mean rest.port?");
}

Test(job_file, keys_of_processes_are_refused_since_no_job_changes_them)
{
	expect_refused(2, "config: {weir.cores: '0'}",
			"job.yaml:2:10: weir.cores: no key of a job; it belongs into the config of "
			"the coordinator or of its TaskManagers");
	expect_refused(2, "config: {taskmanager: {memory: {managed: {size: 1 gb}}}}",
			"job.yaml:2:43: taskmanager.memory.managed.size: no key of a job; it "
			"belongs into the config of the coordinator or of its TaskManagers");
}

Test(job_file, the_name_must_be_there_and_plain)
{
	expect_refused(1, "", "job.yaml:2:1: name: missing; expected the name of the job");
	expect_refused(1, "name: ''",
			"job.yaml:1:7: name: expected 1 to 127 bytes of text on one line");
	expect_refused(1, "name: a\nid: 12",
			"job.yaml:2:5: id: \"12\" is no job id; expected 32 hex digits");
}

Test(job_file, uids_must_be_there_plain_and_distinct)
{
	expect_refused(4, "  - parallelism: 1",
			"job.yaml:4:5: uid: missing; expected a name that stays the same from run "
			"to run");
	expect_refused(10, "      - {plugin: plugin_job.so, type: count}",
			"job.yaml:10:9: uid: missing; expected a name that stays the same from run "
			"to "
			"run");
	expect_refused(4, "  - uid: in.gest",
			"job.yaml:4:10: uid: \"in.gest\"; expected 1 to 63 letters, digits, _ and "
			"-");
	expect_refused(7, "  - uid: ingest",
			"job.yaml:7:10: uid: \"ingest\" is the uid of another vertex, at line 4; "
			"expected a different one");
	expect_refused(12, "      - {uid: source, plugin: plugin_job.so, type: store, path: o}",
			"job.yaml:12:15: uid: \"source\" is the uid of another operator, at line "
			"6; "
			"expected a different one");
	cr_expect_eq(parse(job_with(4, "  - uid: source"), NULL, 0), -EINVAL);
	cr_expect_str_eq(error.text, "job.yaml:14:12: from: no vertex has the uid \"ingest\"; "
				     "expected one of the job file");
}

Test(job_file, parallelism_is_bounded_by_the_key_groups)
{
	expect_refused(8, "    parallelism: two",
			"job.yaml:8:18: counting.parallelism: \"two\" is not a whole number; "
			"expected "
			"such as 8");
	expect_refused(8, "    parallelism: 0",
			"job.yaml:8:18: counting.parallelism: \"0\" is too small; expected 1 to "
			"1024");
	expect_refused(8, "    parallelism: 129",
			"job.yaml:8:18: counting.parallelism: 129 is more than the key groups of "
			"pipeline.max-parallelism; expected 1 to 128");
	cr_assert_eq(config_set_option(config, "parallelism.default=2", &error), 0);
	cr_assert_eq(parse(job_with(8, "    # none"), NULL, 0), 0, "%s", error.text);
	cr_expect_eq(spec->vertices[1].parallelism, 2);
}

Test(job_file, an_unknown_type_is_refused_with_the_known_ones)
{
	char known[1024] = "job.yaml:10:31: count: type \"quux-operator\" is unknown; expected one "
			   "of ";
	const struct weir_operator *op;

	for (uint32_t i = 0; (op = registry_at(i)) != NULL; i++)
		sprintf(known + strlen(known), "%s%s", i == 0 ? "" : ", ", op->name);
	expect_refused(10, "      - {uid: count, type:    quux-operator}", known);
}

Test(job_file, plugin_problems_are_told_apart)
{
	expect_refused(10, "      - {uid: count, plugin: no.so}",
			"job.yaml:10:30: count: plug-in " PLUGIN_DIR
			"/no.so: No such file or directory");
	expect_refused(10, "      - {uid: count, plugin: plugin_no_symbol.so}",
			"job.yaml:10:30: count: plug-in " PLUGIN_DIR
			"/plugin_no_symbol.so: no symbol "
			"weir_plugin");
	expect_refused(10, "      - {uid: count, plugin: plugin_job.so, type: cnt}",
			"job.yaml:10:30: count: plug-in " PLUGIN_DIR
			"/plugin_job.so: it has no operator "
			"\"cnt\"; expected numbers, count, print, store, broken");
	expect_refused(10, "      - {uid: count, plugin: ''}",
			"job.yaml:10:30: count: plugin is empty; expected the path of a shared "
			"object");
}

Test(job_file, parameters_are_refused_where_they_stand)
{
	expect_refused(6, "      - {uid: source, plugin: plugin_job.so, record: 5}",
			"job.yaml:6:46: source.record: numbers has no such parameter; did you mean "
			"records?");
	expect_refused(6, "      - {uid: source, plugin: plugin_job.so, records: five}",
			"job.yaml:6:55: source.records: \"five\" is not a whole number; expected "
			"such as "
			"8");
	expect_refused(6, "      - {uid: source, plugin: plugin_job.so, records: [5]}",
			"job.yaml:6:55: source.records: a list or mapping; expected one value");
	expect_refused(12, "      - {uid: sink, plugin: plugin_job.so, type: store}",
			"job.yaml:12:9: sink.path: missing; expected a folder for the output");
	expect_refused(12, "      - {uid: sink, plugin: plugin_job.so, type: store, path: ''}",
			"job.yaml:12:9: sink: path: empty; expected a folder");
}

Test(job_file, a_chain_begins_with_its_only_source_and_ends_with_its_sink)
{
	expect_refused(11, "      - {uid: late, plugin: plugin_job.so, type: numbers}",
			"job.yaml:11:9: late: a source behind other operators; expected it first "
			"in its "
			"vertex");
	expect_refused(10, "      - {uid: early, plugin: plugin_job.so, type: store, path: x}",
			"job.yaml:10:9: early: a sink before other operators; expected it last in "
			"its "
			"vertex");
}

Test(job_file, every_vertex_needs_something_in_front_and_behind)
{
	expect_refused(14, "",
			"job.yaml:4:5: ingest: what comes out goes nowhere; expected an edge from "
			"it, or "
			"a sink as its last operator");
	expect_refused(6, "      - {uid: count2, plugin: plugin_job.so, type: count}",
			"job.yaml:4:5: ingest: nothing comes in; expected an edge to it, or a "
			"source as "
			"its first operator");
	expect_refused(14, "  - {from: counting, to: ingest}",
			"job.yaml:14:5: from: counting ends in a sink; expected no edge from it");
	expect_refused(14, "  - {from: ingest, to: ingest}",
			"job.yaml:14:5: to: ingest begins with a source; expected no edge to it");
}

Test(job_file, edges_lead_between_known_vertices_once)
{
	expect_refused(14, "  - {from: ingst, to: counting}",
			"job.yaml:14:12: from: no vertex has the uid \"ingst\"; did you mean "
			"ingest?");
	expect_refused(14, "  - {from: ingest}",
			"job.yaml:14:5: to: missing; expected the uid of a vertex");
	expect_refused(14,
			"  - {from: ingest, to: counting, partition: hash}\n"
			"  - {from: ingest, to: counting, partition: hash}",
			"job.yaml:15:5: edges: a second edge from ingest to counting, the first at "
			"line "
			"14; expected one");
}

Test(job_file, partitions_must_be_known_and_fit)
{
	expect_refused(14, "  - {from: ingest, to: counting, partition: forward}",
			"job.yaml:14:5: partition: forward from ingest (parallelism 1) to counting "
			"(parallelism 2); expected them to be equal, or hash, rebalance or "
			"broadcast");
	expect_refused(14, "  - {from: ingest, to: counting, partition: random}",
			"job.yaml:14:45: partition: \"random\" is unknown; expected forward, hash, "
			"rebalance or broadcast");
	expect_refused(14, "  - {from: ingest, to: counting, partition: rebalence}",
			"job.yaml:14:45: partition: \"rebalence\" is unknown; expected forward, "
			"hash, rebalance or broadcast; did you mean rebalance?");
	expect_refused(14, "  - {from: ingest, to: counting, partition: rebalance}",
			"job.yaml:14:5: partition: count keeps state by a key of 8 bytes; expected "
			"a hash edge by that key, or parallelism 1");
}

Test(job_file, a_cycle_is_refused)
{
	static const char looped[] = "  - {from: ingest, to: counting, partition: hash}\n"
				     "  - {from: counting, to: counting, partition: hash}";

	expect_refused(12, "",
			"job.yaml:7:5: counting: what comes out goes nowhere; expected an edge "
			"from it, or a sink as its last operator");
	job_with(12, "");
	char job[8192];
	snprintf(job, sizeof(job), "%.*s%s\n", (int)(strstr(text, "edges:") - text + 7), text,
			looped);
	cr_expect_eq(parse(job, NULL, 0), -EINVAL);
	cr_expect_str_eq(error.text, "job.yaml:15:5: edges: from counting to counting lies on or "
				     "behind a cycle; expected none");
}

Test(job_file, records_must_fit_along_a_chain_and_across_an_edge)
{
	expect_refused(11, "      - {uid: count2, plugin: plugin_job.so, type: count}",
			"job.yaml:11:9: count2: count makes records of 24 bytes; expected records "
			"of 16 "
			"bytes");
	expect_refused(10, "",
			"job.yaml:11:9: print: source makes records of 16 bytes; expected records "
			"of 24 "
			"bytes");
}

Test(job_file, a_hash_edge_needs_a_key_and_keyed_state_a_hash_edge)
{
	static const char *const keyless =
			"name: x\n"
			"vertices:\n"
			"  - uid: a\n"
			"    operators:\n"
			"      - {uid: s, plugin: plugin_job.so, type: numbers}\n"
			"      - {uid: c, plugin: plugin_job.so, type: count}\n"
			"  - uid: b\n"
			"    operators:\n"
			"      - {uid: k, plugin: plugin_job.so, type: store, path: x}\n"
			"edges:\n"
			"  - {from: a, to: b, partition: hash}\n";

	cr_expect_eq(parse(keyless, NULL, 0), -EINVAL);
	cr_expect_str_eq(error.text, "job.yaml:11:5: partition: hash, but c (count) declares no "
				     "key; expected forward "
				     "or rebalance, or an operator with a key");
	const char *set = "a.parallelism=2";
	cr_expect_eq(parse(keyless, &set, 1), -EINVAL);
	cr_expect_str_eq(error.text, "job.yaml:6:9: c: keyed state beside its source; expected a "
				     "hash edge in front, or parallelism 1");
}

Test(job_file, what_a_plugin_declares_is_not_trusted)
{
	expect_refused(12, "      - {uid: sink, plugin: plugin_job.so, type: broken}",
			"job.yaml:12:9: sink: broken declares what cannot be: too many states or "
			"counters");
}

Test(job_file, relative_plugins_are_found_beside_the_file)
{
	char path[] = PLUGIN_DIR "/job_file_test_XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, job_with(0, ""), strlen(job_with(0, ""))), (ssize_t)strlen(text));
	close(fd);
	cr_assert_eq(chdir("/"), 0);
	int rc = job_spec_load(&spec, path, NULL, 0, config, &error);
	unlink(path);
	cr_assert_eq(rc, 0, "%s", error.text);
	cr_expect_str_eq(spec->source.plugin_dir, PLUGIN_DIR);
	cr_expect_eq(job_spec_load(&spec, "/no/job.yaml", NULL, 0, config, &error), -ENOENT);
	cr_expect_str_eq(error.text, "/no/job.yaml: No such file or directory");
}

Test(job_file, any_cut_and_any_changed_byte_is_read_or_refused)
{
	char whole[8192];

	strcpy(whole, job_with(0, ""));
	size_t size = strlen(whole);
	for (size_t i = 0; i < size; i++) {
		char *cut = strndup(whole, i);

		parse(cut, NULL, 0);
		free(cut);
		char *changed = strdup(whole);
		changed[i] = "[]{}:-,\n'"[i % 9];
		parse(changed, NULL, 0);
		free(changed);
	}
}
