#include "nic/probe.h"
#include "nic/probe_internal.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const verdict_names[] = {
		"works", "old-kernel", "sysctl", "seccomp", "memlock", "other"};

enum probe_uring probe_uring_verdict(const struct probe_uring_facts *facts)
{
	bool has_filter = facts->seccomp == 2;

	switch (facts->error) {
	case 0:
		return PROBE_URING_WORKS;
	case ENOMEM:
		return PROBE_URING_MEMLOCK;
	case ENOSYS: /* some filters answer as if there were no such call */
		return facts->is_new_kernel && has_filter ? PROBE_URING_SECCOMP
							  : PROBE_URING_OLD_KERNEL;
	case EPERM:
		if (facts->disabled > 0)
			return PROBE_URING_SYSCTL;
		return has_filter ? PROBE_URING_SECCOMP : PROBE_URING_OTHER;
	default:
		return PROBE_URING_OTHER;
	}
}

/* The bare call: a library would hide which error it was. */
static int try_setup(void)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	long fd = syscall(__NR_io_uring_setup, 4, &params);
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

json_t *probe_io_uring(const char *root)
{
	char status[PROBE_TEXT_BYTES] = "";
	struct utsname kernel;
	int major = 0, minor = 0;

	uname(&kernel);
	sscanf(kernel.release, "%d.%d", &major, &minor);
	probe_read(status, sizeof(status), "%s/proc/self/status", root);
	struct probe_uring_facts facts = {.error = try_setup(),
			.disabled = probe_read_number(
					-1, "%s/proc/sys/kernel/io_uring_disabled", root),
			.seccomp = probe_find_number(status, "Seccomp:", -1),
			.is_new_kernel = major > 5 || (major == 5 && minor >= 1)};

	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:s}", "state",
			verdict_names[probe_uring_verdict(&facts)], "error",
			facts.error == 0 ? "" : strerror(facts.error), "errno", facts.error,
			"disabled_sysctl", (json_int_t)facts.disabled, "seccomp_mode",
			(json_int_t)facts.seccomp, "kernel", kernel.release);
}
