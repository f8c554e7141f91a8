/* A plug-in for tests: both operators hand records on, but while the file `gate` exists `stalling`
 * takes none, and `blocking` does not come back from its call. */

#include "dataplane/operator/operator.h"

#include <unistd.h>

enum { RETRY_NS = 5000000 };

static const struct weir_param params[] = {
		{"gate", WEIR_TEXT, NULL, 0, 0, NULL, "the file that stops the flow"},
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
	if (access(weir_info(ctx)->values[0].text, F_OK) == 0) {
		weir_not_before(ctx, weir_now_ns(ctx) + RETRY_NS);
		return 0;
	}
	return weir_collect(ctx, in);
}

static uint32_t block(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	(void)self;
	while (access(weir_info(ctx)->values[0].text, F_OK) == 0)
		usleep(RETRY_NS / 1000);
	return weir_collect(ctx, in);
}

static const struct weir_operator stalling = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "stalling",
		.help = "stops while a file exists",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = 1,
		.declare = declare,
		.process = process,
};

static const struct weir_operator blocking = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "blocking",
		.help = "blocks its worker while a file exists",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = 1,
		.declare = declare,
		.process = block,
};

const struct weir_operator *weir_plugin(uint32_t index);

const struct weir_operator *weir_plugin(uint32_t index)
{
	return index == 0 ? &stalling : index == 1 ? &blocking : NULL;
}
