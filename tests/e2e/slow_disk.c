/* slow_disk: preloaded into a program whose name is in SLOW_PROGRAM; its syncs take until the file
 * SLOW_GATE is gone.  What a disk does that has stopped answering. */

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUND_US = 5000 };

static void wait_for_disk(void)
{
	const char *program = getenv("SLOW_PROGRAM"), *gate = getenv("SLOW_GATE");

	if (program == NULL || gate == NULL ||
			strcmp(program_invocation_short_name, program) != 0)
		return;
	while (access(gate, F_OK) == 0)
		usleep(ROUND_US);
}

static int call(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	wait_for_disk();
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
