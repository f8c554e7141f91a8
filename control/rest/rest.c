#include "control/rest/rest.h"

#include "control/config/job_file.h"
#include "control/coordinator/coordinator.h"
#include "control/rest/rest_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct route {
	const char *method;
	const char *path; /* ":job" takes a job id, ":" anything */
	rest_handler handler;
};

static const struct route routes[] = {
		{"GET", "config", rest_config},
		{"GET", "overview", rest_overview},
		{"GET", "taskmanagers", rest_taskmanagers},
		{"GET", "taskmanagers/:", rest_taskmanager},
		{"GET", "jobs", rest_jobs},
		{"POST", "jobs", rest_submit},
		{"GET", "jobs/overview", rest_jobs_overview},
		{"GET", "jobs/:job", rest_job},
		{"PATCH", "jobs/:job", rest_cancel},
		{"GET", "jobs/:job/status", rest_job_status},
		{"GET", "jobs/:job/plan", rest_job_plan},
		{"GET", "jobs/:job/config", rest_job_config},
		{"GET", "jobs/:job/exceptions", rest_job_exceptions},
		{"GET", "jobs/:job/summary", rest_job_summary},
		{"POST", "jobs/:job/stop", rest_stop},
		{"GET", "jobs/:job/checkpoints", rest_checkpoints},
		{"POST", "jobs/:job/checkpoints", rest_checkpoint_trigger},
		{"GET", "jobs/:job/checkpoints/config", rest_checkpoint_config},
		{"GET", "jobs/:job/checkpoints/details/:", rest_checkpoint_details},
		{"GET", "jobs/:job/checkpoints/details/:/subtasks/:", rest_checkpoint_subtasks},
		{"GET", "jobs/:job/checkpoints/:", rest_checkpoint_request},
};

enum { ROUTES_COUNT = sizeof(routes) / sizeof(routes[0]), TEXT_BYTES = 2048, PATH_BYTES = 128 };

json_t *rest_refuse(struct rest_exchange *x, int status, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	x->status = status;
	json_t *error = json_string(text);
	if (error == NULL)
		error = json_string("an error whose text is no UTF-8");
	return json_pack("{s:[o]}", "errors", error);
}

json_t *rest_body(struct rest_exchange *x, json_t **refusal)
{
	json_error_t error = {.text = ""};
	json_t *body = x->request->body_bytes == 0
			? json_object()
			: json_loadb(x->request->body, x->request->body_bytes,
					  JSON_REJECT_DUPLICATES, &error);

	if (json_is_object(body))
		return body;
	*refusal = rest_refuse(x, 400, "the body is no JSON object%s%s",
			body == NULL ? ": " : "", body == NULL ? error.text : "");
	json_decref(body);
	return NULL;
}

void rest_vertex_id(const char *uid, char text[ID128_TEXT_BYTES])
{
	id128_print(job_id_of_name(uid).id, text);
}

/* ---- routing ---- */

/* Splits a path in place; UINT32_MAX: too many segments. */
static uint32_t split(char *path, const char *segments[REST_SEGMENTS_MAX])
{
	uint32_t count = 0;
	char *save;

	for (char *s = strtok_r(path, "/", &save); s != NULL; s = strtok_r(NULL, "/", &save)) {
		/* Flink's own command line says /v1/jobs. */
		if (count == 0 && strcmp(s, "v1") == 0)
			continue;
		if (count == REST_SEGMENTS_MAX)
			return UINT32_MAX;
		segments[count++] = s;
	}
	return count;
}

/* How well a route fits: 0 not at all; names count more than places. */
static uint32_t fit(const struct route *r, const char *const *segments, uint32_t count)
{
	char path[PATH_BYTES];
	char *save;
	uint32_t i = 0, score = 1;

	snprintf(path, sizeof(path), "%s", r->path);
	for (char *s = strtok_r(path, "/", &save); s != NULL; s = strtok_r(NULL, "/", &save)) {
		if (i == count || (s[0] != ':' && strcmp(s, segments[i]) != 0))
			return 0;
		score = 2 * score + (s[0] != ':');
		i++;
	}
	return i == count ? score : 0;
}

static const struct route *find_route(
		const char *method, const char *const *segments, uint32_t count, bool *has_path)
{
	const struct route *best = NULL;
	uint32_t best_fit = 0;

	for (uint32_t i = 0; i < ROUTES_COUNT; i++) {
		uint32_t f = fit(&routes[i], segments, count);

		*has_path = *has_path || f > 0;
		if (f > best_fit && strcmp(routes[i].method, method) == 0) {
			best = &routes[i];
			best_fit = f;
		}
	}
	return best;
}

/* Fills arguments and job from the segments.  NULL, or the refusal. */
static json_t *take_arguments(
		struct rest_exchange *x, const struct route *r, const char *const *segments)
{
	char path[PATH_BYTES];
	char *save;
	uint32_t i = 0, count = 0;
	struct job_id id;

	snprintf(path, sizeof(path), "%s", r->path);
	for (char *s = strtok_r(path, "/", &save); s != NULL;
			s = strtok_r(NULL, "/", &save), i++) {
		if (strcmp(s, ":") == 0)
			x->arguments[count++] = segments[i];
		if (strcmp(s, ":job") != 0)
			continue;
		if (!id128_parse(segments[i], &id.id))
			return rest_refuse(x, 400,
					"Bad request, could not parse parameters: Cannot resolve "
					"path parameter (jobid) from value \"%s\".",
					segments[i]);
		x->job = coordinator_find_job(x->coordinator, id);
		if (x->job == NULL)
			return rest_refuse(x, 404, "Job %s not found", segments[i]);
	}
	return NULL;
}

static json_t *answer(struct rest_exchange *x, const char *whole, char *path)
{
	const char *segments[REST_SEGMENTS_MAX];
	bool has_path = false;
	uint32_t count = split(path, segments);
	const struct route *r = count == UINT32_MAX
			? NULL
			: find_route(x->request->method, segments, count, &has_path);

	if (r == NULL)
		return has_path ? rest_refuse(x, 405, "%s is not answered here",
						  x->request->method)
				: rest_refuse(x, 404, "Unable to load requested file %s.", whole);
	json_t *refusal = take_arguments(x, r, segments);
	return refusal != NULL ? refusal : r->handler(x);
}

void rest_handle(
		void *context, const struct http_request *request, struct http_response *response)
{
	struct rest_exchange x = {.coordinator = context, .request = request, .status = 200};
	char *path = strdup(request->path);
	json_t *body = path == NULL ? NULL : answer(&x, request->path, path);

	response->content_type = "application/json; charset=UTF-8";
	response->status = body == NULL ? 500 : x.status;
	response->body = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
	json_decref(body);
	free(path);
}
