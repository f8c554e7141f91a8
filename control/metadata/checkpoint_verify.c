#include "control/metadata/checkpoint_verify.h"

#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/channel_state_reader.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/checkpoint/task_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_BYTES = RESTORE_TEXT_BYTES + 256 };

/* Tells each problem, remembers the first. */
struct verifier {
	const char *directory;
	int64_t checkpoint_id;
	void (*visit)(void *context, const char *problem);
	void *context;
	int status;
};

static void tell(struct verifier *v, int status, const char *where, const char *problem)
{
	char text[PROBLEM_BYTES];

	snprintf(text, sizeof(text), "%s%s", where, problem);
	v->visit(v->context, text);
	if (v->status == 0)
		v->status = status;
}

static void verify_channels(struct verifier *v, const struct task_state *t, const char *where)
{
	struct channel_state_owner owner = {v->checkpoint_id, t->vertex_uid, t->subtask_index};
	char text[CHANNEL_STATE_READER_TEXT_BYTES];

	for (uint32_t i = 0; i < t->channel_count; i++) {
		int rc = channel_state_verify(v->directory, &t->channels[i], &owner, text);

		if (rc != 0)
			tell(v, rc, where, text);
	}
}

static void verify_subtask(struct verifier *v, const struct metadata_vertex *vertex,
		const struct metadata_subtask *subtask)
{
	char text[RESTORE_TEXT_BYTES], where[160];
	struct task_state *t;
	int rc;

	if (subtask->state.size == 0)
		return;
	snprintf(where, sizeof(where), "%.64s subtask %u: ", vertex->uid, subtask->index);
	rc = task_state_decode(&t, subtask->state.data, subtask->state.size, text);
	if (rc != 0) {
		tell(v, rc, where, text);
		return;
	}
	if (strcmp(t->vertex_uid, vertex->uid) != 0 || t->subtask_index != subtask->index)
		tell(v, -EBADMSG, where, "holds the state of another subtask");
	for (uint32_t i = 0; i < t->handle_count; i++) {
		rc = restore_verify_handle(v->directory, &t->handles[i], text);
		if (rc != 0)
			tell(v, rc, where, text);
	}
	verify_channels(v, t, where);
	task_state_free(t);
}

int checkpoint_verify(const char *path, void (*visit)(void *context, const char *problem),
		void *context)
{
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];
	struct verifier v = {.directory = directory, .visit = visit, .context = context};
	struct metadata *m;
	int rc = metadata_read(&m, path, directory, text);

	if (rc != 0) {
		tell(&v, rc, "", text);
		return rc;
	}
	v.checkpoint_id = m->checkpoint_id;
	for (uint32_t i = 0; i < m->vertex_count; i++) {
		const struct metadata_vertex *vertex = &m->vertices[i];

		for (uint32_t k = 0; k < vertex->subtask_count; k++)
			verify_subtask(&v, vertex, &vertex->subtasks[k]);
	}
	metadata_free(m);
	return v.status;
}
