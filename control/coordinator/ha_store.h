#pragma once

/*
 * ha_store: what a coordinator must not forget, in a local directory (semantics 11, FO-10): one
 * directory for each job with its record and the log of its checkpoints (ha_log): the next id and
 * the completed ones.
 *
 * Place    control/coordinator.
 * Thread   open and close on the control thread.  The others block; those of a record from one
 *          thread at a time, those of checkpoints from any.
 * Memory   messages read are freed by the caller with their free_unpacked.  The logs of the jobs
 *          used last stay open.
 * Errors   0 or -errno.  -EBADMSG: a file is damaged, `text` names it; never guessed around.
 *
 * A record is written beside, fsynced, renamed over the old one, the directory fsynced; it carries
 * its size and CRC32C, so that a torn one is told from a whole one.
 */

#include "dataplane/base/ids.h"

#include "control/proto/durable.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct ha_store;

enum { HA_TEXT_BYTES = 1536, HA_ID_BLOCK_COUNT = 64, HA_MAYBE = 1 };

/* Makes the directory when needed and locks it.  -EBUSY: another coordinator holds it, its pid is
 * in `text`. */
int ha_store_open(struct ha_store **out, const char *directory, char text[HA_TEXT_BYTES]);
void ha_store_close(struct ha_store *s);

/* Jobs with a record, in the order of their ids; *count of them, the array from malloc. */
int ha_store_list_jobs(struct ha_store *s, struct job_id **jobs, uint32_t *count);

int ha_store_write_job(struct ha_store *s, struct job_id job, const Weir__JobRecord *record);
/* -ENOENT: no such job. */
int ha_store_read_job(struct ha_store *s, struct job_id job, Weir__JobRecord **record,
		char text[HA_TEXT_BYTES]);

/* The first id that was never given out; 1 for a job never seen. */
int ha_store_read_next_id(
		struct ha_store *s, struct job_id job, int64_t *next, char text[HA_TEXT_BYTES]);
/* Ids below `next` count as used from now on. */
int ha_store_write_next_id(struct ha_store *s, struct job_id job, int64_t next);

/* HA_MAYBE: nobody can say whether it was written. */
int ha_store_add_completed(
		struct ha_store *s, struct job_id job, const Weir__CompletedRecord *record);
/* Removes it durably.  One that is not there is no error. */
int ha_store_remove_completed(struct ha_store *s, struct job_id job, int64_t id);
/* The same for one that newer ones have subsumed (ST-3), without touching the disk: it goes with
 * the next change.  An old record that stands again after a death is subsumed again, whether its
 * files are there or not. */
int ha_store_forget_completed(struct ha_store *s, struct job_id job, int64_t id);
int ha_store_clear_completed(struct ha_store *s, struct job_id job);
/* All of them, by id (ST-6: one that cannot be read fails the call). */
int ha_store_read_completed(struct ha_store *s, struct job_id job,
		Weir__CompletedRecord ***records, uint32_t *count, char text[HA_TEXT_BYTES]);
void ha_store_free_completed(Weir__CompletedRecord **records, uint32_t count);
