/* A whole job on two TaskManagers of one process, joined by net_ring ports: what it counts is what
 * it counts on one, also when all of it is given up and restored from a checkpoint. */

#include "nic/port.h"
#include "nic/port_transport.h"

#include "dataplane/base/clock.h"
#include "dataplane/channel/net_faults.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/operator/params.h"
#include "dataplane/operator/registry.h"
#include "dataplane/task/taskmanager_internal.h"
#include "dataplane/wire/buf.h"
#include "nic/eal.h"
#include "nic/host_memory.h"
#include "nic/mempool.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	BUF_BYTES = 8192,
	BUFS = 512,
	RING_DEPTH = 256,
	STATE_BYTES = 64 << 20,
	VALUES_MAX = 16,
	TASKS = 4, /* of two vertices; subtask i is TaskManager i's, when there are two */
	RECORDS = 600000,
	SECONDS_MAX = 60,
	DIGEST_COUNTERS = 4,
	NUMBER_BYTES = 16,
};

struct job_task {
	enum task_status status;
	bool has_ended;
	uint8_t *state; /* of the last checkpoint */
	size_t state_bytes;
	struct deployment_task deployed;
};

struct digest {
	uint64_t words[DIGEST_COUNTERS]; /* records, sum, xor, sum of values */
};

struct world {
	uint32_t tm_count;
	struct mempool *pool;
	struct rte_ring *rings[2]; /* i: what port i sends */
	struct port *ports[2];
	struct port_transport *transports[2];
	struct net_faults *faults[2];
	struct transport *wires[2];
	struct net_address addresses[2];
	void *memory[2];
	struct taskmanager *tms[2];
	char directory[64];
	enum alignment alignment;
	double loss; /* of frames; as many are doubled, and as many damaged */
	uint8_t attempt;
	struct job_task tasks[TASKS];
	int64_t checkpoint_id, completed_id;
	uint32_t missing; /* acknowledgements */
	struct digest digest;
};

/* ---- the job ---- */

static struct weir_value generator[VALUES_MAX], count[VALUES_MAX];

static void resolve(const char *name, const struct param_text *texts, uint32_t text_count,
		struct weir_value *values)
{
	char error[WEIR_ERROR_BYTES];
	uint32_t culprit;

	cr_assert_eq(params_resolve(registry_find(name), texts, text_count, values, &culprit,
				     error),
			0, "%s", error);
}

static void resolve_all(void)
{
	static char records[NUMBER_BYTES];
	struct param_text of_generator[] = {{"records", records}, {"keys", "5000"}};
	struct param_text of_count[] = {{"keys-max", "5000"}};

	snprintf(records, sizeof(records), "%d", RECORDS);
	resolve("generator", of_generator, 2, generator);
	resolve("keyed-count", of_count, 1, count);
}

static uint32_t home_of(const struct world *w, uint32_t task)
{
	return task % 2 % w->tm_count;
}

static void deploy_on(struct world *w, uint32_t tm)
{
	const struct deployment_operator sources[] = {
			{"generator", registry_find("generator"), generator}};
	const struct deployment_operator counters[] = {
			{"count", registry_find("keyed-count"), count},
			{"digest", registry_find("digest-sink"), NULL}};
	const struct deployment_vertex vertices[] = {
			{"make", 2, 1, sources}, {"counting", 2, 2, counters}};
	const struct deployment_edge edges[] = {{0, 1, PARTITION_HASH}};
	struct deployment_peer peer = {.address = w->addresses[1 - tm],
			.token = 7000u + w->attempt};
	struct deployment_task tasks[TASKS];
	struct deployment_remote remotes[TASKS];
	char error[TASKMANAGER_ERROR_BYTES];
	struct deployment d = {
			.job_name = "ring",
			.key_group_count = 128,
			.channel_credit_count = 4,
			.channel_queue_count = 4,
			.buffer_timeout_ns = 1000000,
			.checkpointing = true,
			.unaligned = w->alignment == ALIGNMENT_UNALIGNED,
			.subtasks_per_channel_state_file = 1,
			.max_concurrent_checkpoints = 1,
			.state_inline_bytes_max = 1024,
			.checkpoint_dir = w->directory,
			.restored_checkpoint_id = w->completed_id,
			.vertex_count = 2,
			.edge_count = 1,
			.vertices = vertices,
			.edges = edges,
			.tasks = tasks,
			.peer_count = w->tm_count - 1,
			.peers = &peer,
			.remotes = remotes,
	};

	for (uint32_t i = 0; i < TASKS; i++) {
		const struct deployment_task *t = &w->tasks[i].deployed;

		if (home_of(w, i) == tm)
			tasks[d.task_count++] = *t;
		else
			remotes[d.remote_count++] = (struct deployment_remote){
					.vertex = t->vertex, .subtask_index = t->subtask_index};
	}
	cr_assert_eq(taskmanager_deploy(w->tms[tm], &d, error), 0, "%s", error);
}

/* All of it, from the last checkpoint when there is one. */
static void deploy(struct world *w)
{
	w->attempt++;
	for (uint32_t i = 0; i < TASKS; i++) {
		struct job_task *t = &w->tasks[i];

		t->status = TASK_CREATED;
		t->has_ended = false;
		t->deployed = (struct deployment_task){.vertex = i / 2,
				.subtask_index = i % 2,
				.attempt.id.bytes = {(uint8_t)(i + 1), w->attempt},
				.state = t->state,
				.state_bytes = t->state_bytes};
	}
	for (uint32_t tm = 0; tm < w->tm_count; tm++)
		deploy_on(w, tm);
}

/* ---- what tasks say ---- */

static struct job_task *task_of(struct world *w, const struct report *r)
{
	return &w->tasks[r->attempt.id.bytes[0] - 1];
}

static void keep_state(struct job_task *t, const struct report *r)
{
	struct task_state whole = *r->state;

	if (r->in_flight != NULL) {
		whole.channel_count = r->in_flight->handle_count;
		whole.channels = r->in_flight->handles;
	}
	free(t->state);
	t->state_bytes = task_state_encoded_bytes(&whole);
	t->state = malloc(t->state_bytes);
	cr_assert_not_null(t->state);
	task_state_encode(&whole, t->state);
}

static void add_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	static const char *const names[DIGEST_COUNTERS] = {
			"records", "digest_sum", "digest_xor", "sum_of_values"};
	struct digest *d = context;

	for (uint32_t i = 0; i < DIGEST_COUNTERS; i++) {
		if (strcmp(uid, "digest") != 0 || strcmp(name, names[i]) != 0)
			continue;
		if (i == 2)
			d->words[i] ^= value;
		else
			d->words[i] += value;
	}
}

static void on_status(struct world *w, uint32_t tm, const struct report *r)
{
	struct job_task *t = task_of(w, r);

	cr_assert_neq(r->status, TASK_FAILED, "%s", r->text);
	t->status = r->status;
	if (r->status == TASK_FINISHED)
		taskmanager_visit_counters(w->tms[tm], r->attempt, add_counter, &w->digest);
}

static void on_acknowledge(struct world *w, const struct report *r)
{
	cr_assert_eq(r->checkpoint_id, w->checkpoint_id);
	keep_state(task_of(w, r), r);
	if (--w->missing > 0)
		return;
	w->completed_id = w->checkpoint_id;
	for (uint32_t i = 0; i < TASKS; i++)
		(void)taskmanager_confirm_checkpoint(w->tms[home_of(w, i)],
				w->tasks[i].deployed.attempt, w->completed_id, 0);
}

static void listen(struct world *w, uint32_t tm)
{
	const struct report *r;

	while ((r = taskmanager_next_report(w->tms[tm])) != NULL) {
		cr_assert_neq(r->kind, REPORT_DECLINE, "%s", r->text);
		if (r->kind == REPORT_STATUS)
			on_status(w, tm, r);
		else if (r->kind == REPORT_END_OF_DATA)
			task_of(w, r)->has_ended = true;
		else if (r->kind == REPORT_ACKNOWLEDGE)
			on_acknowledge(w, r);
		taskmanager_release_report(w->tms[tm], r);
	}
}

/* ---- steps ---- */

static void turn_until(struct world *w, bool (*is_so)(struct world *w), const char *what)
{
	uint64_t until_ns = clock_monotonic_ns() + UINT64_C(1000000000) * SECONDS_MAX;

	while (!is_so(w)) {
		cr_assert_lt(clock_monotonic_ns(), until_ns, "not within a minute: %s", what);
		for (uint32_t tm = 0; tm < w->tm_count; tm++) {
			worker_turn(w->tms[tm]->workers[0]);
			listen(w, tm);
		}
	}
}

static bool all_have(const struct world *w, enum task_status status)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		if (w->tasks[i].status != status)
			return false;
	}
	return true;
}

static bool are_running(struct world *w)
{
	return all_have(w, TASK_RUNNING);
}

static bool have_finished(struct world *w)
{
	return all_have(w, TASK_FINISHED);
}

static bool has_all_input(struct world *w)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		if (!w->tasks[i].has_ended)
			return false;
	}
	return true;
}

static bool are_gone(struct world *w)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		if (taskmanager_has_deployed(
				    w->tms[home_of(w, i)], w->tasks[i].deployed.attempt))
			return false;
	}
	return true;
}

static bool is_complete(struct world *w)
{
	return w->completed_id == w->checkpoint_id;
}

static uint64_t counted(struct world *w)
{
	struct task_numbers n[TASKS];
	uint64_t sum = 0;

	for (uint32_t tm = 0; tm < w->tm_count; tm++) {
		uint32_t rows = taskmanager_numbers(w->tms[tm], n, TASKS);

		for (uint32_t i = 0; i < rows; i++)
			sum += n[i].records_in;
	}
	return sum;
}

static bool is_under_way(struct world *w)
{
	return counted(w) > RECORDS / 8;
}

static bool is_further(struct world *w)
{
	return counted(w) > RECORDS / 2;
}

static void take_checkpoint(struct world *w)
{
	struct checkpoint_request request = {.checkpoint_id = ++w->checkpoint_id,
			.timestamp_ms = clock_wall_ms(),
			.kind = SNAPSHOT_CHECKPOINT,
			.alignment = w->alignment,
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE};
	char path[128];

	snprintf(path, sizeof(path), "%s/chk-%d", w->directory, (int)w->checkpoint_id);
	cr_assert_eq(mkdir(path, 0777), 0);
	w->missing = TASKS;
	for (uint32_t i = 0; i < 2; i++)
		cr_assert_eq(taskmanager_trigger_checkpoint(w->tms[home_of(w, i)],
					     w->tasks[i].deployed.attempt, &request),
				0);
	turn_until(w, is_complete, "the checkpoint completes");
}

static void run_to_its_end(struct world *w)
{
	turn_until(w, has_all_input, "all input is in");
	take_checkpoint(w); /* the last one, that all tasks wait for */
	turn_until(w, have_finished, "all tasks have finished");
	turn_until(w, are_gone, "all memory is back");
}

/* ---- life ---- */

static void make_port(struct world *w, int i)
{
	char name[32], text[NET_ADDRESS_TEXT_BYTES], error[PORT_ERROR_BYTES];

	snprintf(name, sizeof(name), "job%d", i);
	cr_assert_geq(rte_eth_from_rings(name, &w->rings[1 - i], 1, &w->rings[i], 1,
				      SOCKET_ID_ANY),
			0);
	snprintf(name, sizeof(name), "net_ring_job%d", i);
	struct port_config port = {.name = name, .rx_descriptors = 128, .tx_descriptors = 128,
			.worker_count = 1, .udp_port = NET_UDP_PORT_DEFAULT,
			.buf_bytes = BUF_BYTES};
	cr_assert_eq(port_create(&w->ports[i], &port, error), 0, "%s", error);
	cr_assert_eq(port_transport_create(&w->transports[i], w->ports[i], 0), 0);
	struct net_faults_config faults = {.seed = (uint64_t)i + 1, .loss = w->loss,
			.duplicate = w->loss, .corrupt = w->loss};
	cr_assert_eq(net_faults_create(&w->faults[i], port_transport_port(w->transports[i]),
				     &faults, clock_real()),
			0);
	w->wires[i] = net_faults_transport(w->faults[i]);
	snprintf(text, sizeof(text), "02:00:00:00:00:0%d 10.0.0.%d %d %u 128 1", i + 1, i + 1,
			NET_UDP_PORT_DEFAULT, port_frame_bytes_max(w->ports[i]));
	cr_assert_eq(net_address_parse(text, &w->addresses[i]), 0);
}

static void make_taskmanager(struct world *w, uint32_t i)
{
	static const uint32_t lcores[1] = {1};
	char error[TASKMANAGER_ERROR_BYTES];

	cr_assert_eq(host_memory_map(&w->memory[i], STATE_BYTES, false, error), 0, "%s", error);
	struct taskmanager_config config = {.worker_count = 1,
			.worker_lcores = lcores,
			.pool = mempool_bufs(w->pool),
			.pool_count = BUFS,
			.state_memory = w->memory[i],
			.state_bytes = STATE_BYTES,
			.storage = "auto",
			.clock = clock_real()};
	if (w->tm_count > 1) {
		config.transports = &w->wires[i];
		config.link_address = w->addresses[i];
		config.does_link_join_two = true;
		config.link_port = port_name(w->ports[i]);
		config.link_connect_timeout_ns = config.link_peer_timeout_ns =
				UINT64_C(10000000000);
	}
	cr_assert_eq(taskmanager_create(&w->tms[i], &config, error), 0, "%s", error);
}

static void start(struct world *w, uint32_t tm_count, enum alignment alignment, double loss)
{
	char name[32], error[512];

	*w = (struct world){.tm_count = tm_count, .alignment = alignment, .loss = loss,
			.directory = "/tmp/weir-ring-XXXXXX"};
	cr_assert_not_null(mkdtemp(w->directory));
	cr_assert_eq(mempool_create(&w->pool, BUFS, BUF_BYTES, 1, error), 0, "%s", error);
	for (int i = 0; i < 2 && tm_count > 1; i++) {
		snprintf(name, sizeof(name), "ring%d", i);
		w->rings[i] = rte_ring_create(name, RING_DEPTH, SOCKET_ID_ANY, 0);
		cr_assert_not_null(w->rings[i]);
	}
	for (int i = 0; i < 2 && tm_count > 1; i++)
		make_port(w, i);
	for (uint32_t i = 0; i < tm_count; i++)
		make_taskmanager(w, i);
}

static void stop(struct world *w)
{
	char command[128];

	for (uint32_t i = 0; i < w->tm_count; i++) {
		taskmanager_destroy(w->tms[i]);
		net_faults_destroy(w->faults[i]);
		port_transport_destroy(w->transports[i]);
		host_memory_unmap(w->memory[i], STATE_BYTES);
	}
	for (uint32_t i = 0; i < w->tm_count; i++)
		port_destroy(w->ports[i]);
	cr_expect_eq(buf_pool_used_count(mempool_bufs(w->pool)), 0, "buffers that are not back");
	mempool_destroy(w->pool);
	for (uint32_t i = 0; i < TASKS; i++)
		free(w->tasks[i].state);
	snprintf(command, sizeof(command), "rm -r %s", w->directory);
	cr_assert_eq(system(command), 0);
}

/* On one TaskManager, without a wire. */
static struct digest plain_digest(void)
{
	struct world w;

	start(&w, 1, ALIGNMENT_ALIGNED, 0);
	deploy(&w);
	run_to_its_end(&w);
	stop(&w);
	return w.digest;
}

static void crosses_and_is_restored(enum alignment alignment, double loss)
{
	struct port_counters counters;
	struct world w;

	eal_fixture_start("0", 256 << 20, NULL, 0);
	resolve_all();
	struct digest wanted = plain_digest();
	cr_assert_eq(wanted.words[DIGEST_COUNTERS - 1], RECORDS, "counts of all keys");
	start(&w, 2, alignment, loss);
	deploy(&w);
	turn_until(&w, are_running, "all tasks run");
	turn_until(&w, is_under_way, "records have crossed");
	take_checkpoint(&w);
	turn_until(&w, is_further, "more have");
	for (uint32_t tm = 0; tm < 2; tm++)
		taskmanager_cancel_all(w.tms[tm]);
	turn_until(&w, are_gone, "all memory is back");
	deploy(&w);
	turn_until(&w, has_all_input, "all input is in");
	uint64_t again = counted(&w);
	cr_expect(again > 0 && again < RECORDS, "it began in the middle: %" PRIu64, again);
	run_to_its_end(&w);
	cr_expect_eq(memcmp(&w.digest, &wanted, sizeof(wanted)), 0, "the digest is another one");
	for (uint32_t i = 0; i < 2; i++) {
		port_counters(w.ports[i], &counters);
		cr_expect_gt(counters.frames_in, 1000);
	}
	stop(&w);
	eal_stop();
}

Test(ring_job, counts_as_on_one_taskmanager_with_aligned_checkpoints)
{
	crosses_and_is_restored(ALIGNMENT_ALIGNED, 0);
}

Test(ring_job, counts_as_on_one_taskmanager_with_unaligned_checkpoints)
{
	crosses_and_is_restored(ALIGNMENT_UNALIGNED, 0);
}

Test(ring_job, counts_as_on_one_taskmanager_while_frames_are_lost)
{
	crosses_and_is_restored(ALIGNMENT_UNALIGNED, 0.02);
}
