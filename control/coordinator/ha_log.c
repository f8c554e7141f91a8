#include "control/coordinator/ha_log.h"

#include "control/coordinator/durable_file.h"
#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	int64_t id;
	struct record_bytes record; /* a LogRecord that adds it, from malloc */
};

struct ha_log {
	struct record_log file;
	int64_t next_id;
	uint32_t count, gone_count;
	struct entry *entries; /* by id */
	int64_t *gone; /* forgotten, and not written yet */
	char directory[DURABLE_PATH_BYTES - 16];
	char path[DURABLE_PATH_BYTES];
};

/* ---- in memory ---- */

static void *grow(void *array, uint32_t count, size_t bytes)
{
	void *more = realloc(array, (count + 1) * bytes);

	CHECK(more != NULL);
	return more;
}

static uint32_t place_of(const struct ha_log *l, int64_t id)
{
	uint32_t at = l->count;

	while (at > 0 && l->entries[at - 1].id >= id)
		at--;
	return at;
}

static bool is_listed(const struct ha_log *l, uint32_t at, int64_t id)
{
	return at < l->count && l->entries[at].id == id;
}

static void take_out(struct ha_log *l, int64_t id)
{
	uint32_t at = place_of(l, id);

	if (!is_listed(l, at, id))
		return;
	free((void *)(uintptr_t)l->entries[at].record.data);
	l->count--;
	memmove(l->entries + at, l->entries + at + 1, (l->count - at) * sizeof(*l->entries));
}

/* Owns the record's bytes then. */
static void put_in(struct ha_log *l, int64_t id, struct record_bytes record)
{
	take_out(l, id);
	uint32_t at = place_of(l, id);

	l->entries = grow(l->entries, l->count, sizeof(*l->entries));
	memmove(l->entries + at + 1, l->entries + at, (l->count - at) * sizeof(*l->entries));
	l->entries[at] = (struct entry){id, record};
	l->count++;
}

static struct record_bytes pack(const Weir__LogRecord *m)
{
	size_t size = weir__log_record__get_packed_size(m);
	uint8_t *data = malloc(size + 1);

	CHECK(data != NULL);
	weir__log_record__pack(m, data);
	return (struct record_bytes){data, size};
}

static struct record_bytes pack_completed(const Weir__CompletedRecord *record)
{
	Weir__LogRecord m = WEIR__LOG_RECORD__INIT;

	m.completed = (Weir__CompletedRecord *)(uintptr_t)record;
	return pack(&m);
}

/* ---- reading ---- */

/* Fields that are unknown here can be such that protobuf-c reads them, but not what it makes of
 * them. */
static bool is_readable(struct record_bytes record)
{
	Weir__LogRecord *m = weir__log_record__unpack(NULL, record.size, record.data);
	bool is_good = m != NULL && m->completed != NULL;

	if (m != NULL)
		weir__log_record__free_unpacked(m, NULL);
	return is_good;
}

static bool take(void *context, const uint8_t *record, size_t bytes)
{
	struct ha_log *l = context;
	Weir__LogRecord *m = weir__log_record__unpack(NULL, bytes, record);

	if (m == NULL)
		return false;
	const Weir__CompletedRecord *c = m->completed;
	bool is_sound = m->next_id >= 0 && (c == NULL || (c->id > 0 && c->location[0] != 0));
	if (is_sound && m->next_id != 0)
		l->next_id = m->next_id;
	for (size_t i = 0; is_sound && i < m->n_gone; i++)
		take_out(l, m->gone[i]);
	if (is_sound && c != NULL) {
		struct record_bytes packed = pack_completed(c);

		is_sound = is_readable(packed);
		if (is_sound)
			put_in(l, c->id, packed);
		else
			free((void *)(uintptr_t)packed.data);
	}
	weir__log_record__free_unpacked(m, NULL);
	return is_sound;
}

int ha_log_open(struct ha_log **out, const char *directory, char text[HA_LOG_TEXT_BYTES])
{
	struct ha_log *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->file.fd = -1;
	l->next_id = 1;
	int n = snprintf(l->directory, sizeof(l->directory), "%s", directory);
	CHECK(n < (int)sizeof(l->directory));
	snprintf(l->path, sizeof(l->path), "%.1007s/checkpoints", l->directory);
	int rc = record_log_open(&l->file, l->path, take, l, text);
	if (rc != 0 && rc != -ENOENT) {
		ha_log_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

void ha_log_close(struct ha_log *l)
{
	if (l == NULL)
		return;
	record_log_close(&l->file);
	for (uint32_t i = 0; i < l->count; i++)
		free((void *)(uintptr_t)l->entries[i].record.data);
	free(l->entries);
	free(l->gone);
	free(l);
}

int64_t ha_log_next_id(const struct ha_log *l)
{
	return l->next_id;
}

void ha_log_read(const struct ha_log *l, Weir__CompletedRecord ***records, uint32_t *count)
{
	Weir__CompletedRecord **all = calloc(l->count + 1, sizeof(Weir__CompletedRecord *));

	CHECK(all != NULL);
	for (uint32_t i = 0; i < l->count; i++) {
		struct record_bytes r = l->entries[i].record;
		Weir__LogRecord *m = weir__log_record__unpack(NULL, r.size, r.data);

		CHECK(m != NULL); /* we packed it */
		all[i] = m->completed;
		m->completed = NULL;
		weir__log_record__free_unpacked(m, NULL);
	}
	*records = all;
	*count = l->count;
}

/* ---- writing ---- */

/* The file anew, with what is in memory and one more, if any. */
static int write_anew(struct ha_log *l, const struct record_bytes *more, bool *is_replaced)
{
	struct record_bytes *all = calloc(l->count + 2, sizeof(*all));
	Weir__LogRecord first = WEIR__LOG_RECORD__INIT;
	uint32_t count = 0;

	CHECK(all != NULL);
	*is_replaced = false;
	first.next_id = l->next_id;
	all[count++] = pack(&first);
	for (uint32_t i = 0; i < l->count; i++)
		all[count++] = l->entries[i].record;
	if (more != NULL)
		all[count++] = *more;
	int rc = durable_make_directory(l->directory);
	if (rc == 0)
		rc = record_log_write(&l->file, l->path, all, count, is_replaced);
	if (rc == 0)
		l->gone_count = 0;
	free((void *)(uintptr_t)all[0].data);
	free(all);
	return rc;
}

/* Makes a change durable.  What stands in memory is what was before it. */
static int change(struct ha_log *l, Weir__LogRecord *m)
{
	bool is_replaced = false, is_without = false;

	m->n_gone = l->gone_count;
	m->gone = l->gone;
	struct record_bytes record = pack(m);
	if (record.size > MESSAGE_BYTES_MAX) {
		free((void *)(uintptr_t)record.data);
		return -EMSGSIZE;
	}
	int rc = record_log_append(&l->file, record);
	bool is_doubtful = rc != 0 && rc != -ENOSPC;
	if (rc == 0) {
		l->gone_count = 0;
	} else if (rc == -ENOSPC) {
		rc = write_anew(l, &record, &is_replaced);
		is_doubtful = rc != 0 && is_replaced;
	}
	free((void *)(uintptr_t)record.data);
	/* A file without it makes sure that it is not there. */
	if (is_doubtful && write_anew(l, NULL, &is_without) != 0)
		return HA_LOG_MAYBE;
	return rc;
}

int ha_log_set_next_id(struct ha_log *l, int64_t next)
{
	Weir__LogRecord m = WEIR__LOG_RECORD__INIT;

	CHECK(next >= 1);
	m.next_id = next;
	int rc = change(l, &m);
	if (rc == 0)
		l->next_id = next;
	return rc == HA_LOG_MAYBE ? -EIO : rc; /* ids may be left out */
}

int ha_log_add(struct ha_log *l, const Weir__CompletedRecord *record)
{
	Weir__LogRecord m = WEIR__LOG_RECORD__INIT;

	CHECK(record->id > 0);
	m.completed = (Weir__CompletedRecord *)(uintptr_t)record;
	int rc = change(l, &m);
	if (rc == 0)
		put_in(l, record->id, pack_completed(record));
	return rc;
}

void ha_log_forget(struct ha_log *l, int64_t id)
{
	if (!is_listed(l, place_of(l, id), id))
		return;
	take_out(l, id);
	l->gone = grow(l->gone, l->gone_count, sizeof(*l->gone));
	l->gone[l->gone_count++] = id;
}

int ha_log_settle(struct ha_log *l)
{
	Weir__LogRecord m = WEIR__LOG_RECORD__INIT;
	int rc = l->gone_count == 0 ? 0 : change(l, &m);

	return rc == HA_LOG_MAYBE ? -EIO : rc;
}

int ha_log_remove(struct ha_log *l, int64_t id)
{
	uint32_t at = place_of(l, id);

	if (!is_listed(l, at, id))
		return ha_log_settle(l);
	l->gone = grow(l->gone, l->gone_count, sizeof(*l->gone));
	l->gone[l->gone_count++] = id;
	int rc = ha_log_settle(l);
	if (rc == 0)
		take_out(l, id);
	else if (l->gone_count > 0)
		l->gone_count--;
	return rc;
}

int ha_log_clear(struct ha_log *l)
{
	uint32_t count = l->count;
	bool is_replaced;

	if (count == 0 && l->gone_count == 0)
		return 0;
	l->count = 0;
	int rc = write_anew(l, NULL, &is_replaced);
	l->count = count;
	while (rc == 0 && l->count > 0)
		take_out(l, l->entries[l->count - 1].id);
	return rc;
}
