/* Which store, and the words for why. */

#include "dataplane/checkpoint/store_select.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/thread_store.h"
#include "dataplane/checkpoint/uring_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool store_kind_parse(const char *name, enum store_kind *kind)
{
	static const char *const names[] = {
		[STORE_AUTO] = "auto", [STORE_URING] = "io_uring", [STORE_THREADS] = "threads"};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*kind = (enum store_kind)i;
			return true;
		}
	}
	return false;
}

/* The value of kernel.io_uring_disabled, 0 where the kernel has no such switch. */
static int uring_disabled(void)
{
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static void say_why_not(int rc, char why[STORE_WHY_BYTES])
{
	int disabled = rc == -EPERM ? uring_disabled() : 0;

	if (disabled != 0)
		snprintf(why, STORE_WHY_BYTES,
				"io_uring is switched off: sysctl kernel.io_uring_disabled is %d "
				"(%s)",
				disabled,
				disabled == 1 ? "for all but kernel.io_uring_group"
					      : "for everybody");
	else if (rc == -EPERM)
		snprintf(why, STORE_WHY_BYTES, "io_uring is refused by a seccomp filter, as "
				"container runtimes install it");
	else if (rc == -ENOSYS)
		snprintf(why, STORE_WHY_BYTES, "this kernel has no io_uring");
	else if (rc == -EOPNOTSUPP)
		snprintf(why, STORE_WHY_BYTES, "the io_uring of this kernel lacks an operation "
				"(5.15 or newer is needed)");
	else if (rc == -ENOMEM)
		snprintf(why, STORE_WHY_BYTES, "io_uring gets no memory: the memlock limit is too "
				"low (ulimit -l)");
	else
		snprintf(why, STORE_WHY_BYTES, "io_uring cannot be set up: %s", strerror(-rc));
}

int store_probe_uring(char why[STORE_WHY_BYTES])
{
	struct store *s;
	int rc = uring_store_create(&s);

	if (rc != 0) {
		say_why_not(rc, why);
		return rc;
	}
	store_destroy(s);
	snprintf(why, STORE_WHY_BYTES, "io_uring is usable");
	return 0;
}

int store_open(struct store **out, enum store_kind kind, char why[STORE_WHY_BYTES])
{
	char reason[STORE_WHY_BYTES] = "";
	int rc;

	if (kind != STORE_THREADS) {
		rc = uring_store_create(out);
		if (rc == 0) {
			snprintf(why, STORE_WHY_BYTES, "storage by io_uring");
			return 0;
		}
		say_why_not(rc, reason);
		if (kind == STORE_URING) {
			memcpy(why, reason, STORE_WHY_BYTES);
			return rc;
		}
	}
	rc = thread_store_create(out);
	if (rc != 0)
		snprintf(why, STORE_WHY_BYTES, "no I/O thread can be started: %s", strerror(-rc));
	else if (kind == STORE_THREADS)
		snprintf(why, STORE_WHY_BYTES, "storage by an I/O thread, as configured");
	else
		snprintf(why, STORE_WHY_BYTES, "storage by an I/O thread: %.200s", reason);
	return rc;
}
