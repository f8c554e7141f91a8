#pragma once

/*
 * checkpoint_storage: the directories of a job's checkpoints (semantics 20.1):
 * <checkpoint dir>/<job id>/{chk-<id>,shared,taskowned}.
 *
 * Place    control/coordinator.
 * Thread   blocks; called on the I/O thread.
 * Errors   0 or -errno.
 */

#include "control/coordinator/checkpoint_decision.h"
#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORAGE_PATH_BYTES = 1024, SAVEPOINT_NAMES_COUNT = 10 };

/* <directory>/<32 hex digits>, absolute, since TaskManagers run elsewhere; -ENAMETOOLONG. */
int checkpoint_storage_job_path(
		const char *directory, struct job_id job, char path[STORAGE_PATH_BYTES]);
/* <job path>/chk-<id> */
void checkpoint_storage_location(
		const char *job_path, int64_t id, char location[STORAGE_PATH_BYTES]);

/* SL-2: makes the directory of a checkpoint and what is above it, durably. */
int checkpoint_storage_prepare(
		const char *job_path, int64_t id, char location[STORAGE_PATH_BYTES]);

/* SL-3: a new directory <directory>/savepoint-<6 hex digits of the job>-<12 of a random number>,
 * and what is above it, durably.  -EEXIST: all the numbers were taken; -ENAMETOOLONG. */
int checkpoint_storage_prepare_savepoint(const char *directory, struct job_id job,
		const uint64_t numbers[SAVEPOINT_NAMES_COUNT], char location[STORAGE_PATH_BYTES]);

/* SL-9: tries everything, tells the first error. */
int checkpoint_storage_delete(const struct deletion *d);

/* A checkpoint that takes the place of a completed one. */
struct storage_successor {
	int64_t id;
	int64_t newest_id; /* the newest completed one */
	/* Files that the newest has too, under the same name, stay to be written over: their room
	 * on the disk need not be freed and found again.  So many bytes at most.  The
	 * metadata stays as METADATA_SPARE_FILE. */
	uint64_t kept_bytes_max;
};

/* That of a completed checkpoint, and SL-2 for its successor, whose directory is that one under a
 * new name.  Not `*is_prepared`: that could not be, and there is none. */
int checkpoint_storage_replace(const struct deletion *d, const char *job_path,
		const struct storage_successor *successor, bool *is_prepared);

/* Removes what a successor's directory holds of the one before and nobody has written over: all
 * files but `_metadata`, its spare and those named.  Sorts the names. */
int checkpoint_storage_tidy(const char *location, const char **names, uint32_t count);

struct storage_entry {
	int64_t id;
	bool has_metadata;
};

/* All chk-<id> of a job, newest first; the array from malloc.  A missing directory is none. */
int checkpoint_storage_list(
		const char *job_path, struct storage_entry **entries, uint32_t *count);

/* Removes what never became a checkpoint, or is one no more: directories without `_metadata`
 * (SL-10), and of the ids from `first_id` on those that are not listed as completed; `first_id` 0:
 * not these.  Returns how many. */
uint32_t checkpoint_storage_sweep(const char *job_path, int64_t first_id, const int64_t *listed,
		uint32_t listed_count);
