#include "control/config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct config *c;
static struct config_error error;

static void begin(void)
{
	cr_assert_eq(config_create(&c), 0);
}

static void end(void)
{
	config_destroy(c);
}

TestSuite(config, .init = begin, .fini = end);

static int load(const char *text)
{
	error.text[0] = '\0';
	return config_load_text(c, "host.yaml", text, strlen(text), &error);
}

static void expect_refused(const char *text, const char *message)
{
	cr_expect_eq(load(text), -EINVAL, "%s", text);
	cr_expect_str_eq(error.text, message);
}

static void expect_option_refused(const char *option, const char *message)
{
	cr_expect_eq(config_set_option(c, option, &error), -EINVAL, "%s", option);
	cr_expect_str_eq(error.text, message);
}

/* DESIGN: product defaults differ from Flink's here. */
Test(config, a_refusal_is_one_line_whatever_it_quotes)
{
	expect_refused("execution.checkpointing.interval: |\n  1 s\n",
			"host.yaml:2:1: execution.checkpointing.interval: \"1 s \" is not a "
			"duration; expected a whole number and ns, us, ms, s, min, h or d, such as "
			"\"10 s\"");
}

Test(config, presets_are_those_of_the_product)
{
	cr_expect(!config_is_set(c, "execution.checkpointing.interval"));
	cr_expect_eq(config_duration_ns(c, "execution.checkpointing.interval"), 0);
	cr_expect_eq(config_int(c, "execution.checkpointing.num-retained"), 3);
	cr_expect_eq(config_int(c, "execution.checkpointing.tolerable-failed-checkpoints"),
			INT32_MAX);
	cr_expect(config_is_choice(c, "execution.checkpointing.externalized-checkpoint-retention",
			"RETAIN_ON_CANCELLATION"));
	cr_expect_eq(config_duration_ns(c, "heartbeat.interval"), 100000000);
	cr_expect_eq(config_duration_ns(c, "heartbeat.timeout"), 500000000);
	cr_expect_str_eq(config_text(c, "execution.checkpointing.dir"), "weir-state/checkpoints");
	cr_expect_str_eq(config_text(c, "high-availability.storageDir"), "weir-state/ha");
	cr_expect_eq(config_size(c, "taskmanager.memory.segment-size"), 32768);
	cr_expect(config_bool(c, "weir.restart.first-at-once"));
	cr_expect_float_eq(config_real(c, "restart-strategy.exponential-delay.backoff-multiplier"),
			1.5, 1e-12);
	cr_expect_eq(config_check(c, &error), 0, "%s", error.text);
}

Test(config, nested_and_dotted_keys_mean_the_same)
{
	cr_assert_eq(load("execution: {checkpointing: {interval: 2 s}}\n"
			  "execution.checkpointing:\n  timeout: 3 s\n"),
			0, "%s", error.text);
	cr_expect_eq(config_duration_ns(c, "execution.checkpointing.interval"),
			INT64_C(2000000000));
	cr_expect_eq(config_duration_ns(c, "execution.checkpointing.timeout"), INT64_C(3000000000));
}

Test(config, old_names_are_still_read)
{
	cr_assert_eq(load("state.checkpoints.dir: file:///var/ck\nrestart-strategy: none\n"), 0,
			"%s", error.text);
	cr_expect_str_eq(config_text(c, "execution.checkpointing.dir"), "/var/ck");
	cr_expect(config_is_choice(c, "restart-strategy.type", "none"));
}

Test(config, an_option_outranks_the_job_file_and_that_the_config_file)
{
	cr_assert_eq(config_set_option(c, "heartbeat.timeout=7 s", &error), 0);
	cr_assert_eq(load("heartbeat.timeout: 3 s\nparallelism.default: 4\n"), 0);
	cr_expect_eq(config_duration_ns(c, "heartbeat.timeout"), INT64_C(7000000000));
	cr_expect_eq(config_origin_of(c, "heartbeat.timeout"), CONFIG_OPTION);
	cr_expect_eq(config_origin_of(c, "parallelism.default"), CONFIG_FILE);
	cr_expect_eq(config_origin_of(c, "heartbeat.interval"), CONFIG_PRESET);
	cr_assert_eq(config_set_option(c, "heartbeat.timeout=8 s", &error), 0);
	cr_expect_eq(config_duration_ns(c, "heartbeat.timeout"), INT64_C(8000000000));
}

Test(config, an_unknown_key_is_refused_with_the_nearest_known_one)
{
	expect_refused("execution.checkpointing.intervall: 1 s\n",
			"host.yaml:1:1: execution.checkpointing.intervall: unknown key; did you "
			"mean "
			"execution.checkpointing.interval?");
	expect_refused("execution:\n  chekpointing:\n    mode: EXACTLY_ONCE\n",
			"host.yaml:3:5: execution.chekpointing.mode: unknown key; did you mean "
			"execution.checkpointing.mode?");
	expect_refused("colour: red\n", "host.yaml:1:1: colour: unknown key; expected one of those "
					"that weir config "
					"lists");
}

Test(config, a_bad_value_is_refused_where_it_stands)
{
	expect_refused("# host\nheartbeat.interval:   soon\n",
			"host.yaml:2:23: heartbeat.interval: \"soon\" is not a duration; expected "
			"a whole "
			"number and ns, us, ms, s, min, h or d, such as \"10 s\"");
	expect_refused("taskmanager.memory.segment-size: 1 mb\n",
			"host.yaml:1:34: taskmanager.memory.segment-size: \"1 mb\" is too large; "
			"expected "
			"256 b to 56 kb");
	expect_refused("weir.idle: sleep\n", "host.yaml:1:12: weir.idle: \"sleep\" is not known; "
					     "expected one of backoff|spin");
	expect_refused("pipeline.max-parallelism: 96\n",
			"host.yaml:1:27: pipeline.max-parallelism: \"96\" does not fit; expected a "
			"power "
			"of two");
	expect_refused("execution.checkpointing.interval: 10 us\n",
			"host.yaml:1:35: execution.checkpointing.interval: \"10 us\" does not fit; "
			"expected 0 (off), or 1 ms or more");
	expect_refused("weir.cores: 3-1\n", "host.yaml:1:13: weir.cores: \"3-1\" does not fit; "
					    "expected auto:N, or distinct "
					    "cores such as 2,3-5 or L#0-3, at most 64");
	expect_refused("rest.bind-port: 8099-8081\n",
			"host.yaml:1:17: rest.bind-port: \"8099-8081\" does not fit; expected a "
			"port such "
			"as 8081, a range such as 8081-8099, or 0 for any");
	expect_refused("execution.checkpointing.dir: s3://b/c\n",
			"host.yaml:1:30: execution.checkpointing.dir: \"s3://b/c\" does not fit; "
			"expected "
			"a local directory");
	expect_refused("weir.idle: [spin]\n",
			"host.yaml:1:12: weir.idle: a list; expected one value");
}

Test(config, a_key_given_twice_is_refused_under_any_of_its_names)
{
	expect_refused("heartbeat: {interval: 1 s}\nrest.port: 1\nheartbeat.interval: 2 s\n",
			"host.yaml:3:1: heartbeat.interval: given twice, first at line 1; expected "
			"once");
	expect_refused("execution.checkpointing.dir: a\nstate.checkpoints.dir: b\n",
			"host.yaml:2:1: state.checkpoints.dir: given twice, first at line 1; "
			"expected "
			"once");
}

Test(config, what_this_version_cannot_do_is_refused_only_when_asked_for)
{
	cr_expect_eq(load("execution.checkpointing.mode: at_least_once\n"
			  "execution.checkpointing.unaligned: false\n"
			  "execution.checkpointing.file-merging.max-space-amplification: 2\n"
			  "execution.checkpointing.write-buffer-size: 4096\n"
			  "execution.checkpointing.unaligned.forced: true\n"
			  "weir.nic.ports: [0000:01:00.0, net_tap0]\n"),
			0, "%s", error.text);
	expect_refused("execution.checkpointing.incremental: true\n",
			"host.yaml:1:38: execution.checkpointing.incremental: \"true\" is not "
			"supported yet; expected \"false\"");
	expect_refused("weir.nic.ports: eth0\n", "host.yaml:1:17: weir.nic.ports: \"eth0\" does "
						 "not fit; expected PCI addresses "
						 "such as 0000:01:00.0 or devices such as "
						 "net_tap0, with semicolons between");
}

Test(config, words_for_eal_that_weir_writes_itself_are_refused)
{
	static const char *const bad[] = {"-l 0-3", "--lcores=1", "--lco 1", "-c f", "-m512",
			"-m 512", "--no-pci --file-prefix x", "--no-huge"};
	struct config_list list;

	cr_assert_eq(load("weir.eal.args: [--no-pci, --vdev=net_null0, -n, 4]\n"), 0, "%s",
			error.text);
	config_list(c, "weir.eal.args", &list);
	cr_assert_eq(list.count, 4);
	cr_expect_str_eq(list.items[0], "--no-pci");
	cr_expect_str_eq(list.items[3], "4");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char option[64];

		snprintf(option, sizeof(option), "weir.eal.args=%s", bad[i]);
		cr_expect_eq(config_set_option(c, option, &error), -EINVAL, "%s", option);
	}
}

Test(config, options_are_refused_with_their_own_place)
{
	expect_option_refused(
			"rest.prt=80", "-D option: rest.prt: unknown key; did you mean rest.port?");
	expect_option_refused("rest.port=65536",
			"-D option: rest.port: \"65536\" is too large; expected 0 to 65535");
	expect_option_refused("rest.port", "-D option: \"rest.port\"; expected KEY=VALUE");
	expect_option_refused("=1", "-D option: \"=1\"; expected KEY=VALUE");
}

Test(config, limits_between_keys_are_checked_at_the_end)
{
	cr_assert_eq(load("heartbeat.timeout: 100 ms\n"), 0);
	cr_expect_eq(config_check(c, &error), -EINVAL);
	cr_expect_str_eq(error.text, "host.yaml:1:20: heartbeat.timeout: \"100 ms\" with "
				     "heartbeat.interval \"100 ms\"; expected it to be longer");
}

Test(config, port_ranges_have_two_ends)
{
	uint16_t first, last;

	config_ports(c, "rest.bind-port", &first, &last);
	cr_expect_eq(first, 8081);
	cr_expect_eq(last, 8099);
	cr_assert_eq(config_set_option(c, "rest.bind-port=0", &error), 0);
	config_ports(c, "rest.bind-port", &first, &last);
	cr_expect_eq(first, 0);
	cr_expect_eq(last, 0);
}

Test(config, arguments_for_a_child_give_the_same_config)
{
	struct config *child;
	uint32_t count;

	cr_assert_eq(load("weir.eal.args: --no-pci -n 4\nheartbeat.timeout: 3 s\n"), 0);
	char **args = config_to_args(c, &count);
	cr_assert_eq(count, 4);
	cr_assert_null(args[4]);
	cr_assert_eq(config_create(&child), 0);
	for (uint32_t i = 0; i < count; i += 2) {
		cr_expect_str_eq(args[i], "-D");
		cr_expect_eq(config_set_option(child, args[i + 1], &error), 0, "%s", error.text);
	}
	cr_expect_str_eq(config_text(child, "weir.eal.args"), "--no-pci -n 4");
	cr_expect_eq(config_duration_ns(child, "heartbeat.timeout"), INT64_C(3000000000));
	free(args);
	config_destroy(child);
}

Test(config, a_clone_is_its_own)
{
	struct config *copy;

	cr_assert_eq(load("rest.port: 1\n"), 0);
	cr_assert_eq(config_clone(c, &copy), 0);
	cr_assert_eq(config_set_option(c, "rest.port=2", &error), 0);
	cr_expect_eq(config_int(copy, "rest.port"), 1);
	cr_expect_eq(config_origin_of(copy, "rest.port"), CONFIG_FILE);
	config_destroy(copy);
}

Test(config, all_keys_are_printed_and_the_json_reads_back)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(load("rest.port: 1\n"), 0);
	cr_assert(config_print(c, out, true));
	fclose(out);
	json_t *all = json_loads(text, 0, NULL);
	cr_assert_not_null(all);
	cr_expect_eq(json_object_size(all), config_keys_count());
	json_t *port = json_object_get(all, "rest.port");
	cr_expect_str_eq(json_string_value(json_object_get(port, "value")), "1");
	cr_expect_str_eq(json_string_value(json_object_get(port, "place")), "host.yaml:1:12");
	json_decref(all);
	free(text);
}

Test(config, the_table_of_keys_is_one_json_object_too)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert(config_print_keys(out, true));
	fclose(out);
	json_t *all = json_loads(text, 0, NULL);
	cr_assert_not_null(all);
	cr_expect_eq(json_object_size(all), config_keys_count());
	json_t *cores = json_object_get(all, "weir.cores");
	json_t *interval = json_object_get(all, "execution.checkpointing.interval");
	cr_expect_str_eq(json_string_value(json_object_get(cores, "of")), "process");
	cr_expect_str_eq(json_string_value(json_object_get(interval, "of")), "job");
	cr_expect_str_eq(json_string_value(json_object_get(interval, "expected")), "duration");
	cr_expect(json_is_null(json_object_get(interval, "preset")));
	json_decref(all);
	free(text);
}

Test(config, the_table_has_distinct_names_and_full_rows)
{
	for (uint32_t i = 0; i < config_keys_count(); i++) {
		const struct config_key *key = config_key_at(i);
		uint32_t index;

		cr_expect_not_null(key->param.help, "%s", key->param.name);
		cr_expect_neq(key->programs, 0, "%s", key->param.name);
		cr_expect(config_key_find(key->param.name, &index));
		cr_expect_eq(index, i, "%s", key->param.name);
	}
}

Test(config, any_cut_of_a_file_is_read_or_refused)
{
	static const char text[] =
			"execution: {checkpointing: {interval: 1s, mode: EXACTLY_ONCE}}\n"
			"weir.eal.args: ['--a', \"b\"]\nrest:\n  port: 1\n  bind-port: 2-3\n";

	for (size_t size = 0; size < sizeof(text); size++) {
		char *cut = malloc(size);

		memcpy(cut, text, size);
		config_load_text(c, "host.yaml", cut, size, &error);
		free(cut);
	}
}

Test(config, a_job_brings_along_what_is_said_of_jobs_and_nothing_of_processes)
{
	static const char *const of_jobs[] = {"execution.checkpointing.interval=1 s",
			"execution.checkpointing.dir=/x",
			"execution.state-recovery.claim-mode=CLAIM",
			"state.savepoints.dir=/y", "restart-strategy.type=none",
			"weir.job.taskmanagers=2", "pipeline.max-parallelism=64",
			"execution.buffer-timeout.enabled=false", "parallelism.default=2",
			"weir.restart.first-at-once=false", "weir.network.control-lane=true",
			"weir.checkpoint-watchdog.intervals=3", "state.backend.type=hashmap"};
	static const char *const of_processes[] = {"weir.cores=auto:1", "rest.port=1",
			"heartbeat.timeout=2 s", "high-availability.storageDir=/z",
			"taskmanager.memory.segment-size=4 kb", "weir.link.mtu=0",
			"jobmanager.rpc.port=1", "weir.control.scheduling=fair"};

	for (size_t i = 0; i < sizeof(of_jobs) / sizeof(*of_jobs); i++)
		cr_expect_eq(config_set_job_option(c, of_jobs[i], &error), 0, "%s", error.text);
	for (size_t i = 0; i < sizeof(of_processes) / sizeof(*of_processes); i++) {
		cr_expect_eq(config_set_job_option(c, of_processes[i], &error), -EINVAL, "%s",
				of_processes[i]);
		cr_expect_not_null(strstr(error.text, "no key of a job"), "%s", error.text);
	}
	cr_assert_eq(config_set_job_option(c, "execution.chekpoint=1", &error), -EINVAL);
	cr_assert_not_null(strstr(error.text, "unknown key"));
}
