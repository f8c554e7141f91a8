#include "dataplane/base/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* What follows a test's own trouble with closed streams. */
static int saved[3];

static void close_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		saved[fd] = dup(fd);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
}

static void restore_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		dup2(saved[fd], fd);
}

Test(process, closed_standard_streams_are_taken_by_no_file)
{
	close_streams();
	process_prepare();
	int fd = open("/dev/zero", O_RDONLY);
	ssize_t written = write(STDERR_FILENO, "lost", 4);
	restore_streams();
	cr_expect_gt(fd, STDERR_FILENO);
	cr_expect_eq(written, 4);
	close(fd);
}

Test(process, a_file_that_outgrows_its_limit_is_an_error_of_the_write)
{
	struct rlimit limit = {16, 16};
	char path[] = "/tmp/weir-process-XXXXXX", bytes[64] = {0};
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	process_prepare();
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(write(fd, bytes, sizeof(bytes)), 16);
	cr_expect_eq(write(fd, bytes, sizeof(bytes)), -1);
	cr_expect_eq(errno, EFBIG);
	close(fd);
}

Test(process, as_many_files_may_be_open_as_the_hard_limit_allows)
{
	struct rlimit limit = {20, 100};

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	process_prepare();
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(limit.rlim_cur, 100);
}

Test(process, too_few_open_files_are_told_before_anything_needs_them)
{
	struct rlimit limit = {48, 48};
	char error[128] = "";

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(process_check_files(error, sizeof(error)), 0);
	cr_expect_str_eq(error, "");
	limit.rlim_cur = 47;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(process_check_files(error, sizeof(error)), -EMFILE);
	cr_expect_str_eq(error, "only 47 files may be open here; at least 48 are needed: "
				"ulimit -n 1024");
}

Test(process, output_that_did_not_get_there_is_noticed)
{
	int out = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);

	fflush(stdout);
	cr_expect(process_output_is_whole());
	dup2(full, STDOUT_FILENO);
	fputs("nobody reads this\n", stdout);
	bool is_whole = process_output_is_whole();
	int error = errno;
	dup2(out, STDOUT_FILENO);
	cr_expect_not(is_whole);
	cr_expect_eq(error, ENOSPC);
	close(full);
	close(out);
}
