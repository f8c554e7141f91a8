#include "control/coordinator/durable_file.h"

#include "dataplane/base/crash_point.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 16, FILE_BYTES_MAX = MESSAGE_BYTES_MAX };

static const char temporary_end[] = ".tmp";
static const char magic[8] = {'W', 'E', 'I', 'R', 'D', 'U', 'R', '1'};

int durable_sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int rc = fsync(fd) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

/* The directory a path is in. */
static int sync_above(const char *path)
{
	char above[DURABLE_PATH_BYTES];
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return durable_sync_directory(".");
	snprintf(above, sizeof(above), "%.*s", (int)(slash == path ? 1 : slash - path), path);
	return durable_sync_directory(above);
}

int durable_make_directory(const char *path)
{
	char part[DURABLE_PATH_BYTES];
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= length; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0777) == 0) {
			int rc = sync_above(part);

			if (rc != 0)
				return rc;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	struct stat st;
	if (stat(path, &st) != 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int write_all(int fd, const uint8_t *bytes, size_t count)
{
	while (count > 0) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		count -= (size_t)n;
	}
	return 0;
}

/* A new file with these bytes, durable but for its name. */
static int write_aside(const char *path, const uint8_t *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	int rc = write_all(fd, bytes, count);
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

bool durable_is_temporary(const char *name)
{
	size_t length = strlen(name), end = sizeof(temporary_end) - 1;

	return length > end && strcmp(name + length - end, temporary_end) == 0;
}

int durable_bytes_write(const char *path, const uint8_t *bytes, size_t count, bool *is_replaced)
{
	char aside[DURABLE_PATH_BYTES];

	*is_replaced = false;
	if (snprintf(aside, sizeof(aside), "%s%s", path, temporary_end) >= (int)sizeof(aside))
		return -ENAMETOOLONG;
	int rc = write_aside(aside, bytes, count);
	crash_point("before-rename");
	if (rc == 0 && rename(aside, path) != 0)
		rc = -errno;
	if (rc != 0) {
		unlink(aside);
		return rc;
	}
	*is_replaced = true;
	return sync_above(path);
}

int durable_file_write(const char *path, const ProtobufCMessage *message)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	bool is_replaced;

	if (bytes > FILE_BYTES_MAX)
		return -EMSGSIZE;
	uint8_t *file = malloc(HEAD_BYTES + bytes);
	if (file == NULL)
		return -ENOMEM;
	protobuf_c_message_pack(message, file + HEAD_BYTES);
	memcpy(file, magic, sizeof(magic));
	put_u32(file + 8, (uint32_t)bytes);
	put_u32(file + 12, crc32c(0, file + HEAD_BYTES, bytes));

	int rc = durable_bytes_write(path, file, HEAD_BYTES + bytes, &is_replaced);
	free(file);
	return rc;
}

static int read_fd(int fd, uint8_t *bytes, size_t count)
{
	while (count > 0) {
		ssize_t n = read(fd, bytes, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		bytes += n;
		count -= (size_t)n;
	}
	return 0;
}

int durable_bytes_read(const char *path, size_t bytes_max, uint8_t **bytes, size_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	uint8_t *all = NULL;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > bytes_max)
		rc = -EBADMSG;
	if (rc == 0 && (all = malloc((size_t)st.st_size + 1)) == NULL)
		rc = -ENOMEM;
	if (rc == 0)
		rc = read_fd(fd, all, (size_t)st.st_size);
	close(fd);
	if (rc != 0) {
		free(all);
		return rc;
	}
	*bytes = all;
	*count = (size_t)st.st_size;
	return 0;
}

/* What is wrong with the bytes of a file; NULL: nothing. */
static const char *fault_of(const uint8_t *file, size_t bytes)
{
	if (bytes < HEAD_BYTES)
		return "shorter than its head";
	if (memcmp(file, magic, sizeof(magic)) != 0)
		return "does not begin with WEIRDUR1";
	if (get_u32(file + 8) != bytes - HEAD_BYTES)
		return "torn: not as long as its head says";
	if (crc32c(0, file + HEAD_BYTES, bytes - HEAD_BYTES) != get_u32(file + 12))
		return "damaged: the checksum does not fit";
	return NULL;
}

int durable_file_read(const char *path, const ProtobufCMessageDescriptor *type,
		ProtobufCMessage **message, char text[DURABLE_TEXT_BYTES])
{
	uint8_t *file = NULL;
	size_t bytes = 0;
	int rc = durable_bytes_read(path, HEAD_BYTES + FILE_BYTES_MAX, &file, &bytes);

	if (rc != 0) {
		snprintf(text, DURABLE_TEXT_BYTES, "%s: %s", path,
				rc == -EBADMSG ? "no file of ours" : strerror(-rc));
		return rc;
	}
	const char *fault = fault_of(file, bytes);
	if (fault == NULL) {
		*message = protobuf_c_message_unpack(
				type, NULL, bytes - HEAD_BYTES, file + HEAD_BYTES);
		if (*message == NULL)
			fault = "no message of its kind";
	}
	free(file);
	if (fault == NULL)
		return 0;
	snprintf(text, DURABLE_TEXT_BYTES, "%s: %s", path, fault);
	return -EBADMSG;
}
