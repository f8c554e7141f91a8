#include "dataplane/journal/journal_directory.h"

#include "dataplane/base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_PATH_BYTES = JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES };

__attribute__((format(printf, 3, 4))) static int refuse(
		char *text, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, JOURNAL_DIRECTORY_TEXT_BYTES, format, args);
	va_end(args);
	return status;
}

static int refuse_path(char *text, const char *what, const char *path)
{
	return refuse(text, -errno, "%s %.400s: %s", what, path, strerror(errno));
}

void journal_segment_path(
		const struct journal_directory *d, uint64_t ordinal, char *path, size_t size)
{
	char name[JOURNAL_NAME_BYTES];

	journal_name(name, ordinal);
	snprintf(path, size, "%s/%s", d->path, name);
}

/* ---- the directory itself -------------------------------------------------------------------- */

static int sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int make_one(const char *path, const char *parent, char *text)
{
	if (mkdir(path, 0755) != 0) {
		if (errno == EEXIST)
			return 0;
		return refuse_path(text, "mkdir", path);
	}
	/* Durable before what is in it: the directory above holds its name. */
	int rc = sync_directory(parent);
	return rc == 0 ? 0 : refuse(text, rc, "sync %.400s: %s", parent, strerror(-rc));
}

static int make(const struct journal_directory *d, char *text)
{
	char parent[JOURNAL_PATH_BYTES], above[JOURNAL_PATH_BYTES];

	snprintf(parent, sizeof(parent), "%s", d->path);
	char *slash = strrchr(parent, '/');
	if (slash == NULL || slash == parent)
		return make_one(d->path, slash == NULL ? "." : "/", text);
	*slash = '\0';
	snprintf(above, sizeof(above), "%s", parent);
	slash = strrchr(above, '/');
	if (slash == NULL)
		snprintf(above, sizeof(above), ".");
	else
		slash[slash == above] = '\0';
	int rc = make_one(parent, above, text);
	return rc != 0 ? rc : make_one(d->path, parent, text);
}

static int lock(struct journal_directory *d, char *text)
{
	char path[FILE_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/lock", d->path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return refuse_path(text, "open", path);
	d->lock = fd + 1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return refuse(text, -EBUSY, "the journal %.400s is in use by another task",
				d->path);
	return refuse_path(text, "lock", path);
}

/* ---- its segments ---------------------------------------------------------------------------- */

static int compare_ordinals(const void *a, const void *b)
{
	const struct journal_segment_entry *x = a, *y = b;

	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static int list(struct journal_directory *d, char *text)
{
	DIR *directory = opendir(d->path);
	int rc = 0;

	if (directory == NULL)
		return refuse_path(text, "open", d->path);
	for (struct dirent *e = readdir(directory); e != NULL && rc == 0; e = readdir(directory)) {
		uint64_t ordinal;

		d->is_covered |= strcmp(e->d_name, JOURNAL_COVERED_NAME) == 0;
		if (journal_name_parse(e->d_name, &ordinal) != 0)
			continue;
		if (d->count == JOURNAL_SEGMENTS_MAX)
			rc = refuse(text, -E2BIG, "the journal %.400s has more than %d segments",
					d->path, JOURNAL_SEGMENTS_MAX);
		else
			d->segments[d->count++].ordinal = ordinal;
	}
	closedir(directory);
	qsort(d->segments, d->count, sizeof(d->segments[0]), compare_ordinals);
	return rc;
}

/* A power cut may undo the deletion of one and not that of the next: what is before a hole was
 * trimmed. */
static void leave_trimmed(struct journal_directory *d)
{
	uint32_t begin = d->count == 0 ? 0 : d->count - 1;

	while (begin > 0 && d->segments[begin - 1].ordinal + 1 == d->segments[begin].ordinal)
		begin--;
	d->count -= begin;
	memmove(d->segments, d->segments + begin, d->count * sizeof(d->segments[0]));
}

/* Its header, and whether a block stands behind it. */
static int look_into(const char *path, uint64_t ordinal, struct journal_segment_header *header,
		uint64_t *bytes, bool *has_block)
{
	uint8_t room[JOURNAL_ALIGN_BYTES + JOURNAL_BLOCK_HEAD_BYTES] = {0};
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t size = pread(fd, room, sizeof(room), 0);
	int rc = size < 0 || fstat(fd, &st) != 0 ? -errno : 0;
	close(fd);
	if (rc != 0)
		return rc;
	*bytes = (uint64_t)st.st_size;
	*has_block = size == (ssize_t)sizeof(room) &&
		     journal_decode_head(&head, room + JOURNAL_ALIGN_BYTES,
				     JOURNAL_BLOCK_HEAD_BYTES, text) == 0 &&
		     head.ordinal == ordinal;
	return journal_decode_header(header, room, (size_t)size, text);
}

static int check_fit(const struct journal_directory *d, const struct journal_segment_header *h,
		const struct journal_segment_entry *s, const char *path, char *text)
{
	if (h->ordinal != s->ordinal)
		return refuse(text, -EBADMSG, "%.400s is another segment under this name", path);
	if (d->id != 0 && h->id != d->id)
		return refuse(text, -EBADMSG, "%.400s is of another journal", path);
	if (s > d->segments && h->first < s[-1].first)
		return refuse(text, -EBADMSG, "%.400s begins before the segment in front of it",
				path);
	return 0;
}

static int read_headers(struct journal_directory *d, char *text)
{
	char path[FILE_PATH_BYTES];

	for (uint32_t i = 0; i < d->count; i++) {
		struct journal_segment_entry *s = &d->segments[i];
		struct journal_segment_header h;
		bool has_block = false;

		journal_segment_path(d, s->ordinal, path, sizeof(path));
		int rc = look_into(path, s->ordinal, &h, &s->bytes, &has_block);
		if (rc == -EBADMSG && i + 1 == d->count && !has_block) {
			d->count--;
			return unlink(path) == 0 ? 0 : refuse_path(text, "delete", path);
		}
		if (rc == -EBADMSG)
			return refuse(text, rc, "the header of %.400s is damaged", path);
		if (rc != 0)
			return refuse(text, rc, "read %.400s: %s", path, strerror(-rc));
		rc = check_fit(d, &h, s, path, text);
		if (rc != 0)
			return rc;
		s->first = h.first;
		d->id = h.id;
		if (h.record_bytes_max > d->record_bytes_max)
			d->record_bytes_max = h.record_bytes_max;
	}
	return 0;
}

static int begin(struct journal_directory *d, const char *path, char *text)
{
	memset(d, 0, sizeof(*d));
	if (strlen(path) >= sizeof(d->path))
		return refuse(text, -ENAMETOOLONG, "the path of the journal is too long");
	snprintf(d->path, sizeof(d->path), "%s", path);
	return 0;
}

int journal_directory_list(struct journal_directory *d, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES])
{
	int rc = begin(d, path, text);

	if (rc == 0)
		rc = list(d, text);
	leave_trimmed(d);
	return rc;
}

int journal_directory_open(struct journal_directory *d, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES])
{
	int rc = begin(d, path, text);

	if (rc == 0)
		rc = make(d, text);
	if (rc == 0)
		rc = lock(d, text);
	if (rc == 0)
		rc = list(d, text);
	leave_trimmed(d);
	if (rc == 0)
		rc = read_headers(d, text);
	if (rc == 0 && d->count > 0)
		d->next_ordinal = d->segments[d->count - 1].ordinal + 1;
	if (rc != 0)
		journal_directory_close(d);
	return rc;
}

void journal_directory_close(struct journal_directory *d)
{
	if (d->lock > 0)
		close(d->lock - 1);
	d->lock = 0;
}

uint64_t journal_directory_bytes(const struct journal_directory *d)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < d->count; i++)
		bytes += d->segments[i].bytes;
	return bytes;
}

void journal_directory_forget_oldest(struct journal_directory *d)
{
	CHECK(d->count > 0);
	memmove(d->segments, d->segments + 1, --d->count * sizeof(d->segments[0]));
}
