/*
 * The commit point is the rename: before it there is no `_metadata`, after it there is a whole one.
 * A failure behind the rename takes it away again, because nobody may rely on what is not durable.
 */

#include "control/metadata/metadata.h"

#include "control/metadata/metadata.pb-c.h"
#include "control/metadata/metadata_internal.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/crc.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ASIDE_BYTES = 32, ASIDES_MAX = 64 };

/* ---- the message ----------------------------------------------------------------------------- */

/* The message and its rows; one allocation each, all freed together. */
struct builder {
	Weir__Metadata m;
	Weir__MetadataNamed *named;
	Weir__MetadataNamed **named_list;
	Weir__MetadataVertex *vertices;
	Weir__MetadataVertex **vertex_list;
	Weir__MetadataSubtask *subtasks;
	Weir__MetadataSubtask **subtask_list;
	Weir__MetadataEdge *edges, **edge_list;
	Weir__MetadataOverride *overrides;
	Weir__MetadataOverride **override_list;
	Weir__MetadataPlugin *plugins;
	Weir__MetadataPlugin **plugin_list;
	char **directories;
};

/* The message only reads what it points to, but has no const. */
static char *text_of(const char *text)
{
	return (char *)(uintptr_t)(text != NULL ? text : "");
}

static ProtobufCBinaryData bytes_of(struct metadata_bytes b)
{
	return (ProtobufCBinaryData){b.size, (uint8_t *)(uintptr_t)b.data};
}

static uint32_t subtasks_of(const struct metadata *m)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < m->vertex_count; i++)
		sum += m->vertices[i].subtask_count;
	return sum;
}

static void builder_free(struct builder *b)
{
	free(b->named);
	free(b->named_list);
	free(b->vertices);
	free(b->vertex_list);
	free(b->subtasks);
	free(b->subtask_list);
	free(b->edges);
	free(b->edge_list);
	free(b->overrides);
	free(b->override_list);
	free(b->plugins);
	free(b->plugin_list);
	free(b->directories);
}

/* One more than needed, so that NULL always means out of memory. */
#define ROWS(count, array) ((array) = calloc((size_t)(count) + 1, sizeof(*(array))))

static bool builder_allocate(struct builder *b, const struct metadata *m)
{
	uint32_t named_count = m->master_count + m->coordinator_count;
	uint32_t subtask_count = subtasks_of(m);

	memset(b, 0, sizeof(*b));
	return ROWS(named_count, b->named) &&
			ROWS(named_count, b->named_list) &&
			ROWS(m->vertex_count, b->vertices) &&
			ROWS(m->vertex_count, b->vertex_list) &&
			ROWS(subtask_count, b->subtasks) &&
			ROWS(subtask_count, b->subtask_list) &&
			ROWS(m->edge_count, b->edges) && ROWS(m->edge_count, b->edge_list) &&
			ROWS(m->override_count, b->overrides) &&
			ROWS(m->override_count, b->override_list) &&
			ROWS(m->plugin_count, b->plugins) &&
			ROWS(m->plugin_count, b->plugin_list) &&
			ROWS(m->sink_directory_count, b->directories);
}

static void build_named(struct builder *b, uint32_t at, const struct metadata_named *rows,
		uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		Weir__MetadataNamed *row = &b->named[at + i];

		weir__metadata_named__init(row);
		row->name = text_of(rows[i].name);
		row->version = rows[i].version;
		row->bytes = bytes_of(rows[i].bytes);
		b->named_list[at + i] = row;
	}
}

static void build_vertex(struct builder *b, uint32_t index, uint32_t *subtask_at,
		const struct metadata_vertex *v)
{
	Weir__MetadataVertex *row = &b->vertices[index];

	weir__metadata_vertex__init(row);
	b->vertex_list[index] = row;
	row->uid = text_of(v->uid);
	row->parallelism = v->parallelism;
	row->max_parallelism = v->max_parallelism;
	row->finished = v->is_finished;
	row->n_subtasks = v->subtask_count;
	row->subtasks = &b->subtask_list[*subtask_at];
	for (uint32_t i = 0; i < v->subtask_count; i++) {
		Weir__MetadataSubtask *subtask = &b->subtasks[*subtask_at];

		weir__metadata_subtask__init(subtask);
		subtask->index = v->subtasks[i].index;
		subtask->finished = v->subtasks[i].is_finished;
		subtask->state = bytes_of(v->subtasks[i].state);
		b->subtask_list[(*subtask_at)++] = subtask;
	}
}

static void build_edges(struct builder *b, const struct metadata *m)
{
	for (uint32_t i = 0; i < m->edge_count; i++) {
		weir__metadata_edge__init(&b->edges[i]);
		b->edges[i].from = text_of(m->edges[i].from);
		b->edges[i].to = text_of(m->edges[i].to);
		b->edges[i].partition = text_of(m->edges[i].partition);
		b->edge_list[i] = &b->edges[i];
	}
}

static void build_rows(struct builder *b, const struct metadata *m)
{
	uint32_t subtask_at = 0;

	build_named(b, 0, m->masters, m->master_count);
	build_named(b, m->master_count, m->coordinators, m->coordinator_count);
	for (uint32_t i = 0; i < m->vertex_count; i++)
		build_vertex(b, i, &subtask_at, &m->vertices[i]);
	build_edges(b, m);
	for (uint32_t i = 0; i < m->override_count; i++) {
		weir__metadata_override__init(&b->overrides[i]);
		b->overrides[i].key = text_of(m->overrides[i].key);
		b->overrides[i].value = text_of(m->overrides[i].value);
		b->override_list[i] = &b->overrides[i];
	}
	for (uint32_t i = 0; i < m->plugin_count; i++) {
		weir__metadata_plugin__init(&b->plugins[i]);
		b->plugins[i].path = text_of(m->plugins[i].path);
		b->plugins[i].size = m->plugins[i].size;
		b->plugins[i].crc32c = m->plugins[i].crc;
		b->plugin_list[i] = &b->plugins[i];
	}
	for (uint32_t i = 0; i < m->sink_directory_count; i++)
		b->directories[i] = text_of(m->sink_directories[i]);
}

static void build(struct builder *b, const struct metadata *m)
{
	build_rows(b, m);
	weir__metadata__init(&b->m);
	b->m.checkpoint_id = m->checkpoint_id;
	b->m.job_id = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)m->job.id.bytes};
	b->m.job_name = text_of(m->job_name);
	b->m.kind = m->kind;
	b->m.properties = m->properties;
	b->m.triggered_ms = m->triggered_ms;
	b->m.completed_ms = m->completed_ms;
	b->m.key_group_count = m->key_group_count;
	b->m.weir_version = text_of(m->weir_version);
	b->m.job_text = text_of(m->job_text);
	b->m.n_masters = m->master_count;
	b->m.masters = b->named_list;
	b->m.n_coordinators = m->coordinator_count;
	b->m.coordinators = b->named_list + m->master_count;
	b->m.n_vertices = m->vertex_count;
	b->m.vertices = b->vertex_list;
	b->m.n_edges = m->edge_count;
	b->m.edges = b->edge_list;
	b->m.n_overrides = m->override_count;
	b->m.overrides = b->override_list;
	b->m.n_plugins = m->plugin_count;
	b->m.plugins = b->plugin_list;
	b->m.n_sink_directories = m->sink_directory_count;
	b->m.sink_directories = b->directories;
}

/* The bytes of the whole file, malloc'ed; NULL: out of memory. */
static uint8_t *encode(const struct metadata *m, size_t *size)
{
	struct metadata_head head = {METADATA_MAGIC, htole32(METADATA_VERSION), 0, 0};
	struct builder b;
	uint8_t *bytes = NULL;

	if (builder_allocate(&b, m)) {
		build(&b, m);
		*size = weir__metadata__get_packed_size(&b.m);
		bytes = malloc(sizeof(head) + *size);
	}
	if (bytes != NULL) {
		weir__metadata__pack(&b.m, bytes + sizeof(head));
		head.crc = htole32(crc32c(0, bytes + sizeof(head), *size));
		head.size = htole64(*size);
		memcpy(bytes, &head, sizeof(head));
		*size += sizeof(head);
	}
	builder_free(&b);
	return bytes;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* One whose bytes are nobody else's; writing over it changes nothing but these, so that no room
 * has to be found and nothing else becomes durable with them.  False: there is none. */
static bool open_spare(int directory, char name[ASIDE_BYTES], int *fd)
{
	struct stat st;

	snprintf(name, ASIDE_BYTES, METADATA_SPARE_FILE);
	*fd = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0 && errno == ENOENT)
		return false;
	if (*fd >= 0 && fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return true;
	if (*fd >= 0)
		close(*fd);
	unlinkat(directory, name, 0);
	return false;
}

static int open_new(int directory, char name[ASIDE_BYTES], int *fd)
{
	*fd = -1;
	/* Names of an earlier try that died are left alone. */
	for (uint32_t i = 0; *fd < 0 && i < ASIDES_MAX; i++) {
		snprintf(name, ASIDE_BYTES, METADATA_FILE ".%u", i);
		*fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (*fd < 0 && errno != EEXIST)
			return -errno;
	}
	return *fd < 0 ? -EEXIST : 0;
}

/* What an earlier one was longer by goes. */
static int cut(int fd, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	return (size_t)st.st_size == size || ftruncate(fd, (off_t)size) == 0 ? 0 : -errno;
}

/* Beside its final name, in the directory; `name` is the one it gets. */
static int write_aside(int directory, char name[ASIDE_BYTES], const uint8_t *bytes, size_t size)
{
	int fd, rc = 0;
	bool is_spare = open_spare(directory, name, &fd);

	if (!is_spare)
		rc = open_new(directory, name, &fd);
	if (rc != 0)
		return rc;
	rc = write_all(fd, bytes, size);
	if (rc == 0)
		rc = cut(fd, size);
	if (is_spare)
		crash_point("spare-written");
	if (rc == 0 && fdatasync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (is_spare)
		crash_point("spare-synced");
	if (rc != 0)
		unlinkat(directory, name, 0);
	return rc;
}

/* Never over a file that is there; where the file system cannot promise that, we look first. */
static int rename_new(int directory, const char *from, const char *to)
{
	if (renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (faccessat(directory, to, F_OK, 0) == 0)
		return -EEXIST;
	return renameat(directory, from, directory, to) == 0 ? 0 : -errno;
}

/* Makes the name durable, and the directory's own. */
static int sync_names(int directory)
{
	int above, rc;

	if (fsync(directory) != 0)
		return -errno;
	above = openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0)
		return -errno;
	rc = fsync(above) == 0 ? 0 : -errno;
	close(above);
	return rc;
}

static int write_into(int directory, const uint8_t *bytes, size_t size)
{
	char aside[ASIDE_BYTES];
	int rc = write_aside(directory, aside, bytes, size);

	if (rc != 0)
		return rc;
	rc = rename_new(directory, aside, METADATA_FILE);
	if (rc != 0) {
		unlinkat(directory, aside, 0);
		return rc;
	}
	if (strcmp(aside, METADATA_SPARE_FILE) == 0)
		crash_point("spare-renamed");
	rc = sync_names(directory);
	if (rc != 0)
		unlinkat(directory, METADATA_FILE, 0);
	return rc;
}

static int write_file(const char *path, const uint8_t *bytes, size_t size)
{
	int directory, rc;

	if (strlen(path) >= METADATA_PATH_BYTES)
		return -ENAMETOOLONG;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	rc = write_into(directory, bytes, size);
	close(directory);
	return rc;
}

int metadata_write(const char *directory, const struct metadata *m, uint64_t *size)
{
	size_t bytes_size = 0;
	uint8_t *bytes;
	int rc;

	CHECK(m->checkpoint_id > 0);
	bytes = encode(m, &bytes_size);
	if (bytes == NULL)
		return -ENOMEM;
	rc = bytes_size <= METADATA_BYTES_MAX ? write_file(directory, bytes, bytes_size) : -EFBIG;
	free(bytes);
	*size = bytes_size;
	return rc;
}
