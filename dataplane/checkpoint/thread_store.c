/*
 * Two rings of STORE_OPS_IN_FLIGHT_MAX places, one each way.  The owner never has more requests
 * under way than that, so neither ring can overflow: what has come back was taken out before, in
 * order.  The lock is the threads' alone; the owner never waits.
 *
 * A thread waits for the disk in one request, so there are several: what is asked for later, and
 * needs no disk that answers slowly, must not wait for it.
 */

#include "dataplane/checkpoint/thread_store.h"

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_MASK = STORE_OPS_IN_FLIGHT_MAX - 1, THREADS_COUNT = 8 };

static_assert((STORE_OPS_IN_FLIGHT_MAX & RING_MASK) == 0, "a ring index is masked");

struct thread_store {
	struct store store;
	pthread_t threads[THREADS_COUNT];
	uint32_t thread_count;
	sem_t work; /* posted once a request, and once a thread to end it */

	/* the owner writes, the I/O threads read */
	alignas(LINE_BYTES) _Atomic uint64_t submitted;
	uint64_t reaped; /* the owner's alone */
	_Atomic bool is_ending;
	/* the I/O threads write, the owner reads */
	alignas(LINE_BYTES) _Atomic uint64_t finished;
	pthread_mutex_t lock; /* of the threads among each other, and of the field below */
	uint64_t taken;

	struct store_request requests[STORE_OPS_IN_FLIGHT_MAX];
	struct store_done done[STORE_OPS_IN_FLIGHT_MAX];
};

static int64_t result_of(int rc)
{
	return rc < 0 ? -errno : 0;
}

/* ---- one request, on the I/O thread ---------------------------------------------------------- */

static int64_t do_open(const struct store_request *r)
{
	int fd = open(r->path, store_open_flags(r->flags), STORE_FILE_MODE);

	if (fd < 0 && errno == EINVAL) {
		int flags = store_open_flags_after_einval(r->flags);

		errno = EINVAL;
		if (flags != 0)
			fd = open(r->path, flags, STORE_FILE_MODE);
	}
	return fd < 0 ? -errno : fd;
}

/* All of it, whatever number of calls that takes; a read may end at the end of the file. */
static int64_t do_transfer(const struct store_request *r)
{
	uint32_t at = 0;

	while (at < r->size) {
		off_t offset = (off_t)(r->offset + at);
		ssize_t n = r->op == STORE_WRITE
				? pwrite(r->file, (const char *)r->bytes + at, r->size - at, offset)
				: pread(r->file, (char *)r->room + at, r->size - at, offset);

		if (n > 0)
			at += (uint32_t)n;
		else if (n == 0)
			return r->op == STORE_READ ? (int64_t)at : -EIO;
		else if (errno == EINTR || errno == EAGAIN)
			continue;
		else if (errno != EINVAL || !store_drop_direct(r->file))
			return -errno;
	}
	return at;
}

static int64_t do_sync_directory(const struct store_request *r)
{
	int fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t result;

	if (fd < 0)
		return -errno;
	result = result_of(fsync(fd));
	close(fd);
	return result;
}

static int64_t perform(const struct store_request *r)
{
	switch (r->op) {
	case STORE_OPEN:
		return do_open(r);
	case STORE_WRITE:
	case STORE_READ:
		return do_transfer(r);
	case STORE_SYNC:
		return result_of(fdatasync(r->file));
	case STORE_ALLOCATE:
		return result_of(fallocate(r->file, 0, (off_t)r->offset, r->size));
	case STORE_CLOSE:
		return result_of(close(r->file));
	case STORE_RENAME:
		return result_of(rename(r->path, r->path_to));
	case STORE_UNLINK:
		return result_of(unlink(r->path));
	case STORE_MKDIR:
		return result_of(mkdir(r->path, STORE_DIRECTORY_MODE));
	case STORE_SYNC_DIRECTORY:
		return do_sync_directory(r);
	case STORE_OP_COUNT:
		break;
	}
	CHECK(r->op < STORE_OP_COUNT);
	return -EINVAL;
}

/* False: there is none, it is the end. */
static bool take(struct thread_store *t, struct store_request *request)
{
	bool is_there;

	pthread_mutex_lock(&t->lock);
	is_there = t->taken < atomic_load_explicit(&t->submitted, memory_order_acquire);
	if (is_there)
		*request = t->requests[t->taken++ & RING_MASK];
	pthread_mutex_unlock(&t->lock);
	return is_there;
}

static void finish(struct thread_store *t, struct store_done done)
{
	uint64_t next;

	pthread_mutex_lock(&t->lock);
	next = atomic_load_explicit(&t->finished, memory_order_relaxed);
	t->done[next & RING_MASK] = done;
	atomic_store_explicit(&t->finished, next + 1, memory_order_release);
	pthread_mutex_unlock(&t->lock);
}

static void *work(void *context)
{
	struct thread_store *t = context;
	struct store_request request;

	for (;;) {
		while (sem_wait(&t->work) != 0)
			CHECK(errno == EINTR);
		if (take(t, &request))
			finish(t, (struct store_done){request.tag, perform(&request)});
		else if (atomic_load_explicit(&t->is_ending, memory_order_acquire))
			return NULL;
	}
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static int thread_submit(struct store *s, const struct store_request *request)
{
	struct thread_store *t = (struct thread_store *)s;
	uint64_t next = atomic_load_explicit(&t->submitted, memory_order_relaxed);

	if (next - t->reaped == STORE_OPS_IN_FLIGHT_MAX)
		return -EAGAIN;
	t->requests[next & RING_MASK] = *request;
	atomic_store_explicit(&t->submitted, next + 1, memory_order_release);
	sem_post(&t->work);
	return 0;
}

static uint32_t thread_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct thread_store *t = (struct thread_store *)s;
	uint64_t finished = atomic_load_explicit(&t->finished, memory_order_acquire);
	uint32_t count = 0;

	while (count < count_max && t->reaped < finished)
		done[count++] = t->done[t->reaped++ & RING_MASK];
	return count;
}

static uint32_t thread_inflight(const struct store *s)
{
	const struct thread_store *t = (const struct thread_store *)s;

	return (uint32_t)(atomic_load_explicit(&t->submitted, memory_order_relaxed) - t->reaped);
}

static void end_threads(struct thread_store *t)
{
	atomic_store_explicit(&t->is_ending, true, memory_order_release);
	for (uint32_t i = 0; i < t->thread_count; i++)
		sem_post(&t->work);
	for (uint32_t i = 0; i < t->thread_count; i++)
		CHECK(pthread_join(t->threads[i], NULL) == 0);
	pthread_mutex_destroy(&t->lock);
	sem_destroy(&t->work);
	free(t);
}

static void thread_destroy(struct store *s)
{
	CHECK(thread_inflight(s) == 0);
	end_threads((struct thread_store *)s);
}

static const struct store_ops thread_ops = {
	.name = "threads",
	.submit = thread_submit,
	.reap = thread_reap,
	.inflight = thread_inflight,
	.destroy = thread_destroy,
};

/* Signals are the control thread's. */
static int start_threads(struct thread_store *t)
{
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (rc == 0 && t->thread_count < THREADS_COUNT) {
		pthread_t *thread = &t->threads[t->thread_count];

		rc = pthread_create(thread, NULL, work, t);
		if (rc != 0)
			break;
		pthread_setname_np(*thread, "weir-io");
		t->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int thread_store_create(struct store **out)
{
	struct thread_store *t = aligned_alloc(LINE_BYTES, sizeof(*t));
	int rc;

	if (t == NULL)
		return -ENOMEM;
	*t = (struct thread_store){.store.ops = &thread_ops};
	CHECK(sem_init(&t->work, 0, 0) == 0);
	pthread_mutex_init(&t->lock, NULL);
	rc = start_threads(t);
	if (rc != 0) {
		end_threads(t);
		return rc;
	}
	*out = &t->store;
	return 0;
}
