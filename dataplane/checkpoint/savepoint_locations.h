#pragma once

/*
 * savepoint_locations: where the savepoints under way of one job go (SL-4), found by their id when
 * a barrier asks for it.
 *
 * Place    checkpoint; one for each task group.
 * Thread   put on the control thread; find on any worker, without a lock.
 * Memory   fixed; the oldest place is given to the newest savepoint.
 * Errors   -ENAMETOOLONG of a path; a place that was given away is not found.
 */

#include <stdbool.h>
#include <stdint.h>

struct savepoint_locations;

enum {
	SAVEPOINT_LOCATIONS_COUNT = 64,
	SAVEPOINT_LOCATION_BYTES = 1024, /* longest path, with the zero */
};

/* -ENOMEM. */
int savepoint_locations_create(struct savepoint_locations **out);
void savepoint_locations_destroy(struct savepoint_locations *l);

/* Before the savepoint's barrier is on its way; once more with the same id changes nothing. */
int savepoint_locations_put(struct savepoint_locations *l, int64_t savepoint_id, const char *path);

/* False: no such savepoint, or 64 newer ones have begun since. */
bool savepoint_locations_find(const struct savepoint_locations *l, int64_t savepoint_id,
		char path[SAVEPOINT_LOCATION_BYTES]);
