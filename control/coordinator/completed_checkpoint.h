#pragma once

/*
 * completed_checkpoint: one durable checkpoint as the coordinator remembers it: what it is, where
 * it is, and which files it holds.  The state itself is read from its `_metadata` when needed.
 *
 * Place    control/coordinator; the glue writes it beside the states and reads it back.
 * Memory   owns what it points to.
 * Errors   none: see heap.h.
 */

#include "control/coordinator/checkpoint_properties.h"
#include "control/coordinator/snapshot_state.h"

#include <stdbool.h>
#include <stdint.h>

struct completed_checkpoint {
	int64_t id;
	int64_t timestamp_ms; /* wall clock of its trigger */
	int64_t completed_ms; /* wall clock of its end */
	struct checkpoint_properties properties;
	enum checkpoint_kind made_as; /* what it was when it was written (20.2, last field) */
	bool is_restored;             /* a job began from it, in this process */
	/* Files created by checkpoints up to this id belong to somebody else (SR-3). */
	int64_t unclaimed_id_max;
	int64_t state_bytes;
	char *location;            /* its directory */
	struct file_list files;    /* private */
	struct shared_list shared; /* the files it uses, placeholders replaced */
};

/* All zeros but for the copied location. */
void completed_checkpoint_create(
		struct completed_checkpoint **out, int64_t id, const char *location);
void completed_checkpoint_destroy(struct completed_checkpoint *c);
