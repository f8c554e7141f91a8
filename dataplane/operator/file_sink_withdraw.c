#include "dataplane/operator/file_sink_withdraw.h"

#include "dataplane/operator/file_sink_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *path, int rc, char text[512])
{
	snprintf(text, 512, "%.400s: %s", path, strerror(-rc));
	return rc;
}

static int move(const char *directory, const char *name, file_sink_withdrawn tell, void *user,
		char text[512])
{
	char from[PARTS_PATH_BYTES + 32], to[PARTS_PATH_BYTES + 32];

	if (strlen(directory) >= PARTS_DIRECTORY_BYTES)
		return refuse(directory, -ENAMETOOLONG, text);
	snprintf(to, sizeof(to), "%s/withdrawn", directory);
	if (mkdir(to, 0777) != 0 && errno != EEXIST)
		return refuse(to, -errno, text);
	snprintf(from, sizeof(from), "%s/%.191s", directory, name);
	snprintf(to, sizeof(to), "%s/withdrawn/%.191s", directory, name);
	/* Withdrawn before, written again, and now again: both are kept. */
	for (uint32_t i = 1; access(to, F_OK) == 0; i++)
		snprintf(to, sizeof(to), "%s/withdrawn/%.191s.%u", directory, name, i);
	if (rename(from, to) != 0)
		return refuse(from, -errno, text);
	tell(user, from, to);
	return 0;
}

static int sync_directory(DIR *d, const char *directory, char text[512])
{
	char path[PARTS_PATH_BYTES];
	DIR *withdrawn;

	snprintf(path, sizeof(path), "%.*s/withdrawn", PARTS_DIRECTORY_BYTES, directory);
	withdrawn = opendir(path);
	if (withdrawn == NULL)
		return errno == ENOENT ? 0 : refuse(path, -errno, text);
	int rc = fsync(dirfd(withdrawn)) != 0 || fsync(dirfd(d)) != 0 ? -errno : 0;
	closedir(withdrawn);
	return rc == 0 ? 0 : refuse(path, rc, text);
}

int file_sink_withdraw(const char *directory, const char *uid, int64_t checkpoint_id,
		file_sink_withdrawn tell, void *user, char text[512])
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	int rc = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : refuse(directory, -errno, text);
	while (rc == 0 && (entry = readdir(d)) != NULL) {
		uint32_t subtask;
		int64_t id;

		if (part_name_parse(entry->d_name, uid, &subtask, &id) && id > checkpoint_id)
			rc = move(directory, entry->d_name, tell, user, text);
	}
	if (rc == 0)
		rc = sync_directory(d, directory, text);
	closedir(d);
	return rc;
}
