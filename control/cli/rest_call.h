#pragma once

/*
 * rest_call: one question to the coordinator's REST, its answer as JSON.
 *
 * Place    control/cli.
 * Thread   any; blocks up to its time limit.
 * Memory   the caller owns `answer` (json_decref).
 * Errors   0 for a status below 300; those of http_client (nobody there), -EBADMSG (no JSON),
 *          and refusals, whose text is then in `error`: -ENOENT (404), -EBUSY (409), -EIO (the
 *          coordinator's own trouble), -EPERM (any other).
 */

#include "dataplane/base/ids.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { REST_ERROR_BYTES = 2048 };

struct rest_server {
	char host[256];
	uint16_t port;
};

/* "HOST:PORT", or "http://HOST:PORT".  -EINVAL. */
int rest_server_parse(const char *text, struct rest_server *server);

/* An id for a request that may have to be repeated. */
void rest_make_id(char text[ID128_TEXT_BYTES]);

/* Nobody answered, which may pass; else somebody refused. */
bool rest_is_silence(int rc);

/* `body` may be NULL; it stays the caller's.  `answer` may be NULL; what it is set to is the
 * caller's also after a refusal, which has one that tells more. */
int rest_call(const struct rest_server *server, const char *method, const char *target,
		const json_t *body, json_t **answer, char error[REST_ERROR_BYTES]);
