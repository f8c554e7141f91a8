/*
 * make_seeds: what the fuzzers of messages, metadata, states and the coordinator's log begin with:
 * one message of each kind with everything in it, one `_metadata`, one state, two records.
 *
 *   make_seeds message|metadata|task_state|ha_log DIRECTORY
 *
 * Messages are filled in by their descriptors, so that a new field or kind is in at once.  Each
 * seed must be accepted by its decoder; otherwise the exit status is 1.
 */

#include "control/metadata/metadata.h"
#include "control/proto/durable.pb-c.h"
#include "control/proto/message.h"
#include "dataplane/base/arena.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MEMORY_BYTES = 1 << 20,
	ROWS = 2,             /* of each repeated field */
	MESSAGES_MAX = 256,   /* nested ones of one seed */
	METADATA_HEAD_BYTES = 24,
	PATH_BYTES = 512,
};

/* ---- files ---- */

static void write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/seed-%s", directory, name);

	FILE *f = fopen(path, "w");

	if (f == NULL || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

/* ---- a state ---- */

static size_t encode_state(uint8_t **out)
{
	static const uint8_t inline_bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct state_handle handles[] = {
		{.uid = "count", .name = "position", .kind = WEIR_STATE_VALUE, .value_bytes = 8,
			.version = 1, .item_count = 1, .bytes = inline_bytes, .size = 8,
			.crc = crc32c(0, inline_bytes, 8)},
		{.uid = "count", .name = "counts", .kind = WEIR_STATE_KEYED, .key_bytes = 8,
			.value_bytes = 8, .version = 2, .item_count = 100, .file = "state-1",
			.offset = 4096, .size = 2048, .crc = 77},
		{.uid = "sink", .name = "parts", .kind = WEIR_STATE_LIST, .value_bytes = 64,
			.version = 1, .item_count = 2, .file = "state-1", .offset = 8192,
			.size = 128, .crc = 78},
	};
	const struct channel_state_handle channels[] = {
		{.side = CHANNEL_STATE_INPUT, .gate = 0, .channel = 1, .buf_count = 2,
			.bytes = 100, .file = "channels-1", .offset = 64, .crc = 79},
		{.side = CHANNEL_STATE_OUTPUT, .gate = 0, .channel = 0, .buf_count = 1,
			.bytes = 50, .file = "channels-1", .offset = 512, .crc = 80},
	};
	const struct task_state state = {.vertex_uid = "counting", .subtask_index = 1,
			.parallelism = 2, .group_count = 128,
			.groups = key_group_range_of(1, 2, 128), .handle_count = 3,
			.handles = handles, .channel_count = 2, .channels = channels};
	size_t size = task_state_encoded_bytes(&state);

	*out = malloc(size);
	CHECK(*out != NULL);
	task_state_encode(&state, *out);
	return size;
}

static bool make_state(const char *directory)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state *t;
	uint8_t *bytes;
	size_t size = encode_state(&bytes);
	int rc = task_state_decode(&t, bytes, size, text);

	if (rc == 0)
		task_state_free(t);
	else
		fprintf(stderr, "the state is refused: %s\n", text);
	write_file(directory, "state", bytes, size);
	free(bytes);
	return rc == 0;
}

/* ---- metadata ---- */

static void fill_metadata(struct metadata *m, const struct metadata_bytes *state)
{
	static const struct metadata_named named = {"files", 1, {(const uint8_t *)"ab", 2}};
	static const struct metadata_override override = {"count.keys", "7"};
	static const struct metadata_plugin plugin = {"/lib/p.so", 4096, 7};
	static const char *const sink = "/out";
	static struct metadata_subtask subtasks[2];
	static struct metadata_vertex vertices[2];

	subtasks[0] = (struct metadata_subtask){.index = 0, .is_finished = true};
	subtasks[1] = (struct metadata_subtask){.index = 1, .state = *state};
	vertices[0] = (struct metadata_vertex){
			.uid = "ingest", .parallelism = 1, .max_parallelism = 128,
			.is_finished = true};
	vertices[1] = (struct metadata_vertex){.uid = "counting", .parallelism = 2,
			.max_parallelism = 128, .subtask_count = 2, .subtasks = subtasks};
	*m = (struct metadata){.checkpoint_id = 7, .job_name = "job", .kind = METADATA_SAVEPOINT,
			.properties = 3, .triggered_ms = 1000, .completed_ms = 1100,
			.key_group_count = 128, .weir_version = "0", .job_text = "name: job\n",
			.master_count = 1, .masters = &named, .coordinator_count = 1,
			.coordinators = &named, .vertex_count = 2, .vertices = vertices,
			.override_count = 1, .overrides = &override, .plugin_count = 1,
			.plugins = &plugin, .sink_directory_count = 1, .sink_directories = &sink};
}

/* The fuzzer puts a head in front of its bytes, so the seed has none. */
static bool strip_head(const char *directory, const char *path)
{
	static uint8_t bytes[65536];
	char text[METADATA_TEXT_BYTES];
	struct metadata *m;
	FILE *f = fopen(path, "r");
	size_t size = f == NULL ? 0 : fread(bytes, 1, sizeof(bytes), f);

	if (f != NULL)
		fclose(f);
	if (size <= METADATA_HEAD_BYTES || metadata_decode(&m, bytes, size, path, text) != 0) {
		fprintf(stderr, "the metadata are refused: %s\n", size == 0 ? path : text);
		return false;
	}
	metadata_free(m);
	write_file(directory, "metadata", bytes + METADATA_HEAD_BYTES, size - METADATA_HEAD_BYTES);
	return true;
}

static bool make_metadata(const char *directory)
{
	char path[PATH_BYTES];
	uint8_t *state;
	struct metadata_bytes bytes = {.size = encode_state(&state)};
	struct metadata m;
	uint64_t size;

	bytes.data = state;
	fill_metadata(&m, &bytes);
	snprintf(path, sizeof(path), "%s/" METADATA_FILE, directory);
	unlink(path);

	bool is_good = metadata_write(directory, &m, &size) == 0 && strip_head(directory, path);

	unlink(path);
	free(state);
	return is_good;
}

/* ---- messages ---- */

/* Messages that were made and are yet to be filled in. */
struct filling {
	struct arena arena;
	ProtobufCMessage *open[MESSAGES_MAX];
	uint32_t count;
	ProtobufCBinaryData state;
};

static void *take(struct filling *f, size_t bytes)
{
	void *memory = arena_take(&f->arena, bytes);

	CHECK(memory != NULL);
	memset(memory, 0, bytes);
	return memory;
}

static ProtobufCMessage *make_message(struct filling *f, const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = take(f, d->sizeof_message);

	d->message_init(m);
	CHECK(f->count < MESSAGES_MAX);
	f->open[f->count++] = m;
	return m;
}

static size_t value_bytes(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 4; /* a bool of protobuf-c is an int */
	}
}

static void fill_value(struct filling *f, const ProtobufCFieldDescriptor *field, void *at)
{
	static const uint8_t id[17] = "0123456789abcdef";
	const uint64_t one = 1;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		*(char **)at = (char *)(uintptr_t)field->name;
		return;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)at = make_message(f, field->descriptor);
		return;
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)at = strcmp(field->name, "state") == 0
				? f->state
				: (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)id};
		return;
	default:
		memcpy(at, &one, value_bytes(field));
	}
}

static void fill_field(
		struct filling *f, ProtobufCMessage *m, const ProtobufCFieldDescriptor *field)
{
	uint8_t *at = (uint8_t *)m + field->offset;

	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		uint32_t *chosen = (void *)((uint8_t *)m + field->quantifier_offset);

		if (*chosen != 0 && *chosen != field->id)
			return;
		*chosen = field->id;
	}
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		uint8_t *rows = take(f, ROWS * value_bytes(field));

		for (size_t i = 0; i < ROWS; i++)
			fill_value(f, field, rows + i * value_bytes(field));
		*(size_t *)(void *)((uint8_t *)m + field->quantifier_offset) = ROWS;
		*(void **)(void *)at = rows;
		return;
	}
	fill_value(f, field, at);
}

static void fill_all(struct filling *f)
{
	while (f->count > 0) {
		ProtobufCMessage *m = f->open[--f->count];

		for (unsigned int i = 0; i < m->descriptor->n_fields; i++)
			fill_field(f, m, &m->descriptor->fields[i]);
	}
}

/* One message of that kind with everything in it, and in what is in it. */
static bool make_envelope(
		const char *directory, struct filling *f, const ProtobufCFieldDescriptor *kind)
{
	Weir__Envelope *e = (Weir__Envelope *)make_message(f, &weir__envelope__descriptor);
	Weir__Envelope *again;
	uint8_t *frame;
	size_t size;

	e->body_case = (Weir__Envelope__BodyCase)kind->id;
	fill_all(f);
	CHECK(message_pack(e, &frame, &size) == 0);

	bool is_good = message_unpack(frame, size, &again) == 0;

	if (is_good)
		message_free(again);
	else
		fprintf(stderr, "a message %s with everything in it is refused\n", kind->name);
	write_file(directory, kind->name, frame + MESSAGE_HEAD_BYTES, size - MESSAGE_HEAD_BYTES);
	free(frame);
	return is_good;
}

static bool make_messages(const char *directory)
{
	const ProtobufCMessageDescriptor *d = &weir__envelope__descriptor;
	uint8_t *state;
	size_t state_bytes = encode_state(&state);
	bool is_good = true;

	for (unsigned int i = 0; i < d->n_fields; i++) {
		struct filling f = {.state = {state_bytes, state}};

		arena_open(&f.arena, MEMORY_BYTES, MEMORY_BYTES);
		is_good = make_envelope(directory, &f, &d->fields[i]) && is_good;
		arena_close(&f.arena);
	}
	free(state);
	return is_good;
}

/* ---- the coordinator's log ---- */

/* How long a record is goes before it, as the fuzzer reads it. */
static bool make_ha_log(const char *directory)
{
	uint8_t bytes[2048];
	size_t end = 0;

	for (int64_t id = 1; id <= 2; id++) {
		struct filling f = {.count = 0};

		arena_open(&f.arena, MEMORY_BYTES, MEMORY_BYTES);
		ProtobufCMessage *record = make_message(&f, &weir__log_record__descriptor);
		fill_all(&f);
		((Weir__LogRecord *)record)->completed->id = id;
		size_t size = protobuf_c_message_get_packed_size(record);
		CHECK(end + 2 + size <= sizeof(bytes));
		bytes[end] = (uint8_t)(size - 1);
		bytes[end + 1] = (uint8_t)((size - 1) >> 8);
		end += 2 + protobuf_c_message_pack(record, bytes + end + 2);
		arena_close(&f.arena);
	}
	write_file(directory, "records", bytes, end);
	return true;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "message") == 0)
		return make_messages(argv[2]) ? 0 : 1;
	if (argc == 3 && strcmp(argv[1], "metadata") == 0)
		return make_metadata(argv[2]) ? 0 : 1;
	if (argc == 3 && strcmp(argv[1], "task_state") == 0)
		return make_state(argv[2]) ? 0 : 1;
	if (argc == 3 && strcmp(argv[1], "ha_log") == 0)
		return make_ha_log(argv[2]) ? 0 : 1;
	fprintf(stderr, "usage: make_seeds message|metadata|task_state|ha_log DIRECTORY\n");
	return 2;
}
