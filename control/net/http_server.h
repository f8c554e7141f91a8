#pragma once

/*
 * http_server: HTTP requests to a handler, its answers back.
 *
 * Place    net.
 * Thread   the loop's.
 * Memory   a request and what it points to live until the handler returns.
 * Errors   0 or -errno from create.  What is not HTTP, or too large, never reaches the handler.
 * Life     create, { handler }*, destroy.  A handler answers each request before it returns.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct http_server;

enum { HTTP_BODY_BYTES_MAX = 8 * 1024 * 1024 };

struct http_request {
	const char *method;
	const char *path;  /* decoded, without query */
	const char *query; /* undecoded, "" when none */
	const char *body;  /* zero-terminated */
	size_t body_bytes;
};

struct http_response {
	int status;
	const char *content_type; /* static */
	char *body;               /* from malloc, freed by the server */
};

typedef void (*http_handler)(
		void *context, const struct http_request *request, struct http_response *response);

/* Takes the first free port of first..last; 0 takes any.  -EADDRINUSE, -EADDRNOTAVAIL, -ENOMEM. */
int http_server_create(struct http_server **out, struct loop *l, const char *host,
		const uint16_t ports[2], http_handler handler, void *context);
uint16_t http_server_port(const struct http_server *s);
void http_server_destroy(struct http_server *s);

/* The decoded value of a key of the query, into `value`; false: not there or too long. */
bool http_query_value(const char *query, const char *key, char *value, size_t value_bytes);
