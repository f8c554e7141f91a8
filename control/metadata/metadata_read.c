/* What was read keeps the unpacked message; the rows point into it. */

#include "control/metadata/metadata.h"

#include "control/metadata/metadata.pb-c.h"
#include "control/metadata/metadata_internal.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/limits.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct decoded {
	struct metadata m; /* the first member: what the caller holds */
	Weir__Metadata *message;
	struct metadata_named *masters, *coordinators;
	struct metadata_vertex *vertices;
	struct metadata_subtask *subtasks; /* of all vertices */
	struct metadata_edge *edges;
	struct metadata_override *overrides;
	struct metadata_plugin *plugins;
};

__attribute__((format(printf, 3, 4))) static int refuse(
		char *text, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, METADATA_TEXT_BYTES, format, args);
	va_end(args);
	return status;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static struct metadata_bytes bytes_of(const ProtobufCBinaryData *b)
{
	return (struct metadata_bytes){b->data, b->len};
}

static struct metadata_named *take_named(Weir__MetadataNamed **rows, size_t count)
{
	struct metadata_named *out = calloc(count + 1, sizeof(*out));

	for (size_t i = 0; out != NULL && i < count; i++)
		out[i] = (struct metadata_named){
				rows[i]->name, rows[i]->version, bytes_of(&rows[i]->bytes)};
	return out;
}

static void take_vertices(struct decoded *d)
{
	const Weir__Metadata *m = d->message;
	struct metadata_subtask *subtask = d->subtasks;

	for (size_t i = 0; i < m->n_vertices; i++) {
		const Weir__MetadataVertex *v = m->vertices[i];

		d->vertices[i] = (struct metadata_vertex){v->uid, v->parallelism,
				v->max_parallelism, v->finished, (uint32_t)v->n_subtasks, subtask};
		for (size_t k = 0; k < v->n_subtasks; k++)
			*subtask++ = (struct metadata_subtask){v->subtasks[k]->index,
					v->subtasks[k]->finished, bytes_of(&v->subtasks[k]->state)};
	}
}

static void take_settings(struct decoded *d)
{
	const Weir__Metadata *m = d->message;

	for (size_t i = 0; i < m->n_edges; i++)
		d->edges[i] = (struct metadata_edge){
				m->edges[i]->from, m->edges[i]->to, m->edges[i]->partition};
	for (size_t i = 0; i < m->n_overrides; i++)
		d->overrides[i] = (struct metadata_override){
				m->overrides[i]->key, m->overrides[i]->value};
	for (size_t i = 0; i < m->n_plugins; i++)
		d->plugins[i] = (struct metadata_plugin){
				m->plugins[i]->path, m->plugins[i]->size, m->plugins[i]->crc32c};
}

static bool take_rows(struct decoded *d)
{
	const Weir__Metadata *m = d->message;
	size_t subtask_count = 0;

	for (size_t i = 0; i < m->n_vertices; i++)
		subtask_count += m->vertices[i]->n_subtasks;
	d->masters = take_named(m->masters, m->n_masters);
	d->coordinators = take_named(m->coordinators, m->n_coordinators);
	d->vertices = calloc(m->n_vertices + 1, sizeof(*d->vertices));
	d->subtasks = calloc(subtask_count + 1, sizeof(*d->subtasks));
	d->edges = calloc(m->n_edges + 1, sizeof(*d->edges));
	d->overrides = calloc(m->n_overrides + 1, sizeof(*d->overrides));
	d->plugins = calloc(m->n_plugins + 1, sizeof(*d->plugins));
	if (d->masters == NULL || d->coordinators == NULL || d->vertices == NULL ||
			d->subtasks == NULL || d->edges == NULL || d->overrides == NULL ||
			d->plugins == NULL)
		return false;
	take_vertices(d);
	take_settings(d);
	return true;
}

static void take_fields(struct decoded *d)
{
	const Weir__Metadata *m = d->message;

	d->m = (struct metadata){
		.checkpoint_id = m->checkpoint_id,
		.job_name = m->job_name,
		.kind = (enum metadata_kind)m->kind,
		.properties = m->properties,
		.triggered_ms = m->triggered_ms,
		.completed_ms = m->completed_ms,
		.key_group_count = m->key_group_count,
		.weir_version = m->weir_version,
		.job_text = m->job_text,
		.master_count = (uint32_t)m->n_masters,
		.coordinator_count = (uint32_t)m->n_coordinators,
		.vertex_count = (uint32_t)m->n_vertices,
		.edge_count = (uint32_t)m->n_edges,
		.override_count = (uint32_t)m->n_overrides,
		.plugin_count = (uint32_t)m->n_plugins,
		.sink_directory_count = (uint32_t)m->n_sink_directories,
		.masters = d->masters,
		.coordinators = d->coordinators,
		.vertices = d->vertices,
		.edges = d->edges,
		.overrides = d->overrides,
		.plugins = d->plugins,
		.sink_directories = (const char *const *)m->sink_directories,
	};
	memcpy(d->m.job.id.bytes, m->job_id.data, sizeof(d->m.job.id.bytes));
}

/* ---- what must hold -------------------------------------------------------------------------- */

static int check_vertex(const Weir__MetadataVertex *v, const char *name, char *text)
{
	if (v->uid[0] == '\0' || strlen(v->uid) >= UID_BYTES_MAX)
		return refuse(text, -EBADMSG, "%s: a vertex whose uid is no name", name);
	if (v->parallelism == 0 || v->parallelism > PARALLELISM_MAX ||
			v->max_parallelism > KEY_GROUPS_COUNT_MAX)
		return refuse(text, -EBADMSG, "%s: vertex %s: parallelism %u of at most %u", name,
				v->uid, v->parallelism, v->max_parallelism);
	if (v->n_subtasks > v->parallelism || (v->finished && v->n_subtasks != 0))
		return refuse(text, -EBADMSG, "%s: vertex %s: %zu subtasks of %u", name, v->uid,
				v->n_subtasks, v->parallelism);
	for (size_t i = 0; i < v->n_subtasks; i++) {
		if (v->subtasks[i]->index >= v->parallelism ||
				(i > 0 && v->subtasks[i]->index <= v->subtasks[i - 1]->index))
			return refuse(text, -EBADMSG, "%s: vertex %s: subtask %u out of order",
					name, v->uid, v->subtasks[i]->index);
	}
	return 0;
}

static int check(const Weir__Metadata *m, const char *name, char *text)
{
	if (m->checkpoint_id <= 0)
		return refuse(text, -EBADMSG, "%s: checkpoint id %lld", name,
				(long long)m->checkpoint_id);
	if (m->job_id.len != sizeof(struct id128))
		return refuse(text, -EBADMSG, "%s: a job id of %zu bytes", name, m->job_id.len);
	if (m->kind > METADATA_SAVEPOINT)
		return refuse(text, -EBADMSG, "%s: unknown kind %u", name, m->kind);
	if (m->key_group_count == 0 || m->key_group_count > KEY_GROUPS_COUNT_MAX ||
			(m->key_group_count & (m->key_group_count - 1)) != 0)
		return refuse(text, -EBADMSG, "%s: %u key groups", name, m->key_group_count);
	if (m->n_vertices > VERTICES_COUNT_MAX)
		return refuse(text, -EBADMSG, "%s: %zu vertices", name, m->n_vertices);
	if (m->n_edges > EDGES_COUNT_MAX)
		return refuse(text, -EBADMSG, "%s: %zu edges", name, m->n_edges);
	for (size_t i = 0; i < m->n_vertices; i++) {
		int rc = check_vertex(m->vertices[i], name, text);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int check_head(const uint8_t *bytes, size_t size, struct metadata_head *head,
		const char *name, char *text)
{
	if (size < sizeof(*head))
		return refuse(text, -EBADMSG, "%s: offset 0: %zu bytes are less than its head",
				name, size);
	memcpy(head, bytes, sizeof(*head));
	if (memcmp(head->magic, METADATA_MAGIC, sizeof(head->magic)) != 0)
		return refuse(text, -EBADMSG, "%s: offset 0: not the metadata of a weir checkpoint",
				name);
	head->version = le32toh(head->version);
	head->crc = le32toh(head->crc);
	head->size = le64toh(head->size);
	if (head->version != METADATA_VERSION)
		return refuse(text, -EBADMSG, "%s: offset 8: version %u, this weir reads %u", name,
				head->version, METADATA_VERSION);
	if (head->size != size - sizeof(*head))
		return refuse(text, -EBADMSG, "%s: offset 16: should be %llu bytes long, is %zu",
				name, (unsigned long long)head->size + sizeof(*head), size);
	return 0;
}

int metadata_decode(struct metadata **out, const uint8_t *bytes, size_t size, const char *name,
		char text[METADATA_TEXT_BYTES])
{
	struct metadata_head head;
	struct decoded *d;
	int rc = check_head(bytes, size, &head, name, text);
	uint32_t crc;

	if (rc != 0)
		return rc;
	crc = crc32c(0, bytes + sizeof(head), head.size);
	if (crc != head.crc)
		return refuse(text, -EBADMSG, "%s: offset %zu: the checksum of %llu bytes is %08x "
				"instead of %08x", name, sizeof(head),
				(unsigned long long)head.size, crc, head.crc);
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return refuse(text, -ENOMEM, "%s: out of memory", name);
	d->message = weir__metadata__unpack(NULL, head.size, bytes + sizeof(head));
	rc = d->message != NULL ? check(d->message, name, text)
				: refuse(text, -EBADMSG, "%s: offset %zu: not such a message", name,
						  sizeof(head));
	if (rc == 0 && !take_rows(d))
		rc = refuse(text, -ENOMEM, "%s: out of memory", name);
	if (rc != 0) {
		metadata_free(&d->m);
		return rc;
	}
	take_fields(d);
	*out = &d->m;
	return 0;
}

void metadata_free(struct metadata *m)
{
	struct decoded *d = (struct decoded *)(void *)m;

	if (m == NULL)
		return;
	weir__metadata__free_unpacked(d->message, NULL);
	free(d->masters);
	free(d->coordinators);
	free(d->vertices);
	free(d->subtasks);
	free(d->edges);
	free(d->overrides);
	free(d->plugins);
	free(d);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_all(int fd, uint8_t *bytes, size_t size, const char *path, char *text)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = read(fd, bytes + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(text, -errno, "%s: offset %zu: %s", path, at,
					strerrordesc_np(errno));
		if (n == 0)
			return refuse(text, -EBADMSG, "%s: offset %zu: the file has become shorter",
					path, at);
		at += (size_t)n;
	}
	return 0;
}

static int read_file(struct metadata **out, int fd, const char *path, char *text)
{
	struct stat st;
	uint8_t *bytes;
	int rc;

	if (fstat(fd, &st) != 0)
		return refuse(text, -errno, "%s: %s", path, strerrordesc_np(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(text, -EBADMSG, "%s: is not a file", path);
	if (st.st_size > METADATA_BYTES_MAX)
		return refuse(text, -EBADMSG, "%s: %lld bytes are more than any metadata has", path,
				(long long)st.st_size);
	bytes = malloc((size_t)st.st_size + 1);
	if (bytes == NULL)
		return refuse(text, -ENOMEM, "%s: out of memory", path);
	rc = read_all(fd, bytes, (size_t)st.st_size, path, text);
	if (rc == 0)
		rc = metadata_decode(out, bytes, (size_t)st.st_size, path, text);
	free(bytes);
	return rc;
}

/* SL-8: a pointer to a checkpoint is its directory or the file. */
static int find_file(const char *path, char file[METADATA_PATH_BYTES],
		char directory[METADATA_PATH_BYTES], char *text)
{
	struct stat st;
	const char *slash = strrchr(path, '/');

	if (strlen(path) + sizeof("/" METADATA_FILE) > METADATA_PATH_BYTES)
		return refuse(text, -ENAMETOOLONG, "%.200s...: the path is too long", path);
	if (stat(path, &st) != 0)
		return refuse(text, -errno, "%s: %s", path, strerrordesc_np(errno));
	if (S_ISDIR(st.st_mode)) {
		snprintf(directory, METADATA_PATH_BYTES, "%s", path);
		snprintf(file, METADATA_PATH_BYTES, "%.1000s/" METADATA_FILE, path);
		return 0;
	}
	snprintf(file, METADATA_PATH_BYTES, "%s", path);
	if (slash == NULL)
		snprintf(directory, METADATA_PATH_BYTES, ".");
	else
		snprintf(directory, METADATA_PATH_BYTES, "%.*s",
				slash == path ? 1 : (int)(slash - path), path);
	return 0;
}

int metadata_read(struct metadata **out, const char *path, char directory[METADATA_PATH_BYTES],
		char text[METADATA_TEXT_BYTES])
{
	char file[METADATA_PATH_BYTES];
	int rc = find_file(path, file, directory, text);
	int fd;

	if (rc != 0)
		return rc;
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return refuse(text, -ENOENT, "%s: no " METADATA_FILE " in it, so no completed "
				"checkpoint", directory);
	if (fd < 0)
		return refuse(text, -errno, "%s: %s", file, strerrordesc_np(errno));
	rc = read_file(out, fd, file, text);
	close(fd);
	return rc;
}
