#pragma once

/*
 * shared_state_registry: who uses the files that several checkpoints share, and which of them
 * nobody uses any more (flink-semantics 11.4).
 *
 * Place    control/coordinator, pure.
 * Thread   one owner.
 * Memory   heap, one entry for each file.
 * Errors   -ENOENT: a placeholder for a file that is not known; -EEXIST: another file under a key.
 */

#include "control/coordinator/completed_checkpoint.h"
#include "control/coordinator/snapshot_state.h"

#include <stdbool.h>
#include <stdint.h>

struct shared_state_registry;

void shared_state_registry_create(struct shared_state_registry **out);
void shared_state_registry_destroy(struct shared_state_registry *r);

/* SR-1: the checkpoint uses these files; placeholders in `l` become the files they stand for. */
int shared_state_registry_register(
		struct shared_state_registry *r, struct shared_list *l, int64_t checkpoint_id);

/* SR-3: all files of a restored checkpoint; those up to `c->unclaimed_id_max` are not ours. */
int shared_state_registry_register_restored(
		struct shared_state_registry *r, struct completed_checkpoint *c);

/* Ids of checkpoints that files in use still need (SR-2). */
struct id_list {
	int64_t *ids;
	uint32_t count;
};
bool id_list_contains(const struct id_list *l, int64_t id);
void id_list_clear(struct id_list *l);

/* SR-2: drops what was last used below `lowest_id`; `files` gets those to be deleted. */
void shared_state_registry_unregister_unused(struct shared_state_registry *r, int64_t lowest_id,
		struct file_list *files, struct id_list *in_use);

/* Files created by checkpoints up to this id are never deleted. */
int64_t shared_state_registry_unclaimed_id_max(const struct shared_state_registry *r);
