/* Which store, and the words for why. */

#include "dataplane/checkpoint/store_select.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/thread_store.h"
#include "dataplane/checkpoint/uring_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

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

int store_enlist_buffers(struct store *s, const struct iovec *regions, uint32_t count,
		uint32_t store_count, char why[STORE_WHY_BYTES])
{
	struct rlimit limit = {0, 0};
	uint64_t bytes = 0;
	int rc = count == 0 ? -EOPNOTSUPP : store_enlist(s, regions, count);

	for (uint32_t i = 0; i < count; i++)
		bytes += regions[i].iov_len;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (rc == 0)
		snprintf(why, STORE_WHY_BYTES, "buffers registered");
	else if (rc == -EOPNOTSUPP)
		snprintf(why, STORE_WHY_BYTES, "buffers not registered");
	else if (rc == -ENOMEM)
		snprintf(why, STORE_WHY_BYTES,
				"buffers not registered, their writes cost more: the memlock limit "
				"is %llu KiB, %llu KiB are needed (ulimit -l)",
				(unsigned long long)limit.rlim_cur / 1024,
				(unsigned long long)(bytes * store_count + 1023) / 1024);
	else
		snprintf(why, STORE_WHY_BYTES, "buffers not registered, their writes cost more: %s",
				strerror(-rc));
	return rc;
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
		snprintf(why, STORE_WHY_BYTES, "I/O threads cannot be started: %s", strerror(-rc));
	else if (kind == STORE_THREADS)
		snprintf(why, STORE_WHY_BYTES, "storage by I/O threads, as configured");
	else
		snprintf(why, STORE_WHY_BYTES, "storage by I/O threads: %.200s", reason);
	return rc;
}
