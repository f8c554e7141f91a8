#include "dataplane/base/crash_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the whole process, since points are in every layer. */
static char armed_name[64];
static bool is_armed;
static atomic_int hits_left;

void crash_point_arm(void)
{
	const char *text = getenv("WEIR_CRASH_AT");

	if (text == NULL || text[0] == '\0')
		return;
	size_t length = strcspn(text, ":");
	if (length >= sizeof(armed_name))
		return;
	memcpy(armed_name, text, length);
	armed_name[length] = '\0';
	int times = text[length] == ':' ? atoi(text + length + 1) : 1;
	atomic_store(&hits_left, times > 0 ? times : 1);
	is_armed = true;
}

void crash_point(const char *name)
{
	if (__builtin_expect(!is_armed, 1) || strcmp(name, armed_name) != 0)
		return;
	if (atomic_fetch_sub(&hits_left, 1) == 1)
		kill(getpid(), SIGKILL);
}
