#pragma once

/*
 * chain_fixture: a chain of up to three probe operators in front of one edge; each does what its
 * struct probe says and writes down what was asked of it.
 *
 * Place    tests only.
 */

#include "dataplane/operator/chain.h"
#include "tests/support/edge.h"

enum { PROBES_MAX = 3, JOURNAL_BYTES = 2048 };

struct probe {
	char *journal;              /* shared by the chain */
	uint32_t take_max;          /* records of one call; 0: as many as fit */
	uint32_t take_total;        /* then it takes nothing more; 0: no end */
	uint32_t copies;            /* records out for each in; 0 is 1 */
	uint64_t ask_not_before;    /* when it takes nothing */
	uint32_t window_count;      /* records made at a watermark */
	uint32_t finish_refusals;   /* finish says false that often */
	uint32_t finish_count;      /* records made by finish */
	uint32_t poll_count;        /* a source: records it still makes */
	bool is_exhausted;          /* then it ends */
	int open_status;
	bool is_busy;
	const char *fail_in;        /* the hook in which it fails */

	uint32_t calls, taken, made;
};

struct chain_fixture {
	const struct weir_operator *op; /* NULL: the probe */
	uint32_t in_record_bytes;       /* what the head is given; 0 at first */
	struct edge edge;
	bool has_edge;
	struct chain *chain;
	void *memory;
	uint32_t count;
	char journal[JOURNAL_BYTES];
	struct probe probes[PROBES_MAX];
	struct weir_value values[PROBES_MAX];
	struct output_gate *outputs[2];
	uint32_t output_count;
};

/* 16-byte records, four to a buffer; the output takes two buffers and the channel one. */
extern const struct edge_config CHAIN_EDGE;

/* Probes "a", "b", "c"; zeroed, so that they pass on what comes.  Set them before open. */
void chain_fixture_init(struct chain_fixture *f, uint32_t count);
/* NULL: no output. */
void chain_fixture_open(struct chain_fixture *f, const struct edge_config *edge);
int chain_fixture_open_chain(struct chain_fixture *f);
void chain_fixture_close(struct chain_fixture *f);

/* Hands the chain `count` records with values from `value` on; how many it took. */
uint32_t chain_fixture_process(struct chain_fixture *f, uint64_t value, uint32_t count);

/* Moves what the output holds to the consumer and lets it process all; how many records. */
uint32_t chain_fixture_drain(struct chain_fixture *f);

/* The journal since the last call. */
const char *chain_fixture_journal(struct chain_fixture *f, char text[JOURNAL_BYTES]);

uint64_t chain_fixture_counter(struct chain_fixture *f, const char *uid, const char *name);
