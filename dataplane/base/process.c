#include "dataplane/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	FILES_WANTED = 65536,
	FILES_LEAST = 48, /* below, neither EAL nor the coordinator's loop gets far */
};

static void fill_standard_streams(void)
{
	int fd;

	/* The lowest free number is taken, so they are filled in order. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void process_prepare(void)
{
	struct rlimit files;

	fill_standard_streams();
	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_WANTED) {
		files.rlim_cur = files.rlim_max < FILES_WANTED ? files.rlim_max : FILES_WANTED;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

int process_check_files(char *error, size_t error_bytes)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= FILES_LEAST)
		return 0;
	snprintf(error, error_bytes,
			"only %u files may be open here; at least %d are needed: ulimit -n 1024",
			(unsigned int)files.rlim_cur, FILES_LEAST);
	return -EMFILE;
}

bool process_output_is_whole(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (errno == 0)
		errno = EIO; /* an earlier write failed */
	return false;
}
