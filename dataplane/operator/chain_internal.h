#pragma once

/* chain_internal: what chain.c and chain_services.c share. */

#include "dataplane/operator/chain.h"

enum {
	/* The framework's own counters stand in front of the operator's. */
	CHAIN_RECORDS_IN,
	CHAIN_RECORDS_OUT,
	CHAIN_HAS_FINISHED, /* 1: finish is behind it, also after a restore */
	CHAIN_OWN_COUNTERS = 8,
	CHAIN_COUNTERS_MAX = CHAIN_OWN_COUNTERS + WEIR_COUNTERS_MAX,
	CHAIN_COUNTERS_VERSION = 1,
	CHAIN_STATE_ALIGN_BYTES = 4096,
};

/* One state of one operator. */
struct chain_slot {
	struct weir_state declared;
	void *memory;
	uint32_t list_count;
	struct keyed_state *keyed;
};

struct weir_context {
	struct weir_context_head head;
	struct chain *chain;
	uint32_t index; /* in the chain */
	const struct weir_operator *op;
	void *self;
	struct weir_declaration declaration;
	struct weir_info info;
	struct chain_slot slots[WEIR_STATES_MAX];
	uint64_t *counters; /* CHAIN_COUNTERS_MAX, part of the state */
	int64_t watermark_in;   /* what it has to hear of */
	int64_t watermark_done; /* what it has dealt with */
	bool is_open;
};

struct chain {
	struct chain_config config;
	uint64_t now_ns;
	uint64_t not_before_ns;
	bool has_failed, is_final; /* is_final: for good */
	int64_t watermark_out; /* what the outputs know */
	char failure[WEIR_ERROR_BYTES];
	uint32_t state_count;
	struct weir_context operators[CHAIN_OPERATORS_MAX];
};

extern const struct weir_services chain_services;

/* Records the operator `index` may be given now (all of them behind it included). */
uint32_t chain_room_at(struct chain *c, uint32_t index);
/* Hands records to operator `index`, or to the outputs when it is behind the last. */
uint32_t chain_hand_over(struct chain *c, uint32_t index, const struct weir_batch *batch);
/* A watermark for operator `index`, or for the outputs. */
void chain_offer_watermark(struct chain *c, uint32_t index, int64_t watermark);

/* ---- chain_memory.c ---- */

/* Hands out pieces of the memory in the order chain_memory_bytes counted them. */
struct chain_layout {
	uint8_t *at;
};

/* Gives an operator its memory; config.operators is still there. */
void chain_init_operator(struct chain *c, uint32_t index, struct chain_layout *l);
