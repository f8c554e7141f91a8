#include "control/coordinator/shared_state_registry.h"

#include "control/coordinator/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BUCKETS_COUNT_START = 64 };

struct entry {
	struct entry *next; /* in its bucket */
	char *key, *file;
	int64_t created_by, last_used_by;
	bool keeps_creator;
};

struct shared_state_registry {
	uint32_t entry_count, bucket_count;
	struct entry **buckets;
	int64_t unclaimed_id_max;
	struct id_list without_sharing; /* restored checkpoints whose kind has no sharing */
};

void shared_state_registry_create(struct shared_state_registry **out)
{
	struct shared_state_registry *r = heap_zeroed(1, sizeof(*r));

	r->bucket_count = BUCKETS_COUNT_START;
	r->buckets = heap_zeroed(r->bucket_count, sizeof(struct entry *));
	*out = r;
}

static void entry_free(struct entry *e)
{
	free(e->key);
	free(e->file);
	free(e);
}

void shared_state_registry_destroy(struct shared_state_registry *r)
{
	if (r == NULL)
		return;
	for (uint32_t b = 0; b < r->bucket_count; b++) {
		while (r->buckets[b] != NULL) {
			struct entry *e = r->buckets[b];

			r->buckets[b] = e->next;
			entry_free(e);
		}
	}
	free(r->buckets);
	id_list_clear(&r->without_sharing);
	free(r);
}

bool id_list_contains(const struct id_list *l, int64_t id)
{
	for (uint32_t i = 0; i < l->count; i++) {
		if (l->ids[i] == id)
			return true;
	}
	return false;
}

static void id_list_add(struct id_list *l, int64_t id)
{
	if (id_list_contains(l, id))
		return;
	l->ids = heap_resize(l->ids, l->count + 1, sizeof(*l->ids));
	l->ids[l->count++] = id;
}

void id_list_clear(struct id_list *l)
{
	free(l->ids);
	*l = (struct id_list){ 0 };
}

static struct entry **bucket_of(struct shared_state_registry *r, const char *key)
{
	return &r->buckets[XXH3_64bits(key, strlen(key)) & (r->bucket_count - 1)];
}

static struct entry *find(struct shared_state_registry *r, const char *key)
{
	for (struct entry *e = *bucket_of(r, key); e != NULL; e = e->next) {
		if (strcmp(e->key, key) == 0)
			return e;
	}
	return NULL;
}

static void grow(struct shared_state_registry *r)
{
	struct entry **old = r->buckets;
	uint32_t old_count = r->bucket_count;

	r->bucket_count *= 2;
	r->buckets = heap_zeroed(r->bucket_count, sizeof(struct entry *));
	for (uint32_t b = 0; b < old_count; b++) {
		while (old[b] != NULL) {
			struct entry *e = old[b];
			struct entry **bucket = bucket_of(r, e->key);

			old[b] = e->next;
			e->next = *bucket;
			*bucket = e;
		}
	}
	free(old);
}

static void insert(struct shared_state_registry *r, const struct shared_file *f, int64_t id)
{
	if (r->entry_count >= r->bucket_count)
		grow(r);

	struct entry **bucket = bucket_of(r, f->key);
	struct entry *e = heap_zeroed(1, sizeof(*e));

	e->key = heap_text(f->key);
	e->file = heap_text(f->file);
	e->created_by = id;
	e->last_used_by = id;
	e->keeps_creator = f->keeps_creator;
	e->next = *bucket;
	*bucket = e;
	r->entry_count++;
}

static int register_file(struct shared_state_registry *r, struct shared_file *f, int64_t id)
{
	struct entry *e = find(r, f->key);

	if (e == NULL) {
		if (f->file == NULL)
			return -ENOENT;
		insert(r, f, id);
		return 0;
	}
	if (f->file != NULL && strcmp(f->file, e->file) != 0)
		return -EEXIST;
	if (f->file == NULL)
		f->file = heap_text(e->file);
	if (id > e->last_used_by)
		e->last_used_by = id;
	e->keeps_creator = e->keeps_creator || f->keeps_creator;
	return 0;
}

int shared_state_registry_register(
		struct shared_state_registry *r, struct shared_list *l, int64_t checkpoint_id)
{
	int rc = 0;

	for (uint32_t i = 0; i < l->count && rc == 0; i++)
		rc = register_file(r, &l->items[i], checkpoint_id);
	return rc;
}

int shared_state_registry_register_restored(
		struct shared_state_registry *r, struct completed_checkpoint *c)
{
	if (checkpoint_kind_is_savepoint(c->made_as))
		id_list_add(&r->without_sharing, c->id);
	if (c->unclaimed_id_max > r->unclaimed_id_max)
		r->unclaimed_id_max = c->unclaimed_id_max;
	return shared_state_registry_register(r, &c->shared, c->id);
}

static bool is_keeping_creator(const struct shared_state_registry *r, const struct entry *e)
{
	return e->keeps_creator || id_list_contains(&r->without_sharing, e->created_by);
}

void shared_state_registry_unregister_unused(struct shared_state_registry *r, int64_t lowest_id,
		struct file_list *files, struct id_list *in_use)
{
	for (uint32_t b = 0; b < r->bucket_count; b++) {
		struct entry **link = &r->buckets[b];

		while (*link != NULL) {
			struct entry *e = *link;

			if (e->last_used_by >= lowest_id) {
				if (is_keeping_creator(r, e))
					id_list_add(in_use, e->created_by);
				link = &e->next;
				continue;
			}
			if (e->created_by > r->unclaimed_id_max)
				file_list_add(files, e->file);
			*link = e->next;
			r->entry_count--;
			entry_free(e);
		}
	}
}

int64_t shared_state_registry_unclaimed_id_max(const struct shared_state_registry *r)
{
	return r->unclaimed_id_max;
}
