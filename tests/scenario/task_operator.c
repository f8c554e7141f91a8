/* The operator of a task under script: writes down what it is given, and emits what it is told. */

#include "tests/scenario/task_parts.h"

#include "dataplane/base/check.h"

#include <inttypes.h>
#include <string.h>

static struct task_world *world_of(struct weir_context *ctx)
{
	return (struct task_world *)(uintptr_t)weir_info(ctx)->values[0].integer;
}

static int recording_declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->out_record_bytes = EMITTED_BYTES;
	d->out_key_bytes = sizeof(uint64_t);
	d->state_count = 1;
	d->states[0] = (struct weir_state){.name = "delivered",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(uint64_t),
			.version = 1};
	return 0;
}

static uint32_t recording_process(
		void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct task_world *w = world_of(ctx);

	(void)self;
	for (uint32_t i = 0; i < in->count; i++) {
		uint32_t label = task_label_read(in->data + (size_t)i * in->record_bytes,
				in->record_bytes);

		if (label != 0)
			task_world_add(w, &w->delivered, "delivered", "%s",
					task_world_label_text(w, label));
		++*(uint64_t *)weir_value(ctx, 0);
	}
	return in->count;
}

static enum weir_poll recording_poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	(void)self;
	(void)records_max;
	return world_of(ctx)->is_exhausted ? WEIR_POLL_END : WEIR_POLL_IDLE;
}

/* One emission of the script, while there is room. */
static void recording_event(
		void *self, struct weir_context *ctx, const void *data, uint32_t bytes)
{
	struct task_world *w = world_of(ctx);
	uint8_t record[EMITTED_BYTES] = {0};
	struct weir_batch batch = {record, 1, EMITTED_BYTES, EMITTED_BYTES};

	(void)self;
	(void)data;
	(void)bytes;
	while (w->emission_count > 0 && weir_room(ctx) > 0) {
		struct emission e = w->emissions[0];

		memcpy(record, &w->outputs[e.output].key, sizeof(uint64_t));
		task_label_write(record + sizeof(uint64_t), sizeof(uint64_t), e.label);
		CHECK(weir_collect(ctx, &batch) == 1);
		w->emission_count--;
		memmove(w->emissions, w->emissions + 1,
				w->emission_count * sizeof(w->emissions[0]));
	}
}

static void recording_before_barrier(void *self, struct weir_context *ctx, int64_t id)
{
	struct task_world *w = world_of(ctx);

	(void)self;
	task_ids_add(&w->performed, id);
	if (checkpoint_options_is_unaligned(stream_task_performed_options(w->task)))
		task_ids_add(&w->unaligned, id);
	task_world_add(w, &w->trig, "trig", "%" PRId64, id);
}

static void recording_notify_complete(void *self, struct weir_context *ctx, int64_t id)
{
	struct task_world *w = world_of(ctx);

	(void)self;
	task_world_add(w, &w->notified, "notified", "%" PRId64, id);
}

const struct weir_operator recording_operator = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "recording",
		.help = "writes down what it is given",
		.role = WEIR_TRANSFORM,
		.declare = recording_declare,
		.poll = recording_poll,
		.process = recording_process,
		.event = recording_event,
		.before_barrier = recording_before_barrier,
		.notify_complete = recording_notify_complete,
};
