#pragma once

/*
 * state_world: the states of a task with two operators, large and small ones of each kind, and a
 * state_writer for them on a store that can be made to fail.
 *
 * Thread   one.
 * Errors   a failed step fails the test that asked for it.
 */

#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/operator/keyed_state.h"
#include "tests/sim/fault_store.h"

enum { VALUE_BYTES = 40, ITEM_BYTES = 100, ITEMS_MAX = 1000, KEYS = 100000, STATES = 5 };

/* The states of a task with two operators, and their sizes large and small. */
struct world {
	uint8_t value[VALUE_BYTES];
	uint32_t item_count, few_count;
	uint8_t items[ITEMS_MAX][ITEM_BYTES];
	uint8_t few[10][8];
	struct keyed_state *large, *small;
	void *large_memory, *small_memory;
	struct declared_state states[STATES];
};

void world_init(struct world *w);
void world_free(struct world *w);
struct keyed_state *world_create_keyed(uint32_t key_bytes, uint64_t count, void **memory);
/* Adds to the value of the key of that number. */
void world_add(struct keyed_state *s, uint64_t number, uint64_t amount);
/* Changes some of everything. */
void world_change(struct world *w, struct prng *p);
/* A world of its own with the same contents. */
void world_copy(struct world *to, const struct world *from);
/* Fails the test when the contents differ. */
void world_compare(const struct world *a, const struct world *b);

struct state_writer *world_create_writer(struct world *w, struct store *store,
		uint32_t inline_bytes_max, void **memory);

void wait_a_little(void);
/* Steps until the snapshot is done; its outcome. */
int writer_run(struct state_writer *w, const char **text);
/* Steps until the writer is idle. */
void writer_settle(struct state_writer *w);

/* Through bytes, as an acknowledgement would carry it; task_state_free it. */
struct task_state *carry_state(const struct task_state *t);

struct writer_bench {
	struct world world;
	struct store *store;
	struct fault_store disk;
	struct state_writer *writer;
	void *memory;
};

void writer_bench_init(struct writer_bench *b, enum store_kind kind);
/* The writer must be idle. */
void writer_bench_free(struct writer_bench *b);
