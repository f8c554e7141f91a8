#include "control/cli/child.h"

#include "control/cli/sibling.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_TAIL_BYTES = 16384, END_ROUND_NS = 5000000 };

int child_init(struct child *c, const char *name, const char *program, const char *log_dir)
{
	*c = (struct child){.out_fd = -1};
	snprintf(c->name, sizeof(c->name), "%s", name);
	int length = snprintf(c->log_path, sizeof(c->log_path), "%s/%s.log", log_dir, name);
	if (length < 0 || (size_t)length >= sizeof(c->log_path))
		return -ENAMETOOLONG;
	for (char *at = c->log_path + strlen(log_dir); *at != '\0'; at++)
		*at = *at == ' ' ? '-' : *at;
	return sibling_path(program, c->program, sizeof(c->program));
}

/* Between fork and exec only what is safe there. */
_Noreturn static void become(
		struct child *c, char *const *argv, int out_fd, int log_fd, const char *crash_at)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
			dup2(log_fd, STDERR_FILENO) < 0)
		_exit(126);
	/* Ctrl-C at the terminal is for `weir run`, which ends its children in order. */
	(void)setpgid(0, 0);
	if (crash_at != NULL)
		(void)setenv("WEIR_CRASH_AT", crash_at, 1);
	else
		(void)unsetenv("WEIR_CRASH_AT");
	execv(c->program, argv);
	_exit(127);
}

int child_start(struct child *c, const char *const *args)
{
	char parent[32];
	char *argv[CHILD_ARGS_MAX + 4];
	int argc = 0, pipe_fds[2];

	CHECK(c->pid == 0);
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	argv[argc++] = c->program;
	argv[argc++] = (char *)(uintptr_t)"--parent";
	argv[argc++] = parent;
	for (uint32_t i = 0; args[i] != NULL; i++) {
		CHECK(i < CHILD_ARGS_MAX);
		argv[argc++] = (char *)(uintptr_t)args[i];
	}
	argv[argc] = NULL;
	int log_fd = open(c->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (log_fd < 0)
		return -errno;
	c->log_from = (long)lseek(log_fd, 0, SEEK_END);
	if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
		close(log_fd);
		return -errno;
	}
	pid_t pid = fork();
	if (pid == 0)
		become(c, argv, pipe_fds[1], log_fd, c->start_count == 0 ? c->crash_at : NULL);
	int status = pid < 0 ? -errno : 0;
	close(log_fd);
	close(pipe_fds[1]);
	if (status != 0) {
		close(pipe_fds[0]);
		return status;
	}
	(void)fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
	if (c->out_fd >= 0)
		close(c->out_fd);
	c->out_fd = pipe_fds[0];
	c->line_bytes = 0;
	c->pid = pid;
	c->start_count++;
	c->started_ns = clock_monotonic_ns();
	return 0;
}

bool child_has_ended(struct child *c, int *status)
{
	if (c->pid == 0 || waitpid(c->pid, status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	return true;
}

const char *child_next_line(struct child *c)
{
	char byte;

	while (c->out_fd >= 0 && read(c->out_fd, &byte, 1) == 1) {
		if (byte == '\n') {
			c->line[c->line_bytes] = '\0';
			c->line_bytes = 0;
			return c->line;
		}
		if (c->line_bytes < sizeof(c->line) - 1)
			c->line[c->line_bytes++] = byte;
	}
	return NULL;
}

void child_end(struct child *c, int timeout_ms)
{
	struct timespec round = {.tv_nsec = END_ROUND_NS};
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
	int status;

	if (c->pid != 0)
		(void)kill(c->pid, SIGTERM);
	while (c->pid != 0 && !child_has_ended(c, &status)) {
		if (clock_monotonic_ns() > until_ns)
			(void)kill(c->pid, SIGKILL);
		nanosleep(&round, NULL);
	}
	if (c->out_fd >= 0)
		close(c->out_fd);
	c->out_fd = -1;
}

void child_print_status(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "signal %d (%s)", WTERMSIG(status),
				strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* The end of its log, no more than it wrote itself since its start; how many bytes. */
static size_t read_tail(const struct child *c, char text[LOG_TAIL_BYTES + 1])
{
	FILE *log = fopen(c->log_path, "r");

	text[0] = '\0';
	if (log == NULL)
		return 0;
	if (fseek(log, -LOG_TAIL_BYTES, SEEK_END) != 0 || ftell(log) < c->log_from)
		(void)fseek(log, c->log_from, SEEK_SET);
	size_t size = fread(text, 1, LOG_TAIL_BYTES, log);
	fclose(log);
	text[size] = '\0';
	return size;
}

void child_last_words(const struct child *c, char *text, size_t size)
{
	char tail[LOG_TAIL_BYTES + 1];
	size_t bytes = read_tail(c, tail);

	while (bytes > 0 && tail[bytes - 1] == '\n')
		tail[--bytes] = '\0';
	const char *line = strrchr(tail, '\n');
	const char *words = line != NULL ? line + 1 : tail;
	snprintf(text, size, "%s", words[0] != '\0' ? words : "it wrote nothing to its log");
}

void child_show_log(const struct child *c, uint32_t line_count)
{
	char text[LOG_TAIL_BYTES + 1];
	size_t size = read_tail(c, text);
	const char *at = text + size;

	for (uint32_t lines = 0; at > text; at--) {
		if (at[-1] == '\n' && at < text + size && ++lines == line_count)
			break;
	}
	for (char *rest = (char *)(uintptr_t)at, *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (line[0] != '\0')
			fprintf(stderr, "    %s\n", line);
	}
	fprintf(stderr, "  (all of it: %s)\n", c->log_path);
}
