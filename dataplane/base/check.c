#include "dataplane/base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "weir: bug: CHECK(%s) failed at %s:%d\n", condition, file, line);
	fflush(stderr);
	abort();
}
