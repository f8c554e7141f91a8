/*
 * Encoding builds the message in one bounded piece of stack, but for channels, of which there may
 * be thousands; decoding keeps the unpacked message and lets the handles point into it.
 */

#include "dataplane/checkpoint/task_state.h"

#include "dataplane/base/arena.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/state.pb-c.h"
#include "dataplane/operator/keyed_chunk.h"
#include "dataplane/operator/keyed_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t task_state_total_bytes(const struct task_state *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->handle_count; i++)
		sum += t->handles[i].size;
	for (uint32_t i = 0; i < t->channel_count; i++)
		sum += t->channels[i].bytes;
	return sum;
}

uint64_t task_state_file_bytes(const struct task_state *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->handle_count; i++)
		sum += t->handles[i].file != NULL ? t->handles[i].size : 0;
	for (uint32_t i = 0; i < t->channel_count; i++)
		sum += t->channels[i].bytes;
	return sum;
}

/* ---- encode ---------------------------------------------------------------------------------- */

struct builder {
	Weir__TaskState task;
	Weir__OperatorState operators[TASK_STATE_HANDLES_MAX];
	Weir__OperatorState *operator_list[TASK_STATE_HANDLES_MAX];
	Weir__StateHandle states[TASK_STATE_HANDLES_MAX];
	Weir__StateHandle *state_list[TASK_STATE_HANDLES_MAX];
	Weir__StateFile files[TASK_STATE_HANDLES_MAX];
	struct channel_row *channels; /* malloc'ed, or NULL: none */
	Weir__ChannelStateHandle **channel_list;
};

struct channel_row {
	Weir__ChannelStateHandle handle;
	Weir__StateFile file;
};

/* The message only reads what it points to, but has no const. */
static char *text_of(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void build_handle(struct builder *b, uint32_t index, const struct state_handle *h)
{
	Weir__StateHandle *out = &b->states[index];

	weir__state_handle__init(out);
	b->state_list[index] = out;
	out->name = text_of(h->name);
	out->kind = h->kind;
	out->key_bytes = h->key_bytes;
	out->value_bytes = h->value_bytes;
	out->version = h->version;
	out->item_count = h->item_count;
	out->size = h->size;
	out->crc32c = h->crc;
	if (h->file != NULL) {
		weir__state_file__init(&b->files[index]);
		b->files[index].name = text_of(h->file);
		b->files[index].offset = h->offset;
		out->place_case = WEIR__STATE_HANDLE__PLACE_FILE;
		out->file = &b->files[index];
	} else {
		out->place_case = WEIR__STATE_HANDLE__PLACE_INLINE_BYTES;
		out->inline_bytes.data = (uint8_t *)(uintptr_t)h->bytes;
		out->inline_bytes.len = h->size;
	}
}

/* Inputs stand first, so each side is one run of the list. */
static void build_channels(struct builder *b, const struct task_state *t)
{
	b->channels = NULL;
	b->channel_list = NULL;
	if (t->channel_count == 0)
		return;
	b->channels = calloc(t->channel_count, sizeof(*b->channels));
	b->channel_list = calloc(t->channel_count, sizeof(*b->channel_list));
	CHECK(b->channels != NULL && b->channel_list != NULL);
	for (uint32_t i = 0; i < t->channel_count; i++) {
		const struct channel_state_handle *h = &t->channels[i];
		struct channel_row *row = &b->channels[i];

		weir__channel_state_handle__init(&row->handle);
		weir__state_file__init(&row->file);
		row->file.name = text_of(h->file);
		row->file.offset = h->offset;
		row->handle.gate = h->gate;
		row->handle.channel = h->channel;
		row->handle.size = h->bytes;
		row->handle.crc32c = h->crc;
		row->handle.buffers = h->buf_count;
		row->handle.file = &row->file;
		b->channel_list[i] = &row->handle;
		if (h->side == CHANNEL_STATE_INPUT)
			b->task.n_input_channels++;
	}
	b->task.n_output_channels = t->channel_count - b->task.n_input_channels;
	b->task.input_channels = b->channel_list;
	b->task.output_channels = b->channel_list + b->task.n_input_channels;
}

static void free_channels(struct builder *b)
{
	free(b->channels);
	free(b->channel_list);
}

static void build(struct builder *b, const struct task_state *t)
{
	Weir__OperatorState *op = NULL;

	CHECK(t->handle_count <= TASK_STATE_HANDLES_MAX);
	weir__task_state__init(&b->task);
	b->task.vertex_uid = text_of(t->vertex_uid);
	b->task.subtask_index = t->subtask_index;
	b->task.parallelism = t->parallelism;
	b->task.key_group_count = t->group_count;
	b->task.first_key_group = t->groups.first;
	b->task.last_key_group = t->groups.last;
	b->task.operators = b->operator_list;
	for (uint32_t i = 0; i < t->handle_count; i++) {
		if (op == NULL || strcmp(op->uid, t->handles[i].uid) != 0) {
			op = &b->operators[b->task.n_operators];
			weir__operator_state__init(op);
			op->uid = text_of(t->handles[i].uid);
			op->states = &b->state_list[i];
			b->operator_list[b->task.n_operators++] = op;
		}
		build_handle(b, i, &t->handles[i]);
		op->n_states++;
	}
	build_channels(b, t);
}

size_t task_state_encoded_bytes(const struct task_state *t)
{
	struct builder b;

	build(&b, t);
	size_t bytes = weir__task_state__get_packed_size(&b.task);
	free_channels(&b);
	return bytes;
}

void task_state_encode(const struct task_state *t, uint8_t *room)
{
	struct builder b;

	build(&b, t);
	weir__task_state__pack(&b.task, room);
	free_channels(&b);
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* What a decoded state may take in memory, so that few bytes cannot claim much. */
enum {
	FIRST_BLOCK_BYTES = 1024,
	MEMORY_BYTES_MIN = 64 * 1024,
	MEMORY_OF_A_BYTE_MAX = 64,
	MEMORY_BYTES_MAX = 256 * 1024 * 1024,
};

struct decoded {
	struct task_state state; /* the first member: what the caller holds */
	struct arena arena;      /* of all of it, this too */
	Weir__TaskState *message;
	struct channel_state_handle *channels;
	struct state_handle handles[];
};

__attribute__((format(printf, 2, 3))) static int refuse(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, TASK_STATE_TEXT_BYTES, format, args);
	va_end(args);
	return -EBADMSG;
}

/* A name that is safe to print and to use: 1..bytes_max - 1 bytes, no control characters. */
static bool is_name(const char *name, size_t bytes_max)
{
	size_t bytes = strlen(name);

	if (bytes == 0 || bytes >= bytes_max)
		return false;
	for (const char *c = name; *c != '\0'; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	}
	return true;
}

static bool is_file_name(const char *name)
{
	return is_name(name, TASK_STATE_NAME_BYTES_MAX) && strchr(name, '/') == NULL &&
			strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int check_task(const Weir__TaskState *m, char *text)
{
	if (!is_name(m->vertex_uid, UID_BYTES_MAX))
		return refuse(text, "task state: the uid of its vertex is no name");
	if (m->parallelism == 0 || m->parallelism > PARALLELISM_MAX ||
			m->subtask_index >= m->parallelism)
		return refuse(text, "task state of %s: subtask %u of %u", m->vertex_uid,
				m->subtask_index, m->parallelism);
	if (m->key_group_count == 0 || m->key_group_count > KEY_GROUPS_COUNT_MAX ||
			(m->key_group_count & (m->key_group_count - 1)) != 0)
		return refuse(text, "task state of %s: %u key groups", m->vertex_uid,
				m->key_group_count);
	if (m->first_key_group > m->last_key_group || m->last_key_group >= m->key_group_count)
		return refuse(text, "task state of %s: key groups %u to %u of %u", m->vertex_uid,
				m->first_key_group, m->last_key_group, m->key_group_count);
	return 0;
}

/* Does `size` fit the number and kind of the items? */
static bool is_size_right(const Weir__StateHandle *m)
{
	uint64_t items;

	if (m->kind == WEIR_STATE_VALUE)
		return m->item_count == 1 && m->size == m->value_bytes;
	if (__builtin_mul_overflow(m->item_count, (uint64_t)m->key_bytes + m->value_bytes, &items))
		return false;
	if (m->kind == WEIR_STATE_LIST)
		return m->size == items;
	/* Each chunk has a head, at least one entry, and not more than it can have. */
	uint64_t heads_min = (m->item_count + KEYED_CHUNK_COUNT_MAX - 1) / KEYED_CHUNK_COUNT_MAX;
	uint64_t least = keyed_chunk_can_cut(m->key_bytes, m->value_bytes) ? 0 : items;

	return m->size >= least && (m->size - least) / KEYED_CHUNK_HEAD_BYTES >= heads_min &&
			(m->size <= items ||
			(m->size - items) / KEYED_CHUNK_HEAD_BYTES <= m->item_count);
}

static int check_handle(const char *uid, const Weir__StateHandle *m, char *text)
{
	bool is_keyed = m->kind == WEIR_STATE_KEYED;

	if (!is_name(m->name, TASK_STATE_NAME_BYTES_MAX))
		return refuse(text, "a state of %s: its name is no name", uid);
	if (m->kind > WEIR_STATE_KEYED)
		return refuse(text, "state %s.%s: unknown kind %u", uid, m->name, m->kind);
	if (m->value_bytes == 0 || (m->key_bytes != 0) != is_keyed || m->key_bytes > KEY_BYTES_MAX)
		return refuse(text, "state %s.%s: keys of %u and values of %u bytes", uid, m->name,
				m->key_bytes, m->value_bytes);
	if (!is_size_right(m))
		return refuse(text, "state %s.%s: %llu bytes for %llu items", uid, m->name,
				(unsigned long long)m->size, (unsigned long long)m->item_count);
	if (m->place_case == WEIR__STATE_HANDLE__PLACE_FILE) {
		if (!is_file_name(m->file->name))
			return refuse(text, "state %s.%s: its file is no name", uid, m->name);
		if (m->file->offset > INT64_MAX || m->size > INT64_MAX - m->file->offset)
			return refuse(text, "state %s.%s: %llu bytes at %llu of %s", uid, m->name,
					(unsigned long long)m->size,
					(unsigned long long)m->file->offset, m->file->name);
	} else if (m->place_case != WEIR__STATE_HANDLE__PLACE_INLINE_BYTES) {
		return refuse(text, "state %s.%s: neither bytes nor a file", uid, m->name);
	} else if (m->inline_bytes.len != m->size) {
		return refuse(text, "state %s.%s: %zu bytes instead of %llu", uid, m->name,
				m->inline_bytes.len, (unsigned long long)m->size);
	} else if (crc32c(0, m->inline_bytes.data, m->inline_bytes.len) != m->crc32c) {
		return refuse(text, "state %s.%s: checksum of its bytes is %08x instead of %08x",
				uid, m->name, crc32c(0, m->inline_bytes.data, m->inline_bytes.len),
				m->crc32c);
	}
	return 0;
}

static struct state_handle handle_of(const char *uid, const Weir__StateHandle *m)
{
	static const uint8_t nothing[1];
	bool is_file = m->place_case == WEIR__STATE_HANDLE__PLACE_FILE;
	const uint8_t *bytes = m->size > 0 ? m->inline_bytes.data : nothing;

	return (struct state_handle){
		.uid = uid,
		.name = m->name,
		.kind = (enum weir_state_kind)m->kind,
		.key_bytes = m->key_bytes,
		.value_bytes = m->value_bytes,
		.version = m->version,
		.item_count = m->item_count,
		.file = is_file ? m->file->name : NULL,
		.offset = is_file ? m->file->offset : 0,
		.bytes = is_file ? NULL : bytes,
		.size = m->size,
		.crc = m->crc32c,
	};
}

static bool is_known(const struct decoded *d, const char *uid, const char *name)
{
	for (uint32_t i = 0; i < d->state.handle_count; i++) {
		if (strcmp(d->handles[i].uid, uid) == 0 && strcmp(d->handles[i].name, name) == 0)
			return true;
	}
	return false;
}

static int take_operator(struct decoded *d, const Weir__OperatorState *op, char *text)
{
	if (!is_name(op->uid, UID_BYTES_MAX))
		return refuse(text, "task state: the uid of an operator is no name");
	for (size_t i = 0; i < op->n_states; i++) {
		int rc = check_handle(op->uid, op->states[i], text);

		if (rc != 0)
			return rc;
		if (is_known(d, op->uid, op->states[i]->name))
			return refuse(text, "state %s.%s: there twice", op->uid,
					op->states[i]->name);
		d->handles[d->state.handle_count++] = handle_of(op->uid, op->states[i]);
	}
	return 0;
}

static int take_operators(struct decoded *d, char *text)
{
	const Weir__TaskState *m = d->message;

	d->state = (struct task_state){
		.vertex_uid = m->vertex_uid,
		.subtask_index = m->subtask_index,
		.parallelism = m->parallelism,
		.group_count = m->key_group_count,
		.groups = {m->first_key_group, m->last_key_group},
		.handles = d->handles,
	};
	for (size_t i = 0; i < m->n_operators; i++) {
		int rc = take_operator(d, m->operators[i], text);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int check_channel(const Weir__ChannelStateHandle *m, const struct channel_state_handle *h,
		const struct channel_state_handle *before, char *text)
{
	const char *side = h->side == CHANNEL_STATE_INPUT ? "input" : "output";
	uint64_t end;

	if (m->gate >= (h->side == CHANNEL_STATE_INPUT ? (uint32_t)GATES_PER_TASK_MAX
						       : (uint32_t)OUTPUTS_PER_TASK_MAX) ||
			m->channel >= CHANNELS_PER_GATE_MAX)
		return refuse(text, "channel state: %s channel %u of gate %u", side, m->channel,
				m->gate);
	if (before != NULL && before->side == h->side &&
			(before->gate > h->gate || (before->gate == h->gate &&
					before->channel >= h->channel)))
		return refuse(text, "channel state: %s channel %u of gate %u is there twice or out "
				"of order", side, m->channel, m->gate);
	if (m->file == NULL || !is_file_name(m->file->name))
		return refuse(text, "channel state: %s channel %u of gate %u has no file", side,
				m->channel, m->gate);
	if (m->buffers == 0 || m->buffers > CHANNEL_STATE_CHUNKS_MAX ||
			__builtin_add_overflow(m->file->offset,
					channel_state_section_bytes(m->buffers), &end) ||
			end > INT64_MAX || m->size > INT64_MAX)
		return refuse(text, "channel state: %u buffers with %llu bytes at %llu of %s",
				m->buffers, (unsigned long long)m->size,
				(unsigned long long)m->file->offset, m->file->name);
	return 0;
}

static int take_channels(struct decoded *d, enum channel_state_side side, char *text)
{
	const Weir__TaskState *m = d->message;
	bool is_input = side == CHANNEL_STATE_INPUT;
	size_t count = is_input ? m->n_input_channels : m->n_output_channels;

	for (size_t i = 0; i < count; i++) {
		const Weir__ChannelStateHandle *from =
				is_input ? m->input_channels[i] : m->output_channels[i];
		struct channel_state_handle *h = &d->channels[d->state.channel_count];

		*h = (struct channel_state_handle){
			.side = side,
			.gate = from->gate,
			.channel = from->channel,
			.bytes = from->size,
			.buf_count = from->buffers,
			.crc = from->crc32c,
		};
		int rc = check_channel(from, h, d->state.channel_count > 0 ? h - 1 : NULL, text);
		if (rc != 0)
			return rc;
		h->file = from->file->name;
		h->offset = from->file->offset;
		d->state.channel_count++;
	}
	return 0;
}

static int out_of_memory(char *text)
{
	snprintf(text, TASK_STATE_TEXT_BYTES, "task state: out of memory");
	return -ENOMEM;
}

static int take_all_channels(struct decoded *d, struct arena *a, char *text)
{
	size_t count = d->message->n_input_channels + d->message->n_output_channels;

	if (count == 0)
		return 0;
	if (count > TASK_STATE_CHANNELS_MAX)
		return refuse(text, "task state of %s: %zu channels", d->message->vertex_uid,
				count);
	d->channels = arena_take(a, count * sizeof(d->channels[0]));
	if (d->channels == NULL)
		return out_of_memory(text);
	d->state.channels = d->channels;
	int rc = take_channels(d, CHANNEL_STATE_INPUT, text);
	return rc != 0 ? rc : take_channels(d, CHANNEL_STATE_OUTPUT, text);
}

/* Everything is taken from `a`, which `*out` keeps. */
static int decode(struct decoded **out, struct arena *a, const uint8_t *bytes, size_t size,
		char *text)
{
	ProtobufCAllocator pieces = {arena_alloc, arena_keep, a};
	Weir__TaskState *message = weir__task_state__unpack(&pieces, size, bytes);
	struct decoded *d;
	size_t count = 0;

	if (message == NULL)
		return refuse(text, "task state: %zu bytes that are no such message", size);
	for (size_t i = 0; i < message->n_operators; i++)
		count += message->operators[i]->n_states;
	int rc = check_task(message, text);
	if (rc == 0 && count > TASK_STATE_HANDLES_MAX)
		rc = refuse(text, "task state of %s: %zu states", message->vertex_uid, count);
	if (rc != 0)
		return rc;
	d = arena_take(a, sizeof(*d) + count * sizeof(d->handles[0]));
	if (d == NULL)
		return out_of_memory(text);
	memset(d, 0, sizeof(*d));
	d->message = message;
	rc = take_operators(d, text);
	if (rc == 0)
		rc = take_all_channels(d, a, text);
	*out = d;
	return rc;
}

int task_state_decode(struct task_state **out, const uint8_t *bytes, size_t size,
		char text[TASK_STATE_TEXT_BYTES])
{
	struct decoded *d = NULL;
	struct arena a;

	arena_open(&a, 2 * size + FIRST_BLOCK_BYTES,
			size < MEMORY_BYTES_MAX / MEMORY_OF_A_BYTE_MAX
					? MEMORY_BYTES_MIN + size * MEMORY_OF_A_BYTE_MAX
					: MEMORY_BYTES_MAX);

	int rc = decode(&d, &a, bytes, size, text);

	if (rc != 0) {
		arena_close(&a);
		return rc;
	}
	d->arena = a;
	*out = &d->state;
	return 0;
}

void task_state_free(struct task_state *t)
{
	if (t == NULL)
		return;

	struct arena a = ((struct decoded *)(void *)t)->arena;

	arena_close(&a);
}
