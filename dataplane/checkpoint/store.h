#pragma once

/*
 * store: the port to files.  Requests are queued, completions are reaped, nothing blocks.
 *
 * Place    checkpoint; implemented by uring_store and thread_store, wrapped by store_share and by
 *          fault wrappers in tests.
 * Thread   one owner: requests and reap from one thread (create and destroy may be elsewhere).
 * Memory   bytes and paths of a request belong to the store from submit until its completion has
 *          been reaped; at most STORE_OPS_IN_FLIGHT_MAX requests are under way.
 * Errors   submit: 0 or -EAGAIN (too many under way, try after reap).  What went wrong with the
 *          work itself comes with the completion.
 * Life     create, { submit | reap }*, destroy with nothing under way.
 *
 * Requests under way are not ordered among each other: who needs an order waits in between.
 */

#include "dataplane/base/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_ALIGN_BYTES = 4096 };

enum store_op {
	STORE_OPEN,           /* path, flags; result: the file */
	STORE_WRITE,          /* file, bytes, size, offset; result: size, never less */
	STORE_READ,           /* the same; result: bytes read, fewer only at the end of the file */
	STORE_SYNC,           /* file: its bytes are durable */
	STORE_ALLOCATE,       /* file, offset, size: has that range, zeros; -EOPNOTSUPP where the
			       * file system cannot */
	STORE_CLOSE,          /* file; the number is free again whatever the result */
	STORE_RENAME,         /* path, path_to */
	STORE_UNLINK,         /* path */
	STORE_MKDIR,          /* path */
	STORE_SYNC_DIRECTORY, /* path of a directory: its entries are durable */
	STORE_OP_COUNT,
};

enum {
	STORE_CREATE = 1, /* make a new file; -EEXIST when it is there.  Without: open to read */
	/* Open: past the page cache if the file system can, silently not if it cannot.  Bytes, size
	 * and offset of every request on the file are multiples of STORE_ALIGN_BYTES, and its
	 * writes carry this flag too. */
	STORE_DIRECT = 2,
	/* Open: a file that is there, to write over what it holds; -ENOENT. */
	STORE_OVERWRITE = 4,
};

struct store_request {
	enum store_op op;
	uint32_t flags;
	int32_t file;
	uint32_t size;
	uint64_t offset;
	union {
		const void *bytes; /* to write */
		void *room;        /* to read into */
	};
	const char *path, *path_to;
	uint64_t tag; /* comes back with the completion */
};

struct store_done {
	uint64_t tag;
	int64_t result; /* 0 or more, or -errno */
};

struct iovec;
struct store;

struct store_ops {
	const char *name; /* "io_uring", "threads" */
	int (*submit)(struct store *s, const struct store_request *request);
	/* Also starts what was queued since; call it once a turn. */
	uint32_t (*reap)(struct store *s, struct store_done *done, uint32_t count_max);
	/* Requests submitted and not yet reaped. */
	uint32_t (*inflight)(const struct store *s);
	/* NULL: it has no use for that. */
	int (*enlist)(struct store *s, const struct iovec *regions, uint32_t count);
	void (*destroy)(struct store *s);
};

/* The first member of every implementation. */
struct store {
	const struct store_ops *ops;
};

static inline int store_submit(struct store *s, const struct store_request *request)
{
	DCHECK(request->op < STORE_OP_COUNT);
	return s->ops->submit(s, request);
}

static inline uint32_t store_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	return s->ops->reap(s, done, count_max);
}

static inline uint32_t store_inflight(const struct store *s)
{
	return s->ops->inflight(s);
}

/* Makes writes from that memory cheaper, before the first request: the kernel keeps it pinned.
 * -EOPNOTSUPP: this store cannot; -ENOMEM: the memlock limit is too low; -errno.  All works without
 * it, too. */
static inline int store_enlist(
		struct store *s, const struct iovec *regions, uint32_t count)
{
	return s->ops->enlist == NULL ? -EOPNOTSUPP : s->ops->enlist(s, regions, count);
}

/* NULL is accepted. */
static inline void store_destroy(struct store *s)
{
	if (s != NULL)
		s->ops->destroy(s);
}

/* "open", "write", ... for texts about what failed. */
const char *store_op_name(enum store_op op);
