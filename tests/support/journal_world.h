#pragma once

/*
 * journal_world: a journal on a disk that can be made to fail, fed with numbered records, which
 * must come out numbered on.
 *
 * Thread   one.
 * Errors   a failed step fails the test that asked for it.
 */

#include "dataplane/journal/journal.h"
#include "dataplane/journal/journal_format.h"
#include "tests/sim/fault_store.h"

enum {
	WORLD_MEMORY_BYTES = 4 * WEIR_JOURNAL_BLOCK_BYTES,
	WORLD_SEGMENT_BYTES = 4 * WEIR_JOURNAL_BLOCK_BYTES,
};

struct journal_world {
	char directory[64], path[128], error[JOURNAL_ERROR_BYTES];
	struct store *inner;
	struct fault_store disk;
	struct weir_journal_config config;
	struct journal *journal; /* NULL: not open */
	struct weir_journal *face;
	uint64_t now_ns, appended, expected; /* the number in the next record each way */
};

void journal_world_begin(struct journal_world *w);
void journal_world_end(struct journal_world *w);

int journal_world_try_open(struct journal_world *w);
/* Opens it at the position of the config, and expects what is from there on. */
void journal_world_open(struct journal_world *w);
/* As kill -9: what is under way ends somewhere, and nobody hears of it. */
void journal_world_crash(struct journal_world *w);
/* As the end of a task. */
void journal_world_stop(struct journal_world *w);

void journal_world_step(struct journal_world *w);
/* Takes what there is, up to that many records. */
void journal_world_take(struct journal_world *w, uint32_t count_max);
/* Appends a record of `size` bytes; false: no place. */
bool journal_world_put(struct journal_world *w, uint32_t size);
/* Appends so many, taking what comes out. */
void journal_world_put_all(struct journal_world *w, uint32_t count, uint32_t size);
/* Steps and takes until all of before is read, all is taken, or it failed. */
void journal_world_await_replayed(struct journal_world *w);
void journal_world_await_taken(struct journal_world *w);
void journal_world_await_failure(struct journal_world *w);

/* The position of a checkpoint taken now. */
void journal_world_checkpoint(struct journal_world *w);

int journal_world_failure(const struct journal_world *w);
const char *journal_world_failure_text(const struct journal_world *w);

/* The path of the segment of that ordinal. */
void journal_world_segment(
		const struct journal_world *w, uint64_t ordinal, char name[JOURNAL_ERROR_BYTES]);
