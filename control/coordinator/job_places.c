#include "control/coordinator/job_places.h"

#include "control/config/config.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/task_manager_gateway.h"
#include "dataplane/base/prng.h"

#include <stdio.h>

void job_init_places(struct job_master *jm)
{
	struct job_places *p = &jm->places;

	p->count = (uint32_t)config_int(jm->config, "weir.job.taskmanagers");
	for (uint32_t i = 0; i < JOB_PLACES_MAX; i++)
		p->members[i] = MEMBER_NONE;
}

bool job_take_places(struct job_master *jm)
{
	struct job_places *p = &jm->places;
	bool has_all = true;

	for (uint32_t i = 0; i < p->count; i++) {
		if (p->members[i] == MEMBER_NONE)
			p->members[i] = p->count == 1
					? resource_manager_take(jm->services.resources)
					: resource_manager_take_linked(jm->services.resources,
							  p->members, p->count);
		has_all = has_all && p->members[i] != MEMBER_NONE;
	}
	return has_all;
}

void job_give_back_places(struct job_master *jm)
{
	for (uint32_t i = 0; i < jm->places.count; i++) {
		resource_manager_release(jm->services.resources, jm->places.members[i]);
		jm->places.members[i] = MEMBER_NONE;
	}
}

static uint32_t count_found(const struct job_places *p)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < p->count; i++)
		found += p->members[i] != MEMBER_NONE;
	return found;
}

bool job_is_waiting(const struct job_master *jm, char text[JOB_WAITING_BYTES])
{
	const struct job_places *p = &jm->places;
	uint32_t found = count_found(p);

	if (!job_may_deploy(jm) || found == p->count)
		return false;
	if (p->count == 1)
		snprintf(text, JOB_WAITING_BYTES,
				"waits for a TaskManager: none has registered");
	else
		snprintf(text, JOB_WAITING_BYTES,
				"waits for %u TaskManagers that have a link: %u of them here",
				p->count, found);
	return true;
}

uint32_t job_place_of(const struct job_master *jm, uint32_t member)
{
	for (uint32_t i = 0; i < jm->places.count && member != MEMBER_NONE; i++)
		if (jm->places.members[i] == member)
			return i;
	return PLACE_NONE;
}

uint32_t job_place_of_subtask(const struct job_master *jm, uint32_t subtask)
{
	uint32_t v = execution_graph_vertex_of(jm->graph, subtask);
	uint64_t index = execution_graph_index_of(jm->graph, subtask);

	return (uint32_t)(index * jm->places.count /
			execution_graph_vertex(jm->graph, v)->parallelism);
}

void job_flush_places(struct job_master *jm)
{
	for (uint32_t i = 0; i < jm->places.count; i++) {
		struct task_manager_gateway *g = resource_manager_gateway(
				jm->services.resources, jm->places.members[i]);

		if (g != NULL)
			task_manager_gateway_flush(g);
	}
}

/* Unlike that of any other attempts, and nobody's guess. */
uint64_t job_link_token(const struct job_master *jm, uint32_t region, uint32_t a, uint32_t b)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;
	struct prng p;

	prng_seed(&p, jm->run ^ (jm->generation * JOB_REGIONS_MAX + region) ^ low << 56 ^
			high << 48);
	return prng_next(&p);
}
