/*
 * Each request under way has a slot, and never more than one entry in the rings: the submission
 * ring has a place for every slot and the completion ring two, so neither can be full.
 */

#include "dataplane/checkpoint/uring_store.h"

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>

enum {
	KERNEL_THREADS_MAX = 2, /* of one ring, for what would block */
	STORE_REGIONS_MAX = 64,
};

/* A directory is synced in three requests to the kernel. */
enum step { STEP_ONLY, STEP_DIRECTORY_OPEN, STEP_DIRECTORY_SYNC, STEP_DIRECTORY_CLOSE };

struct slot {
	struct store_request request;
	enum step step;
	uint32_t transferred; /* bytes of a read or write so far */
	int open_flags;
	bool must_wait;       /* let a thread of the kernel wait for it, not us */
	int directory;
	int64_t result;       /* of the sync, while the directory is closed */
};

struct uring_store {
	struct store store;
	struct io_uring ring;
	uint32_t region_count;
	struct iovec regions[STORE_REGIONS_MAX]; /* registered, by address */
	uint32_t free_count;
	uint16_t free_slots[STORE_OPS_IN_FLIGHT_MAX];
	struct slot slots[STORE_OPS_IN_FLIGHT_MAX];
};

/* ---- to the kernel --------------------------------------------------------------------------- */

static void prepare_directory(struct io_uring_sqe *sqe, const struct slot *slot)
{
	if (slot->step == STEP_DIRECTORY_OPEN)
		io_uring_prep_openat(sqe, AT_FDCWD, slot->request.path,
				O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	else if (slot->step == STEP_DIRECTORY_SYNC)
		io_uring_prep_fsync(sqe, slot->directory, 0);
	else
		io_uring_prep_close(sqe, slot->directory);
}

/* The registered region that holds all of it, or -1. */
static int find_region(const struct uring_store *u, const void *bytes, uint32_t size)
{
	uintptr_t at = (uintptr_t)bytes;

	for (uint32_t i = 0; i < u->region_count; i++) {
		uintptr_t base = (uintptr_t)u->regions[i].iov_base;

		if (at >= base && at - base < u->regions[i].iov_len &&
				size <= u->regions[i].iov_len - (at - base))
			return (int)i;
	}
	return -1;
}

static void prepare_transfer(
		const struct uring_store *u, struct io_uring_sqe *sqe, const struct slot *slot)
{
	const struct store_request *r = &slot->request;
	uint32_t at = slot->transferred;
	int region = r->op == STORE_WRITE ? find_region(u, r->bytes, r->size) : -1;

	if (region >= 0)
		io_uring_prep_write_fixed(sqe, r->file, (const char *)r->bytes + at, r->size - at,
				r->offset + at, region);
	else if (r->op == STORE_WRITE)
		io_uring_prep_write(sqe, r->file, (const char *)r->bytes + at, r->size - at,
				r->offset + at);
	else
		io_uring_prep_read(sqe, r->file, (char *)r->room + at, r->size - at,
				r->offset + at);
}

static void prepare(
		const struct uring_store *u, struct io_uring_sqe *sqe, const struct slot *slot)
{
	const struct store_request *r = &slot->request;

	switch (r->op) {
	case STORE_OPEN:
		io_uring_prep_openat(sqe, AT_FDCWD, r->path, slot->open_flags, STORE_FILE_MODE);
		break;
	case STORE_WRITE:
	case STORE_READ:
		prepare_transfer(u, sqe, slot);
		break;
	case STORE_SYNC:
		io_uring_prep_fsync(sqe, r->file, IORING_FSYNC_DATASYNC);
		break;
	case STORE_ALLOCATE:
		io_uring_prep_fallocate(sqe, r->file, 0, (off_t)r->offset, r->size);
		break;
	case STORE_CLOSE:
		io_uring_prep_close(sqe, r->file);
		break;
	case STORE_RENAME:
		io_uring_prep_renameat(sqe, AT_FDCWD, r->path, AT_FDCWD, r->path_to, 0);
		break;
	case STORE_UNLINK:
		io_uring_prep_unlinkat(sqe, AT_FDCWD, r->path, 0);
		break;
	case STORE_MKDIR:
		io_uring_prep_mkdirat(sqe, AT_FDCWD, r->path, STORE_DIRECTORY_MODE);
		break;
	case STORE_SYNC_DIRECTORY:
		prepare_directory(sqe, slot);
		break;
	case STORE_OP_COUNT:
		CHECK(r->op < STORE_OP_COUNT);
	}
}

static void queue(struct uring_store *u, uint32_t index)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	CHECK(sqe != NULL);
	prepare(u, sqe, &u->slots[index]);
	if (u->slots[index].must_wait)
		io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
	io_uring_sqe_set_data64(sqe, index);
}

/* What the kernel does not take now it takes at the next turn. */
static void flush(struct uring_store *u)
{
	if (io_uring_sq_ready(&u->ring) > 0)
		io_uring_submit(&u->ring);
}

/* ---- from the kernel ------------------------------------------------------------------------- */

/* The handlers return true when the request is done with `*result`, false to go on with it. */

static bool finish_open(struct slot *slot, int64_t *result)
{
	int flags = store_open_flags_after_einval(slot->request.flags);

	if (*result != -EINVAL || flags == 0 || slot->open_flags == flags)
		return true;
	slot->open_flags = flags;
	return false;
}

static bool finish_transfer(struct slot *slot, int64_t *result)
{
	const struct store_request *r = &slot->request;

	if (*result == -EINVAL && store_drop_direct(r->file)) {
		slot->must_wait = true; /* now it is a copy through the page cache */
		return false;
	}
	if (*result < 0)
		return true;
	if (*result == 0 && slot->transferred < r->size) {
		*result = r->op == STORE_READ ? (int64_t)slot->transferred : -EIO;
		return true;
	}
	slot->transferred += (uint32_t)*result;
	*result = slot->transferred;
	return slot->transferred == r->size;
}

static bool finish_directory(struct slot *slot, int64_t *result)
{
	switch (slot->step) {
	case STEP_DIRECTORY_OPEN:
		if (*result < 0)
			return true;
		slot->directory = (int)*result;
		slot->step = STEP_DIRECTORY_SYNC;
		return false;
	case STEP_DIRECTORY_SYNC:
		slot->result = *result;
		slot->step = STEP_DIRECTORY_CLOSE;
		return false;
	default:
		*result = slot->result;
		return true;
	}
}

/* Nobody here cancels anything: the kernel does, when it cannot make a thread to wait for it. */
static bool finish(struct slot *slot, int64_t *result)
{
	if (*result == -EAGAIN || *result == -ECANCELED ||
			(*result == -EINTR && slot->request.op != STORE_CLOSE)) {
		slot->must_wait = true;
		return false;
	}
	switch (slot->request.op) {
	case STORE_OPEN:
		return finish_open(slot, result);
	case STORE_WRITE:
	case STORE_READ:
		return finish_transfer(slot, result);
	case STORE_SYNC_DIRECTORY:
		return finish_directory(slot, result);
	default:
		return true;
	}
}

/* ---- the port -------------------------------------------------------------------------------- */

static int uring_submit(struct store *s, const struct store_request *request)
{
	struct uring_store *u = (struct uring_store *)s;
	uint32_t index;

	if (u->free_count == 0)
		return -EAGAIN;
	index = u->free_slots[--u->free_count];
	u->slots[index] = (struct slot){
		.request = *request,
		.open_flags = store_open_flags(request->flags),
		/* A write through the page cache would copy the bytes on our own time. */
		.must_wait = request->op == STORE_WRITE && !(request->flags & STORE_DIRECT),
		.step = request->op == STORE_SYNC_DIRECTORY ? STEP_DIRECTORY_OPEN : STEP_ONLY,
	};
	queue(u, index);
	return 0;
}

static uint32_t uring_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct uring_store *u = (struct uring_store *)s;
	struct io_uring_cqe *cqes[BATCH_COUNT_MAX];
	uint32_t count = 0, cqe_count;

	flush(u);
	if (u->free_count == STORE_OPS_IN_FLIGHT_MAX)
		return 0;
	cqe_count = count_max < BATCH_COUNT_MAX ? count_max : BATCH_COUNT_MAX;
	cqe_count = io_uring_peek_batch_cqe(&u->ring, cqes, cqe_count);
	for (uint32_t i = 0; i < cqe_count; i++) {
		uint32_t index = (uint32_t)io_uring_cqe_get_data64(cqes[i]);
		int64_t result = cqes[i]->res;

		CHECK(index < STORE_OPS_IN_FLIGHT_MAX);
		if (finish(&u->slots[index], &result)) {
			done[count++] = (struct store_done){u->slots[index].request.tag, result};
			u->free_slots[u->free_count++] = (uint16_t)index;
		} else {
			queue(u, index);
		}
	}
	io_uring_cq_advance(&u->ring, cqe_count);
	flush(u);
	return count;
}

static uint32_t uring_inflight(const struct store *s)
{
	return STORE_OPS_IN_FLIGHT_MAX - ((const struct uring_store *)s)->free_count;
}

/* The kernel takes at most 1 GiB in one piece. */
static int uring_enlist(struct store *s, const struct iovec *regions, uint32_t count)
{
	struct uring_store *u = (struct uring_store *)s;
	const size_t piece_max = 1u << 30;
	uint32_t made = 0;

	CHECK(u->region_count == 0 && uring_inflight(s) == 0);
	for (uint32_t i = 0; i < count; i++) {
		for (size_t at = 0; at < regions[i].iov_len; at += piece_max) {
			size_t left = regions[i].iov_len - at;

			if (made == STORE_REGIONS_MAX)
				return -E2BIG;
			u->regions[made++] = (struct iovec){(char *)regions[i].iov_base + at,
					left < piece_max ? left : piece_max};
		}
	}
	int rc = io_uring_register_buffers(&u->ring, u->regions, made);
	if (rc == 0)
		u->region_count = made;
	return rc;
}

static void uring_destroy(struct store *s)
{
	struct uring_store *u = (struct uring_store *)s;

	CHECK(uring_inflight(s) == 0);
	io_uring_queue_exit(&u->ring);
	free(u);
}

static const struct store_ops uring_ops = {
	.name = "io_uring",
	.submit = uring_submit,
	.reap = uring_reap,
	.inflight = uring_inflight,
	.enlist = uring_enlist,
	.destroy = uring_destroy,
};

static bool has_all_operations(struct io_uring *ring)
{
	static const int needed[] = {IORING_OP_OPENAT, IORING_OP_CLOSE, IORING_OP_READ,
		IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_FALLOCATE, IORING_OP_RENAMEAT,
		IORING_OP_UNLINKAT, IORING_OP_MKDIRAT};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool has_all = probe != NULL;

	for (size_t i = 0; has_all && i < sizeof(needed) / sizeof(needed[0]); i++)
		has_all = io_uring_opcode_supported(probe, needed[i]);
	io_uring_free_probe(probe);
	return has_all;
}

/* Completions when we ask for them, not by interrupting us, if this kernel can (5.19). */
static int open_ring(struct io_uring *ring)
{
	/* Kernel threads for what would block.  They run beside the lcores, or on them: each one
	 * more that is woken is one more interruption of a worker. */
	unsigned int threads[2] = {KERNEL_THREADS_MAX, KERNEL_THREADS_MAX};
	int rc = io_uring_queue_init(STORE_OPS_IN_FLIGHT_MAX, ring,
			IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);

	if (rc == -EINVAL)
		rc = io_uring_queue_init(STORE_OPS_IN_FLIGHT_MAX, ring, 0);
	/* Since 5.15; before that as many as the kernel likes. */
	if (rc == 0)
		(void)io_uring_register_iowq_max_workers(ring, threads);
	return rc;
}

int uring_store_create(struct store **out)
{
	struct uring_store *u = calloc(1, sizeof(*u));
	int rc;

	if (u == NULL)
		return -ENOMEM;
	u->store.ops = &uring_ops;
	for (uint32_t i = 0; i < STORE_OPS_IN_FLIGHT_MAX; i++)
		u->free_slots[u->free_count++] = (uint16_t)i;
	rc = open_ring(&u->ring);
	if (rc == 0 && !has_all_operations(&u->ring)) {
		io_uring_queue_exit(&u->ring);
		rc = -EOPNOTSUPP;
	}
	if (rc != 0) {
		free(u);
		return rc;
	}
	*out = &u->store;
	return 0;
}
