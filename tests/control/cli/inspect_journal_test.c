/* weir inspect of journals: whole ones, and what a crash or a bad disk made of them. */

#include "control/cli/inspect.h"

#include "control/cli/exit_codes.h"
#include "dataplane/journal/journal_format.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/support/printed.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID = 77, PER_BLOCK = 3, SNAP = 8, SECOND = 1000000000 };

static char directory[64], journal[96], output[96];
static char *printed;

static int run(const char *path, bool json)
{
	char *args[4] = {"inspect", (char *)(uintptr_t)path, json ? "--json" : NULL, NULL};
	int code;

	free(printed);
	printed = printed_by(inspect_command, json ? 3 : 2, args, output, &code);
	return code;
}

static void segment_path(uint64_t ordinal, char path[160])
{
	char name[JOURNAL_NAME_BYTES];

	journal_name(name, ordinal);
	snprintf(path, 160, "%s/%s", journal, name);
}

/* A segment of so many blocks with three packets each, a second apart, and a page of room. */
static void write_segment(uint64_t ordinal, uint64_t first, uint32_t blocks)
{
	static uint8_t room[JOURNAL_ALIGN_BYTES * 16];
	const struct journal_segment_header header = {ID, ordinal, first, 256};
	uint32_t at = JOURNAL_ALIGN_BYTES;
	char path[160];

	memset(room, 0, sizeof(room));
	journal_encode_header(room, &header);
	for (uint32_t b = 0; b < blocks; b++) {
		struct journal_block_head head = {ordinal, first + b * PER_BLOCK,
				first + b * PER_BLOCK, PER_BLOCK, 0};

		for (uint32_t i = 0; i < PER_BLOCK; i++) {
			const struct captured_packet packet = {
					.time_ns = (int64_t)(head.sequence + i) * SECOND,
					.original_bytes = 60 + i,
					.link_type = 1};

			head.bytes += captured_packet_put(
					room + at + JOURNAL_BLOCK_HEAD_BYTES + head.bytes, &packet,
					(const uint8_t *)"12345678", SNAP);
		}
		at += journal_seal_block(room + at, &head);
	}
	segment_path(ordinal, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	cr_assert_eq(write(fd, room, at + JOURNAL_ALIGN_BYTES), at + JOURNAL_ALIGN_BYTES);
	close(fd);
}

/* Another byte there; nothing but one bit of it. */
static void spoil(uint64_t ordinal, off_t at)
{
	uint8_t byte;
	char path[160];

	segment_path(ordinal, path);
	int fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 4;
	cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* Three segments: packets 9-14, 15-20, 21-29. */
static void begin(void)
{
	snprintf(directory, sizeof(directory), "/tmp/weir-journal-XXXXXX");
	cr_assert_not_null(mkdtemp(directory));
	snprintf(journal, sizeof(journal), "%s/subtask-0", directory);
	snprintf(output, sizeof(output), "%s/output", directory);
	cr_assert_eq(mkdir(journal, 0755), 0);
	write_segment(4, 9, 2);
	write_segment(5, 15, 2);
	write_segment(6, 21, 3);
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert_eq(system(command), 0);
	free(printed);
	printed = NULL;
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* The segment of that index as JSON has it, after a run that must end so. */
static json_t *segment_after(int code, size_t index)
{
	cr_assert_eq(run(journal, true), code);
	json_t *all = json_loads(printed, 0, NULL);
	cr_assert_not_null(all, "%s", printed);
	json_t *one = json_array_get(json_object_get(all, "journals"), 0);
	json_t *segment = json_array_get(json_object_get(one, "segments"), index);

	json_incref(segment);
	cr_assert_eq(json_is_true(json_object_get(all, "whole")), code == WEIR_EXIT_DONE);
	json_decref(all);
	return segment;
}

static const char *text_at(const json_t *segment, const char *key)
{
	return json_string_value(json_object_get(segment, key));
}

TestSuite(inspect_journal, .init = begin, .fini = end);

Test(inspect_journal, shows_segments_packets_and_bytes)
{
	cr_assert_eq(run(journal, false), WEIR_EXIT_DONE);
	cr_expect_not_null(strstr(printed, "packets    21,"), "%s", printed);
	cr_expect_not_null(strstr(printed, "15-20"), "%s", printed);
	cr_expect_not_null(strstr(printed, "1970-01-01 00:00:29.000"), "%s", printed);
	cr_expect_not_null(strstr(printed, "by no checkpoint yet"), "%s", printed);
	json_t *s = segment_after(WEIR_EXIT_DONE, 2);
	cr_expect_eq(number(s, "first"), 21);
	cr_expect_eq(number(s, "end"), 30);
	cr_expect_eq(number(s, "blocks"), 3);
	cr_expect_eq(number(json_object_get(s, "first_packet"), "time_ns"), INT64_C(21) * SECOND);
	cr_expect_eq(number(json_object_get(s, "last_packet"), "bytes"), 62);
	cr_expect_str_eq(text_at(s, "state"), "whole");
	json_decref(s);
}

Test(inspect_journal, finds_the_journals_of_all_subtasks)
{
	cr_assert_eq(run(directory, true), WEIR_EXIT_DONE);
	cr_expect_not_null(strstr(printed, "subtask-0"), "%s", printed);
	cr_expect_not_null(strstr(printed, "\"packets\": 21"), "%s", printed);
}

/* The last block is not whole, and nobody says that it was durable. */
Test(inspect_journal, a_torn_end_is_no_damage)
{
	spoil(6, 3 * JOURNAL_ALIGN_BYTES + JOURNAL_BLOCK_HEAD_BYTES + 5);
	json_t *s = segment_after(WEIR_EXIT_DONE, 2);

	cr_expect_str_eq(text_at(s, "state"), "torn");
	cr_expect_eq(number(s, "end"), 27);
	cr_expect_not_null(strstr(text_at(s, "text"), "durable for nobody"));
	json_decref(s);
}

Test(inspect_journal, a_durable_block_that_cannot_be_read_is_damage)
{
	spoil(6, JOURNAL_ALIGN_BYTES + JOURNAL_BLOCK_HEAD_BYTES + 5);
	json_t *s = segment_after(WEIR_EXIT_RESTORE_REFUSED, 2);

	cr_expect_str_eq(text_at(s, "state"), "damaged");
	cr_expect_eq(number(s, "end"), 21);
	cr_expect_eq(number(s, "lost"), 6, "the third block knows of two before it");
	cr_expect_not_null(strstr(text_at(s, "text"), "checksum of a block"));
	json_decref(s);
	cr_assert_eq(run(journal, false), WEIR_EXIT_RESTORE_REFUSED);
	cr_expect_not_null(strstr(printed, "DAMAGED: 1 of 3"), "%s", printed);
}

Test(inspect_journal, a_segment_that_ends_before_the_next_begins_is_damaged)
{
	char path[160];

	segment_path(5, path);
	cr_assert_eq(truncate(path, 2 * JOURNAL_ALIGN_BYTES), 0);
	json_t *s = segment_after(WEIR_EXIT_RESTORE_REFUSED, 1);

	cr_expect_str_eq(text_at(s, "state"), "damaged");
	cr_expect_eq(number(s, "lost"), 3);
	cr_expect_not_null(strstr(text_at(s, "text"), "the next segment begins at record 21"));
	json_decref(s);
}

Test(inspect_journal, a_header_is_torn_only_where_nothing_follows)
{
	spoil(5, 20);
	json_t *s = segment_after(WEIR_EXIT_RESTORE_REFUSED, 1);

	cr_expect_str_eq(text_at(s, "state"), "damaged");
	cr_expect_not_null(strstr(text_at(s, "text"), "checksum of its header"));
	json_decref(s);
	spoil(5, 20);
	write_segment(7, 30, 0);
	spoil(7, 20);
	s = segment_after(WEIR_EXIT_DONE, 3);
	cr_expect_str_eq(text_at(s, "state"), "torn");
	json_decref(s);
}

Test(inspect_journal, a_segment_of_another_journal_is_damage)
{
	char path[160], other[160];

	segment_path(6, path);
	segment_path(5, other);
	cr_assert_eq(rename(path, other), 0);
	json_t *s = segment_after(WEIR_EXIT_RESTORE_REFUSED, 1);
	cr_expect_not_null(strstr(text_at(s, "text"), "another segment under this name"));
	json_decref(s);
}
