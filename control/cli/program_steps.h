#pragma once

/*
 * program_steps: how a program that stays starts and ends: a list of named steps, each with its
 * undo; the end is the same list backwards.
 *
 * Place    control/cli; weir-coordinator and weir-taskmanager.
 * Thread   the main one.
 * Memory   everything is the caller's.
 * Errors   an exit code (exit_codes.h); the one message is in the log.
 * Life     program_begin, the program's own loop, program_end when it began.
 */

#include <stddef.h>
#include <stdint.h>

struct config;
struct program; /* each program's own */

enum { PROGRAM_ERROR_BYTES = 4096 };

struct program_step {
	const char *name;
	/* 0, or -errno with one line in the program's `error` unless that of the number will do. */
	int (*run)(struct program *p);
	void (*undo)(struct program *p); /* NULL: nothing to undo */
};

struct program_start {
	const char *name;   /* "weir-coordinator" */
	const char *module; /* "coordinator", in the log */
	const struct config *config;
	const struct program_step *steps;
	uint32_t step_count;
	char *error; /* PROGRAM_ERROR_BYTES, empty; steps write there */
};

/* Opens the log, looks whether enough files may be open, then the steps; what was done is undone
 * when one fails.  WEIR_EXIT_DONE: it has begun. */
int program_begin(const struct program_start *s, struct program *p);
void program_end(const struct program_start *s, struct program *p);
