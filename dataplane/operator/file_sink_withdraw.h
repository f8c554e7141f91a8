#pragma once

/*
 * file_sink_withdraw: takes committed parts back before a restore from an older checkpoint, so
 * that what comes again is not there twice.
 *
 * Place    operator; for the control plane, before the job is deployed.
 * Thread   any; blocks.
 * Errors   0 or -errno with one line that names the file; what was moved until then stays moved,
 *          and another call goes on.
 */

#include <stdint.h>

/* Told of each part: its path before, and where it is now. */
typedef void (*file_sink_withdrawn)(void *user, const char *from, const char *to);

/* Moves each part of `uid` that a checkpoint above `checkpoint_id` committed into
 * DIRECTORY/withdrawn, durably.  A directory that is not there holds none. */
int file_sink_withdraw(const char *directory, const char *uid, int64_t checkpoint_id,
		file_sink_withdrawn tell, void *user, char text[512]);
