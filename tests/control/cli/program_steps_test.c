/* A start that is a list of steps, and its end. */

#include "control/cli/program_steps.h"

#include "control/cli/exit_codes.h"
#include "control/config/config.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct program {
	char done[64];
	char error[PROGRAM_ERROR_BYTES];
	int third_rc;
	const char *third_text;
};

static struct config *config;

static void begin(void)
{
	cr_assert_eq(config_create(&config), 0);
	cr_redirect_stderr();
}

static void end(void)
{
	config_destroy(config);
}

TestSuite(program_steps, .init = begin, .fini = end);

static void note(struct program *p, const char *what)
{
	strncat(p->done, what, sizeof(p->done) - strlen(p->done) - 1);
}

static int run_first(struct program *p)
{
	note(p, "+1");
	return 0;
}

static void undo_first(struct program *p)
{
	note(p, "-1");
}

static int run_second(struct program *p)
{
	note(p, "+2");
	return 0;
}

static int run_third(struct program *p)
{
	note(p, "+3");
	if (p->third_text != NULL)
		snprintf(p->error, sizeof(p->error), "%s", p->third_text);
	return p->third_rc;
}

static void undo_third(struct program *p)
{
	note(p, "-3");
}

static const struct program_step steps[] = {
		{"first", run_first, undo_first},
		{"second", run_second, NULL},
		{"third", run_third, undo_third},
};

static struct program_start start_of(struct program *p)
{
	return (struct program_start){
			.name = "weir-test",
			.module = "test",
			.config = config,
			.steps = steps,
			.step_count = 3,
			.error = p->error,
	};
}

Test(program_steps, are_done_in_order_and_undone_backwards)
{
	struct program p = {.done = ""};
	struct program_start s = start_of(&p);

	cr_assert_eq(program_begin(&s, &p), WEIR_EXIT_DONE);
	cr_assert_str_eq(p.done, "+1+2+3");
	program_end(&s, &p);
	cr_assert_str_eq(p.done, "+1+2+3-3-1");
	cr_assert_str_eq(p.error, "");
}

Test(program_steps, that_fail_undo_those_before_them_and_not_themselves)
{
	struct program p = {.third_rc = -ENODEV, .third_text = "no such port"};
	struct program_start s = start_of(&p);

	cr_assert_eq(program_begin(&s, &p), WEIR_EXIT_CONFIG);
	cr_assert_str_eq(p.done, "+1+2+3-1");
	cr_assert_str_eq(p.error, "no such port");
}

Test(program_steps, tell_what_is_in_use_from_what_is_not_fit)
{
	struct program busy = {.third_rc = -EBUSY}, taken = {.third_rc = -EADDRINUSE};
	struct program_start s = start_of(&busy);

	cr_assert_eq(program_begin(&s, &busy), WEIR_EXIT_BUSY);
	cr_assert_str_eq(busy.error, strerror(EBUSY));
	s = start_of(&taken);
	cr_assert_eq(program_begin(&s, &taken), WEIR_EXIT_BUSY);
}
