/*
 * staged_operators: the plug-in of the benches `backpressure` and `barrier`: an endless source of
 * records of one size, a map that only passes them on, and a sink that takes one at a time, either
 * by answering "not before" or by blocking in its call.
 */

#include "dataplane/operator/operator.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { RECORD_BYTES_MAX = 4096, BATCH_BYTES = 32768, WORD_BYTES = 8 };

/* ---- wide-source ---- */

enum { SIZE, RATE, SOURCE_PARAMS };

static const struct weir_param source_params[SOURCE_PARAMS] = {
		[SIZE] = {"size", WEIR_SIZE, "1 kb", WORD_BYTES, RECORD_BYTES_MAX, NULL,
				"of a record; its first word is a number"},
		[RATE] = {"rate", WEIR_INTEGER, "0", 0, 1000000000, NULL,
				"records a second of each subtask; 0 is as fast as they are taken"},
};

struct source {
	uint32_t record_bytes, batch_max;
	uint64_t made; /* none of it is state: what comes after a restore does not matter here */
	uint64_t rate, since_ns;
	uint8_t records[BATCH_BYTES];
};

static int declare_source(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->self_bytes = sizeof(struct source);
	d->out_record_bytes = (uint32_t)setting->values[SIZE].integer;
	d->out_key_bytes = WORD_BYTES;
	return 0;
}

static int open_source(void *self, struct weir_context *ctx)
{
	struct source *s = self;

	s->record_bytes = weir_info(ctx)->out_record_bytes;
	s->batch_max = BATCH_BYTES / s->record_bytes;
	s->rate = (uint64_t)weir_info(ctx)->values[RATE].integer;
	return 0;
}

/* How many of `count_max` records the rate allows now. */
static uint32_t due(struct source *s, uint32_t count_max, uint64_t now_ns)
{
	if (s->since_ns == 0)
		s->since_ns = now_ns;
	uint64_t behind = (now_ns - s->since_ns) * s->rate / 1000000000;

	behind = behind > s->made ? behind - s->made : 0;
	return behind < count_max ? (uint32_t)behind : count_max;
}

static enum weir_poll poll_source(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct source *s = self;
	uint32_t count = records_max < s->batch_max ? records_max : s->batch_max;

	if (s->rate > 0)
		count = due(s, count, weir_now_ns(ctx));
	if (count == 0)
		return WEIR_POLL_IDLE;
	for (uint32_t i = 0; i < count; i++, s->made++)
		memcpy(s->records + i * s->record_bytes, &s->made, sizeof(s->made));
	struct weir_batch batch = {s->records, count, s->record_bytes, count * s->record_bytes};
	(void)weir_collect(ctx, &batch); /* poll asks for what there is room for */
	return WEIR_POLL_MORE;
}

/* ---- pass ---- */

static int declare_pass(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->out_record_bytes = setting->in_record_bytes;
	d->out_key_bytes = WORD_BYTES;
	return 0;
}

static uint32_t process_pass(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	return weir_collect(ctx, in);
}

/* ---- slow-sink ---- */

enum { PAUSE, BLOCKS, SINK_PARAMS };
enum { TAKEN, COUNTERS };

static const struct weir_param sink_params[SINK_PARAMS] = {
		[PAUSE] = {"pause", WEIR_DURATION, "0 s", 0, 0, NULL,
				"takes a record, and none for so long; 0: takes all there are"},
		[BLOCKS] = {"blocks", WEIR_BOOLEAN, "false", 0, 0, NULL,
				"sits the pause out in its call, and the worker with it"},
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
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->counter_count = COUNTERS;
	d->counters[TAKEN] = "taken";
	return 0;
}

static uint32_t take_all(struct weir_context *ctx, const struct weir_batch *in)
{
	*weir_counter(ctx, TAKEN) += in->count;
	return in->count;
}

static uint32_t process_sink(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct sink *s = self;
	const struct weir_value *values = weir_info(ctx)->values;
	int64_t pause_ns = values[PAUSE].integer;
	uint64_t now_ns = weir_now_ns(ctx);

	if (pause_ns == 0)
		return take_all(ctx, in);
	if (values[BLOCKS].integer) {
		struct timespec pause = {pause_ns / 1000000000, pause_ns % 1000000000};

		nanosleep(&pause, NULL);
	} else if (now_ns < s->next_ns) {
		weir_not_before(ctx, s->next_ns);
		return 0;
	}
	s->next_ns = now_ns + (uint64_t)pause_ns;
	++*weir_counter(ctx, TAKEN);
	return 1;
}

/* ---- the plug-in ---- */

static const struct weir_operator operators[] = {
		{
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "wide-source",
				.help = "endless records of one size",
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
				.name = "pass",
				.help = "hands on what it gets",
				.role = WEIR_TRANSFORM,
				.declare = declare_pass,
				.process = process_pass,
		},
		{
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "slow-sink",
				.help = "takes a record, then pauses",
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
