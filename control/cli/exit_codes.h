#pragma once

/*
 * exit_codes: what a program's end tells a script.  All three programs use these and no others.
 */

enum {
	/* All that was asked for is done: the job reached its end, the answer was printed. */
	WEIR_EXIT_DONE = 0,

	/* The job or a process of it failed while running, or the coordinator said no to a request.
	 * The same command may work when started again. */
	WEIR_EXIT_FAILURE = 1,

	/* The command line itself is wrong: an unknown option, a missing argument.  Nothing was
	 * started. */
	WEIR_EXIT_USAGE = 2,

	/* A config file, a job file or the host is not fit: a key, a value, a plug-in, cores that
	 * cannot be had, too little memory.  Nothing was started; the same command fails again
	 * until that is mended. */
	WEIR_EXIT_CONFIG = 3,

	/* Something that is needed is in use by another process: a port, the coordinator's
	 * directory, a NIC, the name of a job by one that runs.  The same command works when that
	 * is free. */
	WEIR_EXIT_BUSY = 4,

	/* The job was not started because the checkpoint it should continue from is unreadable, or
	 * does not fit the job.  No output was touched. */
	WEIR_EXIT_RESTORE_REFUSED = 5,

	/* Stopped before the end, by a signal (Ctrl-C) or by weir cancel or stop; what was
	 * committed is kept, and the job can go on from its last checkpoint.  Of weir submit: left,
	 * and the job goes on. */
	WEIR_EXIT_INTERRUPTED = 130,
};
