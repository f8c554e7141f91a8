#include "dataplane/operator/file_sink_parts.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char hidden_end[] = ".inprogress";
static const char final_end[] = ".csv";

int parts_refuse(const char *path, int rc, char text[PARTS_TEXT_BYTES], const char *format, ...)
{
	char reason[PARTS_TEXT_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(text, PARTS_TEXT_BYTES, "%.*s: %s", PARTS_TEXT_BYTES / 2 - 4, path, reason);
	return rc;
}

/* ---- names ----------------------------------------------------------------------------------- */

void part_hidden_path(const struct part_owner *o, const struct part *p,
		char path[PARTS_PATH_BYTES])
{
	int size = snprintf(path, PARTS_PATH_BYTES, "%s/.%s-%u-%s-%" PRIu64 "%s", o->directory,
			o->uid, p->subtask, p->attempt, p->number, hidden_end);

	CHECK(size > 0);
	CHECK(size < PARTS_PATH_BYTES);
}

void part_final_path(const struct part_owner *o, const struct part *p,
		char path[PARTS_PATH_BYTES])
{
	int size;

	if (p->checkpoint_id == 0)
		size = snprintf(path, PARTS_PATH_BYTES, "%s/part-%s-%u-final%s", o->directory,
				o->uid, p->subtask, final_end);
	else
		size = snprintf(path, PARTS_PATH_BYTES, "%s/part-%s-%u-%010" PRId64 "%s",
				o->directory, o->uid, p->subtask, p->checkpoint_id, final_end);
	CHECK(size > 0);
	CHECK(size < PARTS_PATH_BYTES);
}

/* Steps over `word`; NULL: something else stands there. */
static const char *skip_word(const char *at, const char *word)
{
	size_t size = strlen(word);

	return at != NULL && strncmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *skip_number(const char *at, int64_t max, int64_t *number)
{
	if (at == NULL || *at < '0' || *at > '9')
		return NULL;
	*number = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*number > (max - (*at - '0')) / 10)
			return NULL;
		*number = *number * 10 + (*at - '0');
	}
	return at;
}

bool part_name_parse(const char *name, const char *uid, uint32_t *subtask, int64_t *checkpoint_id)
{
	const char *at = skip_word(skip_word(skip_word(name, "part-"), uid), "-");
	int64_t number = 0, id = 0;

	at = skip_word(skip_number(at, UINT32_MAX, &number), "-");
	if (at == NULL)
		return false;
	const char *digits = skip_number(at, INT64_MAX, &id);
	if (digits == NULL) {
		digits = skip_word(at, "final");
		id = -1;
	}
	if (digits == NULL || strcmp(digits, final_end) != 0)
		return false;
	*subtask = (uint32_t)number;
	*checkpoint_id = id;
	return true;
}

static bool is_hidden_of(const char *name, const struct part_owner *o)
{
	const char *at = skip_word(skip_word(skip_word(name, "."), o->uid), "-");
	int64_t subtask, number;

	at = skip_word(skip_number(at, UINT32_MAX, &subtask), "-");
	if (at == NULL || (uint32_t)subtask % o->parallelism != o->subtask)
		return false;
	if (strspn(at, "0123456789abcdef") != PARTS_ATTEMPT_BYTES - 1)
		return false;
	at = skip_number(skip_word(at + PARTS_ATTEMPT_BYTES - 1, "-"), INT64_MAX, &number);
	return at != NULL && strcmp(at, hidden_end) == 0;
}

/* ---- the directory --------------------------------------------------------------------------- */

static int sync_directory(const char *directory, char text[PARTS_TEXT_BYTES])
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc == 0 ? 0 : parts_refuse(directory, rc, text, "%s", strerror(-rc));
}

/* Whether it is there, and if so that it is as large as it must be. */
static int find_part(const char *path, uint64_t size_bytes, bool *is_there,
		char text[PARTS_TEXT_BYTES])
{
	struct stat st;

	*is_there = stat(path, &st) == 0;
	if (!*is_there)
		return errno == ENOENT
				? 0
				: parts_refuse(path, -errno, text, "%s", strerror(errno));
	if ((uint64_t)st.st_size != size_bytes)
		return parts_refuse(path, -EBADMSG, text,
				"%lld bytes, but the checkpoint says %" PRIu64,
				(long long)st.st_size, size_bytes);
	return 0;
}

static int commit(const struct part_owner *o, const struct part *p, char text[PARTS_TEXT_BYTES])
{
	char hidden[PARTS_PATH_BYTES], final[PARTS_PATH_BYTES];
	bool is_hidden, is_final;

	part_hidden_path(o, p, hidden);
	part_final_path(o, p, final);
	int rc = find_part(final, p->size_bytes, &is_final, text);
	if (rc == 0)
		rc = find_part(hidden, p->size_bytes, &is_hidden, text);
	if (rc != 0)
		return rc;
	if (is_final && is_hidden)
		return parts_refuse(final, -EEXIST, text,
				"there already, but not from this job: its part is still %.100s",
				strrchr(hidden, '/') + 1);
	if (is_final)
		return 0;
	if (!is_hidden)
		return parts_refuse(final, -ENOENT, text,
				"the checkpoint commits this part, but it is gone; nor is there "
				"%.100s",
				strrchr(hidden, '/') + 1);
	if (rename(hidden, final) != 0)
		return parts_refuse(final, -errno, text, "%s", strerror(errno));
	return 0;
}

int parts_commit(const struct part_owner *o, const struct part *parts, uint32_t count,
		char text[PARTS_TEXT_BYTES])
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = commit(o, &parts[i], text);

		if (rc != 0)
			return rc;
		crash_point("during-restore");
	}
	return count == 0 ? 0 : sync_directory(o->directory, text);
}

int parts_remove_hidden(const struct part_owner *o, char text[PARTS_TEXT_BYTES])
{
	DIR *d = opendir(o->directory);
	struct dirent *entry;
	int rc = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : parts_refuse(o->directory, -errno, text, "%s",
							     strerror(errno));
	while (rc == 0 && (entry = readdir(d)) != NULL) {
		if (is_hidden_of(entry->d_name, o) && unlinkat(dirfd(d), entry->d_name, 0) != 0 &&
				errno != ENOENT)
			rc = parts_refuse(entry->d_name, -errno, text, "%s", strerror(errno));
	}
	closedir(d);
	return rc;
}

int parts_refuse_old(const struct part_owner *o, char text[PARTS_TEXT_BYTES])
{
	DIR *d = opendir(o->directory);
	struct dirent *entry;
	int rc = 0;

	if (d == NULL)
		return parts_refuse(o->directory, -errno, text, "%s", strerror(errno));
	while (rc == 0 && (entry = readdir(d)) != NULL) {
		uint32_t subtask;
		int64_t id;

		if (part_name_parse(entry->d_name, o->uid, &subtask, &id))
			rc = parts_refuse(o->directory, -EEXIST, text,
					"holds output of an earlier run, such as %.150s; restore "
					"that run, or give another path",
					entry->d_name);
	}
	closedir(d);
	return rc;
}

/* Each directory on the way, first to last. */
static int make_parents(const char *path)
{
	char part[PARTS_DIRECTORY_BYTES];
	size_t size = strlen(path);

	if (size == 0 || size >= sizeof(part))
		return size == 0 ? -ENOENT : -ENAMETOOLONG;
	memcpy(part, path, size + 1);
	for (size_t i = 1; i <= size; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0777) != 0 && errno != EEXIST)
			return -errno;
		part[i] = path[i];
	}
	return 0;
}

int parts_make_directory(const char *path, char directory[PARTS_DIRECTORY_BYTES],
		char text[PARTS_TEXT_BYTES])
{
	char full[PATH_MAX];
	struct stat st;
	int rc = make_parents(path);

	if (rc == 0 && realpath(path, full) == NULL)
		rc = -errno;
	if (rc == 0 && strlen(full) >= PARTS_DIRECTORY_BYTES)
		rc = -ENAMETOOLONG;
	if (rc == 0 && stat(full, &st) == 0 && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	if (rc == 0 && access(full, W_OK | X_OK) != 0)
		rc = -errno;
	if (rc != 0)
		return parts_refuse(path, rc, text, "%s", strerror(-rc));
	memset(directory, 0, PARTS_DIRECTORY_BYTES);
	memcpy(directory, full, strlen(full));
	return 0;
}
