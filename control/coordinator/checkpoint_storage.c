#include "control/coordinator/checkpoint_storage.h"

#include "control/coordinator/durable_file.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BELOW_BYTES = 64 }; /* room for what stands below a job's path */

/* <directory>/<name>, absolute, with room for what stands below. */
static int join(const char *directory, const char *name, char path[STORAGE_PATH_BYTES])
{
	char here[STORAGE_PATH_BYTES] = "";

	if (directory[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return -errno;
	int n = snprintf(path, STORAGE_PATH_BYTES, "%s%s%s/%s", here,
			directory[0] == '/' ? "" : "/", directory, name);
	return n >= STORAGE_PATH_BYTES - BELOW_BYTES ? -ENAMETOOLONG : 0;
}

int checkpoint_storage_job_path(
		const char *directory, struct job_id job, char path[STORAGE_PATH_BYTES])
{
	char id[ID128_TEXT_BYTES];

	id128_print(job.id, id);
	return join(directory, id, path);
}

void checkpoint_storage_location(
		const char *job_path, int64_t id, char location[STORAGE_PATH_BYTES])
{
	int n = snprintf(location, STORAGE_PATH_BYTES, "%s/chk-%" PRId64, job_path, id);

	CHECK(n < STORAGE_PATH_BYTES);
}

int checkpoint_storage_prepare(
		const char *job_path, int64_t id, char location[STORAGE_PATH_BYTES])
{
	checkpoint_storage_location(job_path, id, location);
	/* Its name becomes durable with its metadata, whose writing syncs the directory above
	 * too; a directory left over from before is taken (SL-2). */
	if (mkdir(location, 0777) == 0 || errno == EEXIST)
		return 0;
	return errno == ENOENT ? durable_make_directory(location) : -errno;
}

int checkpoint_storage_prepare_savepoint(const char *directory, struct job_id job,
		const uint64_t numbers[SAVEPOINT_NAMES_COUNT], char location[STORAGE_PATH_BYTES])
{
	char id[ID128_TEXT_BYTES], name[64];

	id128_print(job.id, id);
	for (uint32_t i = 0; i < SAVEPOINT_NAMES_COUNT; i++) {
		snprintf(name, sizeof(name), "savepoint-%.6s-%012" PRIx64, id,
				numbers[i] & UINT64_C(0xffffffffffff));
		int rc = join(directory, name, location);
		if (rc == 0 && i == 0)
			rc = durable_make_directory(directory);
		if (rc != 0)
			return rc;
		/* Its own name becomes durable with its metadata. */
		if (mkdir(location, 0777) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* ---- deleting ---- */

/* A name that stays in its directory. */
static bool is_plain(const char *name)
{
	return name[0] != 0 && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
			strcmp(name, "..") != 0;
}

static void note(int *status, int rc)
{
	if (rc != 0 && errno != ENOENT && *status == 0)
		*status = -errno;
}

static void remove_file(int directory, const char *name, int *status)
{
	if (is_plain(name))
		note(status, unlinkat(directory, name, 0));
}

/* Which files of a directory stay; all zeros: none. */
struct keeping {
	bool is_on;
	int newest; /* the directory that has to have them too */
	uint64_t bytes_left;
};

/* A file that has another name is somebody's copy: his bytes must not change. */
static bool is_kept(int directory, const char *name, struct keeping *k)
{
	struct stat old, newest;

	if (!k->is_on || !is_plain(name))
		return false;
	if (fstatat(directory, name, &old, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(old.st_mode) || old.st_nlink != 1 ||
			(uint64_t)old.st_size > k->bytes_left ||
			fstatat(k->newest, name, &newest, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	k->bytes_left -= (uint64_t)old.st_size;
	return true;
}

/* It is metadata no more, by another name if its room is wanted. */
static void remove_metadata(int directory, const struct keeping *k, int *status)
{
	struct stat st;

	if (!k->is_on || fstatat(directory, METADATA_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode) || st.st_nlink != 1 ||
			renameat(directory, METADATA_FILE, directory, METADATA_SPARE_FILE) != 0)
		remove_file(directory, METADATA_FILE, status);
}

/* All files of a directory, `_metadata` first, but those that are kept. */
static void empty_location(const char *location, struct keeping *k, int *status)
{
	DIR *dir = opendir(location);

	note(status, dir == NULL ? -1 : 0);
	if (dir == NULL)
		return;
	remove_metadata(dirfd(dir), k, status);
	crash_point("during-delete");
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		bool is_spare = k->is_on && strcmp(e->d_name, METADATA_SPARE_FILE) == 0;

		if (!is_spare && !is_kept(dirfd(dir), e->d_name, k))
			remove_file(dirfd(dir), e->d_name, status);
	}
	closedir(dir);
}

/* Its files, then the directory. */
static void remove_location(const char *location, int *status)
{
	struct keeping nothing = {0};

	empty_location(location, &nothing, status);
	note(status, rmdir(location));
}

static void remove_files(const char *location, const struct file_list *files, int *status)
{
	int directory = open(location, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	note(status, directory < 0 ? -1 : 0);
	for (uint32_t i = 0; directory >= 0 && i < files->count; i++)
		remove_file(directory, files->names[i], status);
	if (directory >= 0)
		close(directory);
}

int checkpoint_storage_delete(const struct deletion *d)
{
	int status = 0;

	if (d->location == NULL)
		return 0;
	switch (d->kind) {
	case DELETION_PENDING:
	case DELETION_STORED:
	case DELETION_LOCATION:
		remove_location(d->location, &status);
		break;
	case DELETION_LATE:
	case DELETION_SHARED:
		remove_files(d->location, &d->files, &status);
		break;
	}
	return status;
}

static void empty_but_reusable(const char *location, const char *job_path,
		const struct storage_successor *s, int *status)
{
	char newest[STORAGE_PATH_BYTES];
	struct keeping k = {.bytes_left = s->kept_bytes_max};

	checkpoint_storage_location(job_path, s->newest_id, newest);
	k.newest = open(newest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	k.is_on = k.newest >= 0;
	empty_location(location, &k, status);
	if (k.is_on)
		close(k.newest);
}

/* A file system notes one new name sooner than a directory that goes and one that comes. */
int checkpoint_storage_replace(const struct deletion *d, const char *job_path,
		const struct storage_successor *successor, bool *is_prepared)
{
	char from[STORAGE_PATH_BYTES], to[STORAGE_PATH_BYTES];
	int status = 0;

	CHECK(d->kind == DELETION_STORED && d->location != NULL);
	*is_prepared = false;
	checkpoint_storage_location(job_path, d->checkpoint_id, from);
	checkpoint_storage_location(job_path, successor->id, to);
	if (strcmp(from, d->location) != 0) /* it stands elsewhere, or has another name */
		return checkpoint_storage_delete(d);
	empty_but_reusable(from, job_path, successor, &status);
	*is_prepared = rename(from, to) == 0;
	if (!*is_prepared)
		remove_location(from, &status);
	return status;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int checkpoint_storage_tidy(const char *location, const char **names, uint32_t count)
{
	DIR *dir = opendir(location);
	int status = 0;

	if (dir == NULL)
		return -errno;
	if (count > 0)
		qsort(names, count, sizeof(*names), by_name);
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		const char *name = e->d_name;

		if (strcmp(name, METADATA_FILE) == 0 || strcmp(name, METADATA_SPARE_FILE) == 0)
			continue;
		if (count == 0 || bsearch(&name, names, count, sizeof(*names), by_name) == NULL)
			remove_file(dirfd(dir), name, &status);
	}
	closedir(dir);
	return status;
}

/* ---- listing ---- */

/* The id in "chk-<id>", 0: no such name. */
static int64_t id_of(const char *name)
{
	if (strncmp(name, "chk-", 4) != 0 || name[4] < '1' || name[4] > '9' ||
			strlen(name) > 4 + 18 || strspn(name + 4, "0123456789") != strlen(name + 4))
		return 0;
	return strtoll(name + 4, NULL, 10);
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = ((const struct storage_entry *)a)->id;
	int64_t y = ((const struct storage_entry *)b)->id;

	return x > y ? -1 : x < y;
}

int checkpoint_storage_list(const char *job_path, struct storage_entry **entries, uint32_t *count)
{
	struct storage_entry *all = NULL;
	uint32_t n = 0;
	DIR *dir = opendir(job_path);

	*entries = NULL;
	*count = 0;
	if (dir == NULL)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		char location[STORAGE_PATH_BYTES], path[STORAGE_PATH_BYTES + 16];
		int64_t id = id_of(e->d_name);

		if (id == 0)
			continue;
		struct storage_entry *more = realloc(all, (n + 1) * sizeof(*all));
		if (more == NULL) {
			free(all);
			closedir(dir);
			return -ENOMEM;
		}
		all = more;
		checkpoint_storage_location(job_path, id, location);
		snprintf(path, sizeof(path), "%s/%s", location, METADATA_FILE);
		all[n++] = (struct storage_entry){id, access(path, F_OK) == 0};
	}
	closedir(dir);
	if (n > 0)
		qsort(all, n, sizeof(*all), newest_first);
	*entries = all;
	*count = n;
	return 0;
}

static bool is_in(int64_t id, const int64_t *listed, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (listed[i] == id)
			return true;
	return false;
}

uint32_t checkpoint_storage_sweep(const char *job_path, int64_t first_id, const int64_t *listed,
		uint32_t listed_count)
{
	struct storage_entry *entries;
	uint32_t count, swept = 0;
	int rc = checkpoint_storage_list(job_path, &entries, &count);

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		char location[STORAGE_PATH_BYTES];
		int status = 0;

		if (entries[i].has_metadata && (first_id == 0 || entries[i].id < first_id ||
				is_in(entries[i].id, listed, listed_count)))
			continue;
		checkpoint_storage_location(job_path, entries[i].id, location);
		remove_location(location, &status);
		swept += status == 0;
	}
	free(entries);
	return swept;
}
