#pragma once

/*
 * store_select: opens the best store this machine allows, and says why it is that one.
 *
 * Place    checkpoint.
 * Thread   any, before the owner of the store begins to use it.
 * Errors   0 or -errno; `why` is always one line for people.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;
struct store;

enum store_kind { STORE_AUTO, STORE_URING, STORE_THREADS };

enum { STORE_WHY_BYTES = 256 };

/* "auto", "io_uring", "threads". */
bool store_kind_parse(const char *name, enum store_kind *kind);

/* STORE_AUTO takes io_uring when the kernel grants it, else threads.  -EPERM, -ENOSYS ... when
 * io_uring was asked for by name and is refused; -ENOMEM, -EAGAIN. */
int store_open(struct store **out, enum store_kind kind, char why[STORE_WHY_BYTES]);

/* Enlists the memory of buffers with one of `store_count` stores.  0, or -errno with a `why` that
 * says what it costs, and the memlock limit that all stores need. */
int store_enlist_buffers(struct store *s, const struct iovec *regions, uint32_t count,
		uint32_t store_count, char why[STORE_WHY_BYTES]);

/* Whether io_uring is usable here: 0 or -errno.  `why` tells a seccomp filter from the sysctl
 * kernel.io_uring_disabled, an old kernel and a memlock limit. */
int store_probe_uring(char why[STORE_WHY_BYTES]);
