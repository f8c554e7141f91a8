/* Operators of every role and record size, that only declare: for tests of job files. */

#include "dataplane/operator/operator.h"

#include <stdio.h>

static int declare_numbers(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->out_record_bytes = 16;
	d->out_key_bytes = 8;
	return 0;
}

static int declare_count(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->in_record_bytes = 16;
	d->out_record_bytes = 24;
	d->state_count = 1;
	d->states[0] = (struct weir_state){.name = "counts",
			.kind = WEIR_STATE_KEYED,
			.key_bytes = 8,
			.value_bytes = 8,
			.version = 1,
			.capacity = (uint64_t)setting->values[0].integer};
	return 0;
}

static int declare_print(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->in_record_bytes = 24;
	d->out_record_bytes = 0;
	return 0;
}

static int declare_store(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	d->in_record_bytes = WEIR_RECORD_ANY;
	if (setting->values[0].text[0] != '\0')
		return 0;
	snprintf(error, WEIR_ERROR_BYTES, "path: empty; expected a folder");
	return -1;
}

static int declare_broken(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->state_count = 1000;
	return 0;
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	(void)self;
	(void)ctx;
	(void)records_max;
	return WEIR_POLL_END;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	(void)ctx;
	return in->count;
}

static const struct weir_param numbers_params[] = {
	{.name = "records", .type = WEIR_INTEGER, .preset = "10", .min = 1, .max = INT64_MAX},
	{.name = "skew", .type = WEIR_CHOICE, .preset = "uniform", .choices = "uniform|zipf"},
};
static const struct weir_param count_params[] = {
	{.name = "entries", .type = WEIR_INTEGER, .preset = "100"},
};
static const struct weir_param store_params[] = {
	{.name = "path", .type = WEIR_TEXT, .help = "a folder for the output"},
};

#define HEAD .abi_version = WEIR_ABI_VERSION, .size = sizeof(struct weir_operator), .help = "-"

static const struct weir_operator operators[] = {
	{HEAD, .name = "numbers", .role = WEIR_SOURCE, .params = numbers_params, .param_count = 2,
			.declare = declare_numbers, .poll = poll},
	{HEAD, .name = "count", .role = WEIR_TRANSFORM, .params = count_params, .param_count = 1,
			.declare = declare_count, .process = process},
	{HEAD, .name = "print", .role = WEIR_TRANSFORM, .declare = declare_print,
			.process = process},
	{HEAD, .name = "store", .role = WEIR_SINK, .params = store_params, .param_count = 1,
			.declare = declare_store, .process = process},
	{HEAD, .name = "broken", .role = WEIR_SINK, .declare = declare_broken,
			.process = process},
};

const struct weir_operator *weir_plugin(uint32_t index);

const struct weir_operator *weir_plugin(uint32_t index)
{
	return index < sizeof(operators) / sizeof(operators[0]) ? &operators[index] : NULL;
}
