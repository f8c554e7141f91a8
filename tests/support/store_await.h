#pragma once

/* store_await: for tests that want one thing after the other. */

#include "dataplane/checkpoint/store.h"

#include <stddef.h>

/* Submits and waits for the end of it; nothing else may be under way. */
int64_t store_await(struct store *s, const struct store_request *request);

/* A new directory under /tmp (on a disk, not in memory) for this test, in `path`. */
void make_test_directory(char path[64]);
void remove_test_directory(const char *path);

/* How many names a directory has, hidden ones included. */
uint32_t count_files(const char *path);

/* The whole file, malloc'ed; NULL when it cannot be read. */
uint8_t *read_whole_file(const char *path, size_t *size);
