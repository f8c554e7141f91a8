#include "control/coordinator/checkpoint_failure_manager.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>

void checkpoint_failure_manager_init(struct checkpoint_failure_manager *m, int32_t tolerable)
{
	*m = (struct checkpoint_failure_manager){ .tolerable = tolerable };
}

static void start_anew(struct checkpoint_failure_manager *m)
{
	free(m->counted_ids);
	m->counted_ids = NULL;
	m->counted_id_count = 0;
	m->count = 0;
}

void checkpoint_failure_manager_clear(struct checkpoint_failure_manager *m)
{
	start_anew(m);
}

/* FM-1: once for each id; without one, always. */
static bool is_counted_already(const struct checkpoint_failure_manager *m, int64_t id)
{
	for (uint32_t i = m->counted_id_count; i > 0; i--) {
		if (m->counted_ids[i - 1] == id)
			return true;
	}
	return false;
}

static void count(struct checkpoint_failure_manager *m, int64_t id,
		enum checkpoint_failure_reason reason)
{
	if (m->tolerable == TOLERABLE_FAILURES_UNLIMITED ||
			!checkpoint_failure_reason_is_counted(reason))
		return;
	if (id != 0) {
		if (is_counted_already(m, id))
			return;
		m->counted_ids = heap_resize(
				m->counted_ids, m->counted_id_count + 1, sizeof(*m->counted_ids));
		m->counted_ids[m->counted_id_count++] = id;
	}
	m->count++;
}

enum failure_action checkpoint_failure_manager_on_failure(struct checkpoint_failure_manager *m,
		int64_t id, const struct checkpoint_properties *properties,
		enum checkpoint_failure_reason reason, bool has_attempt)
{
	bool is_savepoint = checkpoint_properties_is_savepoint(properties);
	bool is_job_level = checkpoint_failure_reason_is_preflight(reason) || !has_attempt;

	if (is_job_level && is_savepoint) /* FM-5 */
		return FAILURE_TOLERATED;
	if (!is_job_level && checkpoint_properties_is_synchronous(properties)) /* FM-6 */
		return FAILURE_FAILS_JOB;
	if (id != 0 && id <= m->succeeded_id_max) /* FM-2 */
		return FAILURE_TOLERATED;
	count(m, id, reason);
	if (m->count <= (uint32_t)m->tolerable)
		return FAILURE_TOLERATED;
	start_anew(m); /* FM-4 */
	return is_job_level ? FAILURE_FAILS_JOB : FAILURE_FAILS_JOB_IF_ATTEMPT_RUNS;
}

void checkpoint_failure_manager_on_success(struct checkpoint_failure_manager *m, int64_t id)
{
	if (id <= m->succeeded_id_max)
		return;
	m->succeeded_id_max = id;
	start_anew(m);
}
