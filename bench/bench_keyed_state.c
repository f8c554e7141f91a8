/* Records a second through keyed_state_put_batch with an increment of each value, beside the same
 * keys through a plain array (what no table can beat), and what one snapshot costs: its stretch of
 * records against the stretch before it, in time of this thread, beside a memcpy of its bytes. */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/base/prng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	BATCH = 512,
	RECORDS = 1 << 16,
	SETS = 4,
	ROUNDS_PER_MEASURE = 256,
	TURN = 2048,      /* records between two steps, as in a task's turn */
	STEP_BLOCKS = 4096, /* as in subtask_checkpoint_coordinator.c */
	STRETCH_ROUNDS = 8,
	SNAPSHOTS = 41,
	HUGE_PAGE_BYTES = 2 << 20,
};

struct record {
	uint64_t key, value;
};

/* As the product lays it out: hugepages if the kernel has some. */
static void *memory_of(uint64_t bytes)
{
	uint64_t rounded = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	void *memory = aligned_alloc(HUGE_PAGE_BYTES, rounded);

	(void)madvise(memory, rounded, MADV_HUGEPAGE);
	memset(memory, 0, rounded);
	return memory;
}

static double in_millions(uint64_t records, uint64_t ns)
{
	return (double)records * 1e3 / (double)ns;
}

/* Keys of the lower half of the hashes, as one of two subtasks would see them. */
static void make_records(struct record *records, uint64_t key_count, struct prng *p)
{
	uint32_t count = 0;

	while (count < RECORDS) {
		uint64_t key = prng_below(p, key_count);

		if (key_group_of(key_hash(&key, 8), 128) < 64)
			records[count++] = (struct record){key, 1};
	}
}

static void count_batch(struct keyed_state *s, const struct record *records)
{
	void *values[BATCH];

	if (!keyed_state_put_batch(s, records, sizeof(*records), BATCH, values))
		abort();
	for (uint32_t i = 0; i < BATCH; i++)
		++*(uint64_t *)values[i];
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Time of a stretch of records; a snapshot that is running goes on a step each `TURN`. */
static uint64_t count_stretch(struct keyed_state *s, struct keyed_snapshot *x,
		struct record **sets, uint32_t rounds)
{
	uint64_t begin = thread_ns();

	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < RECORDS; i += BATCH) {
			count_batch(s, sets[round % SETS] + i);
			if (x != NULL && i % TURN == 0)
				keyed_snapshot_step(x, STEP_BLOCKS);
		}
	}
	return thread_ns() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Milliseconds more for the stretch in which a snapshot is copied: the median. */
static double measure_snapshot(struct keyed_state *s, struct record **sets,
		struct keyed_snapshot **last)
{
	double more[SNAPSHOTS];

	for (uint32_t i = 0; i < SNAPSHOTS; i++) {
		uint64_t without = count_stretch(s, NULL, sets, STRETCH_ROUNDS);
		struct keyed_snapshot *x = keyed_state_snapshot_begin(s);
		uint64_t with = count_stretch(s, x, sets, STRETCH_ROUNDS);

		while (!keyed_snapshot_step(x, STEP_BLOCKS))
			;
		more[i] = ((double)with - (double)without) / 1e6;
		keyed_snapshot_abort(x);
		*last = x;
	}
	qsort(more, SNAPSHOTS, sizeof(*more), compare);
	return more[SNAPSHOTS / 2];
}

static double measure_memcpy(const struct keyed_snapshot *x)
{
	uint64_t bytes = keyed_snapshot_filled(x);
	uint8_t *to = memory_of(bytes);
	double took[SNAPSHOTS];

	for (uint32_t i = 0; i < SNAPSHOTS; i++) {
		uint64_t begin = thread_ns();

		memcpy(to, keyed_snapshot_bytes(x), bytes);
		took[i] = (double)(thread_ns() - begin) / 1e6;
	}
	qsort(took, SNAPSHOTS, sizeof(*took), compare);
	free(to);
	return took[SNAPSHOTS / 2];
}

static double measure_table(struct keyed_state *s, struct record **sets)
{
	return in_millions((uint64_t)ROUNDS_PER_MEASURE * RECORDS,
			count_stretch(s, NULL, sets, ROUNDS_PER_MEASURE));
}

static double measure_array(uint64_t *counts, struct record **sets)
{
	uint64_t begin = thread_ns();

	for (uint32_t round = 0; round < ROUNDS_PER_MEASURE; round++) {
		const struct record *records = sets[round % SETS];

		for (uint32_t i = 0; i < RECORDS; i++)
			counts[records[i].key]++;
	}
	return in_millions((uint64_t)ROUNDS_PER_MEASURE * RECORDS, thread_ns() - begin);
}

static void bench(uint64_t key_count)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = key_count / 2 + key_count / 8, .group_count = 128,
		.groups = {0, 63}, .snapshots_max = 1};
	uint64_t bytes = keyed_state_memory_bytes(&config);
	void *memory = memory_of(bytes);
	struct keyed_state *s = keyed_state_create_at(memory, &config);
	struct keyed_snapshot *x;
	uint64_t *counts = calloc(key_count, sizeof(*counts));
	struct record *sets[SETS];
	struct prng p;

	prng_seed(&p, 1);
	for (uint64_t key = 0; key < key_count; key++) {
		void *value;

		if (key_group_of(key_hash(&key, 8), 128) < 64)
			keyed_state_put_batch(s, &key, 8, 1, &value);
	}
	for (uint32_t i = 0; i < SETS; i++) {
		sets[i] = malloc(RECORDS * sizeof(struct record));
		make_records(sets[i], key_count, &p);
	}
	printf("%8lu keys: %5.1f M/s table", (unsigned long)key_count, measure_table(s, sets));
	printf(", %5.1f M/s array", measure_array(counts, sets));
	printf(", a snapshot %6.3f ms", measure_snapshot(s, sets, &x));
	printf(", memcpy of its %.1f MiB %.3f ms\n",
			(double)keyed_snapshot_filled(x) / 1048576, measure_memcpy(x));
	for (uint32_t i = 0; i < SETS; i++)
		free(sets[i]);
	free(counts);
	free(memory);
}

int main(void)
{
	bench(1 << 14);
	bench(1 << 17);
	bench(1 << 19);
	bench(1 << 21);
	return 0;
}
