/*
 * digest-sink: a sink that keeps only what identifies its input: how many records there were and
 * sums over their hashes, which do not depend on the order.
 */

#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "dataplane/operator/operator.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RECORDS, DIGEST_SUM, DIGEST_XOR, VALUE_SUM, COUNTER_COUNT };

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {
			"records", "digest_sum", "digest_xor", "sum_of_values"};

	(void)setting;
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	uint64_t sum = 0, xor = 0, value_sum = 0;
	const uint8_t *at = in->data;

	(void)self;
	for (uint32_t i = 0; i < in->count; i++) {
		uint32_t bytes = in->record_bytes;
		const uint8_t *record = bytes == 0 ? weir_record_at(at, &bytes) : at;
		uint64_t hash = XXH3_64bits(record, bytes);

		sum += hash;
		xor ^= hash;
		if (in->record_bytes == sizeof(struct counted_record)) {
			struct counted_record r;

			memcpy(&r, record, sizeof(r));
			value_sum += r.value;
		}
		at = record + bytes;
	}
	*weir_counter(ctx, RECORDS) += in->count;
	*weir_counter(ctx, DIGEST_SUM) += sum;
	*weir_counter(ctx, DIGEST_XOR) ^= xor;
	*weir_counter(ctx, VALUE_SUM) += value_sum;
	return in->count;
}

const struct weir_operator builtin_digest_sink = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "digest-sink",
		.help = "counts records and takes a digest that does not depend on their order",
		.role = WEIR_SINK,
		.declare = declare,
		.process = process,
};
