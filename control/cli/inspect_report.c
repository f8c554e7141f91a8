#include "control/cli/inspect_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True unless out of memory. */
static bool note(struct inspect_report *r, char **problem, const char *text)
{
	r->problem_count++;
	*problem = strdup(text);
	return *problem != NULL;
}

static bool look_at_states(struct inspect_report *r, struct inspect_subtask *s)
{
	char text[RESTORE_TEXT_BYTES];

	s->states = calloc(s->state->handle_count + 1, sizeof(*s->states));
	if (s->states == NULL)
		return false;
	r->total_bytes += task_state_total_bytes(s->state);
	r->file_bytes += task_state_file_bytes(s->state);
	for (uint32_t i = 0; i < s->state->handle_count; i++) {
		s->states[i].handle = &s->state->handles[i];
		if (restore_verify_handle(r->directory, s->states[i].handle, text) != 0 &&
				!note(r, &s->states[i].problem, text))
			return false;
	}
	return true;
}

static bool look_at_channels(struct inspect_report *r, struct inspect_subtask *s)
{
	struct channel_state_owner owner = {r->metadata->checkpoint_id, s->state->vertex_uid,
		s->state->subtask_index};
	char text[CHANNEL_STATE_READER_TEXT_BYTES];

	s->channels = calloc(s->state->channel_count + 1, sizeof(*s->channels));
	if (s->channels == NULL)
		return false;
	for (uint32_t i = 0; i < s->state->channel_count; i++) {
		s->channels[i].handle = &s->state->channels[i];
		if (channel_state_verify(r->directory, s->channels[i].handle, &owner, text) != 0 &&
				!note(r, &s->channels[i].problem, text))
			return false;
	}
	return true;
}

static bool look_at_subtask(struct inspect_report *r, const struct metadata_vertex *vertex,
		struct inspect_subtask *s)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct metadata_bytes bytes = s->entry->state;
	int rc;

	if (bytes.size == 0)
		return true;
	rc = task_state_decode(&s->state, bytes.data, bytes.size, text);
	if (rc == -ENOMEM)
		return false;
	if (rc != 0)
		return note(r, &s->problem, text);
	if ((strcmp(s->state->vertex_uid, vertex->uid) != 0 ||
			    s->state->subtask_index != s->entry->index) &&
			!note(r, &s->problem, "holds the state of another subtask"))
		return false;
	return look_at_states(r, s) && look_at_channels(r, s);
}

static bool look_at_vertex(struct inspect_report *r, struct inspect_vertex *v)
{
	v->subtasks = calloc(v->entry->subtask_count + 1, sizeof(*v->subtasks));
	if (v->subtasks == NULL)
		return false;
	for (uint32_t i = 0; i < v->entry->subtask_count; i++) {
		v->subtasks[i].entry = &v->entry->subtasks[i];
		if (!look_at_subtask(r, v->entry, &v->subtasks[i]))
			return false;
	}
	return true;
}

static bool look_at_vertices(struct inspect_report *r)
{
	r->vertices = calloc(r->metadata->vertex_count + 1, sizeof(*r->vertices));
	if (r->vertices == NULL)
		return false;
	for (uint32_t i = 0; i < r->metadata->vertex_count; i++) {
		r->vertices[i].entry = &r->metadata->vertices[i];
		if (!look_at_vertex(r, &r->vertices[i]))
			return false;
	}
	return true;
}

int inspect_report_create(struct inspect_report **out, const char *path,
		char text[METADATA_TEXT_BYTES])
{
	struct inspect_report *r = calloc(1, sizeof(*r));
	int rc;

	snprintf(text, METADATA_TEXT_BYTES, "out of memory");
	if (r == NULL)
		return -ENOMEM;
	rc = metadata_read(&r->metadata, path, r->directory, text);
	if (rc == 0 && !look_at_vertices(r))
		rc = -ENOMEM;
	if (rc != 0) {
		inspect_report_destroy(r);
		return rc;
	}
	*out = r;
	return 0;
}

static void free_subtask(struct inspect_subtask *s)
{
	for (uint32_t i = 0; s->states != NULL && i < s->state->handle_count; i++)
		free(s->states[i].problem);
	for (uint32_t i = 0; s->channels != NULL && i < s->state->channel_count; i++)
		free(s->channels[i].problem);
	free(s->channels);
	free(s->states);
	free(s->problem);
	task_state_free(s->state);
}

void inspect_report_destroy(struct inspect_report *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; r->vertices != NULL && i < r->metadata->vertex_count; i++) {
		struct inspect_vertex *v = &r->vertices[i];

		for (uint32_t k = 0; v->subtasks != NULL && k < v->entry->subtask_count; k++)
			free_subtask(&v->subtasks[k]);
		free(v->subtasks);
	}
	free(r->vertices);
	metadata_free(r->metadata);
	free(r);
}
