#include "control/coordinator/files_list.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct list {
	char **files;
	uint32_t count, room;
};

static int add(struct list *l, const char *path)
{
	if (l->count >= FILES_COUNT_MAX)
		return -E2BIG;
	if (l->count == l->room) {
		uint32_t room = l->room == 0 ? 16 : 2 * l->room;
		char **more = realloc(l->files, room * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		l->files = more;
		l->room = room;
	}
	l->files[l->count] = strdup(path);
	if (l->files[l->count] == NULL)
		return -ENOMEM;
	l->count++;
	return 0;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int add_directory(struct list *l, const char *path)
{
	DIR *dir = opendir(path);
	int rc = 0;

	if (dir == NULL)
		return -errno;
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
		char *file;

		if (e->d_name[0] == '.')
			continue;
		size_t length = strlen(path);
		bool has_slash = length > 0 && path[length - 1] == '/';
		if (asprintf(&file, "%s%s%s", path, has_slash ? "" : "/", e->d_name) < 0) {
			rc = -ENOMEM;
			break;
		}
		if (is_file(file))
			rc = add(l, file);
		free(file);
	}
	closedir(dir);
	return rc;
}

static int add_pattern(struct list *l, const char *pattern)
{
	glob_t found;
	int rc = glob(pattern, GLOB_NOSORT, NULL, &found);

	if (rc == GLOB_NOMATCH)
		return 0;
	if (rc != 0)
		return rc == GLOB_NOSPACE ? -ENOMEM : -EIO;
	for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
		if (is_file(found.gl_pathv[i]))
			rc = add(l, found.gl_pathv[i]);
	globfree(&found);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is wrong with the list; NULL: nothing. */
static const char *fault_of(const struct list *l, bool is_pattern, int *rc)
{
	if (*rc != 0)
		return strerror(-*rc);
	if (l->count == 0) {
		*rc = -ENOENT;
		return is_pattern ? "no file fits the pattern" : "no files in that directory";
	}
	for (uint32_t i = 0; i < l->count; i++) {
		if (access(l->files[i], R_OK) != 0) {
			*rc = -errno;
			return strerror(-*rc);
		}
	}
	return NULL;
}

int files_list(const char *path, char ***files, uint32_t *count, char text[FILES_TEXT_BYTES])
{
	struct list l = {0};
	struct stat st;
	bool is_pattern = false;
	int rc;

	/* A file may have a star in its name. */
	if (stat(path, &st) == 0) {
		rc = S_ISDIR(st.st_mode) ? add_directory(&l, path) : add(&l, path);
	} else {
		rc = -errno;
		is_pattern = strpbrk(path, "*?[") != NULL;
		if (is_pattern)
			rc = add_pattern(&l, path);
	}
	const char *fault = fault_of(&l, is_pattern, &rc);
	if (fault != NULL) {
		snprintf(text, FILES_TEXT_BYTES, "%s: %s", path, fault);
		files_list_free(l.files, l.count);
		return rc;
	}
	qsort(l.files, l.count, sizeof(*l.files), by_name);
	*files = l.files;
	*count = l.count;
	return 0;
}

void files_list_free(char **files, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(files[i]);
	free(files);
}
