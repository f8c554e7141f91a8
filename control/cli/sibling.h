#pragma once

/*
 * sibling: the other programs of weir, found beside this one.
 *
 * Place    control/cli.
 * Thread   one; sibling_capture blocks until the program ends or its time is over.
 * Errors   0 or -errno.
 */

#include <stddef.h>

/* The path of `program` in the folder this program runs from; -ENOENT: it is not there. */
int sibling_path(const char *program, char *path, size_t size);

/* Runs argv[0] and takes what it writes to standard output: zero-terminated, to be freed.
 * -ETIMEDOUT (then it is ended), -EFBIG (more than 1 MiB), or `*status` as waitpid gives it. */
int sibling_capture(char *const argv[], int timeout_ms, char **text, int *status);
