#pragma once

/* store_internal: what every store that works on real files must do the same way. */

#include "dataplane/checkpoint/store.h"

enum { STORE_FILE_MODE = 0644, STORE_DIRECTORY_MODE = 0755 };

/* The flags of open(2) for those of a request. */
int store_open_flags(uint32_t flags);

/* After an open failed with -EINVAL: the flags for another try without O_DIRECT, or 0 when there
 * is nothing else to try.  The file system may have made the file before it refused. */
int store_open_flags_after_einval(uint32_t flags);

/* After a read or write failed with -EINVAL: takes O_DIRECT off the file; false when it was not
 * set, so that the error stands. */
bool store_drop_direct(int fd);
