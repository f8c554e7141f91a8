#include "dataplane/checkpoint/channel_state_probe.h"

#include "dataplane/checkpoint/store.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static bool say(char *text, bool is_direct, const char *directory, int status)
{
	snprintf(text, CHANNEL_STATE_PROBE_TEXT_BYTES, "%s%s, in %.160s",
			is_direct ? "direct, buffers are not copied"
				  : "through the page cache: O_DIRECT fails with ",
			is_direct ? "" : strerrordesc_np(-status), directory);
	return is_direct;
}

/* One block, from memory that is aligned as a buffer's is. */
static int write_block(const char *path)
{
	uint8_t *memory = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
	int status = fd < 0 ? -errno : 0;

	if (status == 0 && posix_memalign((void **)&memory, BUF_BLOCK_BYTES,
					   STORE_ALIGN_BYTES) != 0)
		status = -ENOMEM;
	if (status == 0) {
		memset(memory, 0, STORE_ALIGN_BYTES);
		ssize_t n = pwrite(fd, memory, STORE_ALIGN_BYTES, 0);
		status = n == STORE_ALIGN_BYTES ? 0 : n < 0 ? -errno : -EIO;
	}
	free(memory);
	if (fd >= 0)
		close(fd);
	/* A file system may make the file and refuse it afterwards. */
	unlink(path);
	return status;
}

bool channel_state_probe(const char *directory, char text[CHANNEL_STATE_PROBE_TEXT_BYTES])
{
	char at[PATH_BYTES], path[PATH_BYTES + 32];
	int status = -ENOENT;

	snprintf(at, sizeof(at), "%s", directory);
	for (;;) {
		char *slash = strrchr(at, '/');

		snprintf(path, sizeof(path), "%s/.weir-probe-%d", at, (int)getpid());
		status = write_block(path);
		if (status != -ENOENT || slash == NULL || slash == at)
			return say(text, status == 0, at, status);
		*slash = '\0';
	}
}
