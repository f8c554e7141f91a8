#pragma once

/*
 * completed_checkpoint_store: the completed checkpoints a job can restart from, and which of them
 * have had their day (flink-semantics 11.2).
 *
 * Place    control/coordinator, pure.  The durable list behind it is the glue's: the coordinator
 *          asks for each change, and adds here what is durable there.
 * Thread   one owner.
 * Memory   owns the checkpoints it holds.
 */

#include "control/coordinator/completed_checkpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct completed_checkpoint_store;

/* ST-1: the newest one stays, whatever `retained_count`. */
void completed_checkpoint_store_create(
		struct completed_checkpoint_store **out, uint32_t retained_count);
void completed_checkpoint_store_destroy(struct completed_checkpoint_store *s);

/* Keeps the order of ids.  False, taking nothing, if that id is held already. */
bool completed_checkpoint_store_add(
		struct completed_checkpoint_store *s, struct completed_checkpoint *c);

/* ST-3: the next one that must leave, now the caller's; NULL when all may stay. */
struct completed_checkpoint *completed_checkpoint_store_subsume(
		struct completed_checkpoint_store *s);

/* The oldest, now the caller's; NULL when there is none. */
struct completed_checkpoint *completed_checkpoint_store_take(struct completed_checkpoint_store *s);

/* Oldest first; NULL behind the last. */
const struct completed_checkpoint *completed_checkpoint_store_at(
		const struct completed_checkpoint_store *s, uint32_t index);
const struct completed_checkpoint *completed_checkpoint_store_find(
		const struct completed_checkpoint_store *s, int64_t id);
/* NULL when empty. */
const struct completed_checkpoint *completed_checkpoint_store_latest(
		const struct completed_checkpoint_store *s);
/* ST-7: 0 when empty. */
int64_t completed_checkpoint_store_latest_id(const struct completed_checkpoint_store *s);
/* ST-4: the smallest id that is no savepoint; 0 when there is none. */
int64_t completed_checkpoint_store_lowest_id(const struct completed_checkpoint_store *s);
