/* task_state: what goes in comes out, and nothing that is not right comes in. */

#include "dataplane/checkpoint/task_state.h"

#include "dataplane/base/crc.h"
#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/state.pb-c.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t position[16] = "sixteen bytes!!";

static struct state_handle handles[4];
static struct channel_state_handle channels[3];

static struct task_state sample(void)
{
	handles[0] = (struct state_handle){.uid = "source", .name = "position",
		.kind = WEIR_STATE_VALUE, .value_bytes = 16, .version = 3, .item_count = 1,
		.bytes = position, .size = 16, .crc = crc32c(0, position, 16)};
	handles[1] = (struct state_handle){.uid = "source", .name = "files",
		.kind = WEIR_STATE_LIST, .value_bytes = 100, .bytes = position};
	handles[2] = (struct state_handle){.uid = "count", .name = "counts",
		.kind = WEIR_STATE_KEYED, .key_bytes = 8, .value_bytes = 8, .version = 1,
		.item_count = 1000, .file = "count-0-00c0ffee", .offset = 8192, .size = 16128,
		.crc = 0xdeadbeef};
	handles[3] = (struct state_handle){.uid = "count", .name = "open",
		.kind = WEIR_STATE_LIST, .value_bytes = 8, .version = 1, .item_count = 2,
		.bytes = position, .size = 16, .crc = crc32c(0, position, 16)};
	channels[0] = (struct channel_state_handle){.side = CHANNEL_STATE_INPUT, .gate = 0,
		.channel = 2, .file = "channels-00c0ffee", .offset = 65536, .bytes = 40000,
		.buf_count = 3, .crc = 0xfeedface};
	channels[1] = channels[0];
	channels[1].gate = 1;
	channels[1].channel = 0;
	channels[1].offset = 65744;
	channels[2] = channels[1];
	channels[2].side = CHANNEL_STATE_OUTPUT;
	channels[2].gate = 0;
	return (struct task_state){.vertex_uid = "count", .subtask_index = 1, .parallelism = 4,
		.group_count = 128, .groups = {32, 63}, .handle_count = 4, .handles = handles,
		.channel_count = 3, .channels = channels};
}

static uint8_t *encode(const struct task_state *t, size_t *size)
{
	uint8_t *bytes;

	*size = task_state_encoded_bytes(t);
	bytes = malloc(*size + 1);
	bytes[*size] = 0x5a;
	task_state_encode(t, bytes);
	cr_assert_eq(bytes[*size], 0x5a);
	return bytes;
}

/* -EBADMSG with a text that has `word` in it. */
static void refused(const struct task_state *t, const char *word)
{
	char text[TASK_STATE_TEXT_BYTES] = "";
	struct task_state *back;
	size_t size;
	uint8_t *bytes = encode(t, &size);

	cr_assert_eq(task_state_decode(&back, bytes, size, text), -EBADMSG, "%s", word);
	cr_assert_not_null(strstr(text, word), "%s", text);
	free(bytes);
}

static void compare(const struct state_handle *a, const struct state_handle *b)
{
	cr_assert_str_eq(a->uid, b->uid);
	cr_assert_str_eq(a->name, b->name);
	cr_assert_eq(a->kind, b->kind);
	cr_assert_eq(a->key_bytes, b->key_bytes);
	cr_assert_eq(a->value_bytes, b->value_bytes);
	cr_assert_eq(a->version, b->version);
	cr_assert_eq(a->item_count, b->item_count);
	cr_assert_eq(a->size, b->size);
	cr_assert_eq(a->crc, b->crc);
	cr_assert_eq(a->offset, b->offset);
	cr_assert_eq(a->file == NULL, b->file == NULL);
	if (a->file != NULL)
		cr_assert_str_eq(a->file, b->file);
	else
		cr_assert_eq(memcmp(a->bytes, b->bytes, a->size), 0);
}

static void compare_channel(
		const struct channel_state_handle *a, const struct channel_state_handle *b)
{
	cr_assert_eq(a->side, b->side);
	cr_assert_eq(a->gate, b->gate);
	cr_assert_eq(a->channel, b->channel);
	cr_assert_eq(a->offset, b->offset);
	cr_assert_eq(a->bytes, b->bytes);
	cr_assert_eq(a->buf_count, b->buf_count);
	cr_assert_eq(a->crc, b->crc);
	cr_assert_str_eq(a->file, b->file);
}

Test(task_state, comes_back_as_it_was)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state t = sample(), *back;
	size_t size;
	uint8_t *bytes = encode(&t, &size);

	cr_assert_eq(task_state_decode(&back, bytes, size, text), 0, "%s", text);
	memset(bytes, 0, size);
	free(bytes);
	cr_assert_str_eq(back->vertex_uid, "count");
	cr_assert_eq(back->subtask_index, 1);
	cr_assert_eq(back->parallelism, 4);
	cr_assert_eq(back->group_count, 128);
	cr_assert_eq(back->groups.first, 32);
	cr_assert_eq(back->groups.last, 63);
	cr_assert_eq(back->handle_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		compare(&back->handles[i], &handles[i]);
	cr_assert_eq(back->channel_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		compare_channel(&back->channels[i], &channels[i]);
	cr_assert_eq(task_state_total_bytes(back), 16 + 16128 + 16 + 3 * 40000);
	cr_assert_eq(task_state_file_bytes(back), 16128 + 3 * 40000);
	task_state_free(back);
	task_state_free(NULL);
}

Test(task_state, of_a_task_without_state_is_a_few_bytes)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state t = sample(), *back;
	size_t size;
	uint8_t *bytes;

	t.handle_count = 0;
	t.channel_count = 0;
	bytes = encode(&t, &size);
	cr_assert_lt(size, 40);
	cr_assert_eq(task_state_decode(&back, bytes, size, text), 0);
	cr_assert_eq(back->handle_count, 0);
	task_state_free(back);
	free(bytes);
}

Test(task_state, takes_as_many_states_as_a_task_can_have)
{
	char text[TASK_STATE_TEXT_BYTES];
	static struct state_handle many[TASK_STATE_HANDLES_MAX];
	static char names[TASK_STATE_HANDLES_MAX][16];
	struct task_state t = sample(), *back;
	size_t size;
	uint8_t *bytes;

	for (uint32_t i = 0; i < TASK_STATE_HANDLES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "uid%u", i / 3);
		many[i] = handles[0];
		many[i].uid = names[i];
		many[i].name = i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c";
	}
	t.handles = many;
	t.handle_count = TASK_STATE_HANDLES_MAX;
	bytes = encode(&t, &size);
	cr_assert_eq(task_state_decode(&back, bytes, size, text), 0, "%s", text);
	for (uint32_t i = 0; i < TASK_STATE_HANDLES_MAX; i++)
		compare(&back->handles[i], &many[i]);
	task_state_free(back);
	free(bytes);
}

/* One wrong field at a time, by way of the message itself. */
Test(task_state, refuses_any_field_that_cannot_be)
{
	struct task_state t;

#define WRONG(change, word)                                                                        \
	do {                                                                                       \
		t = sample();                                                                      \
		change;                                                                            \
		refused(&t, word);                                                                 \
	} while (0)
	WRONG(t.vertex_uid = "", "vertex");
	WRONG(t.vertex_uid = "new\nline", "vertex");
	WRONG(t.subtask_index = 4, "subtask 4 of 4");
	WRONG(t.parallelism = PARALLELISM_MAX + 1, "1025");
	WRONG(t.group_count = 100, "100 key groups");
	WRONG(t.groups.last = 128, "32 to 128 of 128");
	WRONG(t.groups.first = 64, "64 to 63");
	WRONG(handles[0].uid = "", "operator");
	WRONG(handles[0].name = "", "no name");
	WRONG(handles[0].kind = (enum weir_state_kind)3, "source.position: unknown kind 3");
	WRONG(handles[0].key_bytes = 8, "keys of 8");
	WRONG(handles[0].value_bytes = 0, "values of 0");
	WRONG(handles[0].value_bytes = 15, "16 bytes for 1 items");
	WRONG(handles[0].crc = 1, "source.position: checksum");
	WRONG(handles[2].key_bytes = 0, "keys of 0");
	WRONG(handles[2].key_bytes = KEY_BYTES_MAX + 1, "keys of 257");
	WRONG(handles[2].item_count = 129025, "16128 bytes for 129025 items");
	WRONG(handles[2].value_bytes = 9, "16128 bytes for 1000 items");
	WRONG(handles[2].item_count = 600, "16128 bytes for 600 items");
	WRONG(handles[2].item_count = UINT64_MAX / 8, "items");
	WRONG(handles[2].file = "../elsewhere", "count.counts: its file is no name");
	WRONG(handles[2].file = "..", "its file is no name");
	WRONG(handles[2].file = "", "its file is no name");
	WRONG(handles[2].offset = UINT64_MAX - 100, "count.counts: 16128 bytes at");
	WRONG(handles[3].item_count = 3, "count.open: 16 bytes for 3 items");
	WRONG(handles[3].name = "counts", "count.counts: there twice");
}

/* RE-16. */
Test(task_state, refuses_channels_that_cannot_be)
{
	struct task_state t = sample();

	channels[1] = channels[0];
	refused(&t, "there twice or out of order");
	t = sample();
	channels[0].channel = CHANNELS_PER_GATE_MAX;
	refused(&t, "input channel 1024 of gate 0");
	t = sample();
	channels[2].gate = OUTPUTS_PER_TASK_MAX;
	refused(&t, "output channel 0 of gate 8");
	t = sample();
	channels[0].file = "../channels";
	refused(&t, "has no file");
	t = sample();
	channels[0].buf_count = 0;
	refused(&t, "0 buffers");
	t = sample();
	channels[0].offset = UINT64_MAX;
	refused(&t, "3 buffers with");
}

Test(task_state, refuses_a_state_without_a_place)
{
	char text[TASK_STATE_TEXT_BYTES];
	Weir__TaskState m = WEIR__TASK_STATE__INIT;
	Weir__OperatorState op = WEIR__OPERATOR_STATE__INIT, *ops = &op;
	Weir__StateHandle h = WEIR__STATE_HANDLE__INIT, *hs = &h;
	struct task_state *back;
	uint8_t bytes[256];

	m.vertex_uid = "v";
	m.parallelism = m.key_group_count = 1;
	m.n_operators = 1;
	m.operators = &ops;
	op.uid = "o";
	op.n_states = 1;
	op.states = &hs;
	h.name = "s";
	h.value_bytes = h.size = h.item_count = 1;
	cr_assert_eq(task_state_decode(&back, bytes, weir__task_state__pack(&m, bytes), text),
			-EBADMSG);
	cr_assert_not_null(strstr(text, "neither"), "%s", text);
}

Test(task_state, survives_any_damage)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state t = sample(), *back;
	size_t size;
	uint8_t *bytes = encode(&t, &size);
	struct prng p;

	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut + 1);

		memcpy(copy, bytes, cut);
		if (task_state_decode(&back, copy, cut, text) == 0)
			task_state_free(back);
		free(copy);
	}
	prng_seed(&p, 7);
	for (int i = 0; i < 20000; i++) {
		uint8_t copy[512];

		memcpy(copy, bytes, size);
		copy[prng_below(&p, size)] = (uint8_t)prng_next(&p);
		copy[prng_below(&p, size)] = (uint8_t)prng_next(&p);
		if (task_state_decode(&back, copy, size, text) == 0)
			task_state_free(back);
	}
	free(bytes);
}
