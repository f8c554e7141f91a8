#pragma once

/*
 * thread_store: the store on I/O threads, where io_uring is refused; same files, same results.
 *
 * Place    checkpoint, behind store.h.
 * Thread   submit and reap on one thread, which shares two lock-free rings with the I/O
 *          threads.
 * Memory   allocated in create.
 * Errors   create: -ENOMEM, -EAGAIN.
 */

struct store;

int thread_store_create(struct store **out);
