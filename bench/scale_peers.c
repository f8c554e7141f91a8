#include "bench/scale_peers.h"

#include "control/net/loop.h"
#include "control/net/tcp_connection.h"
#include "control/proto/connection.h"
#include "control/proto/message.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/operator/operator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
	struct scale_peers *all;
	struct connection *connection;
	uint32_t index;
};

struct scale_peers {
	struct scale_job job;
	struct loop *loop;
	pthread_t thread;
	struct peer *peers;
	int64_t acknowledged_id; /* of the newest checkpoint that was answered */
	uint8_t *state;          /* encoded, the same for all */
	size_t state_bytes;
	atomic_int_fast64_t sent_id; /* of the newest that all have acknowledged */
	atomic_uint_fast64_t received, sent, message_count;
};

/* ---- acknowledging ---- */

static void encode_state(struct scale_peers *p)
{
	uint8_t *bytes = calloc(1, p->job.state_bytes);
	struct state_handle handle = {.uid = "count", .name = "counts", .kind = WEIR_STATE_VALUE,
			.value_bytes = p->job.state_bytes, .version = 1, .item_count = 1,
			.bytes = bytes, .size = p->job.state_bytes};
	struct task_state state = {.vertex_uid = "vertex-0", .subtask_index = 0,
			.parallelism = p->job.parallelism, .group_count = 4096,
			.groups = key_group_range_of(0, p->job.parallelism, 4096),
			.handle_count = 1, .handles = &handle};

	CHECK(bytes != NULL);
	for (uint32_t i = 0; i < p->job.state_bytes; i++)
		bytes[i] = (uint8_t)(i * 37);
	handle.crc = crc32c(0, bytes, p->job.state_bytes);
	p->state_bytes = task_state_encoded_bytes(&state);
	p->state = malloc(p->state_bytes);
	CHECK(p->state != NULL);
	task_state_encode(&state, p->state);
	free(bytes);
}

static void send(struct peer *peer, const Weir__Envelope *e)
{
	struct scale_peers *p = peer->all;

	CHECK(connection_send(peer->connection, e) == 0);
	p->sent += weir__envelope__get_packed_size(e) + MESSAGE_HEAD_BYTES;
	p->message_count++;
}

/* All subtasks of one TaskManager in one message. */
static void acknowledge(struct peer *peer, int64_t checkpoint_id)
{
	struct scale_peers *p = peer->all;
	uint32_t room = p->job.subtask_count / p->job.peer_count + 1;
	Weir__Acknowledge *acks = calloc(room, sizeof(*acks));
	Weir__Acknowledge **list = calloc(room, sizeof(struct Weir__Acknowledge *));
	Weir__CheckpointMetrics metrics = WEIR__CHECKPOINT_METRICS__INIT;
	Weir__AcknowledgeCheckpoints m = WEIR__ACKNOWLEDGE_CHECKPOINTS__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	CHECK(acks != NULL && list != NULL);
	metrics.sync_duration = 12345;
	metrics.async_duration = 2345678;
	metrics.bytes_persisted = metrics.total_bytes = (int64_t)p->job.state_bytes;
	for (uint32_t s = peer->index; s < p->job.subtask_count; s += p->job.peer_count) {
		Weir__Acknowledge *a = &acks[m.n_acks];

		weir__acknowledge__init(a);
		a->attempt = message_id_bytes(&p->job.attempts[s].id);
		a->checkpoint_id = checkpoint_id;
		a->metrics = &metrics;
		a->state = (ProtobufCBinaryData){p->state_bytes, p->state};
		list[m.n_acks++] = a;
	}
	m.acks = list;
	e.body_case = WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS;
	e.acknowledge_checkpoints = &m;
	send(peer, &e);
	free(acks);
	free(list);
}

static void on_received(void *owner, struct connection *c, const Weir__Envelope *e)
{
	struct peer *peer = owner;
	struct scale_peers *p = peer->all;

	(void)c;
	p->received += weir__envelope__get_packed_size(e) + MESSAGE_HEAD_BYTES;
	p->message_count++;
	if (e->body_case != WEIR__ENVELOPE__BODY_TRIGGER_CHECKPOINT ||
			e->trigger_checkpoint->checkpoint_id <= p->acknowledged_id)
		return;
	p->acknowledged_id = e->trigger_checkpoint->checkpoint_id;
	for (uint32_t i = 0; i < p->job.peer_count; i++)
		acknowledge(&p->peers[i], p->acknowledged_id);
	p->sent_id = p->acknowledged_id;
}

static void on_closed(void *owner, struct connection *c, const char *reason)
{
	(void)owner;
	(void)c;
	fprintf(stderr, "a TaskManager lost the coordinator: %s\n", reason);
	exit(1);
}

/* ---- life ---- */

static const struct connection_events events = {on_received, on_closed};

static void *run(void *context)
{
	loop_run(((struct scale_peers *)context)->loop);
	return NULL;
}

/* The first message says whose connection it is. */
static void open_peer(struct scale_peers *p, uint32_t index)
{
	struct peer *peer = &p->peers[index];
	Weir__RegisterTaskManager m = WEIR__REGISTER_TASK_MANAGER__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;

	*peer = (struct peer){.all = p, .index = index};
	CHECK(tcp_connection_open(&peer->connection, p->loop, "127.0.0.1", p->job.port, &events,
			      peer) == 0);
	m.pid = index;
	e.body_case = WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER;
	e.register_task_manager = &m;
	m.id = (char *)(uintptr_t) "peer";
	m.slot_count = 1;
	m.abi_version = WEIR_ABI_VERSION;
	m.protocol_version = MESSAGE_PROTOCOL_VERSION;
	send(peer, &e);
}

void scale_peers_start(struct scale_peers **out, const struct scale_job *job)
{
	struct scale_peers *p = calloc(1, sizeof(*p));

	CHECK(p != NULL);
	p->job = *job;
	p->peers = calloc(job->peer_count, sizeof(*p->peers));
	CHECK(p->peers != NULL);
	CHECK(loop_create(&p->loop) == 0);
	encode_state(p);
	for (uint32_t i = 0; i < job->peer_count; i++)
		open_peer(p, i);
	CHECK(pthread_create(&p->thread, NULL, run, p) == 0);
	*out = p;
}

bool scale_peers_have_sent(struct scale_peers *p, int64_t checkpoint_id)
{
	return p->sent_id >= checkpoint_id;
}

struct scale_bytes scale_peers_take_bytes(struct scale_peers *p)
{
	return (struct scale_bytes){
			.received = atomic_exchange(&p->received, 0),
			.sent = atomic_exchange(&p->sent, 0),
			.message_count = atomic_exchange(&p->message_count, 0),
	};
}

void scale_peers_stop(struct scale_peers *p)
{
	loop_stop_mt(p->loop);
	CHECK(pthread_join(p->thread, NULL) == 0);
	for (uint32_t i = 0; i < p->job.peer_count; i++)
		connection_close(p->peers[i].connection);
	loop_destroy(p->loop);
	free(p->peers);
	free(p->state);
	free(p);
}
