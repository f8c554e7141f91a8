#pragma once

/*
 * mem_store: a store whose disk is memory: no thread, no file system, always in the same order.
 *
 * Place    tests; stands where uring_store stands in production.
 * Thread   one owner.
 * Memory   files on the heap; they are gone with the store.
 * Errors   as a file system gives them: -EEXIST, -ENOENT, -EBADF.  Directories always exist.
 *
 * A request is carried out when it is reaped, in the order submitted: bytes and paths that were
 * changed too early are seen.
 */

#include "dataplane/checkpoint/store.h"

#include <stddef.h>
#include <stdint.h>

/* NULL: no memory. */
struct store *mem_store_create(void);

/* The bytes of a file, or NULL; valid until the next reap. */
const uint8_t *mem_store_file(const struct store *s, const char *path, size_t *size);

uint32_t mem_store_file_count(const struct store *s);
