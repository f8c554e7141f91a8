#pragma once

/*
 * checkpoint_verify: is a checkpoint whole?  Its metadata, and every file it refers to: present,
 * long enough, with the checksum it should have.
 *
 * Place    control/metadata; used before a restore and by `weir inspect`.
 * Thread   any; blocks while it reads every byte of the checkpoint.
 * Errors   0 whole; -EBADMSG or -errno of the first problem.  `visit` hears each one, in words
 *          that name file, offset and reason.
 */

int checkpoint_verify(const char *path, void (*visit)(void *context, const char *problem),
		void *context);
