#include "dataplane/checkpoint/savepoint_locations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_COUNT = SAVEPOINT_LOCATION_BYTES / 8 };

/* A place says whose it is before and behind the words, so that who reads while it is given away
 * notices. */
struct place {
	_Atomic int64_t id; /* 0: nobody's */
	_Atomic uint64_t words[WORDS_COUNT];
};

struct savepoint_locations {
	uint32_t next;
	struct place places[SAVEPOINT_LOCATIONS_COUNT];
};

int savepoint_locations_create(struct savepoint_locations **out)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? -ENOMEM : 0;
}

void savepoint_locations_destroy(struct savepoint_locations *l)
{
	free(l);
}

static const struct place *find(const struct savepoint_locations *l, int64_t id)
{
	for (uint32_t i = 0; i < SAVEPOINT_LOCATIONS_COUNT; i++)
		if (atomic_load_explicit(&l->places[i].id, memory_order_acquire) == id)
			return &l->places[i];
	return NULL;
}

int savepoint_locations_put(struct savepoint_locations *l, int64_t savepoint_id, const char *path)
{
	uint64_t words[WORDS_COUNT] = {0};
	size_t bytes = strlen(path);

	if (bytes >= sizeof(words))
		return -ENAMETOOLONG;
	if (find(l, savepoint_id) != NULL)
		return 0;
	memcpy(words, path, bytes);
	struct place *p = &l->places[l->next++ % SAVEPOINT_LOCATIONS_COUNT];
	atomic_store_explicit(&p->id, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (uint32_t i = 0; i < WORDS_COUNT; i++)
		atomic_store_explicit(&p->words[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&p->id, savepoint_id, memory_order_release);
	return 0;
}

bool savepoint_locations_find(const struct savepoint_locations *l, int64_t savepoint_id,
		char path[SAVEPOINT_LOCATION_BYTES])
{
	const struct place *p = find(l, savepoint_id);
	uint64_t words[WORDS_COUNT];

	if (p == NULL)
		return false;
	for (uint32_t i = 0; i < WORDS_COUNT; i++)
		words[i] = atomic_load_explicit(&p->words[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&p->id, memory_order_relaxed) != savepoint_id)
		return false;
	memcpy(path, words, sizeof(words));
	return true;
}
