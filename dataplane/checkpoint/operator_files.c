/*
 * Each file has one request under way at most, so its bytes go out in order; while one of its two
 * buffers is being written the other one fills.  A closed file goes on by itself: last bytes, sync,
 * close, sync of its directory; then it is durable and its place is free.
 */

#include "dataplane/checkpoint/operator_files.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/checkpoint/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { REAP_COUNT = 32 };

#define RETRY_NS UINT64_C(100000000)

enum file_phase {
	FILE_FREE,
	FILE_NEW,     /* to be opened */
	FILE_OPEN,
	FILE_SYNCED,  /* to be closed */
	FILE_CLOSED,  /* its directory is to be synced */
};

struct file {
	enum file_phase phase;
	bool is_busy;     /* a request is under way */
	bool is_closed;   /* by its operator */
	bool is_covered;  /* by the present barrier */
	bool is_dropped;  /* nobody waits for its bytes any more */
	int stalled;      /* -errno of what is tried again at retry_ns, or 0 */
	uint64_t retry_ns;
	int32_t fd;
	uint64_t offset;
	uint32_t filling;  /* the buffer that takes bytes; the other is being written */
	uint32_t fill_bytes, flush_bytes;
	char path[OPERATOR_FILES_PATH_BYTES];
	char directory[OPERATOR_FILES_PATH_BYTES];
	uint8_t buffers[2][OPERATOR_FILES_BUFFER_BYTES];
};

enum publish_phase { PUBLISH_WAITING, PUBLISH_RENAMED, PUBLISH_OVER };

struct publish {
	enum publish_phase phase;
	bool is_busy;
	int status;
	uint32_t operator_index;
	uint64_t tag;
	char from[OPERATOR_FILES_PATH_BYTES];
	char to[OPERATOR_FILES_PATH_BYTES];
	char directory[OPERATOR_FILES_PATH_BYTES];
};

struct operator_files {
	struct store *store;
	uint64_t now_ns;
	bool is_stopped;
	uint32_t inflight_count;
	int failure;
	int barrier_status;
	/* A ring: publishes first..next are over, next..last wait; only `next` is worked on. */
	uint64_t publish_first, publish_next, publish_last;
	char failure_text[OPERATOR_FILES_TEXT_BYTES];
	char barrier_text[OPERATOR_FILES_TEXT_BYTES];
	struct file files[OPERATOR_FILES_OPEN_MAX];
	struct publish publishes[OPERATOR_FILES_PUBLISH_MAX];
};

static struct publish *publish_at(struct operator_files *f, uint64_t number)
{
	return &f->publishes[number % OPERATOR_FILES_PUBLISH_MAX];
}

/* ---- paths -------------------------------------------------------------------------------- */

static bool is_path(const char *path)
{
	size_t bytes = strlen(path);

	return bytes > 0 && bytes < OPERATOR_FILES_PATH_BYTES;
}

static void directory_of(char directory[OPERATOR_FILES_PATH_BYTES], const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		snprintf(directory, OPERATOR_FILES_PATH_BYTES, ".");
	else
		snprintf(directory, OPERATOR_FILES_PATH_BYTES, "%.*s",
				slash == path ? 1 : (int)(slash - path), path);
}

/* ---- what goes wrong ----------------------------------------------------------------------- */

/* Its bytes will not reach the disk, so it must not be published. */
static void drop(struct operator_files *f, struct file *file)
{
	file->is_dropped = true;
	file->fill_bytes = 0;
	file->stalled = 0;
	for (uint64_t n = f->publish_next; n < f->publish_last; n++) {
		struct publish *p = publish_at(f, n);

		if (p->phase == PUBLISH_WAITING && !p->is_busy && p->status == 0 &&
				strcmp(p->from, file->path) == 0)
			p->status = -ECANCELED;
	}
}

static void describe(char *text, enum store_op op, const char *path, int status)
{
	snprintf(text, OPERATOR_FILES_TEXT_BYTES, "%s %s: %s", store_op_name(op), path,
			strerrordesc_np(-status));
}

static void fail_barrier(struct operator_files *f, const struct file *file, int status)
{
	if (!file->is_covered || f->barrier_status != 0)
		return;
	f->barrier_status = status;
	describe(f->barrier_text, file->phase == FILE_NEW ? STORE_OPEN : STORE_WRITE, file->path,
			status);
}

/* Bytes are lost, or the file can never be made. */
static void fail(struct operator_files *f, struct file *file, enum store_op op, int status)
{
	if (f->failure == 0) {
		f->failure = status;
		describe(f->failure_text, op, file->path, status);
	}
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		if (f->files[i].phase != FILE_FREE)
			drop(f, &f->files[i]);
	}
}

/* The bytes are still here: another try later, and no checkpoint meanwhile. */
static void stall(struct operator_files *f, struct file *file, int status)
{
	if (f->is_stopped || file->is_dropped) {
		drop(f, file);
		return;
	}
	file->stalled = status;
	file->retry_ns = f->now_ns + RETRY_NS;
	fail_barrier(f, file, status);
}

static bool may_pass(int status)
{
	switch (-status) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

/* ---- requests ------------------------------------------------------------------------------- */

enum { TAG_PUBLISH = OPERATOR_FILES_OPEN_MAX };

/* A tag is (file or TAG_PUBLISH, request). */
static bool submit(struct operator_files *f, uint32_t whose, struct store_request *r)
{
	r->tag = (uint64_t)whose << 8 | r->op;
	if (store_submit(f->store, r) != 0)
		return false; /* the queue is full: at the next step */
	f->inflight_count++;
	return true;
}

static void ask_file(struct operator_files *f, struct file *file, enum store_op op)
{
	struct store_request r = {
		.op = op,
		.flags = op == STORE_OPEN ? STORE_CREATE : 0,
		.file = file->fd,
		.path = op == STORE_SYNC_DIRECTORY ? file->directory : file->path,
		.bytes = file->buffers[1 - file->filling],
		.size = file->flush_bytes,
		.offset = file->offset,
	};

	file->stalled = 0;
	file->is_busy = submit(f, (uint32_t)(file - f->files), &r);
}

static void finish_open(struct operator_files *f, struct file *file, int64_t result)
{
	if (result >= 0) {
		file->fd = (int32_t)result;
		file->phase = FILE_OPEN;
	} else if (file->is_dropped) {
		file->phase = FILE_FREE;
	} else if (may_pass((int)result)) {
		stall(f, file, (int)result);
	} else {
		fail(f, file, STORE_OPEN, (int)result);
	}
}

static void finish_write(struct operator_files *f, struct file *file, int64_t result)
{
	if (result >= 0) {
		file->offset += file->flush_bytes;
		file->flush_bytes = 0;
	} else if (may_pass((int)result)) {
		stall(f, file, (int)result);
	} else {
		fail(f, file, STORE_WRITE, (int)result);
	}
}

static void finish_file(struct operator_files *f, struct file *file, enum store_op op,
		int64_t result)
{
	file->is_busy = false;
	switch (op) {
	case STORE_OPEN:
		finish_open(f, file, result);
		break;
	case STORE_WRITE:
		finish_write(f, file, result);
		break;
	case STORE_SYNC:
		file->phase = FILE_SYNCED;
		if (result < 0)
			fail(f, file, op, (int)result);
		break;
	case STORE_CLOSE:
		file->phase = file->is_dropped ? FILE_FREE : FILE_CLOSED;
		break;
	default:
		CHECK(op == STORE_SYNC_DIRECTORY);
		if (result < 0 && !file->is_dropped)
			fail(f, file, op, (int)result);
		file->phase = FILE_FREE;
	}
}

static void finish_publish(struct operator_files *f, enum store_op op, int64_t result)
{
	struct publish *p = publish_at(f, f->publish_next);

	CHECK(f->publish_next < f->publish_last);
	p->is_busy = false;
	if (op == STORE_RENAME && result >= 0) {
		crash_point("during-commit");
		p->phase = PUBLISH_RENAMED;
		return;
	}
	p->status = result < 0 ? (int)result : 0;
	p->phase = PUBLISH_OVER;
	f->publish_next++;
}

static uint32_t reap(struct operator_files *f)
{
	struct store_done done[REAP_COUNT];
	uint32_t count;

	if (f->inflight_count == 0)
		return 0;
	count = store_reap(f->store, done, REAP_COUNT);
	CHECK(count <= f->inflight_count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t whose = (uint32_t)(done[i].tag >> 8);
		enum store_op op = (enum store_op)(done[i].tag & 0xff);

		f->inflight_count--;
		CHECK(whose <= TAG_PUBLISH);
		if (whose == TAG_PUBLISH)
			finish_publish(f, op, done[i].result);
		else
			finish_file(f, &f->files[whose], op, done[i].result);
	}
	return count;
}

/* ---- going on -------------------------------------------------------------------------------- */

/* The other buffer becomes the one to write when this one is full, or is the last. */
static void swap_buffers(struct file *file)
{
	bool is_due = file->fill_bytes == OPERATOR_FILES_BUFFER_BYTES || file->is_closed;

	if (file->flush_bytes > 0 || file->fill_bytes == 0 || !is_due)
		return;
	file->filling = 1 - file->filling;
	file->flush_bytes = file->fill_bytes;
	file->fill_bytes = 0;
}

static void go_on_open(struct operator_files *f, struct file *file)
{
	swap_buffers(file);
	if (file->is_dropped)
		ask_file(f, file, STORE_CLOSE);
	else if (file->flush_bytes > 0)
		ask_file(f, file, STORE_WRITE);
	else if (file->is_closed)
		ask_file(f, file, STORE_SYNC);
}

static void go_on(struct operator_files *f, struct file *file)
{
	if (file->is_busy || (file->stalled != 0 && f->now_ns < file->retry_ns))
		return;
	switch (file->phase) {
	case FILE_FREE:
		break;
	case FILE_NEW:
		if (file->is_dropped)
			file->phase = FILE_FREE;
		else
			ask_file(f, file, STORE_OPEN);
		break;
	case FILE_OPEN:
		go_on_open(f, file);
		break;
	case FILE_SYNCED:
		ask_file(f, file, STORE_CLOSE);
		break;
	case FILE_CLOSED:
		ask_file(f, file, STORE_SYNC_DIRECTORY);
		break;
	}
}

/* A file of that name is closed and not durable yet. */
static bool is_under_way(const struct operator_files *f, const char *path)
{
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		const struct file *file = &f->files[i];

		if (file->phase != FILE_FREE && file->is_closed && strcmp(file->path, path) == 0)
			return true;
	}
	return false;
}

static void go_on_publish(struct operator_files *f)
{
	struct publish *p = publish_at(f, f->publish_next);
	struct store_request r = {.op = STORE_RENAME, .path = p->from, .path_to = p->to};

	if (f->publish_next == f->publish_last || p->is_busy)
		return;
	if (p->phase == PUBLISH_RENAMED) {
		r = (struct store_request){.op = STORE_SYNC_DIRECTORY, .path = p->directory};
	} else if (p->status != 0) {
		p->phase = PUBLISH_OVER;
		f->publish_next++;
		return;
	} else if (is_under_way(f, p->from)) {
		return;
	}
	crash_point("during-commit");
	p->is_busy = submit(f, TAG_PUBLISH, &r);
}

uint32_t operator_files_step(struct operator_files *f, uint64_t now_ns)
{
	uint32_t work, before;

	f->now_ns = now_ns;
	work = reap(f);
	before = f->inflight_count;
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++)
		go_on(f, &f->files[i]);
	go_on_publish(f);
	return work + f->inflight_count - before;
}

/* ---- what operators ask for ------------------------------------------------------------------ */

uint64_t operator_files_memory_bytes(void)
{
	uint64_t bytes = sizeof(struct operator_files);

	return (bytes + STORE_ALIGN_BYTES - 1) / STORE_ALIGN_BYTES * STORE_ALIGN_BYTES;
}

struct operator_files *operator_files_create_at(void *memory, struct store *store)
{
	struct operator_files *f = memory;

	CHECK((uintptr_t)memory % STORE_ALIGN_BYTES == 0);
	memset(memory, 0, operator_files_memory_bytes());
	f->store = store;
	return f;
}

bool operator_files_open(struct operator_files *f, const char *path, uint32_t *file)
{
	if (!is_path(path) || f->is_stopped || f->failure != 0)
		return false;
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		struct file *at = &f->files[i];

		if (at->phase != FILE_FREE)
			continue;
		memset(at, 0, offsetof(struct file, path));
		snprintf(at->path, sizeof(at->path), "%s", path);
		directory_of(at->directory, path);
		at->phase = FILE_NEW;
		*file = i;
		return true;
	}
	return false;
}

bool operator_files_write(struct operator_files *f, uint32_t file, const void *data, size_t size)
{
	struct file *at = &f->files[file];
	uint32_t room, first;

	CHECK(file < OPERATOR_FILES_OPEN_MAX);
	CHECK(size <= OPERATOR_FILES_BUFFER_BYTES);
	CHECK(!at->is_closed);
	if (at->is_dropped || f->is_stopped)
		return false;
	CHECK(at->phase == FILE_NEW || at->phase == FILE_OPEN);
	swap_buffers(at);
	room = OPERATOR_FILES_BUFFER_BYTES - at->fill_bytes;
	first = size < room ? (uint32_t)size : room;
	if (size > room && at->flush_bytes > 0)
		return false;
	memcpy(at->buffers[at->filling] + at->fill_bytes, data, first);
	at->fill_bytes += first;
	if (first < size) {
		swap_buffers(at);
		memcpy(at->buffers[at->filling], (const uint8_t *)data + first, size - first);
		at->fill_bytes = (uint32_t)(size - first);
	}
	return true;
}

void operator_files_close(struct operator_files *f, uint32_t file)
{
	struct file *at = &f->files[file];

	CHECK(file < OPERATOR_FILES_OPEN_MAX);
	if (at->is_dropped || f->is_stopped)
		return; /* closed already, as it was */
	CHECK(at->phase == FILE_NEW || at->phase == FILE_OPEN);
	CHECK(!at->is_closed);
	at->is_closed = true;
}

bool operator_files_publish(struct operator_files *f, uint32_t operator_index, const char *from,
		const char *to, uint64_t tag)
{
	struct publish *p = publish_at(f, f->publish_last);

	if (!is_path(from) || !is_path(to) || f->is_stopped)
		return false;
	if (f->publish_last - f->publish_first == OPERATOR_FILES_PUBLISH_MAX)
		return false;
	*p = (struct publish){.operator_index = operator_index, .tag = tag};
	p->status = f->failure != 0 ? -ECANCELED : 0; /* `from` may have lost bytes */
	snprintf(p->from, sizeof(p->from), "%s", from);
	snprintf(p->to, sizeof(p->to), "%s", to);
	directory_of(p->directory, to);
	f->publish_last++;
	return true;
}

bool operator_files_next_done(struct operator_files *f, struct operator_files_done *done)
{
	const struct publish *p = publish_at(f, f->publish_first);

	if (f->publish_first == f->publish_next)
		return false;
	*done = (struct operator_files_done){p->operator_index, p->tag, p->status};
	f->publish_first++;
	return true;
}

bool operator_files_is_publishing(const struct operator_files *f)
{
	return f->publish_first < f->publish_last;
}

/* ---- barriers -------------------------------------------------------------------------------- */

void operator_files_barrier(struct operator_files *f, int64_t checkpoint_id)
{
	CHECK(checkpoint_id > 0);
	f->barrier_status = 0;
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		struct file *file = &f->files[i];

		file->is_covered = file->phase != FILE_FREE && file->is_closed;
		if (file->stalled != 0)
			fail_barrier(f, file, file->stalled);
	}
}

bool operator_files_barrier_is_done(const struct operator_files *f, int *status, const char **text)
{
	*status = f->barrier_status;
	*text = f->barrier_text;
	if (f->failure != 0) {
		*status = f->failure;
		*text = f->failure_text;
	}
	if (*status != 0)
		return true;
	*text = "";
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		if (f->files[i].is_covered && f->files[i].phase != FILE_FREE)
			return false;
	}
	return true;
}

int operator_files_failure(const struct operator_files *f, const char **text)
{
	*text = f->failure_text;
	return f->failure;
}

/* ---- the end --------------------------------------------------------------------------------- */

void operator_files_stop(struct operator_files *f)
{
	f->is_stopped = true;
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		struct file *file = &f->files[i];

		if (file->phase != FILE_FREE && (!file->is_closed || file->stalled != 0))
			drop(f, file);
	}
}

bool operator_files_is_idle(const struct operator_files *f)
{
	for (uint32_t i = 0; i < OPERATOR_FILES_OPEN_MAX; i++) {
		if (f->files[i].phase != FILE_FREE)
			return false;
	}
	return f->inflight_count == 0 && f->publish_next == f->publish_last;
}
