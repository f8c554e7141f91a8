/*
 * drain: how fast buffers in flight reach a channel-state file.  The product's own writer, a pool
 * of mbufs, no job around it: every buffer of the pool is handed in at once, over 16 channels, and
 * the checkpoint is waited for until its file is durable.
 *
 * usage: drain DIRECTORY MEBIBYTES BUF_BYTES SECONDS direct|buffered|threads
 *
 * One line of JSON for each checkpoint: bytes of records, nanoseconds from handing in to durable,
 * of those the nanoseconds the lcore was in the writer, CPU time of the thread, and bytes of the
 * pool that were copied: every memcpy and memmove of the program is counted (--wrap).
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_probe.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/checkpoint/store_share.h"
#include "dataplane/wire/buf.h"
#include "nic/eal.h"
#include "nic/mempool.h"

enum { CHANNELS = 16, REGIONS_MAX = 32, CORES = 1 };

struct drain {
	const char *directory;
	struct buf_pool *pool;
	struct buf **bufs;
	uint32_t buf_count;
	struct store *store;
	struct store_share *share;
	struct channel_state_writer *writer;
	bool is_direct, is_registered;
	int64_t checkpoint_id;
};

/* ---- copies ---- */

static struct iovec regions[REGIONS_MAX];
static uint32_t region_count;
static uint64_t copied_bytes;

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

static void count(const void *from, size_t bytes)
{
	for (uint32_t i = 0; i < region_count; i++) {
		const char *base = regions[i].iov_base;

		if ((const char *)from >= base && (const char *)from < base + regions[i].iov_len)
			copied_bytes += bytes;
	}
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	count(from, bytes);
	return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	count(from, bytes);
	return __real_memmove(to, from, bytes);
}

/* ---- the writer ---- */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "drain: %s: %s\n", what, why);
	exit(1);
}

static void open_store(struct drain *d, const char *path)
{
	char why[STORE_WHY_BYTES], text[CHANNEL_STATE_PROBE_TEXT_BYTES];
	bool is_threads = strcmp(path, "threads") == 0;

	if (store_open(&d->store, is_threads ? STORE_THREADS : STORE_URING, why) != 0)
		fail("storage", why);
	region_count = buf_pool_regions(d->pool, regions, REGIONS_MAX);
	if (strcmp(path, "direct") == 0) {
		d->is_direct = channel_state_probe(d->directory, text);
		if (!d->is_direct)
			fail("direct", text);
		d->is_registered = store_enlist_buffers(
				d->store, regions, region_count, 1, why) == 0;
		if (!d->is_registered)
			fprintf(stderr, "drain: %s\n", why);
	}
	CHECK(store_share_create(&d->share, d->store) == 0);
}

static void make_writer(struct drain *d)
{
	struct channel_state_executor_config config = {
		.store = store_share_attach(d->share),
		.checkpoint_dir = d->directory,
		.subtask_count = 1,
		.channel_count = CHANNELS,
		.buf_count = d->buf_count,
		/* What is with the disk is bounded by its queue alone. */
		.issued_in_max = 64,
		.issued_out_max = 64,
		.staging_bytes = 4 << 20,
		.patience_ns = UINT64_C(10000000000),
		.has_direct = d->is_direct,
	};
	struct channel_state_subtask subtask = {"drain", 0, 1, 0, {CHANNELS}, {0}};
	void *memory = aligned_alloc(
			STORE_ALIGN_BYTES, channel_state_executor_memory_bytes(&config));

	CHECK(memory != NULL);
	d->writer = channel_state_executor_add(
			channel_state_executor_create_at(memory, &config), &subtask);
}

static void fill(struct drain *d)
{
	struct prng p;

	prng_seed(&p, 1);
	d->buf_count = d->pool->buf_count;
	d->bufs = calloc(d->buf_count, sizeof(d->bufs[0]));
	CHECK(d->bufs != NULL);
	for (uint32_t i = 0; i < d->buf_count; i++) {
		struct buf *b = buf_alloc(d->pool);

		if (b == NULL) { /* some are in the caches of other lcores */
			d->buf_count = i;
			break;
		}
		for (uint32_t k = 0; k < b->capacity_bytes / 8; k++)
			((uint64_t *)(void *)b->data)[k] = prng_next(&p);
		b->size_bytes = b->capacity_bytes;
		b->first_record = 0;
		d->bufs[i] = b;
	}
}

/* ---- one checkpoint ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void hand_in(struct drain *d, int64_t id)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	CHECK(channel_state_writer_start(d->writer, id, &options) == 0);
	for (uint32_t i = 0; i < d->buf_count; i++)
		channel_state_writer_add_input_data(d->writer, id,
				(struct channel_info){0, i % CHANNELS}, &d->bufs[i], 1, 0);
	channel_state_writer_finish_input(d->writer, id);
	channel_state_writer_finish_output(d->writer, id);
}

/* The nanoseconds spent in the writer; between its steps an lcore serves the stream. */
static uint64_t await(struct drain *d, int64_t id)
{
	struct timespec pause = {.tv_nsec = 1000};
	struct clock *clock = clock_real();
	uint64_t busy_ns = 0;

	while (!channel_state_writer_is_done(d->writer, id)) {
		uint64_t from_ns = clock->now_ns(clock);
		uint32_t work = channel_state_writer_step(d->writer, from_ns);

		busy_ns += clock->now_ns(clock) - from_ns;
		if (work == 0)
			nanosleep(&pause, NULL);
	}
	return busy_ns;
}

static void drain_once(struct drain *d)
{
	char path[512], chk[256];
	const char *text;
	enum decline_reason reason;
	struct clock *clock = clock_real();
	int64_t id = ++d->checkpoint_id;

	snprintf(chk, sizeof(chk), "%s/chk-%" PRId64, d->directory, id);
	CHECK(mkdir(chk, 0755) == 0);
	copied_bytes = 0;
	uint64_t began_ns = clock->now_ns(clock), cpu = cpu_ns();
	hand_in(d, id);
	uint64_t in_writer_ns = clock->now_ns(clock) - began_ns;
	in_writer_ns += await(d, id);
	uint64_t took_ns = clock->now_ns(clock) - began_ns;
	if (channel_state_writer_outcome(d->writer, id, &reason, &text) != 0)
		fail("checkpoint", text);
	const struct channel_state_result *r = channel_state_writer_result(d->writer, id);
	printf("{\"bytes\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"lcore_ns\": %" PRIu64
	       ", \"cpu_ns\": %" PRIu64 ", \"buffers\": %u, \"copied_bytes\": %" PRIu64
	       ", \"registered\": %s}\n",
			r->bytes, took_ns, in_writer_ns, cpu_ns() - cpu, r->buf_count, copied_bytes,
			d->is_registered ? "true" : "false");
	fflush(stdout);
	snprintf(path, sizeof(path), "%s/%s", chk, r->file);
	channel_state_writer_remove(d->writer, id);
	CHECK(unlink(path) == 0 && rmdir(chk) == 0);
}

static void start_eal(size_t bytes)
{
	static const uint32_t cpus[CORES] = {1};
	char line[EAL_LINE_BYTES], error[EAL_ERROR_BYTES];
	struct eal_config eal = {.worker_cpus = cpus, .worker_count = CORES,
		.control_cpus = "0-1", .memory_bytes = bytes};

	if (eal_start(&eal, line, error) != 0)
		fail("EAL", error);
}

int main(int argc, char **argv)
{
	struct drain d = {0};
	struct mempool *pool;
	char error[512];

	if (argc != 6) {
		fprintf(stderr, "usage: drain DIRECTORY MEBIBYTES BUF_BYTES SECONDS "
				"direct|buffered|threads\n");
		return 2;
	}
	uint32_t buf_bytes = (uint32_t)strtoul(argv[3], NULL, 10);
	uint32_t buf_count = (uint32_t)((strtoull(argv[2], NULL, 10) << 20) / buf_bytes);
	struct clock *clock = clock_real();
	uint64_t until_ns = (uint64_t)(strtod(argv[4], NULL) * 1e9);

	d.directory = argv[1];
	start_eal(mempool_memory_bytes(buf_count, buf_bytes, CORES));
	if (mempool_create(&pool, buf_count, buf_bytes, CORES, error) != 0)
		fail("pool", error);
	d.pool = mempool_bufs(pool);
	fill(&d);
	open_store(&d, argv[5]);
	make_writer(&d);
	until_ns += clock->now_ns(clock);
	do {
		drain_once(&d);
	} while (clock->now_ns(clock) < until_ns);
	return 0;
}
