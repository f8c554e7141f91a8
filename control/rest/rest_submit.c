/* rest_submit: POST /jobs. */

#include "control/config/job_file.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <string.h>

enum { TEXTS_MAX = 256 };

struct submission {
	struct job_submission job;
	const char *sets[TEXTS_MAX], *settings[TEXTS_MAX];
};

static bool check_keys(struct rest_call *call, json_t *body)
{
	static const char *const known[] = {"file", "job", "plugin_dir", "sets", "settings",
			"restore", "allow_rewind", "triggerId"};
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			is_known = is_known || strcmp(key, known[i]) == 0;
		if (!is_known) {
			rest_refuse(call, 400,
					"\"%.100s\" is unknown; expected file, job, plugin_dir, "
					"sets, settings, restore, allow_rewind, triggerId",
					key);
			return false;
		}
	}
	return true;
}

/* An array of strings of the form `form`; absent is empty. */
static bool read_texts(struct rest_call *call, const json_t *body, const char *key,
		const char *form, const char *texts[TEXTS_MAX])
{
	const json_t *array = json_object_get(body, key), *item;
	size_t i;

	if (array == NULL || json_is_null(array))
		return true;
	if (!json_is_array(array) || json_array_size(array) > TEXTS_MAX) {
		rest_refuse(call, 400, "\"%s\": expected an array of up to %d strings %s", key,
				TEXTS_MAX, form);
		return false;
	}
	json_array_foreach(array, i, item) {
		texts[i] = json_string_value(item);
		if (texts[i] == NULL) {
			rest_refuse(call, 400, "\"%s\": expected a string %s", key, form);
			return false;
		}
	}
	return true;
}

static bool read_arrays(struct rest_call *call, const json_t *body, struct submission *s)
{
	if (!read_texts(call, body, "sets", "UID.PARAM=VALUE", s->sets) ||
			!read_texts(call, body, "settings", "KEY=VALUE", s->settings))
		return false;
	s->job.overrides = s->sets;
	s->job.override_count = (uint32_t)json_array_size(json_object_get(body, "sets"));
	s->job.settings = s->settings;
	s->job.setting_count = (uint32_t)json_array_size(json_object_get(body, "settings"));
	return true;
}

static bool read_submission(struct rest_call *call, json_t *body, struct submission *s)
{
	s->job = (struct job_submission){
			.file_name = "job.yaml", .plugin_dir = "/", .restore = "none"};
	if (!check_keys(call, body) || !rest_read_text(call, body, "file", &s->job.file_name) ||
			!rest_read_text(call, body, "job", &s->job.file_text) ||
			!rest_read_text(call, body, "plugin_dir", &s->job.plugin_dir) ||
			!rest_read_text(call, body, "restore", &s->job.restore) ||
			!rest_read_bool(call, body, "allow_rewind", &s->job.allow_rewind) ||
			!rest_read_trigger_id(call, body, &s->job.id) ||
			!read_arrays(call, body, s))
		return false;
	if (s->job.file_text == NULL)
		rest_refuse(call, 400, "\"job\": expected the text of a job file");
	else if (s->job.plugin_dir[0] != '/')
		rest_refuse(call, 400, "\"plugin_dir\": expected an absolute path");
	else if (s->job.restore[0] == 0)
		rest_refuse(call, 400, "\"restore\": expected none, latest or the path of a "
				       "checkpoint");
	else
		return true;
	return false;
}

static int status_of(int rc)
{
	switch (rc) {
	case -EEXIST:
		return 409;
	case -EAGAIN:
		return 503;
	case -ENOMEM:
	case -EIO:
		return 500;
	default:
		return 400;
	}
}

/* Of a submission that is repeated the job may have ended before this coordinator began. */
static const char *name_of(const struct coordinator *c, struct job_id id)
{
	const struct job_master *jm = coordinator_find_job(c, id);
	const struct ended_job *e;

	if (jm != NULL)
		return job_master_name(jm);
	for (uint32_t i = 0; (e = coordinator_ended_at(c, i)) != NULL; i++)
		if (id128_is_equal(e->id.id, id.id))
			return e->record->name;
	return "";
}

static void submit(struct rest_call *call, const struct job_submission *s)
{
	struct config_error error = {""};
	char text[ID128_TEXT_BYTES];
	struct job_id id;
	int rc = coordinator_submit(call->coordinator, s, &id, &error);

	if (rc != 0) {
		rest_refuse(call, status_of(rc), "%s",
				error.text[0] != 0 ? error.text : strerror(-rc));
		return;
	}
	id128_print(id.id, text);
	rest_answer(call, 202, json_pack("{s:s, s:o}", "jobid", text, "name",
					rest_text(name_of(call->coordinator, id))));
}

void rest_post_job(struct rest_call *call)
{
	json_t *body = rest_body(call);
	struct submission s = {0};

	if (body == NULL)
		return;
	if (read_submission(call, body, &s))
		submit(call, &s.job);
	json_decref(body);
}
