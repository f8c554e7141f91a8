#include "tests/support/rest_world.h"

#include "control/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"
#include "control/rest/rest.h"
#include "tests/support/flink_sample.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char rest_world_job[] = "name: paced\n"
			       "vertices:\n"
			       "  - uid: make\n"
			       "    parallelism: 2\n"
			       "    operators: [{uid: generator, type: generator}]\n"
			       "  - uid: counting\n"
			       "    parallelism: 2\n"
			       "    operators:\n"
			       "      - {uid: count, type: keyed-count, keys-max: 1024}\n"
			       "      - {uid: digest, type: digest-sink}\n"
			       "edges:\n"
			       "  - {from: make, to: counting, partition: hash}\n";

static char directory[] = "/tmp/weir-rest-XXXXXX";
static struct config *config;
struct rest_world rest_world;

static void set(const char *format, ...)
{
	char assignment[256];
	struct config_error error;
	va_list args;

	va_start(args, format);
	vsnprintf(assignment, sizeof(assignment), format, args);
	va_end(args);
	cr_assert_eq(config_set_option(config, assignment, &error), 0, "%s", error.text);
}

void rest_world_open(void)
{
	char text[COORDINATOR_TEXT_BYTES];

	cr_assert_eq(loop_create(&rest_world.loop), 0);
	cr_assert_eq(coordinator_create(&rest_world.coordinator, rest_world.loop, config, text), 0,
			"%s", text);
}

void rest_world_close(void)
{
	coordinator_destroy(rest_world.coordinator);
	loop_destroy(rest_world.loop);
}

void rest_world_init(void)
{
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(config_create(&config), 0);
	set("high-availability.storageDir=%s/ha", directory);
	set("execution.checkpointing.dir=%s/checkpoints", directory);
	set("jobmanager.rpc.port=0");
	rest_world_open();
}

void rest_world_fini(void)
{
	char command[128];

	rest_world_close();
	config_destroy(config);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

/* ---- asking ---- */

json_t *rest_ask(const char *method, const char *target, const char *body, int status)
{
	char path[256];
	const char *query = strchr(target, '?');
	struct http_response response = {0};
	json_error_t at;

	snprintf(path, sizeof(path), "%s", target);
	path[strcspn(path, "?")] = 0;
	rest_handle(rest_world.coordinator,
			&(struct http_request){method, path, query == NULL ? "" : query + 1,
					body == NULL ? "" : body, body == NULL ? 0 : strlen(body)},
			&response);
	cr_assert_eq(response.status, status, "%s %s: %d %s", method, target, response.status,
			response.body);
	json_t *json = json_loads(response.body, 0, &at);
	cr_assert_not_null(json, "%s %s: %s", method, target, response.body);
	free(response.body);
	return json;
}

const char *rest_text_at(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text == NULL ? "(none)" : text;
}

void rest_refused(const char *method, const char *target, const char *body, int status,
		const char *part)
{
	json_t *json = rest_ask(method, target, body, status);
	const char *text = json_string_value(json_array_get(json_object_get(json, "errors"), 0));

	cr_assert_not_null(text);
	cr_assert_not_null(strstr(text, part), "%s: %s", part, text);
	json_decref(json);
}

char *rest_submission(const char *text, const char *set_text)
{
	json_t *body = json_pack("{s:s, s:s, s:s, s:[s], s:s, s:b}", "file", "paced.yaml", "job",
			text, "plugin_dir", "/", "sets", set_text, "restore", "none",
			"allow_rewind", 0);
	char *dumped = json_dumps(body, 0);

	cr_assert_not_null(dumped);
	json_decref(body);
	return dumped;
}

struct job_master *rest_submit(void)
{
	char *body = rest_submission(rest_world_job, "generator.keys=512");
	json_t *json = rest_ask("POST", "/v1/jobs", body, 202);
	struct job_id id;

	free(body);
	cr_assert(id128_parse(rest_text_at(json, "jobid"), &id.id));
	json_decref(json);
	struct job_master *jm = coordinator_find_job(rest_world.coordinator, id);
	cr_assert_not_null(jm);
	return jm;
}

/* ---- the shape of answers ---- */

void rest_as_flink(const char *sample, const char *target)
{
	json_t *recorded = flink_sample_load(TEST_DATA "/flink-rest", sample);
	json_t *got = rest_ask("GET", target, NULL,
			(int)json_integer_value(json_object_get(recorded, "status")));

	flink_sample_compare(json_object_get(recorded, "response"), got, target);
	json_decref(got);
	json_decref(recorded);
}
