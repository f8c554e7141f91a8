#include "control/cli/rest_call.h"

#include "control/net/address.h"
#include "control/net/http_client.h"
#include "dataplane/base/prng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_TIMEOUT_NS UINT64_C(10000000000)

int rest_server_parse(const char *text, struct rest_server *server)
{
	static const char scheme[] = "http://";

	if (strncmp(text, scheme, sizeof(scheme) - 1) == 0)
		text += sizeof(scheme) - 1;
	return address_parse(text, server->host, &server->port);
}

/* Flink's form of a refusal: {"errors": [text, ...]}; the first line of the first one counts. */
static void take_error(const json_t *answer, int status, char error[REST_ERROR_BYTES])
{
	const json_t *errors = json_object_get(answer, "errors");
	const char *text = json_string_value(json_array_get(errors, 0));

	snprintf(error, REST_ERROR_BYTES, "%s", text != NULL ? text : "");
	if (text == NULL)
		snprintf(error, REST_ERROR_BYTES, "the coordinator answered with status %d",
				status);
}

static int refusal_of(int status)
{
	switch (status) {
	case 404:
		return -ENOENT;
	case 409:
		return -EBUSY;
	default:
		return status >= 500 ? -EIO : -EPERM;
	}
}

static int judge(const struct http_answer *http, json_t **answer, char error[REST_ERROR_BYTES])
{
	json_error_t at;
	json_t *json = json_loadb(http->body, http->body_bytes, 0, &at);
	int rc = 0;

	if (http->status >= 300) {
		take_error(json, http->status, error);
		rc = refusal_of(http->status);
	} else if (json == NULL) {
		snprintf(error, REST_ERROR_BYTES, "the coordinator's answer is no JSON: %s",
				at.text);
		rc = -EBADMSG;
	}
	if (answer != NULL && json != NULL)
		*answer = json;
	else
		json_decref(json);
	return rc;
}

void rest_make_id(char text[ID128_TEXT_BYTES])
{
	struct id128 id;

	for (int i = 0; i < 16; i += 8)
		memcpy(id.bytes + i, &(uint64_t){prng_seed_from_os()}, 8);
	id128_print(id, text);
}

bool rest_is_silence(int rc)
{
	return rc == -ECONNREFUSED || rc == -ETIMEDOUT || rc == -ECONNRESET ||
			rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EADDRNOTAVAIL;
}

static const char *silence_text(int rc)
{
	if (rc == -EADDRNOTAVAIL)
		return "no such host";
	return rc == -ECONNRESET ? "what listens there ended the connection" : strerror(-rc);
}

int rest_call(const struct rest_server *server, const char *method, const char *target,
		const json_t *body, json_t **answer, char error[REST_ERROR_BYTES])
{
	char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
	struct http_answer http = {0};
	struct http_call call = {
		.host = server->host,
		.port = server->port,
		.method = method,
		.target = target,
		.body = text,
		.timeout_ns = CALL_TIMEOUT_NS,
	};

	if (answer != NULL)
		*answer = NULL;
	int rc = http_client_call(&call, &http);
	free(text);
	if (rc != 0) {
		snprintf(error, REST_ERROR_BYTES, "no coordinator answers at %s:%u: %s",
				server->host, server->port, silence_text(rc));
		return rc;
	}
	rc = judge(&http, answer, error);
	free(http.body);
	return rc;
}
