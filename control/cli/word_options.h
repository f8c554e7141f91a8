#pragma once

/*
 * word_options: the command line of commands that take words, and but for --json and --help no
 * option.
 *
 * Place    control/cli.
 * Thread   one.
 * Errors   an exit code (exit_codes.h), said as cli_error.h does.
 */

#include <stdbool.h>

/* -1: the words stand from argv[optind] on.  Otherwise the command ends with that exit code: the
 * help was printed, or an option is unknown. */
int word_options_read(
		int argc, char **argv, const char *command, const char *help, bool *is_json);
