#include "dataplane/base/control_thread.h"

#include "dataplane/base/check.h"
#include "dataplane/base/core_list.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int confine(const char *text)
{
	struct core_list list;
	cpu_set_t set;

	CHECK(core_list_parse(text, &list) == 0);
	if (list.is_auto)
		return 0;
	CPU_ZERO(&set);
	for (uint32_t i = 0; i < list.count; i++) {
		if (list.cores[i] < CPU_SETSIZE)
			CPU_SET(list.cores[i], &set);
	}
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

static int go_first(void)
{
	struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};

	return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest);
}

int control_thread_schedule(const char *component, bool is_prompt, const char *cores,
		char error[CONTROL_THREAD_ERROR_BYTES])
{
	if (is_prompt && go_first() != 0)
		log_debug(component, "the control thread takes turns with the workers (%s): "
				"CAP_SYS_NICE or ulimit -r 1 would let it go first",
				strerror(errno));
	int rc = confine(cores);
	if (rc != 0)
		snprintf(error, CONTROL_THREAD_ERROR_BYTES,
				"weir.control.cores: none of %.200s may be used here (%s); weir "
				"doctor shows which may",
				cores, strerror(-rc));
	return rc;
}

bool control_thread_yield(void)
{
	struct sched_param none = {0};

	/* The flag stays: who may not raise a priority may not take it off either. */
	return sched_getscheduler(0) == (SCHED_RR | SCHED_RESET_ON_FORK) &&
			sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) == 0;
}

void control_thread_resume(bool was_first)
{
	if (was_first)
		(void)go_first();
}
