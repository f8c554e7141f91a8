#include "control/rest/rest.h"

#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/coordinator.h"
#include "control/net/http_server.h"
#include "tests/support/rest_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rest_metrics, .init = rest_world_init, .fini = rest_world_fini);

/* The value of a metric in an answer to ?get=, "(none)" when it is not there. */
static const char *value_of(const json_t *answer, const char *id)
{
	const json_t *m;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)answer, i, m) {
		if (strcmp(rest_text_at(m, "id"), id) == 0)
			return rest_text_at(m, "value");
	}
	return "(none)";
}

/* Two readings of the second subtask of `make`, two seconds apart. */
static void take_numbers(struct job_master *jm)
{
	struct execution *e =
			(struct execution *)(uintptr_t)job_master_execution(jm, 0, 1);
	struct execution_numbers n = {.records_out = 1000,
			.bytes_out = 64000,
			.busy_ns = 500000000,
			.watermark = 7,
			.read_at_ns = 5000000000};

	execution_take_numbers(e, &n);
	n.records_out = 3000;
	n.busy_ns = 2000000000;
	n.read_at_ns = 7000000000;
	execution_take_numbers(e, &n);
}

/* ---- in Flink's words ---- */

Test(rest_metrics, have_the_shape_of_flink)
{
	rest_submit();
	rest_as_flink("GET_jobs_metrics", "/jobs/metrics?get=uptime,lastCheckpointDuration");
	rest_as_flink("GET_jobs_JOB_vertices_VERTEX_backpressure",
			"/jobs/paced/vertices/make/backpressure");
	rest_as_flink("GET_jobs_JOB_vertices_VERTEX_watermarks",
			"/jobs/paced/vertices/make/watermarks");
}

Test(rest_metrics, of_a_job_are_named_without_values_until_some_are_asked_for)
{
	rest_submit();
	json_t *names = rest_ask("GET", "/jobs/paced/metrics", NULL, 200);
	cr_assert_gt(json_array_size(names), 20);
	cr_assert_null(json_object_get(json_array_get(names, 0), "value"));
	json_decref(names);
	json_t *some = rest_ask("GET",
			"/jobs/paced/metrics?get=lastCheckpointDuration,"
			"lastCheckpointExternalPath,numberOfFailedCheckpoints,nothing",
			NULL, 200);
	cr_assert_eq(json_array_size(some), 3);
	/* 25.2: -1 before the first. */
	cr_assert_str_eq(value_of(some, "lastCheckpointDuration"), "-1");
	cr_assert_str_eq(value_of(some, "lastCheckpointExternalPath"), "n/a");
	cr_assert_str_eq(value_of(some, "numberOfFailedCheckpoints"), "0");
	json_decref(some);
}

Test(rest_metrics, count_a_failure_that_never_was_in_progress)
{
	struct job_master *jm = rest_submit();

	checkpoint_stats_on_failed_unborn(job_master_checkpoints(jm));
	json_t *some = rest_ask("GET",
			"/jobs/paced/metrics?get=numberOfFailedCheckpoints,"
			"totalNumberOfCheckpoints",
			NULL, 200);
	cr_assert_str_eq(value_of(some, "numberOfFailedCheckpoints"), "1");
	cr_assert_str_eq(value_of(some, "totalNumberOfCheckpoints"), "1");
	json_decref(some);
}

Test(rest_metrics, of_a_task_have_totals_and_rates)
{
	take_numbers(rest_submit());
	json_t *some = rest_ask("GET",
			"/jobs/paced/vertices/make/metrics?get=1.numRecordsOut,"
			"1.numRecordsOutPerSecond,1.busyTimeMsPerSecond,1.accumulateBusyTimeMs,"
			"1.currentInputWatermark,0.numRecordsOut,0.numRecordsOutPerSecond,"
			"1.generator.numRecordsOut",
			NULL, 200);

	cr_assert_str_eq(value_of(some, "1.numRecordsOut"), "3000");
	cr_assert_float_eq(atof(value_of(some, "1.numRecordsOutPerSecond")), 1000, 1e-9);
	cr_assert_float_eq(atof(value_of(some, "1.busyTimeMsPerSecond")), 750, 1e-9);
	cr_assert_str_eq(value_of(some, "1.accumulateBusyTimeMs"), "2000");
	cr_assert_str_eq(value_of(some, "1.currentInputWatermark"), "7");
	cr_assert_str_eq(value_of(some, "0.numRecordsOut"), "0");
	cr_assert_float_eq(atof(value_of(some, "0.numRecordsOutPerSecond")), 0, 1e-9);
	cr_assert_str_eq(value_of(some, "1.generator.numRecordsOut"), "0");
	json_decref(some);
	/* The same of one subtask, without its number. */
	some = rest_ask("GET", "/jobs/paced/vertices/make/subtasks/1/metrics?get=numRecordsOut",
			NULL, 200);
	cr_assert_str_eq(value_of(some, "numRecordsOut"), "3000");
	json_decref(some);
}

Test(rest_metrics, of_subtasks_are_added_up)
{
	take_numbers(rest_submit());
	json_t *all = rest_ask("GET",
			"/jobs/paced/vertices/make/subtasks/metrics?get=numRecordsOut", NULL, 200);
	const json_t *m = json_array_get(all, 0);

	cr_assert_eq(json_array_size(all), 1);
	cr_assert_float_eq(json_number_value(json_object_get(m, "min")), 0, 1e-9);
	cr_assert_float_eq(json_number_value(json_object_get(m, "max")), 3000, 1e-9);
	cr_assert_float_eq(json_number_value(json_object_get(m, "sum")), 3000, 1e-9);
	cr_assert_float_eq(json_number_value(json_object_get(m, "avg")), 1500, 1e-9);
	cr_assert_float_eq(json_number_value(json_object_get(m, "skew")), 100, 1e-9);
	json_decref(all);
}

Test(rest_metrics, are_refused_for_what_is_not_here)
{
	rest_submit();
	rest_refused("GET", "/jobs/paced/vertices/make/subtasks/2/metrics", NULL, 404, "subtask 2");
	rest_refused("GET", "/jobs/paced/vertices/make/subtasks/x/metrics", NULL, 400,
			"subtaskindex");
	rest_refused("GET", "/taskmanagers/tm-9/metrics", NULL, 404, "tm-9");
	rest_refused("GET", "/jobs/other/metrics", NULL, 400, "other");
}

Test(rest_metrics, of_a_coordinator_without_taskmanagers_are_zeros)
{
	json_t *some = rest_ask("GET",
			"/jobmanager/metrics?get=numRegisteredTaskManagers,taskSlotsTotal", NULL,
			200);

	cr_assert_str_eq(value_of(some, "numRegisteredTaskManagers"), "0");
	cr_assert_str_eq(value_of(some, "taskSlotsTotal"), "0");
	json_decref(some);
}

/* ---- Prometheus ---- */

static char *page_of(const char *query)
{
	struct http_response response = {0};

	rest_handle(rest_world.coordinator,
			&(struct http_request){"GET", "/metrics", query, "", 0}, &response);
	cr_assert_eq(response.status, 200);
	cr_assert_not_null(strstr(response.content_type, "version=0.0.4"));
	return response.body;
}

static char *page(void)
{
	return page_of("");
}

/* What Flink's own reporter names. */
static char *flink_names(void)
{
	FILE *file = fopen(TEST_DATA "/flink-rest/prometheus-names.txt", "r");
	char *text = calloc(1, 1 << 17);

	cr_assert_not_null(file);
	cr_assert_not_null(text);
	text[0] = '\n';
	cr_assert_gt(fread(text + 1, 1, (1 << 17) - 2, file), 0);
	fclose(file);
	return text;
}

Test(rest_metrics, on_the_page_carry_the_names_and_labels_of_flinks_reporter)
{
	take_numbers(rest_submit());
	char *text = page(), *names = flink_names(), *rest = text, wanted[256];
	uint32_t count = 0;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		char *brace = strchr(line, '{');

		if (line[0] == '#' || brace == NULL || strncmp(line, "flink_", 6) != 0)
			continue;
		snprintf(wanted, sizeof(wanted), "\n%.*s {", (int)(brace - line), line);
		cr_assert_not_null(strstr(names, wanted), "Flink has no %s", wanted + 1);
		count++;
	}
	cr_assert_gt(count, 80);
	free(text);
	free(names);
}

Test(rest_metrics, on_the_page_stand_in_families_with_one_type_line_each)
{
	take_numbers(rest_submit());
	char *text = page(), *rest = text, family[256] = "", before[64][256];
	uint32_t families = 0;

	for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != 0;) {
		if (sscanf(line, "# TYPE %255s gauge", family) == 1) {
			for (uint32_t i = 0; i < families && i < 64; i++)
				cr_assert_str_neq(before[i], family);
			if (families < 64)
				snprintf(before[families], 256, "%s", family);
			families++;
			continue;
		}
		cr_assert_eq(strncmp(line, family, strlen(family)), 0, "%s in %s", line, family);
		cr_assert_eq(line[strlen(family)], '{', "%s", line);
		/* Nothing but a number behind the labels. */
		char *value = strrchr(line, ' '), *end;
		cr_assert_not_null(value);
		(void)strtod(value + 1, &end);
		cr_assert_eq(*end, 0, "%s", line);
	}
	cr_assert_gt(families, 50);
	free(text);
}

Test(rest_metrics, on_the_page_tell_of_each_subtask_and_operator)
{
	take_numbers(rest_submit());
	char *text = page();

	cr_assert_not_null(strstr(text, "# TYPE flink_taskmanager_job_task_numRecordsOut gauge\n"));
	cr_assert_not_null(strstr(text, "task_name=\"make\",tm_id=\"\"} 3000\n"));
	cr_assert_not_null(strstr(text, "subtask_index=\"1\""));
	cr_assert_not_null(strstr(text, "operator_name=\"generator\""));
	cr_assert_not_null(strstr(text, "weir_jobmanager_job_checkpointsOverdue{"));
	cr_assert_not_null(strstr(text, "job_name=\"paced\"} 0\n"));
	free(text);
}

Test(rest_metrics, on_the_page_leave_tasks_out_when_asked_to)
{
	rest_submit();
	char *text = page_of("tasks=off");

	cr_assert_null(strstr(text, "_job_task_"));
	cr_assert_not_null(strstr(text, "flink_jobmanager_job_numRestarts{"));
	free(text);
}
