#pragma once

/*
 * rest_option: where the coordinator answers that a command asks: --rest HOST:PORT, or rest.address
 * and rest.port of a config file, or on this host.
 *
 * Place    control/cli.
 * Thread   one.
 * Memory   borrows the texts of argv.
 * Errors   an exit code (exit_codes.h), told as cli_error does.
 * Life     zero-initialised, rest_option_take for each option, rest_option_find.
 */

#include "control/cli/rest_call.h"

/* For getopt_long: what take understands. */
enum { REST_OPTION_REST = 0x2000, REST_OPTION_CONFIG };
#define REST_OPTIONS_LONG                                                                          \
	{"rest", required_argument, NULL, REST_OPTION_REST},                                       \
	{                                                                                          \
		"config", required_argument, NULL, REST_OPTION_CONFIG                              \
	}

/* Lines for --help; `pad`: blanks where other lines of that command begin later. */
#define REST_OPTIONS_HELP(pad)                                                                     \
	"  --rest HOST:PORT  " pad "where the coordinator answers (127.0.0.1:8081)\n"              \
	"  --config FILE     " pad "the same, by its keys rest.address and rest.port\n"

struct rest_option {
	const char *rest, *config_path; /* NULL: not given */
};

/* false: none of these. */
bool rest_option_take(struct rest_option *o, int option, const char *argument);
bool rest_option_is_given(const struct rest_option *o);

/* -1: found; else the exit code after complaint. */
int rest_option_find(const struct rest_option *o, const char *command, bool is_json,
		struct rest_server *server);
