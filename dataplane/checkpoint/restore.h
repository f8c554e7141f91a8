#pragma once

/*
 * restore: puts a snapshot back into the states of a subtask, before it runs.
 *
 * Place    checkpoint.
 * Thread   the control thread; blocks while it reads.
 * Memory   one buffer while it runs.
 * Errors   -EBADMSG (damaged: file, offset and reason in words), -EINVAL (another size, version or
 *          kind than declared, or a state nobody declares: names operator and state and both
 *          numbers), -ENOSPC (does not fit the capacity), -errno of the read.
 *
 * A declared state that the snapshot lacks stays empty: an operator may gain states.  Called once
 * for each old subtask whose key groups overlap with this one's; keyed entries of others are
 * passed over.
 */

#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/task_state.h"

enum { RESTORE_TEXT_BYTES = 1024 };

/* `directory` is that of the checkpoint, where the files of `t` are. */
int restore_states(const char *directory, const struct task_state *t,
		const struct declared_state *states, uint32_t state_count,
		char text[RESTORE_TEXT_BYTES]);

/* Reads the bytes of one handle from its file and compares size and checksum, in pieces.  The
 * same reading that restore does, for `weir inspect`. */
int restore_verify_handle(const char *directory, const struct state_handle *handle,
		char text[RESTORE_TEXT_BYTES]);
