#include "nic/probe_internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool print_path(char path[PROBE_PATH_BYTES], const char *format, va_list args)
{
	int size = vsnprintf(path, PROBE_PATH_BYTES, format, args);

	return size > 0 && size < PROBE_PATH_BYTES;
}

static bool read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return false;
	size_t count = fread(text, 1, size - 1, file);
	bool is_good = ferror(file) == 0;
	fclose(file);
	text[count] = '\0';
	return is_good;
}

bool probe_read(char *text, size_t size, const char *format, ...)
{
	char path[PROBE_PATH_BYTES];
	va_list args;

	va_start(args, format);
	bool is_good = print_path(path, format, args);
	va_end(args);
	if (!is_good || !read_file(path, text, size))
		return false;
	size_t length = strlen(text);
	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	return true;
}

static int64_t number_of(const char *text, int64_t otherwise)
{
	char *end;

	errno = 0;
	long long value = strtoll(text, &end, 10);
	return end == text || errno != 0 ? otherwise : value;
}

int64_t probe_read_number(int64_t otherwise, const char *format, ...)
{
	char path[PROBE_PATH_BYTES], text[64];
	va_list args;

	va_start(args, format);
	bool is_good = print_path(path, format, args);
	va_end(args);
	return is_good && read_file(path, text, sizeof(text)) ? number_of(text, otherwise)
							      : otherwise;
}

bool probe_read_link(char *name, size_t size, const char *format, ...)
{
	char path[PROBE_PATH_BYTES], target[PROBE_PATH_BYTES];
	va_list args;

	va_start(args, format);
	bool is_good = print_path(path, format, args);
	va_end(args);
	ssize_t length = is_good ? readlink(path, target, sizeof(target) - 1) : -1;
	if (length <= 0)
		return false;
	target[length] = '\0';
	const char *slash = strrchr(target, '/');
	snprintf(name, size, "%s", slash == NULL ? target : slash + 1);
	return true;
}

int64_t probe_find_number(const char *text, const char *name, int64_t otherwise)
{
	size_t size = strlen(name);

	for (const char *at = text; at != NULL && *at != '\0';) {
		if (strncmp(at, name, size) == 0)
			return number_of(at + size, otherwise);
		at = strchr(at, '\n');
		at = at == NULL ? NULL : at + 1;
	}
	return otherwise;
}

/* ---- cgroups ------------------------------------------------------------------------------- */

/* Our path below the hierarchy of `controller` ("": version 2), from /proc/self/cgroup. */
static bool find_cgroup(const char *root, const char *controller, char path[PROBE_PATH_BYTES])
{
	char text[PROBE_PATH_BYTES], *cursor = NULL;

	if (!probe_read(text, sizeof(text), "%s/proc/self/cgroup", root))
		return false;
	for (char *line = strtok_r(text, "\n", &cursor); line != NULL;
			line = strtok_r(NULL, "\n", &cursor)) {
		char *names = strchr(line, ':');
		char *below = names == NULL ? NULL : strchr(names + 1, ':');

		if (below == NULL)
			continue;
		*below++ = '\0';
		/* "cpu,cpuacct" holds cpu; cpuset does not. */
		size_t size = strlen(controller);
		for (char *name = names + 1;; name++) {
			size_t length = strcspn(name, ",");

			if (length == size && strncmp(name, controller, size) == 0) {
				snprintf(path, PROBE_PATH_BYTES, "%s", below);
				return true;
			}
			name += length;
			if (*name == '\0')
				break;
		}
	}
	return false;
}

/* Reads the limit in one folder of a hierarchy; -1: none. */
typedef int64_t (*limit_in)(const char *folder);

static int64_t smaller(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* In a container the path may not exist below the mount; its root then is our group. */
static int64_t smallest_limit(const char *mount, char path[PROBE_PATH_BYTES], limit_in limit)
{
	int64_t smallest = -1;

	for (;;) {
		char folder[2 * PROBE_PATH_BYTES];
		char *slash = strrchr(path, '/');

		snprintf(folder, sizeof(folder), "%s%s", mount, path);
		smallest = smaller(smallest, limit(folder));
		if (slash == NULL)
			return smallest;
		*slash = '\0';
	}
}

static int64_t cpu_limit_v2(const char *folder)
{
	char text[128], *period;

	if (!probe_read(text, sizeof(text), "%s/cpu.max", folder))
		return -1;
	period = strchr(text, ' ');
	int64_t quota_us = number_of(text, -1);
	int64_t period_us = period == NULL ? -1 : number_of(period, -1);
	return quota_us <= 0 || period_us <= 0 ? -1 : quota_us * 100 / period_us;
}

static int64_t cpu_limit_v1(const char *folder)
{
	int64_t quota_us = probe_read_number(-1, "%s/cpu.cfs_quota_us", folder);
	int64_t period_us = probe_read_number(-1, "%s/cpu.cfs_period_us", folder);

	return quota_us <= 0 || period_us <= 0 ? -1 : quota_us * 100 / period_us;
}

static int64_t memory_limit_v2(const char *folder)
{
	return probe_read_number(-1, "%s/memory.max", folder);
}

static int64_t memory_limit_v1(const char *folder)
{
	int64_t bytes = probe_read_number(-1, "%s/memory.limit_in_bytes", folder);

	return bytes > INT64_MAX / 2 ? -1 : bytes; /* "no limit" is a huge number there */
}

static int64_t cgroup_limit(
		const char *root, const char *controller, limit_in version1, limit_in version2)
{
	char path[PROBE_PATH_BYTES], mount[PROBE_PATH_BYTES];
	int64_t limit = -1;

	if (find_cgroup(root, "", path)) {
		snprintf(mount, sizeof(mount), "%.3000s/sys/fs/cgroup", root);
		limit = smallest_limit(mount, path, version2);
	}
	if (find_cgroup(root, controller, path)) {
		snprintf(mount, sizeof(mount), "%.3000s/sys/fs/cgroup/%s", root, controller);
		limit = smaller(limit, smallest_limit(mount, path, version1));
	}
	return limit;
}

int64_t probe_cgroup_cpu_hundredths(const char *root)
{
	return cgroup_limit(root, "cpu", cpu_limit_v1, cpu_limit_v2);
}

int64_t probe_cgroup_memory_bytes(const char *root)
{
	return cgroup_limit(root, "memory", memory_limit_v1, memory_limit_v2);
}
