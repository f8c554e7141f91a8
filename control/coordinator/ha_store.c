#include "control/coordinator/ha_store.h"

#include "control/coordinator/durable_file.h"
#include "control/coordinator/ha_log.h"
#include "dataplane/base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static_assert((int)DURABLE_TEXT_BYTES == (int)HA_TEXT_BYTES, "texts are handed through");
static_assert((int)HA_LOG_TEXT_BYTES == (int)HA_TEXT_BYTES, "texts are handed through");
static_assert((int)HA_LOG_MAYBE == (int)HA_MAYBE, "statuses are handed through");

enum { LOGS_OPEN_MAX = 64 };

/* The log of a job, kept open. */
struct open_log {
	struct job_id job;
	uint64_t used; /* when; 0: never */
	struct ha_log *log;
};

struct ha_store {
	int lock_fd;
	pthread_mutex_t mutex; /* of the fields below */
	uint64_t uses;
	struct open_log logs[LOGS_OPEN_MAX];
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
	}
	if (dir != NULL)
		closedir(dir);
}

static void close_log(struct open_log *o)
{
	/* When it fails, what was forgotten stands again; nothing is lost. */
	if (o->log != NULL)
		(void)ha_log_settle(o->log);
	ha_log_close(o->log);
}

int ha_store_open(struct ha_store **out, const char *directory, char text[HA_TEXT_BYTES])
{
	struct ha_store *s = calloc(1, sizeof(*s));
	int rc = -ENAMETOOLONG;

	if (s == NULL)
		return -ENOMEM;
	s->lock_fd = -1;
	pthread_mutex_init(&s->mutex, NULL);
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
	for (uint32_t i = 0; i < LOGS_OPEN_MAX; i++)
		close_log(&s->logs[i]);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

/* ---- names ---- */

/* <directory>/<job id> */
static void directory_of(
		const struct ha_store *s, struct job_id job, char path[DURABLE_PATH_BYTES])
{
	char id[ID128_TEXT_BYTES];

	id128_print(job.id, id);
	int n = snprintf(path, DURABLE_PATH_BYTES, "%s/%s", s->directory, id);
	CHECK(n < DURABLE_PATH_BYTES);
}

/* <directory>/<job id>/<name> */
static void path_of(const struct ha_store *s, struct job_id job, const char *name,
		char path[DURABLE_PATH_BYTES])
{
	char id[ID128_TEXT_BYTES];

	id128_print(job.id, id);
	int n = snprintf(path, DURABLE_PATH_BYTES, "%s/%s/%s", s->directory, id, name);
	CHECK(n < DURABLE_PATH_BYTES);
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

	directory_of(s, job, path);
	int rc = durable_make_directory(path);
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

/* ---- its checkpoints ---- */

/* The place of a job's log: its own, or the one that was not used for longest. */
static struct open_log *place_of(struct ha_store *s, struct job_id job)
{
	struct open_log *oldest = &s->logs[0];

	for (uint32_t i = 0; i < LOGS_OPEN_MAX; i++) {
		struct open_log *o = &s->logs[i];

		if (o->log != NULL && id128_is_equal(o->job.id, job.id))
			return o;
		if (o->used < oldest->used)
			oldest = o;
	}
	close_log(oldest);
	*oldest = (struct open_log){.job = job};
	return oldest;
}

/* With the mutex held.  NULL: it cannot be read. */
static struct ha_log *log_of(
		struct ha_store *s, struct job_id job, int *rc, char text[HA_TEXT_BYTES])
{
	struct open_log *o = place_of(s, job);
	char path[DURABLE_PATH_BYTES];

	*rc = 0;
	if (o->log == NULL) {
		directory_of(s, job, path);
		*rc = ha_log_open(&o->log, path, text);
	}
	if (*rc != 0)
		return NULL;
	o->used = ++s->uses;
	return o->log;
}

int ha_store_read_next_id(
		struct ha_store *s, struct job_id job, int64_t *next, char text[HA_TEXT_BYTES])
{
	int rc;

	pthread_mutex_lock(&s->mutex);
	const struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		*next = ha_log_next_id(l);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_write_next_id(struct ha_store *s, struct job_id job, int64_t next)
{
	char text[HA_TEXT_BYTES];
	int rc;

	pthread_mutex_lock(&s->mutex);
	struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		rc = ha_log_set_next_id(l, next);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_add_completed(
		struct ha_store *s, struct job_id job, const Weir__CompletedRecord *record)
{
	char text[HA_TEXT_BYTES];
	int rc;

	pthread_mutex_lock(&s->mutex);
	struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		rc = ha_log_add(l, record);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_remove_completed(struct ha_store *s, struct job_id job, int64_t id)
{
	char text[HA_TEXT_BYTES];
	int rc;

	pthread_mutex_lock(&s->mutex);
	struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		rc = ha_log_remove(l, id);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_forget_completed(struct ha_store *s, struct job_id job, int64_t id)
{
	char text[HA_TEXT_BYTES];
	int rc;

	pthread_mutex_lock(&s->mutex);
	struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		ha_log_forget(l, id);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_clear_completed(struct ha_store *s, struct job_id job)
{
	char text[HA_TEXT_BYTES];
	int rc;

	pthread_mutex_lock(&s->mutex);
	struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		rc = ha_log_clear(l);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

int ha_store_read_completed(struct ha_store *s, struct job_id job,
		Weir__CompletedRecord ***records, uint32_t *count, char text[HA_TEXT_BYTES])
{
	int rc;

	*records = NULL;
	*count = 0;
	pthread_mutex_lock(&s->mutex);
	const struct ha_log *l = log_of(s, job, &rc, text);
	if (l != NULL)
		ha_log_read(l, records, count);
	pthread_mutex_unlock(&s->mutex);
	return rc;
}

void ha_store_free_completed(Weir__CompletedRecord **records, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		weir__completed_record__free_unpacked(records[i], NULL);
	free(records);
}
