#pragma once

/*
 * uring_store: the store on io_uring; the only file that knows liburing.
 *
 * Place    checkpoint, behind store.h.
 * Thread   created anywhere; submit and reap on one thread.
 * Memory   allocated in create; the ring is the kernel's.
 * Errors   create: -EPERM, -ENOSYS, -EOPNOTSUPP (an operation is missing), -ENOMEM ...
 */

struct store;

int uring_store_create(struct store **out);
