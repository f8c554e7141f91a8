/* job_rescale: the states of vertices that had another parallelism in the checkpoint. */

#include "control/config/job_file.h"
#include "control/coordinator/job_master_internal.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

/* The vertex has tasks in the region. */
static bool is_rescaled(
		const struct job_master *jm, const struct metadata_vertex *from, uint32_t region)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		const struct job_vertex *v =
				job_vertex_at(jm, execution_graph_vertex_of(jm->graph, s));

		if (jm->regions.of[s] == region && strcmp(v->uid, from->uid) == 0)
			return v->parallelism != from->parallelism;
	}
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
	for (uint32_t v = 0; m != NULL && v < m->vertex_count; v++) {
		const struct metadata_vertex *from = &m->vertices[v];

		if (!is_rescaled(jm, from, region))
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
