#pragma once

/* printed: for tests of commands, which print to standard output. */

/* Runs it with that going into the file `output`; what was printed, malloc'ed, and what it
 * returned. */
char *printed_by(int (*command)(int argc, char **argv), int argc, char **argv, const char *output,
		int *code);
