#include "control/cli/inspect.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/inspect_journal.h"
#include "control/cli/inspect_print.h"
#include "control/cli/inspect_report.h"
#include "control/cli/word_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

static const char help[] =
		"weir inspect PATH [options]: read a checkpoint or a journal and check every byte\n"
		"\n"
		"PATH is the directory of a checkpoint or the file _metadata in it, or the\n"
		"directory of a journal of a nic-source, also while the job runs.\n"
		"\n"
		"  --json          one JSON object\n"
		"\n"
		"Examples:\n"
		"  weir inspect checkpoints/6fbe0c1d2d4f4a0b8c5e3f2a1b0c9d8e/chk-17\n"
		"  weir inspect chk-17/_metadata --json\n"
		"  weir inspect /var/lib/weir/journal\n"
		"\n"
		"Ends with 0 when it is whole, 5 when it is damaged or none.  What a crash tore\n"
		"at the end of a journal is no damage.\n";

/* The metadata itself cannot be read. */
static int refuse(const char *path, int status, const char *text, bool json)
{
	fprintf(stderr, "weir inspect: %s\n", text);
	if (json && !inspect_print_json_error(path, text, stdout))
		return WEIR_EXIT_FAILURE;
	return status == -ENOMEM ? WEIR_EXIT_FAILURE : WEIR_EXIT_RESTORE_REFUSED;
}

static int inspect(const char *path, bool json)
{
	char text[METADATA_TEXT_BYTES];
	struct inspect_report *r;
	bool is_printed, is_whole;
	int rc = inspect_report_create(&r, path, text);

	if (rc != 0)
		return refuse(path, rc, text, json);
	is_printed = json ? inspect_print_json(r, stdout) : inspect_print_table(r, stdout);
	is_whole = r->problem_count == 0;
	inspect_report_destroy(r);
	if (!is_printed)
		return WEIR_EXIT_FAILURE;
	return is_whole ? WEIR_EXIT_DONE : WEIR_EXIT_RESTORE_REFUSED;
}

int inspect_command(int argc, char **argv)
{
	bool json;
	int code = word_options_read(argc, argv, "inspect", help, &json);

	if (code >= 0)
		return code;
	if (argc - optind != 1)
		return cli_usage(json, "inspect", "expected one PATH");
	return inspect_is_journal(argv[optind]) ? inspect_journal(argv[optind], json)
						: inspect(argv[optind], json);
}
