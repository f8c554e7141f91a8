#include "control/cli/word_options.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

enum { OPTION_JSON = 0x2000 };

int word_options_read(
		int argc, char **argv, const char *command, const char *help, bool *is_json)
{
	static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
			{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option;

	*is_json = cli_wants_json(argc, argv);
	cli_begin_options();
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_bad_option(*is_json, command, option, argv);
		if (option == OPTION_JSON)
			continue;
		fputs(help, stdout);
		return WEIR_EXIT_DONE;
	}
	return -1;
}
