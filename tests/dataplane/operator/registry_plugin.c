/* A plug-in as a user writes it, and with one mistake each: built once for every VARIANT. */

#include "dataplane/operator/operator.h"

enum { GOOD, OTHER_ABI, SMALL_TABLE, NO_OPERATOR, NO_PROCESS, TAKEN_PARAM };

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->out_record_bytes = 16;
	return 0;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	(void)ctx;
	return in->count;
}

static const struct weir_param params[] = {
		{.name = VARIANT == TAKEN_PARAM ? "uid" : "factor",
				.type = WEIR_INTEGER,
				.preset = "2"},
};

static const struct weir_operator operators[] = {
		{
				.abi_version = VARIANT == OTHER_ABI ? WEIR_ABI_VERSION + 1
								    : WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator) -
					(VARIANT == SMALL_TABLE ? 8 : 0),
				.name = "double",
				.help = "doubles",
				.role = WEIR_TRANSFORM,
				.params = params,
				.param_count = 1,
				.declare = declare,
				.process = VARIANT == NO_PROCESS ? NULL : process,
		},
		{
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "halve",
				.help = "halves",
				.role = WEIR_TRANSFORM,
				.declare = declare,
				.process = process,
		},
};

const struct weir_operator *weir_plugin(uint32_t index);

const struct weir_operator *weir_plugin(uint32_t index)
{
	uint32_t count = VARIANT == NO_OPERATOR ? 0 : sizeof(operators) / sizeof(operators[0]);

	return index < count ? &operators[index] : NULL;
}
