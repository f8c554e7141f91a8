#pragma once

/*
 * http_client: one HTTP request that waits for its answer; for command lines.
 *
 * Place    net.
 * Thread   any; each call runs a loop of its own and blocks up to its time limit.
 * Memory   the answer's body is allocated, and freed with free.
 * Errors   0 when there was an answer, whatever its status; -ECONNREFUSED, -EHOSTUNREACH,
 *          -ENETUNREACH: nobody there; -EADDRNOTAVAIL: no such host; -ECONNRESET: cut off, or not
 *          HTTP; -ETIMEDOUT; -ENOMEM.  The process ignores SIGPIPE from then on.
 */

#include <stddef.h>
#include <stdint.h>

struct http_answer {
	int status;
	char *body; /* zero-terminated */
	size_t body_bytes;
};

struct http_call {
	const char *host;
	uint16_t port;
	const char *method; /* GET, POST, PATCH */
	const char *target; /* encoded path with query */
	const char *body;   /* NULL: none */
	uint64_t timeout_ns;
};

int http_client_call(const struct http_call *call, struct http_answer *answer);
