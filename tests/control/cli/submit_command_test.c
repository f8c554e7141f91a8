/* What `weir submit` makes of its options. */

#include "control/cli/submit_command.h"

#include "control/cli/exit_codes.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct submit_options o;

static void begin(void)
{
	cr_redirect_stdout();
	cr_redirect_stderr();
}

TestSuite(submit_command, .init = begin);

enum { WORDS_MAX = 16 };

/* Of a command line "submit WORD WORD...". */
static int read_words(const char *const *words)
{
	char *argv[WORDS_MAX + 2] = {(char *)"submit"};
	int argc = 1;

	for (; words[argc - 1] != NULL; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	return submit_options_read(&o, argc, argv);
}

#define READ(...) read_words((const char *const[]){__VA_ARGS__, NULL})

Test(submit_command, asks_the_coordinator_of_this_host_and_follows_unless_told_otherwise)
{
	cr_assert_eq(READ("job.yaml"), -1);
	cr_assert_str_eq(o.job_path, "job.yaml");
	cr_assert_str_eq(o.server.host, "127.0.0.1");
	cr_assert_eq(o.server.port, 8081);
	cr_assert_not(rest_option_is_given(&o.rest));
	cr_assert_not(o.is_detached);
	cr_assert_not(o.is_quiet);
	cr_assert_not(o.is_json);
	cr_assert_str_eq(o.restore, "none");
	cr_assert_not(o.job.must_allow_rewind);
}

Test(submit_command, takes_options_before_and_behind_the_job_file)
{
	cr_assert_eq(READ("--rest", "10.0.0.1:99", "-d", "job.yaml", "--json", "--quiet",
				     "--allow-rewind", "--restore", "latest"),
			-1);
	cr_assert_str_eq(o.job_path, "job.yaml");
	cr_assert_str_eq(o.server.host, "10.0.0.1");
	cr_assert_eq(o.server.port, 99);
	cr_assert(rest_option_is_given(&o.rest));
	cr_assert(o.is_detached);
	cr_assert(o.is_quiet);
	cr_assert(o.is_json);
	cr_assert_str_eq(o.restore, "latest");
	cr_assert(o.job.must_allow_rewind);
	cr_assert_eq(READ("--detached", "job.yaml"), -1);
	cr_assert(o.is_detached);
}

Test(submit_command, hands_on_parameters_and_settings_in_their_order)
{
	cr_assert_eq(READ("job.yaml", "--set", "a.b=1", "-D", "k=1", "-n", "--set", "a.b=2"), -1);
	cr_assert_eq(o.job.set_count, 2);
	cr_assert_str_eq(o.job.sets[0], "a.b=1");
	cr_assert_str_eq(o.job.sets[1], "a.b=2");
	cr_assert_eq(o.job.define_count, 2);
	cr_assert_str_eq(o.job.defines[0], "k=1");
	cr_assert_str_eq(o.job.defines[1], JOB_OPTION_NON_RESTORED);
}

Test(submit_command, names_a_checkpoint_so_that_a_coordinator_elsewhere_finds_it)
{
	char here[LOCAL_PATH_BYTES];

	cr_assert_not_null(getcwd(here, sizeof(here) - 16));
	strcat(here, "/sp/savepoint-1");
	cr_assert_eq(READ("job.yaml", "--restore", "sp/savepoint-1"), -1);
	cr_assert_str_eq(o.restore, here);
	cr_assert_eq(READ("job.yaml", "--restore", "/var/sp"), -1);
	cr_assert_str_eq(o.restore, "/var/sp");
}

Test(submit_command, finds_the_coordinator_by_a_config_file_unless_rest_says_where)
{
	char path[] = "/tmp/weir-submit-XXXXXX";
	static const char text[] = "rest.address: 10.0.0.7\nweir.cores: auto:1\n";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	cr_assert_eq(READ("job.yaml", "--config", path), -1);
	cr_assert_str_eq(o.server.host, "10.0.0.7");
	cr_assert_eq(o.server.port, 8081);
	cr_assert_eq(READ("job.yaml", "--config", path, "--rest", "h:1"), -1);
	cr_assert_str_eq(o.server.host, "h");
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, "rest.port: 99\n", 14, 0), 14);
	cr_assert_eq(READ("job.yaml", "--config", path), -1);
	cr_assert_str_eq(o.server.host, "127.0.0.1");
	cr_assert_eq(o.server.port, 99);
	close(fd);
	unlink(path);
	cr_assert_eq(READ("job.yaml", "--config", path), WEIR_EXIT_CONFIG);
}

Test(submit_command, refuses_what_it_does_not_understand)
{
	cr_assert_eq(READ("--json"), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("a.yaml", "b.yaml"), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("job.yaml", "--rest", "8081"), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("job.yaml", "--restore", "--json"), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("job.yaml", "--restore", ""), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("job.yaml", "--restore"), WEIR_EXIT_USAGE);
	cr_assert_eq(READ("job.yaml", "--taskmanagers", "2"), WEIR_EXIT_USAGE);
}

Test(submit_command, refuses_more_options_of_a_kind_than_it_keeps)
{
	char *argv[2 * JOB_OPTIONS_MAX + 5] = {(char *)"submit", (char *)"job.yaml"};
	int argc = 2;

	for (int i = 0; i <= JOB_OPTIONS_MAX; i++) {
		argv[argc++] = (char *)"-D";
		argv[argc++] = (char *)"k=1";
	}
	cr_assert_eq(submit_options_read(&o, argc, argv), WEIR_EXIT_USAGE);
	cr_assert_eq(submit_options_read(&o, argc - 2, argv), -1);
}

Test(submit_command, says_what_it_can_do)
{
	cr_assert_eq(READ("--help"), WEIR_EXIT_DONE);
	fflush(stdout);
	cr_assert_eq(READ("-h", "job.yaml"), WEIR_EXIT_DONE);
}
