/* rest_savepoints: savepoints, stops with one, disposals, what became of them (semantics 24). */

#include "control/coordinator/checkpoint_storage.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An absolute path, perhaps behind file:, or false after a refusal. */
static bool take_path(struct rest_call *call, const char *key, const char **path)
{
	if (strncmp(*path, "file:", 5) == 0)
		*path += strncmp(*path, "file:///", 8) == 0 ? 7 : 5;
	if ((*path)[0] == '/')
		return true;
	rest_refuse(call, 400, "\"%s\": expected an absolute path, or file: with one", key);
	return false;
}

/* What both bodies have in common; their keys are not spelled alike. */
static bool read_order(struct rest_call *call, const json_t *body, const char *directory_key,
		struct savepoint_order *order, struct id128 *id)
{
	const char *format = "CANONICAL";

	if (!rest_read_text(call, body, directory_key, &order->directory) ||
			!rest_read_text(call, body, "formatType", &format) ||
			!rest_read_trigger_id(call, body, id))
		return false;
	if (strcmp(format, "CANONICAL") != 0 && strcmp(format, "NATIVE") != 0) {
		rest_refuse(call, 400, "\"formatType\": expected CANONICAL or NATIVE");
		return false;
	}
	order->is_native = strcmp(format, "NATIVE") == 0;
	return order->directory == NULL || take_path(call, directory_key, &order->directory);
}

static void begin(struct rest_call *call, const struct savepoint_order *order, struct id128 id)
{
	char text[JOB_TEXT_BYTES] = "", request[ID128_TEXT_BYTES];
	int rc = job_master_savepoint(call->job, order, &id, text);

	if (rc == -EINVAL) {
		rest_refuse(call, 400, "%s", text);
	} else if (rc != 0) {
		rest_refuse(call, 409, "%s", text);
	} else {
		id128_print(id, request);
		rest_answer(call, 202, json_pack("{s:s}", "request-id", request));
	}
}

void rest_post_savepoint(struct rest_call *call)
{
	struct savepoint_order order = {.end = SAVEPOINT_GO_ON};
	json_t *body = rest_body(call);
	bool must_cancel = false;
	struct id128 id = {{0}};

	if (body == NULL)
		return;
	if (read_order(call, body, "target-directory", &order, &id) &&
			rest_read_bool(call, body, "cancel-job", &must_cancel)) {
		order.end = must_cancel ? SAVEPOINT_CANCEL : SAVEPOINT_GO_ON;
		begin(call, &order, id);
	}
	json_decref(body);
}

void rest_stop_with_savepoint(struct rest_call *call, const json_t *body)
{
	struct savepoint_order order = {.end = SAVEPOINT_SUSPEND};
	struct id128 id = {{0}};
	bool must_drain = false;

	if (!read_order(call, body, "targetDirectory", &order, &id) ||
			!rest_read_bool(call, body, "drain", &must_drain))
		return;
	order.end = must_drain ? SAVEPOINT_DRAIN : SAVEPOINT_SUSPEND;
	begin(call, &order, id);
}

/* False: no such savepoint operation. */
static bool find_answer(struct rest_call *call, struct checkpoint_answer *a)
{
	return call->job != NULL
			? job_master_checkpoint_answer(call->job, call->request_id, a) &&
					a->is_savepoint
			: coordinator_ended_answer(
					  call->coordinator, call->ended, call->request_id, a);
}

void rest_get_savepoint(struct rest_call *call)
{
	struct checkpoint_answer a = {0};

	if (!find_answer(call, &a)) {
		rest_refuse(call, 404, "There is no savepoint operation of that triggerId for the "
				       "job");
		return;
	}
	rest_answer_operation(call, &a, "failure-cause",
			a.is_success ? json_pack("{s:o}", "location", rest_text(a.location))
				     : NULL);
}

/* ---- disposal ---- */

static void begin_disposal(struct rest_call *call, const json_t *body)
{
	static const char key[] = "savepoint-path";
	char request[ID128_TEXT_BYTES];
	struct id128 id = {{0}};
	const char *path = "";

	if (!rest_read_text(call, body, key, &path) || !take_path(call, key, &path) ||
			!rest_read_trigger_id(call, body, &id))
		return;
	if (strlen(path) >= STORAGE_PATH_BYTES) {
		rest_refuse(call, 400, "\"%s\": expected less than %d bytes", key,
				STORAGE_PATH_BYTES);
		return;
	}
	int rc = coordinator_dispose(call->coordinator, path, &id);
	if (rc != 0) {
		rest_refuse(call, rc == -EAGAIN ? 409 : 500, "no disposal could be begun: %s",
				strerror(-rc));
		return;
	}
	id128_print(id, request);
	rest_answer(call, 200, json_pack("{s:s}", "request-id", request));
}

void rest_post_disposal(struct rest_call *call)
{
	json_t *body = rest_body(call);

	if (body != NULL)
		begin_disposal(call, body);
	json_decref(body);
}

void rest_get_disposal(struct rest_call *call)
{
	char text[JOB_TEXT_BYTES + STORAGE_PATH_BYTES];
	struct checkpoint_answer a;

	if (!coordinator_disposal_answer(call->coordinator, call->request_id, &a)) {
		rest_refuse(call, 404, "There is no savepoint disposal of that triggerId");
		return;
	}
	snprintf(text, sizeof(text), "Could not dispose savepoint %s: %s", a.location, a.text);
	a.text = text;
	rest_answer_operation(call, &a, "failure-cause", json_object());
}
