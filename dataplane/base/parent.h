#pragma once

/*
 * parent: a process that must not outlive the one that started it.
 *
 * Place    base; used by the mains.
 * Thread   main thread, once, before others.
 */

#include <stdbool.h>

/* False: that is the number of no process. */
bool parent_parse(const char *text, int *pid);

/* From now on SIGTERM arrives when the process `pid`, our parent, is gone.  False: it is gone
 * already, or is not our parent. */
bool parent_bind(int pid);
