#pragma once

/*
 * restore_fit: does a checkpoint fit a job?  Which operators find their state again by uid, which
 * begin empty, which state nobody takes, and everything that a restore would refuse (RE-3).
 *
 * Place    control/restore, pure; the coordinator asks before it deploys, `weir restore --dry-run`
 *          for people.
 * Thread   plain data.
 * Memory   one object that owns its texts; uids are borrowed from the job and the metadata.
 * Errors   0, -ENOMEM.  What does not fit is in the object, not an error.
 */

#include <stdbool.h>
#include <stdint.h>

struct job_spec;
struct metadata;

enum { RESTORE_FIT_TEXT_BYTES = 512 };

enum restore_fit_kind {
	RESTORE_FIT_MATCHED,   /* in both, under one uid */
	RESTORE_FIT_NEW,       /* only in the job: it begins empty */
	RESTORE_FIT_UNMATCHED, /* only in the checkpoint */
};

struct restore_fit_operator {
	enum restore_fit_kind kind;
	const char *vertex_uid, *operator_uid;
	uint32_t parallelism_then, parallelism_now; /* 0: not there */
	uint64_t state_count, item_count, bytes;    /* of all subtasks */
};

struct restore_fit {
	uint32_t operator_count, refusal_count;
	struct restore_fit_operator *operators; /* in the order of the job, then unmatched ones */
	char **refusals;                        /* each names vertex or operator and reason */
	uint64_t bytes;
};

/* `ignores_unclaimed`: state that no operator of the job declares is no refusal (RE-3,
 * execution.state-recovery.ignore-unclaimed-state); data in flight without an edge still is. */
int restore_fit_create(struct restore_fit **out, const struct job_spec *spec,
		const struct metadata *m, bool ignores_unclaimed);
/* NULL is accepted. */
void restore_fit_destroy(struct restore_fit *f);

/* Only the graph: key groups, vertices, parallelism, who had finished (RE-9).  0, or -EINVAL with
 * the first thing that does not fit. */
int restore_fit_check(const struct job_spec *spec, const struct metadata *m,
		bool ignores_unclaimed, char text[RESTORE_FIT_TEXT_BYTES]);
