#include "dataplane/operator/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/operator/chain_internal.h"

int chain_create_at(struct chain **out, void *memory, const struct chain_config *config)
{
	struct chain_layout l = {memory};
	struct chain *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	CHECK(config->operator_count >= 1);
	CHECK(config->operator_count <= CHAIN_OPERATORS_MAX);
	CHECK((uintptr_t)memory % CHAIN_STATE_ALIGN_BYTES == 0);
	c->config = *config;
	c->watermark_out = WEIR_WATERMARK_NONE;
	for (uint32_t i = 0; i < config->operator_count; i++)
		chain_init_operator(c, i, &l);
	c->config.operators = NULL; /* borrowed until here */
	*out = c;
	return 0;
}

void chain_destroy(struct chain *c)
{
	free(c);
}

/* ---- states ---- */

uint32_t chain_state_count(const struct chain *c)
{
	return c->state_count;
}

struct chain_state chain_counters_state(const char *uid)
{
	return (struct chain_state){
		.uid = uid,
		.name = "counters",
		.kind = WEIR_STATE_VALUE,
		.value_bytes = CHAIN_COUNTERS_MAX * sizeof(uint64_t),
		.version = CHAIN_COUNTERS_VERSION,
		.capacity = 1,
		.is_counters = true,
		.own_counters = UINT64_C(1) << CHAIN_HAS_FINISHED,
	};
}

/* A counter is a sum, but one whose name ends in _xor. */
static uint64_t xor_counters(const struct weir_declaration *d)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < d->counter_count; i++) {
		size_t length = strlen(d->counters[i]);

		if (length >= 4 && strcmp(d->counters[i] + length - 4, "_xor") == 0)
			bits |= UINT64_C(1) << (CHAIN_OWN_COUNTERS + i);
	}
	return bits;
}

/* Index 0 of an operator is its counters, then what it declared. */
struct chain_state chain_state_at(const struct chain *c, uint32_t index)
{
	const struct weir_context *ctx = c->operators;

	CHECK(index < c->state_count);
	while (index > ctx->declaration.state_count) {
		index -= 1 + ctx->declaration.state_count;
		ctx++;
	}
	if (index == 0) {
		struct chain_state counters = chain_counters_state(ctx->info.uid);

		counters.memory = ctx->counters;
		counters.xor_counters = xor_counters(&ctx->declaration);
		return counters;
	}
	const struct chain_slot *s = &ctx->slots[index - 1];
	return (struct chain_state){
		.uid = ctx->info.uid,
		.name = s->declared.name,
		.kind = s->declared.kind,
		.key_bytes = s->declared.key_bytes,
		.value_bytes = s->declared.value_bytes,
		.version = s->declared.version,
		.capacity = s->declared.capacity,
		.memory = s->memory,
		.list_count = s->declared.kind == WEIR_STATE_LIST
				? (uint32_t *)(uintptr_t)&s->list_count
				: NULL,
		.keyed = s->keyed,
		.rescale = (enum weir_rescale)s->declared.rescale,
	};
}

/* ---- life ---- */

int chain_open(struct chain *c)
{
	for (uint32_t i = c->config.operator_count; i-- > 0;) {
		struct weir_context *ctx = &c->operators[i];
		int status = ctx->op->open != NULL ? ctx->op->open(ctx->self, ctx) : 0;

		if (status == 0 && !c->has_failed) {
			ctx->is_open = true;
			continue;
		}
		chain_fail(c, "operator %s did not open: %s", ctx->info.uid, strerror(-status));
		chain_close(c);
		return status != 0 ? status : -EIO;
	}
	return 0;
}

void chain_close(struct chain *c)
{
	for (uint32_t i = c->config.operator_count; i-- > 0;) {
		struct weir_context *ctx = &c->operators[i];

		if (ctx->is_open && ctx->op->close != NULL)
			ctx->op->close(ctx->self, ctx);
		ctx->is_open = false;
	}
}

const char *chain_failure(const struct chain *c)
{
	return c->has_failed ? c->failure : NULL;
}

bool chain_is_failure_final(const struct chain *c)
{
	return c->is_final;
}

void chain_fail(struct chain *c, const char *format, ...)
{
	va_list args;

	if (c->has_failed)
		return;
	c->has_failed = true;
	va_start(args, format);
	vsnprintf(c->failure, sizeof(c->failure), format, args);
	va_end(args);
}

/* ---- the turn ---- */

void chain_set_now(struct chain *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
}

uint64_t chain_take_not_before(struct chain *c)
{
	uint64_t time_ns = c->not_before_ns;

	c->not_before_ns = 0;
	return time_ns;
}

static bool is_watermark_pending(const struct weir_context *ctx)
{
	return ctx->watermark_in > ctx->watermark_done;
}

static uint32_t outputs_room(struct chain *c)
{
	uint32_t room = RECORDS_COUNT_MAX;

	for (uint32_t i = 0; i < c->config.output_count; i++) {
		uint32_t here = output_gate_room(c->config.outputs[i]);

		room = here < room ? here : room;
	}
	return room;
}

uint32_t chain_room_at(struct chain *c, uint32_t index)
{
	uint32_t room = outputs_room(c);

	if (c->has_failed)
		return 0;
	for (uint32_t i = c->config.operator_count; i-- > index && room > 0;) {
		struct weir_context *ctx = &c->operators[i];

		if (is_watermark_pending(ctx))
			return 0;
		if (ctx->op->room == NULL)
			continue;
		uint32_t here = ctx->op->room(ctx->self, ctx);
		room = here < room ? here : room;
	}
	return room;
}

uint32_t chain_room(struct chain *c)
{
	return chain_room_at(c, 0);
}

/* The first `count` records of `in`, or those behind them. */
static uint32_t bytes_of(const struct weir_batch *in, uint32_t count)
{
	uint32_t at = 0, bytes;

	if (in->record_bytes != 0)
		return count * in->record_bytes;
	for (uint32_t i = 0; i < count; i++) {
		(void)weir_record_at(in->data + at, &bytes);
		at += (uint32_t)sizeof(bytes) + bytes;
	}
	return at;
}

static struct weir_batch batch_behind(const struct weir_batch *in, uint32_t count)
{
	uint32_t skip = bytes_of(in, count);

	return (struct weir_batch){
		.data = in->data + skip,
		.count = in->count - count,
		.record_bytes = in->record_bytes,
		.data_bytes = in->data_bytes - skip,
	};
}

/* A record larger than its edge agreed on will never be taken. */
static uint32_t collect_into(struct chain *c, struct output_gate *output,
		const struct weir_batch *batch)
{
	uint32_t taken = output_gate_collect(output, batch);

	if (__builtin_expect(taken < batch->count, 0) && output_gate_oversized_bytes(output) > 0)
		chain_fail(c, "a record of %u bytes is larger than its edge can carry",
				output_gate_oversized_bytes(output));
	return taken;
}

static uint32_t hand_to_outputs(struct chain *c, const struct weir_batch *batch)
{
	struct weir_batch part = *batch;

	if (c->config.output_count == 1)
		return collect_into(c, c->config.outputs[0], batch);
	if (c->config.output_count == 0)
		return batch->count;
	/* All outputs take the same records, so only what surely fits everywhere. */
	uint32_t room = outputs_room(c);
	if (part.count > room) {
		part.count = room;
		part.data_bytes = bytes_of(batch, room);
	}
	for (uint32_t i = 0; part.count > 0 && i < c->config.output_count; i++) {
		uint32_t taken = collect_into(c, c->config.outputs[i], &part);

		CHECK(taken == part.count || c->has_failed);
	}
	return part.count;
}

/* One call. */
static uint32_t offer(struct weir_context *ctx, const struct weir_batch *batch)
{
	uint32_t taken = ctx->op->process(ctx->self, ctx, batch);

	CHECK(taken <= batch->count);
	ctx->counters[CHAIN_RECORDS_IN] += taken;
	return taken;
}

uint32_t chain_hand_over(struct chain *c, uint32_t index, const struct weir_batch *batch)
{
	struct weir_batch rest = *batch;

	if (index == c->config.operator_count)
		return hand_to_outputs(c, batch);
	struct weir_context *ctx = &c->operators[index];
	/* An operator may take a batch in pieces; each piece is at least one record. */
	while (rest.count > 0 && !c->has_failed && !is_watermark_pending(ctx)) {
		uint32_t taken = offer(ctx, &rest);

		if (taken == 0)
			break;
		rest = batch_behind(&rest, taken);
	}
	return batch->count - rest.count;
}

bool chain_has_source(const struct chain *c)
{
	return c->operators[0].op->role == WEIR_SOURCE;
}

enum weir_poll chain_poll(struct chain *c, uint32_t records_max)
{
	struct weir_context *ctx = &c->operators[0];

	return ctx->op->poll(ctx->self, ctx, records_max);
}

uint32_t chain_process(struct chain *c, const struct weir_batch *batch)
{
	struct weir_context *ctx = &c->operators[0];

	/* Of a batch it took in part the rest is the caller's to bring: that part may have taken
	 * its time. */
	if (c->has_failed || is_watermark_pending(ctx))
		return 0;
	return offer(ctx, batch);
}

/* ---- watermarks ---- */

void chain_offer_watermark(struct chain *c, uint32_t index, int64_t watermark)
{
	if (index < c->config.operator_count) {
		struct weir_context *ctx = &c->operators[index];

		if (watermark > ctx->watermark_in)
			ctx->watermark_in = watermark;
		return;
	}
	if (watermark <= c->watermark_out)
		return;
	c->watermark_out = watermark;
	for (uint32_t i = 0; i < c->config.output_count; i++)
		output_gate_watermark(c->config.outputs[i], watermark);
}

void chain_watermark(struct chain *c, int64_t watermark)
{
	chain_offer_watermark(c, 0, watermark);
}

/* From the tail, so that what is under way there ends before more comes. */
bool chain_advance(struct chain *c)
{
	for (uint32_t i = c->config.operator_count; i-- > 0;) {
		struct weir_context *ctx = &c->operators[i];

		while (is_watermark_pending(ctx)) {
			int64_t watermark = ctx->watermark_in;

			if (c->has_failed)
				return false;
			if (ctx->op->watermark != NULL &&
					!ctx->op->watermark(ctx->self, ctx, watermark))
				return false;
			ctx->watermark_done = watermark;
			chain_offer_watermark(c, i + 1, watermark);
			i = c->config.operator_count - 1;
			ctx = &c->operators[i];
		}
	}
	return true;
}

/* ---- hooks ---- */

void chain_before_barrier(struct chain *c, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < c->config.operator_count && !c->has_failed; i++) {
		struct weir_context *ctx = &c->operators[i];

		if (ctx->op->before_barrier != NULL)
			ctx->op->before_barrier(ctx->self, ctx, checkpoint_id);
	}
}

void chain_notify_complete(struct chain *c, int64_t checkpoint_id)
{
	for (uint32_t i = c->config.operator_count; i-- > 0 && !c->has_failed;) {
		struct weir_context *ctx = &c->operators[i];

		if (ctx->op->notify_complete != NULL)
			ctx->op->notify_complete(ctx->self, ctx, checkpoint_id);
	}
}

void chain_notify_aborted(struct chain *c, int64_t checkpoint_id)
{
	for (uint32_t i = c->config.operator_count; i-- > 0 && !c->has_failed;) {
		struct weir_context *ctx = &c->operators[i];

		if (ctx->op->notify_aborted != NULL)
			ctx->op->notify_aborted(ctx->self, ctx, checkpoint_id);
	}
}

void chain_event(struct chain *c, uint32_t operator_index, const void *data, uint32_t bytes)
{
	struct weir_context *ctx = &c->operators[operator_index];

	CHECK(operator_index < c->config.operator_count);
	if (ctx->op->event != NULL && !c->has_failed)
		ctx->op->event(ctx->self, ctx, data, bytes);
}

void chain_file_done(struct chain *c, uint32_t operator_index, uint64_t tag, int status)
{
	struct weir_context *ctx = &c->operators[operator_index];

	CHECK(operator_index < c->config.operator_count);
	if (ctx->op->file_done != NULL && !c->has_failed)
		ctx->op->file_done(ctx->self, ctx, tag, status);
}

bool chain_finish(struct chain *c)
{
	for (uint32_t i = 0; i < c->config.operator_count; i++) {
		struct weir_context *ctx = &c->operators[i];

		if (c->has_failed)
			return false;
		if (ctx->counters[CHAIN_HAS_FINISHED] != 0)
			continue;
		if (ctx->op->finish != NULL && !ctx->op->finish(ctx->self, ctx))
			return false;
		ctx->counters[CHAIN_HAS_FINISHED] = !c->has_failed;
	}
	return !c->has_failed;
}

bool chain_is_busy(struct chain *c)
{
	for (uint32_t i = 0; i < c->config.operator_count; i++) {
		struct weir_context *ctx = &c->operators[i];

		if (ctx->op->is_busy != NULL && ctx->op->is_busy(ctx->self, ctx))
			return true;
	}
	return false;
}

/* ---- numbers ---- */

static uint64_t read_whole(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

void chain_visit_counters(struct chain *c,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context)
{
	for (uint32_t i = 0; i < c->config.operator_count; i++) {
		const struct weir_context *ctx = &c->operators[i];
		const uint64_t *counters = ctx->counters;

		visit(context, ctx->info.uid, "records_in",
				read_whole(&counters[CHAIN_RECORDS_IN]));
		visit(context, ctx->info.uid, "records_out",
				read_whole(&counters[CHAIN_RECORDS_OUT]));
		for (uint32_t k = 0; k < ctx->declaration.counter_count; k++)
			visit(context, ctx->info.uid, ctx->declaration.counters[k],
					read_whole(&counters[CHAIN_OWN_COUNTERS + k]));
	}
}

int64_t chain_current_watermark(const struct chain *c)
{
	return __atomic_load_n(&c->operators[0].watermark_done, __ATOMIC_RELAXED);
}
