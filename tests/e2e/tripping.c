/* tripping: a plug-in for tests; hands records on, and fails its task once for each time that the
 * file `wire` appears, which it removes. */

#include "dataplane/operator/operator.h"

#include <unistd.h>

static const struct weir_param params[] = {
		{"wire", WEIR_TEXT, NULL, 0, 0, NULL, "the file that fails the task"},
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->self_bytes = 1;
	d->in_record_bytes = setting->in_record_bytes;
	d->out_record_bytes = setting->in_record_bytes;
	return 0;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	if (unlink(weir_info(ctx)->values[0].text) == 0) {
		weir_fail(ctx, "it tripped over the wire");
		return 0;
	}
	return weir_collect(ctx, in);
}

static const struct weir_operator tripping = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "tripping",
		.help = "fails when a file appears",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = 1,
		.declare = declare,
		.process = process,
};

const struct weir_operator *weir_plugin(uint32_t index);

const struct weir_operator *weir_plugin(uint32_t index)
{
	return index == 0 ? &tripping : NULL;
}
