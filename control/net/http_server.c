#include "control/net/http_server.h"

#include "control/net/address.h"
#include "control/net/loop_internal.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_TIMEOUT_S = 30, HEADERS_BYTES_MAX = 16384 };

struct http_server {
	struct evhttp *http;
	http_handler handler;
	void *context;
	uint16_t port;
};

static const char *method_name(enum evhttp_cmd_type method)
{
	switch (method) {
	case EVHTTP_REQ_GET:
		return "GET";
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_HEAD:
		return "HEAD";
	case EVHTTP_REQ_PUT:
		return "PUT";
	case EVHTTP_REQ_DELETE:
		return "DELETE";
	case EVHTTP_REQ_PATCH:
		return "PATCH";
	default:
		return "?";
	}
}

static void answer(struct evhttp_request *req, const struct http_response *response)
{
	struct evbuffer *body = evbuffer_new();
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);

	CHECK(response->status >= 200 && response->status < 600);
	if (response->content_type != NULL)
		evhttp_add_header(headers, "Content-Type", response->content_type);
	if (body != NULL && response->body != NULL)
		evbuffer_add(body, response->body, strlen(response->body));
	evhttp_send_reply(req, response->status, NULL, body);
	if (body != NULL)
		evbuffer_free(body);
}

static void on_request(struct evhttp_request *req, void *context)
{
	struct http_server *s = context;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	const char *raw = uri == NULL ? NULL : evhttp_uri_get_path(uri);
	const char *query = uri == NULL ? NULL : evhttp_uri_get_query(uri);
	size_t body_bytes = evbuffer_get_length(in);
	size_t path_bytes = 0;
	char *path = evhttp_uridecode(raw == NULL ? "" : raw, 0, &path_bytes);
	char *body = malloc(body_bytes + 1);

	if (path == NULL || body == NULL) {
		evhttp_send_error(req, 500, NULL);
	} else if (strlen(path) != path_bytes) {
		evhttp_send_error(req, 400, NULL); /* %00: it would name something else */
	} else {
		struct http_response response = {0};

		evbuffer_copyout(in, body, body_bytes);
		body[body_bytes] = 0;
		s->handler(s->context,
				&(struct http_request){method_name(evhttp_request_get_command(req)),
						path, query == NULL ? "" : query, body, body_bytes},
				&response);
		answer(req, &response);
		free(response.body);
	}
	free(path);
	free(body);
}

int http_server_create(struct http_server **out, struct loop *l, const char *host,
		const uint16_t ports[2], http_handler handler, void *context)
{
	uint16_t port;
	int fd = address_listen(host, ports, &port);

	if (fd < 0)
		return fd;
	struct http_server *s = calloc(1, sizeof(*s));
	if (s != NULL) {
		*s = (struct http_server){.handler = handler, .context = context, .port = port};
		s->http = evhttp_new(loop_base(l));
	}
	if (s == NULL || s->http == NULL || evhttp_accept_socket(s->http, fd) != 0) {
		close(fd);
		http_server_destroy(s);
		return -ENOMEM;
	}
	evhttp_set_gencb(s->http, on_request, s);
	evhttp_set_allowed_methods(s->http,
			EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PATCH);
	evhttp_set_max_body_size(s->http, HTTP_BODY_BYTES_MAX);
	evhttp_set_max_headers_size(s->http, HEADERS_BYTES_MAX);
	evhttp_set_timeout(s->http, IDLE_TIMEOUT_S);
	*out = s;
	return 0;
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_destroy(struct http_server *s)
{
	if (s == NULL)
		return;
	if (s->http != NULL)
		evhttp_free(s->http);
	free(s);
}

bool http_query_value(const char *query, const char *key, char *value, size_t value_bytes)
{
	struct evkeyvalq pairs;
	bool found = false;

	if (evhttp_parse_query_str(query, &pairs) != 0)
		return false;
	const char *text = evhttp_find_header(&pairs, key);
	if (text != NULL && strlen(text) < value_bytes) {
		snprintf(value, value_bytes, "%s", text);
		found = true;
	}
	evhttp_clear_headers(&pairs);
	return found;
}
