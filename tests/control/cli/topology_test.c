#include "control/cli/topology_picture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Two nodes, a physical core of two threads on the first; core 3 is not ours. */
static const char facts_text[] =
		"{'host': 'h<1>', 'kernel': '6.1', 'cores': {'list': ["
		" {'os': 3, 'logical': 3, 'physical': 2, 'node': 1, 'allowed': false},"
		" {'os': 2, 'logical': 1, 'physical': 0, 'node': 0, 'allowed': true},"
		" {'os': 0, 'logical': 0, 'physical': 0, 'node': 0, 'allowed': true},"
		" {'os': 1, 'logical': 2, 'physical': 1, 'node': 0, 'allowed': true}]},"
		" 'workers': {'cores': [1, 2], 'control': '0'},"
		" 'memory': {'total_bytes': 1073741824, 'available_bytes': 536870912},"
		" 'hugepages': [{'page_bytes': 2097152, 'total': 4, 'free': 3}],"
		" 'nics': [{'pci': '0000:03:00.0', 'driver': 'vfio-pci', 'interfaces': [],"
		"  'node': 0}, {'pci': null, 'interfaces': ['end0']}]}";

static json_t *facts;
static struct config *config;
static struct host_picture *picture;

/* Three subtasks on two workers. */
static struct job_vertex vertices[] = {
		{.uid = (char *)(uintptr_t) "in&out", .parallelism = 1},
		{.uid = (char *)(uintptr_t) "count", .parallelism = 3},
};
static const struct job_spec job = {.vertices = vertices, .vertex_count = 2};

static void begin(void)
{
	char *text = strdup(facts_text);

	for (char *c = text; *c != '\0'; c++) {
		if (*c == '\'')
			*c = '"';
	}
	facts = json_loads(text, 0, NULL);
	free(text);
	cr_assert_not_null(facts);
	cr_assert_eq(config_create(&config), 0);
	picture = calloc(1, sizeof(*picture));
}

static void end(void)
{
	free(picture);
	config_destroy(config);
	json_decref(facts);
}

TestSuite(topology, .init = begin, .fini = end);

static void set(const char *option)
{
	struct config_error error;

	cr_assert_eq(config_set_option(config, option, &error), 0, "%s", error.text);
}

static char *print(bool (*how)(const struct host_picture *picture, FILE *out))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert(how(picture, out));
	fclose(out);
	return text;
}

Test(topology, cores_stand_by_node_and_physical_core_with_what_they_do)
{
	static const int64_t order[] = {0, 2, 1, 3};
	static const char *const roles[] = {"control", "worker 1", "worker 0", "not allowed"};
	char role[PICTURE_TEXT_BYTES];

	picture_take(picture, facts, config, NULL);
	cr_assert_eq(picture->core_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		picture_role(&picture->cores[i], role);
		cr_expect_eq(picture->cores[i].os_index, order[i]);
		cr_expect_str_eq(role, roles[i]);
	}
}

Test(topology, subtask_i_of_every_vertex_is_on_worker_i_counted_round)
{
	char task[PICTURE_TEXT_BYTES];

	picture_take(picture, facts, config, &job);
	cr_assert(picture_task(picture, 0, 0, task));
	cr_expect_str_eq(task, "in&out (1/1)");
	cr_assert(picture_task(picture, 0, 2, task));
	cr_expect_str_eq(task, "count (3/3)");
	cr_expect_not(picture_task(picture, 0, 3, task));
	cr_assert(picture_task(picture, 1, 0, task));
	cr_expect_str_eq(task, "count (2/3)");
	cr_expect_not(picture_task(picture, 1, 1, task));
	cr_expect_not(picture_task(picture, -1, 0, task));
}

Test(topology, a_job_spread_over_several_taskmanagers_is_not_drawn_on_one)
{
	char task[PICTURE_TEXT_BYTES];

	set("weir.job.taskmanagers=2");
	picture_take(picture, facts, config, &job);
	cr_expect_not(picture_task(picture, 0, 0, task));
	char *text = print(picture_print_table);
	cr_expect(strstr(text, "spread over several TaskManagers") != NULL);
	free(text);
}

Test(topology, the_link_port_is_marked_and_a_virtual_one_is_added)
{
	set("weir.link.port=03:00.0");
	picture_take(picture, facts, config, NULL);
	cr_assert_eq(picture->port_count, 1);
	cr_expect(picture->ports[0].is_link);
	set("weir.link.port=net_memif0");
	picture_take(picture, facts, config, NULL);
	cr_assert_eq(picture->port_count, 2);
	cr_expect_not(picture->ports[0].is_link);
	cr_expect_str_eq(picture->ports[1].name, "net_memif0");
	cr_expect(picture->ports[1].is_link);
}

/* A source and a sink at one port, and a transform with a parameter of that name at another. */
static const struct weir_param port_params[] = {{.name = "rate"}, {.name = "port"}};
static const struct weir_operator in_table = {
		.role = WEIR_SOURCE, .params = port_params, .param_count = 2};
static const struct weir_operator out_table = {
		.role = WEIR_SINK, .params = port_params, .param_count = 2};
static struct weir_value at_nic[] = {{.text = "net_tap0"}, {.text = "0000:03:00.0"}};
static struct weir_value elsewhere[] = {{.text = "0000:03:00.0"}, {.text = "6125"}};
static struct job_operator in_operators[] = {
		{.table = &in_table, .values = at_nic}, {.table = &out_table, .values = elsewhere}};
static struct job_operator out_operators[] = {{.table = &out_table, .values = at_nic}};
static struct job_vertex port_vertices[] = {
		{.uid = "ingest", .parallelism = 1, .operator_count = 2, .operators = in_operators},
		{.uid = "o<u>t", .parallelism = 1, .operator_count = 1, .operators = out_operators},
};
static const struct job_spec port_job = {.vertices = port_vertices, .vertex_count = 2};

Test(topology, packet_ports_are_marked_with_the_tasks_that_use_them)
{
	char use[PICTURE_USE_BYTES];

	set("weir.nic.ports=net_tap0;03:00.0");
	picture_take(picture, facts, config, &port_job);
	cr_assert_eq(picture->port_count, 2);
	picture_use(picture, &picture->ports[0], use);
	cr_expect_str_eq(use, "packets to ingest, from o<u>t");
	picture_use(picture, &picture->ports[1], use);
	cr_expect_str_eq(use, "packets");
	char *text = print(picture_print_table);
	cr_expect(strstr(text, "packets to ingest, from o<u>t\n") != NULL, "%s", text);
	free(text);
	text = print(picture_print_svg);
	cr_expect(strstr(text, "packets to ingest, from o&#60;u&#62;t<") != NULL, "%s", text);
	free(text);
	set("weir.link.port=net_tap0");
	set("weir.job.taskmanagers=2");
	picture_take(picture, facts, config, &port_job);
	picture_use(picture, &picture->ports[0], use);
	cr_expect_str_eq(use, "packets", "no tasks are drawn of a job that is spread");
	picture_use(picture, &picture->ports[1], use);
	cr_expect_str_eq(use, "link to other TaskManagers; packets");
}

Test(topology, a_port_that_weir_leaves_alone_has_no_use)
{
	char use[PICTURE_USE_BYTES];

	picture_take(picture, facts, config, &port_job);
	cr_assert_eq(picture->port_count, 1);
	picture_use(picture, &picture->ports[0], use);
	cr_expect_str_eq(use, "");
}

Test(topology, more_ports_than_there_is_room_for_are_left_out)
{
	char ports[2048] = "weir.nic.ports=net_tap0";
	size_t used = strlen(ports);

	for (uint32_t i = 1; i < PICTURE_PORTS_MAX; i++)
		used += (size_t)snprintf(ports + used, sizeof(ports) - used, ";net_tap%u", i);
	set(ports);
	set("weir.link.port=net_memif0");
	picture_take(picture, facts, config, &port_job);
	cr_expect_eq(picture->port_count, PICTURE_PORTS_MAX);
	free(print(picture_print_svg));
}

Test(topology, the_table_has_every_core_with_its_tasks)
{
	picture_take(picture, facts, config, &job);
	char *text = print(picture_print_table);

	cr_expect(strstr(text, "0     1         1     L#2      worker 0            "
			       "in&out (1/1), count (1/3), count (3/3)\n") != NULL,
			"%s", text);
	cr_expect(strstr(text, " \n") == NULL, "padding behind a row: %s", text);
	free(text);
}

Test(topology, the_drawing_lets_no_name_out_of_its_text)
{
	picture_take(picture, facts, config, &job);
	char *text = print(picture_print_svg);

	cr_expect(strstr(text, "h&#60;1&#62;") != NULL);
	cr_expect(strstr(text, "in&#38;out (1/1)") != NULL);
	cr_expect(strstr(text, "h<1>") == NULL);
	cr_expect(strstr(text, "</svg>\n") != NULL);
	free(text);
}

Test(topology, json_has_the_same)
{
	set("weir.nic.ports=0000:03:00.0");
	picture_take(picture, facts, config, &job);
	char *text = print(picture_print_json);
	json_t *all = json_loads(text, 0, NULL);

	cr_assert_not_null(all);
	json_t *core = json_array_get(json_object_get(all, "cores"), 2);
	cr_expect_eq(json_integer_value(json_object_get(core, "worker")), 0);
	cr_expect_eq(json_array_size(json_object_get(core, "tasks")), 3);
	json_t *port = json_array_get(json_object_get(all, "ports"), 0);
	cr_expect(json_is_true(json_object_get(port, "packets")));
	cr_expect_str_eq(json_string_value(json_object_get(port, "use")), "packets");
	json_decref(all);
	free(text);
}

Test(topology, facts_of_a_foreign_form_do_not_crash)
{
	static const char *const odd[] = {"{}", "[]",
			"{\"cores\": {\"list\": [1, {}, null]}, \"nics\": [1, {\"pci\": 3}]}",
			"{\"workers\": {\"cores\": [\"a\"], \"control\": \"x\"}}",
			"{\"hugepages\": [2]}"};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *strange = json_loads(odd[i], 0, NULL);

		picture_take(picture, strange, config, &job);
		free(print(picture_print_table));
		free(print(picture_print_svg));
		free(print(picture_print_json));
		json_decref(strange);
	}
}
