#include "tests/sim/mem_store.h"

#include "dataplane/base/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 1024 };

/* The number of a file is its place here, also after it was renamed or unlinked. */
struct mem_file {
	char *path;   /* NULL: has no name */
	bool is_open;
	uint8_t *bytes;
	size_t size, room;
};

struct mem_store {
	struct store store;
	uint32_t head, tail; /* of the requests */
	struct store_request requests[STORE_OPS_IN_FLIGHT_MAX];
	struct mem_file files[FILES_MAX];
};

static int32_t find(const struct mem_store *m, const char *path)
{
	for (int32_t i = 0; i < FILES_MAX; i++) {
		if (m->files[i].path != NULL && strcmp(m->files[i].path, path) == 0)
			return i;
	}
	return -ENOENT;
}

static void forget_if_unused(struct mem_file *f)
{
	if (f->path != NULL || f->is_open)
		return;
	free(f->bytes);
	*f = (struct mem_file){0};
}

static void unname(struct mem_file *f)
{
	free(f->path);
	f->path = NULL;
	forget_if_unused(f);
}

static int64_t open_file(struct mem_store *m, const struct store_request *r)
{
	int32_t file = find(m, r->path);

	if ((r->flags & STORE_CREATE) == 0) { /* to read or to write over it */
		if (file >= 0)
			m->files[file].is_open = true;
		return file;
	}
	if (file >= 0)
		return -EEXIST;
	for (int32_t i = 0; i < FILES_MAX; i++) {
		if (m->files[i].path != NULL || m->files[i].is_open)
			continue;
		m->files[i].path = strdup(r->path);
		m->files[i].is_open = true;
		return i;
	}
	return -ENFILE;
}

static int64_t write_file(struct mem_file *f, const struct store_request *r)
{
	size_t end = r->offset + r->size;

	if (end > f->room) {
		uint8_t *bytes = realloc(f->bytes, 2 * end);

		if (bytes == NULL)
			return -ENOSPC;
		f->bytes = bytes;
		f->room = 2 * end;
	}
	if (end > f->size) {
		memset(f->bytes + f->size, 0, end - f->size);
		f->size = end;
	}
	memcpy(f->bytes + r->offset, r->bytes, r->size);
	return r->size;
}

static int64_t read_file(const struct mem_file *f, const struct store_request *r)
{
	size_t left = r->offset < f->size ? f->size - r->offset : 0;
	size_t count = r->size < left ? r->size : left;

	if (count > 0)
		memcpy(r->room, f->bytes + r->offset, count);
	return (int64_t)count;
}

static int64_t rename_file(struct mem_store *m, const struct store_request *r)
{
	int32_t from = find(m, r->path), to = find(m, r->path_to);

	if (from < 0)
		return from;
	if (to >= 0)
		unname(&m->files[to]);
	free(m->files[from].path);
	m->files[from].path = strdup(r->path_to);
	return 0;
}

static int64_t unlink_file(struct mem_store *m, const struct store_request *r)
{
	int32_t file = find(m, r->path);

	if (file < 0)
		return file;
	unname(&m->files[file]);
	return 0;
}

static int64_t on_file(struct mem_store *m, const struct store_request *r)
{
	if (r->file < 0 || r->file >= FILES_MAX || !m->files[r->file].is_open)
		return -EBADF;
	struct mem_file *f = &m->files[r->file];
	switch (r->op) {
	case STORE_WRITE:
		return write_file(f, r);
	case STORE_READ:
		return read_file(f, r);
	case STORE_CLOSE:
		f->is_open = false;
		forget_if_unused(f);
		return 0;
	default:
		return 0;
	}
}

static int64_t perform(struct mem_store *m, const struct store_request *r)
{
	switch (r->op) {
	case STORE_OPEN:
		return open_file(m, r);
	case STORE_WRITE:
	case STORE_READ:
	case STORE_SYNC:
	case STORE_ALLOCATE:
	case STORE_CLOSE:
		return on_file(m, r);
	case STORE_RENAME:
		return rename_file(m, r);
	case STORE_UNLINK:
		return unlink_file(m, r);
	case STORE_MKDIR:
	case STORE_SYNC_DIRECTORY:
		return 0;
	case STORE_OP_COUNT:
		break;
	}
	CHECK(!"a store operation");
	return -EINVAL;
}

static uint32_t mem_inflight(const struct store *s)
{
	const struct mem_store *m = (const struct mem_store *)s;

	return m->tail - m->head;
}

static int mem_submit(struct store *s, const struct store_request *r)
{
	struct mem_store *m = (struct mem_store *)s;

	if (mem_inflight(s) == STORE_OPS_IN_FLIGHT_MAX)
		return -EAGAIN;
	m->requests[m->tail++ % STORE_OPS_IN_FLIGHT_MAX] = *r;
	return 0;
}

static uint32_t mem_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct mem_store *m = (struct mem_store *)s;
	uint32_t count = 0;

	while (count < count_max && m->head != m->tail) {
		const struct store_request *r = &m->requests[m->head++ % STORE_OPS_IN_FLIGHT_MAX];

		done[count++] = (struct store_done){r->tag, perform(m, r)};
	}
	return count;
}

static void mem_destroy(struct store *s)
{
	struct mem_store *m = (struct mem_store *)s;

	CHECK(mem_inflight(s) == 0);
	for (uint32_t i = 0; i < FILES_MAX; i++) {
		free(m->files[i].path);
		free(m->files[i].bytes);
	}
	free(m);
}

struct store *mem_store_create(void)
{
	static const struct store_ops ops = {
			.name = "memory",
			.submit = mem_submit,
			.reap = mem_reap,
			.inflight = mem_inflight,
			.destroy = mem_destroy,
	};
	struct mem_store *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->store.ops = &ops;
	return &m->store;
}

const uint8_t *mem_store_file(const struct store *s, const char *path, size_t *size)
{
	const struct mem_store *m = (const struct mem_store *)s;
	int32_t file = find(m, path);

	if (file < 0)
		return NULL;
	*size = m->files[file].size;
	return m->files[file].bytes;
}

uint32_t mem_store_file_count(const struct store *s)
{
	const struct mem_store *m = (const struct mem_store *)s;
	uint32_t count = 0;

	for (uint32_t i = 0; i < FILES_MAX; i++)
		count += m->files[i].path != NULL;
	return count;
}
