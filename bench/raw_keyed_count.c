/*
 * raw_keyed_count: the ceiling of the keyed-count job: the same records, hash, exchange, buffers
 * and table in one loop, and nothing else.  No mailbox, no barriers, no credit, no operators.
 *
 * Two pinned threads; each makes records (key, 1), sends them by key group through 2 x 2
 * single-producer single-consumer rings in buffers of 32 KiB, and counts what arrives.  Beside
 * it, the yardstick of the bench itself: two threads that only count records made before.
 *
 * usage: raw_keyed_count KEYS CPU,CPU
 * Reads commands from stdin, one a line, and answers each with one line of JSON; between commands
 * every thread sleeps, so that it can take turns with a job on the same cores.
 *   run MS     make, exchange and count for MS milliseconds
 *   count MS   only count
 * At the end of stdin it proves that no record was lost, and ends.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <sched.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/key_group.h"
#include "dataplane/base/prng.h"
#include "dataplane/operator/counted_record.h"
#include "nic/host_memory.h"

enum {
	THREADS = 2,
	BUF_RECORDS = BUF_BYTES_DEFAULT / sizeof(struct counted_record),
	BUFS_PER_THREAD = 16, /* as many as two channels of 4 + 4 buffers */
	RING_SLOTS = 64,      /* more than there are buffers */
	MAKE_RECORDS = 512,   /* between two looks at the rings */
	GROUP_COUNT = 64,     /* keys between asking for memory and touching it */
	LINE_SLOTS = 4,
	WARM_UP_MS = 50,
	IDLE_TURNS_MAX = 256, /* before the core is offered to others */
};

#define FREE_KEY UINT64_MAX

enum mode { MODE_EXCHANGE, MODE_COUNT };

struct buffer {
	struct counted_record *records;
	uint32_t count;
};

/* Slots in the order of the hash; a search begins at the first slot of a line. */
struct table {
	struct counted_record *slots;
	uint64_t base, scale, slot_count, count_max, count;
};

struct raw;

struct thread {
	struct raw *raw;
	uint32_t index, cpu;
	pthread_t id;
	sem_t go, done;
	/* makes */
	uint64_t random;
	uint32_t free_count;
	struct buffer *open[THREADS];
	struct buffer *free[BUFS_PER_THREAD];
	struct buffer buffers[BUFS_PER_THREAD];
	/* counts */
	struct table table;
	struct counted_record *ready; /* for MODE_COUNT */
	alignas(LINE_BYTES) _Atomic uint64_t counted;
};

struct raw {
	uint64_t mask;
	uint64_t ready_count; /* a multiple of BUF_RECORDS */
	enum mode mode;
	atomic_bool must_stop;
	bool must_end;
	struct rte_ring *data[THREADS][THREADS];  /* [from][to] */
	struct rte_ring *empty[THREADS][THREADS]; /* [from][to], buffers on their way back */
	struct thread threads[THREADS];
};

/* ---- count ---- */

static void *take_memory(size_t bytes)
{
	char error[512];
	void *memory;

	if (host_memory_map(&memory, bytes, false, error) != 0) {
		fprintf(stderr, "raw_keyed_count: %s\n", error);
		exit(1);
	}
	memset(memory, 0, bytes);
	return memory;
}

static void table_create(struct table *t, uint32_t index, uint64_t key_count)
{
	/* A half of the keys, and what chance adds to it. */
	t->count_max = key_count / 2 + key_count / 8 + 64;
	uint64_t home_count = (2 * t->count_max + LINE_SLOTS - 1) / LINE_SLOTS * LINE_SLOTS;

	t->base = (uint64_t)index << 63;
	t->scale = 2 * home_count; /* half of all hashes */
	t->slot_count = home_count + t->count_max + LINE_SLOTS;
	t->slots = take_memory(t->slot_count * sizeof(t->slots[0]));
	for (uint64_t i = 0; i < t->slot_count; i++)
		t->slots[i].key = FREE_KEY;
}

static inline uint64_t home_of(const struct table *t, uint64_t key)
{
	uint64_t offset = key_hash(&key, sizeof(key)) - t->base;

	return (uint64_t)((unsigned __int128)offset * t->scale >> 64) &
			~(uint64_t)(LINE_SLOTS - 1);
}

static __attribute__((noinline)) void count_slowly(
		struct table *t, const struct counted_record *record, uint64_t slot)
{
	while (t->slots[slot].key != record->key && t->slots[slot].key != FREE_KEY)
		slot++;
	if (t->slots[slot].key == FREE_KEY) {
		CHECK(++t->count <= t->count_max);
		t->slots[slot] = (struct counted_record){record->key, 0};
	}
	t->slots[slot].value += record->value;
}

/* A bit for the slot of the line that holds the key.  The compiler must not make branches of it:
 * which slot it is cannot be foreseen. */
static inline uint32_t hits_of(const struct counted_record *line, uint64_t key)
{
	uint32_t hits = 0;

	for (uint32_t i = 0; i < LINE_SLOTS; i++)
		hits |= (uint32_t)(line[i].key == key) << i;
	__asm__("" : "+r"(hits));
	return hits;
}

static inline void count_group(
		struct table *t, const struct counted_record *records, uint32_t count)
{
	uint64_t home[GROUP_COUNT];
	struct counted_record *slots = t->slots;

	for (uint32_t i = 0; i < count; i++) {
		home[i] = home_of(t, records[i].key);
		__builtin_prefetch(&slots[home[i]], 1, 3);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct counted_record *line = &slots[home[i]];
		uint32_t hits = hits_of(line, records[i].key);

		/* One in fifty stands in the line behind. */
		if (__builtin_expect(hits == 0, 0)) {
			line += LINE_SLOTS;
			hits = hits_of(line, records[i].key);
		}
		if (__builtin_expect(hits != 0, 1))
			line[__builtin_ctz(hits)].value += records[i].value;
		else
			count_slowly(t, &records[i], home[i]);
	}
}

static void count_records(struct thread *t, const struct counted_record *records, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += GROUP_COUNT)
		count_group(&t->table, records + i,
				count - i < GROUP_COUNT ? count - i : GROUP_COUNT);
	atomic_store_explicit(&t->counted,
			atomic_load_explicit(&t->counted, memory_order_relaxed) + count,
			memory_order_relaxed);
}

static void only_count(struct thread *t)
{
	const struct raw *raw = t->raw;
	uint64_t at = 0;

	while (!atomic_load_explicit(&raw->must_stop, memory_order_relaxed)) {
		count_records(t, t->ready + at, BUF_RECORDS);
		at = at + BUF_RECORDS < raw->ready_count ? at + BUF_RECORDS : 0;
	}
}

/* ---- exchange ---- */

static inline uint64_t step(uint64_t *random)
{
	uint64_t x = *random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *random = x;
}

static inline uint32_t target_of(uint64_t key)
{
	uint32_t group = key_group_of(key_hash(&key, sizeof(key)), KEY_GROUPS_COUNT_DEFAULT);

	return key_group_subtask(group, KEY_GROUPS_COUNT_DEFAULT, THREADS);
}

static void take_back(struct thread *t)
{
	for (uint32_t from = 0; from < THREADS; from++)
		t->free_count += rte_ring_sc_dequeue_burst(t->raw->empty[from][t->index],
				(void **)&t->free[t->free_count], BUFS_PER_THREAD - t->free_count,
				NULL);
}

/* false: every buffer is under way. */
static bool open_all(struct thread *t)
{
	for (uint32_t to = 0; to < THREADS; to++) {
		if (t->open[to] != NULL && t->open[to]->count < BUF_RECORDS)
			continue;
		if (t->open[to] != NULL)
			CHECK(rte_ring_sp_enqueue(t->raw->data[t->index][to], t->open[to]) == 0);
		t->open[to] = NULL;
		if (t->free_count == 0)
			take_back(t);
		if (t->free_count == 0)
			return false;
		t->open[to] = t->free[--t->free_count];
		t->open[to]->count = 0;
	}
	return true;
}

/* No branch on the target: which one it is cannot be foreseen. */
static uint32_t make_some(struct thread *t, uint32_t count)
{
	struct counted_record *at[THREADS];
	const uint64_t mask = t->raw->mask;
	uint64_t random = t->random;

	for (uint32_t to = 0; to < THREADS; to++) {
		uint32_t room = BUF_RECORDS - t->open[to]->count;

		at[to] = t->open[to]->records + t->open[to]->count;
		count = count < room ? count : room;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = step(&random) & mask;
		uint32_t to = target_of(key);
		struct counted_record *here = at[to];

		*here = (struct counted_record){key, 1};
		at[to] = here + 1;
	}
	t->random = random;
	for (uint32_t to = 0; to < THREADS; to++)
		t->open[to]->count = (uint32_t)(at[to] - t->open[to]->records);
	return count;
}

static uint32_t make_records(struct thread *t)
{
	uint32_t made = 0;

	while (made < MAKE_RECORDS && open_all(t))
		made += make_some(t, MAKE_RECORDS - made);
	return made;
}

/* Who has emptied buffers fills them next, as with the cache of a mempool: their lines are here.
 * Those that are too many go back. */
static void keep(struct thread *t, uint32_t from, struct buffer **bufs, uint32_t count)
{
	while (count > 0 && t->free_count < BUFS_PER_THREAD)
		t->free[t->free_count++] = bufs[--count];
	if (count > 0)
		CHECK(rte_ring_sp_enqueue_bulk(t->raw->empty[t->index][from], (void **)bufs, count,
				      NULL) == count);
}

static uint32_t receive(struct thread *t)
{
	struct buffer *bufs[RING_SLOTS];
	uint32_t received = 0;

	for (uint32_t from = 0; from < THREADS; from++) {
		uint32_t count = rte_ring_sc_dequeue_burst(t->raw->data[from][t->index],
				(void **)bufs, RING_SLOTS, NULL);

		for (uint32_t i = 0; i < count; i++)
			count_records(t, bufs[i]->records, bufs[i]->count);
		keep(t, from, bufs, count);
		received += count;
	}
	return received;
}

/* When others want the core, waiting for a neighbour that is not running would waste it. */
static void exchange(struct thread *t)
{
	uint32_t idle = 0;

	while (!atomic_load_explicit(&t->raw->must_stop, memory_order_relaxed)) {
		if (make_records(t) + receive(t) > 0)
			idle = 0;
		else if (++idle < IDLE_TURNS_MAX)
			rte_pause();
		else
			sched_yield();
	}
}

/* ---- threads ---- */

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	CHECK(pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0);
	for (;;) {
		sem_wait(&t->go);
		if (t->raw->must_end)
			return NULL;
		if (t->raw->mode == MODE_EXCHANGE)
			exchange(t);
		else
			only_count(t);
		sem_post(&t->done);
	}
}

static struct rte_ring *create_ring(void)
{
	ssize_t bytes = rte_ring_get_memsize(RING_SLOTS);

	CHECK(bytes > 0);
	struct rte_ring *ring = aligned_alloc(LINE_BYTES,
			((size_t)bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
	CHECK(ring != NULL);
	CHECK(rte_ring_init(ring, "raw", RING_SLOTS, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0);
	return ring;
}

static void create_thread(struct raw *raw, uint32_t index, uint32_t cpu, uint64_t key_count)
{
	struct thread *t = &raw->threads[index];
	struct counted_record *memory = take_memory((size_t)BUFS_PER_THREAD * BUF_BYTES_DEFAULT);
	struct prng p;

	t->raw = raw;
	t->index = index;
	t->cpu = cpu;
	prng_seed(&p, index + 1);
	t->random = prng_next(&p) | 1;
	for (uint32_t i = 0; i < BUFS_PER_THREAD; i++) {
		t->buffers[i] = (struct buffer){memory + i * BUF_RECORDS, 0};
		t->free[t->free_count++] = &t->buffers[i];
	}
	table_create(&t->table, index, key_count);
	t->ready = take_memory(raw->ready_count * sizeof(t->ready[0]));
	for (uint64_t i = 0; i < raw->ready_count;) {
		uint64_t key = step(&t->random) & raw->mask;

		if (target_of(key) == index)
			t->ready[i++] = (struct counted_record){key, 1};
	}
	CHECK(sem_init(&t->go, 0, 0) == 0 && sem_init(&t->done, 0, 0) == 0);
	CHECK(pthread_create(&t->id, NULL, thread_main, t) == 0);
}

/* ---- commands ---- */

static uint64_t counted(const struct raw *raw)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		sum += atomic_load_explicit(&raw->threads[i].counted, memory_order_relaxed);
	return sum;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (nanosleep(&pause, &pause) != 0)
		CHECK(errno == EINTR);
}

/* The warm-up fills the caches that the program before has left, and does not count. */
static void measure(struct raw *raw, enum mode mode, uint64_t ms)
{
	raw->mode = mode;
	atomic_store(&raw->must_stop, false);
	for (uint32_t i = 0; i < THREADS; i++)
		sem_post(&raw->threads[i].go);
	sleep_ms(WARM_UP_MS);

	uint64_t begin_ns = clock_monotonic_ns(), before = counted(raw);
	sleep_ms(ms);
	uint64_t end_ns = clock_monotonic_ns(), after = counted(raw);

	atomic_store(&raw->must_stop, true);
	for (uint32_t i = 0; i < THREADS; i++)
		while (sem_wait(&raw->threads[i].done) != 0)
			CHECK(errno == EINTR);
	printf("{\"records\": %" PRIu64 ", \"ns\": %" PRIu64 "}\n", after - before,
			end_ns - begin_ns);
	fflush(stdout);
}

/* What the tables hold is what was counted; false is a bug of this program. */
static bool is_exact(const struct raw *raw)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		const struct table *t = &raw->threads[i].table;

		for (uint64_t slot = 0; slot < t->slot_count; slot++)
			sum += t->slots[slot].key == FREE_KEY ? 0 : t->slots[slot].value;
	}
	return sum == counted(raw);
}

static int serve(struct raw *raw)
{
	char line[128], verb[16];
	uint64_t ms;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%15s %" SCNu64, verb, &ms) != 2 || ms == 0 || ms > 60000) {
			fprintf(stderr, "raw_keyed_count: not a command: %s", line);
			return 2;
		}
		if (strcmp(verb, "run") == 0) {
			measure(raw, MODE_EXCHANGE, ms);
		} else if (strcmp(verb, "count") == 0) {
			measure(raw, MODE_COUNT, ms);
		} else {
			fprintf(stderr, "raw_keyed_count: not a command: %s", line);
			return 2;
		}
	}
	if (!is_exact(raw)) {
		fprintf(stderr, "raw_keyed_count: the tables do not hold what was counted\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct raw raw;
	uint32_t cpus[THREADS];
	char rest;
	uint64_t key_count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;

	if (key_count < 2 || key_count > UINT64_C(1) << 28 || (key_count & (key_count - 1)) != 0 ||
			sscanf(argv[2], "%" SCNu32 ",%" SCNu32 "%c", &cpus[0], &cpus[1], &rest) !=
					2) {
		fprintf(stderr, "usage: raw_keyed_count KEYS CPU,CPU   (KEYS a power of two)\n");
		return 2;
	}
	raw.mask = key_count - 1;
	raw.ready_count = key_count < 8 * BUF_RECORDS ? 8 * BUF_RECORDS : key_count;
	for (uint32_t from = 0; from < THREADS; from++) {
		for (uint32_t to = 0; to < THREADS; to++) {
			raw.data[from][to] = create_ring();
			raw.empty[from][to] = create_ring();
		}
	}
	for (uint32_t i = 0; i < THREADS; i++)
		create_thread(&raw, i, cpus[i], key_count);

	int status = serve(&raw);
	raw.must_end = true;
	for (uint32_t i = 0; i < THREADS; i++) {
		sem_post(&raw.threads[i].go);
		pthread_join(raw.threads[i].id, NULL);
	}
	return status;
}
