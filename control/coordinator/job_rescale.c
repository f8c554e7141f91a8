/* job_rescale: the states of vertices that had another parallelism in the checkpoint, and of their
 * neighbours. */

#include "control/config/job_file.h"
#include "control/coordinator/job_master_internal.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

static const struct metadata_vertex *find_saved(const struct metadata *m, const char *uid)
{
	for (uint32_t v = 0; v < m->vertex_count; v++)
		if (strcmp(m->vertices[v].uid, uid) == 0)
			return &m->vertices[v];
	return NULL;
}

static bool is_rescaled(const struct metadata *m, const struct job_vertex *v)
{
	const struct metadata_vertex *from = find_saved(m, v->uid);

	return from != NULL && from->parallelism != v->parallelism;
}

/* It was rescaled, or what was in flight between it and such a one has to find another way. */
static bool is_concerned(const struct job_master *jm, const struct metadata *m, uint32_t vertex)
{
	const struct job_spec *spec = jm->spec;

	if (is_rescaled(m, &spec->vertices[vertex]))
		return true;
	for (uint32_t i = 0; i < spec->edge_count; i++) {
		const struct job_edge *e = &spec->edges[i];

		if ((e->from == vertex && is_rescaled(m, &spec->vertices[e->to])) ||
				(e->to == vertex && is_rescaled(m, &spec->vertices[e->from])))
			return true;
	}
	return false;
}

static bool has_tasks(const struct job_master *jm, const struct job_vertex *v, uint32_t region)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++)
		if (jm->regions.of[s] == region &&
				job_vertex_at(jm, execution_graph_vertex_of(jm->graph, s)) == v)
			return true;
	return false;
}

ProtobufCBinaryData *job_rescaled_states(const struct job_master *jm, const struct metadata *m,
		uint32_t region, size_t *count)
{
	size_t max = 1;

	*count = 0;
	for (uint32_t v = 0; m != NULL && v < m->vertex_count; v++)
		max += m->vertices[v].subtask_count;
	ProtobufCBinaryData *states = calloc(max, sizeof(*states));
	CHECK(states != NULL);
	for (uint32_t v = 0; m != NULL && v < jm->spec->vertex_count; v++) {
		const struct job_vertex *to = &jm->spec->vertices[v];
		const struct metadata_vertex *from = find_saved(m, to->uid);

		if (from == NULL || !is_concerned(jm, m, v) || !has_tasks(jm, to, region))
			continue;
		for (uint32_t i = 0; i < from->subtask_count; i++) {
			const struct metadata_bytes *b = &from->subtasks[i].state;

			if (b->size > 0)
				states[(*count)++] = (ProtobufCBinaryData){
						b->size, (uint8_t *)(uintptr_t)b->data};
		}
	}
	return states;
}
