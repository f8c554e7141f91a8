/* Any bytes as a subtask's state: refused or read; what is read is restored or refused. */

#include "dataplane/checkpoint/task_state.h"

#include "dataplane/checkpoint/restore.h"
#include "dataplane/operator/keyed_state.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A declaration that takes whatever the handle says, within small bounds. */
static void restore(const struct task_state *t, const struct state_handle *h)
{
	struct keyed_state_config config = {.key_bytes = h->key_bytes,
		.value_bytes = h->value_bytes, .entry_count_max = 64,
		.group_count = t->group_count, .groups = t->groups,
		.snapshots_max = 1};
	uint64_t bytes = keyed_state_memory_bytes(&config);
	struct task_state one = *t;
	uint32_t count = 0;
	char text[RESTORE_TEXT_BYTES];

	if (h->kind != WEIR_STATE_KEYED || bytes == 0 || h->value_bytes > 4096)
		return;

	void *memory = aligned_alloc(KEYED_STATE_ALIGN_BYTES, bytes);
	struct declared_state s = {.uid = h->uid, .name = h->name, .kind = h->kind,
		.key_bytes = h->key_bytes, .value_bytes = h->value_bytes, .version = h->version,
		.capacity = 64, .list_count = &count,
		.keyed = keyed_state_create_at(memory, &config)};

	one.handle_count = 1;
	one.handles = h;
	restore_states("/nowhere", &one, &s, 1, false, text);
	free(memory);
}

static void restore_bytes(const uint8_t *data, size_t size)
{
	struct state_handle h = {.uid = "o", .name = "s", .kind = WEIR_STATE_KEYED, .key_bytes = 8,
		.value_bytes = 8, .bytes = data, .size = size};
	struct task_state t = {.vertex_uid = "v", .parallelism = 1, .group_count = 128,
		.groups = {0, 127}};

	restore(&t, &h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state *t;

	restore_bytes(data, size);
	if (task_state_decode(&t, data, size, text) != 0)
		return 0;
	for (uint32_t i = 0; i < t->handle_count; i++)
		restore(t, &t->handles[i]);
	task_state_free(t);
	return 0;
}
