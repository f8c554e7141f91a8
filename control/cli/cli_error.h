#pragma once

/*
 * cli_error: what a program reads when a command with --json could not do what it should.
 *
 * Place    control/cli.
 * Thread   one.
 * Errors   an exit code (exit_codes.h).
 *
 * The object is {"state": "NOT_STARTED" or "REFUSED", "error": text, "exit_code": n} on standard
 * output; people have read the same text on standard error.
 */

#include <stdbool.h>

enum { CLI_ERROR_BYTES = 1536 };

/* --json may stand behind the option that is wrong. */
bool cli_wants_json(int argc, char **argv);

/* Prints the object if it is wanted, and returns `code`. */
int cli_fail(bool is_json, int code, const char *error);
/* Before getopt_long: it starts anew and says nothing itself; its short options begin with ':'. */
void cli_begin_options(void);
/* It gave '?' or ':': the option that it stumbled over, as cli_usage says it. */
int cli_bad_option(bool is_json, const char *command, int option, char **argv);
/* "weir COMMAND: what" on standard error, and the same. */
int cli_usage(bool is_json, const char *command, const char *what);
