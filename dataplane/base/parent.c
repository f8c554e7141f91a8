#include "dataplane/base/parent.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

bool parent_parse(const char *text, int *pid)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || *end != 0 || number < 1 || number > INT_MAX)
		return false;
	*pid = (int)number;
	return true;
}

bool parent_bind(int pid)
{
	/* It may have died before the call took effect. */
	return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == pid;
}
