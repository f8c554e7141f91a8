#include "dataplane/base/parent.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

bool parent_bind(int pid)
{
	/* It may have died before the call took effect. */
	return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == pid;
}
