#pragma once

/*
 * checkpoints_cleaner: which deletions are under way, and which checkpoints wait until nobody needs
 * their files (flink-semantics 11.3, ST-4).  Deleting itself is the glue's.
 *
 * Place    control/coordinator, pure.
 * Thread   one owner.
 * Memory   owns deletions until they are done, and the subsumed checkpoints.
 */

#include "control/coordinator/checkpoint_decision.h"
#include "control/coordinator/completed_checkpoint.h"
#include "control/coordinator/shared_state_registry.h"

#include <stdbool.h>
#include <stdint.h>

struct checkpoints_cleaner;

void checkpoints_cleaner_create(struct checkpoints_cleaner **out);
void checkpoints_cleaner_destroy(struct checkpoints_cleaner *c);

/* A deletion begins; `what->location` is copied, `what->files` are taken. */
const struct deletion *checkpoints_cleaner_begin(struct checkpoints_cleaner *c, uint64_t token,
		const struct deletion *what);
/* It is done, well or not (CL-1); false for a token that is not known. */
bool checkpoints_cleaner_end(struct checkpoints_cleaner *c, uint64_t token);

/* Whole checkpoints being deleted; what RD-3 looks at. */
uint32_t checkpoints_cleaner_running_count(const struct checkpoints_cleaner *c);
/* Everything being deleted: closing waits for 0 (CL-3). */
uint32_t checkpoints_cleaner_open_count(const struct checkpoints_cleaner *c);

/* ST-4: `checkpoint` left the store; taken. */
void checkpoints_cleaner_add_subsumed(
		struct checkpoints_cleaner *c, struct completed_checkpoint *checkpoint);
/* The next subsumed one below `lowest_id` that is not in use, now the caller's; NULL: no more. */
struct completed_checkpoint *checkpoints_cleaner_take_subsumed(struct checkpoints_cleaner *c,
		int64_t lowest_id, const struct id_list *in_use);
