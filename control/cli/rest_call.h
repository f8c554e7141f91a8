#pragma once

/*
 * rest_call: one question to the coordinator's REST, its answer as JSON.
 *
 * Place    control/cli.
 * Thread   any; blocks up to its time limit.
 * Memory   the caller owns `answer` (json_decref).
 * Errors   0 for a status below 300; -ECONNREFUSED, -ETIMEDOUT (nobody there), -EBADMSG (no JSON),
 *          -EPERM for a refusal, whose text is then in `error`.
 */

#include <jansson.h>
#include <stdint.h>

enum { REST_ERROR_BYTES = 2048 };

struct rest_server {
	char host[256];
	uint16_t port;
};

/* "HOST:PORT", or "http://HOST:PORT".  -EINVAL. */
int rest_server_parse(const char *text, struct rest_server *server);

/* `body` may be NULL; it stays the caller's.  `answer` may be NULL. */
int rest_call(const struct rest_server *server, const char *method, const char *target,
		const json_t *body, json_t **answer, char error[REST_ERROR_BYTES]);
