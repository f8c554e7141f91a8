#include "dataplane/task/finished_task.h"

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	d->self_bytes = 1;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->out_record_bytes = setting->in_record_bytes;
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
	(void)in;
	weir_fail(ctx, "records came, though the task had finished when the checkpoint was taken");
	return 0;
}

static const struct weir_operator source = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "finished-source",
		.help = "a source that had finished",
		.role = WEIR_SOURCE,
		.declare = declare,
		.poll = poll,
};

static const struct weir_operator transform = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "finished",
		.help = "an operator that had finished",
		.role = WEIR_TRANSFORM,
		.declare = declare,
		.process = process,
};

const struct weir_operator *finished_task_operator(bool is_source)
{
	return is_source ? &source : &transform;
}
