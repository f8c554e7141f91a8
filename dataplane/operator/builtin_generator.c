/*
 * generator: a source of 16-byte records (key, 1).
 *
 * There are as many streams as there were subtasks when the job began, each with its share of the
 * records and a seed of its own.  The state is the random number of each stream and how many
 * records it has made, so a replay makes the same ones again, also with another parallelism: a
 * stream then belongs to the subtask of its number modulo the parallelism.
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
enum { STREAMS };

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

/* State: what a replay goes on from.  A subtask without streams keeps one that is none, so that an
 * empty list is a fresh start. */
struct stream {
	uint64_t random; /* 0: no stream */
	uint64_t made;
	uint32_t number, count; /* of that many */
};

struct generator {
	uint64_t records; /* of all streams; 0: endless */
	uint64_t keys, mask;  /* mask 0: keys is no power of two */
	bool is_zipf;
	struct zipf zipf;
	struct pacer pacer;
	uint32_t turn; /* the stream that makes the next batch */
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
	d->states[STREAMS] = (struct weir_state){.name = "streams",
			.kind = WEIR_STATE_LIST,
			.value_bytes = sizeof(struct stream),
			.version = 1,
			.capacity = PARALLELISM_MAX,
			.rescale = WEIR_RESCALE_UNION};
	return 0;
}

/* The shares of `count` add up to `total` and differ by one at most. */
static uint64_t share_of(uint64_t total, uint32_t number, uint32_t count)
{
	return total / count + (number < total % count);
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

static void add_stream(struct weir_context *ctx, const struct stream *stream)
{
	bool fits = weir_list_add(ctx, STREAMS, stream);

	CHECK(fits);
}

/* After a restore with another parallelism the streams of all are here. */
static void open_streams(struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	uint32_t count = weir_list_count(ctx, STREAMS);

	for (uint32_t i = count; i-- > 0;) {
		const struct stream *s = weir_list_at(ctx, STREAMS, i);

		if (s->random == 0 || s->number % info->parallelism != info->subtask_index)
			weir_list_remove(ctx, STREAMS, i);
	}
	if (count == 0)
		add_stream(ctx, &(struct stream){
				first_random((uint64_t)info->values[SEED].integer,
						info->subtask_index),
				0, info->subtask_index, info->parallelism});
	else if (weir_list_count(ctx, STREAMS) == 0)
		add_stream(ctx, &(struct stream){0, 0, 0, 1});
}

static int open(void *self, struct weir_context *ctx)
{
	struct generator *g = self;
	const struct weir_info *info = weir_info(ctx);
	const struct weir_value *values = info->values;
	uint64_t rate = (uint64_t)values[RATE].integer;

	g->records = (uint64_t)values[RECORDS].integer;
	g->pacer.rate = share_of(rate, info->subtask_index, info->parallelism);
	if (rate != 0 && g->pacer.rate == 0)
		g->pacer.rate = 1;
	g->keys = (uint64_t)values[KEYS].integer;
	g->mask = (g->keys & (g->keys - 1)) == 0 ? g->keys - 1 : 0;
	g->is_zipf = values[DISTRIBUTION].integer == ZIPF;
	if (g->is_zipf)
		zipf_init(&g->zipf, g->keys, values[EXPONENT].real);
	open_streams(ctx);
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

static void make_masked(const struct generator *g, uint64_t *state, struct counted_record *records,
		uint32_t count)
{
	uint64_t random = *state;

	for (uint32_t i = 0; i < count; i++)
		records[i] = (struct counted_record){step(&random) & g->mask, 1};
	*state = random;
}

static void make_scaled(const struct generator *g, uint64_t *state, struct counted_record *records,
		uint32_t count)
{
	uint64_t random = *state;

	for (uint32_t i = 0; i < count; i++)
		records[i] = (struct counted_record){
				(uint64_t)((unsigned __int128)step(&random) * g->keys >> 64), 1};
	*state = random;
}

static void make_zipf(const struct generator *g, uint64_t *state, struct counted_record *records,
		uint32_t count)
{
	enum { TRIES_MAX = 64 }; /* each fails less than half of the time */
	uint64_t random = *state;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t rank = 0;

		for (uint32_t tries = 0; rank == 0 && tries < TRIES_MAX; tries++)
			rank = zipf_try(&g->zipf, (double)(step(&random) >> 11) * 0x1.0p-53);
		records[i] = (struct counted_record){rank == 0 ? 0 : rank - 1, 1};
	}
	*state = random;
}

static void make(const struct generator *g, uint64_t *state, struct counted_record *records,
		uint32_t count)
{
	if (g->is_zipf)
		make_zipf(g, state, records, count);
	else if (g->mask != 0 || g->keys == 1)
		make_masked(g, state, records, count);
	else
		make_scaled(g, state, records, count);
}

static uint64_t left_of(const struct generator *g, const struct stream *s)
{
	if (s->random == 0)
		return 0;
	if (g->records == 0)
		return UINT64_MAX;
	uint64_t share = share_of(g->records, s->number, s->count);
	return s->made < share ? share - s->made : 0;
}

/* The streams take turns; NULL: none has any left. */
static struct stream *next_stream(struct generator *g, struct weir_context *ctx, uint64_t *left)
{
	uint32_t count = weir_list_count(ctx, STREAMS);

	for (uint32_t i = 0; i < count; i++) {
		struct stream *s = weir_list_at(ctx, STREAMS, g->turn++ % count);

		*left = left_of(g, s);
		if (*left > 0)
			return s;
	}
	return NULL;
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct generator *g = self;
	struct counted_record records[RECORDS_COUNT_MAX];
	uint32_t count = records_max < RECORDS_COUNT_MAX ? records_max : RECORDS_COUNT_MAX;
	uint64_t next_ns, left;
	struct stream *stream = next_stream(g, ctx, &left);

	if (stream == NULL)
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
	make(g, &stream->random, records, count);
	struct weir_batch batch = {(const uint8_t *)records, count, sizeof(records[0]),
			count * (uint32_t)sizeof(records[0])};
	uint32_t taken = weir_collect(ctx, &batch);
	CHECK(taken == count); /* poll asks for what there is room for */
	stream->made += count;
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
