#pragma once

/*
 * child: one of the processes of `weir run`: started, watched, started again, ended.
 *
 * Place    control/cli.
 * Thread   one; nothing here blocks but child_end, up to its time limit.
 * Memory   in the struct; zero-initialised is "not started".
 * Errors   0 or -errno.
 * Life     init, { start, poll }*, end.
 *
 * A child is bound to this process by --parent, its words on standard error go to a log file, and
 * what it prints on standard output is read line by line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_ARGS_MAX = 640, CHILD_LINE_BYTES = 512, CHILD_PATH_BYTES = 4096 };

struct child {
	char name[32];                  /* "taskmanager 0" */
	char program[CHILD_PATH_BYTES];
	char log_path[CHILD_PATH_BYTES];
	const char *crash_at;           /* WEIR_CRASH_AT of the first start; NULL: none */
	pid_t pid;                      /* 0: not running */
	int out_fd;                     /* its standard output; -1 */
	uint32_t start_count;
	uint64_t started_ns;
	long log_from;                  /* where its log begins; others wrote what is before */
	size_t line_bytes;
	char line[CHILD_LINE_BYTES];
};

/* `program` lies beside this one.  -ENOENT when it does not. */
int child_init(struct child *c, const char *name, const char *program, const char *log_dir);

/* `args` behind the program's name, NULL at the end; --parent is added. */
int child_start(struct child *c, const char *const *args);

/* True when it has ended since: `*status` as waitpid gives it. */
bool child_has_ended(struct child *c, int *status);

/* The next whole line it printed, or NULL. */
const char *child_next_line(struct child *c);

/* Asks it to end, and kills it when it has not after `timeout_ms`. */
void child_end(struct child *c, int timeout_ms);

/* "exit code 3", "signal 9 (Killed)". */
void child_print_status(int status, char *text, size_t size);

/* The last line of its log; without one, that it wrote none. */
void child_last_words(const struct child *c, char *text, size_t size);

/* The last lines of its log, indented, to standard error. */
void child_show_log(const struct child *c, uint32_t line_count);
