#pragma once

/*
 * io_thread: one thread for what blocks (files), so that the loop never does.
 *
 * Place    control/coordinator.
 * Thread   post from the loop's thread; work runs on the thread, in order; done on the loop's
 *          thread, in order.
 * Life     create, { post }*, the loop stops, destroy: all posted work is done first, and its
 *          done is called.
 */

struct io_thread;
struct loop;

typedef void (*io_call)(void *context);

int io_thread_create(struct io_thread **out, struct loop *l);
/* `done` may be NULL. */
void io_thread_post(struct io_thread *t, io_call work, io_call done, void *context);
/* Nobody waits for its `done`: it is called with that of work posted later, or by collect. */
void io_thread_post_quiet(struct io_thread *t, io_call work, io_call done, void *context);
/* On the loop's thread: calls `done` of what has ended. */
void io_thread_collect(struct io_thread *t);
void io_thread_destroy(struct io_thread *t);
