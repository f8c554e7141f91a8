#include "control/coordinator/job_regions.h"

#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/pipelined_regions.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int job_make_regions(struct job_master *jm)
{
	struct job_regions *r = &jm->regions;
	bool must_join[VERTICES_COUNT_MAX] = {false};

	r->of = calloc(jm->subtask_count, sizeof(*r->of));
	if (r->of == NULL)
		return -ENOMEM;
	/* Who hands files out to its subtasks goes back to the checkpoint as one (RE-7). */
	for (uint32_t i = 0; i < jm->files_count; i++)
		must_join[jm->files[i].place] = true;
	r->count = pipelined_regions_find(jm->graph, must_join, r->of);
	if (r->count > JOB_REGIONS_MAX) {
		log_info("job_master",
				"job %s has %u regions, more than %d: it restarts as a whole",
				jm->spec->name, r->count, JOB_REGIONS_MAX);
		memset(r->of, 0, jm->subtask_count * sizeof(*r->of));
		r->count = 1;
	}
	(void)job_mark_region(jm, NULL);
	return 0;
}

void job_destroy_regions(struct job_master *jm)
{
	free(jm->regions.of);
}

bool job_mark_region(struct job_master *jm, const struct execution *e)
{
	bool is_news = false;

	for (uint32_t i = 0; i < jm->regions.count; i++) {
		struct job_region *r = &jm->regions.at[i];

		if (e != NULL && jm->regions.of[e->subtask] != i)
			continue;
		is_news = is_news || !r->must_restart;
		r->must_restart = true;
	}
	return is_news;
}

bool job_must_restart(const struct job_master *jm, uint32_t subtask)
{
	return jm->regions.at[jm->regions.of[subtask]].must_restart;
}

bool job_restarts_whole(const struct job_master *jm)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++)
		if (!job_must_restart(jm, s) && !execution_is_terminal(&jm->executions[s]))
			return false;
	return true;
}

bool job_is_ready_to_restart(const struct job_master *jm)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		const struct execution *e = &jm->executions[s];

		if (job_must_restart(jm, s) && !execution_is_terminal(e) &&
				e->state != EXECUTION_CREATED)
			return false;
	}
	return !job_is_building(jm);
}

bool job_is_building(const struct job_master *jm)
{
	for (uint32_t i = 0; i < jm->regions.count; i++)
		if (jm->regions.at[i].building != 0)
			return true;
	return false;
}

uint32_t job_region_deployed_as(const struct job_master *jm, uint64_t deployment)
{
	for (uint32_t i = 0; i < jm->regions.count; i++)
		if (jm->regions.at[i].building != 0 &&
				jm->regions.at[i].deployment == deployment)
			return i;
	return UINT32_MAX;
}
