#include "control/rest/rest.h"

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/resource_manager.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 8 };

struct path {
	uint32_t count;
	char parts[PARTS_MAX][REST_PART_BYTES];
};

struct route {
	const char *method;
	const char *pattern; /* :ended takes what is left of a job as well */
	void (*handle)(struct rest_call *call);
};

/* The first that matches is taken. */
static const struct route routes[] = {
		{"GET", "", rest_get_page},
		{"GET", "config", rest_get_config},
		{"GET", "overview", rest_get_overview},
		{"GET", "taskmanagers", rest_get_taskmanagers},
		{"GET", "taskmanagers/:taskmanager", rest_get_taskmanager},
		{"GET", "taskmanagers/:taskmanager/metrics", rest_get_taskmanager_metrics},
		{"GET", "jobmanager/metrics", rest_get_coordinator_metrics},
		{"GET", "metrics", rest_get_prometheus},
		{"GET", "jobs", rest_get_jobs},
		{"POST", "jobs", rest_post_job},
		{"GET", "jobs/overview", rest_get_jobs_overview},
		{"GET", "jobs/metrics", rest_get_jobs_metrics},
		{"GET", "jobs/:job", rest_get_job},
		{"PATCH", "jobs/:job", rest_patch_job},
		{"GET", "jobs/:ended/status", rest_get_job_status},
		{"GET", "jobs/:job/plan", rest_get_job_plan},
		{"GET", "jobs/:job/config", rest_get_job_config},
		{"GET", "jobs/:job/exceptions", rest_get_job_exceptions},
		{"GET", "jobs/:ended/summary", rest_get_summary},
		{"GET", "jobs/:job/numbers", rest_get_numbers},
		{"GET", "jobs/:job/metrics", rest_get_job_metrics},
		{"GET", "jobs/:job/vertices/:vertex/metrics", rest_get_vertex_metrics},
		{"GET", "jobs/:job/vertices/:vertex/subtasks/metrics", rest_get_subtasks_metrics},
		{"GET", "jobs/:job/vertices/:vertex/subtasks/:subtask/metrics",
				rest_get_subtask_metrics},
		{"GET", "jobs/:job/vertices/:vertex/backpressure", rest_get_backpressure},
		{"GET", "jobs/:job/vertices/:vertex/watermarks", rest_get_watermarks},
		{"POST", "jobs/:job/stop", rest_post_stop},
		{"POST", "jobs/:job/savepoints", rest_post_savepoint},
		{"GET", "jobs/:ended/savepoints/:request", rest_get_savepoint},
		{"GET", "jobs/:job/checkpoints", rest_get_checkpoints},
		{"POST", "jobs/:job/checkpoints", rest_post_checkpoint},
		{"PATCH", "jobs/:job/checkpoints", rest_patch_checkpoints},
		{"GET", "jobs/:job/checkpoints/config", rest_get_checkpoints_config},
		{"GET", "jobs/:job/checkpoints/details/:checkpoint", rest_get_checkpoint},
		{"GET", "jobs/:job/checkpoints/details/:checkpoint/subtasks/:vertex",
				rest_get_checkpoint_subtasks},
		{"GET", "jobs/:job/checkpoints/:request", rest_get_request},
		{"POST", "savepoint-disposal", rest_post_disposal},
		{"GET", "savepoint-disposal/:request", rest_get_disposal},
};

/* ---- paths ---- */

/* False: longer than anything we have. */
static bool split(const char *text, struct path *path)
{
	path->count = 0;
	while (*text != 0) {
		size_t length = strcspn(text, "/");

		if (length >= REST_PART_BYTES || (length > 0 && path->count == PARTS_MAX))
			return false;
		if (length > 0) {
			memcpy(path->parts[path->count], text, length);
			path->parts[path->count++][length] = 0;
		}
		text += length + (text[length] == '/');
	}
	if (path->count > 0 && strcmp(path->parts[0], "v1") == 0)
		memmove(path->parts[0], path->parts[1], --path->count * sizeof(path->parts[0]));
	return true;
}

static bool matches(const struct path *path, const char *pattern)
{
	struct path wanted;

	if (!split(pattern, &wanted) || wanted.count != path->count)
		return false;
	for (uint32_t i = 0; i < path->count; i++)
		if (wanted.parts[i][0] != ':' && strcmp(wanted.parts[i], path->parts[i]) != 0)
			return false;
	return true;
}

/* ---- what a part of a path names; false after a refusal ---- */

static bool refuse_part(struct rest_call *call, const char *what, const char *value)
{
	rest_refuse(call, 400,
			"Bad request, could not parse parameters: Cannot resolve path parameter "
			"(%s) from value \"%s\".",
			what, value);
	return false;
}

static void find_ended(struct rest_call *call, const char *text)
{
	const struct ended_job *e;
	struct job_id id;
	bool is_id = id128_parse(text, &id.id);

	for (uint32_t i = 0; (e = coordinator_ended_at(call->coordinator, i)) != NULL; i++)
		if (is_id ? id128_is_equal(e->id.id, id.id) : strcmp(e->record->name, text) == 0)
			call->ended = e;
}

/* False: it is none, or not here. */
static bool find_present(struct rest_call *call, const char *text)
{
	struct job_id id;
	struct job_master *jm;

	if (id128_parse(text, &id.id))
		call->job = coordinator_find_job(call->coordinator, id);
	else
		for (uint32_t i = 0; (jm = coordinator_job_at(call->coordinator, i)) != NULL; i++)
			if (call->job == NULL && strcmp(job_master_name(jm), text) == 0)
				call->job = jm;
	return call->job != NULL;
}

static bool find_job(struct rest_call *call, const char *text, bool takes_ended)
{
	struct job_id id;

	if (find_present(call, text))
		return true;
	find_ended(call, text);
	if (call->ended != NULL && takes_ended)
		return true;
	if (call->ended == NULL && !id128_parse(text, &id.id))
		return refuse_part(call, "jobid", text);
	rest_refuse(call, 404, "Job %s %s", text,
			call->ended == NULL ? "not found"
					    : "ended under an earlier coordinator; its summary "
					      "and status are what is left of it");
	return false;
}

static bool find_vertex(struct rest_call *call, const char *text)
{
	uint32_t count = job_master_spec(call->job)->vertex_count;
	struct id128 id;
	bool is_id = id128_parse(text, &id);

	for (call->place = 0; call->place < count; call->place++) {
		const char *uid = rest_vertex(call->job, call->place)->uid;

		if (strcmp(uid, text) == 0 ||
				(is_id && id128_is_equal(job_id_of_name(uid).id, id)))
			return true;
	}
	if (!is_id)
		return refuse_part(call, "vertexid", text);
	rest_refuse(call, 404, "There is no vertex %s in job %s", text,
			job_master_name(call->job));
	return false;
}

static bool find_subtask(struct rest_call *call, const char *text)
{
	char *end;

	errno = 0;
	unsigned long index = strtoul(text, &end, 10);
	if (errno != 0 || *end != 0 || text[0] < '0' || text[0] > '9')
		return refuse_part(call, "subtaskindex", text);
	call->subtask = (uint32_t)index;
	if (index >= rest_vertex(call->job, call->place)->parallelism)
		rest_refuse(call, 404, "There is no subtask %lu of vertex %s", index,
				rest_vertex(call->job, call->place)->uid);
	return index < rest_vertex(call->job, call->place)->parallelism;
}

static bool find_checkpoint(struct rest_call *call, const char *text)
{
	char *end;

	errno = 0;
	long long id = strtoll(text, &end, 10);
	if (errno != 0 || *end != 0 || id < 1 || text[0] < '0' || text[0] > '9')
		return refuse_part(call, "checkpointid", text);
	call->checkpoint = checkpoint_stats_find(job_master_checkpoints(call->job), id);
	if (call->checkpoint == NULL)
		rest_refuse(call, 404,
				"Could not find checkpointing statistics for checkpoint %lld.", id);
	return call->checkpoint != NULL;
}

static bool find_taskmanager(struct rest_call *call, const char *text)
{
	struct resource_manager *r = coordinator_resources(call->coordinator);

	for (call->member = 0; call->member < MEMBERS_COUNT_MAX; call->member++) {
		const struct resource_row *row = resource_manager_row(r, call->member);

		if (row != NULL && strcmp(row->id, text) == 0)
			return true;
	}
	rest_refuse(call, 404, "Could not find TaskExecutor %s.", text);
	return false;
}

static bool find_part(struct rest_call *call, const char *name, const char *value)
{
	if (strcmp(name, ":job") == 0 || strcmp(name, ":ended") == 0)
		return find_job(call, value, strcmp(name, ":ended") == 0);
	if (strcmp(name, ":vertex") == 0)
		return find_vertex(call, value);
	if (strcmp(name, ":subtask") == 0)
		return find_subtask(call, value);
	if (strcmp(name, ":checkpoint") == 0)
		return find_checkpoint(call, value);
	if (strcmp(name, ":taskmanager") == 0)
		return find_taskmanager(call, value);
	return id128_parse(value, &call->request_id) || refuse_part(call, "triggerid", value);
}

/* ---- requests ---- */

static void take(struct rest_call *call, const struct route *route, const struct path *path)
{
	struct path pattern;

	(void)split(route->pattern, &pattern);
	for (uint32_t i = 0; i < path->count; i++)
		if (pattern.parts[i][0] == ':' &&
				!find_part(call, pattern.parts[i], path->parts[i]))
			return;
	route->handle(call);
}

void rest_handle(void *context, const struct http_request *request,
		struct http_response *response)
{
	struct rest_call call = {
			.coordinator = context, .request = request, .response = response};
	bool is_head = strcmp(request->method, "HEAD") == 0, is_known = false;
	struct path path;

	if (split(request->path, &path)) {
		for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
			if (!matches(&path, routes[i].pattern))
				continue;
			is_known = true;
			if (strcmp(routes[i].method, is_head ? "GET" : request->method) == 0) {
				take(&call, &routes[i], &path);
				return;
			}
		}
	}
	if (is_known)
		rest_refuse(&call, 405, "%s cannot be asked with %s", request->path,
				request->method);
	else
		rest_refuse(&call, 404, "Unable to load requested file %s.", request->path);
}
