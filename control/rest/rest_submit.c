/* rest_submit: what users ask of jobs: submit, cancel, stop. */

#include "control/coordinator/coordinator.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The texts of an array, which keep belonging to it.  False: it is none of texts. */
static bool take_texts(const json_t *array, const char ***texts, uint32_t *count)
{
	size_t i;
	json_t *item;

	*count = 0;
	*texts = calloc(json_array_size(array) + 1, sizeof(**texts));
	if (*texts == NULL || (array != NULL && !json_is_null(array) && !json_is_array(array)))
		return false;
	json_array_foreach(array, i, item)
	{
		if (!json_is_string(item))
			return false;
		(*texts)[(*count)++] = json_string_value(item);
	}
	return true;
}

static const char *text_or(const json_t *body, const char *key, const char *preset)
{
	const char *text = json_string_value(json_object_get(body, key));

	return text == NULL ? preset : text;
}

static json_t *submit(struct rest_exchange *x, const struct job_submission *submission)
{
	struct config_error error = {""};
	char text[ID128_TEXT_BYTES];
	struct job_id id;
	int rc = coordinator_submit(x->coordinator, submission, &id, &error);

	if (rc == -EEXIST || rc == -EAGAIN)
		return rest_refuse(x, 409, "%s", error.text);
	if (rc != 0)
		return rest_refuse(x, 400, "%s", error.text[0] == 0 ? strerror(-rc) : error.text);
	x->status = 202;
	id128_print(id.id, text);
	return json_pack("{s:s}", "jobid", text);
}

json_t *rest_submit(struct rest_exchange *x)
{
	json_t *answer, *body = rest_body(x, &answer);
	char here[4096];
	const char **sets = NULL;
	uint32_t set_count;

	if (body == NULL)
		return answer;
	const char *text = json_string_value(json_object_get(body, "job"));
	if (text == NULL)
		answer = rest_refuse(x, 400, "\"job\": expected the text of a job file");
	else if (!take_texts(json_object_get(body, "sets"), &sets, &set_count))
		answer = rest_refuse(x, 400, "\"sets\": expected texts UID.PARAM=VALUE");
	else
		answer = submit(x, &(struct job_submission){
				.file_name = text_or(body, "file", "job.yaml"),
				.file_text = text,
				.plugin_dir = text_or(body, "plugin_dir",
						getcwd(here, sizeof(here)) == NULL ? "/" : here),
				.overrides = sets,
				.override_count = set_count,
				.restore = text_or(body, "restore", "none"),
				.allow_rewind = json_is_true(json_object_get(body, "allow_rewind")),
		});
	free(sets);
	json_decref(body);
	return answer;
}

static json_t *refuse_ended(struct rest_exchange *x)
{
	return rest_refuse(x, 409, "the job is %s", job_status_name(job_master_status(x->job)));
}

json_t *rest_cancel(struct rest_exchange *x)
{
	char mode[16] = "cancel";

	(void)http_query_value(x->request->query, "mode", mode, sizeof(mode));
	if (strcmp(mode, "cancel") != 0)
		return rest_refuse(x, 400, "mode=%s: expected cancel", mode);
	if (job_status_is_terminal(job_master_status(x->job)))
		return refuse_ended(x);
	job_master_cancel(x->job);
	x->status = 202;
	return json_object();
}

json_t *rest_stop(struct rest_exchange *x)
{
	json_t *answer, *body = rest_body(x, &answer);

	if (body == NULL)
		return answer;
	bool wants_savepoint = json_is_string(json_object_get(body, "targetDirectory")) ||
			json_is_true(json_object_get(body, "drain"));
	json_decref(body);
	if (wants_savepoint)
		return rest_refuse(x, 400,
				"a stop ends with a checkpoint in this version; targetDirectory "
				"and drain are for savepoints");
	if (job_status_is_terminal(job_master_status(x->job)))
		return refuse_ended(x);
	job_master_stop(x->job);
	x->status = 202;
	return json_object();
}
