#include "control/cli/local_path.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int local_path_absolute(const char *path, char absolute[LOCAL_PATH_BYTES])
{
	char here[LOCAL_PATH_BYTES / 2] = "";

	if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return -errno;
	int n = snprintf(absolute, LOCAL_PATH_BYTES, "%s%s%s", here, path[0] == '/' ? "" : "/",
			path);
	return n >= LOCAL_PATH_BYTES ? -ENAMETOOLONG : 0;
}
