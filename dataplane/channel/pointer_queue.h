#pragma once

/*
 * pointer_queue: pointers from one thread to one other, in order: mail to a worker, reports from
 * it, and what a reader thread of an operator has read.
 *
 * Place    channel; behind the queue services of operator.h and the mailboxes of task/.
 * Thread   one pushes, one pops.
 * Memory   one allocation in create, none afterwards.
 * Life     create, { push, pop }*, destroy after both threads are done with it.
 */

#include <stdbool.h>
#include <stdint.h>

struct pointer_queue;

/* Room for `slots` items, 1..65536; NULL when memory is short. */
struct pointer_queue *pointer_queue_create(uint32_t slots);
void pointer_queue_destroy(struct pointer_queue *q);

/* false: full. */
bool pointer_queue_push(struct pointer_queue *q, void *item);
/* NULL: empty. */
void *pointer_queue_pop(struct pointer_queue *q);
/* For who pushes: all of it has been taken. */
bool pointer_queue_is_empty(const struct pointer_queue *q);
