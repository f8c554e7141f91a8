#include "control/net/http_client.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 256 * 1024 * 1024 };

struct waiting {
	struct event_base *base;
	struct http_answer *answer;
	int rc;
};

static void on_answer(struct evhttp_request *req, void *context)
{
	struct waiting *w = context;

	event_base_loopbreak(w->base);
	if (req == NULL || evhttp_request_get_response_code(req) == 0)
		return; /* rc says why */
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t bytes = evbuffer_get_length(in);
	char *body = malloc(bytes + 1);
	if (body == NULL) {
		w->rc = -ENOMEM;
		return;
	}
	evbuffer_copyout(in, body, bytes);
	body[bytes] = 0;
	*w->answer = (struct http_answer){evhttp_request_get_response_code(req), body, bytes};
	w->rc = 0;
}

static void on_error(enum evhttp_request_error error, void *context)
{
	struct waiting *w = context;

	w->rc = error == EVREQ_HTTP_TIMEOUT ? -ETIMEDOUT : -ECONNRESET;
}

/* libevent leaves the reason in errno, as the last that it looked at. */
static int why_silent(struct evhttp_connection *connection, int error, int rc)
{
	if (bufferevent_socket_get_dns_error(evhttp_connection_get_bufferevent(connection)) != 0)
		return -EADDRNOTAVAIL;
	return error == EHOSTUNREACH || error == ENETUNREACH ? -error : rc;
}

static enum evhttp_cmd_type method_of(const char *name)
{
	if (strcmp(name, "POST") == 0)
		return EVHTTP_REQ_POST;
	if (strcmp(name, "PATCH") == 0)
		return EVHTTP_REQ_PATCH;
	CHECK(strcmp(name, "GET") == 0);
	return EVHTTP_REQ_GET;
}

/* Fills in and sends; the request is the connection's from then on. */
static int send_request(struct evhttp_connection *connection, const struct http_call *call,
		struct waiting *w)
{
	struct evhttp_request *req = evhttp_request_new(on_answer, w);

	if (req == NULL)
		return -ENOMEM;
	evhttp_request_set_error_cb(req, on_error);
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	char host[300];
	snprintf(host, sizeof(host), "%s:%u", call->host, call->port);
	evhttp_add_header(headers, "Host", host);
	evhttp_add_header(headers, "Connection", "close");
	if (call->body != NULL) {
		evhttp_add_header(headers, "Content-Type", "application/json");
		evbuffer_add(evhttp_request_get_output_buffer(req), call->body, strlen(call->body));
	}
	return evhttp_make_request(connection, req, method_of(call->method), call->target) == 0
			? 0
			: -ECONNREFUSED;
}

int http_client_call(const struct http_call *call, struct http_answer *answer)
{
	struct timeval limit = {(time_t)(call->timeout_ns / 1000000000),
			(suseconds_t)(call->timeout_ns / 1000 % 1000000)};
	struct event_base *base = event_base_new();
	struct waiting w = {base, answer, -ECONNREFUSED};

	if (base == NULL)
		return -ENOMEM;
	signal(SIGPIPE, SIG_IGN);
	struct evhttp_connection *connection =
			evhttp_connection_base_new(base, NULL, call->host, call->port);
	if (connection == NULL) {
		event_base_free(base);
		return -ENOMEM;
	}
	evhttp_connection_set_timeout_tv(connection, &limit);
	evhttp_connection_set_max_body_size(connection, ANSWER_BYTES_MAX);
	errno = 0;
	int rc = send_request(connection, call, &w);
	if (rc == 0) {
		event_base_dispatch(base);
		rc = w.rc;
	}
	if (rc == -ECONNREFUSED || rc == -ECONNRESET)
		rc = why_silent(connection, errno, rc);
	evhttp_connection_free(connection);
	event_base_free(base);
	return rc;
}
