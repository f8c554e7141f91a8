#include "control/coordinator/record_log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, TAKEN_MAX = 64 };

static char directory[] = "/tmp/weir-log-XXXXXX";
static char path[128], text[RECORD_LOG_TEXT_BYTES];
static struct record_log l;

/* What was read. */
static struct {
	uint32_t count;
	size_t sizes[TAKEN_MAX];
	uint8_t first[TAKEN_MAX];
} taken;

static bool take(void *context, const uint8_t *record, size_t bytes)
{
	(void)context;
	cr_assert_lt(taken.count, (uint32_t)TAKEN_MAX);
	taken.sizes[taken.count] = bytes;
	taken.first[taken.count++] = record[0];
	return true;
}

static bool take_none(void *context, const uint8_t *record, size_t bytes)
{
	(void)context;
	(void)record;
	(void)bytes;
	return false;
}

static void init(void)
{
	bool is_replaced;

	cr_assert_not_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/log", directory);
	l.fd = -1;
	cr_assert_eq(record_log_write(&l, path, NULL, 0, &is_replaced), 0);
	cr_assert(is_replaced);
}

static void fini(void)
{
	char command[160];

	record_log_close(&l);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(record_log, .init = init, .fini = fini);

static int append(uint8_t first, size_t size)
{
	uint8_t bytes[8192];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(first + i % 7);
	return record_log_append(&l, (struct record_bytes){bytes, size});
}

static int reopen(void)
{
	record_log_close(&l);
	taken.count = 0;
	text[0] = 0;
	return record_log_open(&l, path, take, NULL, text);
}

/* The file as it is; to be freed. */
static uint8_t *whole_file(size_t *bytes)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *all = malloc((size_t)st.st_size);
	cr_assert_eq(read(fd, all, (size_t)st.st_size), st.st_size);
	close(fd);
	*bytes = (size_t)st.st_size;
	return all;
}

static const char *decode(const uint8_t *file, size_t bytes)
{
	struct record_log end;

	taken.count = 0;
	return record_log_decode(&end, file, bytes, take, NULL);
}

Test(record_log, gives_back_what_was_appended_in_order)
{
	for (uint8_t i = 1; i <= 20; i++) {
		cr_assert_eq(append(i, (size_t)i * i), 0);
		cr_assert_eq(reopen(), 0, "%s", text);
		cr_assert_eq(taken.count, i);
		cr_assert_eq(taken.first[i - 1], i);
		cr_assert_eq(taken.sizes[i - 1], (size_t)i * i);
	}
}

Test(record_log, says_that_there_is_none)
{
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(reopen(), -ENOENT);
	cr_assert_eq(append(1, 10), -ENOSPC, "nor can be appended to it");
}

Test(record_log, has_no_room_when_its_file_is_full_and_says_so_before_it_writes)
{
	uint32_t count = 0;
	size_t bytes;
	int rc;

	while ((rc = append(3, 6000)) == 0)
		count++;
	cr_assert_eq(rc, -ENOSPC);
	cr_assert_eq(count, RECORD_LOG_BYTES_MIN / 6032);
	free(whole_file(&bytes));
	cr_assert_eq(bytes, RECORD_LOG_BYTES_MIN);
	cr_assert_eq(reopen(), 0, "%s", text);
	cr_assert_eq(taken.count, count);
}

Test(record_log, written_anew_holds_what_it_was_given_and_room_for_more)
{
	static uint8_t big[300 * 1024];
	struct record_bytes records[2] = {{big, sizeof(big)}, {(const uint8_t *)"x", 1}};
	bool is_replaced;
	size_t bytes;

	memset(big, 7, sizeof(big));
	cr_assert_eq(append(1, 10), 0);
	cr_assert_eq(record_log_write(&l, path, records, 2, &is_replaced), 0);
	cr_assert_eq(append(9, 10), 0);
	cr_assert_eq(reopen(), 0, "%s", text);
	cr_assert_eq(taken.count, 3);
	cr_assert_eq(taken.sizes[0], sizeof(big));
	cr_assert_eq(taken.first[1], 'x');
	cr_assert_eq(taken.first[2], 9);
	free(whole_file(&bytes));
	cr_assert_gt(bytes, 4 * sizeof(big));
}

Test(record_log, refuses_a_record_that_makes_no_sense)
{
	cr_assert_eq(append(1, 10), 0);
	record_log_close(&l);
	cr_assert_eq(record_log_open(&l, path, take_none, NULL, text), -EBADMSG);
	cr_assert_not_null(strstr(text, path));
}

/* Every bit of the head, of three records and of what pads them. */
Test(record_log, refuses_any_flipped_bit, .timeout = 60)
{
	size_t bytes;

	cr_assert_eq(append(1, 100), 0);
	cr_assert_eq(append(2, 700), 0);
	cr_assert_eq(append(3, 50), 0);
	uint32_t end = l.end;
	uint8_t *file = whole_file(&bytes);
	cr_assert_null(decode(file, bytes));
	for (uint32_t i = 0; i < 8 * end; i++) {
		file[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_assert_not_null(decode(file, bytes), "bit %u", i);
		file[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	free(file);
}

Test(record_log, refuses_a_file_of_any_other_length, .timeout = 60)
{
	size_t bytes;

	cr_assert_eq(append(1, 1000), 0);
	uint8_t *file = whole_file(&bytes);
	for (size_t size = 0; size < bytes; size++) {
		uint8_t *part = malloc(size + 1); /* so that a sanitizer sees a step too far */

		memcpy(part, file, size);
		cr_assert_not_null(decode(part, size), "%zu", size);
		free(part);
		size += size > 4096 ? 1000 : 0;
	}
	free(file);
}

/* Of the last record any of its sectors may be missing: it was told to nobody. */
static void tear(size_t before, size_t size)
{
	size_t bytes;

	cr_assert_eq(append(1, before), 0);
	uint32_t from = l.end;
	cr_assert_eq(append(2, size), 0);
	uint32_t end = l.end;
	uint8_t *file = whole_file(&bytes), *torn = malloc(bytes);
	uint32_t first = from / SECTOR_BYTES, count = (end - 1) / SECTOR_BYTES - first + 1;

	cr_assert_leq(count, 12);
	for (uint32_t missing = 1; missing < 1u << count; missing++) {
		memcpy(torn, file, bytes);
		for (uint32_t i = 0; i < count; i++) {
			size_t at = (size_t)(first + i) * SECTOR_BYTES;
			size_t skip = at < from ? from - at : 0;

			if (missing >> i & 1)
				memset(torn + at + skip, 0, SECTOR_BYTES - skip);
		}
		const char *fault = decode(torn, bytes);
		cr_assert_null(fault, "%zu, %zu, sectors %x: %s", before, size, missing, fault);
		cr_assert_eq(taken.count, 1);
	}
	free(torn);
	free(file);
}

Test(record_log, drops_a_last_record_that_was_cut_off_at_any_sectors, .timeout = 60)
{
	bool is_replaced;

	for (size_t before = 1; before < 600; before += 37)
		for (size_t size = 1; size < 4000; size += 450) {
			cr_assert_eq(record_log_write(&l, path, NULL, 0, &is_replaced), 0);
			tear(before, size);
		}
}

Test(record_log, refuses_a_missing_sector_with_a_later_record_behind_it)
{
	size_t bytes;

	for (uint8_t i = 1; i <= 6; i++)
		cr_assert_eq(append(i, 900), 0);
	uint32_t end = l.end;
	uint8_t *file = whole_file(&bytes);
	for (uint32_t at = 0; at + SECTOR_BYTES <= end - 960; at += SECTOR_BYTES) {
		uint8_t kept[SECTOR_BYTES];

		memcpy(kept, file + at, SECTOR_BYTES);
		memset(file + at, 0, SECTOR_BYTES);
		cr_assert_not_null(decode(file, bytes), "at %u", at);
		memcpy(file + at, kept, SECTOR_BYTES);
	}
	free(file);
}

Test(record_log, refuses_a_record_that_stands_in_place_of_another)
{
	size_t bytes;

	for (uint8_t i = 1; i <= 3; i++)
		cr_assert_eq(append(1, 40), 0);
	uint8_t *file = whole_file(&bytes);
	memmove(file + 16 + 64, file + 16, 64);
	cr_assert_not_null(decode(file, bytes));
	free(file);
}

Test(record_log, takes_no_more_behind_a_record_that_was_cut_off)
{
	uint8_t half[SECTOR_BYTES] = {0};
	bool is_replaced;

	cr_assert_eq(append(1, 470), 0);
	uint32_t from = l.end;
	cr_assert_eq(append(2, 600), 0);
	int fd = open(path, O_RDWR);
	cr_assert_eq(pwrite(fd, half, sizeof(half), 2 * SECTOR_BYTES), SECTOR_BYTES);
	close(fd);
	cr_assert_lt(from, 2u * SECTOR_BYTES);
	cr_assert_eq(reopen(), 0, "%s", text);
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(append(3, 10), -ENOSPC, "it has to be written anew");
	cr_assert_eq(record_log_write(&l, path, NULL, 0, &is_replaced), 0);
	cr_assert_eq(append(3, 10), 0);
	cr_assert_eq(reopen(), 0, "%s", text);
	cr_assert_eq(taken.count, 1);
	cr_assert_eq(taken.first[0], 3);
}
