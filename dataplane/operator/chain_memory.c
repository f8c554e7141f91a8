/* The part of the chain that knows what its operators need, and where that lies. */

#include <stdio.h>

#include "dataplane/base/check.h"
#include "dataplane/operator/chain_internal.h"
#include "dataplane/operator/keyed_state.h"

enum { VALUE_ALIGN_BYTES = 64 };

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

int chain_declare(struct chain_operator_config *operators, uint32_t count, uint32_t subtask_index,
		uint32_t parallelism, uint32_t in_record_bytes, char error[WEIR_ERROR_BYTES])
{
	for (uint32_t i = 0; i < count; i++) {
		struct chain_operator_config *o = &operators[i];
		struct weir_setting setting = {
			.uid = o->uid,
			.subtask_index = subtask_index,
			.parallelism = parallelism,
			.in_record_bytes = in_record_bytes,
			.values = o->values,
		};

		memset(&o->declaration, 0, sizeof(o->declaration));
		int status = o->op->declare(&setting, &o->declaration, error);
		if (status != 0)
			return status;
		in_record_bytes = o->declaration.out_record_bytes;
	}
	return 0;
}

/* ---- memory ---- */

static struct keyed_state_config keyed_config(
		const struct chain_config *config, const struct weir_state *s)
{
	return (struct keyed_state_config){
		.key_bytes = s->key_bytes,
		.group_bytes = s->group_bytes != 0 ? s->group_bytes : s->key_bytes,
		.value_bytes = s->value_bytes,
		.entry_count_max = s->capacity,
		.group_count = config->group_count,
		.groups = config->groups,
		.snapshots_max = config->snapshots_max,
	};
}

/* 0: not to be had at any size. */
static uint64_t state_bytes(const struct chain_config *config, const struct weir_state *s)
{
	struct keyed_state_config keyed;
	uint64_t bytes;

	switch (s->kind) {
	case WEIR_STATE_VALUE:
		return round_up(s->value_bytes, VALUE_ALIGN_BYTES);
	case WEIR_STATE_LIST:
		if (__builtin_mul_overflow(s->capacity, (uint64_t)s->value_bytes, &bytes))
			return 0;
		return round_up(bytes, VALUE_ALIGN_BYTES);
	case WEIR_STATE_KEYED:
		keyed = keyed_config(config, s);
		return keyed_state_memory_bytes(&keyed);
	}
	return 0;
}

static uint64_t fixed_bytes(const struct chain_operator_config *o)
{
	return round_up(o->declaration.self_bytes, VALUE_ALIGN_BYTES) +
			round_up(CHAIN_COUNTERS_MAX * sizeof(uint64_t), VALUE_ALIGN_BYTES);
}

uint64_t chain_memory_bytes(const struct chain_config *config, char error[WEIR_ERROR_BYTES])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < config->operator_count; i++) {
		const struct chain_operator_config *o = &config->operators[i];

		sum += fixed_bytes(o);
		for (uint32_t k = 0; k < o->declaration.state_count; k++) {
			const struct weir_state *s = &o->declaration.states[k];
			uint64_t bytes = state_bytes(config, s);

			if (bytes == 0 || bytes > UINT64_MAX / 4 - sum) {
				snprintf(error, WEIR_ERROR_BYTES,
						"operator %s: state %s cannot hold %llu entries of "
						"%u + %u bytes",
						o->uid, s->name, (unsigned long long)s->capacity,
						s->key_bytes, s->value_bytes);
				return UINT64_MAX;
			}
			/* Keyed states want whole pages. */
			if (s->kind == WEIR_STATE_KEYED)
				sum = round_up(sum, CHAIN_STATE_ALIGN_BYTES);
			sum += bytes;
		}
	}
	return round_up(sum, CHAIN_STATE_ALIGN_BYTES);
}

static void *layout_take(struct chain_layout *l, uint64_t bytes, uint64_t unit)
{
	uint8_t *piece = (uint8_t *)round_up((uintptr_t)l->at, unit);

	l->at = piece + bytes;
	return piece;
}

static void *layout_take_zeroed(struct chain_layout *l, uint64_t bytes)
{
	uint64_t rounded = round_up(bytes, VALUE_ALIGN_BYTES);
	void *piece = layout_take(l, rounded, VALUE_ALIGN_BYTES);

	memset(piece, 0, rounded);
	return piece;
}

static void init_slot(struct chain *c, struct chain_slot *s, const struct weir_state *declared,
		struct chain_layout *l)
{
	s->declared = *declared;
	if (declared->kind == WEIR_STATE_KEYED) {
		struct keyed_state_config config = keyed_config(&c->config, declared);
		uint64_t bytes = keyed_state_memory_bytes(&config);
		void *memory = layout_take(l, bytes, CHAIN_STATE_ALIGN_BYTES);

		s->keyed = keyed_state_create_at(memory, &config);
	} else {
		s->memory = layout_take_zeroed(l, state_bytes(&c->config, declared));
	}
}

void chain_init_operator(struct chain *c, uint32_t index, struct chain_layout *l)
{
	struct weir_context *ctx = &c->operators[index];
	const struct chain_operator_config *o = &c->config.operators[index];

	ctx->head.services = &chain_services;
	ctx->chain = c;
	ctx->index = index;
	ctx->op = o->op;
	ctx->declaration = o->declaration;
	ctx->watermark_in = WEIR_WATERMARK_NONE;
	ctx->watermark_done = WEIR_WATERMARK_NONE;
	ctx->info = (struct weir_info){
		.uid = o->uid,
		.job_id = c->config.job_id,
		.attempt_id = c->config.attempt_id,
		.subtask_index = c->config.subtask_index,
		.parallelism = c->config.parallelism,
		.in_record_bytes = index == 0 ? 0 :
				c->operators[index - 1].declaration.out_record_bytes,
		.out_record_bytes = o->declaration.out_record_bytes,
		.restored_checkpoint_id = c->config.restored_checkpoint_id,
		.checkpointing = c->config.checkpointing,
		.values = o->values,
	};
	ctx->self = layout_take_zeroed(l, o->declaration.self_bytes);
	ctx->counters = layout_take_zeroed(l, CHAIN_COUNTERS_MAX * sizeof(uint64_t));
	for (uint32_t i = 0; i < o->declaration.state_count; i++)
		init_slot(c, &ctx->slots[i], &o->declaration.states[i], l);
	c->state_count += 1 + o->declaration.state_count;
}
