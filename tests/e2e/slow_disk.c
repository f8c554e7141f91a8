/* slow_disk: preloaded into a program whose name is in SLOW_PROGRAM; its syncs take until the file
 * SLOW_GATE is gone, as on a disk that has stopped answering, or has a text in it that stands in
 * the path of the file that is synced.  SLOW_GATE.held names those that had to wait. */

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUND_US = 5000 };

/* What stands in the gate; false: there is none. */
static bool read_gate(const char *gate, char text[PATH_MAX])
{
	FILE *file = fopen(gate, "r");

	text[0] = 0;
	if (file == NULL)
		return false;
	if (fgets(text, PATH_MAX, file) == NULL)
		text[0] = 0;
	fclose(file);
	return true;
}

static void find_path(int fd, char path[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, path, PATH_MAX - 1);
	path[size < 0 ? 0 : size] = 0;
}

static void tell_held(const char *gate, const char *path)
{
	char held[PATH_MAX];

	snprintf(held, sizeof(held), "%s.held", gate);
	FILE *file = fopen(held, "a");
	if (file == NULL)
		return;
	fprintf(file, "%s\n", path);
	fclose(file);
}

static void wait_for_disk(int fd)
{
	const char *program = getenv("SLOW_PROGRAM"), *gate = getenv("SLOW_GATE");
	char text[PATH_MAX], path[PATH_MAX];
	bool is_told = false;

	if (program == NULL || gate == NULL ||
			strcmp(program_invocation_short_name, program) != 0)
		return;
	find_path(fd, path);
	while (read_gate(gate, text) && (text[0] == 0 || strstr(path, text) == NULL)) {
		if (!is_told)
			tell_held(gate, path);
		is_told = true;
		usleep(ROUND_US);
	}
}

static int call(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	wait_for_disk(fd);
	return real(fd);
}

int fsync(int fd)
{
	return call("fsync", fd);
}

int fdatasync(int fd)
{
	return call("fdatasync", fd);
}
