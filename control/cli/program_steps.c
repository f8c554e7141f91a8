#include "control/cli/program_steps.h"

#include "control/cli/exit_codes.h"
#include "control/config/config.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"
#include "dataplane/base/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void open_log(const struct program_start *s)
{
	char name[16];
	enum log_level level = LOG_INFO;

	CHECK(log_level_parse(config_choice(s->config, "weir.log.level", name, sizeof(name)),
			&level));
	log_open(s->name, level);
}

static int fail(const struct program_start *s, const char *step, int rc)
{
	if (s->error[0] == '\0')
		snprintf(s->error, PROGRAM_ERROR_BYTES, "%s", strerror(-rc));
	log_error(s->module, "cannot start (%s): %s", step, s->error);
	return rc == -EBUSY || rc == -EADDRINUSE ? WEIR_EXIT_BUSY : WEIR_EXIT_CONFIG;
}

static void undo(const struct program_start *s, uint32_t count, struct program *p)
{
	while (count-- > 0)
		if (s->steps[count].undo != NULL)
			s->steps[count].undo(p);
}

int program_begin(const struct program_start *s, struct program *p)
{
	open_log(s);
	int rc = process_check_files(s->error, PROGRAM_ERROR_BYTES);
	if (rc != 0)
		return fail(s, "files", rc);
	for (uint32_t i = 0; i < s->step_count; i++) {
		rc = s->steps[i].run(p);
		if (rc == 0)
			continue;
		int code = fail(s, s->steps[i].name, rc);
		undo(s, i, p);
		return code;
	}
	return WEIR_EXIT_DONE;
}

void program_end(const struct program_start *s, struct program *p)
{
	undo(s, s->step_count, p);
}
