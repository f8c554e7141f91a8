#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "control/net/tcp_listener.h"
#include "dataplane/base/limits.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct end {
	struct connection *c;
	uint32_t received;
	int64_t last_id;
	char closed[TCP_CONNECTION_TEXT_BYTES];
	bool must_close; /* in the next received */
};

struct world {
	struct loop *loop;
	struct tcp_listener *listener;
	struct end server, client;
};

static void received(void *owner, struct connection *c, const Weir__Envelope *e)
{
	struct end *end = owner;

	end->received++;
	if (e->body_case == WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT)
		end->last_id = e->abort_checkpoint->checkpoint_id;
	if (end->must_close) {
		connection_close(c);
		end->c = NULL;
	}
}

static void closed(void *owner, struct connection *c, const char *reason)
{
	struct end *end = owner;

	cr_assert_str_empty(end->closed, "closed is told once");
	snprintf(end->closed, sizeof(end->closed), "%s", reason);
	connection_close(c);
	end->c = NULL;
}

static const struct connection_events events = {received, closed};

static void accepted(void *context, struct connection *c)
{
	struct world *w = context;

	w->server.c = c;
	connection_own(c, &events, &w->server);
}

static void open_world(struct world *w)
{
	memset(w, 0, sizeof(*w));
	cr_assert_eq(loop_create(&w->loop), 0);
	cr_assert_eq(tcp_listener_create(&w->listener, w->loop, "127.0.0.1",
				     (const uint16_t[]){0, 0}, accepted, w),
			0);
}

static void close_world(struct world *w)
{
	if (w->server.c != NULL)
		connection_close(w->server.c);
	if (w->client.c != NULL)
		connection_close(w->client.c);
	tcp_listener_destroy(w->listener);
	loop_destroy(w->loop);
}

static void run_until(struct world *w, const uint32_t *count, uint32_t wanted)
{
	for (int i = 0; i < 1000 && *count < wanted; i++)
		loop_turn(w->loop, 5000000);
	cr_assert_geq(*count, wanted);
}

static Weir__Envelope abort_of(Weir__AbortCheckpoint *abort, int64_t id)
{
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	weir__abort_checkpoint__init(abort);
	abort->checkpoint_id = id;
	e.body_case = WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT;
	e.abort_checkpoint = abort;
	return e;
}

static void connect_client(struct world *w)
{
	cr_assert_eq(tcp_connection_open(&w->client.c, w->loop, "127.0.0.1",
				     tcp_listener_port(w->listener), &events, &w->client),
			0);
}

/* A bare socket, so that the test decides where bytes are cut. */
static int raw_client(struct world *w)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
			.sin_port = htons(tcp_listener_port(w->listener)),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	for (int i = 0; i < 100 && w->server.c == NULL; i++)
		loop_turn(w->loop, 5000000);
	cr_assert_not_null(w->server.c);
	return fd;
}

Test(tcp_connection, carries_messages_both_ways_and_in_order)
{
	struct world w;
	Weir__AbortCheckpoint abort;

	open_world(&w);
	connect_client(&w);
	for (int64_t id = 1; id <= 1000; id++) {
		Weir__Envelope e = abort_of(&abort, id);

		cr_assert_eq(connection_send(w.client.c, &e), 0);
	}
	run_until(&w, &w.server.received, 1000);
	cr_assert_eq(w.server.last_id, 1000);
	Weir__Envelope e = abort_of(&abort, 5);
	cr_assert_eq(connection_send(w.server.c, &e), 0);
	run_until(&w, &w.client.received, 1);
	cr_assert_eq(w.client.last_id, 5);
	close_world(&w);
}

Test(tcp_connection, joins_frames_cut_at_every_byte)
{
	struct world w;
	Weir__AbortCheckpoint abort;
	Weir__Envelope e = abort_of(&abort, 77);
	uint8_t *frame, two[256];
	size_t bytes;

	open_world(&w);
	cr_assert_eq(message_pack(&e, &frame, &bytes), 0);
	memcpy(two, frame, bytes);
	memcpy(two + bytes, frame, bytes);
	int fd = raw_client(&w);
	for (size_t cut = 0; cut <= 2 * bytes; cut++) {
		cr_assert_eq(write(fd, two, cut), (ssize_t)cut);
		loop_turn(w.loop, 1000000);
		loop_turn(w.loop, 1000000);
		cr_assert_eq(write(fd, two + cut, 2 * bytes - cut), (ssize_t)(2 * bytes - cut));
		run_until(&w, &w.server.received, 2 * (uint32_t)(cut + 1));
	}
	cr_assert_str_empty(w.server.closed);
	close(fd);
	free(frame);
	close_world(&w);
}

/* Larger than what is read at a time, and with what is read together on either side of it. */
Test(tcp_connection, carries_large_messages_between_small_ones)
{
	enum { LARGE = 3, SMALL = 50, ATTEMPTS = 60000 };
	struct world w;
	Weir__AbortCheckpoint abort;
	static uint8_t id[16];
	static ProtobufCBinaryData attempts[ATTEMPTS];
	uint32_t sent = 0;

	for (uint32_t i = 0; i < ATTEMPTS; i++)
		attempts[i] = (ProtobufCBinaryData){sizeof(id), id};
	open_world(&w);
	connect_client(&w);
	for (uint32_t i = 0; i < LARGE * (SMALL + 1); i++) {
		Weir__Envelope e = abort_of(&abort, ++sent);

		if (i % (SMALL + 1) == SMALL) {
			abort.n_attempts = ATTEMPTS;
			abort.attempts = attempts;
		}
		cr_assert_eq(connection_send(w.client.c, &e), 0);
		loop_turn(w.loop, 0);
	}
	run_until(&w, &w.server.received, sent);
	cr_assert_eq(w.server.last_id, sent);
	cr_assert_str_empty(w.server.closed);
	close_world(&w);
}

Test(tcp_connection, ends_when_a_frame_is_damaged)
{
	struct world w;
	Weir__AbortCheckpoint abort;
	Weir__Envelope e = abort_of(&abort, 77);
	uint8_t *frame;
	size_t bytes;

	open_world(&w);
	cr_assert_eq(message_pack(&e, &frame, &bytes), 0);
	frame[bytes - 1] ^= 1;
	int fd = raw_client(&w);
	cr_assert_eq(write(fd, frame, bytes), (ssize_t)bytes);
	for (int i = 0; i < 100 && w.server.closed[0] == 0; i++)
		loop_turn(w.loop, 5000000);
	cr_assert_str_eq(w.server.closed, "a message that cannot be read arrived");
	cr_assert_eq(w.server.received, 0);
	close(fd);
	free(frame);
	close_world(&w);
}

Test(tcp_connection, tells_that_the_peer_is_gone_after_its_last_message)
{
	struct world w;
	Weir__AbortCheckpoint abort;
	Weir__Envelope e = abort_of(&abort, 9);
	uint8_t *frame;
	size_t bytes;

	open_world(&w);
	cr_assert_eq(message_pack(&e, &frame, &bytes), 0);
	int fd = raw_client(&w);
	cr_assert_eq(write(fd, frame, bytes), (ssize_t)bytes);
	close(fd);
	for (int i = 0; i < 100 && w.server.closed[0] == 0; i++)
		loop_turn(w.loop, 5000000);
	cr_assert_eq(w.server.received, 1);
	cr_assert_str_eq(w.server.closed, "closed by the peer");
	free(frame);
	close_world(&w);
}

Test(tcp_connection, may_be_closed_while_it_delivers)
{
	struct world w;
	Weir__AbortCheckpoint abort;

	open_world(&w);
	connect_client(&w);
	w.server.must_close = true;
	for (int64_t id = 1; id <= 3; id++) {
		Weir__Envelope e = abort_of(&abort, id);

		connection_send(w.client.c, &e);
	}
	for (int i = 0; i < 200 && w.client.closed[0] == 0; i++)
		loop_turn(w.loop, 5000000);
	cr_assert_eq(w.server.received, 1, "nothing comes after close");
	cr_assert_str_not_empty(w.client.closed);
	close_world(&w);
}

Test(tcp_connection, to_a_port_where_nobody_listens_is_closed_with_the_reason)
{
	struct world w;

	open_world(&w);
	uint16_t port = tcp_listener_port(w.listener);
	tcp_listener_destroy(w.listener);
	w.listener = NULL;
	cr_assert_eq(tcp_connection_open(&w.client.c, w.loop, "127.0.0.1", port, &events,
				     &w.client),
			0);
	for (int i = 0; i < 100 && w.client.closed[0] == 0; i++)
		loop_turn(w.loop, 5000000);
	cr_assert_str_eq(w.client.closed, "Connection refused");
	close_world(&w);
}

Test(tcp_connection, gives_up_a_peer_that_takes_nothing)
{
	struct world w;
	Weir__SubmitTasks submit = WEIR__SUBMIT_TASKS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	char *text = malloc(32 * 1024 * 1024);
	int rc = 0;

	open_world(&w);
	int fd = raw_client(&w);
	memset(text, 'x', 32 * 1024 * 1024 - 1);
	text[32 * 1024 * 1024 - 1] = 0;
	submit.job_file = text;
	e.body_case = WEIR__ENVELOPE__BODY_SUBMIT_TASKS;
	e.submit_tasks = &submit;
	for (int i = 0; i < 16 && rc == 0; i++)
		rc = connection_send(w.server.c, &e);
	cr_assert_eq(rc, -ENOBUFS);
	cr_assert_eq(connection_send(w.server.c, &e), -ENOTCONN);
	for (int i = 0; i < 100 && w.server.closed[0] == 0; i++)
		loop_turn(w.loop, 5000000);
	cr_assert_str_eq(w.server.closed, "the peer takes no messages");
	close(fd);
	free(text);
	close_world(&w);
}
