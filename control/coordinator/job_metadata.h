#pragma once

/* job_metadata: shared by the files of job_master: a job's checkpoint as `_metadata` describes it,
 * and the other way round. */

#include "control/coordinator/job_master_internal.h"

struct job_metadata;
struct metadata;

/* What `_metadata` says of a checkpoint; borrows from `pending` and from the job. */
struct job_metadata *job_metadata_create(
		const struct job_master *jm, const struct pending_checkpoint *pending);
const struct metadata *job_metadata_of(const struct job_metadata *m);
void job_metadata_destroy(struct job_metadata *m);

/* RE-3: 0, or -EINVAL with what does not fit. */
int job_metadata_check(const struct job_master *jm, const struct metadata *m,
		char text[JOB_TEXT_BYTES]);
/* Logs what changed since: the job file, overrides, plug-ins. */
void job_metadata_tell_changes(const struct job_master *jm, const struct metadata *m);
