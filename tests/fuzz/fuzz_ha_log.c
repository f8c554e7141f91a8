/* Any bytes as the log of a job's checkpoints: refused or read, never worse.  The same bytes as its
 * records too, with checksums put right, so that what is behind them is reached. */

#include "control/coordinator/ha_log.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 16 * 1024, HEAD_BYTES = 16, RECORD_BYTES_MAX = 2048, PATH_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const uint8_t *bytes, size_t count)
{
	char directory[] = "/dev/shm/weir-fuzz-XXXXXX", path[PATH_BYTES], text[HA_LOG_TEXT_BYTES];
	Weir__CompletedRecord **records;
	struct ha_log *l;
	int64_t last = 0;
	uint32_t n;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/checkpoints", directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
	close(fd);
	if (ha_log_open(&l, directory, text) == 0) {
		CHECK(ha_log_next_id(l) >= 1);
		ha_log_read(l, &records, &n);
		for (uint32_t i = 0; i < n; i++) {
			CHECK(records[i]->id > last);
			last = records[i]->id;
			ha_log_forget(l, last);
			weir__completed_record__free_unpacked(records[i], NULL);
		}
		free(records);
		ha_log_close(l);
	}
	unlink(path);
	rmdir(directory);
}

static void put(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value)); /* this runs where numbers are little endian */
}

/* The first two bytes of each say how long it is. */
static size_t put_records(uint8_t *file, const uint8_t *data, size_t size)
{
	size_t end = HEAD_BYTES;
	uint32_t number = 0, sum = 0;

	while (size > 2) {
		size_t bytes = (data[0] | (size_t)data[1] << 8) % RECORD_BYTES_MAX + 1;

		if (bytes > size - 2)
			bytes = size - 2;
		size_t room = (HEAD_BYTES + bytes + 1 + 15) / 16 * 16;
		if (room > FILE_BYTES - end)
			break;
		sum = crc32c(sum, data + 2, bytes);
		put(file + end, (uint32_t)bytes);
		put(file + end + 4, ++number);
		put(file + end + 8, sum);
		put(file + end + 12, crc32c(0, file + end, 12));
		memcpy(file + end + HEAD_BYTES, data + 2, bytes);
		file[end + HEAD_BYTES + bytes] = 0xa5;
		end += room;
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = calloc(1, FILE_BYTES);

	CHECK(file != NULL);
	memcpy(file, "WEIRLOG1", 8);
	put(file + 8, FILE_BYTES);
	put(file + 12, crc32c(0, file, 12));
	size_t end = put_records(file, data, size);
	read_file(file, FILE_BYTES);
	/* The bytes once more, where the next record would be. */
	if (size <= FILE_BYTES - end)
		memcpy(file + end, data, size);
	read_file(file, FILE_BYTES);
	free(file);
	read_file(data, size);
	return 0;
}
