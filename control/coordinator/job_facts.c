/* job_facts: what a job tells of itself. */

#include "control/coordinator/job_master_internal.h"
#include "dataplane/base/check.h"

struct job_id job_master_id(const struct job_master *jm)
{
	return jm->spec->id;
}

const char *job_master_name(const struct job_master *jm)
{
	return jm->spec->name;
}

enum job_status job_master_status(const struct job_master *jm)
{
	return jm->status;
}

bool job_master_is_submission(const struct job_master *jm, struct id128 id)
{
	return job_record_is_submission(jm->record, id);
}

int64_t job_master_entered_ms(const struct job_master *jm, enum job_status status)
{
	CHECK(status < JOB_STATUS_COUNT);
	return jm->entered_ms[status];
}

const struct job_spec *job_master_spec(const struct job_master *jm)
{
	return jm->spec;
}

const struct config *job_master_config(const struct job_master *jm)
{
	return jm->config;
}

struct checkpoint_stats *job_master_checkpoints(struct job_master *jm)
{
	return checkpoint_coordinator_stats(jm->checkpoints);
}

uint32_t job_master_vertex(const struct job_master *jm, uint32_t place)
{
	CHECK(place < jm->spec->vertex_count);
	return jm->spec->order[place];
}

const struct execution *job_master_execution(
		const struct job_master *jm, uint32_t place, uint32_t subtask_index)
{
	return &jm->executions[execution_graph_subtask(jm->graph, place, subtask_index)];
}

const char *job_master_print_subtask(
		const struct job_master *jm, uint32_t subtask, char text[SUBTASK_TEXT_BYTES])
{
	execution_graph_print_subtask(jm->graph, subtask, text);
	return text;
}

const struct job_failure *job_master_failure(const struct job_master *jm, uint32_t index)
{
	if (index >= jm->failure_count || index >= JOB_FAILURES_MAX)
		return NULL;
	return &jm->failures[(jm->failure_count - 1 - index) % JOB_FAILURES_MAX];
}

bool job_master_is_busy(const struct job_master *jm)
{
	return jm->io_count > 0;
}

bool job_master_is_restore_refused(const struct job_master *jm)
{
	return jm->is_restore_refused;
}
