/* rest_answer: JSON in and out, and refusals. */

#include "control/rest/rest_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSAL_BYTES = 2048 };

void rest_answer(struct rest_call *call, int status, json_t *json)
{
	char *body = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);

	json_decref(json);
	call->response->status = body == NULL ? 500 : status;
	call->response->content_type = "application/json; charset=UTF-8";
	call->response->body = body == NULL ? strdup("{\"errors\":[\"out of memory\"]}") : body;
}

void rest_refuse(struct rest_call *call, int status, const char *format, ...)
{
	char text[REFUSAL_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rest_answer(call, status, json_pack("{s:[o]}", "errors", rest_text(text)));
}

json_t *rest_text(const char *text)
{
	json_t *json = json_string(text);
	char *copy = json != NULL ? NULL : strdup(text);

	if (copy == NULL)
		return json;
	for (char *at = copy; *at != 0; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	json = json_string(copy);
	free(copy);
	return json;
}

/* ---- bodies ---- */

json_t *rest_body(struct rest_call *call)
{
	const struct http_request *request = call->request;
	json_error_t at;

	if (request->body_bytes == 0)
		return json_object();
	json_t *body = json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, &at);
	if (body == NULL) {
		rest_refuse(call, 400, "the body is no JSON: line %d, column %d: %s", at.line,
				at.column, at.text);
	} else if (!json_is_object(body)) {
		rest_refuse(call, 400, "the body must be a JSON object");
		json_decref(body);
		body = NULL;
	}
	return body;
}

bool rest_read_text(
		struct rest_call *call, const json_t *body, const char *key, const char **value)
{
	const json_t *member = json_object_get(body, key);

	if (member == NULL || json_is_null(member))
		return true;
	if (!json_is_string(member)) {
		rest_refuse(call, 400, "\"%s\": expected a string", key);
		return false;
	}
	*value = json_string_value(member);
	return true;
}

bool rest_read_bool(struct rest_call *call, const json_t *body, const char *key, bool *value)
{
	const json_t *member = json_object_get(body, key);

	if (member == NULL || json_is_null(member))
		return true;
	if (!json_is_boolean(member)) {
		rest_refuse(call, 400, "\"%s\": expected true or false", key);
		return false;
	}
	*value = json_is_true(member);
	return true;
}

bool rest_read_trigger_id(struct rest_call *call, const json_t *body, struct id128 *id)
{
	const char *text = NULL;

	if (!rest_read_text(call, body, "triggerId", &text))
		return false;
	if (text == NULL || id128_parse(text, id))
		return true;
	rest_refuse(call, 400, "\"triggerId\": expected 32 hex digits");
	return false;
}

void rest_query(const struct rest_call *call, const char *key, char value[REST_PART_BYTES])
{
	value[0] = 0;
	(void)http_query_value(call->request->query, key, value, REST_PART_BYTES);
}

void rest_answer_operation(struct rest_call *call, const struct checkpoint_answer *a,
		const char *cause_key, json_t *result)
{
	json_t *operation;

	if (!a->is_done)
		operation = json_null();
	else if (a->is_success)
		operation = json_incref(result);
	else
		operation = json_pack("{s:o}", cause_key, rest_failure(a->text));
	json_decref(result);
	rest_answer(call, 200,
			json_pack("{s:{s:s}, s:o}", "status", "id",
					a->is_done ? "COMPLETED" : "IN_PROGRESS", "operation",
					operation));
}
