#pragma once

/*
 * soak_life: one attempt of a job on a TaskManager of its own, in this thread, from what is on disk
 * until it ends or is ended.
 *
 * Place    tests; run in a child process, so that being killed is what it is in earnest.
 */

#include "tests/soak/soak_coordinator.h"

enum soak_end {
	SOAK_DIED,     /* nothing was said: it was killed */
	SOAK_FINISHED, /* all tasks have */
	SOAK_OVER,     /* ended as drawn */
	SOAK_WRONG,    /* `text` says what */
};

/* What a life leaves; in memory that outlives its process. */
struct soak_outcome {
	enum soak_end end;
	uint64_t turns;
	int64_t restored_id, begun_id; /* restored from; the newest that was begun */
	uint32_t completed, aborted, declined;
	char declined_text[SOAK_TEXT_BYTES / 2]; /* why, the last time */
	char text[SOAK_TEXT_BYTES];
};

struct soak_place {
	const char *directory; /* of checkpoints and records */
	const char *result;    /* of what consumers have in the end */
	uint64_t calm_turns;   /* 0: not known */
	double seconds_max;
};

void soak_life_run(const struct soak_plan *p, const struct soak_life *l,
		const struct soak_place *at, struct soak_outcome *out);
