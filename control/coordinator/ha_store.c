#include "control/coordinator/ha_store.h"

#include "control/coordinator/durable_file.h"
#include "dataplane/base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static_assert((int)DURABLE_TEXT_BYTES == (int)HA_TEXT_BYTES, "texts are handed through");

enum { ID_DIGITS = 19 };

struct ha_store {
	int lock_fd;
	char directory[DURABLE_PATH_BYTES - 128]; /* room for what stands below it */
};

/* ---- the lock ---- */

static long holder_of(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	return n > 0 ? strtol(text, NULL, 10) : 0;
}

static int take_lock(struct ha_store *s, char text[HA_TEXT_BYTES])
{
	char path[DURABLE_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/lock", s->directory);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->lock_fd < 0) {
		snprintf(text, HA_TEXT_BYTES, "%s: %s", path, strerror(errno));
		return -errno;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
		snprintf(text, HA_TEXT_BYTES,
				"%s is held by another coordinator, process %ld; end it or use "
				"another high-availability.storageDir",
				s->directory, holder_of(s->lock_fd));
		return -EBUSY;
	}
	if (ftruncate(s->lock_fd, 0) != 0 || dprintf(s->lock_fd, "%ld\n", (long)getpid()) < 0) {
		snprintf(text, HA_TEXT_BYTES, "%s: %s", path, strerror(errno));
		return -EIO;
	}
	return 0;
}

/* ---- what a coordinator that died was writing ---- */

static void sweep_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		if (durable_is_temporary(e->d_name))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	if (dir != NULL)
		closedir(dir);
}

static void sweep(const struct ha_store *s)
{
	DIR *dir = opendir(s->directory);
	struct dirent *e;
	struct job_id job;
	char path[DURABLE_PATH_BYTES];

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (!id128_parse(e->d_name, &job.id))
			continue;
		snprintf(path, sizeof(path), "%s/%.32s", s->directory, e->d_name);
		sweep_directory(path);
		snprintf(path, sizeof(path), "%s/%.32s/completed", s->directory, e->d_name);
		sweep_directory(path);
	}
	if (dir != NULL)
		closedir(dir);
}

int ha_store_open(struct ha_store **out, const char *directory, char text[HA_TEXT_BYTES])
{
	struct ha_store *s = calloc(1, sizeof(*s));
	int rc = -ENAMETOOLONG;

	if (s == NULL)
		return -ENOMEM;
	s->lock_fd = -1;
	if (snprintf(s->directory, sizeof(s->directory), "%s", directory) <
			(int)sizeof(s->directory))
		rc = durable_make_directory(directory);
	if (rc != 0)
		snprintf(text, HA_TEXT_BYTES, "%s: %s", directory, strerror(-rc));
	if (rc == 0)
		rc = take_lock(s, text);
	if (rc != 0) {
		ha_store_close(s);
		return rc;
	}
	sweep(s);
	*out = s;
	return 0;
}

void ha_store_close(struct ha_store *s)
{
	if (s == NULL)
		return;
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s);
}

/* ---- names ---- */

/* <directory>/<job id>/<name> */
static void path_of(const struct ha_store *s, struct job_id job, const char *name,
		char path[DURABLE_PATH_BYTES])
{
	char id[ID128_TEXT_BYTES];

	id128_print(job.id, id);
	int n = snprintf(path, DURABLE_PATH_BYTES, "%s/%s/%s", s->directory, id, name);
	CHECK(n < DURABLE_PATH_BYTES);
}

static void path_of_completed(const struct ha_store *s, struct job_id job, int64_t id,
		char path[DURABLE_PATH_BYTES])
{
	char name[64];

	CHECK(id > 0);
	snprintf(name, sizeof(name), "completed/%0*" PRId64, ID_DIGITS, id);
	path_of(s, job, name, path);
}

/* Makes the directories of a job. */
static int prepare(const struct ha_store *s, struct job_id job)
{
	char path[DURABLE_PATH_BYTES];

	path_of(s, job, "completed", path);
	return durable_make_directory(path);
}

static int by_name(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct job_id));
}

int ha_store_list_jobs(struct ha_store *s, struct job_id **jobs, uint32_t *count)
{
	DIR *dir = opendir(s->directory);
	struct job_id *all = NULL;
	uint32_t n = 0;

	if (dir == NULL)
		return -errno;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		struct job_id job;
		char path[DURABLE_PATH_BYTES];

		if (!id128_parse(e->d_name, &job.id))
			continue;
		path_of(s, job, "job", path);
		if (access(path, F_OK) != 0)
			continue;
		struct job_id *more = realloc(all, (n + 1) * sizeof(*all));
		if (more == NULL) {
			free(all);
			closedir(dir);
			return -ENOMEM;
		}
		all = more;
		all[n++] = job;
	}
	closedir(dir);
	if (n > 0)
		qsort(all, n, sizeof(*all), by_name);
	*jobs = all;
	*count = n;
	return 0;
}

/* ---- the record ---- */

int ha_store_write_job(struct ha_store *s, struct job_id job, const Weir__JobRecord *record)
{
	char path[DURABLE_PATH_BYTES];
	int rc = prepare(s, job);

	path_of(s, job, "job", path);
	return rc != 0 ? rc : durable_file_write(path, &record->base);
}

int ha_store_read_job(struct ha_store *s, struct job_id job, Weir__JobRecord **record,
		char text[HA_TEXT_BYTES])
{
	char path[DURABLE_PATH_BYTES];
	ProtobufCMessage *message;

	path_of(s, job, "job", path);
	int rc = durable_file_read(path, &weir__job_record__descriptor, &message, text);
	if (rc == 0)
		*record = (Weir__JobRecord *)message;
	return rc;
}

/* ---- ids ---- */

int ha_store_read_next_id(
		struct ha_store *s, struct job_id job, int64_t *next, char text[HA_TEXT_BYTES])
{
	char path[DURABLE_PATH_BYTES];
	ProtobufCMessage *message;

	path_of(s, job, "next-id", path);
	int rc = durable_file_read(path, &weir__next_id__descriptor, &message, text);
	if (rc == -ENOENT) {
		*next = 1;
		return 0;
	}
	if (rc != 0)
		return rc;
	*next = ((Weir__NextId *)message)->next;
	protobuf_c_message_free_unpacked(message, NULL);
	if (*next < 1) {
		snprintf(text, HA_TEXT_BYTES, "%s: holds the id %" PRId64, path, *next);
		return -EBADMSG;
	}
	return 0;
}

int ha_store_write_next_id(struct ha_store *s, struct job_id job, int64_t next)
{
	char path[DURABLE_PATH_BYTES];
	Weir__NextId message = WEIR__NEXT_ID__INIT;
	int rc = prepare(s, job);

	CHECK(next >= 1);
	message.next = next;
	path_of(s, job, "next-id", path);
	return rc != 0 ? rc : durable_file_write(path, &message.base);
}

/* ---- completed checkpoints ---- */

int ha_store_add_completed(
		struct ha_store *s, struct job_id job, const Weir__CompletedRecord *record)
{
	char path[DURABLE_PATH_BYTES];
	int rc = prepare(s, job);

	path_of_completed(s, job, record->id, path);
	return rc != 0 ? rc : durable_file_write(path, &record->base);
}

int ha_store_remove_completed(struct ha_store *s, struct job_id job, int64_t id)
{
	char path[DURABLE_PATH_BYTES];

	path_of_completed(s, job, id, path);
	return durable_file_remove(path);
}

int ha_store_forget_completed(struct ha_store *s, struct job_id job, int64_t id)
{
	char path[DURABLE_PATH_BYTES];

	path_of_completed(s, job, id, path);
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

static bool is_completed_name(const char *name)
{
	return strlen(name) == ID_DIGITS && strspn(name, "0123456789") == ID_DIGITS &&
			strtoll(name, NULL, 10) > 0;
}

int ha_store_clear_completed(struct ha_store *s, struct job_id job)
{
	char path[DURABLE_PATH_BYTES];
	int rc = 0;

	path_of(s, job, "completed", path);
	DIR *dir = opendir(path);
	if (dir == NULL)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
		if (is_completed_name(e->d_name))
			rc = ha_store_remove_completed(s, job, strtoll(e->d_name, NULL, 10));
	closedir(dir);
	return rc;
}

static int read_one(const struct ha_store *s, struct job_id job, const char *name,
		Weir__CompletedRecord **record, char text[HA_TEXT_BYTES])
{
	char path[DURABLE_PATH_BYTES];
	ProtobufCMessage *message;

	path_of_completed(s, job, strtoll(name, NULL, 10), path);
	int rc = durable_file_read(path, &weir__completed_record__descriptor, &message, text);
	if (rc != 0)
		return rc;
	*record = (Weir__CompletedRecord *)message;
	if ((*record)->id != strtoll(name, NULL, 10) || (*record)->location[0] == 0) {
		snprintf(text, HA_TEXT_BYTES, "%s: holds another checkpoint", path);
		weir__completed_record__free_unpacked(*record, NULL);
		return -EBADMSG;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	int64_t x = (*(Weir__CompletedRecord *const *)a)->id;
	int64_t y = (*(Weir__CompletedRecord *const *)b)->id;

	return x < y ? -1 : x > y;
}

int ha_store_read_completed(struct ha_store *s, struct job_id job,
		Weir__CompletedRecord ***records, uint32_t *count, char text[HA_TEXT_BYTES])
{
	char path[DURABLE_PATH_BYTES];
	Weir__CompletedRecord **all = NULL;
	uint32_t n = 0;
	int rc = 0;

	*records = NULL;
	*count = 0;
	path_of(s, job, "completed", path);
	DIR *dir = opendir(path);
	if (dir == NULL)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
		Weir__CompletedRecord **more, *record;

		if (!is_completed_name(e->d_name))
			continue;
		rc = read_one(s, job, e->d_name, &record, text);
		if (rc != 0)
			break;
		more = realloc(all, (n + 1) * sizeof(*all));
		if (more == NULL) {
			weir__completed_record__free_unpacked(record, NULL);
			rc = -ENOMEM;
			break;
		}
		all = more;
		all[n++] = record;
	}
	closedir(dir);
	if (rc != 0) {
		ha_store_free_completed(all, n);
		return rc;
	}
	if (n > 0)
		qsort(all, n, sizeof(*all), by_id);
	*records = all;
	*count = n;
	return 0;
}

void ha_store_free_completed(Weir__CompletedRecord **records, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		weir__completed_record__free_unpacked(records[i], NULL);
	free(records);
}
