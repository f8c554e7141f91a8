#include "control/coordinator/completed_record.h"

#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/task_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	BIT_FORCED = 1,
	BIT_UNCLAIMED = 2,
	BIT_SUBSUMED = 4,
	BIT_FINISHED = 8,
	BIT_CANCELED = 16,
	BIT_FAILED = 32,
	BIT_SUSPENDED = 64,
	BIT_NATIVE = 128,
	KIND_SHIFT = 8,
	KIND_MASK = 7,
};

uint32_t completed_properties_pack(const struct checkpoint_properties *p)
{
	return (p->is_forced ? BIT_FORCED : 0u) | (p->is_unclaimed ? BIT_UNCLAIMED : 0u) |
			(p->discard_subsumed ? BIT_SUBSUMED : 0u) |
			(p->discard_finished ? BIT_FINISHED : 0u) |
			(p->discard_canceled ? BIT_CANCELED : 0u) |
			(p->discard_failed ? BIT_FAILED : 0u) |
			(p->discard_suspended ? BIT_SUSPENDED : 0u) |
			(p->format == FORMAT_NATIVE ? BIT_NATIVE : 0u) |
			(uint32_t)p->kind << KIND_SHIFT;
}

void completed_properties_unpack(uint32_t bits, struct checkpoint_properties *p)
{
	uint32_t kind = bits >> KIND_SHIFT & KIND_MASK;

	*p = (struct checkpoint_properties){
			.kind = kind <= KIND_FULL_CHECKPOINT ? (enum checkpoint_kind)kind
							     : KIND_CHECKPOINT,
			.format = bits & BIT_NATIVE ? FORMAT_NATIVE : FORMAT_CANONICAL,
			.is_forced = bits & BIT_FORCED,
			.is_unclaimed = bits & BIT_UNCLAIMED,
			.discard_subsumed = bits & BIT_SUBSUMED,
			.discard_finished = bits & BIT_FINISHED,
			.discard_canceled = bits & BIT_CANCELED,
			.discard_failed = bits & BIT_FAILED,
			.discard_suspended = bits & BIT_SUSPENDED,
	};
}

void completed_record_fill(Weir__CompletedRecord *record, const struct completed_checkpoint *c)
{
	weir__completed_record__init(record);
	record->id = c->id;
	record->timestamp_ms = c->timestamp_ms;
	record->completed_ms = c->completed_ms;
	record->properties = completed_properties_pack(&c->properties);
	record->made_as = (uint32_t)c->made_as;
	record->unclaimed_id_max = c->unclaimed_id_max;
	record->state_bytes = c->state_bytes;
	record->location = c->location;
	record->n_files = c->files.count;
	record->files = c->files.names;
}

struct completed_checkpoint *completed_record_read(const Weir__CompletedRecord *record)
{
	struct completed_checkpoint *c;

	completed_checkpoint_create(&c, record->id, record->location);
	c->timestamp_ms = record->timestamp_ms;
	c->completed_ms = record->completed_ms;
	completed_properties_unpack(record->properties, &c->properties);
	c->made_as = record->made_as <= KIND_FULL_CHECKPOINT
			? (enum checkpoint_kind)record->made_as
			: KIND_CHECKPOINT;
	c->unclaimed_id_max = record->unclaimed_id_max;
	c->state_bytes = record->state_bytes;
	for (size_t i = 0; i < record->n_files; i++)
		file_list_add(&c->files, record->files[i]);
	return c;
}

static bool is_listed(const struct file_list *files, const char *name)
{
	/* The files of one subtask stand together at the end. */
	for (uint32_t i = files->count; i > 0 && i + 8 > files->count; i--)
		if (strcmp(files->names[i - 1], name) == 0)
			return true;
	return false;
}

void completed_add_state_files(struct file_list *files, const struct task_state *t)
{
	for (uint32_t i = 0; i < t->handle_count; i++)
		if (t->handles[i].file != NULL && !is_listed(files, t->handles[i].file))
			file_list_add(files, t->handles[i].file);
	for (uint32_t i = 0; i < t->channel_count; i++)
		if (!is_listed(files, t->channels[i].file))
			file_list_add(files, t->channels[i].file);
}

int completed_add_files(struct file_list *files, const uint8_t *state, size_t state_bytes,
		char text[COMPLETED_TEXT_BYTES])
{
	struct task_state *t;
	int rc = task_state_decode(&t, state, state_bytes, text);

	if (rc != 0)
		return rc;
	completed_add_state_files(files, t);
	task_state_free(t);
	return 0;
}

int completed_from_metadata(const struct metadata *m, const char *directory,
		struct completed_checkpoint **out, char text[COMPLETED_TEXT_BYTES])
{
	struct completed_checkpoint *c;
	int rc = 0;

	completed_checkpoint_create(&c, m->checkpoint_id, directory);
	c->timestamp_ms = m->triggered_ms;
	c->completed_ms = m->completed_ms;
	completed_properties_unpack(m->properties, &c->properties);
	c->made_as = c->properties.kind;
	for (uint32_t v = 0; rc == 0 && v < m->vertex_count; v++) {
		const struct metadata_vertex *vertex = &m->vertices[v];

		for (uint32_t i = 0; rc == 0 && i < vertex->subtask_count; i++) {
			const struct metadata_bytes *state = &vertex->subtasks[i].state;

			if (state->size == 0)
				continue;
			rc = completed_add_files(&c->files, state->data, state->size, text);
			c->state_bytes += (int64_t)state->size;
		}
	}
	if (rc != 0) {
		completed_checkpoint_destroy(c);
		return rc;
	}
	*out = c;
	return 0;
}
