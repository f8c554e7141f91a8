#pragma once

/*
 * control_thread: when and where the thread of a program's loop runs beside the workers.
 *
 * Place    dataplane/base; used by the main files of TaskManager and coordinator, and where a
 *          message asks for long work.
 * Thread   the calling one is scheduled so; threads that it makes inherit the cores, nothing else.
 * Errors   0, -EINVAL with one line (none of the cores may be used here).
 * Life     schedule, the loop (yield and resume around long work), yield; then whatever takes the
 *          program down.
 *
 * A worker never sleeps while there is work, so on a host with no core to spare a control thread
 * waits until the scheduler ends a worker's slice: some ms for a message that takes 20 us.  A
 * prompt one goes first; the kernel bounds what such threads may take of a second (sched(7)).
 * Where the host does not allow it (CAP_SYS_NICE, ulimit -r) a debug line says so, and it takes
 * turns.  What comes behind the loop is no message, nor is the making of a job's state: memory is
 * given back or zeroed, threads are waited for, and a worker that is tied to the same core must not
 * stand still meanwhile.
 */

#include <stdbool.h>

enum { CONTROL_THREAD_ERROR_BYTES = 320 };

/* `component` is the log's; `cores` as core_list.h has them, by number; "auto": where it is. */
int control_thread_schedule(const char *component, bool is_prompt, const char *cores,
		char error[CONTROL_THREAD_ERROR_BYTES]);

/* From now on it takes turns.  True: it went first before. */
bool control_thread_yield(void);
/* As before a yield that returned `was_first`. */
void control_thread_resume(bool was_first);
