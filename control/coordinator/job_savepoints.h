#pragma once

/*
 * job_savepoints: who asked for which savepoint, in the job's record: asked again under the next
 * coordinator, a request is the same request, and what never became a savepoint goes.
 *
 * Place    control/coordinator; shared by the files of job_master.
 * Thread   recover blocks, before the loop runs; note is called on the I/O thread as well, with a
 *          record of its own.
 * Memory   the record's; of the newest SAVEPOINT_NOTES_MAX.
 */

#include "dataplane/base/ids.h"

#include "control/proto/durable.pb-c.h"

struct job_master;

enum { SAVEPOINT_NOTES_MAX = 8 };

/* The savepoint of that request goes to `location`. */
void job_note_savepoint(Weir__JobRecord *record, const char *location, struct id128 request);

/* What a coordinator before this one noted: done, or it never was. */
void job_recover_savepoints(struct job_master *jm);
