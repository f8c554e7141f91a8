#include "dataplane/operator/file_sink_lock.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES_MAX = 16 };

/* Who has it, as far as the file says. */
static int refuse_held(int fd, const char *directory, char text[PARTS_TEXT_BYTES])
{
	char pid[16] = {0};
	ssize_t size = pread(fd, pid, sizeof(pid) - 1, 0);

	return parts_refuse(directory, -EBUSY, text,
			"another task writes there now under the same uid (process %ld); let it "
			"end, or give another path",
			size > 0 ? strtol(pid, NULL, 10) : 0);
}

/* Between our open and our lock its last owner may have removed it. */
static bool is_there_still(int fd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
			ours.st_dev == there.st_dev;
}

/* -EAGAIN: the file went meanwhile. */
static int try_once(struct sink_lock *lock, const char *directory, char text[PARTS_TEXT_BYTES])
{
	int fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	int rc = 0;

	if (fd < 0)
		return parts_refuse(directory, -errno, text, "%s", strerror(errno));
	bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (!is_locked && errno == EWOULDBLOCK)
		rc = refuse_held(fd, directory, text);
	else if (is_locked && !is_there_still(fd, lock->path))
		rc = -EAGAIN;
	if (rc != 0) {
		close(fd);
		return rc;
	}
	if (ftruncate(fd, 0) != 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		errno = 0; /* the lock holds without its number */
	lock->handle = fd + 1;
	return 0;
}

int sink_lock_take(struct sink_lock *lock, const struct part_owner *o, char text[PARTS_TEXT_BYTES])
{
	int rc = -EAGAIN;
	int size = snprintf(lock->path, sizeof(lock->path), "%s/.%s-%u.lock", o->directory, o->uid,
			o->subtask);

	CHECK(lock->handle == 0);
	CHECK(size > 0);
	CHECK((size_t)size < sizeof(lock->path));
	for (uint32_t i = 0; i < TRIES_MAX && rc == -EAGAIN; i++)
		rc = try_once(lock, o->directory, text);
	return rc != -EAGAIN ? rc
			     : parts_refuse(o->directory, -EBUSY, text,
					       "its lock comes and goes");
}

void sink_lock_release(struct sink_lock *lock)
{
	if (lock->handle == 0)
		return;
	unlink(lock->path);
	close(lock->handle - 1);
	lock->handle = 0;
}
