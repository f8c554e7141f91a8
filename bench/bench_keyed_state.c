/* Records a second through keyed_state_put_batch with an increment of each value, beside the same
 * keys through a plain array (what no table can beat), with and without a running snapshot. */

#include "dataplane/operator/keyed_state.h"

#include "dataplane/base/clock.h"
#include "dataplane/base/prng.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 512, RECORDS = 1 << 16, ROUNDS_PER_MEASURE = 256 };

struct record {
	uint64_t key, value;
};

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

static double measure_table(struct keyed_state *s, struct record **sets, uint32_t set_count,
		uint32_t step_blocks)
{
	uint64_t begin = clock_monotonic_ns();

	for (uint32_t round = 0; round < ROUNDS_PER_MEASURE; round++) {
		for (uint32_t i = 0; i < RECORDS; i += BATCH) {
			count_batch(s, sets[round % set_count] + i);
			if (step_blocks != 0 && keyed_state_snapshot_step(s, step_blocks)) {
				keyed_state_snapshot_abort(s);
				keyed_state_snapshot_begin(s);
			}
		}
	}
	return in_millions((uint64_t)ROUNDS_PER_MEASURE * RECORDS, clock_monotonic_ns() - begin);
}

static double measure_array(uint64_t *counts, struct record **sets, uint32_t set_count)
{
	uint64_t begin = clock_monotonic_ns();

	for (uint32_t round = 0; round < ROUNDS_PER_MEASURE; round++) {
		const struct record *records = sets[round % set_count];

		for (uint32_t i = 0; i < RECORDS; i++)
			counts[records[i].key]++;
	}
	return in_millions((uint64_t)ROUNDS_PER_MEASURE * RECORDS, clock_monotonic_ns() - begin);
}

static void bench(uint64_t key_count)
{
	struct keyed_state_config config = {.key_bytes = 8, .value_bytes = 8,
		.entry_count_max = key_count / 2 + key_count / 8, .group_count = 128,
		.groups = {0, 63}};
	uint64_t bytes = keyed_state_memory_bytes(&config);
	void *memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	struct keyed_state *s = keyed_state_create_at(memory, &config);
	uint64_t *counts = calloc(key_count, sizeof(*counts));
	struct record *sets[4];
	struct prng p;

	prng_seed(&p, 1);
	for (uint64_t key = 0; key < key_count; key++) {
		void *value;

		if (key_group_of(key_hash(&key, 8), 128) < 64)
			keyed_state_put_batch(s, &key, 8, 1, &value);
	}
	for (uint32_t i = 0; i < 4; i++) {
		sets[i] = malloc(RECORDS * sizeof(struct record));
		make_records(sets[i], key_count, &p);
	}
	printf("%8lu keys: %5.1f M/s table", (unsigned long)key_count,
			measure_table(s, sets, 4, 0));
	printf(", %5.1f M/s array", measure_array(counts, sets, 4));
	keyed_state_snapshot_begin(s);
	printf(", %5.1f M/s while copied without end\n", measure_table(s, sets, 4, 16));
	for (uint32_t i = 0; i < 4; i++)
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
