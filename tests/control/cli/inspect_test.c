/* weir inspect: whole, damaged and foreign checkpoints, for people and for programs. */

#include "control/cli/inspect.h"

#include "control/cli/exit_codes.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"
#include "tests/support/printed.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64], file[128], in_flight[128], output[128];
static uint8_t bytes[8192];
static char *printed;

/* Runs the command with what it prints in `printed`. */
static int run(const char *path, bool json)
{
	char *args[4] = {"inspect", (char *)(uintptr_t)path, json ? "--json" : NULL, NULL};
	int code;

	free(printed);
	printed = printed_by(inspect_command, json ? 3 : 2, args, output, &code);
	return code;
}

/* A file with 100 bytes in flight in one input channel of subtask 0 of "count". */
static void write_in_flight(struct channel_state_handle *h)
{
	static uint8_t room[8192 + 144];
	struct channel_state_header header = {17, 8192, 144, 1};
	struct channel_state_section section = {.checkpoint_id = 17, .vertex_uid = "count",
		.channel = 3, .bytes = 100, .chunk_count = 1};
	struct channel_state_chunk chunk = {4096, 100, 0, 7, crc32c(0, bytes, 100)};
	int fd = open(in_flight, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	channel_state_encode_header(room, &header);
	memcpy(room + 4096, bytes, 100);
	channel_state_encode_section(room + 8192, &section);
	channel_state_encode_chunk(room + 8192 + CHANNEL_STATE_SECTION_BYTES, &chunk);
	*h = (struct channel_state_handle){.channel = 3, .file = "channels-00c0ffee",
		.offset = 8192, .bytes = 100, .buf_count = 1,
		.crc = channel_state_seal_section(room + 8192, 1)};
	cr_assert_eq(write(fd, room, sizeof(room)), (ssize_t)sizeof(room));
	close(fd);
}

static void write_checkpoint(void)
{
	struct channel_state_handle channel;

	struct state_handle handles[3] = {
		{.uid = "parse", .name = "position", .kind = WEIR_STATE_VALUE, .value_bytes = 8,
			.item_count = 1, .bytes = bytes, .size = 8, .crc = crc32c(0, bytes, 8)},
		{.uid = "count", .name = "counters", .kind = WEIR_STATE_VALUE, .value_bytes = 16,
			.version = 2, .item_count = 1, .bytes = bytes, .size = 16,
			.crc = crc32c(0, bytes, 16)},
		{.uid = "count", .name = "counts", .kind = WEIR_STATE_LIST, .value_bytes = 8,
			.item_count = 500, .file = "count-0-00c0ffee", .offset = 4096,
			.size = 4000, .crc = crc32c(0, bytes + 4096, 4000)},
	};
	struct task_state t = {.vertex_uid = "count", .subtask_index = 0, .parallelism = 2,
		.group_count = 128, .groups = {0, 63}, .handle_count = 3, .handles = handles,
		.channel_count = 1, .channels = &channel};
	static uint8_t state[1024];
	struct metadata_subtask subtasks[2] = {{0, false, {state, 0}},
		{1, true, {NULL, 0}}};
	struct metadata_vertex vertices[2] = {{"count", 2, 128, false, 2, subtasks},
		{"over", 1, 128, true, 0, NULL}};
	struct metadata_override override = {"source.path", "a.pcap"};
	struct metadata m = {.checkpoint_id = 17, .job.id.bytes = {0xab}, .job_name = "flow\x1b[2J",
		.triggered_ms = 1700000000000, .completed_ms = 1700000000042,
		.key_group_count = 128, .weir_version = "0.1.0",
		.job_text = "name: flow\nvertices: []\n", .vertex_count = 2,
		.vertices = vertices, .override_count = 1, .overrides = &override};
	uint64_t size;
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	write_in_flight(&channel);
	subtasks[0].state.size = task_state_encoded_bytes(&t);
	task_state_encode(&t, state);
	/* Behind the state there are zeros up to the alignment of the store. */
	cr_assert_eq(write(fd, bytes, 4096 + 4000), 4096 + 4000);
	cr_assert_eq(ftruncate(fd, 8192), 0);
	close(fd);
	cr_assert_eq(metadata_write(directory, &m, &size), 0);
}

static void begin(void)
{
	make_test_directory(directory);
	snprintf(file, sizeof(file), "%s/count-0-00c0ffee", directory);
	snprintf(in_flight, sizeof(in_flight), "%s/channels-00c0ffee", directory);
	snprintf(output, sizeof(output), "%s.out", directory);
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + i / 256);
	write_checkpoint();
}

static void end(void)
{
	free(printed);
	unlink(output);
	remove_test_directory(directory);
}

TestSuite(inspect, .init = begin, .fini = end);

static void says(const char *word)
{
	cr_assert_not_null(strstr(printed, word), "no \"%s\" in:\n%s", word, printed);
}

Test(inspect, shows_what_is_in_a_whole_checkpoint)
{
	cr_assert_eq(run(directory, false), WEIR_EXIT_DONE);
	says("checkpoint 17 of job flow?[2J (ab000000000000000000000000000000)");
	says("triggered  2023-11-14 22:13:20.000 UTC");
	says("42 ms later");
	says("4124 bytes, 4100 of them in files");
	says("in flight        input 0.3            bufs             1            100");
	says("ok, channels-00c0ffee at 8192");
	says("count-0-00c0ffee at 4096");
	says("ok, inline");
	says("finished");
	says("set source.path=a.pcap");
	says("\njob file:\n  name: flow\n  vertices: []\n");
	says("whole: every file is there, every checksum is right");
}

Test(inspect, is_read_by_programs_as_json)
{
	json_t *json, *vertex, *subtask, *operator, *state;

	cr_assert_eq(run(directory, true), WEIR_EXIT_DONE);
	json = json_loads(printed, 0, NULL);
	cr_assert_not_null(json, "%s", printed);
	cr_assert_eq(json_integer_value(json_object_get(json, "checkpoint_id")), 17);
	cr_assert(json_is_true(json_object_get(json, "whole")));
	vertex = json_array_get(json_object_get(json, "vertices"), 0);
	cr_assert_eq(json_array_size(json_object_get(vertex, "subtasks")), 2);
	subtask = json_array_get(json_object_get(vertex, "subtasks"), 0);
	cr_assert_eq(json_integer_value(json_object_get(subtask, "bytes")), 4124);
	cr_assert_eq(json_array_size(json_object_get(subtask, "operators")), 2);
	operator = json_array_get(json_object_get(subtask, "operators"), 1);
	cr_assert_str_eq(json_string_value(json_object_get(operator, "uid")), "count");
	cr_assert_eq(json_integer_value(json_object_get(operator, "bytes")), 4016);
	state = json_array_get(json_object_get(operator, "states"), 1);
	cr_assert_str_eq(json_string_value(json_object_get(state, "file")), "count-0-00c0ffee");
	cr_assert(json_is_true(json_object_get(state, "ok")));
	json_t *channel = json_array_get(json_object_get(subtask, "channels"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(channel, "side")), "input");
	cr_assert_eq(json_integer_value(json_object_get(channel, "channel")), 3);
	cr_assert_eq(json_integer_value(json_object_get(channel, "bytes")), 100);
	cr_assert(json_is_true(json_object_get(channel, "ok")));
	json_decref(json);
}

Test(inspect, names_damage_of_what_was_in_flight)
{
	uint8_t byte = 0x55;
	int fd = open(in_flight, O_RDWR);

	cr_assert_eq(pwrite(fd, &byte, 1, 4150), 1);
	close(fd);
	cr_assert_eq(run(directory, false), WEIR_EXIT_RESTORE_REFUSED);
	says("channels-00c0ffee: offset 4096: the checksum of 100 bytes in flight is");
	says("DAMAGED: 1 problems; this checkpoint will not be restored");
}

Test(inspect, names_what_is_damaged)
{
	uint8_t byte = 0x55;
	int fd = open(file, O_RDWR);
	json_t *json;

	cr_assert_eq(pwrite(fd, &byte, 1, 4100), 1);
	close(fd);
	cr_assert_eq(run(directory, false), WEIR_EXIT_RESTORE_REFUSED);
	says("DAMAGED: /tmp/weir-test-");
	says("offset 4096: the checksum of 4000 bytes is");
	says("DAMAGED: 1 problems; this checkpoint will not be restored");
	cr_assert_eq(run(directory, true), WEIR_EXIT_RESTORE_REFUSED);
	json = json_loads(printed, 0, NULL);
	cr_assert(json_is_false(json_object_get(json, "whole")));
	cr_assert_eq(json_integer_value(json_object_get(json, "problem_count")), 1);
	json_decref(json);
}

Test(inspect, says_that_there_is_no_checkpoint)
{
	json_t *json;

	cr_assert_eq(run("/tmp/weir-test-nowhere", false), WEIR_EXIT_RESTORE_REFUSED);
	cr_assert_eq(run("/tmp", true), WEIR_EXIT_RESTORE_REFUSED);
	json = json_loads(printed, 0, NULL);
	cr_assert_not_null(json, "%s", printed);
	cr_assert_not_null(strstr(json_string_value(json_object_get(json, "problem")),
			"no _metadata in it"));
	json_decref(json);
}

Test(inspect, wants_one_path)
{
	char *none[] = {"inspect", NULL}, *two[] = {"inspect", "a", "b", NULL};
	char *wrong[] = {"inspect", "--what", NULL};

	cr_assert_eq(inspect_command(1, none), WEIR_EXIT_USAGE);
	cr_assert_eq(inspect_command(3, two), WEIR_EXIT_USAGE);
	cr_assert_eq(inspect_command(2, wrong), WEIR_EXIT_USAGE);
}
