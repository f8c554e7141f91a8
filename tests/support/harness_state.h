#pragma once

/*
 * harness_state: declared state on the heap, for operator_harness alone.
 *
 * Keyed entries are walked in an order that a restore turns around, so that an operator which
 * leans on it is found out.
 */

#include "dataplane/operator/operator.h"

struct harness_table {
	struct weir_state declared;
	uint8_t *entries; /* value; or item; or key and value and a live byte */
	uint32_t *slots;  /* keyed: entry index + 1 by hash */
	uint64_t used;    /* entries ever made, dead ones included */
	uint64_t live;
};

void harness_table_init(struct harness_table *t, const struct weir_state *declared);
void harness_table_free(struct harness_table *t);
/* Takes over the contents of `from`, which has the same declaration. */
void harness_table_copy(struct harness_table *t, const struct harness_table *from);

bool harness_list_add(struct harness_table *t, const void *item);
void harness_list_remove(struct harness_table *t, uint32_t index);
void *harness_list_at(struct harness_table *t, uint32_t index);

/* The value of that key, made when `make`; NULL: not there, or full. */
void *harness_keyed_find(struct harness_table *t, const void *key, bool make);
bool harness_keyed_next(struct harness_table *t, uint64_t *cursor, const void **key,
		const void **value);
void harness_keyed_remove(struct harness_table *t, uint64_t cursor);
