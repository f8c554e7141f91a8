#include "control/cli/cli_error.h"

#include "control/cli/exit_codes.h"

#include <ctype.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

bool cli_wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

int cli_fail(bool is_json, int code, const char *error)
{
	bool was_started = code == WEIR_EXIT_FAILURE || code == WEIR_EXIT_RESTORE_REFUSED;
	json_t *text;

	if (!is_json)
		return code;
	text = json_string(error);
	json_t *json = json_pack("{s:s, s:o, s:i}", "state",
			was_started ? "REFUSED" : "NOT_STARTED", "error",
			text != NULL ? text : json_string("not UTF-8"), "exit_code", code);
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
	return code;
}

void cli_begin_options(void)
{
	optind = 0;
	opterr = 0;
}

int cli_bad_option(bool is_json, const char *command, int option, char **argv)
{
	char what[CLI_ERROR_BYTES];

	if (option == ':')
		snprintf(what, sizeof(what), "%.200s: expected a value behind it",
				argv[optind - 1]);
	else if (isprint(optopt)) /* one letter of several, maybe: -hx */
		snprintf(what, sizeof(what), "-%c: no such option", optopt);
	else
		snprintf(what, sizeof(what), "%.200s: %s", argv[optind - 1],
				optopt == 0 ? "no such option" : "expected no value");
	return cli_usage(is_json, command, what);
}

int cli_usage(bool is_json, const char *command, const char *what)
{
	fprintf(stderr, "weir %s: %s\nTry: weir %s --help\n", command, what, command);
	return cli_fail(is_json, WEIR_EXIT_USAGE, what);
}
