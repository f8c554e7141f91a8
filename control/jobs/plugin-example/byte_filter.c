/*
 * byte-filter: an operator of one's own, built as a shared object against the installed header
 * and nothing else:
 *
 *     cc -shared -fPIC -O2 -I. -o byte_filter.so control/jobs/plugin-example/byte_filter.c
 *
 * (with weir installed, #include <weir/operator.h>).  It lets records of any fixed size pass whose
 * byte at `offset` is within `min` .. `max`, and counts the others.  In front of a flow-window,
 * offset 36 is the protocol: min 6, max 6 meters TCP alone.
 *
 * The edge in front of the filter must carry records of a fixed size, and so does the one behind
 * it; a hash edge keeps the key of the operator in front, so put the filter behind the exchange.
 */

#include "dataplane/operator/operator.h"

#include <errno.h>
#include <stdio.h>

enum { OFFSET, MIN, MAX, PARAM_COUNT };
enum { PASSED, REFUSED, COUNTER_COUNT };

static const struct weir_param params[PARAM_COUNT] = {
		[OFFSET] = {"offset", WEIR_INTEGER, NULL, 0, 65535, NULL,
				"which byte of a record is looked at"},
		[MIN] = {"min", WEIR_INTEGER, "0", 0, 255, NULL, "the lowest value that passes"},
		[MAX] = {"max", WEIR_INTEGER, "255", 0, 255, NULL, "the highest value that passes"},
};

/* Memory of one subtask's instance; read once in open, so that process need not parse. */
struct byte_filter {
	uint32_t offset;
	uint8_t min, max;
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"passed", "refused"};

	if (setting->in_record_bytes == 0) {
		snprintf(error, WEIR_ERROR_BYTES,
				"offset: records of no fixed size come in; expected a fixed size");
		return -EINVAL;
	}
	if (setting->values[OFFSET].integer >= setting->in_record_bytes) {
		snprintf(error, WEIR_ERROR_BYTES, "offset: %s; expected less than %u, the record",
				setting->values[OFFSET].text, setting->in_record_bytes);
		return -EINVAL;
	}
	d->self_bytes = sizeof(struct byte_filter);
	d->in_record_bytes = setting->in_record_bytes;
	d->out_record_bytes = setting->in_record_bytes;
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

static int open(void *self, struct weir_context *ctx)
{
	struct byte_filter *f = self;
	const struct weir_value *values = weir_info(ctx)->values;

	f->offset = (uint32_t)values[OFFSET].integer;
	f->min = (uint8_t)values[MIN].integer;
	f->max = (uint8_t)values[MAX].integer;
	return 0;
}

static bool passes(const struct byte_filter *f, const uint8_t *record)
{
	return record[f->offset] >= f->min && record[f->offset] <= f->max;
}

/* Hands on runs of records that pass, so nothing is copied here. */
static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	const struct byte_filter *f = self;
	uint32_t passed = 0, at = 0;

	while (at < in->count) {
		const uint8_t *first = in->data + (size_t)at * in->record_bytes;
		uint32_t run = 0;

		while (at + run < in->count && passes(f, first + (size_t)run * in->record_bytes))
			run++;
		if (run > 0) {
			struct weir_batch out = {first, run, in->record_bytes,
					run * in->record_bytes};

			weir_collect(ctx, &out); /* there is room for as many as come in */
		}
		passed += run;
		at += run > 0 ? run : 1;
	}
	*weir_counter(ctx, PASSED) += passed;
	*weir_counter(ctx, REFUSED) += in->count - passed;
	return in->count;
}

static const struct weir_operator byte_filter = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "byte-filter",
		.help = "lets records pass by the value of one byte",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.process = process,
};

/* The one symbol of a plug-in: its operators, and NULL behind the last. */
const struct weir_operator *weir_plugin(uint32_t index);

const struct weir_operator *weir_plugin(uint32_t index)
{
	return index == 0 ? &byte_filter : NULL;
}
