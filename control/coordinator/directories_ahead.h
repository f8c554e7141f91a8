#pragma once

/*
 * directories_ahead: checkpoints whose directories are made before their ids are drawn, of those of
 * subsumed ones.  Usually one; while checkpoints follow each other without a pause the next id is
 * drawn before an old directory is free, and that one is for the id behind it.
 *
 * Place    control/coordinator, part of the job master.  Pure.
 * Thread   the loop's.
 * Errors   none.
 * Life     zeroed; { add, made, take }*.
 */

#include <stdbool.h>
#include <stdint.h>

enum { DIRECTORIES_AHEAD_MAX = 2 };

struct directories_ahead {
	struct {
		int64_t id;    /* 0: none */
		bool is_there; /* it has been made */
	} rows[DIRECTORIES_AHEAD_MAX];
};

/* The id that the next directory to become free is for: `next_id`, or the first one behind it that
 * has none; 0: there are enough. */
int64_t directories_ahead_next(const struct directories_ahead *a, int64_t next_id);
/* That one is being made. */
void directories_ahead_add(struct directories_ahead *a, int64_t id);
/* It is there, or could not be made.  Harmless for one that was taken meanwhile. */
void directories_ahead_made(struct directories_ahead *a, int64_t id, bool is_there);
/* A checkpoint begins and will use its own.  True: that is there; one that is still being made will
 * be found when its turn has come. */
bool directories_ahead_take(struct directories_ahead *a, int64_t id);
/* Lets go of one up to `id`, which nobody will use, and returns its id; 0: there is none. */
int64_t directories_ahead_drop(struct directories_ahead *a, int64_t id);
