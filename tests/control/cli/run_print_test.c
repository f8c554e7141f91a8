/* What people see of a job that runs. */

#include "control/cli/run_print.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct run_progress progress;
static char *text;
static size_t size;
static FILE *out;

static void begin(void)
{
	out = open_memstream(&text, &size);
	cr_assert_not_null(out);
}

static void end(void)
{
	fclose(out);
	free(text);
}

TestSuite(run_print, .init = begin, .fini = end);

/* `waiting` NULL: it does not. */
static void look(const char *waiting, uint64_t now_ns)
{
	json_t *summary = json_pack("{s:s?, s:{}}", "waiting", waiting, "checkpoints");

	cr_assert_not_null(summary);
	run_print_troubles(&progress, out, summary, now_ns);
	json_decref(summary);
	fflush(out);
}

Test(run_print, tells_once_that_a_job_has_waited_for_a_second)
{
	look("waits for a TaskManager: none has registered", 500 * MS);
	look("waits for a TaskManager: none has registered", 1499 * MS);
	cr_assert_str_eq(text, "");
	look("waits for a TaskManager: none has registered", 1500 * MS);
	look("waits for a TaskManager: none has registered", 9000 * MS);
	cr_assert_str_eq(text, "the job waits for a TaskManager: none has registered\n");
}

Test(run_print, tells_it_again_when_the_job_waits_another_time)
{
	look("waits", 1 * MS);
	look("waits", 2000 * MS);
	look(NULL, 2100 * MS);
	look("waits", 2200 * MS);
	look("waits", 3100 * MS);
	cr_assert_str_eq(text, "the job waits\n");
	look("waits", 3200 * MS);
	cr_assert_str_eq(text, "the job waits\nthe job waits\n");
}
