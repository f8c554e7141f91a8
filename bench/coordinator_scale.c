/*
 * coordinator_scale: what one checkpoint of a large job costs the coordinator.
 *
 *   coordinator_scale SUBTASKS TASKMANAGERS CHECKPOINTS DIRECTORY
 *
 * The rules, the gateways, the messages, the connections and `_metadata` are those of
 * weir-coordinator; only the job master around them is replaced by the few lines below, because a
 * job master keeps a job in one TaskManager.  One thread is the coordinator and is measured by its
 * own CPU time, another is all TaskManagers.  Prints one line of JSON for each checkpoint.
 */

#include "bench/scale_peers.h"
#include "control/coordinator/acknowledgement_message.h"
#include "control/coordinator/checkpoint_coordinator.h"
#include "control/coordinator/completed_record.h"
#include "control/coordinator/execution.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/metadata/metadata.h"
#include "control/net/loop.h"
#include "control/net/tcp_listener.h"
#include "control/proto/connection.h"
#include "control/proto/durable.pb-c.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

enum { VERTICES = 10, STATE_BYTES = 1024, PATH_BYTES = 512, RETAINED = 3 };

/* Where CPU time went. */
enum part { PART_RULES, PART_STATES, PART_TRIGGER, PART_METADATA, PART_INDEX, PART_NOTIFY, PARTS };

static const char *const part_names[PARTS] = {
		"rules", "states", "trigger", "metadata", "index", "notify"};

struct side {
	uint32_t subtask_count, peer_count, joined_count;
	const char *directory;
	struct loop *loop;
	struct tcp_listener *listener;
	struct connection **connections;
	struct task_manager_gateway **gateways;
	struct execution *executions;
	struct execution_graph *graph;
	struct checkpoint_coordinator *c;
	struct acknowledgement *acks; /* of one message */
	int64_t id, completed_id;
	uint64_t at_ns;       /* of the last change of part */
	uint64_t spent_ns[PARTS];
	uint64_t metadata_bytes, full_bytes; /* memory when all have acknowledged */
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void begin(struct side *s)
{
	s->at_ns = cpu_ns();
}

/* What was spent since the last call goes to that part. */
static void book(struct side *s, enum part part)
{
	uint64_t now_ns = cpu_ns();

	s->spent_ns[part] += now_ns - s->at_ns;
	s->at_ns = now_ns;
}

static struct moment now(void)
{
	return (struct moment){clock_monotonic_ns(), clock_wall_ms()};
}

static uint64_t memory_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* ---- decisions ---- */

static void flush(struct side *s)
{
	for (uint32_t i = 0; i < s->peer_count; i++)
		task_manager_gateway_flush(s->gateways[i]);
}

static void trigger_tasks(struct side *s, const struct checkpoint_decision *d)
{
	const struct trigger_call call = {
			.checkpoint_id = d->checkpoint_id,
			.timestamp_ms = d->timestamp_ms,
			.alignment = (uint32_t)d->options.alignment,
			.aligned_timeout_ms = d->options.aligned_timeout_ms,
	};

	for (uint32_t i = 0; i < d->subtask_count; i++)
		execution_trigger_checkpoint(&s->executions[d->subtasks[i]], &call);
	flush(s);
}

static void notify_complete(struct side *s, const struct checkpoint_decision *d)
{
	for (uint32_t i = 0; i < d->subtask_count; i++)
		execution_notify_complete(
				&s->executions[d->subtasks[i]], d->checkpoint_id, d->other_id);
	flush(s);
	s->completed_id = d->checkpoint_id;
}

static void prepare_location(struct side *s, const struct checkpoint_decision *d)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/chk-%lld", s->directory, (long long)d->checkpoint_id);
	CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
	checkpoint_coordinator_on_location_prepared(s->c, d->token, 0, path, now());
}

static void fill_vertex(const struct side *s, const struct pending_checkpoint *p, uint32_t v,
		struct metadata_vertex *to, struct metadata_subtask *subtasks)
{
	const struct execution_vertex *vertex = execution_graph_vertex(s->graph, v);

	*to = (struct metadata_vertex){.uid = vertex->name, .parallelism = vertex->parallelism,
			.max_parallelism = 4096, .subtask_count = vertex->parallelism,
			.subtasks = subtasks};
	for (uint32_t i = 0; i < vertex->parallelism; i++) {
		const struct snapshot_state *state = &pending_checkpoint_subtask(
				p, execution_graph_subtask(s->graph, v, i))->state;

		subtasks[i] = (struct metadata_subtask){.index = i,
				.state = {state->bytes, state->byte_count}};
	}
}

static void write_metadata(struct side *s, const struct checkpoint_decision *d)
{
	struct metadata_vertex vertices[VERTICES];
	struct metadata_subtask *subtasks = calloc(s->subtask_count, sizeof(*subtasks));
	struct metadata m = {.checkpoint_id = d->checkpoint_id, .job_name = "scale",
			.weir_version = WEIR_VERSION, .job_text = "", .key_group_count = 4096,
			.vertex_count = VERTICES, .vertices = vertices};

	CHECK(subtasks != NULL);
	for (uint32_t v = 0; v < VERTICES; v++)
		fill_vertex(s, d->pending, v, &vertices[v],
				subtasks + v * (s->subtask_count / VERTICES));
	s->full_bytes = memory_bytes();
	CHECK(metadata_write(pending_checkpoint_location(d->pending), &m, &s->metadata_bytes) == 0);
	free(subtasks);
}

static void pack_record(const struct checkpoint_decision *d)
{
	Weir__CompletedRecord record;

	completed_record_fill(&record, d->completed);

	uint8_t *bytes = malloc(weir__completed_record__get_packed_size(&record));

	CHECK(bytes != NULL);
	weir__completed_record__pack(&record, bytes);
	free(bytes);
}

static void delete_checkpoint(struct side *s, const struct checkpoint_decision *d)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/" METADATA_FILE, d->deletion->location);
	CHECK(unlink(path) == 0);
	CHECK(rmdir(d->deletion->location) == 0);
	checkpoint_coordinator_on_deleted(s->c, d->token, 0, now());
}

static void carry_out(struct side *s, const struct checkpoint_decision *d)
{
	switch (d->kind) {
	case DECIDE_DRAW_ID:
		checkpoint_coordinator_on_id_drawn(s->c, d->token, 0, ++s->id, now());
		break;
	case DECIDE_PREPARE_LOCATION:
		prepare_location(s, d);
		break;
	case DECIDE_TRIGGER_TASKS:
		book(s, PART_RULES);
		trigger_tasks(s, d);
		book(s, PART_TRIGGER);
		break;
	case DECIDE_WRITE_METADATA:
		book(s, PART_RULES);
		write_metadata(s, d);
		book(s, PART_METADATA);
		checkpoint_coordinator_on_metadata_written(s->c, d->token, 0, now());
		break;
	case DECIDE_INDEX_ADD:
		book(s, PART_RULES);
		pack_record(d);
		book(s, PART_INDEX);
		checkpoint_coordinator_on_index_added(s->c, d->token, 0, now());
		break;
	case DECIDE_INDEX_REMOVE:
		checkpoint_coordinator_on_index_removed(s->c, d->token, 0, now());
		break;
	case DECIDE_DELETE:
		book(s, PART_RULES);
		delete_checkpoint(s, d);
		book(s, PART_INDEX);
		break;
	case DECIDE_NOTIFY_COMPLETE:
		book(s, PART_RULES);
		notify_complete(s, d);
		book(s, PART_NOTIFY);
		break;
	case DECIDE_REQUEST_DONE:
		CHECK(d->is_success);
		break;
	default:
		fprintf(stderr, "unexpected: %s\n", checkpoint_decision_name(d->kind));
		exit(1);
	}
}

static void pump(struct side *s)
{
	struct checkpoint_decision d;

	while (checkpoint_coordinator_next_decision(s->c, &d))
		carry_out(s, &d);
}

/* ---- messages ---- */

static void on_acknowledgements(struct side *s, const Weir__AcknowledgeCheckpoints *m)
{
	char text[COMPLETED_TEXT_BYTES];

	begin(s);
	for (size_t i = 0; i < m->n_acks; i++)
		CHECK(acknowledgement_read(&s->acks[i], m->acks[i], text) == 0);
	book(s, PART_STATES);
	for (size_t i = 0; i < m->n_acks; i++)
		checkpoint_coordinator_on_acknowledge(s->c, &s->acks[i], now());
	pump(s);
	book(s, PART_RULES);
}

static void on_received(void *owner, struct connection *c, const Weir__Envelope *e)
{
	struct side *s = owner;

	if (e->body_case == WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER) {
		uint32_t index = e->register_task_manager->pid;

		CHECK(index < s->peer_count && s->connections[index] == NULL);
		s->connections[index] = c;
		CHECK(task_manager_gateway_create(&s->gateways[index], c) == 0);
		s->joined_count++;
	} else if (e->body_case == WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS) {
		on_acknowledgements(s, e->acknowledge_checkpoints);
	}
}

static void on_closed(void *owner, struct connection *c, const char *reason)
{
	(void)owner;
	(void)c;
	fprintf(stderr, "the coordinator lost a TaskManager: %s\n", reason);
	exit(1);
}

static void on_accepted(void *context, struct connection *c)
{
	static const struct connection_events events = {on_received, on_closed};

	connection_own(c, &events, context);
}

/* ---- the job ---- */

static void make_graph(struct side *s)
{
	struct execution_vertex vertices[VERTICES];
	struct execution_edge edges[VERTICES - 1];
	char names[VERTICES][16];

	for (uint32_t v = 0; v < VERTICES; v++) {
		snprintf(names[v], sizeof(names[v]), "vertex-%u", v);
		vertices[v] = (struct execution_vertex){
				.name = names[v], .parallelism = s->subtask_count / VERTICES};
		if (v > 0)
			edges[v - 1] = (struct execution_edge){v - 1, v, EDGE_ALL_TO_ALL};
	}
	CHECK(execution_graph_create(&s->graph, vertices, VERTICES, edges, VERTICES - 1) == 0);
}

static void make_coordinator(struct side *s)
{
	struct checkpoint_coordinator_config config = checkpoint_coordinator_config_default();

	config.retained_count = RETAINED;
	CHECK(checkpoint_coordinator_config_normalise(&config) == NULL);
	checkpoint_coordinator_create(&s->c, &config, s->graph);
}

static struct attempt_id *make_attempts(struct side *s)
{
	struct attempt_id *attempts = calloc(s->subtask_count, sizeof(*attempts));

	s->executions = calloc(s->subtask_count, sizeof(*s->executions));
	CHECK(attempts != NULL && s->executions != NULL);
	for (uint32_t i = 0; i < s->subtask_count; i++) {
		execution_reset(&s->executions[i], i, 0, 1, 0);
		attempts[i] = s->executions[i].attempt;
		execution_graph_set_attempt(s->graph, i, attempts[i]);
		execution_graph_set_state(s->graph, i, EXECUTION_RUNNING);
	}
	return attempts;
}

static void wait_for_peers(struct side *s)
{
	while (s->joined_count < s->peer_count)
		loop_turn(s->loop, SECOND_NS);
	for (uint32_t i = 0; i < s->subtask_count; i++)
		execution_take_slot(&s->executions[i], i % s->peer_count,
				s->gateways[i % s->peer_count]);
}

/* ---- measuring ---- */

static void print(const struct side *s, uint64_t all_ns, uint64_t wall_ns, uint64_t rest_bytes,
		const struct scale_bytes *bytes)
{
	uint64_t booked_ns = 0;

	printf("{\"subtasks\": %u, \"taskmanagers\": %u, \"all_ms\": %.4f, \"wall_ms\": %.4f",
			s->subtask_count, s->peer_count, (double)all_ns / 1e6,
			(double)wall_ns / 1e6);
	for (int i = 0; i < PARTS; i++) {
		printf(", \"%s_ms\": %.4f", part_names[i], (double)s->spent_ns[i] / 1e6);
		booked_ns += s->spent_ns[i];
	}
	printf(", \"receive_ms\": %.4f", (double)(all_ns - booked_ns) / 1e6);
	printf(", \"bytes_in\": %llu, \"bytes_out\": %llu, \"messages\": %llu",
			(unsigned long long)bytes->sent, (unsigned long long)bytes->received,
			(unsigned long long)bytes->message_count);
	printf(", \"metadata_bytes\": %llu, \"memory_at_rest\": %llu, \"memory_full\": %llu}\n",
			(unsigned long long)s->metadata_bytes, (unsigned long long)rest_bytes,
			(unsigned long long)s->full_bytes);
	fflush(stdout);
}

/* One checkpoint, from the request to the notification. */
static void measure(struct side *s, struct scale_peers *peers)
{
	const struct trigger_request request = {.kind = REQUEST_CHECKPOINT};
	uint64_t rest_bytes = memory_bytes();
	uint64_t handle, wall_ns = clock_monotonic_ns();
	uint64_t all_ns = cpu_ns();

	memset(s->spent_ns, 0, sizeof(s->spent_ns));
	begin(s);
	CHECK(checkpoint_coordinator_request(s->c, &request, now(), &handle) == 0);
	pump(s);
	book(s, PART_RULES);
	/* TaskManagers are other machines: here they must not take turns with the coordinator. */
	while (!scale_peers_have_sent(peers, s->id))
		usleep(1000);
	while (s->completed_id < s->id)
		loop_turn(s->loop, SECOND_NS);
	all_ns = cpu_ns() - all_ns;
	wall_ns = clock_monotonic_ns() - wall_ns;
	/* The notifications are on their way. */
	usleep(20000);

	struct scale_bytes bytes = scale_peers_take_bytes(peers);

	print(s, all_ns, wall_ns, rest_bytes, &bytes);
}

static void run(struct side *s, uint32_t checkpoint_count)
{
	const uint16_t any[2] = {0, 0};
	struct scale_peers *peers;

	make_graph(s);
	make_coordinator(s);

	struct attempt_id *attempts = make_attempts(s);

	s->acks = calloc(s->subtask_count / s->peer_count + 1, sizeof(*s->acks));
	s->connections = calloc(s->peer_count, sizeof(struct connection *));
	s->gateways = calloc(s->peer_count, sizeof(struct task_manager_gateway *));
	CHECK(s->acks != NULL && s->connections != NULL && s->gateways != NULL);
	CHECK(loop_create(&s->loop) == 0);
	CHECK(tcp_listener_create(&s->listener, s->loop, "127.0.0.1", any, on_accepted, s) == 0);
	scale_peers_start(&peers,
			&(struct scale_job){.subtask_count = s->subtask_count,
					.peer_count = s->peer_count,
					.parallelism = s->subtask_count / VERTICES,
					.state_bytes = STATE_BYTES,
					.attempts = attempts,
					.port = tcp_listener_port(s->listener)});
	wait_for_peers(s);
	(void)scale_peers_take_bytes(peers);
	for (uint32_t i = 0; i < checkpoint_count; i++)
		measure(s, peers);
	scale_peers_stop(peers);
	free(attempts);
}

static void clear(struct side *s)
{
	for (uint32_t i = 0; i < s->peer_count; i++) {
		task_manager_gateway_destroy(s->gateways[i]);
		connection_close(s->connections[i]);
	}
	tcp_listener_destroy(s->listener);
	loop_destroy(s->loop);
	checkpoint_coordinator_destroy(s->c);
	execution_graph_destroy(s->graph);
	free(s->executions);
	free(s->connections);
	free(s->gateways);
	free(s->acks);
}

static uint32_t number(const char *word, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);

	if (*word == '\0' || *end != '\0' || n < min || n > max) {
		fprintf(stderr, "coordinator_scale: '%s' is not in %u..%u\n", word, min, max);
		exit(2);
	}
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	struct side s = {0};

	if (argc != 5) {
		fprintf(stderr, "usage: coordinator_scale SUBTASKS TASKMANAGERS CHECKPOINTS "
				"DIRECTORY\n");
		return 2;
	}
	s.subtask_count = number(argv[1], VERTICES, 100000) / VERTICES * VERTICES;
	s.peer_count = number(argv[2], 1, 500);
	s.directory = argv[4];
	run(&s, number(argv[3], 1, 100000));
	clear(&s);
	return 0;
}
