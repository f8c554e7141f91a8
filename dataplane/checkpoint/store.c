/* What the stores share: names, and how a file is opened with and without O_DIRECT. */

#include "dataplane/checkpoint/store.h"

#include "dataplane/checkpoint/store_internal.h"

#include <fcntl.h>

const char *store_op_name(enum store_op op)
{
	static const char *const names[STORE_OP_COUNT] = {
		[STORE_OPEN] = "open",
		[STORE_WRITE] = "write",
		[STORE_READ] = "read",
		[STORE_SYNC] = "sync",
		[STORE_ALLOCATE] = "allocate",
		[STORE_CLOSE] = "close",
		[STORE_RENAME] = "rename",
		[STORE_UNLINK] = "unlink",
		[STORE_MKDIR] = "mkdir",
		[STORE_SYNC_DIRECTORY] = "sync directory",
	};

	CHECK(op < STORE_OP_COUNT);
	return names[op];
}

int store_open_flags(uint32_t flags)
{
	int how = O_CLOEXEC;

	if (flags & STORE_CREATE)
		how |= O_WRONLY | O_CREAT | O_EXCL;
	else
		how |= flags & STORE_OVERWRITE ? O_WRONLY | O_NOFOLLOW : O_RDONLY;
	if (flags & STORE_DIRECT)
		how |= O_DIRECT;
	return how;
}

int store_open_flags_after_einval(uint32_t flags)
{
	if (!(flags & STORE_DIRECT))
		return 0;
	return store_open_flags(flags) & ~(O_DIRECT | O_EXCL);
}

bool store_drop_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !(flags & O_DIRECT))
		return false;
	return fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}
