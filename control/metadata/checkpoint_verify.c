#include "control/metadata/checkpoint_verify.h"

#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/checkpoint/task_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_BYTES = RESTORE_TEXT_BYTES + 256 };

/* Tells each problem, remembers the first. */
struct verifier {
	const char *directory;
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
	task_state_free(t);
}

int checkpoint_verify(const char *path, void (*visit)(void *context, const char *problem),
		void *context)
{
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];
	struct verifier v = {directory, visit, context, 0};
	struct metadata *m;
	int rc = metadata_read(&m, path, directory, text);

	if (rc != 0) {
		tell(&v, rc, "", text);
		return rc;
	}
	for (uint32_t i = 0; i < m->vertex_count; i++) {
		const struct metadata_vertex *vertex = &m->vertices[i];

		for (uint32_t k = 0; k < vertex->subtask_count; k++)
			verify_subtask(&v, vertex, &vertex->subtasks[k]);
	}
	metadata_free(m);
	return v.status;
}
