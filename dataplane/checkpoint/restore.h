#pragma once

/*
 * restore: puts a snapshot back into the states of a subtask, before it runs.
 *
 * Place    checkpoint.
 * Thread   the control thread; blocks while it reads.
 * Memory   one buffer while it runs.
 * Errors   -EBADMSG (damaged: file, offset and reason in words), -EINVAL (another size, version or
 *          kind than declared, or a state nobody declares unless those are ignored: names operator
 *          and state and both numbers), -ENOSPC (does not fit the capacity), -errno of the read.
 *
 * A declared state that the snapshot lacks stays empty: an operator may gain states.
 */

#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/task_state.h"

enum { RESTORE_TEXT_BYTES = 1024 };

/* `directory` is that of the checkpoint, where the files of `t` are; `ignores_unclaimed`: a state
 * that nobody declares is left (RE-3). */
int restore_states(const char *directory, const struct task_state *t,
		const struct declared_state *states, uint32_t state_count, bool ignores_unclaimed,
		char text[RESTORE_TEXT_BYTES]);

/* The same with another parallelism than then (RE-5): `olds` are all snapshots of the vertex, of
 * those subtasks that had not finished, by ascending number.  Keyed entries go by key group; items
 * of lists are dealt out in turn, or each gets all; a value is that of the old subtask of the same
 * number, or refused; counters are added up by the subtask of the old number modulo parallelism. */
struct restore_share {
	uint32_t subtask_index, parallelism; /* now */
	uint32_t old_count;
	struct task_state *const *olds;
	bool ignores_unclaimed;
};

int restore_rescaled(const char *directory, const struct restore_share *share,
		const struct declared_state *states, uint32_t state_count,
		char text[RESTORE_TEXT_BYTES]);

/* Reads the bytes of one handle from its file and compares size and checksum, in pieces.  The
 * same reading that restore does, for `weir inspect`. */
int restore_verify_handle(const char *directory, const struct state_handle *handle,
		char text[RESTORE_TEXT_BYTES]);
