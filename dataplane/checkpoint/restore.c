/*
 * Bytes are read twice: once for their checksum, so that damage is named as damage and not as
 * whatever it looks like further in, and once to be put in place.
 */

#include "dataplane/checkpoint/restore_internal.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/operator/keyed_chunk.h"
#include "dataplane/operator/keyed_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

int restore_refuse(
		char *text, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, RESTORE_TEXT_BYTES, format, args);
	va_end(args);
	return status;
}

/* ---- reading the range of a handle ---------------------------------------------------------- */

struct range {
	int fd;
	uint64_t offset, left;
	uint64_t padding; /* zeros behind it */
	const struct state_handle *handle;
	char path[1024];
};

static int open_range(struct range *r, const char *directory, const struct state_handle *h,
		char *text)
{
	struct stat st;
	int bytes = snprintf(r->path, sizeof(r->path), "%s/%s", directory, h->file);
	int status;

	/* The zeros behind the last state are part of the file: a shorter one has been cut. */
	uint64_t unit = STORE_ALIGN_BYTES;
	uint64_t padded = h->size > UINT64_MAX - unit ? h->size
						      : (h->size + unit - 1) / unit * unit;

	r->offset = h->offset;
	r->left = h->size;
	r->handle = h;
	if (bytes < 0 || (size_t)bytes >= sizeof(r->path))
		return restore_refuse(text, -ENAMETOOLONG,
				"state %s.%s: the path of its file is too long",
				h->uid, h->name);
	r->padding = padded - h->size;
	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return restore_refuse(text, -errno, "%s: %s (state %s.%s)", r->path,
				strerrordesc_np(errno), h->uid, h->name);
	if (fstat(r->fd, &st) != 0)
		status = restore_refuse(text, -errno, "%s: %s", r->path, strerrordesc_np(errno));
	else if (!S_ISREG(st.st_mode))
		status = restore_refuse(text, -EBADMSG, "%s: is not a file", r->path);
	else if (padded > (uint64_t)st.st_size || h->offset > (uint64_t)st.st_size - padded)
		status = restore_refuse(text, -EBADMSG,
				"%s: ends at %llu, but state %s.%s is %llu bytes at offset %llu",
				r->path, (unsigned long long)st.st_size, h->uid, h->name,
				(unsigned long long)h->size,
				(unsigned long long)h->offset);
	else
		return 0;
	close(r->fd);
	return status;
}

/* Reads up to `size` bytes of what is left: all of them or an error. */
static int read_range(struct range *r, void *room, size_t size, size_t *got, char *text)
{
	size_t want = size < r->left ? size : r->left;
	size_t at = 0;

	while (at < want) {
		ssize_t n = pread(r->fd, (char *)room + at, want - at, (off_t)(r->offset + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return restore_refuse(text, -errno, "%s: offset %llu: %s", r->path,
					(unsigned long long)(r->offset + at),
					strerrordesc_np(errno));
		if (n == 0)
			return restore_refuse(text, -EBADMSG,
					"%s: offset %llu: the file has become shorter", r->path,
					(unsigned long long)(r->offset + at));
		at += (size_t)n;
	}
	r->offset += want;
	r->left -= want;
	*got = want;
	return 0;
}

/* The writer leaves zeros behind a state, up to its alignment: anything else is damage too. */
static int verify_padding(struct range *r, uint8_t *room, char *text)
{
	size_t got;

	r->left = r->padding;
	int rc = read_range(r, room, STORE_ALIGN_BYTES, &got, text);
	for (size_t i = 0; rc == 0 && i < got; i++) {
		if (room[i] != 0)
			rc = restore_refuse(text, -EBADMSG,
					"%s: offset %llu: a byte between states is not zero",
					r->path, (unsigned long long)(r->offset - got + i));
	}
	return rc;
}

static int verify_range(struct range *r, uint8_t *room, char *text)
{
	const struct state_handle *h = r->handle;
	uint32_t crc = 0;

	while (r->left > 0) {
		size_t got;
		int rc = read_range(r, room, READ_BYTES, &got, text);

		if (rc != 0)
			return rc;
		crc = crc32c(crc, room, got);
	}
	if (crc != h->crc)
		return restore_refuse(text, -EBADMSG,
				"%s: offset %llu: the checksum of %llu bytes is %08x instead of "
				"%08x (state %s.%s)", r->path,
				(unsigned long long)h->offset, (unsigned long long)h->size, crc,
				h->crc, h->uid, h->name);
	return verify_padding(r, room, text);
}

int restore_verify_handle(const char *directory, const struct state_handle *handle,
		char text[RESTORE_TEXT_BYTES])
{
	struct range r;
	uint8_t *room;
	int rc;

	if (handle->file == NULL)
		return 0; /* checked when it was decoded */
	rc = open_range(&r, directory, handle, text);
	if (rc != 0)
		return rc;
	room = malloc(READ_BYTES);
	rc = room != NULL ? verify_range(&r, room, text)
			  : restore_refuse(text, -ENOMEM, "%s: out of memory", r.path);
	free(room);
	close(r.fd);
	return rc;
}

/* ---- keyed state ----------------------------------------------------------------------------- */

/* What a chunk at `bytes` needs to be whole; 0 when its head cannot be one. */
static size_t chunk_bytes(const struct declared_state *s, const uint8_t *bytes)
{
	struct keyed_chunk c;

	if (!keyed_chunk_read_head(&c, bytes, s->key_bytes, s->value_bytes))
		return 0;
	return keyed_chunk_size(&c);
}

/* All whole chunks at the front of `bytes`; `*used` is how far they go. */
static int put_chunks(const struct declared_state *s, const uint8_t *bytes, size_t size,
		size_t *used)
{
	*used = 0;
	while (size - *used >= KEYED_CHUNK_HEAD_BYTES) {
		size_t need = chunk_bytes(s, bytes + *used), taken;
		int rc;

		if (need == 0)
			return -EBADMSG;
		if (need > size - *used)
			return 0;
		rc = keyed_state_restore_chunk(s->keyed, bytes + *used, need, &taken);
		if (rc != 0)
			return rc;
		*used += taken;
	}
	return 0;
}

static int refuse_chunk(const struct declared_state *s, const char *where, uint64_t offset, int rc,
		char *text)
{
	if (rc == -ENOSPC)
		return restore_refuse(text, rc,
				"state %s.%s: more entries than its capacity of %llu",
				s->uid, s->name, (unsigned long long)s->capacity);
	return restore_refuse(text, rc,
			"%s: offset %llu: not a sequence of entries (state %s.%s)", where,
			(unsigned long long)offset, s->uid, s->name);
}

static int put_keyed_inline(
		const struct declared_state *s, const struct state_handle *h, char *text)
{
	size_t used;
	int rc = put_chunks(s, h->bytes, h->size, &used);

	if (rc == 0 && used != h->size)
		rc = -EBADMSG;
	return rc == 0 ? 0 : refuse_chunk(s, "inline bytes", used, rc, text);
}

static int put_keyed_range(const struct declared_state *s, struct range *r, char *text)
{
	size_t room_bytes = READ_BYTES + KEYED_CHUNK_HEAD_BYTES +
			KEYED_CHUNK_COUNT_MAX * ((size_t)s->key_bytes + s->value_bytes);
	uint8_t *room = malloc(room_bytes);
	size_t held = 0, got, used;
	int rc = 0;

	if (room == NULL)
		return restore_refuse(text, -ENOMEM, "%s: out of memory", r->path);
	while (rc == 0 && r->left > 0) {
		rc = read_range(r, room + held, room_bytes - held, &got, text);
		if (rc != 0)
			break;
		held += got;
		rc = put_chunks(s, room, held, &used);
		if (rc == 0 && r->left == 0 && used != held)
			rc = -EBADMSG;
		if (rc != 0)
			refuse_chunk(s, r->path, r->offset - held + used, rc, text);
		memmove(room, room + used, held - used);
		held -= used;
	}
	free(room);
	return rc;
}

/* ---- one state ------------------------------------------------------------------------------- */

static const char *kind_name(enum weir_state_kind kind)
{
	switch (kind) {
	case WEIR_STATE_VALUE:
		return "a value";
	case WEIR_STATE_LIST:
		return "a list";
	default:
		return "keyed";
	}
}

static int refuse_number(const struct state_handle *h, const char *what, uint32_t saved,
		uint32_t declared, char *text)
{
	return restore_refuse(text, -EINVAL,
			"operator %s, state %s: the checkpoint has %s %u, the operator declares %u",
			h->uid, h->name, what, saved, declared);
}

int restore_check_declared(const struct task_state *t, const struct state_handle *h,
		const struct declared_state *s, char *text)
{
	if (s->kind != h->kind)
		return restore_refuse(text, -EINVAL,
				"operator %s, state %s: %s in the checkpoint, %s as the operator "
				"declares it", h->uid, h->name, kind_name(h->kind),
				kind_name(s->kind));
	if (s->version != h->version)
		return refuse_number(h, "version", h->version, s->version, text);
	if (s->value_bytes != h->value_bytes)
		return refuse_number(h, "values of bytes", h->value_bytes, s->value_bytes, text);
	if (s->kind == WEIR_STATE_LIST && h->item_count > s->capacity)
		return restore_refuse(text, -ENOSPC,
				"operator %s, state %s: %llu items do not fit its capacity of %llu",
				h->uid, h->name,
				(unsigned long long)h->item_count, (unsigned long long)s->capacity);
	if (s->kind != WEIR_STATE_KEYED)
		return 0;
	if (s->key_bytes != h->key_bytes)
		return refuse_number(h, "keys of bytes", h->key_bytes, s->key_bytes, text);
	if (keyed_state_config_of(s->keyed)->group_count != t->group_count)
		return refuse_number(h, "a number of key groups of", t->group_count,
				keyed_state_config_of(s->keyed)->group_count, text);
	return 0;
}

/* From the file: the bytes are known to be as they were written. */
static int put_range(const struct declared_state *s, struct range *r, char *text)
{
	size_t got;

	if (s->kind == WEIR_STATE_KEYED)
		return put_keyed_range(s, r, text);
	return read_range(r, s->memory, r->left, &got, text);
}

int restore_put_state(const char *directory, const struct declared_state *s,
		const struct state_handle *h, char *text)
{
	struct range r;
	int rc;

	if (h->file != NULL) {
		rc = restore_verify_handle(directory, h, text);
		if (rc == 0)
			rc = open_range(&r, directory, h, text);
		if (rc != 0)
			return rc;
		rc = put_range(s, &r, text);
		close(r.fd);
	} else if (s->kind == WEIR_STATE_KEYED) {
		rc = put_keyed_inline(s, h, text);
	} else {
		memcpy(s->memory, h->bytes, h->size);
		rc = 0;
	}
	if (rc == 0 && s->kind == WEIR_STATE_LIST)
		*s->list_count = (uint32_t)h->item_count;
	return rc;
}

int restore_find_declared(const struct task_state *t, const struct state_handle *h,
		const struct declared_state *states, uint32_t count,
		const struct declared_state **out, char *text)
{
	for (uint32_t i = 0; i < count; i++) {
		*out = &states[i];
		if (strcmp(states[i].uid, h->uid) == 0 && strcmp(states[i].name, h->name) == 0)
			return 0;
	}
	return restore_refuse(text, -EINVAL,
			"operator %s, state %s: in the checkpoint, but vertex %s of the job "
			"declares no such state",
			h->uid, h->name, t->vertex_uid);
}

int restore_states(const char *directory, const struct task_state *t,
		const struct declared_state *states, uint32_t state_count, bool ignores_unclaimed,
		char text[RESTORE_TEXT_BYTES])
{
	for (uint32_t i = 0; i < t->handle_count; i++) {
		const struct state_handle *h = &t->handles[i];
		const struct declared_state *s;
		int rc = restore_find_declared(t, h, states, state_count, &s, text);

		if (rc != 0 && ignores_unclaimed)
			continue;
		if (rc == 0)
			rc = restore_check_declared(t, h, s, text);
		if (rc == 0)
			rc = restore_put_state(directory, s, h, text);
		if (rc != 0)
			return rc;
	}
	return 0;
}
