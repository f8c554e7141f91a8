#pragma once

/*
 * savepoint_disposals: savepoints that somebody wants deleted, by path (semantics SL-9, 24).
 *
 * Place    control/coordinator.
 * Thread   the loop's; what blocks runs on the I/O thread.
 * Memory   the newest DISPOSALS_MAX are remembered.
 * Errors   of one disposal: its answer.
 * Life     create, { begin, answer }*, the I/O thread ends, destroy.
 *
 * Nothing is deleted that is no savepoint, cannot be read, or that a job may go back to.
 */

#include "control/coordinator/job_master.h"
#include "dataplane/base/ids.h"

#include <stdbool.h>

struct io_thread;
struct savepoint_disposals;

enum { DISPOSALS_MAX = 64 };

/* -ENOMEM. */
int savepoint_disposals_create(struct savepoint_disposals **out, struct io_thread *io);
void savepoint_disposals_destroy(struct savepoint_disposals *d);

/* `path`: the savepoint's directory, absolute, or its `_metadata`; the snapshots that any of `jobs`
 * may go back to are in use.  `id` zeros: a new one is made and given back; one that was used
 * before starts nothing.  -EAGAIN: too many are under way; -ENOMEM. */
int savepoint_disposals_begin(struct savepoint_disposals *d, const char *path,
		struct job_master *const *jobs, uint32_t job_count, struct id128 *id);

/* False: no such disposal. */
bool savepoint_disposals_answer(const struct savepoint_disposals *d, struct id128 id,
		struct checkpoint_answer *answer);
