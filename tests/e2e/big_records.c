/* A plug-in for an end-to-end test: a source of records of 1 byte to 1 MiB whose bytes follow from
 * their number, and a sink that checks every byte and takes its time. */

#include "dataplane/operator/operator.h"

#include <errno.h>

enum { RECORD_MAX = 1 << 20, NUMBER_BYTES = 8 };
enum { RECORDS, RATE, SOURCE_PARAMS };
enum { POSITION };

static const struct weir_param source_params[SOURCE_PARAMS] = {
		[RECORDS] = {"records", WEIR_INTEGER, "1000", 1, 1000000000, NULL, "how many"},
		[RATE] = {"rate", WEIR_INTEGER, "0", 0, 1000000000, NULL, "records a second"},
};

struct source {
	uint64_t *made;
	uint64_t next_ns;
	uint8_t record[4 + RECORD_MAX];
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* Most are small, some are larger than a buffer, a few are 1 MiB. */
static uint32_t size_of(uint64_t number)
{
	uint64_t random = mix(number + 1);

	switch (random % 64) {
	case 0:
		return RECORD_MAX;
	case 1:
	case 2:
	case 3:
		return NUMBER_BYTES + (uint32_t)(random >> 8) % 200000;
	default:
		return NUMBER_BYTES + (uint32_t)(random >> 8) % 300;
	}
}

static int declare_source(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->self_bytes = sizeof(struct source);
	d->out_record_bytes_max = RECORD_MAX;
	d->out_key_bytes = NUMBER_BYTES;
	d->state_count = 1;
	d->states[POSITION] = (struct weir_state){.name = "position",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(uint64_t),
			.version = 1};
	return 0;
}

static int open_source(void *self, struct weir_context *ctx)
{
	struct source *s = self;

	s->made = weir_value(ctx, POSITION);
	return 0;
}

static enum weir_poll poll_source(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct source *s = self;
	const struct weir_info *info = weir_info(ctx);
	uint64_t number = *s->made * info->parallelism + info->subtask_index;
	uint64_t rate = (uint64_t)info->values[RATE].integer, now_ns = weir_now_ns(ctx);
	uint32_t size = size_of(number);

	if (number >= (uint64_t)info->values[RECORDS].integer)
		return WEIR_POLL_END;
	if (records_max == 0)
		return WEIR_POLL_IDLE;
	if (rate > 0 && now_ns < s->next_ns) {
		weir_not_before(ctx, s->next_ns);
		return WEIR_POLL_IDLE;
	}
	s->next_ns = now_ns + (rate > 0 ? UINT64_C(1000000000) * info->parallelism / rate : 0);
	memcpy(s->record, &size, sizeof(size));
	memcpy(s->record + 4, &number, sizeof(number));
	for (uint32_t i = NUMBER_BYTES; i < size; i++)
		s->record[4 + i] = (uint8_t)(number + i * 7);

	struct weir_batch batch = {s->record, 1, 0, size + 4};
	if (weir_collect(ctx, &batch) == 1)
		++*s->made;
	return WEIR_POLL_MORE;
}

enum { DELAY, SINK_PARAMS };
enum { COUNT, SUM_OF_NUMBERS, COUNTERS };

static const struct weir_param sink_params[SINK_PARAMS] = {
		[DELAY] = {"delay", WEIR_DURATION, "0 s", 0, 0, NULL, "after each batch"},
};

struct sink {
	uint64_t next_ns;
};

static int declare_sink(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->self_bytes = sizeof(struct sink);
	d->in_record_bytes = 0;
	d->counter_count = COUNTERS;
	d->counters[COUNT] = "records";
	d->counters[SUM_OF_NUMBERS] = "sum_of_numbers";
	return 0;
}

static bool is_whole(const uint8_t *record, uint32_t bytes, uint64_t *number)
{
	memcpy(number, record, sizeof(*number));
	if (bytes != size_of(*number))
		return false;
	for (uint32_t i = NUMBER_BYTES; i < bytes; i++)
		if (record[i] != (uint8_t)(*number + i * 7))
			return false;
	return true;
}

static uint32_t process_sink(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct sink *s = self;
	uint64_t now_ns = weir_now_ns(ctx);
	uint32_t bytes;
	uint64_t number;

	if (now_ns < s->next_ns) {
		weir_not_before(ctx, s->next_ns);
		return 0;
	}
	const uint8_t *record = weir_record_at(in->data, &bytes);
	if (bytes < NUMBER_BYTES || !is_whole(record, bytes, &number)) {
		weir_fail_for_good(ctx, "a record of %u bytes is not as it was sent", bytes);
		return 0;
	}
	++*weir_counter(ctx, COUNT);
	*weir_counter(ctx, SUM_OF_NUMBERS) += number;
	s->next_ns = now_ns + (uint64_t)weir_info(ctx)->values[DELAY].integer;
	return 1;
}

static const struct weir_operator operators[] = {
		{
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "big-source",
				.help = "records of 8 bytes to 1 MiB",
				.role = WEIR_SOURCE,
				.params = source_params,
				.param_count = SOURCE_PARAMS,
				.declare = declare_source,
				.open = open_source,
				.poll = poll_source,
		},
		{
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "big-sink",
				.help = "checks them",
				.role = WEIR_SINK,
				.params = sink_params,
				.param_count = SINK_PARAMS,
				.declare = declare_sink,
				.process = process_sink,
		},
};

const struct weir_operator *weir_plugin(uint32_t index);

__attribute__((visibility("default"))) const struct weir_operator *weir_plugin(uint32_t index)
{
	return index < sizeof(operators) / sizeof(operators[0]) ? &operators[index] : NULL;
}
