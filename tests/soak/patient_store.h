#pragma once

/*
 * patient_store: a store over a real one that makes its timing repeatable: what was asked for is
 * done when it is next looked at, and is answered so many looks later, as a seed draws it, in any
 * order.
 *
 * Place    tests; stacks on uring_store and thread_store.
 * Thread   one owner.
 * Errors   those of the inner store.
 */

#include "dataplane/checkpoint/store.h"

/* Owns `inner`.  `delay_max`: looks; 0: at once.  NULL: no memory. */
struct store *patient_store_create(struct store *inner, uint64_t seed, uint32_t delay_max);
