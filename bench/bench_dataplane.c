/*
 * bench_dataplane: the keyed-count job on the door of the data plane, without coordinator and TCP:
 * records a second, and what checkpoints in the same process cost: phases of half a second with
 * and without them take turns, and each neighbouring pair gives one figure of the loss.
 *
 * usage: bench_dataplane KEYS SECONDS INTERVAL_MS (0: no checkpoints) DIRECTORY
 */

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/operator/params.h"
#include "dataplane/operator/registry.h"
#include "dataplane/task/taskmanager.h"
#include "nic/eal.h"
#include "nic/host_memory.h"
#include "nic/mempool.h"

enum { WORKERS = 2, BUFFERS = 128, STATE_BYTES = 512 << 20, TASKS = 4, VALUES_MAX = 16 };

#define PHASE_NS UINT64_C(500000000)

struct bench {
	struct taskmanager *tm;
	const char *directory;
	int64_t checkpoint_id;   /* the one under way, 0: none */
	int64_t last_id;
	uint32_t acks_missing;
	uint64_t triggered_ns;
	uint64_t completed, declined, took_ns, bytes;
	struct deployment_task tasks[TASKS];
};

static void resolve(const char *name, const struct param_text *texts, uint32_t count,
		struct weir_value *values)
{
	char error[WEIR_ERROR_BYTES];
	uint32_t culprit;

	if (params_resolve(registry_find(name), texts, count, values, &culprit, error) != 0) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
}

static void deploy(struct bench *b, const char *keys)
{
	static struct weir_value generator[VALUES_MAX], count[VALUES_MAX], sink[VALUES_MAX];
	struct param_text generator_texts[] = {{"keys", keys}};
	char keys_max[32], error[TASKMANAGER_ERROR_BYTES];
	struct param_text count_texts[] = {{"keys-max", keys_max}};
	uint64_t key_count = strtoull(keys, NULL, 10);

	/* Room for half of them and what chance adds, as in keyed_count.py. */
	snprintf(keys_max, sizeof(keys_max), "%" PRIu64, key_count / 2 + key_count / 8 + 64);

	resolve("generator", generator_texts, 1, generator);
	resolve("keyed-count", count_texts, 1, count);
	resolve("digest-sink", NULL, 0, sink);
	struct deployment_operator sources[] = {
		{"source", registry_find("generator"), generator}};
	struct deployment_operator counters[] = {
		{"count", registry_find("keyed-count"), count},
		{"sink", registry_find("digest-sink"), sink}};
	struct deployment_vertex vertices[] = {
		{"generate", WORKERS, 1, sources}, {"count", WORKERS, 2, counters}};
	struct deployment_edge edges[] = {{0, 1, PARTITION_HASH}};
	for (uint32_t i = 0; i < TASKS; i++) {
		b->tasks[i] = (struct deployment_task){
			.vertex = i / WORKERS, .subtask_index = i % WORKERS};
		b->tasks[i].attempt.id.bytes[0] = (uint8_t)(i + 1);
	}
	struct deployment d = {
		.job_name = "bench",
		.key_group_count = 128,
		.channel_credit_count = 4,
		.channel_queue_count = 4,
		.buffer_timeout_ns = 100000000,
		.checkpointing = true,
		.max_concurrent_checkpoints = 1,
		.state_inline_bytes_max = 20480,
		.checkpoint_dir = b->directory,
		.vertex_count = 2,
		.edge_count = 1,
		.task_count = TASKS,
		.vertices = vertices,
		.edges = edges,
		.tasks = b->tasks,
	};
	if (taskmanager_deploy(b->tm, &d, error) != 0) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
}

static void trigger(struct bench *b, int64_t id, uint64_t now_ns)
{
	char path[1024];
	struct checkpoint_request request = {
		.checkpoint_id = id,
		.timestamp_ms = clock_wall_ms(),
		.kind = SNAPSHOT_CHECKPOINT,
		.alignment = ALIGNMENT_ALIGNED,
		.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
	};

	snprintf(path, sizeof(path), "%s/chk-%" PRId64, b->directory, id);
	CHECK(mkdir(path, 0777) == 0);
	b->checkpoint_id = id;
	b->acks_missing = TASKS;
	b->triggered_ns = now_ns;
	for (uint32_t i = 0; i < WORKERS; i++)
		CHECK(taskmanager_trigger_checkpoint(b->tm, b->tasks[i].attempt, &request) == 0);
}

static void take_reports(struct bench *b)
{
	const struct report *r;

	while ((r = taskmanager_next_report(b->tm)) != NULL) {
		if (r->kind == REPORT_ACKNOWLEDGE && r->checkpoint_id == b->checkpoint_id) {
			b->acks_missing--;
			b->bytes += (uint64_t)r->metrics.total_bytes;
			if (b->acks_missing == 0) {
				b->completed++;
				b->took_ns += clock_monotonic_ns() - b->triggered_ns;
				b->checkpoint_id = 0;
			}
		} else if (r->kind == REPORT_DECLINE) {
			fprintf(stderr, "declined %" PRId64 ": %s\n", r->checkpoint_id, r->text);
			b->declined++;
			b->checkpoint_id = 0;
		} else if (r->kind == REPORT_STATUS && r->status == TASK_FAILED) {
			fprintf(stderr, "failed: %s\n", r->text);
			exit(1);
		}
		taskmanager_release_report(b->tm, r);
	}
}

static uint64_t counted(struct bench *b)
{
	struct task_numbers n[TASKS];
	uint64_t sum = 0;
	uint32_t count = taskmanager_numbers(b->tm, n, TASKS);

	for (uint32_t i = 0; i < count; i++)
		sum += n[i].records_in;
	return sum;
}

/* Records counted a second in one phase; with an interval, with checkpoints. */
static double phase(struct bench *b, uint64_t length_ns, uint64_t interval_ns)
{
	uint64_t begin_ns = clock_monotonic_ns(), next_ns = begin_ns, now_ns = begin_ns;
	uint64_t before = counted(b);

	while (now_ns - begin_ns < length_ns) {
		uint64_t end_ns = begin_ns + length_ns;
		struct pollfd fd = {.fd = taskmanager_report_fd(b->tm), .events = POLLIN};
		uint64_t until_ns = interval_ns > 0 && next_ns < end_ns ? next_ns : end_ns;
		uint64_t count;

		uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec wait = {.tv_nsec = (long)(wait_ns % 1000000000)};

		(void)ppoll(&fd, 1, &wait, NULL);
		if (fd.revents != 0)
			CHECK(read(fd.fd, &count, sizeof(count)) > 0);
		take_reports(b);
		now_ns = clock_monotonic_ns();
		if (interval_ns > 0 && now_ns >= next_ns && b->checkpoint_id == 0) {
			trigger(b, ++b->last_id, now_ns);
			next_ns += interval_ns;
		}
	}
	return (double)(counted(b) - before) * 1e9 / (double)(now_ns - begin_ns);
}

static void run(struct bench *b, uint64_t length_ns, uint64_t interval_ns)
{
	uint32_t pairs = (uint32_t)(length_ns / (2 * PHASE_NS));
	double loss_sum = 0, square_sum = 0, off_sum = 0;

	if (interval_ns == 0 || pairs < 2) {
		printf("%.1f M records/s\n", phase(b, length_ns, interval_ns) / 1e6);
		return;
	}
	for (uint32_t i = 0; i < pairs; i++) {
		double off = phase(b, PHASE_NS, 0), on = phase(b, PHASE_NS, interval_ns);
		double loss = 100 * (1 - on / off);

		off_sum += off;
		loss_sum += loss;
		square_sum += loss * loss;
	}
	double mean = loss_sum / pairs;
	double deviation = sqrt((square_sum - pairs * mean * mean) / (pairs - 1));

	printf("%.1f M records/s without; %" PRIu64 " checkpoints, %" PRIu64 " declined, "
	       "%.2f ms and %.1f MiB each; loss %.2f %% +- %.2f\n",
			off_sum / pairs / 1e6, b->completed, b->declined,
			(double)b->took_ns / 1e6 / (double)b->completed,
			(double)b->bytes / 1048576.0 / (double)b->completed, mean,
			1.96 * deviation / sqrt(pairs));
}

int main(int argc, char **argv)
{
	char line[EAL_LINE_BYTES], error[EAL_ERROR_BYTES];
	const uint32_t cpus[WORKERS] = {0, 1}, lcores[WORKERS] = {1, 2};
	struct mempool *pool;
	void *memory;
	struct bench b = {.directory = argc > 4 ? argv[4] : "."};

	if (argc != 5) {
		fprintf(stderr, "usage: bench_dataplane KEYS SECONDS INTERVAL_MS DIRECTORY\n");
		return 2;
	}
	struct eal_config eal = {.worker_cpus = cpus, .worker_count = WORKERS,
		.control_cpus = "0-1",
		.memory_bytes = mempool_memory_bytes(BUFFERS, BUF_BYTES_DEFAULT, WORKERS)};
	if (eal_start(&eal, line, error) != 0 ||
			host_memory_map(&memory, STATE_BYTES, false, error) != 0 ||
			mempool_create(&pool, BUFFERS, BUF_BYTES_DEFAULT, WORKERS, error) != 0) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	struct taskmanager_config config = {.worker_count = WORKERS, .worker_lcores = lcores,
		.pool = mempool_bufs(pool), .pool_count = BUFFERS, .state_memory = memory,
		.state_bytes = STATE_BYTES, .storage = "auto", .clock = clock_real()};
	if (taskmanager_create(&b.tm, &config, error) != 0 ||
			taskmanager_start(b.tm, error) != 0) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	deploy(&b, argv[1]);
	run(&b, (uint64_t)(atof(argv[2]) * 1e9), (uint64_t)atoi(argv[3]) * 1000000);
	taskmanager_stop(b.tm);
	taskmanager_destroy(b.tm);
	mempool_destroy(pool);
	host_memory_unmap(memory, STATE_BYTES);
	eal_stop();
	return 0;
}
