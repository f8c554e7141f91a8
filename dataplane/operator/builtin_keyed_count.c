/*
 * keyed-count: counts 16-byte records by their key and gives (key, count) at the end of input.
 *
 * An entry leaves the state when its row is given out, so a checkpoint between two rows holds
 * exactly what is still to come.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/counted_record.h"
#include "dataplane/operator/operator.h"

enum { KEYS_MAX, PARAM_COUNT };
enum { COUNTS };
enum { PUT_COUNT_MAX = 256 };

static const struct weir_param params[PARAM_COUNT] = {
		[KEYS_MAX] = {"keys-max", WEIR_INTEGER, "524288", 1, INT64_C(1) << 40, NULL,
				"distinct keys a subtask has room for"},
};

struct keyed_count {
	uint64_t cursor; /* of the walk at the end */
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->self_bytes = sizeof(struct keyed_count);
	d->in_record_bytes = sizeof(struct counted_record);
	d->out_record_bytes = sizeof(struct counted_record);
	d->out_key_bytes = sizeof(uint64_t);
	d->state_count = 1;
	d->states[COUNTS] = (struct weir_state){.name = "counts",
			.kind = WEIR_STATE_KEYED,
			.key_bytes = sizeof(uint64_t),
			.value_bytes = sizeof(uint64_t),
			.version = 1,
			.capacity = (uint64_t)setting->values[KEYS_MAX].integer};
	return 0;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	void *values[PUT_COUNT_MAX];
	uint32_t count;

	(void)self;
	for (uint32_t done = 0; done < in->count; done += count) {
		const uint8_t *keys = in->data + done * sizeof(struct counted_record);

		count = in->count - done < PUT_COUNT_MAX ? in->count - done : PUT_COUNT_MAX;
		if (!weir_keyed_put(ctx, COUNTS, keys, sizeof(struct counted_record), count,
				    values))
			return done;
		for (uint32_t i = 0; i < count; i++)
			++*(uint64_t *)values[i];
	}
	return in->count;
}

static bool finish(void *self, struct weir_context *ctx)
{
	struct keyed_count *k = self;
	struct counted_record rows[RECORDS_COUNT_MAX];
	uint32_t room = weir_room(ctx), count = 0;
	const void *key, *value;
	bool more = true;

	if (room > RECORDS_COUNT_MAX)
		room = RECORDS_COUNT_MAX;
	while (count < room && (more = weir_keyed_next(ctx, COUNTS, &k->cursor, &key, &value))) {
		memcpy(&rows[count].key, key, sizeof(rows[count].key));
		memcpy(&rows[count].value, value, sizeof(rows[count].value));
		count++;
		weir_keyed_remove(ctx, COUNTS, &k->cursor);
	}
	if (count > 0) {
		struct weir_batch batch = {(const uint8_t *)rows, count, sizeof(rows[0]),
				count * (uint32_t)sizeof(rows[0])};
		uint32_t taken = weir_collect(ctx, &batch);

		CHECK(taken == count);
	}
	return !more || weir_keyed_count(ctx, COUNTS) == 0;
}

const struct weir_operator builtin_keyed_count = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "keyed-count",
		.help = "counts 16-byte records by key; (key, count) at the end of input",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.process = process,
		.finish = finish,
};
