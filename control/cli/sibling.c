#include "control/cli/sibling.h"

#include "dataplane/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1 << 20 };

extern char **environ;

int sibling_path(const char *program, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return -errno;
	self[length] = '\0';
	char *slash = strrchr(self, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	int written = snprintf(path, size, "%s/%s", self, program);
	if (written < 0 || (size_t)written >= size)
		return -ENAMETOOLONG;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

static int start(char *const argv[], int fd, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc != 0)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn(pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* Reads until the other end closes. */
static int read_all(int fd, int timeout_ms, char *text)
{
	uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
	size_t used = 0;

	for (;;) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = clock_monotonic_ns();
		int left_ms = now_ns >= deadline_ns ? 0
						    : (int)((deadline_ns - now_ns) / 1000000) + 1;
		int ready = poll(&poll_fd, 1, left_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready == 0 ? -ETIMEDOUT : -errno;
		ssize_t count = read(fd, text + used, TEXT_BYTES_MAX - used);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		used += (size_t)count;
		text[used] = '\0';
		if (count == 0)
			return 0;
		if (used == TEXT_BYTES_MAX)
			return -EFBIG;
	}
}

int sibling_capture(char *const argv[], int timeout_ms, char **text, int *status)
{
	char *bytes = malloc(TEXT_BYTES_MAX + 1);
	int fds[2] = {-1, -1};
	pid_t pid;

	if (bytes == NULL)
		return -ENOMEM;
	int rc = pipe2(fds, O_CLOEXEC) == 0 ? start(argv, fds[1], &pid) : -errno;
	if (fds[1] >= 0)
		close(fds[1]);
	if (rc == 0) {
		rc = read_all(fds[0], timeout_ms, bytes);
		if (rc != 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, status, 0) < 0 && errno == EINTR)
			continue;
	}
	if (fds[0] >= 0)
		close(fds[0]);
	if (rc != 0)
		free(bytes);
	else
		*text = bytes;
	return rc;
}
