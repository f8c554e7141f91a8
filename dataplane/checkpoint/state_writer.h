#pragma once

/*
 * state_writer: takes the snapshot of one subtask's states and makes it durable beside the stream
 * (semantics 14.2 step 5, 14.3).
 *
 * Place    checkpoint; driven by subtask_coordinator, writes through store.h.
 * Thread   one owner, the worker of the task.
 * Memory   all in the memory given to create_at: copies of values and lists, small states, the
 *          description.  Keyed states bring their own.
 * Time     begin copies values and lists (the synchronous part); each step is bounded.
 * Errors   0 or -errno with the phase and file in words; nothing here fails the task.
 * Life     create_at, { begin, step until is_done, outcome, end }*, abort, step until is_idle; then
 *          the memory may be given back.
 *
 * States of at most `inline_bytes_max` bytes stay in the description (SL-5); all others go into
 * ONE file <directory>/<vertex uid>-<subtask>-<first 8 hex digits of the attempt>, each at a
 * multiple of STORE_ALIGN_BYTES.  A file of that name that is there is written over, and may stay
 * longer than what was written: nobody reads what no handle names.
 */

#include "dataplane/base/ids.h"
#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/task_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_writer;
struct store;

enum {
	STATE_WRITER_PATH_BYTES = 1024,
	STATE_WRITER_TEXT_BYTES = 1280,
};

struct state_writer_config {
	struct store *store;       /* borrowed; nobody else reaps it */
	const char *vertex_uid;    /* borrowed */
	uint32_t subtask_index, parallelism;
	struct attempt_id attempt;
	uint32_t group_count;
	uint32_t inline_bytes_max; /* data-inline-threshold, 0..STATE_INLINE_BYTES_MAX */
	uint32_t state_count;      /* 0..TASK_STATE_HANDLES_MAX */
	const struct declared_state *states; /* borrowed; those of one uid stand together */
};

/* Memory that create_at needs, a multiple of STORE_ALIGN_BYTES; 0 for a bad config. */
uint64_t state_writer_memory_bytes(const struct state_writer_config *config);

/* `memory` is STORE_ALIGN_BYTES aligned. */
struct state_writer *state_writer_create_at(
		void *memory, const struct state_writer_config *config);

/* The synchronous part: from here on the states may change again.  `directory` exists and is
 * copied.  -EBUSY: the previous snapshot is not over (the disk hangs); -ENOBUFS: other writers have
 * as many copies of a keyed state as it was made for (one given up has its copy until the writes
 * that were issued are back, not until its file is closed and gone); -ENAMETOOLONG. */
int state_writer_begin(struct state_writer *w, int64_t checkpoint_id, const char *directory);

/* Goes on: copies up to `block_budget` blocks of keyed state, queues writes, reaps.  Call it each
 * turn while not idle.  Returns how much it did. */
uint32_t state_writer_step(struct state_writer *w, uint32_t block_budget);

/* True once the snapshot that began is durable or has failed. */
bool state_writer_is_done(const struct state_writer *w);

/* Of a done one: 0, or -errno with a text that names phase and file. */
int state_writer_outcome(const struct state_writer *w, const char **text);

/* Of a done one with outcome 0; stays valid until end. */
const struct task_state *state_writer_result(const struct state_writer *w);

/* The result is not needed any more. */
void state_writer_end(struct state_writer *w);

/* Gives the running snapshot up (SC-4): no outcome, its file is removed.  Does not wait: until
 * the writes under way have come back, begin answers -EBUSY. */
void state_writer_abort(struct state_writer *w);

/* True when nothing is under way: begin will work and the memory is ours alone. */
bool state_writer_is_idle(const struct state_writer *w);
