#pragma once

/*
 * soak_record: what a completed checkpoint leaves for a restore, one file each, written as a
 * coordinator writes `_metadata`: beside, then renamed.
 *
 * Place    tests.
 * Memory   read makes one object.
 */

#include "tests/soak/soak_plan.h"

enum { SOAK_TASKS_MAX = SOAK_VERTICES_MAX * SOAK_PARALLELISM_MAX, SOAK_PATH_BYTES = 512 };

struct soak_task_record {
	uint32_t is_finished;
	uint32_t bytes;
	uint8_t *state; /* encoded; NULL: none */
};

struct soak_record {
	int64_t id;
	uint32_t is_savepoint;
	uint32_t parallelism[SOAK_VERTICES_MAX];
	struct soak_task_record tasks[SOAK_VERTICES_MAX][SOAK_PARALLELISM_MAX];
};

/* Into DIRECTORY/records/ID. */
void soak_record_write(const struct soak_record *r, const char *directory);
/* The newest there is; NULL: none.  Free with soak_record_free. */
struct soak_record *soak_record_read_newest(const char *directory);
void soak_record_free(struct soak_record *r);

/* All that a vertex had at the time had finished. */
bool soak_record_is_vertex_finished(const struct soak_record *r, uint32_t vertex);
bool soak_record_has_finished(const struct soak_record *r, const struct soak_plan *p);

/* The directory of a checkpoint's files. */
void soak_record_path(const char *directory, int64_t id, bool is_savepoint,
		char path[SOAK_PATH_BYTES]);
/* An id above all that were ever used there. */
int64_t soak_record_next_id(const char *directory);
