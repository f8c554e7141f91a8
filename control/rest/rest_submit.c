/* rest_submit: POST /jobs. */

#include "control/config/job_file.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <string.h>

enum { SETS_MAX = 256 };

struct submission {
	struct job_submission job;
	const char *sets[SETS_MAX];
};

static bool check_keys(struct rest_call *call, json_t *body)
{
	static const char *const known[] = {
			"file", "job", "plugin_dir", "sets", "restore", "allow_rewind"};
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
					"sets, restore, allow_rewind",
					key);
			return false;
		}
	}
	return true;
}

static bool read_sets(struct rest_call *call, const json_t *body, struct submission *s)
{
	const json_t *sets = json_object_get(body, "sets"), *item;
	size_t i;

	if (sets == NULL || json_is_null(sets))
		return true;
	if (!json_is_array(sets) || json_array_size(sets) > SETS_MAX) {
		rest_refuse(call, 400, "\"sets\": expected an array of up to %d strings "
				       "UID.PARAM=VALUE",
				SETS_MAX);
		return false;
	}
	json_array_foreach(sets, i, item) {
		s->sets[i] = json_string_value(item);
		if (s->sets[i] == NULL) {
			rest_refuse(call, 400, "\"sets\": expected a string UID.PARAM=VALUE");
			return false;
		}
	}
	s->job.overrides = s->sets;
	s->job.override_count = (uint32_t)json_array_size(sets);
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
			!read_sets(call, body, s))
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

/* The client may not have heard our answer when it asks again. */
static bool is_same(const struct job_master *jm, const struct job_submission *s)
{
	const struct job_source *source = &job_master_spec(jm)->source;

	if (strlen(s->file_text) != source->text_bytes ||
			memcmp(s->file_text, source->text, source->text_bytes) != 0 ||
			strcmp(s->plugin_dir, source->plugin_dir) != 0 ||
			s->override_count != source->set_count)
		return false;
	for (uint32_t i = 0; i < s->override_count; i++)
		if (strcmp(s->overrides[i], source->sets[i]) != 0)
			return false;
	return true;
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

static void submit(struct rest_call *call, const struct job_submission *s)
{
	struct config_error error = {""};
	char text[ID128_TEXT_BYTES];
	struct job_id id;
	int rc = coordinator_submit(call->coordinator, s, &id, &error);

	if (rc == -EEXIST) {
		const struct job_master *other = coordinator_find_job(call->coordinator, id);

		rc = other != NULL && is_same(other, s) ? 0 : rc;
	}
	if (rc != 0) {
		rest_refuse(call, status_of(rc), "%s",
				error.text[0] != 0 ? error.text : strerror(-rc));
		return;
	}
	id128_print(id.id, text);
	rest_answer(call, 202, json_pack("{s:s}", "jobid", text));
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
