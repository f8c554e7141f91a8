#pragma once

/*
 * local_path: a path as it was written here, for a coordinator that runs elsewhere in the tree of
 * directories.
 *
 * Place    control/cli; reads the working directory.
 * Thread   any.
 * Errors   0 or -errno.
 */

enum { LOCAL_PATH_BYTES = 2048 };

/* -ENAMETOOLONG. */
int local_path_absolute(const char *path, char absolute[LOCAL_PATH_BYTES]);
