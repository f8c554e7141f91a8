#include "control/net/address.h"
#include "control/net/http_client.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct http_server *server;
	pthread_t thread;
	uint32_t served;
};

/* Answers with what it was asked. */
static void echo(void *context, const struct http_request *request, struct http_response *response)
{
	struct world *w = context;
	char mode[16] = "none";

	w->served++;
	http_query_value(request->query, "mode", mode, sizeof(mode));
	response->status = strcmp(request->path, "/no") == 0 ? 404 : 202;
	response->content_type = "text/plain";
	cr_assert_gt(asprintf(&response->body, "%s %s mode=%s %zu:%s", request->method,
				     request->path, mode, request->body_bytes, request->body),
			0);
}

static void *serve(void *context)
{
	struct world *w = context;

	loop_run(w->loop);
	return NULL;
}

static void open_world(struct world *w)
{
	memset(w, 0, sizeof(*w));
	cr_assert_eq(loop_create(&w->loop), 0);
	cr_assert_eq(http_server_create(&w->server, w->loop, "127.0.0.1",
				     (const uint16_t[]){0, 0}, echo, w),
			0);
	cr_assert_eq(pthread_create(&w->thread, NULL, serve, w), 0);
}

static void close_world(struct world *w)
{
	loop_stop_mt(w->loop);
	pthread_join(w->thread, NULL);
	http_server_destroy(w->server);
	loop_destroy(w->loop);
}

static int call(struct world *w, const char *method, const char *target, const char *body,
		struct http_answer *answer)
{
	return http_client_call(&(struct http_call){"127.0.0.1", http_server_port(w->server),
						method, target, body, 2000000000},
			answer);
}

Test(http, hands_method_path_query_and_body_to_the_handler)
{
	struct world w;
	struct http_answer answer;

	open_world(&w);
	cr_assert_eq(call(&w, "PATCH", "/jobs/a%20b?mode=cancel", NULL, &answer), 0);
	cr_assert_eq(answer.status, 202);
	cr_assert_str_eq(answer.body, "PATCH /jobs/a b mode=cancel 0:");
	free(answer.body);
	cr_assert_eq(call(&w, "POST", "/jobs", "{\"a\":1}", &answer), 0);
	cr_assert_str_eq(answer.body, "POST /jobs mode=none 7:{\"a\":1}");
	free(answer.body);
	cr_assert_eq(call(&w, "GET", "/no", NULL, &answer), 0);
	cr_assert_eq(answer.status, 404);
	free(answer.body);
	close_world(&w);
}

Test(http, refuses_a_path_with_a_zero_byte_without_asking_the_handler)
{
	struct world w;
	struct http_answer answer = {0};

	open_world(&w);
	cr_assert_eq(call(&w, "PATCH", "/jobs/a%00b", NULL, &answer), 0);
	cr_expect_eq(answer.status, 400);
	cr_expect_eq(w.served, 0);
	free(answer.body);
	close_world(&w);
}

Test(http, refuses_a_body_above_the_limit_without_asking_the_handler)
{
	struct world w;
	struct http_answer answer = {0};
	char *body = malloc(HTTP_BODY_BYTES_MAX + 2);

	memset(body, 'x', HTTP_BODY_BYTES_MAX + 1);
	body[HTTP_BODY_BYTES_MAX + 1] = 0;
	open_world(&w);
	int rc = call(&w, "POST", "/jobs", body, &answer);
	cr_assert(rc != 0 || answer.status == 413, "%d, %d", rc, answer.status);
	cr_assert_eq(w.served, 0);
	free(answer.body);
	free(body);
	close_world(&w);
}

Test(http, tells_that_nobody_is_there)
{
	struct world w;
	struct http_answer answer;

	open_world(&w);
	uint16_t port = http_server_port(w.server);
	close_world(&w);
	cr_assert_eq(http_client_call(&(struct http_call){"127.0.0.1", port, "GET", "/", NULL,
						      1000000000},
				     &answer),
			-ECONNREFUSED);
}

static int get_from(const char *host, uint16_t port)
{
	struct http_answer answer;

	return http_client_call(
			&(struct http_call){host, port, "GET", "/", NULL, 5000000000}, &answer);
}

static void *hang_up(void *context)
{
	int peer = accept4(*(const int *)context, NULL, NULL, SOCK_CLOEXEC);

	close(peer);
	return NULL;
}

Test(http, tells_a_name_of_no_host_from_a_host_that_hangs_up)
{
	uint16_t port;
	pthread_t thread;
	int fd = address_listen("127.0.0.1", (const uint16_t[]){0, 0}, &port);

	cr_expect_eq(get_from("127.0.0.1.", 80), -EADDRNOTAVAIL);
	cr_expect_eq(get_from("a host", 80), -EADDRNOTAVAIL);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_SETFL, 0), 0); /* waits */
	cr_assert_eq(pthread_create(&thread, NULL, hang_up, &fd), 0);
	cr_expect_eq(get_from("127.0.0.1", port), -ECONNRESET);
	pthread_join(thread, NULL);
	close(fd);
}

Test(http, takes_the_next_port_of_a_range_when_one_is_taken)
{
	uint16_t first, second;
	int fd = address_listen("127.0.0.1", (const uint16_t[]){0, 0}, &first);

	cr_assert_geq(fd, 0);
	cr_assert_lt(first, UINT16_MAX);
	int other = address_listen("127.0.0.1", (const uint16_t[]){first, first}, &second);
	cr_assert_eq(other, -EADDRINUSE);
	other = address_listen(
			"127.0.0.1", (const uint16_t[]){first, (uint16_t)(first + 50)}, &second);
	cr_assert_geq(other, 0);
	cr_assert_gt(second, first);
}

Test(address, is_read_only_in_the_form_host_and_port)
{
	char host[ADDRESS_HOST_BYTES];
	uint16_t port;
	const char *bad[] = {"", "host", "host:", ":80", "host:0", "host:65536", "host:8a",
			"host:123456"};

	cr_assert_eq(address_parse("localhost:8081", host, &port), 0);
	cr_assert_str_eq(host, "localhost");
	cr_assert_eq(port, 8081);
	cr_assert_eq(address_parse("[::1]:80", host, &port), 0);
	cr_assert_str_eq(host, "::1");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert_eq(address_parse(bad[i], host, &port), -EINVAL, "%s", bad[i]);
}
