#pragma once

/*
 * file_sink_lock: that two runs do not write into one directory under one name at the same time.
 *
 *     .UID-SUBTASK.lock    locked by the task that writes these parts, with its process id in it
 *
 * Place    operator.
 * Thread   control threads.
 * Errors   0 or -errno with one line that names the directory.
 * Life     the kernel lets go of the lock when the process ends, however it ends; a file that is
 *          left behind then locks nothing.
 *
 * Where the file system knows no locks there is none, and nothing is refused.
 */

#include "dataplane/operator/file_sink_parts.h"

struct sink_lock {
	int handle; /* file descriptor + 1; 0: not held */
	char path[PARTS_PATH_BYTES];
};

/* Takes it for the parts of o's own subtask.  -EBUSY: a living task has it. */
int sink_lock_take(struct sink_lock *lock, const struct part_owner *o,
		char text[PARTS_TEXT_BYTES]);

/* Gives it back, if it is held, and removes its file. */
void sink_lock_release(struct sink_lock *lock);
