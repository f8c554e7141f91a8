/*
 * generator: a source of 16-byte records (key, 1).
 *
 * Each subtask makes its share of the records from a seed of its own.  The generator's state is
 * the random number and how many records it has made, so a replay makes the same ones again.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/prng.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "dataplane/operator/operator.h"
#include "dataplane/operator/pacer.h"
#include "dataplane/operator/zipf.h"

#include <errno.h>
#include <stdio.h>

enum { RECORDS, RATE, KEYS, DISTRIBUTION, EXPONENT, SEED, PARAM_COUNT };
enum { UNIFORM, ZIPF };
enum { POSITION };

static const struct weir_param params[PARAM_COUNT] = {
		[RECORDS] = {"records", WEIR_INTEGER, "0", 0, INT64_MAX, NULL,
				"how many, over all subtasks; 0 is endless"},
		[RATE] = {"rate", WEIR_INTEGER, "0", 0, 1000000000000, NULL,
				"records a second, over all subtasks; 0 is as fast as they are "
				"taken"},
		[KEYS] = {"keys", WEIR_INTEGER, "16384", 1, INT64_C(1) << 40, NULL,
				"keys are 0 .. keys - 1"},
		[DISTRIBUTION] = {"distribution", WEIR_CHOICE, "uniform", 0, 0, "uniform|zipf",
				"how often each key comes; with zipf key 0 is the most frequent"},
		[EXPONENT] = {"exponent", WEIR_REAL, "1.0", 0, 0, NULL, "skew of zipf"},
		[SEED] = {"seed", WEIR_INTEGER, "1", 0, INT64_MAX, NULL,
				"another seed makes other records"},
};

/* State: what a replay goes on from. */
struct position {
	uint64_t random; /* never 0, so 0 is a fresh start */
	uint64_t made;
};

struct generator {
	uint64_t records_max; /* of this subtask; UINT64_MAX when endless */
	uint64_t keys, mask;  /* mask 0: keys is no power of two */
	bool is_zipf;
	struct zipf zipf;
	struct pacer pacer;
	struct position *position;
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	double exponent = setting->values[EXPONENT].real;

	if (!(exponent > 0 && exponent <= 10)) {
		snprintf(error, WEIR_ERROR_BYTES,
				"exponent: \"%s\" is out of range; expected above 0, at most 10",
				setting->values[EXPONENT].text);
		return -EINVAL;
	}
	d->self_bytes = sizeof(struct generator);
	d->out_record_bytes = sizeof(struct counted_record);
	d->out_key_bytes = sizeof(uint64_t);
	d->state_count = 1;
	d->states[POSITION] = (struct weir_state){.name = "position",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct position),
			.version = 1};
	return 0;
}

/* The subtasks' shares add up to `total` and differ by one at most. */
static uint64_t share_of(uint64_t total, const struct weir_info *info)
{
	return total / info->parallelism + (info->subtask_index < total % info->parallelism);
}

static uint64_t first_random(uint64_t seed, uint32_t subtask)
{
	struct prng p;
	uint64_t random;

	prng_seed(&p, seed + subtask * UINT64_C(0x9e3779b97f4a7c15));
	do
		random = prng_next(&p);
	while (random == 0);
	return random;
}

static int open(void *self, struct weir_context *ctx)
{
	struct generator *g = self;
	const struct weir_info *info = weir_info(ctx);
	const struct weir_value *values = info->values;
	uint64_t records = (uint64_t)values[RECORDS].integer;
	uint64_t rate = (uint64_t)values[RATE].integer;

	g->records_max = records == 0 ? UINT64_MAX : share_of(records, info);
	g->pacer.rate = share_of(rate, info);
	if (rate != 0 && g->pacer.rate == 0)
		g->pacer.rate = 1;
	g->keys = (uint64_t)values[KEYS].integer;
	g->mask = (g->keys & (g->keys - 1)) == 0 ? g->keys - 1 : 0;
	g->is_zipf = values[DISTRIBUTION].integer == ZIPF;
	if (g->is_zipf)
		zipf_init(&g->zipf, g->keys, values[EXPONENT].real);
	g->position = weir_value(ctx, POSITION);
	if (g->position->random == 0)
		g->position->random = first_random(
				(uint64_t)values[SEED].integer, info->subtask_index);
	return 0;
}

/* xorshift64 (Marsaglia 2003): one dependency chain of six operations a key. */
static inline uint64_t step(uint64_t *random)
{
	uint64_t x = *random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *random = x;
}

static void make_masked(struct generator *g, struct counted_record *records, uint32_t count)
{
	uint64_t random = g->position->random;

	for (uint32_t i = 0; i < count; i++)
		records[i] = (struct counted_record){step(&random) & g->mask, 1};
	g->position->random = random;
}

static void make_scaled(struct generator *g, struct counted_record *records, uint32_t count)
{
	uint64_t random = g->position->random;

	for (uint32_t i = 0; i < count; i++)
		records[i] = (struct counted_record){
				(uint64_t)((unsigned __int128)step(&random) * g->keys >> 64), 1};
	g->position->random = random;
}

static void make_zipf(struct generator *g, struct counted_record *records, uint32_t count)
{
	enum { TRIES_MAX = 64 }; /* each fails less than half of the time */
	uint64_t random = g->position->random;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t rank = 0;

		for (uint32_t tries = 0; rank == 0 && tries < TRIES_MAX; tries++)
			rank = zipf_try(&g->zipf, (double)(step(&random) >> 11) * 0x1.0p-53);
		records[i] = (struct counted_record){rank == 0 ? 0 : rank - 1, 1};
	}
	g->position->random = random;
}

static void make(struct generator *g, struct counted_record *records, uint32_t count)
{
	if (g->is_zipf)
		make_zipf(g, records, count);
	else if (g->mask != 0 || g->keys == 1)
		make_masked(g, records, count);
	else
		make_scaled(g, records, count);
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct generator *g = self;
	struct counted_record records[RECORDS_COUNT_MAX];
	uint64_t left = g->records_max - g->position->made;
	uint32_t count = records_max < RECORDS_COUNT_MAX ? records_max : RECORDS_COUNT_MAX;
	uint64_t next_ns;

	if (left == 0)
		return WEIR_POLL_END;
	if (count > left)
		count = (uint32_t)left;
	if (count == 0)
		return WEIR_POLL_IDLE;
	count = pacer_allow(&g->pacer, count, weir_now_ns(ctx), &next_ns);
	if (count == 0) {
		weir_not_before(ctx, next_ns);
		return WEIR_POLL_IDLE;
	}
	make(g, records, count);
	struct weir_batch batch = {(const uint8_t *)records, count, sizeof(records[0]),
			count * (uint32_t)sizeof(records[0])};
	uint32_t taken = weir_collect(ctx, &batch);
	CHECK(taken == count); /* poll asks for what there is room for */
	g->position->made += count;
	pacer_made(&g->pacer, count);
	return WEIR_POLL_MORE;
}

const struct weir_operator builtin_generator = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "generator",
		.help = "source of 16-byte records (key, 1) with random keys",
		.role = WEIR_SOURCE,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.poll = poll,
};
