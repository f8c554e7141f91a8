#pragma once

/*
 * declared_state: one state that an operator declared, with the memory that holds it; what a
 * snapshot is taken from and a restore is put into.
 *
 * Place    checkpoint; filled by the task when it lays out its memory.
 * Memory   texts and memory are borrowed from the task.
 */

#include "dataplane/operator/operator.h"

#include <stdbool.h>
#include <stdint.h>

struct keyed_state;

struct declared_state {
	const char *uid;  /* of the operator, or of the vertex for what belongs to the task */
	const char *name;
	enum weir_state_kind kind;
	uint32_t key_bytes; /* keyed only */
	uint32_t value_bytes;
	uint32_t version;
	uint64_t capacity;          /* list items, keyed entries */
	void *memory;               /* the value, or the items of the list */
	uint32_t *list_count;       /* lists only */
	struct keyed_state *keyed;  /* keyed only */
	enum weir_rescale rescale;
	bool is_counters;      /* an array of uint64_t: of several subtasks the sums count */
	uint64_t xor_counters; /* a bit for each of which the xor counts instead */
	uint64_t own_counters; /* and for each that says something of its own subtask alone */
};
